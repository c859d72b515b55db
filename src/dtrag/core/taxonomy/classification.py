"""Where a document belongs: what the names of the categories say, what their documents say, and how sure that is.

The constants were chosen on newsgroups20-dev, the figures beside them are of that set; bench/classify.py prints what
they are worth together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrag.core.documents import Vector
from dtrag.core.taxonomy.centroids import Centroids, Floats, TermCounts
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.errors import InvalidInput

REVIEW_BELOW = 0.70
"""What is less sure waits for a person. Of what is accepted .91 (with vectors .92) is right, and that is .55 (.58) of
all."""
TRUSTED = 0.90
"""A document that no person has placed teaches others from here up: of those .94 to .96 are right."""
DISAGREEING = 0.65
"""The most that a place may claim which the names speak against: of those .60 are right, of the sure ones .77."""
NAMED, HINTED = 0.60, 0.40
"""Where only names speak: .60 of the documents belong there where a name is in the title or twice, .42 where once."""
UNCHECKED = 0.69
"""The most that a language model's word alone may claim (its own confidence has not been measured), and a
likeness in fewer than LEAST_SHARED words."""
LEAST_SHARED = 5

SILENT = 0.25
"""Below this the documents say so little that a strong name is proposed instead."""
STRONG = 1.0
"""Strength from which a name counts against what the documents say: ln(1 + 1.7), so in the title or twice."""
ABOVE = 0.5
"""A name further up the path says half as much."""

STEEPNESS, HALF_STEEP = 80.0, 3.0
"""A cosine of words is worth 80 n / (n + 3) in the exponent where a category has n documents: alone it was fitted at
18, 27, 34, 45, 54, 68 and 69 for n of 1, 2, 3, 5, 10, 20 and 40, and a tenth more with UNSEEN_WORDS."""
BESIDE_STEEPNESS, BESIDE_HALF_STEEP, MEANING_STEEPNESS = 46.0, 7.0, 13.0
"""With a cosine of meanings beside it: 46 n / (n + 7) (fitted: 5, 9, 12, 17, 23, 32, 36, and a tenth more) and 13 (11
to 15)."""
FOREIGN_WORDS, FOREIGN_MEANING = 0.08, 0.30
"""Cosines that a document of none of the categories has: they stand in the sum as one more category, so that one
category alone does not take everything. Costs .02 of what is accepted."""
MOST_ALTERNATIVES = 5
LEAST_ALTERNATIVE = 0.01


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another category, and how sure that one would be, in [0, 1]."""

    node_id: int
    path: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Classification:
    """Where a document belongs. `node_id` is UNCLASSIFIED and `path` () where nothing speaks for any category.

    `confidence` in [0, 1]; `reasons` are sentences for people; `alternatives` the next best, the surest first.
    """

    path: tuple[str, ...]
    node_id: int
    confidence: float
    reasons: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    disagreeing: bool = False

    @property
    def accepted(self) -> bool:
        """Whether it holds without a person having looked."""
        return self.node_id != UNCLASSIFIED and self.confidence >= REVIEW_BELOW and not self.disagreeing


NOTHING = Classification((), UNCLASSIFIED, 0.0, ("Neither the names of the categories nor their documents fit.",))


@dataclass(frozen=True, slots=True)
class Named:
    """A category whose name the document holds; `strength` > 0 grows with how often, and with the names above it."""

    node_id: int
    strength: float


