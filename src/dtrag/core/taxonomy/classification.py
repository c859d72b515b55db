"""Classification of documents by the names of categories and by their documents, with a confidence.

The constants were chosen on newsgroups20-dev; the figures in their docstrings are of that set. bench/classify.py
measures them together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrag.core.documents import Vector
from dtrag.core.statements import Statement, Statements, stated
from dtrag.core.taxonomy.centroids import Centroids, Floats, TermCounts
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.errors import InvalidInput

REVIEW_BELOW = 0.70
"""Results with a lower confidence go to the review queue. Of the accepted ones .91 (with vectors .92) are right; they
are .55 (.58) of all."""
TRUSTED = 0.90
"""Minimum confidence of an unreviewed document to be training data: of those .94 to .96 are right."""
DISAGREEING = 0.65
"""Highest confidence of a result that the names contradict: of those .60 are right, of the sure ones .77."""
NAMED, HINTED = 0.60, 0.40
"""Confidence by names alone: .60 are right where a name is in the title or occurs twice, .42 where it occurs once."""
UNCHECKED = 0.69
"""Highest confidence by a language model alone (its own confidence is not calibrated), and by a similarity in fewer
than LEAST_SHARED words."""
LEAST_SHARED = 5

SILENT = 0.25
"""With a lower confidence by documents, a strong name is proposed instead."""
STRONG = 1.0
"""Strength from which a name can contradict the documents: ln(1 + 1.7), that is in the title or twice."""
ABOVE = 0.5
"""Weight of a name further up the path."""

STEEPNESS, HALF_STEEP = 80.0, 3.0
"""Factor of a cosine of words in the exponent, 80 n / (n + 3) for a category with n documents: alone it was fitted at
18, 27, 34, 45, 54, 68 and 69 for n of 1, 2, 3, 5, 10, 20 and 40, and a tenth more with UNSEEN_WORDS."""
BESIDE_STEEPNESS, BESIDE_HALF_STEEP, MEANING_STEEPNESS = 46.0, 7.0, 13.0
"""With a cosine of meanings beside it: 46 n / (n + 7) (fitted: 5, 9, 12, 17, 23, 32, 36, and a tenth more) and 13 (11
to 15)."""
FOREIGN_WORDS, FOREIGN_MEANING = 0.08, 0.30
"""Cosines of a document of no category: they are one more category in the sum, so that a single category does not get
everything. Costs .02 of what is accepted."""
MOST_ALTERNATIVES = 5
LEAST_ALTERNATIVE = 0.01


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another category with its confidence in [0, 1]."""

    node_id: int
    path: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Classification:
    """A classification. Without evidence for any category `node_id` is UNCLASSIFIED and `path` is ().

    `confidence` in [0, 1]; `reasons` are sentences for users; `alternatives` are ordered by confidence.
    """

    path: tuple[str, ...]
    node_id: int
    confidence: float
    reasons: Statements
    alternatives: tuple[Alternative, ...] = ()
    disagreeing: bool = False

    @property
    def accepted(self) -> bool:
        """Whether it is used without a review."""
        return self.node_id != UNCLASSIFIED and self.confidence >= REVIEW_BELOW and not self.disagreeing


NOTHING_FITS = stated("category_none_fits", "Neither the names of the categories nor their documents fit.")
NOTHING = Classification((), UNCLASSIFIED, 0.0, (NOTHING_FITS,))


@dataclass(frozen=True, slots=True)
class Named:
    """A category whose name occurs in the document; `strength` > 0 grows with frequency and names of ancestors."""

    node_id: int
    strength: float


