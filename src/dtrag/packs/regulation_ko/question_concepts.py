"""A question as concepts: each of its words in its own form and in the official terms of regulations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dtrag.core.query_expansion import ExpansionTerm, QueryExpansion
from dtrag.core.text.analysis import Analyzer, term_id, terms
from dtrag.core.text.questions import content, weighted_terms, without_particle
from dtrag.packs.regulation_ko.lexicon import OWN_FIELD, Lexicon, Match, words_of
from dtrag.packs.regulation_ko.question_parts import parts_of

EXPANSION_WEIGHT = 0.8
"""Weight of the official words of one entry, divided by the square root of their number; values around it give the same
results."""
WITHIN_LONGER = 0.5
"""Factor for an entry of one word when an entry of several words explains the same word."""
RIVALS = 0.5
"""Exponent of the number of entries that explain the same words: each counts less, like the words of one entry."""
INEXACT = 0.7
"""Factor for an entry that matches only by a synonym or after a letter was corrected; .5 to 1 give the same results."""
SUGGESTION_WEIGHT = 0.3
"""Weight of a suggested word: right ones gain .03 Recall@10, wrong ones cost up to .007 nDCG@10 (bench/README.md)."""
LATER = 0.8
"""Factor of each further official word: the first one is the most common."""


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to say a concept: its terms (of the index), its text and a weight in (0, 1]; `own` is the user's."""

    text: str
    terms: frozenset[int]
    weight: float
    own: bool