class Names:
    """The names of a tree's categories as terms, made once for many documents.

    With `nodes` only these categories are found; the names above them count for them, and no others.
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
        """The category whose name and path the document holds best; what lies deeper beats what lies above it."""
        if not len(document.ids):
            return None
        held = {
            node_id: math.log1p(min(document.count(term) for term in terms)) if terms else 0.0
            for node_id, terms in self._terms.items()
        }
        found = {
            node_id: own + ABOVE * self._above(node_id, held)
            for node_id, own in held.items()
            if own > 0.0 and node_id in self._nodes
        }
        covering = {above for node_id in found for above in self._ancestors(node_id)}
        deepest = [(strength, -node_id) for node_id, strength in found.items() if node_id not in covering]
        if not deepest:
            return None
        strength, node_id = max(deepest)
        return Named(-node_id, strength)

    def _above(self, node_id: int, held: dict[int, float]) -> float:
        return sum(held[above] for above in self._ancestors(node_id))

    def _ancestors(self, node_id: int) -> Iterable[int]:
        nodes = self._taxonomy.nodes
        seen = {node_id}
        current = nodes[node_id].parent_id
        while current in nodes and current not in seen:
            seen.add(current)
            yield current
            current = nodes[current].parent_id


def shares(centroids: Centroids, document: TermCounts, vector: Vector | None = None) -> Floats:
    """How probable each of the centroids' nodes is, in [0, 1]; what is left of 1 belongs to none of them."""
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
    """What names and documents say together."""
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
        reasons=(*learned.reasons, f"But {named.reasons[0]}"),
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
    found = [
        Alternative(int(centroids.nodes[row]), taxonomy.path(int(centroids.nodes[row])), float(probable[row]))
        for row in ranked
    ]
    best = found[0]
    confidence = best.confidence if centroids.shared(document) >= LEAST_SHARED else min(best.confidence, UNCHECKED)
    reason = f"Its words{' and meaning' if meaning else ''} are like those of the documents in {'/'.join(best.path)}."
    others = tuple(other for other in found[1:] if other.confidence >= LEAST_ALTERNATIVE)
    return Classification(best.path, best.node_id, confidence, (reason,), others)


def with_model(
    taxonomy: Taxonomy,
    found: Classification,
    said: Sequence[str] | str,
    confidence: float,
    nodes: Collection[int] | None = None,
) -> Classification:
    """What a language model says, taken in: agreement makes surer, disagreement is for a person to settle.

    With `nodes` it may name one of these categories and no others.
    """
    try:
        node_id = taxonomy.find(CategoryPath.parse(said))
    except InvalidInput:
        node_id = None
    unknown = node_id is None or (nodes is not None and node_id not in nodes)
    if node_id is None or unknown or not math.isfinite(confidence):
        return replace(found, reasons=(*found.reasons, "The language model named no category of the tree."))
    confidence = min(1.0, max(0.0, confidence))
    path = taxonomy.path(node_id)
    where = "/".join(path)
    if found.node_id == UNCLASSIFIED:
        reason = f"The language model says {where}."
        return Classification(path, node_id, min(confidence, UNCHECKED), (reason,))
    if node_id == found.node_id:
        surer = 1.0 - (1.0 - found.confidence) * (1.0 - min(confidence, UNCHECKED))
        reasons = (*found.reasons, "The language model says the same.")
        return replace(found, confidence=surer, reasons=reasons, disagreeing=False)
    said_other = Alternative(node_id, path, min(confidence, 1.0 - DISAGREEING))
    return replace(
        found,
        confidence=min(found.confidence, DISAGREEING),
        reasons=(*found.reasons, f"But the language model says {where}."),
        alternatives=_beside(found, [said_other, *found.alternatives]),
        disagreeing=found.disagreeing or drifts(found.path, path),
    )


def drifts(rule: Sequence[str], learned: Sequence[str]) -> bool:
    """Whether two routes disagree: the paths share less than half of the first, from the root."""
    common = 0
    for one, other in zip(rule, learned, strict=False):
        if one != other:
            break
        common += 1
    return 2 * common < len(rule)


def _by_name(taxonomy: Taxonomy, named: Named | None) -> Classification:
    if named is None:
        return NOTHING
    path = taxonomy.path(named.node_id)
    strong = named.strength >= STRONG
    reason = f"It names the category {'/'.join(path)}{'' if strong else ' once'}."
    return Classification(path, named.node_id, NAMED if strong else HINTED, (reason,))


def _alternative(found: Classification) -> Alternative:
    return Alternative(found.node_id, found.path, found.confidence)


def _beside(found: Classification, others: Iterable[Alternative]) -> tuple[Alternative, ...]:
    """The others, each once, the surest first."""
    distinct: dict[int, Alternative] = {}
    for other in others:
        distinct.setdefault(other.node_id, other)
    distinct.pop(found.node_id, None)
    return tuple(sorted(distinct.values(), key=lambda other: (-other.confidence, other.node_id))[:MOST_ALTERNATIVES])