class Names:
    """The names of a tree's categories as terms, prepared once for many documents.

    With `nodes` only these categories are considered, with the names of their ancestors.
    """

    def __init__(
        self, taxonomy: Taxonomy, analyzer: Analyzer = Analyzer(), nodes: Collection[int] | None = None
    ) -> None:
        self._taxonomy = taxonomy
        self._nodes = taxonomy.nodes.keys() if nodes is None else frozenset(nodes)
        named = {above for node_id in self._nodes for above in (node_id, *self._ancestors(node_id))}
        self._terms = {
            node_id: tuple(dict.fromkeys(map(term_id, analyzer.terms(taxonomy.nodes[node_id].name))))
            for node_id in named
        }

    def named(self, document: TermCounts) -> Named | None:
        """The category whose name and path match the document best; descendants win over ancestors."""
        if not len(document.ids):
            return None
        strengths = {
            node_id: math.log1p(min(document.count(term) for term in terms)) if terms else 0.0
            for node_id, terms in self._terms.items()
        }
        matches = {
            node_id: own + ABOVE * self._above(node_id, strengths)
            for node_id, own in strengths.items()
            if own > 0.0 and node_id in self._nodes
        }
        covering = {above for node_id in matches for above in self._ancestors(node_id)}
        deepest = [(strength, -node_id) for node_id, strength in matches.items() if node_id not in covering]
        if not deepest:
            return None
        strength, node_id = max(deepest)
        return Named(-node_id, strength)

    def _above(self, node_id: int, strengths: dict[int, float]) -> float:
        return sum(strengths[above] for above in self._ancestors(node_id))

    def _ancestors(self, node_id: int) -> Iterable[int]:
        nodes = self._taxonomy.nodes
        seen = {node_id}
        current = nodes[node_id].parent_id
        while current in nodes and current not in seen:
            seen.add(current)
            yield current
            current = nodes[current].parent_id


def shares(centroids: Centroids, document: TermCounts, vector: Vector | None = None) -> Floats:
    """Probability of each of the centroids' nodes; the rest to 1 is the probability of none of them."""
    if not len(centroids):
        return np.empty(0)
    words, meaning = centroids.by_words(document), centroids.by_meaning(vector)
    size = float(np.median(centroids.sizes))
    if meaning is None:
        steepness = STEEPNESS * size / (size + HALF_STEEP)
        exponents = steepness * np.append(words, FOREIGN_WORDS)
    else:
        steepness = BESIDE_STEEPNESS * size / (size + BESIDE_HALF_STEEP)
        exponents = steepness * np.append(words, FOREIGN_WORDS)
        exponents += MEANING_STEEPNESS * np.append(meaning, FOREIGN_MEANING)
    powers = np.exp(exponents - exponents.max())
    probable: Floats = (powers / powers.sum())[:-1]
    return probable


def place(
    taxonomy: Taxonomy, names: Names, centroids: Centroids, document: TermCounts, vector: Vector | None = None
) -> Classification:
    """Classification by names and documents together."""
    named = _by_name(taxonomy, names.named(document))
    learned = _by_documents(taxonomy, centroids, document, vector)
    if NOTHING in {named, learned}:
        return named if learned == NOTHING else learned
    if not drifts(named.path, learned.path):
        return replace(learned, reasons=(*learned.reasons, *named.reasons))
    if named.confidence == NAMED and learned.confidence < SILENT:
        return replace(named, alternatives=_beside(named, [_alternative(learned), *learned.alternatives]))
    if named.confidence < NAMED:
        return replace(learned, alternatives=_beside(learned, [_alternative(named), *learned.alternatives]))
    return replace(
        learned,
        confidence=min(learned.confidence, DISAGREEING),
        reasons=(*learned.reasons, _but(named.reasons[0])),
        alternatives=_beside(learned, [_alternative(named), *learned.alternatives]),
        disagreeing=True,
    )


