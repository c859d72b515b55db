"""What was changed in a sentence that is otherwise copied: a number, a name, a noun or a negation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from dtrag.core.answers.grounding import denied
from dtrag.core.text.analysis import STOP_WORDS, normalise, sentences
from dtrag.core.text.numbers import numbers_in
from dtrag.core.text.patterns import DIGITS, HANGUL
from dtrag.core.text.questions import without_particle

COPIED = 0.7
"""Share of a claim's written words that stand in one sentence in the same order, from which on it is a copy of it."""
NEARLY = 0.8
"""The same from which on a Korean noun in place of another one is a change rather than a synonym."""
BEFORE = 5
"""Words before a word among which a negation of it stands."""
MOST_WORDS = 200
"""Written words of a sentence that are compared: longer ones are tables or lists."""
_EDGES = ".,;:!?\"'“”‘’「」『』()[]{}<>·"
_MARKER = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•·])\s+(?=\S)")
_NEGATIONS = frozenset({"not", "no", "never", "without", "cannot"})


def without_marker(claim: str) -> str:
    """The claim without the number or bullet of a list."""
    return _MARKER.sub("", claim)


def alteration(claim: str, source: str) -> str:
    """What the claim changes in the sentence of the source that it copies; "" when nothing, or when it copies none."""
    words = _words(claim)
    best, copied = max(
        ((sentence, _copied(words, sentence)) for sentence in _sentences(source)),
        key=lambda pair: pair[1],
        default=([], 0.0),
    )
    if len(words) < 4 or copied < COPIED:
        return ""
    known = {_bare(word) for word in best} | numbers_in(" ".join(best))
    nearly = copied >= NEARLY
    for kind, start, end, there, until in SequenceMatcher(None, words, best, autojunk=False).get_opcodes():
        if kind in {"equal", "insert"}:
            continue
        mine, theirs = words[start:end], best[there:until]
        changed = _value(mine[start == 0 :], theirs, known, nouns=nearly and end < len(words))
        if reason := _negation(mine, theirs) or changed:
            return reason
    return ""


def _negation(mine: Sequence[str], theirs: Sequence[str]) -> str:
    """The negation that a claim adds or leaves out, with the words `mine` where the source has `theirs`."""
    if _denies(mine) and not _denies(theirs):
        return f"it adds “{' '.join(mine)}” to a sentence of the passage"
    if mine and _denies(theirs) and not _denies(mine):
        return f"it has “{' '.join(mine)}” where the passage has “{' '.join(theirs)}”"
    return ""


def _value(mine: Sequence[str], theirs: Sequence[str], known: set[str], *, nouns: bool) -> str:
    """The number, name or (with `nouns`) Korean noun that a claim has in place of the source's words `theirs`."""
    if all(_bare(word) in STOP_WORDS for word in theirs):
        return ""
    for word in mine:
        bare = _bare(word)
        number = numbers_in(word) if DIGITS.search(bare) else frozenset[str]()
        changed = number and number.isdisjoint(numbers_in(" ".join(theirs))) and DIGITS.search(" ".join(theirs))
        name = word[:1].isupper() and bare not in STOP_WORDS
        hangul = HANGUL.match(bare)
        noun = nouns and hangul is not None and len(hangul[0]) > 1 and without_particle(word) != word
        if changed or (bare not in known and (name or noun or (number and number.isdisjoint(known)))):
            return f"it has “{word}” where the passage has “{' '.join(theirs)[:60]}”"
    return ""


def _denies(words: Sequence[str]) -> bool:
    text = " ".join(words)
    return bool(_NEGATIONS & {word.casefold() for word in words}) or denied(text)


def _words(text: str) -> list[str]:
    return [stripped for word in text.split() if (stripped := word.strip(_EDGES))][:MOST_WORDS]


@lru_cache(maxsize=256)
def _sentences(source: str) -> list[list[str]]:
    """The distinct sentences of a source, as words."""
    return [_words(sentence) for sentence in dict.fromkeys(source[start:end] for start, end in sentences(source))]


def _bare(word: str) -> str:
    return without_particle(normalise(word)).removesuffix("'s").removesuffix("’s")


def _copied(words: Sequence[str], sentence: Sequence[str]) -> float:
    if not words or sum(word in sentence for word in words) < COPIED * len(words):
        return 0.0
    blocks = SequenceMatcher(None, words, sentence, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(words)


def misplaced_negation(claim: str, sentence: str) -> str:
    """The word that an English claim negates and the sentence has without a negation before it; "" for none."""
    stated, known = _tokens(claim), _tokens(sentence)
    for place, word in enumerate(stated):
        if word not in _NEGATIONS:
            continue
        following = next((later for later in stated[place + 1 : place + 4] if later not in STOP_WORDS), "")
        places = [at for at, other in enumerate(known) if following and other[:5] == following[:5]]
        if places and not any(_NEGATIONS & set(known[max(0, at - BEFORE) : at]) for at in places):
            return following
    return ""


def _tokens(text: str) -> list[str]:
    return re.findall(
        r"[a-z]+", normalise(text).replace("n't", " not").replace("n’t", " not").replace("cannot", "can not")
    )
