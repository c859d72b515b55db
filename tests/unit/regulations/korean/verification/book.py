"""A small book, and the verification of a text against it."""

from __future__ import annotations

import re
import uuid

from dtrag.core.provisions import Provision, RegulationText
from dtrag.core.verification import VerifiedCitation
from dtrag.regulations.korean.collection import Collection, Regulation
from dtrag.regulations.korean.verification.check import read_text

STAFF = """교원인사규정
제1장 총칙
제1조(목적)
이 규정은 교원의 인사를 정함을 목적으로 한다.
제2조(정의)
① 교원이란 전임교원을 말한다.
② 임용이란 다음 각 호를 말한다.
1. 신규채용
가. 공개채용
나. 특별채용
2. 승진
2의2. 전보
3. 삭제 <2020. 3. 1.>
③ 삭제 <2020. 3. 1.>
제3조(근무기간·조건)
근무기간은 다음 각 호와 같다.
1. 교수: 정년까지
2. 부교수: 6년
제2장 임용
제4조(임용)
임용은 총장이 한다.
제5조 삭제 <2021. 3. 1.>
제6조(승진)
승진은 별표 1에 따른다.
[별표 1] 승진 심사표
점수
[별표 2] <삭제 2019. 3. 1.>
[별지 제1호 서식] 임용 신청서
이름
부칙 <2019. 3. 1.>
제1조(시행일) 이 규정은 2019년 3월 1일부터 시행한다.
제2조(경과조치) 종전의 규정에 따른다.
부칙
① 이 규정은 2021년 3월 1일부터 시행한다.
② 제5조의 개정규정은 따로 정한다. 교수인사지침은 폐지한다. 교원임용규정은 교원인사규정으로 명칭을 변경한다.
"""
RULES = """한빛대학교학칙
제1조(목적)
이 학칙은 학사를 정한다.
제2조(휴학)
① 휴학은 4학기까지로 한다.
② 군휴학은 제외한다.
제3조의2(복학)
복학은 학기 초에 한다.
"""
OLD = """휴학규정【폐지】
제1조(목적)
이 규정은 휴학을 정한다.
"""
_HEAD = re.compile(r"(?m)^(?:(제\d+조(?:의\d+)?)\((.*)\)|\[((?:별표|별지)[^\]]*)\] (?!<?삭제)(.*)|(부칙)(?: <(.*)>)?)$")


def regulation(text: str, code: str) -> RegulationText:
    """A regulation whose provisions begin at lines such as 제1조(목적), [별표 1] and 부칙."""
    heads = list(_HEAD.finditer(text))
    provisions: list[Provision] = []
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        kind = "article" if head[1] else "appendix" if head[3] else "addendum"
        label, title = head[1] or head[3] or head[5], head[2] or head[4] or head[6] or ""
        occurrence = 1 + sum(provision.label == label for provision in provisions)
        provisions.append(Provision(kind, label, title, occurrence, head.end() + 1, end, number, number))
    name = text.split("\n", maxsplit=1)[0].removesuffix("【폐지】")
    return RegulationText(uuid.uuid5(uuid.NAMESPACE_URL, code), name, code, text, tuple(provisions))


BOOK = {
    text.document_id: text
    for text in (regulation(STAFF, "2-1-1"), regulation(RULES, "1-1-1"), regulation(OLD, "3-1-1"))
}
COLLECTION = Collection.of(map(Regulation.of, BOOK.values()))


def verified(text: str, name: str | None = None) -> list[VerifiedCitation]:
    """The citations of a text; `name` is the regulation of references before any name."""
    read = read_text(text, COLLECTION, COLLECTION.named(name) if name else None)
    return list(read.judged(BOOK[key] for key in read.editions).citations)


def statuses(text: str, name: str | None = None) -> list[tuple[str, str]]:
    """Text and status of each citation."""
    return [(citation.text, citation.status) for citation in verified(text, name)]
