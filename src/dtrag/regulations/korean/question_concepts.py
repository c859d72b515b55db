"""A question as concepts: each of its words in its own form and in the official terms of regulations.

Also the parts of a question that asks several things, and how many passages it needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dtrag.core.query_expansion import ExpansionTerm, QueryEntity, QueryExpansion, QueryFacts, TopKChoice
from dtrag.core.statements import Statement
from dtrag.core.text.analysis import Analyzer, term_id, terms
from dtrag.core.text.patterns import explained
from dtrag.core.text.question_words import asks
from dtrag.core.text.questions import content, weighted_terms, without_particle
from dtrag.regulations.korean.expansion import MultiStageQueryExpander, is_formal, official_weights
from dtrag.regulations.korean.lexicon import Lexicon, Match, words_of
from dtrag.regulations.korean.question_entities import EntityMatch, RegulationEntityRecognizer

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


MAX_PARTS = 3
MIN_CONTENT_WORDS = 2
"""Content words of a part. With fewer ("기간은 얼마나 돼?") it has its subject from the other part."""
_EMBEDDED = r"[는은인한던을할될갈쓸낼된온난]지"
"""The ending of an embedded question (나오는지)."""
_ENGLISH_ASKING = "(?:how|what|when|where|who|which|can|do|does|is|are|may|must)"
_NO_PERSON = "".join(rf"(?<!{end})" for end in ("자", "들", "친구", "선배", "트", "님", "가족", "사람"))
_BOUNDARY = explained(
    rf"(?P<nouns>(?<=[가-힣]{{2}}){_NO_PERSON}(?:이랑|(?<!이)랑|와|(?<!학)(?<![교결효성통초경전공의외내치부])과|(?<=[휴복입편장]학)과)"
    r"\s+(?!함께|같[은이]|다[른르]|달리|관련|비교|동일|무관|상관|별도|차이|맞)(?!.*(?:달라|다르|다른가|똑같|겹[치쳐])))"
    rf"|(?P<joint>[.,]?\s+(?:그리고|그러면|그럼|또한?|및|and(?=\s+{_ENGLISH_ASKING}\b))\s+)"
    r"|(?<=[?？])\s*(?=\S)"
    rf"|(?<={_EMBEDDED})(?:,\s*|(?:랑|와|도)\s+|\s+(?=.*{_EMBEDDED}(?:\s|를|$)))"
    r"|(?<=[요까죠지니야해어]),\s+"
    r"|(?<=[가-힣][고며]),?\s+(?!싶|있|나서|나면|다니|가는|오는|가서|와서|말)",
    flags=re.IGNORECASE,
    finds="휴학과 복학",
    refuses="휴학과 함께",
)
"""Where a part may end: a particle between nouns that are no persons, a word such as 그리고, a question mark, a verb
with -는지, -고 or -며 that no auxiliary follows."""
_NOT_A_VERB = re.compile(
    r"[라다냐자]고$|(?:^|\s)(?:말고|창고|보고|공고|광고|신고|권고|경고|해고|최고|사고|참고|재고|금고)$"
)
"""Words in 고 that end no part: nouns and quotations."""
_ASKS = re.compile(rf"까지|[?？]|{_EMBEDDED}(?:\s|$)|야\s?(?:하|되)[고며]$")
"""What asks beside the words of questions."""
_HAS_SUBJECT = re.compile(r"\S+[은는이가도](?:\s|[?？]|$)")


def parts_of(question: str) -> tuple[str, ...]:
    """The parts of a question that asks two or three things, each with a subject; () for all other questions."""
    parts = _divided(question.strip(), MAX_PARTS)
    return tuple(parts) if len(parts) > 1 else ()


def _divided(question: str, most: int) -> list[str]:
    for boundary in _BOUNDARY.finditer(question) if most > 1 else ():
        first, second = question[: boundary.start()].strip(" ,."), question[boundary.end() :].strip()
        before, after = _content_words(first), _content_words(second)
        if not before or not after or not _asks_both(boundary, first, second):
            continue
        are_nouns = bool(boundary["nouns"] or boundary["joint"])
        if len(after) < MIN_CONTENT_WORDS:
            if not are_nouns and not _HAS_SUBJECT.match(second):
                continue
            second = f"{before[0]} {second}" if len(before) > 1 else second
        if are_nouns and len(before) < MIN_CONTENT_WORDS and len(after) > 1:
            first = " ".join((first, *second.split()[1:]))
        return [first, *_divided(second, most - 1)]
    return [question]


def _asks_both(boundary: re.Match[str], first: str, second: str) -> bool:
    """Whether both sides of a boundary ask something, or are nouns that the rest of the question is about."""
    if boundary["nouns"]:
        return True
    if _asks(first):
        return _asks(second) and not _NOT_A_VERB.search(first)
    return bool(boundary["joint"]) and not first.endswith(("다", "요", "죠"))


def _asks(part: str) -> bool:
    return _ASKS.search(part) is not None or asks(part, "interrogative", "relative", "auxiliary", "asking_ending")


def _content_words(part: str) -> list[str]:
    return [word for word in content(part).split() if any(map(str.isalnum, word))]


def with_best_of_parts(
    order: Sequence[tuple[str, float]], parts: Sequence[Sequence[tuple[str, float]]]
) -> list[tuple[str, float]]:
    """The articles of `order`, with the best one of each part directly after the first."""
    return raised(order, [order[0][0], *(part[0][0] for part in parts if part)])


def raised(order: Sequence[tuple[str, float]], keys: Sequence[str]) -> list[tuple[str, float]]:
    """The articles of `order`, those with these keys first.

    Scores never increase along the list: an article that moves up gets at least the score of the one that it replaces.
    """
    scores = dict(order)
    moved = [key for key in dict.fromkeys(keys) if key in scores]
    first = [(key, max(scores[key], order[at][1])) for at, key in enumerate(moved)]
    return first + [(key, score) for key, score in order if key not in moved]


SLOW_SECONDS = 0.5
"""Search time from which on fewer passages are used."""


class QueryComplexity(StrEnum):
    """Classes of questions; see `TOP_K`."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"
    MULTI_PART = "multi_part"


