"""`CaseMemory`: scopes, categories, freshness, votes, and the flag."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from dtrag import App
from dtrag.adapters.postgres.database import Database
from dtrag.cases.memory import NO_LOG
from dtrag.core.access.api_key import Caller, Role
from dtrag.core.access.scope import Access, Grant, Scope
from dtrag.core.cases.case import Case, CaseLog, FeedbackType, SimilarityMethod, Vote
from dtrag.core.cases.index import MEANING_SHARE
from dtrag.core.cases.statistics import Readiness, VoterCount
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import Conflict, FeatureOff, Forbidden, IncompleteRequest, InvalidInput, NotFound, StorageFull
from dtrag.settings import set_feature_flag
from dtrag.testing import HashEmbedder, Models, add_texts
from tests.cases import each
from tests.store import empty, toy_app

QUESTION = "How many days of annual leave are there?"
LEAVE, PUMPS = ["HR", "Leave"], ["Machines"]


@pytest.fixture(autouse=True)
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBR_ENABLED", "true")


@pytest_asyncio.fixture
async def app(emptied: Database) -> AsyncIterator[App]:
    async with toy_app(emptied) as opened:
        await add_texts(opened, {"leave.md": "# Leave\n\nAnnual leave is 26 days."}, category="HR/Leave")
        await add_texts(opened, {"pump.md": "# Pump\n\nThe pump has a valve of brass."}, category="Machines")
        yield opened


async def caller(app: App, *paths: str, role: Role = "editor", name: str = "kim") -> Caller:
    taxonomy = (await app.index.snapshot()).taxonomy
    access = Access((Grant.of([CategoryPath.parse(path) for path in paths], taxonomy),))
    return Caller(name, role, access, uuid.uuid5(uuid.NAMESPACE_DNS, name))


async def passage(app: App, query: str) -> str:
    results, _ = await app.search(query, 1)
    return results[0].chunk_id


async def add(app: App, question: str = QUESTION, path: list[str] = LEAVE, *passages: str, **options: object) -> Case:
    return await app.cases.add(question, path, "See the handbook.", passages=passages, **options)  # type: ignore[arg-type]


async def test_nothing_works_while_the_flag_is_off(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    case = await add(app)
    monkeypatch.setenv("CBR_ENABLED", "off")
    for call in (
        app.cases.get(case.case_id),
        app.cases.suggest(QUESTION),
        app.cases.page(),
        app.cases.statistics(),
        app.cases.logs(),
        app.cases.export(),
        app.cases.delete(case.case_id),
    ):
        with pytest.raises(FeatureOff, match=r"CBR system is not enabled\. Set CBR_ENABLED=true"):
            await call
    set_feature_flag("cbr_enabled", True)
    try:
        assert (await app.cases.get(case.case_id)).query == QUESTION
    finally:
        set_feature_flag("cbr_enabled", None)


async def test_suggestions_are_logged_and_no_use(app: App) -> None:
    case = await add(app)
    found = await app.cases.suggest("how many days of annual leave", LEAVE)
    [(suggested, score)] = found.cases
    assert (suggested.case_id, suggested.usage_count) == (case.case_id, 0)
    assert 0.5 < score < 1
    [log] = await app.cases.logs()
    assert (log.log_id, log.suggested_case_ids, log.feedback) == (found.log_id, (case.case_id,), None)
    assert (log.query, log.category_path) == ("how many days of annual leave", ("HR", "Leave"))
    assert found.milliseconds == log.execution_time_ms


async def test_categories_follow_their_node(app: App) -> None:
    case = await add(app)
    outside = await add(app, QUESTION, ["Nowhere", "yet"])
    version = await app.taxonomy.propose([{"op": "rename", "path": "HR/Leave", "name": "Absence"}])
    await app.taxonomy.activate(version.version)
    for path, expected in (
        ("HR/Absence", [case.case_id]),
        ("hr", []),
        ("HR/Leave", []),
        ("Nowhere/yet", [outside.case_id]),
    ):
        found = await app.cases.suggest(QUESTION, path)
        assert [suggested.case_id for suggested, _ in found.cases] == expected, path
    whole_branch = await app.cases.suggest(QUESTION, "hr", prefix=True)
    assert [found.case_id for found, _ in whole_branch.cases] == [case.case_id]
    assert (await app.cases.get(case.case_id)).category_path == ("HR", "Absence")


async def test_a_case_is_visible_with_its_category_and_its_documents_only(app: App) -> None:
    leave, pump = await passage(app, "annual leave"), await passage(app, "brass valve")
    own = await add(app, QUESTION, LEAVE, leave)
    citing = await add(app, QUESTION, LEAVE, leave, pump)
    foreign = await add(app, QUESTION, PUMPS)
    kim = await caller(app, "HR")
    found = await app.cases.suggest(QUESTION, k=10, caller=kim)
    assert [case.case_id for case, _ in found.cases] == [own.case_id]
    assert (await app.cases.statistics(caller=kim)).total_cases == 1
    assert [row.case_id for row in (await app.cases.page(caller=kim)).cases] == [own.case_id]
    assert [case.case_id for case in (await app.cases.export(caller=kim)).training_data.cases] == [own.case_id]
    for case in (citing, foreign):
        unknown = str(uuid.uuid4())
        for attempt in (
            lambda key: app.cases.get(key, caller=kim),
            lambda key: app.cases.change(key, content="x", caller=kim),
            lambda key: app.cases.delete(key, caller=kim),
            lambda key: app.cases.feedback(str(found.log_id), key, FeedbackType.THUMBS_UP, caller=kim),
        ):
            messages = []
            for key in (case.case_id, unknown):
                with pytest.raises(NotFound) as raised:
                    await attempt(key)
                messages.append(str(raised.value).replace(key, "ID"))
            assert messages[0] == messages[1]
        assert (await app.cases.get(case.case_id)).content == "See the handbook."
    both = await caller(app, "HR", "Machines")
    assert (await app.cases.statistics(caller=both)).total_cases == 3


async def test_a_caller_adds_and_moves_cases_within_its_scope(app: App) -> None:
    kim, pump = await caller(app, "HR"), await passage(app, "brass valve")
    own = await app.cases.add(QUESTION, LEAVE, "See there.", caller=kim)
    assert own.author == kim.owner
    for path in (PUMPS, ["HR", "Unknown"], ["Unknown"]):
        with pytest.raises(Forbidden, match="no such category in it"):
            await app.cases.add(QUESTION, path, "x", caller=kim)
        with pytest.raises(Forbidden, match="no such category in it"):
            await app.cases.change(own.case_id, category_path=path, caller=kim)
    with pytest.raises(InvalidInput, match="cannot choose case ids"):
        await app.cases.add(QUESTION, LEAVE, "x", case_id="mine", caller=kim)
    messages = []
    for chunk_id in (pump, f"{uuid.uuid4()}:0"):
        with pytest.raises(InvalidInput, match="no passage") as raised:
            await app.cases.add(QUESTION, LEAVE, "x", passages=[chunk_id], caller=kim)
        messages.append(str(raised.value).replace(chunk_id, "ID"))
    assert messages[0] == messages[1]
    assert (await app.cases.statistics()).total_cases == 1


async def test_changes(app: App) -> None:
    case = await add(app, case_id="case-1")
    with pytest.raises(Conflict, match="already"):
        await add(app, case_id="case-1")
    before, after = await app.cases.change(
        "case-1",
        query="How long is leave?",
        category_path=PUMPS,
        content="New.",
        metadata={"n": [1, None]},
        status="archived",
    )
    assert before == case
    assert (after.query, after.category_path, after.content) == ("How long is leave?", ("Machines",), "New.")
    assert (after.metadata, after.status, after.node_id == case.node_id) == ({"n": [1, None]}, "archived", False)
    assert (await app.cases.suggest("How long is leave?")).cases == []
    before, after = await app.cases.change("case-1", quality_score=0.9)
    assert (before.quality_score, after.quality_score) == (0.5, 0.9)
    actions = [row.entry.action for row in await app.audit.newest(limit=3)]
    assert actions == ["cases.change", "cases.change", "cases.add"]
    await app.cases.delete("case-1")
    with pytest.raises(NotFound):
        await app.cases.get("case-1")


@each(
    "values, error",
    [
        ({}, IncompleteRequest),
        ({"query": " "}, IncompleteRequest),
        ({"content": "\n"}, IncompleteRequest),
        ({"category_path": []}, IncompleteRequest),
        ({"query": "x" * 1_001}, InvalidInput),
        ({"quality_score": 1.5}, InvalidInput),
        ({"quality_score": float("nan")}, InvalidInput),
        ({"metadata": {"x": float("inf")}}, InvalidInput),
        ({"metadata": {"x": 2**70}}, InvalidInput),
        ({"metadata": {"x": "y" * 20_001}}, InvalidInput),
        ({"category_path": ["a/b"]}, InvalidInput),
        ({"passages": ["not an id"]}, InvalidInput),
    ],
)
async def test_bad_changes_say_why(app: App, values: dict[str, object], error: type[Exception]) -> None:
    case = await add(app)
    with pytest.raises(error):
        await app.cases.change(case.case_id, **values)  # type: ignore[arg-type]
    assert await app.cases.get(case.case_id) == case
    with pytest.raises(IncompleteRequest, match="blank"):
        await app.cases.get("  ")


async def test_votes_need_an_interaction_of_the_voter(app: App) -> None:
    case, other = await add(app), await add(app, "Is there a pump?", PUMPS)
    kim, lee = await caller(app, "HR", name="kim"), await caller(app, "HR", name="lee")
    found = await app.cases.suggest(QUESTION, caller=kim)
    assert found.log_id is not None
    voted = await app.cases.feedback(found.log_id, case.case_id, FeedbackType.THUMBS_UP, caller=kim)
    again = await app.cases.feedback(found.log_id, case.case_id, FeedbackType.THUMBS_UP, caller=kim)
    assert (voted.quality_score, voted.usage_count, again) == (0.6, 1, voted)
    down = await app.cases.feedback(found.log_id, case.case_id, FeedbackType.THUMBS_DOWN, success=False, caller=kim)
    assert (down.quality_score, down.usage_count, down.success_rate) == (0.4, 1, 0.0)
    for log_id, case_id, voter in (
        (found.log_id, case.case_id, lee),
        (str(uuid.uuid4()), case.case_id, kim),
        (found.log_id, other.case_id, kim),
    ):
        with pytest.raises(NotFound, match="no interaction"):
            await app.cases.feedback(log_id, case_id, FeedbackType.THUMBS_UP, caller=voter)
    assert (await app.cases.get(case.case_id)).usage_count == 1


async def test_stale_cases_are_listed_and_revived(app: App) -> None:
    leave = await passage(app, "annual leave")
    cited, plain = await add(app, QUESTION, LEAVE, leave), await add(app)

    async def stale() -> list[str]:
        page = await app.cases.page(stale=True)
        assert [row.stale_passages for row in page.cases] == [(leave,)] * len(page.cases)
        return [row.case_id for row in page.cases]

    assert await stale() == []
    await add_texts(app, {"leave.md": "# Leave\n\nAnnual leave is 27 days."}, category="HR/Leave")
    assert await stale() == [cited.case_id]
    fresh = await app.cases.page(stale=False)
    assert [row.case_id for row in fresh.cases] == [plain.case_id]
    await add_texts(app, {"leave.md": "# Leave\n\nAnnual leave is 26 days."}, category="HR/Leave")
    assert await stale() == []


async def test_pages_follow_each_other(app: App) -> None:
    ids = [f"case-{number}" for number in range(7)]
    for case_id in ids:
        await add(app, case_id=case_id)
    await app.cases.change("case-3", status="archived")
    for limit, status, expected in ((3, None, ids), (2, "active", [*ids[:3], *ids[4:]]), (1, "archived", ["case-3"])):
        listed: list[str] = []
        after: str | None = None
        while True:
            page = await app.cases.page(limit, after, status=status)  # type: ignore[arg-type]
            listed += [row.case_id for row in page.cases]
            if page.next is None:
                break
            after = page.next
        assert listed == expected


async def test_semantic_falls_back_to_words_with_a_note(app: App, emptied: Database) -> None:
    await add(app)
    by_meaning = await app.cases.suggest(QUESTION, method=SimilarityMethod.SEMANTIC)
    assert (by_meaning.method, by_meaning.notes) == (SimilarityMethod.SEMANTIC, ())
    assert by_meaning.cases[0][1] == pytest.approx(1.0, abs=1e-6)
    async with toy_app(emptied, Models()) as bare:
        by_words = await bare.cases.suggest(QUESTION, method=SimilarityMethod.SEMANTIC)
        assert (by_words.method, by_words.cases[0][1]) == (SimilarityMethod.COSINE, 1.0)
        assert "No embedder is available" in str(by_words.notes[0])


async def test_meaning_counts_from_the_cosine_of_unrelated_questions_on(emptied: Database) -> None:
    similarities = []
    for embedder in (HashEmbedder(), HashEmbedder(floor=0.5, decides=False)):
        await empty(emptied)
        async with toy_app(emptied, Models(embedder)) as app:
            await add(app, "How long is parental leave?")
            found = await app.cases.suggest("How long is unpaid leave?", method=SimilarityMethod.SEMANTIC)
            similarities.append(found.cases[0][1])
            by_words = await app.cases.suggest("How long is unpaid leave?", method=SimilarityMethod.COSINE)
            words = by_words.cases[0][1]
    raw, stretched = ((each - (1 - MEANING_SHARE) * words) / MEANING_SHARE for each in similarities)
    assert stretched == pytest.approx(2 * raw - 1, abs=1e-4)


async def test_a_full_disk_costs_the_log_alone(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    case = await add(app)

    async def full(log: object) -> None:
        raise StorageFull(free="1 MB", needed="512 MB")

    monkeypatch.setattr(app.case_store, "add_log", full)
    found = await app.cases.suggest(QUESTION)
    assert (found.log_id, found.notes) == (None, (NO_LOG,))
    assert [suggested.case_id for suggested, _ in found.cases] == [case.case_id]


async def test_questions_are_stored_without_text_when_the_setting_says_so(emptied: Database) -> None:
    async with toy_app(emptied, cbr_text="off") as app:
        await add(app)
        await app.cases.suggest(QUESTION)
        [log] = await app.cases.logs()
        assert (log.query, len(log.query_hash)) == ("", 32)


async def test_interactions_expire_and_votes_stay(emptied: Database) -> None:
    async with toy_app(emptied, cbr_log_days=30) as app:
        case = await add(app)
        old = CaseLog(log_id="old", timestamp=datetime.now(UTC) - timedelta(days=31), query="old", user_id="kim")
        await app.case_store.add_log(replace(old, suggested_case_ids=(case.case_id,)))
        await app.case_store.add_log(replace(old, log_id="young", timestamp=datetime.now(UTC) - timedelta(days=29)))
        vote = Vote(
            log_id="old",
            case_id=case.case_id,
            feedback=FeedbackType.SELECTED,
            success=True,
            voter="kim",
            at=case.created_at,
        )
        await app.case_store.vote(vote, Scope.everything())
        found = await app.cases.suggest(QUESTION)
        assert {log.log_id for log in await app.cases.logs()} == {"young", found.log_id}
        assert (await app.cases.get(case.case_id)).usage_count == 1


async def test_the_export_says_whether_it_is_complete(app: App) -> None:
    for number in range(3):
        await add(app, case_id=f"case-{number}")
    exported = await app.cases.export(2)
    assert (len(exported.training_data.cases), exported.training_data.metadata.complete) == (2, False)
    whole = (await app.cases.export(3)).training_data
    assert whole.metadata.complete
    assert [case.case_id for case in whole.cases] == ["case-0", "case-1", "case-2"]
    statistics = replace((await app.cases.statistics()), voters=[VoterCount("", False, 1_000, 700)])
    assert Readiness.of(statistics).ready
    assert not Readiness.of(replace(statistics, voters=[VoterCount("", False, 1_000, 699)])).ready
