"""What stores of classification results and of the review queue must do."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from dtrag.core.access.scope import EVERYTHING, Grant, Scope
from dtrag.core.documents import document_id
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.classification import Classification
from dtrag.core.taxonomy.review import ChosenRow, Decision, Placement, ReviewItem
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.ports import Stores
from tests.builders import (
    BOILER,
    EMBEDDER,
    KETTLE,
    LEAVE,
    MINUTE,
    NOON,
    NOTHING,
    SALARY,
    agent,
    branch_nodes,
    filled,
    indexed_document,
)


def placement(document: uuid.UUID, node_id: int, confidence: float, minutes: int = 0) -> Placement:
    """A result of the classification; accepted from .7."""
    classification = Classification(("AI", "Machines"), node_id, confidence, (Statement("", "Its words."),))
    return Placement(document, classification, NOON + minutes * MINUTE)


def answer(
    grant: Grant | None,
    documents: list[uuid.UUID],
    agent_id: uuid.UUID | None,
    *,
    confidence: float = 0.4,
    question: str = "How?",
) -> ReviewItem:
    """An answer that waits for review."""
    proposal: dict[str, Any] = {
        "question": question,
        "question_hash": question.casefold(),
        "text": "So.",
        "document_ids": [str(key) for key in documents],
        "passages": [f"{key}:0" for key in documents],
        "as_of": "",
        "grant": grant.as_json() if grant is not None else None,
    }
    return ReviewItem(
        item_id=uuid.uuid4(),
        kind="answer",
        node_id=UNCLASSIFIED,
        agent_id=agent_id,
        confidence=confidence,
        proposal=proposal,
        created_at=NOON,
    )


async def waiting(stores: Stores, scope: Scope = EVERYTHING, *grants: Grant) -> list[ReviewItem]:
    """All open items that the caller sees."""
    items, total = await stores.review.waiting(scope, 100, 0, grants)
    assert total == len(items)
    return items


class TestPlacements:
    """Only trusted documents teach, and decisions of reviewers outlive the document."""

    async def test_documents_that_named_their_category_are_samples(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        samples = await stores.placements.samples([node], 10, EMBEDDER.id)
        assert {sample.document_id for sample in samples} == {KETTLE, BOILER}
        assert {sample.node_id for sample in samples} == {node}
        assert not any(sample.decided for sample in samples)
        sample = next(sample for sample in samples if sample.document_id == KETTLE)
        assert list(sample.terms.ids) == sorted(sample.terms.ids)
        assert sample.terms.counts.sum() > 5
        assert sample.vector is not None
        others = await stores.placements.samples([node], 10, "another model")
        assert all(sample.vector is None for sample in others)

    async def test_samples_are_limited_per_node(self, stores: Stores) -> None:
        _, machines, staff = await filled(stores)
        nodes = [*branch_nodes(machines), *branch_nodes(staff)]
        samples = await stores.placements.samples(nodes, 1, EMBEDDER.id)
        assert sorted(sample.node_id for sample in samples) == sorted(nodes)
        assert await stores.placements.samples([], 10, EMBEDDER.id) == []

    async def test_unsure_placements_teach_nothing_until_they_are_decided(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        await stores.placements.record([placement(KETTLE, node, 0.75), placement(BOILER, node, 0.95)], [])
        samples = await stores.placements.samples([node], 10, EMBEDDER.id)
        assert [sample.document_id for sample in samples] == [BOILER]
        await stores.placements.record([], [KETTLE])
        assert len(await stores.placements.samples([node], 10, EMBEDDER.id)) == 2

    async def test_decided_documents_come_first(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        for document in (KETTLE, BOILER):
            await stores.placements.record([placement(document, node, 0.3)], [])
            (item,) = await waiting(stores)
            await stores.review.decide(item, Decision("approved", "kim", NOON, node))
            samples = await stores.placements.samples([node], 1, EMBEDDER.id)
            assert [(sample.decided, sample.weight) for sample in samples] == [(True, 3.0)]
        assert await stores.placements.decided([KETTLE, BOILER, SALARY]) == {KETTLE: node, BOILER: node}

    async def test_accepted_placements_do_not_wait(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        await stores.placements.record([placement(KETTLE, node, 0.8), placement(BOILER, node, 0.4)], [])
        (item,) = await waiting(stores)
        assert (item.kind, item.document_id, item.node_id, item.status) == ("classification", BOILER, node, "waiting")
        assert item.confidence == pytest.approx(0.4)
        assert (item.title, item.proposal["path"]) == ("test:boiler", ["AI", "Machines"])

    async def test_a_new_result_replaces_the_one_that_waits(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        for confidence in (0.3, 0.5):
            await stores.placements.record([placement(KETTLE, node, confidence)], [])
        (item,) = await waiting(stores)
        assert item.confidence == pytest.approx(0.5)
        await stores.placements.record([], [KETTLE])
        assert await waiting(stores) == []

    async def test_a_decision_outlives_its_document(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        await stores.placements.record([placement(KETTLE, node, 0.3)], [])
        (item,) = await waiting(stores)
        await stores.review.decide(item, Decision("approved", "kim", NOON, node))
        await stores.writer.delete(KETTLE, EVERYTHING)
        assert await stores.placements.decided([KETTLE]) == {KETTLE: node}


class TestReview:
    """A caller sees items about documents in its scope only, and an item is decided once."""

    async def test_the_least_sure_item_is_first_for_the_whole_tree(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        rows = [placement(KETTLE, node, 0.5), placement(BOILER, node, 0.2, 1), placement(LEAVE, node, 0.4, 2)]
        await stores.placements.record(rows, [])
        assert [item.document_id for item in await waiting(stores)] == [BOILER, LEAVE, KETTLE]

    async def test_callers_with_a_scope_see_the_oldest_first(self, stores: Stores) -> None:
        _, machines, staff = await filled(stores)
        (node,) = branch_nodes(machines)
        rows = [placement(KETTLE, node, 0.5), placement(BOILER, node, 0.2, 1), placement(SALARY, node, 0.1, 2)]
        await stores.placements.record(rows, [])
        assert [item.document_id for item in await waiting(stores, machines)] == [KETTLE, BOILER]
        assert [item.document_id for item in await waiting(stores, staff)] == [SALARY]
        assert await waiting(stores, NOTHING) == []

    async def test_pages_have_the_total(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        documents = [KETTLE, BOILER, LEAVE]
        rows = [placement(key, node, 0.1 * place) for place, key in enumerate(documents)]
        await stores.placements.record(rows, [])
        pages = [await stores.review.waiting(EVERYTHING, 2, offset) for offset in (0, 2, 4)]
        assert [([item.document_id for item in items], total) for items, total in pages] == [
            ([KETTLE, BOILER], 3),
            ([LEAVE], 3),
            ([], 3),
        ]

    async def test_an_item_is_found_in_scope(self, stores: Stores) -> None:
        _, machines, staff = await filled(stores)
        await stores.placements.record([placement(KETTLE, branch_nodes(machines)[0], 0.3)], [])
        (item,) = await waiting(stores)
        assert await stores.review.get(item.item_id, machines) == item
        assert await stores.review.get(item.item_id, staff) is None
        assert await stores.review.get(uuid.uuid4(), EVERYTHING) is None

    async def test_a_decision_moves_the_document_everywhere(self, stores: Stores) -> None:
        _, machines, staff = await filled(stores)
        (staff_node,) = branch_nodes(staff)
        await stores.placements.record([placement(KETTLE, branch_nodes(machines)[0], 0.3)], [])
        (item,) = await waiting(stores)
        decision = Decision("corrected", "kim", NOON + MINUTE, staff_node, "It is about staff.")
        assert await stores.review.decide(item, decision)
        assert await stores.index.counts(machines) == (1, 1)
        assert await stores.sight.visible([KETTLE], staff) == {KETTLE}
        await stores.index.snapshot()
        assert (await stores.index.statistics([], staff)).chunks == 4
        settled = await stores.review.get(item.item_id, EVERYTHING)
        assert settled is not None
        assert (settled.status, settled.note, settled.decided_by, settled.decided_at) == (
            "corrected",
            "It is about staff.",
            "kim",
            NOON + MINUTE,
        )
        assert await waiting(stores) == []

    async def test_an_item_is_decided_once(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        (node,) = branch_nodes(machines)
        await stores.placements.record([placement(KETTLE, node, 0.3)], [])
        (item,) = await waiting(stores)
        decisions = [stores.review.decide(item, Decision("approved", name, NOON, node)) for name in ("kim", "lee")]
        assert sorted(await asyncio.gather(*decisions)) == [False, True]
        assert not await stores.review.decide(item, Decision("skipped", "kim", NOON))

    async def test_skipping_leaves_the_document_where_it_is(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        await stores.placements.record([placement(KETTLE, branch_nodes(machines)[0], 0.3)], [])
        (item,) = await waiting(stores)
        assert await stores.review.decide(item, Decision("skipped", "kim", NOON))
        assert await stores.placements.decided([KETTLE]) == {}
        assert await stores.index.counts(machines) == (2, 3)

    async def test_an_answer_needs_its_branches_and_all_its_documents(self, stores: Stores) -> None:
        taxonomy, machines, staff = await filled(stores)
        grant = Grant.of([CategoryPath.parse("AI/Machines")], taxonomy)
        other = Grant.of([CategoryPath.parse("HR")], taxonomy)
        owner = agent("Machines", grant=grant)
        await stores.agents.add(owner)
        item = answer(grant, [KETTLE, BOILER], owner.agent_id)
        await stores.review.add(item)
        assert await stores.review.answer_grants() == [grant]
        assert [row.item_id for row in await waiting(stores)] == [item.item_id]
        assert [row.item_id for row in await waiting(stores, machines, grant)] == [item.item_id]
        assert await waiting(stores, machines) == []
        assert await waiting(stores, machines, other) == []
        assert await waiting(stores, staff, grant) == []
        assert await stores.review.get(item.item_id, machines, [grant]) is not None
        assert await stores.review.get(item.item_id, machines, [other]) is None
        await stores.writer.delete(BOILER, EVERYTHING)
        assert await waiting(stores, machines, grant) == []
        assert len(await waiting(stores)) == 1

    async def test_a_question_waits_once_for_the_same_readers(self, stores: Stores) -> None:
        taxonomy, machines, _ = await filled(stores)
        grant = Grant.of([CategoryPath.parse("AI/Machines")], taxonomy)
        owner = agent("Machines", grant=grant)
        await stores.agents.add(owner)
        first = answer(grant, [KETTLE], None)
        assert await stores.review.add(first)
        assert await stores.review.add(answer(grant, [BOILER], None, question="HOW?", confidence=0.1))
        assert [item.item_id for item in await waiting(stores)] == [first.item_id]
        others = [answer(None, [], None), answer(grant, [], owner.agent_id), answer(grant, [], None, question="Why?")]
        assert [await stores.review.add(item) for item in others] == [True, True, True]
        assert len(await waiting(stores)) == 4
        assert len(await waiting(stores, machines, grant)) == 3
        assert await stores.review.decide(first, Decision("skipped", "kim", NOON))
        assert await stores.review.add(answer(grant, [KETTLE], None))
        assert len(await waiting(stores)) == 4

    async def test_simultaneous_offers_of_a_question_wait_once(self, stores: Stores) -> None:
        await filled(stores)
        assert await asyncio.gather(*(stores.review.add(answer(None, [], None)) for _ in range(8))) == [True] * 8
        assert len(await waiting(stores)) == 1

    async def test_a_decision_has_the_chosen_passages(self, stores: Stores) -> None:
        taxonomy, machines, staff = await filled(stores)
        grant = Grant.of([CategoryPath.parse("AI/Machines")], taxonomy)
        items = [answer(grant, [KETTLE], None, question=question) for question in ("A?", "B?", "C?")]
        for item in items:
            await stores.review.add(item)
        assert await stores.review.answered(EVERYTHING, 10) == []
        chosen: list[ChosenRow] = [{"chunk_id": f"{KETTLE}:0", "content_hash": "00"}]
        for minutes, item in enumerate(items[:2]):
            decision = Decision("corrected", "kim", NOON + minutes * MINUTE, chosen=chosen)
            assert await stores.review.decide(item, decision)
        assert await stores.review.decide(items[2], Decision("skipped", "kim", NOON))
        settled = await stores.review.answered(EVERYTHING, 10)
        assert [item.proposal["question"] for item in settled] == ["B?", "A?"]
        assert settled[0].proposal["chosen"] == chosen
        assert await stores.review.answered(machines, 1, [grant]) == settled[:1]
        assert await stores.review.answered(machines, 10) == []
        assert await stores.review.answered(staff, 10, [grant]) == []

    async def test_items_go_with_their_agent(self, stores: Stores) -> None:
        taxonomy, _, _ = await filled(stores)
        owner = agent("Machines", grant=Grant.of([CategoryPath.parse("AI/Machines")], taxonomy))
        await stores.agents.add(owner)
        await stores.review.add(answer(owner.grant, [], owner.agent_id))
        await stores.agents.delete(owner.agent_id)
        assert await waiting(stores) == []
        assert await stores.review.answer_grants() == []

    async def test_the_item_of_a_deleted_document_is_not_shown(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        await stores.placements.record([placement(KETTLE, branch_nodes(machines)[0], 0.3)], [])
        await stores.writer.delete(KETTLE, EVERYTHING)
        assert await waiting(stores) == []

    async def test_a_document_decided_into_a_node_that_left_the_tree_goes_to_no_category(self, stores: Stores) -> None:
        await stores.writer.write([indexed_document("test:loose", ["A text."])])
        loose = document_id("test:loose")
        await stores.placements.record([placement(loose, 77, 0.3)], [])
        (item,) = await waiting(stores)
        assert await stores.review.decide(item, Decision("approved", "kim", NOON, 77))
        assert await stores.index.counts(Scope(frozenset({UNCLASSIFIED}))) == (1, 1)
