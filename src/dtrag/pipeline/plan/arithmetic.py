"""The arithmetic in a question: `1,200의 15%는?` asks for `1200 * 15 / 100`.

Questions are full of digits that are no arithmetic: dates, telephone numbers, articles, ranges, 24/7. So what only
holds `-` and `/` counts only when the question is about nothing else.
"""

from __future__ import annotations

import ast
import re
import unicodedata

MAX_LENGTH = 200
"""Characters of an expression; people who ask for more write a file."""
MAX_QUESTION = 2_000
"""Characters of a question that are looked at."""
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
    """An expression for the calculator, or None. Nothing is computed; digits, brackets and + - * / are all it holds."""
    text = unicodedata.normalize("NFKC", question[:MAX_QUESTION]).translate(_SPELLINGS)
    text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    for words, sign in _WORDS:
        text = words.sub(sign, text)
    return _share(text) or _written(text)


def _share(text: str) -> str | None:
    """`N의 P%`, `P% of N`."""
    if korean := _SHARE_KO.search(text):
        number, large, percent = korean.groups()
        factor = f" * {_LARGE[large]}" if large else ""
        return f"{number}{factor} * {percent} / 100" if _wanted(_without(text, korean), sure=True) else None
    if english := _SHARE_EN.search(text):
        return f"{english[2]} * {english[1]} / 100" if _wanted(_without(text, english), sure=True) else None
    return None


def _written(text: str) -> str | None:
    """What is written as arithmetic."""
    for match in _RUN.finditer(_DATE.sub(lambda date: "#" * len(date.group()), text)):
        found = _balanced(_PERCENT.sub(r"(\1 / 100)", match.group().strip()).rstrip(" .+-*/%"))
        sure = _UNMISTAKABLE.search(found) is not None
        if _OPERATION.search(found) and _arithmetic(found) and _wanted(_without(text, match), sure=sure):
            return " ".join(found.split())
    return None


def _without(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()]} {text[match.end() :]}"


def _wanted(rest: str, *, sure: bool) -> bool:
    """Whether somebody wants it computed: the question holds nothing else, or says so (and it cannot be a range)."""
    return (sure and _ORDER.search(rest) is not None) or not _ASKING.sub("", rest)


def _balanced(text: str) -> str:
    """Without the brackets of a sentence around it."""
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip()
    while text.startswith("(") and text.count("(") > text.count(")"):
        text = text[1:].lstrip()
    return text


def _arithmetic(text: str) -> bool:
    if len(text) > MAX_LENGTH:
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return all(isinstance(node, _ALLOWED) for node in ast.walk(tree))
