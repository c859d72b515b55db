"""What a question asks about: kinds of questions, audiences, forms and named articles, as patterns."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

CACHED_NAMES = 8_192
"""Titles of articles, and names of regulations, whose kinds are cached."""
ASKS_FOR_FORM = re.compile(r"서식|양식|신청서|별지|별표|부칙|신고서|확인서|form\b")
_BOILERPLATE_TITLE = re.compile(
    r"^(?:목\s*적|정\s*의|적용\s?범위|용어의?\s?정의|명\s*칭|시행\s?세칙|운영\s?세칙|준\s*용"
    r"|시행일|기\s*타|위임\s?규정|세부\s?사항|설\s*치|소\s*재|적용|다른 \S+과의 관계)"
)
NAMED_ARTICLE = re.compile(
    r"(?P<name>[가-힣A-Za-z·ㆍ()「」『』\s]{2,60}?)[」』]?\s*(?:의\s*)?(?P<article>제\s*\d{1,4}\s*조(?:\s*의\s*\d{1,3})?)"
)
_AUDIENCES: Sequence[tuple[re.Pattern[str], re.Pattern[str]]] = tuple(
    (re.compile(name), re.compile(question))
    for name, question in (
        ("대학원", "대학원|석사|박사|학위논문|논문|graduate|master|phd|doctor"),
        (
            "외국인|유학생|글로벌|국제",
            "외국|유학|국제|교환|비자|어학|한국어|abroad|foreign|international|exchange|visa",
        ),
        ("병원|의료원|한방", "병원|의료|환자|간호|진료|한방|hospital"),
        ("고등학교|중학교|유치원|어린이", "고등학교|중학교|유치원|어린이"),
        ("평생교육|사회교육|학점은행", "평생|학점은행|비학위|사회교육"),
        ("언어교육|어학", "어학|언어|한국어|영어|language"),
        ("산학협력|기술이전|창업|보육", "산학|기술|창업|특허|기업|연구비|과제|협력|입주|보육|startup"),
        ("계약직|임시|촉탁|무기계약|기간제", "계약|비정규|임시|촉탁|무기|기간제|contract"),
        (
            "시간강사|강사|겸임|초빙|명예|석좌|객원|비전임",
            "강사|겸임|초빙|명예|석좌|객원|비전임|시간제|lecturer|adjunct|visiting",
        ),
        ("조교", "조교|assistant"),
        ("군|예비군|학군", "군대|입대|군|예비군|학군|전역|military|army"),
        ("기숙|생활관|행복기숙", "기숙|생활관|사감|룸메|방|외박|점호|퇴사|입사|dorm"),
        ("도서관|도서", "도서|책|대출|열람|자료|library|book"),
        ("법인|정관|이사회", "법인|정관|이사|재단|foundation|board"),
        ("동물|생명윤리|연구윤리|실험", "동물|윤리|실험|표절|연구|ethic|lab|animal"),
        ("약학|의과|한의|간호대|공과|경영|사범|교육대학원|법과", "약학|의과|한의|간호|공과|공대|경영|사범|교직|법과"),
    )
)


@functools.lru_cache(CACHED_NAMES)
def is_boilerplate(title: str) -> bool:
    """Whether the title is one that nearly every regulation has, such as 목적."""
    return bool(_BOILERPLATE_TITLE.search(title))


@functools.lru_cache(CACHED_NAMES)
def audiences_of_regulation(name: str) -> frozenset[int]:
    """The audiences and subjects that the name of a regulation is limited to."""
    return frozenset(number for number, (pattern, _) in enumerate(_AUDIENCES) if pattern.search(name))


def audiences_of_question(question: str) -> frozenset[int]:
    """The audiences and subjects that the question mentions."""
    return frozenset(number for number, (_, pattern) in enumerate(_AUDIENCES) if pattern.search(question))
