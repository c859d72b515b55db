"""The chain of routes, without a database: what is asked of the store and of the language model, and how often."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from dtrag.core.documents import IndexedDocument
from dtrag.core.editions import Edition
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.taxonomy.centroids import Sample
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.review import Placement
from dtrag.core.taxonomy.tree import ROOT, UNCLASSIFIED, Node, Taxonomy
from dtrag.errors import InvalidInput
from dtrag.ingestion.classify import Classifier, classify_enabled, content
from dtrag.ports import Index, IndexSnapshot
from tests.builders import indexed_document

TREE = Taxonomy.of("1.0.0", [Node(2, ROOT, "Kitchen", "kitchen"), Node(3, ROOT, "Garden", "garden")])
SOUP, HEDGE = "simmer onions butter whisk soup thyme", "prune roses compost spade hedge frost"


@dataclass
class Memory:
    """A store in memory, and an index that is all generation."""

    known: list[Sample] = field(default_factory=list)
    people: dict[uuid.UUID, int] = field(default_factory=dict)
    recorded: list[tuple[list[Placement], list[uuid.UUID]]] = field(default_factory=list)
    tree: Taxonomy = TREE
    generation: int = 1
    chunks: int = 20
    read: int = 0

    async def samples(self, nodes: Sequence[int], per_node: int, space: str) -> list[Sample]:
        self.read += 1
        return self.known

    async def decided(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
        return {key: node for key, node in self.people.items() if key in document_ids}

    async def record(self, placements: Sequence[Placement], settled: Sequence[uuid.UUID]) -> None:
        self.recorded.append((list(placements), list(settled)))

    async def snapshot(self) -> IndexSnapshot:
        return IndexSnapshot({"generation": self.generation}, LexicalStatistics(chunks=self.chunks), self.tree)


@dataclass
class Oracle:
    """A model that always says the same, and remembers what it was asked."""

    path: str
    confidence: float
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    def classify(self, text: str, paths: Sequence[str]) -> tuple[str, float]:
        self.asked.append((text, list(paths)))
        return self.path, self.confidence


def memory() -> Memory:
    rows = [(n, 2 if n % 2 else 3, SOUP if n % 2 else HEDGE) for n in range(20)]
    documents = [(node, indexed_document(f"{n}", [f"{text} {n}"])) for n, node, text in rows]
    return Memory([Sample(document.document_id, node, content(document)) for node, document in documents])


def classifier(store: Memory, model: Oracle | None = None) -> Classifier:
    return Classifier(store, cast("Index", store), model=model)


def categorised(document: IndexedDocument, **changes: Any) -> IndexedDocument:
    named = replace(document.document, category_path=("Garden",))
    return replace(document, document=named, node_id=3, **changes)


async def test_documents_with_a_category_are_passed_through_and_nothing_is_read() -> None:
    store = memory()
    documents = [categorised(indexed_document("a", [SOUP]))]
    placed, placements = await classifier(store).prepare(documents)
    assert (placed, [(p.path, p.node_id, p.accepted) for p in placements.values()]) == (
        documents,
        [(("Garden",), 3, True)],
    )
    assert (store.read, store.recorded) == (0, [])


async def test_a_batch_is_one_reading_and_one_record() -> None:
    store = memory()
    made = classifier(store)
    first = [
        indexed_document("a", [SOUP]),
        indexed_document("b", ["a ledger of debits"]),
        categorised(indexed_document("c", [SOUP], replaces=True)),
    ]
    placed, placements = await made.prepare(first)
    assert [placements[document.document_id].accepted for document in first] == [True, False, True]
    assert [document.node_id for document in placed] == [2, UNCLASSIFIED, 3]
    [(recorded, settled)] = store.recorded
    assert [placement.classification.accepted for placement in recorded] == [True, False]
    assert settled == [first[2].document_id]
    await made.prepare([indexed_document("d", [HEDGE])])
    assert store.read == 1


async def test_the_editions_of_a_work_get_one_category() -> None:
    work, made = uuid.uuid4(), classifier(memory())
    works: dict[uuid.UUID, Classification] = {}
    editions = [
        replace(indexed_document(name, [text]), edition=Edition("Rules", work_id=work))
        for name, text in (("a", SOUP), ("b", HEDGE), ("c", HEDGE))
    ]
    for batch, expected in ((editions[:2], [2, 2]), (editions[2:], [2]), ([indexed_document("d", [HEDGE])], [3])):
        placed, _ = await made.prepare(batch, works)
        assert [document.node_id for document in placed] == expected
    assert works.keys() == {work}


async def test_during_an_ingest_it_learns_again_when_the_index_has_grown() -> None:
    store = memory()
    made = classifier(store)
    await made.prepare([indexed_document("a", [SOUP])])
    store.generation, store.chunks = 2, 22
    await made.prepare([indexed_document("b", [SOUP])])
    assert store.read == 1
    store.generation, store.chunks = 3, 40
    await made.prepare([indexed_document("c", [SOUP])])
    assert store.read == 2
    store.generation, store.tree = 4, Taxonomy.of("1.1.0", TREE.nodes.values())
    await made.prepare([indexed_document("d", [SOUP])])
    assert store.read == 3
    store.generation = 5
    await made.classify(SOUP)
    assert store.read == 4


async def test_a_decision_of_a_reviewer_stays_unless_its_category_is_deleted() -> None:
    store = memory()
    document = indexed_document("a", [SOUP])
    store.people = {document.document_id: 3}
    [placed], _ = await classifier(store).prepare([document])
    assert placed.node_id == 3
    assert store.recorded == [([], [document.document_id])]
    store.people = {document.document_id: 99}
    [placed], _ = await classifier(store).prepare([document])
    assert placed.node_id == 2


async def test_without_a_tree_nothing_is_recorded() -> None:
    store = Memory(tree=Taxonomy.of("1.0.0", []))
    [placed], _ = await classifier(store).prepare([indexed_document("a", [SOUP])])
    assert placed.node_id == UNCLASSIFIED
    assert store.recorded == []


async def test_a_model_is_called_only_for_unplaced_documents() -> None:
    store, model = memory(), Oracle("Garden", 0.9)
    made = classifier(store, model)
    assert (await made.classify(SOUP)).path == ("Kitchen",)
    assert model.asked == []
    found = await made.classify("a ledger of debits", "Ledger")
    assert (found.path, found.accepted) == (("Garden",), False)
    assert model.asked == [("Ledger\n\na ledger of debits", ["Kitchen", "Garden"])]


async def test_a_model_that_agrees_places_the_document() -> None:
    store = Memory()
    doubtful = "kitchen kitchen"
    assert not (await classifier(store).classify(doubtful)).accepted
    assert (await classifier(store, Oracle("Kitchen", 0.9)).classify(doubtful)).accepted
    assert not (await classifier(store, Oracle("Garden", 1.0)).classify(doubtful)).accepted


@pytest.mark.parametrize("text", ["", " ", "\u202e\ufeff", "' or 1=1 --", "x" * 10_000, "가" * 5_000])
async def test_unusual_texts_are_classified_without_errors(text: str) -> None:
    found = await classifier(memory()).classify(text)
    assert not found.accepted


def test_the_setting() -> None:
    assert (classify_enabled("auto"), classify_enabled("off")) == (True, False)
    with pytest.raises(InvalidInput, match="auto or off"):
        classify_enabled("on")