def _by_documents(
    taxonomy: Taxonomy, centroids: Centroids, document: TermCounts, vector: Vector | None
) -> Classification:
    meaning = centroids.by_meaning(vector) is not None
    if not len(centroids) or not (meaning or centroids.by_words(document).any()):
        return NOTHING
    probable = shares(centroids, document, vector)
    ranked = np.lexsort((centroids.nodes, -probable))[: MOST_ALTERNATIVES + 1]
    best_nodes = [
        Alternative(int(centroids.nodes[row]), taxonomy.path(int(centroids.nodes[row])), float(probable[row]))
        for row in ranked
    ]
    best = best_nodes[0]
    confidence = best.confidence if centroids.shared(document) >= LEAST_SHARED else min(best.confidence, UNCHECKED)
    where = "/".join(best.path)
    reason = (
        stated(
            "category_meaning", "Its words and meaning are like those of the documents in {category}.", category=where
        )
        if meaning
        else stated("category_words", "Its words are like those of the documents in {category}.", category=where)
    )
    others = tuple(other for other in best_nodes[1:] if other.confidence >= LEAST_ALTERNATIVE)
    return Classification(best.path, best.node_id, confidence, (reason,), others)


def with_model(
    taxonomy: Taxonomy,
    classification: Classification,
    answer: Sequence[str] | str,
    confidence: float,
    nodes: Collection[int] | None = None,
) -> Classification:
    """Combine with the `answer` of a language model: agreement raises the confidence, disagreement needs a review.

    With `nodes` its answer must be one of these categories.
    """
    try:
        node_id = taxonomy.find(CategoryPath.parse(answer))
    except InvalidInput:
        node_id = None
    unknown = node_id is None or (nodes is not None and node_id not in nodes)
    if node_id is None or unknown or not math.isfinite(confidence):
        unnamed = stated("category_model_none", "The language model named no category of the tree.")
        return replace(classification, reasons=(*classification.reasons, unnamed))
    confidence = min(1.0, max(0.0, confidence))
    path = taxonomy.path(node_id)
    where = "/".join(path)
    if classification.node_id == UNCLASSIFIED:
        reason = stated("category_model", "The language model says {category}.", category=where)
        return Classification(path, node_id, min(confidence, UNCHECKED), (reason,))
    if node_id == classification.node_id:
        surer = 1.0 - (1.0 - classification.confidence) * (1.0 - min(confidence, UNCHECKED))
        reasons = (*classification.reasons, stated("category_model_same", "The language model says the same."))
        return replace(classification, confidence=surer, reasons=reasons, disagreeing=False)
    other = Alternative(node_id, path, min(confidence, 1.0 - DISAGREEING))
    return replace(
        classification,
        confidence=min(classification.confidence, DISAGREEING),
        reasons=(
            *classification.reasons,
            stated("category_model_other", "But the language model says {category}.", category=where),
        ),
        alternatives=_beside(classification, [other, *classification.alternatives]),
        disagreeing=classification.disagreeing or drifts(classification.path, path),
    )


def drifts(rule: Sequence[str], learned: Sequence[str]) -> bool:
    """Whether two paths disagree: their common prefix is shorter than half of the first."""
    common = 0
    for rule_name, learned_name in zip(rule, learned, strict=False):
        if rule_name != learned_name:
            break
        common += 1
    return 2 * common < len(rule)


def _by_name(taxonomy: Taxonomy, named: Named | None) -> Classification:
    if named is None:
        return NOTHING
    path = taxonomy.path(named.node_id)
    strong = named.strength >= STRONG
    where = "/".join(path)
    reason = (
        stated("category_named", "It names the category {category}.", category=where)
        if strong
        else stated("category_named_once", "It names the category {category} once.", category=where)
    )
    return Classification(path, named.node_id, NAMED if strong else HINTED, (reason,))


def _but(reason: Statement) -> Statement:
    """The reason for another category, beside those for the chosen one."""
    return replace(reason, shown=f"But {reason}")


def _alternative(classification: Classification) -> Alternative:
    return Alternative(classification.node_id, classification.path, classification.confidence)


def _beside(classification: Classification, others: Iterable[Alternative]) -> tuple[Alternative, ...]:
    """The distinct others, ordered by confidence."""
    distinct: dict[int, Alternative] = {}
    for other in others:
        distinct.setdefault(other.node_id, other)
    distinct.pop(classification.node_id, None)
    return tuple(sorted(distinct.values(), key=lambda other: (-other.confidence, other.node_id))[:MOST_ALTERNATIVES])
