"""Numbers in a text, in any spelling: 1,000, 250만, 2.5 million, twelve, 네 학기."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtrag.core.text.analysis import normalise

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
LATIN = re.compile(r"(?<![a-z0-9])[a-z][a-z0-9]*(?:[._+#/&-][a-z0-9]+)*", re.ASCII)
_WORDS_EN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_COUNTED = {word: str(value) for value, word in enumerate(_WORDS_EN)} | {
    "thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "thousand": "1000", "twice": "2",
}  # fmt: skip
_NUMERAL = _COUNTED | {"once": "1", "first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5"}
_NUMERAL |= {"sixth": "6", "seventh": "7", "eighth": "8", "ninth": "9", "tenth": "10"}
_FREE = {"zero", "one", "hundred", "thousand"}
"""Words that are not always numbers ("one of them"): they are ignored in claims."""
_TIMES = {"백": 10**2, "천": 10**3, "만": 10**4, "십만": 10**5, "백만": 10**6, "천만": 10**7, "억": 10**8, "조": 10**12}
_TIMES |= {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_ROUND = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s?([십백천]만|[백천만억]|조(?=\s?[원\d])|hundred|thousand|[mb]illion)")
_NATIVE = dict(zip(("한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열"), range(1, 11), strict=True))
_SINO = dict(zip("일이삼사오육칠팔구", range(1, 10), strict=True))
_UNIT = r"(?:명|개|회|번|일|년|월|주|학기|학점|과목|차례|가지|사람|시간|분|배|달|해|살)"
_NATIVE_NUMBER = re.compile(rf"(?<![가-힣])({'|'.join(_NATIVE)})\s?{_UNIT}")
_SINO_NUMBER = re.compile(rf"(?<![가-힣])([일이삼사오육칠팔구]?)(십?)([일이삼사오육칠팔구]?)\s?{_UNIT}")


def spelt_numbers(text: str) -> dict[str, str]:
    """Number in plain digits -> its spelling in the text."""
    folded = normalise(text)
    rounded = {value: shown for value, shown, _ in _rounded(folded)}
    rest = _ROUND.sub(" ", folded)
    words = {_COUNTED[word]: word for word in LATIN.findall(rest) if word in _COUNTED and word not in _FREE}
    return words | {_plain(number): number for number in NUMBER.findall(rest)} | rounded


def _rounded(folded: str) -> Iterator[tuple[str, str, int]]:
    """Numbers with a word, as value, spelling and end: 250만 and 2.5 million are 2500000, 1억 5천만 is 150000000."""
    total, shown, end = 0.0, "", -1
    for match in _ROUND.finditer(folded):
        value = float(match[1].replace(",", "")[:20]) * _TIMES[match[2]]
        if total and folded[end : match.start()].strip(" ") == "" and value < total:
            total, shown = total + value, f"{shown} {match.group()}"
        else:
            if total:
                yield f"{total:.0f}", shown, end
            total, shown = value, match.group()
        end = match.end()
    if total:
        yield f"{total:.0f}", shown, end


def _plain(number: str) -> str:
    """Canonical digits: 1,000 is 1000, 3.0 is 3, 07 is 7."""
    plain = number.replace(",", "")
    if plain.count(".") == 1 and ":" not in plain:
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"


def numbers_in(text: str) -> frozenset[str]:
    """All numbers in a text in plain digits, spelled-out ones included ("twelve", "네 학기", "삼십 일")."""
    folded = normalise(text)
    numbers = {_plain(number) for number in NUMBER.findall(folded)}
    numbers |= {value for value, _, _ in _rounded(folded)}
    numbers |= {part for number in tuple(numbers) for part in number.replace(":", ".").split(".")}
    numbers |= {_NUMERAL[word] for word in LATIN.findall(folded) if word in _NUMERAL}
    numbers |= {str(_NATIVE[word]) for word in _NATIVE_NUMBER.findall(folded)}
    for tens, ten, ones in _SINO_NUMBER.findall(folded):
        value = _SINO.get(tens, 1) * 10 + _SINO.get(ones, 0) if ten else _SINO.get(tens, 0)
        if value:
            numbers.add(str(value))
    return frozenset(numbers)
