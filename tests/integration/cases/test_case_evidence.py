"""What callers can do to the case memory of others: narrower scopes, filtered replays, own approvals, edited cases."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.database import Database
from dtrag.app import App
from dtrag.cases import reuse
from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import EVERYTHING, Access, Grant, Scope
from dtrag.core.cases.case import Case, CaseChange, CitedPassage, DecisionCounts, ReuseDecision, content_hash
from dtrag.core.cases.index import question_hash
from dtrag.core.cases.same_question import SameQuestion
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput
from dtrag.pipeline.state import PipelineResponse
from dtrag.testing import add_texts
from tests.store import toy_app

pytestmark = pytest.mark.usefixtures("memory_on")

QUESTION = "How long does parental leave take?"
LEAVE = "# Parental leave\n\nParental leave takes at most 90 days. It is paid."
BRANCH = "# Branch offices\n\nParental leave in a branch office takes 60 days."
GARDENS = "# Gardens\n\nThe gardens are closed in winter. Parental visits take an hour."
TITLES = {"Parental leave": "HR", "Branch offices": "Branch"}


@pytest_asyncio.fixture
async def app(emptied: Database) -> AsyncIterator[App]:
    async with toy_app(emptied) as opened:
        await add_texts(opened, {"leave.md": LEAVE, "gardens.md": GARDENS}, "HR")
        await add_texts(opened, {"branch.md": BRANCH}, "Branch")
        yield opened


async def caller(app: App, name: str, *categories: str) -> Caller:
    taxonomy = (await app.index.snapshot()).taxonomy
    grants = tuple(Grant.of([CategoryPath.parse(category)], taxonomy) for category in categories)
    return Caller(name, "reader", Access(grants), uuid.uuid5(uuid.NAMESPACE_DNS, name))


async def ask(app: App, asker: Caller, **options: object) -> PipelineResponse:
    return await app.pipeline.execute(QUESTION, scope=asker.access, owner=asker.owner, **options)  # type: ignore[arg-type]


async def rate(app: App, response: PipelineResponse, asker: Caller, thumbs: str = "up") -> str | None:
    return (await app.feedback.give(response.trace_id, thumbs=thumbs, caller=asker)).case_id


def titles(response: PipelineResponse) -> list[str]:
    return [chunk.title for chunk in response.retrieved_chunks]


async def passage(app: App, title: str) -> CitedPassage:
    snapshot = await app.index.snapshot()
    key = next(f"{each.document_id}:0" for each in await app.documents() if each.title == title)
    return CitedPassage(key, content_hash((await app.index.fetch([key], EVERYTHING, snapshot.taxonomy))[key].text))


async def stored(app: App, title: str, **values: object) -> Case:
    now = datetime.now(UTC)
    case = Case(
        case_id=f"c-{title}",
        query=QUESTION,
        query_hash=question_hash(QUESTION),
        category_path=(),
        content="",
        created_at=now,
        updated_at=now,
        origin="answer",
        passages=(await passage(app, title),),
    )
    case = replace(case, **values)  # type: ignore[arg-type]
    assert await app.case_store.add(case)
    return case


async def counts(app: App, case_id: str | None = None) -> DecisionCounts:
    await app.retention.flush()
    return await app.case_store.decisions(case_id)


async def test_a_case_of_a_narrower_scope_is_not_reused_in_a_wider_one(app: App) -> None:
    all_readers = await caller(app, "all")
    plain = await ask(app, all_readers, memory=False)
    second = next(title for title in titles(plain)[1:] if title in TITLES)
    eve = await caller(app, "eve", TITLES[second])
    made = await rate(app, await ask(app, eve), eve)
    assert made is not None
    response = await ask(app, all_readers)
    assert (titles(response), response.answered_before) == (titles(plain), None)
    facts = (await app.traces.get(response.trace_id)).steps[1].facts["cases"]
    assert facts["reason"] == "other_scope"
    shown = await ask(app, await caller(app, "colleague", TITLES[second]))
    assert shown.answered_before is not None
    assert shown.answered_before.case_id == made
    other = await rate(app, response, all_readers)  # an approval with the whole tree makes another case
    assert other not in {None, made}


async def test_a_filtered_or_narrower_answer_and_its_author_judge_no_case(app: App) -> None:
    eve, hr = await caller(app, "eve"), await caller(app, "hr", "HR")
    case = await stored(app, "Parental leave", origin="manual", author=eve.owner)
    filters = {"taxonomy_paths": [["Branch"]]}
    for asker, options in ((await caller(app, "kim"), {"filters": filters}), (hr, {}), (eve, {})):
        await ask(app, asker, **options)
        assert await counts(app) == DecisionCounts()
    await ask(app, await caller(app, "kim"))
    assert await counts(app, case.case_id) == DecisionCounts(1, 0)


async def test_an_asker_decides_once_about_a_case(app: App) -> None:
    case = await stored(app, "Gardens", origin="manual", author="eve")
    kim = await caller(app, "kim")
    for _ in range(3):
        await ask(app, kim)
    assert await counts(app, case.case_id) == DecisionCounts(0, 1)
    await app.case_store.delete(case.case_id, EVERYTHING)
    assert await counts(app) == DecisionCounts()


async def test_wrong_replays_of_a_case_are_capped(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtrag.cases.retention.MOST_REPLAYS", 2)
    case = await stored(app, "Gardens", origin="manual", author="eve")
    for number in range(4):
        await ask(app, await caller(app, f"reader {number}"))
    assert await counts(app, case.case_id) == DecisionCounts(0, 2)


async def test_authors_do_not_decide_and_a_thumbs_down_counts_beyond_sixty_decisions(app: App) -> None:
    eve, kim = await caller(app, "eve"), await caller(app, "kim")
    made = await rate(app, await ask(app, eve), eve)
    assert made is not None
    shown = await ask(app, eve)
    assert await rate(app, shown, eve) == made
    assert await counts(app) == DecisionCounts()
    for number in range(80):
        decision = ReuseDecision(
            case_id=made, log_id="l", kind="vote", correct=True, at=datetime.now(UTC), asker=str(number)
        )
        await app.case_store.add_decision(decision)
    shown = await ask(app, kim)
    assert shown.answered_before is not None
    assert await rate(app, shown, kim, "up") == made
    assert await counts(app) == DecisionCounts(81, 0)
    assert await rate(app, await ask(app, eve), eve, "down") == made
    assert await counts(app) == DecisionCounts(81, 0)
    assert (await ask(app, kim)).answered_before is None


async def test_a_raised_case_that_is_not_cited_is_judged_and_voted_down(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    kim = await caller(app, "kim")
    case = await stored(app, "Gardens")
    monkeypatch.setattr("dtrag.pipeline.recall.raised", lambda passages, _: [passages[0], *passages[:0:-1]])
    response = await ask(app, kim)
    assert response.answered_before is None
    assert await counts(app, case.case_id) == DecisionCounts(0, 1)
    await rate(app, response, kim, "down")
    voted = (await app.case_store.of([case.case_id], EVERYTHING))[case.case_id]
    assert voted.downvotes == 1
    assert (await ask(app, kim)).answered_before is None


async def test_a_vote_counts_for_what_the_voter_saw(app: App) -> None:
    ann, bob = await caller(app, "ann"), await caller(app, "bob")
    made = await rate(app, await ask(app, ann), ann)
    assert made is not None
    seen = await ask(app, bob)
    assert seen.answered_before is not None
    await app.retention.flush()
    other = CaseChange(passages=(await passage(app, "Gardens"),), author="eve")
    await app.case_store.change(made, other, datetime.now(UTC), EVERYTHING)
    outcome = await app.feedback.give(seen.trace_id, thumbs="down", caller=bob)
    assert (outcome.case_id, outcome.effect) == (None, "recorded")
    assert "other passages" in outcome.note
    again = await rate(app, seen, bob)  # what bob saw is a case of its own
    assert again not in {None, made}
    assert await rate(app, seen, bob) == again
    changed = (await app.case_store.of([made], EVERYTHING))[made]
    assert (changed.upvotes, changed.downvotes) == (0, 0)
    assert await counts(app) == DecisionCounts()


async def test_counts_of_a_restricted_scope_are_kept(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    case = await stored(app, "Parental leave")
    for number in range(60):
        decision = ReuseDecision(
            case_id=case.case_id, log_id="l", kind="vote", correct=True, at=datetime.now(UTC), asker=str(number)
        )
        await app.case_store.add_decision(decision)
    read: list[Scope] = []

    async def decisions(case_id: str | None = None, scope: Scope = EVERYTHING) -> DecisionCounts:
        read.append(scope)
        return DecisionCounts(60, 0)

    monkeypatch.setattr(app.case_store, "decisions", decisions)
    branch = Scope(frozenset({1}))
    assert [(await app.reuse.evidence(branch)).correct for _ in range(3)] == [60] * 3
    assert read == [branch]
    await app.reuse.evidence(EVERYTHING)
    await app.reuse.evidence(EVERYTHING)
    assert read == [branch, EVERYTHING, EVERYTHING]


@pytest.mark.parametrize("delta", [0.0, 1.0, 5.0])
async def test_delta_must_be_a_share(emptied: Database, delta: float) -> None:
    with pytest.raises(InvalidInput, match="DTRAG_CBR_DELTA"):
        async with toy_app(emptied, cbr_delta=delta):
            pass


async def test_with_a_strict_delta_nothing_is_reused(emptied: Database) -> None:
    async with toy_app(emptied, cbr_delta=0.0001) as strict:
        evidence = await strict.reuse.evidence(EVERYTHING)
    assert (evidence.allowed, evidence.delta, evidence.basis) == (False, 0.0001, "committed pairs")


async def test_comparisons_that_take_too_long_end_and_the_memory_is_silent(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    def same(known: str, question: str) -> SameQuestion:
        compared.append(known)
        raise AssertionError

    await stored(app, "Parental leave")
    monkeypatch.setattr(reuse, "same_question", same)
    monkeypatch.setattr(reuse, "GATE_S", 0.0)
    recalled = await asyncio.wait_for(app.reuse.recall(QUESTION, EVERYTHING), 60)
    assert (recalled.silence, recalled.case, compared) == ("late", None, [])
