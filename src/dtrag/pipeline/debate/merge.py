"""One answer of two without asking a model: for a debate of one round, and where the synthesis failed."""

from __future__ import annotations

from dtrag.core.text.analysis import normalise, terms
from dtrag.debate.length import cut, statements

REPEATED = 0.6
"""A sentence whose words are found to this share in one that is there already is taken for the same thing said again:
of two sentences about one fact more than half of the words are those of the fact."""


def same(first: str, second: str) -> bool:
    """Whether two answers say the same to the letter, but for case, width, blanks and full stops."""
    return _bare(first) == _bare(second)


def merged(first: str, second: str, limit: int) -> str:
    """The first answer, then the sentences of the second that cite a passage and are not in it; at most `limit` tokens.

    A sentence without a number is a remark about the question or the passages, and two agents remark on much.
    """
    kept = statements(first)
    said = [set(terms(sentence)) for sentence in kept]
    for sentence in statements(second):
        words = set(terms(sentence))
        if "[" in sentence and words and not any(len(words & other) >= REPEATED * len(words) for other in said):
            kept.append(sentence)
            said.append(words)
    return cut("\n".join((first.strip(), *kept[len(statements(first)) :])), limit)


def _bare(text: str) -> str:
    return normalise(text).rstrip(".。")
