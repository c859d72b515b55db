"""Expansion of a question in three stages (SPEC-RAG-SEARCH-001, TAG-002): synonyms, broader topics, procedure words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dtrag.packs.regulation_ko.lexicon import Lexicon, built_in
from dtrag.packs.regulation_ko.question_entities import EntityMatch, EntityType, RegulationEntityRecognizer

MAX_SYNONYMS = 3
MAX_HYPERNYMS = 2
MAX_PROCEDURES = 2
MAX_TERMS = 10
BEST_TERMS = 7
"""Expansions that are used when there are more than `MAX_TERMS` words (D26, D39)."""
MIN_ENTITY_CONFIDENCE = 0.7
MIN_CONFIDENCE = 0.6
EXPANDED_CONFIDENCE = 0.85

_ARTICLE_REFERENCE = re.compile(r"제?\s?\d{1,4}\s?조(?![가-힣]*[차회])|제\s?\d{1,3}\s?[항호]")
_NAME_ENDING = re.compile(
    r"^[가-힣A-Za-z0-9·ㆍ]*[가-힣](?:규정|세칙|지침|내규|요령|준칙|강령)$|^(?:학칙|정관|[가-힣]+학칙|[가-힣]+정관)$"
)
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "장학금": ("장학금 지급", "장학금 지원", "재정 지원"),
    "연구년": ("안식년", "교원연구년"),
    "조교": ("교육조교", "연구조교"),
}
"""Synonyms of the acceptance document; all others come from the lexicon."""


@dataclass(frozen=True, slots=True)
class ExpansionResult:
    """`final_expanded` is the question with its expansions, at most `MAX_TERMS` words unless the question itself has
    more; `confidence` in [0, 1] is 1 for a formal question, which is not changed."""

    original_query: str
    stage1_synonyms: tuple[str, ...]
    stage2_hypernyms: tuple[str, ...]
    stage3_procedures: tuple[str, ...]
    final_expanded: str
    confidence: float
    entities: tuple[EntityMatch, ...] = ()


class MultiStageQueryExpander:
    """Adds the terms that regulations use for the subject of a question; formal questions are not changed.

    `lexicon` is a lexicon, or a function that returns the present one; by default the built-in entries.
    """

    def __init__(
        self,
        entity_recognizer: RegulationEntityRecognizer | None = None,
        *,
        lexicon: Lexicon | Callable[[], Lexicon] | None = None,
        regulation_names: Iterable[str] = (),
    ) -> None:
        self._recognizer = entity_recognizer or RegulationEntityRecognizer()
        self._lexicon = lexicon if lexicon is not None else built_in
        self._names = frozenset("".join(name.split()) for name in regulation_names)

    def expand(self, query: str) -> ExpansionResult:
        """The question and its expansions by stage."""
        if is_formal(query, self._names):
            return ExpansionResult(query, (), (), (), query, 1.0)
        entities = [match for match in self._recognizer.recognize(query) if match.confidence >= MIN_ENTITY_CONFIDENCE]
        synonyms = self._synonyms(query)
        hypernyms = _of_types(entities, {EntityType.HYPERNYM}, MAX_HYPERNYMS, query)
        kinds = {EntityType.PROCEDURE, EntityType.REQUIREMENT, EntityType.BENEFIT, EntityType.DEADLINE}
        procedures = _of_types(entities, kinds, MAX_PROCEDURES, query)
        confidence = EXPANDED_CONFIDENCE if synonyms or hypernyms or procedures else MIN_CONFIDENCE
        expanded = _limited(query, (*synonyms, *procedures, *hypernyms))
        return ExpansionResult(query, synonyms, hypernyms, procedures, expanded, confidence, tuple(entities))

    def _lexicon_in_use(self) -> Lexicon:
        return self._lexicon if isinstance(self._lexicon, Lexicon) else self._lexicon()

    def _synonyms(self, query: str) -> tuple[str, ...]:
        named = [synonym for word, synonyms in _SYNONYMS.items() if word in query for synonym in synonyms]
        official = [word for match in self._lexicon_in_use().matches(query) for word in match.entry.official]
        return _new(query, (*named, *official))[:MAX_SYNONYMS]


def is_formal(query: str, names: Iterable[str] = ()) -> bool:
    """Whether the question uses the language of regulations: it cites 제N조, 제N항 or 제N호, or one word is the name
    of a regulation or ends like one (D25). "조교", "장학금 관련 규정" are everyday words."""
    if _ARTICLE_REFERENCE.search(query):
        return True
    known_names = frozenset(names)
    return any(
        word in known_names or _NAME_ENDING.match(word)
        for word in (raw.strip(".,?!「」『』()\"'") for raw in query.split())
    )


def _of_types(entities: Sequence[EntityMatch], types: set[EntityType], limit: int, query: str) -> tuple[str, ...]:
    """Expansions of the entities in turn: the first of each, then the second of each."""
    lists = [match.expanded_terms[1:] for match in entities if match.entity_type in types]
    turns = [terms[rank] for rank in range(max(map(len, lists), default=0)) for terms in lists if rank < len(terms)]
    return _new(query, turns)[:limit]


def _new(query: str, terms: Iterable[str]) -> tuple[str, ...]:
    """The terms that the question does not contain, each once."""
    present = set(query.split())
    return tuple(dict.fromkeys(term for term in terms if term not in present and term != query))


def _limited(query: str, expansions: Sequence[str]) -> str:
    words = len(query.split())
    total = words + sum(len(expansion.split()) for expansion in expansions)
    chosen = expansions if total <= MAX_TERMS else expansions[:BEST_TERMS]
    parts = [query]
    for expansion in chosen:
        size = len(expansion.split())
        if words + size > MAX_TERMS:
            continue
        parts.append(expansion)
        words += size
    return " ".join(parts)
