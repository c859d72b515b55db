"""Merges two answers into one without a model: used when the synthesis failed. Also limits their length."""

from __future__ import annotations

import re

from dtrag.core.text.analysis import normalise, sentences, terms
from dtrag.core.text.token_counts import SYLLABLES_PER_TOKEN, word_tokens

REPEATED = 0.6
"""Share of a sentence's words in an earlier sentence from which on it counts as a repetition: two sentences about the
same fact share more than half of their words."""
MIN_REMAINDER = 0.5
"""A text is cut at the end of a sentence if this leaves at least this share of the allowed length, else at a word."""
_WORD = re.compile(r"\S+")
_LAST = re.compile(r"[.!?。？！](?:\s*\[\d{1,3}\])*(?=\s|$)|\[\d{1,3}\][.。]?(?=\s|$)")
_MARKS = re.compile(r"(?:\s*\[\d{1,3}\])+[.。]?")


def same(first: str, second: str) -> bool:
    """Whether two answers are equal apart from case, width, whitespace and final full stops."""
    return _without_stop(first) == _without_stop(second)


def merged(first: str, second: str, limit: int) -> str:
    """The first answer, then the sentences of the second that cite a passage and are not in it; at most `limit` tokens.

    A sentence without a citation is a remark about the question or the passages, and is left out.
    """
    seen = [set(terms(sentence)) for sentence in statements(first)]
    added: list[str] = []
    for sentence in statements(second):
        words = set(terms(sentence))
        if "[" in sentence and words and not any(len(words & other) >= REPEATED * len(words) for other in seen):
            added.append(sentence)
            seen.append(words)
    return cut("\n".join((first.strip(), *added)), limit)


def _without_stop(text: str) -> str:
    return normalise(text).rstrip(".。")


def cut(text: str, limit: int) -> str:
    """The text, or its beginning of at most `limit` tokens: whole sentences if these are most of it, else words."""
    end, used = 0, 0
    for word in _WORD.finditer(text):
        used += word_tokens(word.group())
        if used > limit:
            return _cut_at_sentence(text, end or word.start() + limit * SYLLABLES_PER_TOKEN)
        end = word.end()
    return text.strip()


def statements(text: str) -> list[str]:
    """The sentences of an answer, each with the citations that follow it: `It is so. [1]` is one."""
    parts: list[str] = []
    for start, end in sentences(text):
        sentence = text[start:end]
        marks = _MARKS.match(sentence)
        if marks and parts:
            parts[-1] += " " + marks.group().strip()
            sentence = sentence[marks.end() :].strip()
        if sentence:
            parts.append(sentence)
    return parts


def _cut_at_sentence(text: str, end: int) -> str:
    beginning = text[:end].strip()
    last = max((match.end() for match in _LAST.finditer(beginning)), default=0)
    return beginning[:last] if last >= MIN_REMAINDER * len(beginning) else beginning + "…"
