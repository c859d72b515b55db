"""The intent of a query, by rules in the order of the acceptance text, in English and Korean."""

from __future__ import annotations

import re
from typing import Literal

from dtrag.core.text.analysis import normalise
from dtrag.core.text.patterns import explained

Intent = Literal["question", "explanation", "search", "general"]

_RULES: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        "question",
        explained(
            r"\?|\b(?:what|how|why|when|where|who)\b"
            r"|무엇|무슨|어떻게|어떤|왜|언제|어디|누가|누구|얼마|며칠|몇\s|(?:나요|까요|는가|은가|인가|인가요|는지요|습니까)\s*$",
            finds=("how", "신청하나요"),
            refuses=("somehow", "몇몇이"),
        ),
    ),
    ("explanation", re.compile(r"\b(?:explain|describe|tell me)\b|설명|알려|가르쳐")),
    ("search", re.compile(r"\b(?:find|search|look for)\b|찾아|검색|보여")),
)

_GREETING = explained(
    r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks|thank you)(?: (?:there|all|dtrag))?"
    r"|안녕(?:하세요|하십니까)?|반갑습니다|반가워요?|고마워요?|고맙습니다|감사합니다)[\s!.,~?]*",
    finds=("hello there!", "안녕하세요"),
    refuses=("good day", "반가운"),
)


def is_greeting(query: str) -> bool:
    """Whether the query is a greeting or thanks and nothing else."""
    return _GREETING.fullmatch(normalise(query)) is not None


def intent_of(query: str) -> Intent:
    """The intent of the first rule that matches, else `general`."""
    text = normalise(query)
    return next((intent for intent, rule in _RULES if rule.search(text)), "general")
