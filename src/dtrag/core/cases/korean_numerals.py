"""Korean numbers in words, as digits: 열다섯 명 is 15명, 구십일 is 90일, 삼십만 원 is 300000원."""

from __future__ import annotations

import re

_TENS = {
    "열": 10,
    "스물": 20,
    "스무": 20,
    "서른": 30,
    "마흔": 40,
    "쉰": 50,
    "예순": 60,
    "일흔": 70,
    "여든": 80,
    "아흔": 90,
}
_ONES = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9}
_NATIVE = re.compile(
    rf"(?<![가-힣])(?<![안못] )"
    rf"(?:(?P<tens>{'|'.join(_TENS)})(?P<more>{'|'.join(_ONES)})?|(?P<ones>일곱|여덟|아홉|다섯|여섯))"
    r"\s?(?=(?:번째|학기|학년|개월|시간|차례|사람|과목|가지|군데|단계|학점|달|주|해|명|회|번|개|권|살|배|째|건|분|대|시|곳|장)"
    r"(?![가-힣]*(?:제|법)))"
)
_NO_NUMBERS = frozenset({"쉰", "열"})
"""Also forms of verbs (쉰 사람, 문을 열 사람); as numbers they are read only with ones after them."""
_DIGITS = dict(zip("일이삼사오육칠팔구", range(1, 10), strict=True))
_PLACES = {"십": 10, "백": 100, "천": 1000}
_GROUPS = {"만": 10**4, "억": 10**8}
_SINO = "[일이삼사오육칠팔구십백천]"
_AFTER_DAY = (
    r"(?=(?:이|인|은|을|에|의|간|씩|만|도|까지|부터|이내|이상|이하|동안|전|후)|\s|$|[,.?!])"
    r"(?!\s?(?:명|개|회|번|점|살|세|권|분|일)\b)"
)
_DAYS = re.compile(
    rf"(?<![가-힣])(?P<sino>(?:[이삼사오육칠팔구]?[백십])+[일이삼사오육칠팔구]?|[삼칠팔])(?P<unit>일){_AFTER_DAY}"
)
_TURNS = re.compile(r"(?<![가-힣])(?P<sino>[이삼사오육칠팔구]?십?[일이삼사오육칠팔구십])(?P<unit>회차)")
_MONEY = re.compile(
    rf"(?<![가-힣])(?P<sino>{_SINO}{{1,4}}[만억]|[이삼사오육칠팔구][백천십]{_SINO}{{0,6}})(?P<unit>\s?원)(?!리|칙|장|격)"
)
_COUNTED = re.compile(
    r"(?<![가-힣])(?P<sino>[이삼사오육칠팔구][십백천](?:[일이삼사오육칠팔구]?[십백])?[일이삼사오육칠팔구]?|십[일이삼사오육칠팔구])"
    r"(?P<unit>\s?(?:명|개|점|시간|분|회|번|쪽|페이지|세|퍼센트|프로|학점|년|개월|주)(?:이|인|은|을|에|의|간|씩|만|도|까지|부터|이내|이상|이하|동안|전|후|당|마다|가|를|는)?(?![가-힣]{2}))"
)


def with_digits(text: str) -> str:
    """The text with its numbers in words as digits, where a unit after them shows that they are numbers."""
    text = _NATIVE.sub(_native, text)
    for pattern in (_DAYS, _TURNS, _MONEY, _COUNTED):
        text = pattern.sub(lambda match: f"{sino_value(match['sino'])}{match['unit'].lstrip()}", text)
    return text


def _native(match: re.Match[str]) -> str:
    if match["tens"] in _NO_NUMBERS and not match["more"]:
        return match.group()
    if match["ones"]:
        return str(_ONES[match["ones"]])
    return str(_TENS[match["tens"]] + _ONES.get(match["more"] or "", 0))


def sino_value(word: str) -> int:
    """The value of a number in Sino-Korean words: 삼십만 is 300000."""
    total = section = digit = 0
    for character in word:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _PLACES:
            section += (digit or 1) * _PLACES[character]
            digit = 0
        else:
            total += (section + digit or 1) * _GROUPS[character]
            section = digit = 0
    return total + section + digit
