"""Sentences with and without personal data: read from files, or generated with a seed; and what a detector finds."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from dtrag.core.text.personal_data import BANKS, Detector

FOLDER = Path(__file__).parent
_MARK = re.compile(r"\[\[(\w+):(.*?)\]\]")
_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)


@dataclass(frozen=True)
class Sentence:
    """A text, and the (kind, start, end) of its personal data."""

    text: str
    data: frozenset[tuple[str, int, int]]


@dataclass(frozen=True)
class Findings:
    """Counts by kind; what was missed and what was found wrongly."""

    right: Counter[str]
    missed: list[tuple[str, str]]
    false: list[tuple[str, str]]

    @property
    def precision(self) -> float:
        """The share of what was found that is personal data of this kind, with exactly this span."""
        return self.right.total() / max(1, self.right.total() + len(self.false))

    @property
    def recall(self) -> float:
        """The share of the personal data that was found."""
        return self.right.total() / max(1, self.right.total() + len(self.missed))


def _lines(name: str) -> list[str]:
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def sentence(line: str) -> Sentence:
    """The sentence of a line with marks: `[[phone:010-1234-5678]]`."""
    text, data, end = "", set(), 0
    for match in _MARK.finditer(line):
        text += line[end : match.start()]
        data.add((match[1], len(text), len(text) + len(match[2])))
        text, end = text + match[2], match.end()
    return Sentence(text + line[end:], frozenset(data))


def written(name: str) -> list[Sentence]:
    """The sentences of a file: development or heldout."""
    return [sentence(line) for line in _lines(name)]


def findings(sentences: Iterable[Sentence], detector: Detector = Detector()) -> Findings:
    """What the detector finds in the sentences; a span counts where kind, start and end are right."""
    right, missed, false = Counter[str](), list[tuple[str, str]](), list[tuple[str, str]]()
    for each in sentences:
        detected = {(datum.kind, datum.start, datum.end) for datum in detector.find(each.text)}
        right.update(kind for kind, _, _ in detected & each.data)
        missed += [(kind, each.text) for kind, _, _ in sorted(each.data - detected)]
        false += [(kind, each.text) for kind, _, _ in sorted(detected - each.data)]
    return Findings(right, missed, false)


_WITH = {
    "resident": (
        "주민등록번호 {}",
        "{} (본인)",
        "신청인 김하늘 {}은 동의한다.",
        "주민번호: {}",
        "resident registration number {}",
    ),
    "foreigner": ("외국인등록번호 {}", "ARC {}", "유학생 {}의 체류 기간", "alien registration {}"),
    "phone": (
        "전화 {}",
        "연락처: {}입니다.",
        "{}로 문자 주세요.",
        "Call {} today.",
        "({}) 담당자",
        "Tel. {}, fax 없음",
    ),
    "card": ("카드번호 {}", "{}로 결제함", "charged to {} yesterday", "카드 {} 분실 신고"),
    "account": (
        "{bank} {} 예금주 이도윤",
        "계좌 {bank} {}",
        "{bank} {}로 입금",
        "{}({bank}) 계좌로 환불",
        "bank account {} ({bank})",
    ),
    "passport": ("여권번호 {}", "passport {}", "여권 {} 만료", "Passport No.: {}"),
    "licence": ("운전면허 {}", "면허번호 {}", "driver's license {}", "{} 1종 보통"),
    "email": ("메일 {}", "{}로 보낼 것", "Write to {}.", "<{}>", "{}, {} 참조"),
}


def generated(count: int, seed: int) -> Iterator[Sentence]:
    """`count` sentences, two thirds of them with personal data."""
    rng, traps = random.Random(seed), _lines("traps")
    for _ in range(count):
        if rng.random() < 0.34:
            yield Sentence(_filled(rng, rng.choice(traps)), frozenset())
            continue
        kind = rng.choice(list(_WITH))
        template = rng.choice(_WITH[kind])
        bank, value = _value(rng, kind)
        lines = template.replace("{bank}", bank).split("{}")
        yield sentence(f"[[{kind}:{value}]]".join(lines))


def _filled(rng: random.Random, template: str) -> str:
    values = {f"n{length}": _digits(rng, length) for length in range(1, 11)}
    day = date(2010, 1, 1) + timedelta(rng.randrange(6_000))
    values |= {"year": f"{day:%Y}", "yy": f"{day:%y}", "mm": f"{day:%m}", "dd": f"{day:%d}", "year2": str(day.year + 1)}
    return template.format(**values)


def _digits(rng: random.Random, length: int) -> str:
    return str(rng.randrange(1, 10)) + "".join(str(rng.randrange(10)) for _ in range(length - 1))


def _value(rng: random.Random, kind: str) -> tuple[str, str]:
    """A name of a bank for an account, else "", and the value."""
    if kind == "account":
        names, formats = rng.choice(BANKS)
        bank = re.match("[가-힣A-Za-z]+", names)[0]  # type: ignore[index]
        bank += "은행" if "은행" in names and not bank.endswith("은행") else ""
        return bank, "-".join(_digits(rng, int(size)) for size in rng.choice(formats).split("-"))
    return "", _VALUES[kind](rng)


def _passport(rng: random.Random) -> str:
    return rng.choice("MSRDG") + rng.choice(
        (_digits(rng, 8), f"{_digits(rng, 3)}{rng.choice('ABCK')}{_digits(rng, 4)}")
    )


def _licence(rng: random.Random) -> str:
    return f"{rng.randrange(11, 27)}-{rng.randrange(10, 99)}-{_digits(rng, 6)}-{rng.randrange(10, 99)}"


def _email(rng: random.Random) -> str:
    name = rng.choice(("haneul.kim", "j_doe", "seoa97", "office-2", "a.b.c", "minjun+notice"))
    return f"{name}@{rng.choice(('univ.ac.kr', 'example.co.uk', 'mail.example.org', 'naver.com'))}"


def _registration(rng: random.Random, *, foreigner: bool) -> str:
    old = rng.random() < 0.6
    days = (date(2020, 9, 30) - date(1940, 1, 1)).days
    born = (
        date(1940, 1, 1) + timedelta(rng.randrange(days))
        if old
        else date(2020, 10, 1) + timedelta(rng.randrange(1_500))
    )
    digit = (1 if born.year < 2000 else 3) + rng.randrange(2) + (4 if foreigner else 0)
    body = f"{born:%y%m%d}{digit}{_digits(rng, 5)}"
    last = rng.randrange(10)
    if old:
        last = (
            (13 if foreigner else 11) - sum(int(each) * by for each, by in zip(body, _WEIGHTS, strict=True)) % 11
        ) % 10
    return f"{body[:6]}{rng.choice(('-', '-', ''))}{body[6:]}{last}"


def _phone(rng: random.Random) -> str:
    mark = rng.choice("--. ")
    four, exchange = _digits(rng, 4), f"{rng.randrange(2, 10)}{rng.randrange(100, 1000)}"
    return rng.choice(
        (
            mark.join(("010", exchange, four)),
            f"010{exchange}{four}",
            mark.join((rng.choice(("02", "031", "051", "064", "070")), exchange[:3], four)),
            f"+82{mark}10{mark}{exchange}{mark}{four}",
            f"+82-2-{exchange}-{four}",
            f"+44 20 {four} {exchange}",
            f"+1 (415) 555-{four}",
        )
    )


def _card(rng: random.Random) -> str:
    start, length = rng.choice((("4", 16), ("51", 16), ("37", 15), ("3530", 16), ("9410", 16), ("6210", 16)))
    body = start + "".join(str(rng.randrange(10)) for _ in range(length - len(start) - 1))
    total = sum(sum(divmod(int(each) * (2 - place % 2), 10)) for place, each in enumerate(reversed(body)))
    number = f"{body}{-total % 10}"
    if rng.random() < 0.3:
        return number
    mark, groups = rng.choice("- "), (4, 6, 5) if length == 15 else (4, 4, 4, 4)
    ends = [sum(groups[: place + 1]) for place in range(len(groups))]
    return mark.join(number[end - size : end] for end, size in zip(ends, groups, strict=True))


_VALUES: dict[str, Callable[[random.Random], str]] = {
    "resident": lambda rng: _registration(rng, foreigner=False),
    "foreigner": lambda rng: _registration(rng, foreigner=True),
    "phone": _phone,
    "card": _card,
    "passport": _passport,
    "licence": _licence,
    "email": _email,
}


def table() -> str:
    """Precision and recall on the three sets, and by kind."""
    sets = {
        "development": written("development"),
        "heldout": written("heldout"),
        "generated": list(generated(4_000, 7)),
    }
    lines = [f"{'set':<12} {'sentences':>9} {'data':>6} {'precision':>9} {'recall':>7}"]
    for name, sentences in sets.items():
        result = findings(sentences)
        data = sum(len(each.data) for each in sentences)
        lines.append(f"{name:<12} {len(sentences):>9,} {data:>6,} {result.precision:>9.3f} {result.recall:>7.3f}")
        lines += [f"  missed {kind}: {text}" for kind, text in result.missed[:20]]
        lines += [f"  false {kind}: {text}" for kind, text in result.false[:20]]
    return "\n".join(lines)