@dataclass(frozen=True, slots=True)
class Concept:
    """The meaning of one or more words of the question: a passage with one of the wordings covers it."""

    wordings: tuple[Wording, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A question with its concepts and the official terms that are added to it."""

    question: str
    concepts: tuple[Concept, ...]
    matches: tuple[Match, ...]
    own: tuple[tuple[int, float], ...]
    """Term ids with weights of the question's own words."""
    lexicon_terms: tuple[tuple[int, float], ...]
    """Term ids with weights of the official words, beyond the question's own terms."""
    suggested: tuple[tuple[int, float], ...] = ()
    """Term ids with weights of suggested words, beyond all of these."""
    parts: tuple[Reading, ...] = ()
    """The parts of a question that asks several things."""
    note: str = ""
    """What the caller should know about the interpretation, as a sentence."""

    @property
    def added(self) -> tuple[tuple[int, float], ...]:
        """Term ids with weights that are searched for besides the question's own terms."""
        return (*self.lexicon_terms, *self.suggested)

    @property
    def official(self) -> tuple[str, ...]:
        """The official words that were added, best first."""
        return tuple(
            dict.fromkeys(
                wording.text
                for concept in self.concepts
                for wording in sorted(concept.wordings, key=lambda wording: -wording.weight)
                if not wording.own
            )
        )

    def expansions(self) -> tuple[QueryExpansion, ...]:
        """The entries of the lexicon that match the question, with those official words that were added to it."""
        words, added = words_of(self.question), {term for term, _ in self.lexicon_terms}
        expansions = []
        for number, official in sorted(_official_weights(self.matches).items()):
            match = self.matches[number]
            new = [(text, weight) for text, weight in official if not added.isdisjoint(map(term_id, terms(text)))]
            if new:
                added_terms = tuple(ExpansionTerm(text, weight) for text, weight in new)
                explained = tuple(words[position] for position in match.words)
                expansions.append(QueryExpansion(explained, match.form, match.entry.field, match.by, added_terms))
        return tuple(expansions)

    def term_ids(self) -> list[int]:
        """Every term that a statistic is needed of."""
        ids = {term for term, _ in (*self.own, *self.added)}
        ids |= {term for concept in self.concepts for wording in concept.wordings for term in wording.terms}
        ids |= {term for part in self.parts for term in part.term_ids()}
        return sorted(ids)


def read(question: str, lexicon: Lexicon, analyzer: Analyzer = Analyzer()) -> Reading:
    """The question's concepts, the weighted terms to search for, and the same of its parts."""
    parts = tuple(_read(part, lexicon, analyzer) for part in parts_of(question))
    return replace(_read(question, lexicon, analyzer), parts=parts)


def _read(question: str, lexicon: Lexicon, analyzer: Analyzer) -> Reading:
    words = words_of(question)
    matches = lexicon.matches(question)
    weights = _official_weights(matches)
    own = tuple(weighted_terms(question, analyzer))
    return Reading(
        question,
        _concepts(words, matches, weights, question),
        tuple(matches),
        own,
        _added(own, weights),
    )


def _official_weights(matches: Sequence[Match]) -> dict[int, list[tuple[str, float]]]:
    """Position of a match -> its official words with their weights.

    Where an own and a built-in entry have the same form, the built-in words weigh less than the own ones.
    """
    longer = {position for match in matches if match.size > 1 for position in match.words}
    weighed: dict[int, list[tuple[str, float]]] = {}
    below_own: dict[str, float] = {}
    own_first = sorted(enumerate(matches), key=lambda numbered: numbered[1].entry.field != OWN_FIELD)
    for number, match in own_first:
        official = match.entry.official
        rivals = sum(other.words == match.words for other in matches)
        weight = EXPANSION_WEIGHT / math.sqrt(len(official) * rivals**RIVALS)
        if match.size == 1 and longer & set(match.words):
            weight *= WITHIN_LONGER
        if match.by != "words":
            weight *= INEXACT
        if match.entry.field == OWN_FIELD:
            below_own[match.form] = weight * LATER ** len(official)
        elif match.form in below_own:
            weight = min(weight, below_own[match.form])
        weighed[number] = [(word, weight * LATER**rank) for rank, word in enumerate(official)]
    return weighed


def _added(
    own: Sequence[tuple[int, float]], weights: Mapping[int, list[tuple[str, float]]]
) -> tuple[tuple[int, float], ...]:
    added: dict[int, float] = {}
    for words in weights.values():
        for word, weight in words:
            ids = [term_id(term) for term in terms(word)]
            for term in ids:
                added[term] = max(added.get(term, 0.0), weight * len(ids) ** -0.2)
    present: dict[int, float] = {}
    for term, weight in own:
        present[term] = max(present.get(term, 0.0), weight)
    heavier = [(term, weight) for term, weight in added.items() if weight > present.get(term, 0.0)]
    # A term that the question contains already is raised to the weight of the official word, not counted twice.
    return tuple((term, weight - present.get(term, 0.0)) for term, weight in heavier)


def _concepts(
    words: Sequence[str], matches: Sequence[Match], weights: Mapping[int, list[tuple[str, float]]], question: str
) -> tuple[Concept, ...]:
    about = set(words_of(content(question)))
    groups = _groups(len(words), matches)
    concepts = []
    for positions in groups:
        wordings: dict[str, Wording] = {}
        for position in sorted(positions):
            word = without_particle(words[position])
            if word in about or words[position] in about:
                _add(wordings, word, 1.0, own=True)
        for number, match in enumerate(matches):
            if positions & set(match.words):
                for word, weight in weights[number]:
                    _add(wordings, word, weight, own=False)
        if wordings:
            concepts.append(Concept(tuple(wordings.values())))
    return tuple(concepts)


def _add(wordings: dict[str, Wording], word: str, weight: float, *, own: bool) -> None:
    ids = frozenset(map(term_id, terms(word)))
    if not ids:
        return
    present = wordings.get(word)
    if present is None or weight > present.weight:
        wordings[word] = Wording(word, ids, weight, own)


def _groups(count: int, matches: Sequence[Match]) -> list[set[int]]:
    """Positions of words that form one concept, because one entry of several words explains them together."""
    groups: list[set[int]] = []
    taken: set[int] = set()
    for match in matches:
        positions = set(match.words)
        if len(positions) > 1 and not positions & taken:
            groups.append(positions)
            taken |= positions
    groups += [{position} for position in range(count) if position not in taken]
    return sorted(groups, key=min)


def with_suggestions(reading: Reading, words: Sequence[str]) -> Reading:
    """The reading with suggested official words that may be wrong, such as those of a language model.

    They only add candidates and a little to their first scores: no concept has them, so that an article without them
    covers as much of the question as before.
    """
    present = {term for term, _ in (*reading.own, *reading.lexicon_terms)}
    suggested: dict[int, float] = {}
    for word in words:
        ids = [term_id(term) for term in terms(word)]
        for term in ids:
            if term not in present:
                suggested[term] = max(suggested.get(term, 0.0), SUGGESTION_WEIGHT * len(ids) ** -0.2)
    return replace(reading, suggested=tuple(suggested.items()))
