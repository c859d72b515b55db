"""What a question asks for, by its words (one table, `question_words.toml`), and how such values are written."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources
from typing import Any

from dtrag.core.text.patterns import explained

_PLACES = {
    "en": r"\b(?:{})\b",
    "en_start": r"^\W*(?:{})\b",
    "ko": r"(?:{})",
    "ko_end": r"(?:{})(?![가-힣])",
    "ko_last": r"(?:{})[가-힣]*[\s?？]*$",
}
"""Column of the table -> where its words stand."""


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """Meaning -> its columns."""
    return tomllib.loads(resources.files(__package__).joinpath("question_words.toml").read_text("utf-8"))


def words_for(meaning: str, *columns: str) -> list[str]:
    """The words of a meaning, of all columns or of these."""
    row = table()[meaning]
    listed = (" ".join(row[column].split()) for column in columns or _PLACES if column in row)
    return [word for column in listed for word in column.split(", ")]


@functools.cache
def _pattern(meaning: str) -> re.Pattern[str]:
    columns = {column: "|".join(words_for(meaning, column)) for column in _PLACES if column in table()[meaning]}
    return re.compile("|".join(_PLACES[column].replace("{}", listed) for column, listed in columns.items()), re.I)


def count(question: str, *meanings: str) -> int:
    """How many words of the meanings the question has."""
    return sum(len(_pattern(meaning).findall(question)) for meaning in meanings)


def asks(question: str, *meanings: str) -> bool:
    """Whether the question has a word of one of the meanings."""
    return any(_pattern(meaning).search(question) for meaning in meanings)


_COUNTER = explained(
    r"몇\s*(?P<counter>퍼센트|프로|학기|학점|학년|개월|시간|차례|[가-힣%])|(?P<days>며칠)"
    r"|(?P<duration>얼마\s?(?:동안|간(?=[\s의은을?]|$)|(?:쯤|나|만큼)?\s?(?:전|뒤|후)(?=[에까의은?\s]|$)"
    r"|나\s?(?:오래|길|걸|머무|지나)))|(?P<money>몇\s*만\s*원)"
    r"|(?P<amount>얼마(?P<rank>여야|이어야|\s?이상|\s?이하|가 되어야)?)",
    finds=("몇 학기", "얼마 동안"),
    refuses=("몇?", "얼만큼"),
)
_TIME_NOUN = re.compile(r"(?:기간|임기|연한|수명|일수|시간)(?=[은는이가을를의]?(?:\s|\?|$))")
"""A noun for a length of time, which "얼마" then asks for ("임기는 얼마인가요")."""
_MONEY_NOUN = re.compile(
    r"(?:비용?|요금|수당|금액?|료|돈|값|가격|급여|월급|연봉|보수|액)(?=[은는이가을를의도로]?(?:\s|\?|$))"
)
_DURATIONS = (
    r"(?:년|개월|월(?=\s?(?:전|후|이내|간))|달|주일?|일|학기|시간|분)(?!\s?(?:의|도|차|생|단위|시))"
    r"(?!\s?이상\s(?:\S{2,5}\s)?(?:근무|재직|근속|종사|경과)|\s?(?:이상|미만|이하|초과|이내)인)"
)
"""Not a length that only says who is meant ("6년 이상 근무한 교원은", "남은 기간이 2년 미만인 교원은")."""
_MONEY = r"(?:\d*[백천만억]\s?)*(?:\d[\d,]*)?\s?원|%|퍼센트"
_WRITTEN_COUNTERS = {
    "번": "번|회|차례|차",
    "차례": "번|회|차례|차",
    "회": "번|회|차례|차",
    "명": "명|인",
    "사": "명|인",
    "달": "개월|월|달",
    "개월": "개월|월|달",
    "퍼센트": "%|퍼센트|퍼",
    "프로": "%|퍼센트|퍼",
    "퍼": "%|퍼센트|퍼",
    "살": "세|살",
    "시": "시(?!간)",
    "주": "주",
}
"""Counter of a question -> those that documents write for it; others are written as they are asked."""
_WORDS_LIKE_NUMBERS = r"(?!이번|이사회|사회|사명|사인|이 일|일시)"
_FIGURE = rf"(?:(?<![\d,.])\d[\d,.]*|(?<![가-힣]){_WORDS_LIKE_NUMBERS}[일이삼사오육칠팔구십백천만두세네]+)\s?"


HOUR = re.compile(r"(?<!\d)\d{1,2}\s?시(?!간)|(?<!\d)\d{1,2}:\d\d|정오|자정")
"""An hour of the day."""
_ENGLISH_FIGURE = (
    r"(?:\d[\d,.]*|\b(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty))"
)
_ENGLISH_VALUES = {
    "duration": explained(
        rf"{_ENGLISH_FIGURE}[ -](?:and a half )?(?:\w+ )?"
        r"(?:second|minute|hour|day|week|month|quarter|year|decade|centur)",
        flags=re.I,
        finds="30 working days",
        refuses="30 students",
    ),
    "hour": re.compile(r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?[ap]\.?m\b|\b(?:noon|midnight)\b|o['’]clock", re.I),
    "money": explained(
        r"[€$£¥₩]\s?\d|\d[\d,.]* ?(?:euros?|dollars?|pounds?|won|cents?|USD|EUR|GBP|per ?cent|%)",
        flags=re.I,
        finds=("€5", "20 per cent"),
        refuses="5 days",
    ),
}
"""What an English question asks for -> how that is written. Questions for a number of things: the signal `counted`."""


@functools.lru_cache(256)
def counted_answer(question: str) -> re.Pattern[str] | None:
    """Matches a value of the kind that the question asks for: a number with its counter ("몇 권": 10권), an hour, a
    length of time ("how long": 3 weeks), an amount of money; None when it asks for no such value.
    """
    for meaning, written in _ENGLISH_VALUES.items():
        if asks(question, meaning):
            return written
    match = _COUNTER.search(question)
    if match is None:
        return None
    if match["counter"] == "시":
        return HOUR
    if match["rank"] and not _TIME_NOUN.search(question) and not _MONEY_NOUN.search(question):
        return None  # "성적이 얼마여야": a figure of any kind
    return re.compile(rf"{_FIGURE}(?:{_written(question, match)})")


def _written(question: str, match: re.Match[str]) -> str:
    """What documents write behind the figure that the question asks for."""
    if match["counter"]:
        return _WRITTEN_COUNTERS.get(match["counter"], re.escape(match["counter"]))
    if match["days"]:
        return "일|주"
    if match["duration"] or (match["amount"] and _TIME_NOUN.search(question)):
        return _DURATIONS
    if match["money"] or _MONEY_NOUN.search(question):
        return _MONEY
    return f"{_MONEY}|{_DURATIONS}"
