"""Numbers, dates and articles of a question in one spelling: two weeks, 2 weeks and the 2nd week."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_VALUES = {word: value for value, word in enumerate(_SMALL)} | _TENS | {"dozen": 12}
_LARGE = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "k": 1000}
_ORDINALS = dict(
    zip(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        range(1, 13),
        strict=True,
    )
)
ENGLISH_MONTHS = frozenset(
    "maymonth januari februari march april june juli august septemb octob novemb decemb jan feb mar apr jun jul aug "
    "sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mondi tuesdi spring summer autumn "
    "winter christma easter quarter today tomorrow yesterday".split()
)
"""Stems of words that say when; none of them is a synonym or a typing error of another."""
_UNITS = {
    "day": "day", "week": "week", "month": "month", "year": "year", "hour": "hour", "minut": "minute",
    "%": "%", "percent": "%", "€": "euro", "euro": "euro", "eur": "euro", "$": "dollar", "dollar": "dollar",
    "usd": "dollar", "£": "pound", "pound": "pound", "km": "km", "kilometr": "km", "kilomet": "km", "peopl": "person",
    "person": "person", "time": "time", "night": "night", "am": "am", "pm": "pm", "gb": "gb", "mb": "mb",
    "mile": "mile",
}  # fmt: skip
_COUNTED_ONE = frozenset({"day", "week", "month", "year", "hour", "time", "minute", "person"})
_DIGITS = re.compile(r"(\d+(?:[.,:/]\d+)*)(st|nd|rd|th)?(%)?")


def english_number(tokens: Sequence[str]) -> tuple[str, int] | None:
    """The number at the beginning of the tokens in digits (ordinals with a dot) and its length; None without one.

    "one" alone is a pronoun more often than a number.
    """
    first, second = tokens[0], tokens[1] if len(tokens) > 1 else ""
    match = _DIGITS.fullmatch(first)
    if match:
        value = _plain(match[1]) + ("." if match[2] else "") + ("%" if match[3] else "")
        if second in _LARGE and _is_float(value):
            return f"{float(value) * _LARGE[second]:.0f}", 2
        return value, 1
    if first in _ORDINALS:
        return f"{_ORDINALS[first]}.", 1
    if first in _TENS and _VALUES.get(second, 10) < 10:
        return str(_TENS[first] + _VALUES[second]), 2
    if first in _VALUES and first != "one":
        return _scaled(_VALUES[first], tokens, 1)
    return _single(second) if first in {"a", "one"} else None


def _single(counted: str) -> tuple[str, int] | None:
    """The number of "a hundred", "a dozen" and "one day"."""
    if counted in _LARGE or counted == "dozen":
        return str(_LARGE.get(counted, 12)), 2
    return ("1", 1) if counted.rstrip("s") in _COUNTED_ONE else None


def _scaled(value: int, tokens: Sequence[str], length: int) -> tuple[str, int]:
    if len(tokens) > length and tokens[length] in _LARGE:
        return str(value * _LARGE[tokens[length]]), length + 1
    return str(value), length


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(number: str) -> str:
    """Digits without thousands separators and superfluous zeros: 1,000 is 1000, 3.0 is 3."""
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number):
        number = number.replace(",", "")
    if number.count(".") == 1 and not re.search(r"[,:/]", number):
        number = number.rstrip("0").rstrip(".")
    return number.lstrip("0") or "0"


def number_with_unit(value: str, following: str) -> tuple[str, int]:
    """A number with the unit that follows it, and whether (0 or 1) the unit was used."""
    unit = _UNITS.get(following)
    return (f"{value} {unit}", 1) if unit else (value, 0)


_NATIVE = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10,
           "스무": 20, "석": 3, "넉": 4}  # fmt: skip
_DAYS = {
    "하루": 1,
    "이틀": 2,
    "사흘": 3,
    "나흘": 4,
    "닷새": 5,
    "엿새": 6,
    "이레": 7,
    "여드레": 8,
    "아흐레": 9,
    "열흘": 10,
    "보름": 15,
}
_SINO = dict(zip("일이삼사오육칠팔구", range(1, 10), strict=True))
_TIMES = {
    "십": 10,
    "백": 100,
    "천": 1000,
    "만": 10_000,
    "십만": 100_000,
    "백만": 1_000_000,
    "천만": 10_000_000,
    "억": 10**8,
}
_KOREAN_UNIT = (
    "학년도|학기|학점|학년|개월|주차|주일|주년|시간|퍼센트|프로|차례|번째|사람|과목"
    "|호봉|등급|가지|군데|페이지|만원|천원|백원|분기|단계|조|항|호|목|장|절|편|관"
    "|년차|년도|년|월|달|주|일|시|분|초|명|인|회|번|차|개|점|원|권|급|세|살|배"
    "|층|대|건|매|부|쪽|급지|동|평|%|km|kg|gb|째|해|박|식"
)
_SAME_UNITS = {"번": "회", "차례": "회", "달": "개월", "인": "명", "사람": "명", "퍼센트": "%",
               "프로": "%", "주일": "주", "살": "세",
               "해": "년", "번째": "째", "년도": "년", "군데": "곳"}  # fmt: skip
_AFTER_NUMBER = r"(?:\s?(?P<side>이전|이후|전|후|뒤|까지|부터)(?=에|의|까지|부터|는|도|인|이|\s|$|[,.?]))?"
_KOREAN_NUMBER = re.compile(
    r"(?:(?<![가-힣])제|(?P<label>별표|별지|부칙|표|서식|그림))?\s?(?P<digits>\d+(?:[.,:]\d+)*)\s?(?P<times>십만|백만|천만|만|천|백|억)?\s?"
    rf"(?P<unit>{_KOREAN_UNIT})?(?:\s?의\s?(?P<branch>\d+))?(?P<share>분의\s?\d+)?" + _AFTER_NUMBER
)
_NATIVE_NUMBER = re.compile(
    rf"(?<![가-힣])(?<![안못] )(?P<native>{'|'.join(_NATIVE)})\s?"
    r"(?P<unit>번째|학기|학년|개월|시간|차례|사람|과목|가지|군데|단계|학점|달|주|해|명|회|번|개|권|살|배|째|건|분|대|시)"
    r"(?![가-힣]*(?:제|법))" + _AFTER_NUMBER
)
_SINO_NUMBER = re.compile(
    r"(?<![가-힣])(?P<sino>[일이삼사오육칠팔구십백]{1,4})\s?(?P<unit>학년도|학기|학년|학점|개월|년|주일|퍼센트|주(?=\s|일|간|차|동안|전|후|$))(?!원|터)"
    + _AFTER_NUMBER
)
_FIRST = re.compile(r"(?<![가-힣])(?:첫\s?(?:번째|째)?|첫째)(?=\s|[가-힣])\s?")
_COUNT_ALONE = re.compile(r"(?<![가-힣])(하나(?=[만도씩]|로|라도)|(?:둘|셋|넷)(?! 수)(?=이|을|은|인|째|만|도|\s|$))")


def korean_numbers(text: str) -> tuple[str, list[str]]:
    """The text without its numbers, and the numbers with their units: 두 번 and 2회 are both `2회`."""
    values: list[str] = []

    def add(number: str, unit: str, side: str | None, prefix: str = "") -> str:
        sided = {"이전": "전", "이후": "후", "뒤": "후"}.get(side or "", side or "")
        values.append(f"{prefix}{number}{_SAME_UNITS.get(unit, unit)}{sided}")
        return " ⟦number⟧ "

    def digits(match: re.Match[str]) -> str:
        number = _plain(match["digits"])
        if match["times"] and _is_float(number):
            number = f"{float(number) * _TIMES[match['times']]:.0f}"
        unit = match["unit"] or ""
        for word, factor in (("만원", 10_000), ("천원", 1000), ("백원", 100)):
            if unit == word and _is_float(number):
                number, unit = f"{float(number) * factor:.0f}", "원"
        extra = f"의{match['branch']}" if match["branch"] else ""
        share = re.sub(r"\s", "", match["share"] or "")
        return add(number, _SAME_UNITS.get(unit, unit) + extra + share, match["side"], match["label"] or "")

    text = _KOREAN_NUMBER.sub(digits, text)
    text = re.sub(
        rf"(?<![가-힣])({'|'.join(_DAYS)})(?=\s|[이가을를은는의에만도나간전후치]|까지|부터|$)",
        lambda match: add(str(_DAYS[match[1]]), "일", None),
        text,
    )
    text = re.sub(r"(?<![가-힣])반년", lambda match: add("6", "개월", None), text)
    text = _FIRST.sub(lambda match: add("1", "째", None), text)
    text = _NATIVE_NUMBER.sub(lambda match: add(str(_NATIVE[match["native"]]), match["unit"], match["side"]), text)
    text = _SINO_NUMBER.sub(lambda match: add(str(_sino(match["sino"])), match["unit"], match["side"]), text)
    text = _COUNT_ALONE.sub(
        lambda match: add({"하나": "1", "둘": "2", "셋": "3", "넷": "4"}[match[1]], "명", None), text
    )
    tail = (
        r"⟦number⟧\s?(?:짜리|이상|이하|이나|씩|간|동안|정도|이면|이라면|면|인|의|에|을|를|이|가|은|는|만|로|으로"
        r"|도|과|와|째|치|마다)(?=\s|$|[,.?])"
    )
    text = re.sub(
        tail,
        lambda match: (
            "⟦number⟧ " + (suffixes[0] if (suffixes := re.findall("이상|이하|만$|마다", match.group())) else "")
        ),
        text,
    )
    return text, values


def _sino(word: str) -> int:
    total, current = 0, 0
    for character in word:
        if character in _SINO:
            current = _SINO[character]
        else:
            total += (current or 1) * _TIMES[character]
            current = 0
    return total + current
