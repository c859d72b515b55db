"""Extracts arithmetic expressions from questions: `1,200의 15%는?` gives `1200 * 15 / 100`.

Most digits in questions are not arithmetic: dates, telephone numbers, articles, ranges, 24/7. An expression with only
`-` and `/` is therefore accepted only if the question has no other content.
"""

from __future__ import annotations

import ast
import re
import unicodedata

MAX_LENGTH = 200
"""Maximum characters of an expression."""
MAX_QUESTION = 2_000
"""Characters of a question that are considered."""
_SPELLINGS = str.maketrans({"×": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_WORDS = (
    (re.compile(r"(?<=\d)\s*(?:더하기|plus)\s*(?=\d)", re.I), " + "),
    (re.compile(r"(?<=\d)\s*(?:빼기|minus)\s*(?=\d)", re.I), " - "),
    (re.compile(r"(?<=\d)\s*(?:곱하기|times|multiplied by)\s*(?=\d)", re.I), " * "),
    (re.compile(r"(?<=\d)\s*(?:나누기|divided by)\s*(?=\d)", re.I), " / "),
    (re.compile(r"(?<=\d)\s*(?:퍼센트|프로(?![가-힣])|per ?cent\b)", re.I), "%"),
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_UNITS = r"(?:원|명|개|점|달러|시간|일|학점|won|dollars?)?"
_LARGE = {"천": 1_000, "만": 10_000, "억": 100_000_000}
_NUMBER = r"\d{1,30}(?:\.\d{1,30})?"
_SHARE_KO = re.compile(rf"(?<![\d.\-/제])({_NUMBER})\s?([천만억]?)\s?{_UNITS}의\s?({_NUMBER})\s?%")
_SHARE_EN = re.compile(rf"(?<![\d.\-/])({_NUMBER})\s?%\s(?:of|from)\s(?:[$₩€])?({_NUMBER})(?![\d./\-])", re.I)
_RUN = re.compile(r"(?<![\w.#])[\d(\-.][\d\s.()+\-*/%]{1,400}(?![A-Za-z#])")
_PERCENT = re.compile(rf"({_NUMBER})\s?%(?!\s?[\d(])")
_OPERATION = re.compile(r"[\d)]\s*(?:\*\*|[+\-*/])\s*[-+(]*[\d.]")
_UNMISTAKABLE = re.compile(r"[+*]")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d{2}\s?[-/.]\s?\d{1,2}(?:\s?[-/.]\s?\d{1,2})?(?!\d)")
_ORDER = re.compile(r"계산|얼마|몇\s?(?:명|원|개|점|시간|일)|\b(?:calculate|compute|how (?:much|many))\b", re.I)
_ASKING = re.compile(
    r"\b(?:what(?:'s| is| are)?|how (?:much|many)|is|calculate|compute|evaluate|please|the (?:result|value) of)\b"
    r"|계산\S*|얼마\S*|값\S*|결과\S*|구해\S*|알려\S*|몇\S*|(?:은|는|이|을|를|인가요?|이?야|이?에요|입니까)(?=[\s?.!]|$)"
    r"|[\s?!.=,:()\"'`]",
    re.I,
)
_ALLOWED = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)


def expression_of(question: str) -> str | None:
    """An expression for the calculator, of digits, brackets and + - * /, or None. Nothing is computed."""
    text = unicodedata.normalize("NFKC", question[:MAX_QUESTION]).translate(_SPELLINGS)
    text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    for words, sign in _WORDS:
        text = words.sub(sign, text)
    return _percentage(text) or _operations(text)


def _percentage(text: str) -> str | None:
    """The expression for `N의 P%` or `P% of N`, or None."""
    if korean := _SHARE_KO.search(text):
        number, large, percent = korean.groups()
        factor = f" * {_LARGE[large]}" if large else ""
        return f"{number}{factor} * {percent} / 100" if _is_requested(_without(text, korean), sure=True) else None
    if english := _SHARE_EN.search(text):
        return f"{english[2]} * {english[1]} / 100" if _is_requested(_without(text, english), sure=True) else None
    return None


def _operations(text: str) -> str | None:
    """The first expression written with operators, or None."""
    for match in _RUN.finditer(_DATE.sub(lambda date: "#" * len(date.group()), text)):
        candidate = _balanced(_PERCENT.sub(r"(\1 / 100)", match.group().strip()).rstrip(" .+-*/%"))
        if not (_OPERATION.search(candidate) and _is_arithmetic(candidate)):
            continue
        if _is_requested(_without(text, match), sure=_UNMISTAKABLE.search(candidate) is not None):
            return " ".join(candidate.split())
    return None


def _without(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()]} {text[match.end() :]}"


def _is_requested(rest: str, *, sure: bool) -> bool:
    """Whether the result is asked for: `rest` is empty but for filler, or asks for it (and it is surely no range)."""
    return (sure and _ORDER.search(rest) is not None) or not _ASKING.sub("", rest)


def _balanced(text: str) -> str:
    """The text without unbalanced brackets of the surrounding sentence."""
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip()
    while text.startswith("(") and text.count("(") > text.count(")"):
        text = text[1:].lstrip()
    return text


def _is_arithmetic(text: str) -> bool:
    if len(text) > MAX_LENGTH:
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return all(isinstance(node, _ALLOWED) for node in ast.walk(tree))
