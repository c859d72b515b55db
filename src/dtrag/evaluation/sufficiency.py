"""Whether an answer, as shown, says what the asker has to be told: the groups of words `must` of a judged question."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dtrag.core.documents import Answer
from dtrag.core.text.analysis import normalise

Groups = tuple[tuple[str, ...], ...]
"""Of each group at least one string has to be shown."""
_REFERENCE = re.compile(r"\s?\[(?:\d+|\?)\]")
_MARK = re.compile(r"<[^<>]*>")


def shown_parts(answer: Answer) -> list[str]:
    """What the reader sees: the text without the numbers of its sources, and each quotation after its context."""
    quoted = (text for each in answer.citations for text in (*(part.text for part in each.context), each.quote))
    return list(dict.fromkeys((_REFERENCE.sub("", answer.text), *quoted)))


def missing_groups(parts: Iterable[str], must: Groups) -> list[str]:
    """The groups of which no part has a string, each as one text."""
    folded = "\n".join(map(letters_and_digits, parts))
    return [" | ".join(group) for group in must if not any(letters_and_digits(each) in folded for each in group)]


def letters_and_digits(text: str) -> str:
    """The folded text without marks such as `<개정 2024. 3. 1.>`, white space and punctuation."""
    return "".join(filter(str.isalnum, _MARK.sub("", normalise(text))))
