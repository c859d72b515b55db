"""One answer of two without asking a model: for a debate of one round, and where the synthesis failed."""

from __future__ import annotations

import re

from dtrag.core.text.analysis import normalise, sentences, terms
from dtrag.core.text.token_counts import SYLLABLES_PER_TOKEN, word_tokens

REPEATED = 0.6
"""A sentence whose words are found to this share in one that is there already is taken for the same thing said again:
of two sentences about one fact more than half of the words are those of the fact."""
WORTH_KEEPING = 0.5
"""A text is cut at the end of a sentence if at least this share of what may stay is kept so; else at a word."""
_WORD = re.compile(r"\S+")
_LAST = re.compile(r"[.!?。？！](?:\s*\[\d{1,3}\])*(?=\s|$)|\[\d{1,3}\][.。]?(?=\s|$)")
_MARKS = re.compile(r"(?:\s*\[\d{1,3}\])+[.。]?")


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


def cut(text: str, limit: int) -> str:
    """The text, or its beginning of at most `limit` tokens: whole sentences where they are most of it, else words."""
    end, used = 0, 0
    for word in _WORD.finditer(text):
        used += word_tokens(word.group())
        if used > limit:
            return _ended(text, end or word.start() + limit * SYLLABLES_PER_TOKEN)
        end = word.end()
    return text.strip()


def statements(text: str) -> list[str]:
    """The sentences of an answer, each with the numbers of passages that follow it: `It is so. [1]` is one."""
    found: list[str] = []
    for start, end in sentences(text):
        sentence = text[start:end]
        marks = _MARKS.match(sentence)
        if marks and found:
            found[-1] += " " + marks.group().strip()
            sentence = sentence[marks.end() :].strip()
        if sentence:
            found.append(sentence)
    return found


def _ended(text: str, end: int) -> str:
    kept = text[:end].strip()
    last = max((match.end() for match in _LAST.finditer(kept)), default=0)
    return kept[:last] if last >= WORTH_KEEPING * len(kept) else kept + "…"
