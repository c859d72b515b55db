"""Whether two questions ask the same, so that an earlier answer may be shown again.

Precision comes first: two questions are the same only when their normal forms are, up to blanks and one typing error.
What is refused can still be offered as a similar question. Embeddings cannot decide this: a question and its reversal
are closer to each other than two wordings of one question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dtrag.core.cases.normal_form import compact, is_korean, normal_form

LONGEST = 600
"""Characters of a question that are interpreted; a longer one is only ever the same as itself."""
_DOUBLED = re.compile(r"(.)\1")
_INFLECTED = ("ing", "ings", "ed", "eds", "er", "ers")


@dataclass(frozen=True, slots=True)
class SameQuestion:
    """Whether two questions ask the same; `reason` is a short phrase that says why or why not."""

    same: bool
    reason: str


def same_question(base: str, other: str) -> SameQuestion:
    """Whether the two questions ask the same; symmetric in `base` and `other`."""
    if base.split() == other.split():
        return SameQuestion(True, "the same text")
    if max(len(base), len(other)) > LONGEST:
        return SameQuestion(False, f"longer than {LONGEST} characters")
    left, right = normal_form(base), normal_form(other)
    if not left or not right:
        return SameQuestion(False, "no content word")
    if compact(left) == compact(right):
        return SameQuestion(True, "the same words")
    differing = [(here, there) for here, there in zip(left, right, strict=False) if here != there]
    if len(left) == len(right) and len(differing) == 1 and _is_mistyped(*differing[0], base + other):
        return SameQuestion(True, f"the same words, one mistyped: {differing[0][1]}")
    return SameQuestion(False, _difference(left, right))


def _is_mistyped(left: str, right: str, written: str) -> bool:
    """Whether two long English words differ by a double letter that is written once, or by two exchanged neighbours.

    Other errors of one letter are also the difference of two words: contract and contact, training and trailing; and
    in a word with a capital any letter may be that of another name.
    """
    shorter, longer = sorted((left, right), key=len)
    is_name = left.capitalize() in written or right.capitalize() in written
    if is_name or not (left + right).isascii() or not (left + right).isalpha():
        return False
    if len(shorter) < len(longer):
        is_doubled = len(shorter) >= 7 and _DOUBLED.sub(r"\1", left) == _DOUBLED.sub(r"\1", right)
        return len(longer) == len(shorter) + 1 and is_doubled and not shorter.endswith(_INFLECTED)  # filing and filling
    at = next(place for place, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1])
    exchanged = left[:at] + left[at : at + 2][::-1] + left[at + 2 :]
    return len(left) >= 8 and exchanged == right and 1 <= at < len(left) - 4  # complaint and compliant


def _difference(left: Sequence[str], right: Sequence[str]) -> str:
    if is_korean("".join(left)) != is_korean("".join(right)):
        return "another language"
    numbers = [[word for word in words if word[0].isdigit()] for words in (left, right)]
    if numbers[0] != numbers[1]:
        return f"number differs: {', '.join(numbers[0]) or 'none'} / {', '.join(numbers[1]) or 'none'}"
    only = [[word for word in here if word not in there] for here, there in ((left, right), (right, left))]
    if any(only):
        return f"only in one: {(only[0] or only[1])[0]}"
    return "order differs"