TOP_K = {
    QueryComplexity.SIMPLE: 5,
    QueryComplexity.MEDIUM: 10,
    QueryComplexity.COMPLEX: 15,
    QueryComplexity.MULTI_PART: 20,
}
_PARTS = re.compile(r"(?:^|\s)(?:그리고|또는|및|혹은|아니면)(?:\s|$)|[;；]|(?<=[^\d\s])\s?[,，]\s?(?=\S+\s)")
_CONDITIONS = frozenset(
    "신청 신청서 방법 절차 자격 요건 조건 기준 제한 혜택 지급 지원 지원금 서류 구비서류 기한".split()
)
MIN_CONDITIONS = 2
"""Condition words that make a question complex (D27)."""
SIMPLE_WORDS = 2


class AdaptiveTopKSelector:
    """Chooses how many passages are used."""

    def __init__(self, entity_recognizer: RegulationEntityRecognizer | None = None) -> None:
        self._recognizer = entity_recognizer or RegulationEntityRecognizer()

    def classify(self, query: str) -> QueryComplexity:
        """The class of the question."""
        if _PARTS.search(query) or parts_of(query):
            return QueryComplexity.MULTI_PART
        conditions = {match.text for match in self._recognizer.recognize(query)} & _CONDITIONS
        if len(conditions) >= MIN_CONDITIONS:
            return QueryComplexity.COMPLEX
        if len(query.split()) <= SIMPLE_WORDS and not asks(query, "procedure"):
            return QueryComplexity.SIMPLE
        if is_formal(query) and not asks(query, "procedure") and len(query.split()) <= SIMPLE_WORDS + 1:
            return QueryComplexity.SIMPLE
        return QueryComplexity.MEDIUM

    def select(self, query: str, *, elapsed: float = 0.0) -> TopKChoice:
        """5, 10, 15 or 20 passages; half of that when the search has already taken more than `SLOW_SECONDS`."""
        complexity = self.classify(query)
        is_slow = elapsed > SLOW_SECONDS
        return TopKChoice(TOP_K[complexity] // (2 if is_slow else 1), complexity.value, is_slow)

    def select_top_k(self, query: str, *, elapsed: float = 0.0) -> int:
        """The number that `select` chooses."""
        return self.select(query, elapsed=elapsed).top_k
