"""A question as concepts: each of its words in its own form and in the official terms of regulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dtrag.core.query_expansion import ExpansionTerm, QueryEntity, QueryExpansion, QueryFacts, TopKChoice
from dtrag.core.statements import Statement
from dtrag.core.text.analysis import Analyzer, term_id, terms
from dtrag.core.text.questions import content, weighted_terms, without_particle
from dtrag.regulations.korean.expansion import MultiStageQueryExpander, official_weights
from dtrag.regulations.korean.lexicon import Lexicon, Match, words_of
from dtrag.regulations.korean.question_entities import EntityMatch
from dtrag.regulations.korean.question_parts import parts_of
from dtrag.regulations.korean.top_k import AdaptiveTopKSelector

SUGGESTION_WEIGHT = 0.3
"""Weight of a suggested word: right ones gain .03 Recall@10, wrong ones cost up to .007 nDCG@10 (bench/README.md)."""


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
class QuestionReading:
    """A question with its concepts and the official terms that are added to it."""

    question: str
    concepts: tuple[Concept, ...]
    matches: tuple[Match, ...]
    own: tuple[tuple[int, float], ...]
    """Term ids with weights of the question's own words."""
    lexicon_terms: tuple[tuple[int, float], ...]
    """Term ids with weights of the official words, beyond the question's own terms."""
    entities: tuple[EntityMatch, ...] = ()
    related: tuple[QueryExpansion, ...] = ()
    """Words that belong to keywords of the question."""
    related_terms: tuple[tuple[int, float], ...] = ()
    """Their term ids with weights, beyond the question's own and the official terms. As with suggested words, no
    concept has them."""
    suggested: tuple[tuple[int, float], ...] = ()
    """Term ids with weights of suggested words, beyond the question's own and the official terms."""
    parts: tuple[QuestionReading, ...] = ()
    """The parts of a question that asks several things."""
    note: Statement | None = None
    """What the caller should know about the interpretation, as a sentence."""

    @property
    def added(self) -> tuple[tuple[int, float], ...]:
        """Term ids with weights that are searched for besides the question's own terms."""
        return (*self.lexicon_terms, *self.related_terms, *self.suggested)

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

    def facts(self) -> QueryFacts:
        """The entities, and the entries of the lexicon that match the question with those words that were added."""
        words, added = words_of(self.question), {term for term, _ in self.lexicon_terms}
        expansions = []
        for number, official in sorted(official_weights(self.matches).items()):
            match = self.matches[number]
            new = [(text, weight) for text, weight in official if not added.isdisjoint(map(term_id, terms(text)))]
            if new:
                added_terms = tuple(ExpansionTerm(text, weight) for text, weight in new)
                explained = tuple(words[position] for position in match.words)
                expansions.append(QueryExpansion(explained, match.form, match.entry.field, match.by, added_terms))
        entities = tuple(QueryEntity(match.entity_type.value, match.text) for match in self.entities)
        return QueryFacts(entities, (*expansions, *self.related))

    def top_k(self, elapsed: float) -> TopKChoice:
        """How many passages the question needs, when its search has taken `elapsed` seconds."""
        return AdaptiveTopKSelector().select(self.question, elapsed=elapsed)

    def term_ids(self) -> list[int]:
        """Every term that a statistic is needed of."""
        ids = {term for term, _ in (*self.own, *self.added)}
        ids |= {term for concept in self.concepts for wording in concept.wordings for term in wording.terms}
        ids |= {term for part in self.parts for term in part.term_ids()}
        return sorted(ids)


def read(question: str, lexicon: Lexicon, analyzer: Analyzer = Analyzer()) -> QuestionReading:
    """The question's concepts, the weighted terms to search for, and the same of its parts."""
    parts = tuple(_read(part, lexicon, analyzer) for part in parts_of(question))
    return replace(_read(question, lexicon, analyzer), parts=parts)


def _read(question: str, lexicon: Lexicon, analyzer: Analyzer) -> QuestionReading:
    expanded = MultiStageQueryExpander(lexicon=lexicon).expand(question)
    own = tuple(weighted_terms(question, analyzer))
    lexicon_terms = _added(own, expanded.official)
    present = {term for term, _ in (*own, *lexicon_terms)}
    related = {
        term: weight
        for expansion in expanded.related
        for word in expansion.official
        for term, weight in _shared(word.text, word.weight)
        if term not in present
    }
    return QuestionReading(
        question,
        _concepts(words_of(question), expanded.matches, expanded.official, question),
        expanded.matches,
        own,
        lexicon_terms,
        expanded.entities,
        expanded.related,
        tuple(related.items()),
    )


def _shared(word: str, weight: float) -> list[tuple[int, float]]:
    """The term ids of a word, which share its weight."""
    ids = [term_id(term) for term in terms(word)]
    return [(term, weight * len(ids) ** -0.2) for term in ids]


def _added(
    own: Sequence[tuple[int, float]], weights: Mapping[int, Sequence[tuple[str, float]]]
) -> tuple[tuple[int, float], ...]:
    added: dict[int, float] = {}
    for words in weights.values():
        for word, weight in words:
            for term, share in _shared(word, weight):
                added[term] = max(added.get(term, 0.0), share)
    present: dict[int, float] = {}
    for term, weight in own:
        present[term] = max(present.get(term, 0.0), weight)
    heavier = [(term, weight) for term, weight in added.items() if weight > present.get(term, 0.0)]
    # A term that the question contains already is raised to the weight of the official word, not counted twice.
    return tuple((term, weight - present.get(term, 0.0)) for term, weight in heavier)


def _concepts(
    words: Sequence[str], matches: Sequence[Match], weights: Mapping[int, Sequence[tuple[str, float]]], question: str
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


def with_suggestions(reading: QuestionReading, words: Sequence[str]) -> QuestionReading:
    """The reading with suggested official words that may be wrong, such as those of a language model.

    They only add candidates and a little to their first scores: no concept has them, so that an article without them
    covers as much of the question as before.
    """
    present = {term for term, _ in (*reading.own, *reading.lexicon_terms)}
    suggested: dict[int, float] = {}
    for word in words:
        for term, weight in _shared(word, SUGGESTION_WEIGHT):
            if term not in present:
                suggested[term] = max(suggested.get(term, 0.0), weight)
    related = tuple((term, weight) for term, weight in reading.related_terms if term not in suggested)
    return replace(reading, related_terms=related, suggested=tuple(suggested.items()))
