"""Particles of Korean nouns, and what kind of thing a question asks for, in Korean and English."""

from __future__ import annotations

import functools
import re

_AFTER = r"(?<=[가-힣0-9a-z)])"
_PARTICLES = (
    "에서부터|으로부터|에게서|으로서|으로써|이라고|까지는|에서는|에게|에서|으로|까지|부터|마다|처럼|보다|이나|이란|하고"
    "|은|는|이|가|을|를|의|에|로|와|과|도|만"
)
PARTICLE = re.compile(rf"{_AFTER}(?:{_PARTICLES}|밖에|랑)(?=[\s,.?!)]|$)")
"""A particle at the end of a written word of a question."""
TITLE_PARTICLE = re.compile(rf"{_AFTER}(?:{_PARTICLES}|이다|이며|인)$")
"""A particle or copula at the end of a title that a sentence mentions ("… 화성이다"): only at the end of the text."""

_AMOUNT = "how (?:many|much|long|old|far|often|large|big|tall|high)"
_NUMBER = re.compile(rf"{_AMOUNT}|what (?:percent|number|amount|age)|몇|얼마|며칠|기간|최대|최소", re.I)
_DATE = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:year|date|month|day|century|decade)|언제|몇 ?년|년도|연도",
    re.I,
)
_NUMBER_OR_DATE = re.compile(
    rf"{_AMOUNT}\b|\bwhen\b|\bwhat (?:year|date|day|percent\w*|number|century)"
    r"|몇|얼마|언제|며칠|기간|연도|년도|날짜|시기",
    re.I,
)

_PERSON = re.compile(r"\bwho(?:m|se)?\b|누구|누가|누군", re.I)
_WHETHER = re.compile(
    r"^\s*(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|am|has|have)\b"
    r"|(?:되나|돼|될까|되는지|됩니까|가능한|가능해|가능할|있나|있을까|있는지|있어|있습니까|괜찮|하나요|해야|허용|금지)[가-힣]*\s*[?？]*\s*$",
    re.I,
)

_COUNTER = re.compile(
    r"몇\s*(?P<counter>퍼센트|프로|학기|학점|학년|개월|시간|차례|[가-힣%])|(?P<days>며칠)|(?P<money>얼마|몇\s*만\s*원)"
)
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


@functools.lru_cache(256)
def counted_answer(question: str) -> re.Pattern[str] | None:
    """Matches a number with the counter that a Korean question asks for ("몇 권": 10권); None without a counter."""
    match = _COUNTER.search(question)
    if match is None:
        return None
    if match["days"]:
        written = "일|주"
    elif match["money"]:
        written = r"(?:\d*[백천만억]\s?)*(?:\d[\d,]*)?\s?원|%"
    else:
        written = _WRITTEN_COUNTERS.get(match["counter"], re.escape(match["counter"]))
    return re.compile(rf"{_FIGURE}(?:{written})")


def asks_person(question: str) -> bool:
    """Whether the question asks who."""
    return _PERSON.search(question) is not None


def asks_whether(question: str) -> bool:
    """Whether the question is answered by yes or no: may, must, is it possible."""
    return _WHETHER.search(question) is not None


def asks_number(question: str) -> bool:
    """Whether the question asks for an amount, a duration or a limit."""
    return _NUMBER.search(question) is not None


def asks_date(question: str) -> bool:
    """Whether the question asks for a point in time."""
    return _DATE.search(question) is not None


def asks_number_or_date(question: str) -> bool:
    """Whether the question asks for something that is written with digits.

    Not `asks_number(question) or asks_date(question)`: the shipped weights of the confidence were fitted with exactly
    this pattern (the signal `kind`), while the other two select sentences.
    """
    return _NUMBER_OR_DATE.search(question) is not None
