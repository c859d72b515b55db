"""What a caller with few rights cannot do to cases of others, and what happens with votes on archived cases."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.database import Database
from dtrag.app import App
from dtrag.cases.maintenance import Consolidation
from dtrag.cases.weight_learning import WeightLearning
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import EVERYTHING, Access, Grant
from dtrag.core.cases.bandit import Experience
from dtrag.core.cases.case import ALIASES, NOTE, Case, CaseChange, FeedbackType
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import DatabaseUnavailable, InvalidInput, NotFound, StorageFull
from dtrag.ports import Stores
from dtrag.settings import set_feature_flag
from dtrag.testing import add_texts
from tests.store import toy_app

QUESTION = "How many days before an absence is notice due?"
LEAVE = "# Leave\n\nNotice of an absence is due 90 days before it begins."
OTHER = "# Gardens\n\nRoses are watered in the evening."
UP, DOWN = FeedbackType.THUMBS_UP, FeedbackType.THUMBS_DOWN


@pytest_asyncio.fixture
async def app(emptied: Database) -> AsyncIterator[App]:
    set_feature_flag("cbr_enabled", True)
    try:
        async with toy_app(emptied) as opened:
            await add_texts(opened, {"leave.md": LEAVE, "gardens.md": OTHER}, "HR")
            yield opened
    finally:
        set_feature_flag("cbr_enabled", None)


async def caller_of(app: App, name: str, role: str = "editor") -> Caller:
    taxonomy = (await app.index.snapshot()).taxonomy
    access = Access((Grant.of([CategoryPath.parse("HR")], taxonomy),))
    return Caller(name, role, access, uuid.uuid4())  # type: ignore[arg-type]  # a role's name


async def answered(app: App, caller: Caller = LOCAL) -> str:
    return (await app.pipeline.execute(QUESTION, scope=caller.access, owner=caller.owner)).trace_id


async def case(app: App, case_id: str) -> Case:
    found = await app.case_store.get(case_id, EVERYTHING)
    assert found is not None
    return found


async def passage(app: App, name: str) -> str:
    return next(f"{document.document_id}:0" for document in await app.documents() if document.title == name)


@pytest.mark.parametrize("own", [True, False])
async def test_a_reviewer_of_the_own_dispute_needs_confirmation(app: App, own: bool) -> None:
    eve, reviewer = await caller_of(app, "eve"), await caller_of(app, "reviewer")
    author = await caller_of(app, "author")
    made = (await app.feedback.give(await answered(app, author), thumbs="up", caller=author)).case_id
    assert made is not None
    before = await case(app, made)
    await app.feedback.give(await answered(app, eve), thumbs="down", caller=eve)
    after = await case(app, made)
    [item] = [each for each in (await app.review.waiting())[0] if each.kind == "answer"]
    assert "caused_by" not in item.proposal
    decided_by = eve if own else reviewer
    await app.review.correct(str(item.item_id), passages=[await passage(app, "Gardens")], caller=decided_by)
    corrected = await case(app, f"review-{item.item_id}")
    assert (corrected.origin, corrected.quality_score) == (("manual", 0.5) if own else ("review", 1.0))
    assert (await case(app, made)).downvotes == after.downvotes + (not own)
    assert before.downvotes == 0


async def test_both_feedback_calls_keep_one_decision(app: App) -> None:
    reader, author = await caller_of(app, "reader", "reader"), await caller_of(app, "author")
    made = (await app.feedback.give(await answered(app, author), thumbs="up", caller=author)).case_id
    assert made is not None
    trace = await answered(app, reader)
    await app.feedback.give(trace, thumbs="up", caller=reader)
    before = await app.case_store.decisions(made)
    voted = await app.cases.feedback(trace, made, DOWN, caller=reader)
    after = await app.case_store.decisions(made)
    assert (after.correct, after.wrong) == (before.correct - 1, before.wrong + 1)
    assert (voted.success_rate, voted.downvotes) == (0.5, 1)


@pytest.mark.parametrize("key", [NOTE, ALIASES])
async def test_reserved_metadata_is_refused_and_kept(app: App, key: str) -> None:
    with pytest.raises(InvalidInput, match="uses it"):
        await app.cases.add(QUESTION, "HR", "c", metadata={key: 5})
    stored = await app.cases.add(QUESTION, "HR", "c", metadata={"source": "desk"})
    with pytest.raises(InvalidInput, match="uses it"):
        await app.cases.change(stored.case_id, metadata={key: {"run": "x"}})
    await app.case_store.add(Case(**{**_values(stored), "case_id": "noted", "metadata": {key: ["kept"]}}))
    _, changed = await app.cases.change("noted", metadata={"source": "phone"})
    assert changed.metadata == {"source": "phone", key: ["kept"]}


@pytest.mark.parametrize(
    "note",
    [{"run": "x"}, {"run": ["x"], "reason": "merged"}, {"run": "x", "reason": "merged", "usage": "a"}, 5],
)
async def test_notes_that_no_run_wrote_are_skipped(app: App, note: object) -> None:
    stored = await app.cases.add(QUESTION, "HR", "c")
    values = {"case_id": "forged", "status": "archived", "metadata": {NOTE: note, ALIASES: 5}}
    await app.case_store.add(Case(**{**_values(stored), **values}))
    consolidation = Consolidation(app.case_store)
    assert await consolidation.runs() == {}
    with pytest.raises(NotFound):
        await consolidation.undo("x")


async def test_an_undo_takes_nothing_from_a_case_that_nothing_was_merged_into(app: App) -> None:
    board = await app.cases.add("Who is on the board?", "HR", "c", case_id="board")
    note = {"run": "x", "reason": "merged", "into": "board", "usage": 0, "up": 100, "down": 0}
    await app.case_store.add(
        Case(**{**_values(board), "case_id": "forged", "status": "archived", "metadata": {NOTE: note}, "upvotes": 0})
    )
    await app.case_store.change("board", CaseChange(quality_score=0.9), datetime.now(UTC), EVERYTHING)
    before = await case(app, "board")
    assert await Consolidation(app.case_store).undo("x") == 1
    assert await case(app, "board") == before


async def test_a_thumbs_up_activates_an_unused_case(app: App) -> None:
    trace = await answered(app)
    made = (await app.feedback.give(trace, thumbs="up")).case_id
    assert made is not None
    later = datetime.now(UTC) + timedelta(days=200)
    assert (await Consolidation(app.case_store, now=lambda: later).run()).count("unused") == 1
    outcome = await app.feedback.give(await answered(app), thumbs="up")
    assert (outcome.case_id, outcome.note, (await case(app, made)).status) == (made, "", "active")


async def test_a_voter_learns_that_a_case_is_archived(app: App) -> None:
    trace = await answered(app)
    made = (await app.feedback.give(trace, thumbs="up")).case_id
    assert made is not None
    await app.cases.change(made, status="archived")
    outcome = await app.feedback.give(trace, thumbs="down")
    assert "archived" in outcome.note
    assert (await case(app, made)).status == "archived"


async def test_a_vote_changed_after_a_merge_counts_on_the_case_that_stayed(app: App) -> None:
    reader = await caller_of(app, "reader", "reader")
    trace = await answered(app, reader)
    made = (await app.feedback.give(trace, thumbs="up", caller=reader)).case_id
    assert made is not None
    twin = {**_values(await case(app, made)), "case_id": "stays", "usage_count": 9, "upvotes": 9}
    assert await app.case_store.add(Case(**twin))
    assert (await Consolidation(app.case_store).run()).count("merged") == 1
    outcome = await app.feedback.give(trace, thumbs="down", caller=reader)
    stays = await case(app, "stays")
    assert (outcome.case_id, stays.upvotes, stays.downvotes, stays.usage_count) == ("stays", 9, 1, 10)


async def test_many_votes_of_one_voter_are_those_of_one(app: App) -> None:
    eve = await caller_of(app, "eve", "reader")
    stored = await app.cases.add(QUESTION, "HR", "c", quality_score=0.9)
    for _ in range(12):
        suggested = await app.cases.suggest(QUESTION, caller=eve)
        assert suggested.log_id is not None
        await app.cases.feedback(suggested.log_id, stored.case_id, DOWN, caller=eve)
    assert (await case(app, stored.case_id)).quality_score == pytest.approx(0.6)
    report = await app.reflection.reflect(dry_run=True)
    assert (report.votes, report.cases) == (1, ())
    later = datetime.now(UTC) + timedelta(days=20)
    assert (await Consolidation(app.case_store, now=lambda: later).run(dry_run=True)).archived == ()


async def test_the_same_thumbs_down_does_not_reopen_a_decided_item(app: App) -> None:
    trace = await answered(app)
    await app.feedback.give(trace, thumbs="down")
    [item] = [each for each in (await app.review.waiting())[0] if each.kind == "answer"]
    await app.review.skip(str(item.item_id))
    await app.feedback.give(trace, thumbs="down")
    assert await app.review.waiting() == ([], 0)


async def test_a_decision_whose_case_cannot_be_stored_gets_it_later(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    await app.feedback.give(await answered(app), thumbs="down")
    [item] = [each for each in (await app.review.waiting())[0] if each.kind == "answer"]

    async def full(record: object) -> bool:
        raise StorageFull("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(app.case_store, "put", full)
        decided = await app.review.correct(str(item.item_id), passages=[await passage(app, "Gardens")])
    assert decided.status == "corrected"
    assert await app.review.make_missing_cases() == [f"review-{item.item_id}"]


async def test_experiences_that_could_not_be_read_are_read_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, calls = stores.learning, 0

    async def experiences() -> list[Experience]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise DatabaseUnavailable(reason="not now")
        return []

    monkeypatch.setattr(store, "experiences", experiences)
    learning = WeightLearning(store)
    flags = {"soft_q_bandit", "experience_replay"}
    ways = [await learning.way_to_answer("simple", "search", "", flags) for _ in range(3)]
    assert ([way is None for way in ways], calls) == ([True, False, False], 2)
    await learning.close()


def _values(stored: Case) -> dict[str, Any]:
    return {name: getattr(stored, name) for name in Case.__dataclass_fields__}
