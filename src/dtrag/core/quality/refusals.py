"""Whether an answer declines to answer."""

from __future__ import annotations

import re

from dtrag.core.text.analysis import normalise, sentences

_REFUSAL = re.compile(
    r"\b(?:do(?:es)?|did|could|can|was|were) ?(?:not|n['’]t)"
    r" (?:\w+ ){0,3}(?:contain|answer|find|found|know|mention|provide|include|specif|state|say|determine|able to)"
    r"|\bcannot (?:be )?(?:answer|find|found|determine|say|tell)|\bunable to (?:answer|find|determine)"
    r"|\bi have no (?:information|answer)"
    r"|\bno (?:information|mention|answer|document|passage)\w* .{0,40}(?:available|found|about|on|in the|answer)"
    r"|\bnot (?:enough|sufficient) (?:information|context)|\binsufficient (?:information|context)"
    r"|(?:찾을|찾지|알|답할|답변할|대답할|확인할|판단할)\s?(?:수\s?)?(?:없|못)"
    r"|(?:정보|내용|규정|근거|언급|답|문서|기재|명시|나와|나타나|포함되어|정해져)\S{0,6}\s?"
    r"(?:없|있지\s?않|되지\s?않|되어\s?있지\s?않)"
    r"|모르겠|모릅니다"
)
LEADING = 2
"""Sentences of an answer that are looked at: what follows a refusal explains it."""


def is_refusal(answer: str) -> bool:
    """Whether the answer is empty or one of its first sentences says that there is no answer.

    A long answer that begins with facts is none, even if it says later what the documents leave open.
    """
    spans = list(sentences(answer))[:LEADING]
    if not spans:
        return True
    first = answer[spans[0][0] : spans[0][1]]
    return _REFUSAL.search(normalise(first)) is not None
