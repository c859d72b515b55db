"""Consolidation, reflection and audit of cases, over every store."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from dtrag.cases.maintenance import CaseAuditor, Consolidation, Reflection
from dtrag.core.access.api_key import Caller, Key
from dtrag.core.access.scope import EVERYTHING, Access, Grant
from dtrag.core.cases.case import ALIASES, Case, CaseChange, CaseLog, CitedPassage, FeedbackType, content_hash
from dtrag.core.cases.reuse_verdict import REVIEW_LOG
from dtrag.core.taxonomy.review import OfferedAnswer
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import Conflict, FeatureOff, Forbidden, NotFound
from dtrag.ports import Stores
from dtrag.settings import set_feature_flag
from tests.builders import BOILER, KETTLE, LEAVE, NOON, agent, branch_nodes, case, filled, vote
from tests.integration.stores.test_editions import FIRST, LATER, SECOND, edition

QUESTION = "How many days of annual leave are there?"
SAME = "how many  days of annual leave are there ?"
OTHER = "How many days of sick leave are there?"
LONG_AGO = NOON - timedelta(days=400)
DOWN = FeedbackType.THUMBS_DOWN


@pytest.fixture(autouse=True)
def memory_on() -> Iterator[None]:
    set_feature_flag("cbr_enabled", True)
    yield
    set_feature_flag("cbr_enabled", None)


def consolidation(stores: Stores, now: datetime = NOON) -> Consolidation:
    return Consolidation(stores.cases, now=lambda: now)


async def every(stores: Stores) -> dict[str, Case]:
    return {each.case_id: each for each in await stores.cases.page(EVERYTHING, 10_000)}


async def add(stores: Stores, *cases: Case) -> None:
    for each in cases:
        assert await stores.cases.add(each)


async def voted(stores: Stores, case_id: str, *successes: bool, at: datetime = NOON) -> None:
    for number, success in enumerate(successes):
        feedback = FeedbackType.THUMBS_UP if success else DOWN
        await stores.cases.vote(
            vote(case_id, feedback, log_id=f"{case_id}-{number}", voter=f"v{number}", success=success, at=at),
            EVERYTHING,
        )


async def test_only_the_same_questions_about_the_same_passages_are_merged(stores: Stores) -> None:
    cited: dict[str, Any] = {"passages": [f"{LEAVE}:0"]}
    await add(
        stores,
        case("kept", QUESTION, **cited),
        case("same", SAME, **cited),
        case("other question", OTHER, **cited),
        case("other passage", QUESTION, passages=[f"{KETTLE}:0"]),
        case("other category", QUESTION, ["Board"], **cited),
        case("other day", QUESTION, as_of=NOON.date(), **cited),
        case("part of the tree", QUESTION, answered_in=frozenset({2, 3}), **cited),
        case("other part of the tree", QUESTION, answered_in=frozenset({2}), **cited),
        case("no passage", QUESTION),
        case("no passage either", QUESTION),
    )
    await voted(stores, "kept", True, True, True)
    await voted(stores, "same", False, False)
    before = await every(stores)
    dry = await consolidation(stores).run(dry_run=True)
    assert [(each.case.case_id, each.reason) for each in dry.archived] == [("same", "merged")]
    assert await every(stores) == before
    report = await consolidation(stores).run()
    assert (report.count("merged"), report.examined, report.changed_meanwhile) == (1, 10, 0)
    after = await every(stores)
    kept, same = after["kept"], after["same"]
    assert (kept.usage_count, kept.upvotes, kept.downvotes, kept.success_rate) == (5, 3, 2, 0.6)
    assert kept.quality_score == before["kept"].quality_score
    assert kept.metadata[ALIASES] == [{"case_id": "same", "run": report.run_id, "raised": 0.0}]
    assert (same.status, same.usage_count) == ("archived", 0)
    assert sum(each.usage_count for each in after.values()) == 5
    unchanged = before.keys() - {"kept", "same"}
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert (await consolidation(stores).run()).archived == ()
    assert await consolidation(stores).runs() == {report.run_id: Counter(merged=1)}


async def test_an_undo_restores_everything_and_keeps_later_votes(stores: Stores) -> None:
    cited: dict[str, Any] = {"passages": [f"{LEAVE}:0"]}
    await add(stores, case("kept", QUESTION, **cited), case("same", SAME, **cited), case("again", SAME, **cited))
    await voted(stores, "kept", True, True)
    await voted(stores, "same", False)
    before = await every(stores)
    report = await consolidation(stores).run()
    assert report.count("merged") == 2
    await stores.cases.vote(vote("kept", log_id="later", voter="late"), EVERYTHING)
    assert (await every(stores))["kept"].success_rate == 0.75
    assert await consolidation(stores).undo(report.run_id) == 2
    after = await every(stores)
    kept = after.pop("kept")
    assert (kept.usage_count, kept.upvotes, kept.downvotes, kept.success_rate) == (3, 3, 0, 1.0)
    assert ALIASES not in kept.metadata
    assert len((await stores.cases.votes(["kept"], EVERYTHING))["kept"]) == 3
    assert {name: replace(each, updated_at=NOON) for name, each in after.items()} == {
        name: replace(each, updated_at=NOON) for name, each in before.items() if name != "kept"
    }
    with pytest.raises(NotFound):
        await consolidation(stores).undo(report.run_id)
    assert await consolidation(stores).runs() == {}


async def test_a_reviewed_case_raises_the_quality(stores: Stores) -> None:
    cited: dict[str, Any] = {"passages": [f"{LEAVE}:0"]}
    await add(
        stores,
        case("used", QUESTION, usage_count=5, quality_score=0.6, **cited),
        case("reviewed", SAME, quality_score=1.0, origin="review", **cited),
        case("by hand", SAME, quality_score=0.9, **cited),
    )
    report = await consolidation(stores).run()
    assert (await every(stores))["used"].quality_score == 1.0
    await consolidation(stores).undo(report.run_id)
    assert {name: each.quality_score for name, each in (await every(stores)).items()} == {
        "used": 0.6,
        "reviewed": 1.0,
        "by hand": 0.9,
    }


async def test_runs_are_undone_in_the_reverse_order(stores: Stores) -> None:
    cited: dict[str, Any] = {"passages": [f"{LEAVE}:0"]}
    await add(stores, case("b", QUESTION, usage_count=1, **cited), case("c", SAME, **cited))
    first = await consolidation(stores).run()
    await add(stores, case("a", QUESTION, usage_count=9, **cited))
    second = await consolidation(stores).run()
    assert (await every(stores))["b"].status == "archived"
    with pytest.raises(Conflict, match=second.run_id):
        await consolidation(stores).undo(first.run_id)
    assert await consolidation(stores).undo(second.run_id) == 1
    assert await consolidation(stores).undo(first.run_id) == 1
    assert {name: (each.status, each.usage_count) for name, each in (await every(stores)).items()} == {
        "a": ("active", 9),
        "b": ("active", 1),
        "c": ("active", 0),
    }


async def test_poor_and_unused_cases_are_archived(stores: Stores) -> None:
    usage = {"poor": 11, "few votes": 10, "much used": 501, "unused": 0, "used enough": 101}
    await add(stores, *(case(name, name, usage_count=count, at=LONG_AGO) for name, count in usage.items()))
    await add(
        stores,
        case("without votes", "A?", usage_count=101, at=LONG_AGO, success_rate=0.1),
        case("fresh", "B?", at=NOON - timedelta(days=80)),
        case("shown", "C?", at=LONG_AGO),
    )
    for name in ("poor", "few votes", "much used"):
        await voted(stores, name, False, at=LONG_AGO)
    for name in ("poor", "few votes", "much used"):
        stored = await stores.cases.get(name, EVERYTHING)
        assert stored is not None
        assert stored.usage_count == usage[name] + 1
    await stores.cases.add_log(
        CaseLog(log_id="s", timestamp=NOON - timedelta(days=3), query="C?", kind="answer", shown_case_id="shown")
    )
    report = await consolidation(stores).run()
    assert {each.case.case_id: each.reason for each in report.archived} == {
        "poor": "poor",
        "few votes": "poor",
        "unused": "unused",
    }
    assert await consolidation(stores).undo(report.run_id) == 3
    assert {each.status for each in (await every(stores)).values()} == {"active"}


async def test_what_was_used_in_the_last_days_stays(stores: Stores) -> None:
    await add(stores, case("a", at=LONG_AGO))
    await voted(stores, "a", *[False] * 12, at=NOON - timedelta(days=6))
    assert (await consolidation(stores).run()).archived == ()
    assert (await consolidation(stores, NOON + timedelta(days=2)).run()).count("poor") == 1


async def test_a_run_that_is_stopped_is_continued(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    await add(stores, *(case(f"case-{number:03}", f"Question {number}?", at=LONG_AGO) for number in range(230)))
    replace_cases = type(stores.cases).replace
    sizes: list[int] = []

    async def stopping(self: Any, replacements: Any) -> bool:
        if len(sizes) == 2:
            raise asyncio.CancelledError
        sizes.append(len(replacements))
        return await replace_cases(self, replacements)

    monkeypatch.setattr(type(stores.cases), "replace", stopping)
    with pytest.raises(asyncio.CancelledError):
        await consolidation(stores).run()
    assert sizes == [100, 100]
    monkeypatch.undo()
    set_feature_flag("cbr_enabled", True)
    assert (await consolidation(stores).run()).count("unused") == 30
    runs = await consolidation(stores).runs()
    assert sum((Counter(counts) for counts in runs.values()), Counter()) == Counter(unused=230)


async def test_a_vote_during_a_run_is_not_lost(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    cited: dict[str, Any] = {"passages": [f"{LEAVE}:0"]}
    await add(stores, case("kept", QUESTION, usage_count=1, **cited), case("same", SAME, **cited))
    await add(stores, case("old", "Old?", at=LONG_AGO))
    replace_cases = type(stores.cases).replace

    async def voting(self: Any, replacements: Any) -> bool:
        await voted(stores, "same", True)
        return await replace_cases(self, replacements)

    monkeypatch.setattr(type(stores.cases), "replace", voting)
    report = await consolidation(stores).run()
    assert ([each.case.case_id for each in report.archived], report.changed_meanwhile) == (["old"], 1)
    assert (await every(stores))["same"].usage_count == 1


async def test_maintenance_is_for_administrators_while_the_memory_is_on(stores: Stores) -> None:
    scoped = Caller("kim", "admin", Access((Grant(()),)))
    editor = Caller("lee", "editor", Access())
    for caller in (scoped, editor):
        with pytest.raises(Forbidden):
            await consolidation(stores).run(caller=caller)
    set_feature_flag("cbr_enabled", False)
    with pytest.raises(FeatureOff):
        await consolidation(stores).run()


async def test_cases_that_fail_are_lowered_and_reviewed(stores: Stores) -> None:
    taxonomy, machines, _ = await filled(stores)
    (node,) = branch_nodes(machines)
    cited: dict[str, Any] = {"passages": [f"{KETTLE}:0"], "node_id": node}
    await add(
        stores,
        case("bad", QUESTION, ["AI", "Machines"], **cited),
        case("fair", "Fair?", **cited),
        case("good", "Good?", **cited),
        case("few", "Few?", **cited),
        case("bare", "Bare?"),
    )
    outcomes = {
        "bad": [True] * 4 + [False] * 8,
        "fair": [True] * 7 + [False] * 3,
        "good": [True] * 8 + [False] * 2,
        "few": [False] * 9,
        "bare": [False] * 10,
    }
    for name, successes in outcomes.items():
        await voted(stores, name, *successes)
    await stores.cases.change("bad", CaseChange(quality_score=0.9), NOON, EVERYTHING)
    offers: list[tuple[OfferedAnswer, Grant | None]] = []

    async def offer(offered: OfferedAnswer, grant: Grant | None) -> bool:
        offers.append((offered, grant))
        return True

    reflection = Reflection(stores.cases, stores.index, offer)
    dry = await reflection.reflect(dry_run=True)
    assert (offers, dry.votes, dry.success_rate) == ([], 51, None)
    report = await reflection.reflect()
    assert [each.case.case_id for each in report.cases] == ["bare", "bad", "fair", "good"]
    assert [bool(each.advice) for each in report.cases] == [True, True, True, False]
    assert [each.case.case_id for each in report.bad] == ["bare", "bad"]
    [(offered, grant)] = offers
    assert (offered.question, offered.cited, "4 of 12" in str(offered.reasons[0])) == (QUESTION, [f"{KETTLE}:0"], True)
    assert grant == Grant.of([CategoryPath.parse("AI/Machines")], taxonomy)
    after = await every(stores)
    assert (after["bad"].quality_score, after["good"].quality_score > 0.5) == (0.333333, True)
    await add(stores, case("many", "Many?"))
    await voted(stores, "many", *[True] * 60)
    rate = (await reflection.reflect()).success_rate
    assert rate is not None
    assert round(rate, 4) == round((4 + 7 + 8 + 60) / 111, 4)


async def test_the_audit_names_what_needs_a_person(stores: Stores) -> None:
    taxonomy, machines, staff = await filled(stores)
    (node,), (staff_node,) = branch_nodes(machines), branch_nodes(staff)
    texts = await stores.index.fetch([f"{KETTLE}:0", f"{BOILER}:0", f"{LEAVE}:0"], EVERYTHING, taxonomy)
    passages = {key: CitedPassage(key, content_hash(result.text)) for key, result in texts.items()}
    kettle, boiler, leave = (passages[f"{key}:0"] for key in (KETTLE, BOILER, LEAVE))
    owner = agent("Machines", grant=Grant.of([CategoryPath.parse("AI/Machines")], taxonomy))
    await stores.agents.add(owner)

    def citing(name: str, question: str, *cited: CitedPassage, **values: Any) -> Case:
        return replace(case(name, question, ["AI", "Machines"], node_id=node, **values), passages=cited)

    gone = f"{uuid.uuid4()}:0"
    staff_key = Key(
        uuid.uuid4(), "staff", "abcdefgh", b"", "editor", Grant.of([CategoryPath.parse("HR")], taxonomy), 9, NOON
    )
    assert await stores.keys.add(staff_key)
    await add(
        stores,
        citing("live", "Valve?", kettle, boiler),
        citing("live too", "valve ?", boiler, kettle),
        citing("changed", "Changed?", CitedPassage(f"{KETTLE}:0", b"0")),
        citing("missing", "Missing?", kettle, CitedPassage(gone, b"0"), CitedPassage(f"{BOILER}:77", b"0")),
        citing("itself", "Itself?", kettle, metadata={ALIASES: [{"case_id": "itself", "run": "r"}]}),
        replace(case("elsewhere", "Leave?", ["HR"], node_id=staff_node), passages=(leave,)),
        citing("voted", "Voted?", boiler),
        citing("moved", "Moved?", kettle, author=str(staff_key.key_id), usage_count=1),
        replace(case("own", "Own?", ["HR"], node_id=node, author=str(staff_key.key_id)), passages=(leave,)),
        case("bare", "Bare?"),
        case("old", "Old?", status="archived"),
    )
    await voted(stores, "voted", True)
    audit = await CaseAuditor(stores.cases, stores.index, stores.keys, stores.agents).audit()
    found = {(row.finding, row.case_id): row for row in audit.findings}
    assert {key for key in found if key[0] in {"stale", "duplicate", "self_referring"}} == {
        ("stale", "changed"),
        ("stale", "missing"),
        ("stale", "moved"),
        ("duplicate", "live too"),
        ("self_referring", "itself"),
    }
    assert found["stale", "changed"].details == "changed"
    assert found["stale", "missing"].details == "missing"
    assert found["stale", "moved"].details == "outside the author's scope"
    assert set(found["stale", "missing"].passages) == {gone, f"{BOILER}:77"}
    assert {case_id for finding, case_id in found if finding == "out_of_reach"} == {"elsewhere", "bare"}
    assert ("never_used", "voted") not in found
    assert ("without_vote", "voted") not in found
    assert (audit.examined, audit.archived, audit.without_sources, audit.reusable) == (10, 1, 1, 6)
    assert audit.needs_a_person
    for name in ("changed", "missing", "moved", "live too", "itself"):
        await stores.cases.delete(name, EVERYTHING)
    clean = await CaseAuditor(stores.cases, stores.index, stores.keys, stores.agents).audit()
    assert not clean.needs_a_person
    await stores.writer.delete(BOILER, EVERYTHING)
    assert (await CaseAuditor(stores.cases, stores.index, stores.keys, stores.agents).audit()).counts["stale"] == 2


async def test_the_audit_names_cases_with_an_open_thumbs_down(stores: Stores) -> None:
    taxonomy, _, _ = await filled(stores)
    [passage] = (await stores.index.fetch([f"{LEAVE}:0"], EVERYTHING, taxonomy)).values()
    live = CitedPassage(passage.chunk_id, content_hash(passage.text))
    names = ("down", "taken back", "reviewed", "up", "archived")
    for number, name in enumerate(names):
        status = "archived" if name == "archived" else "active"
        await add(stores, replace(case(name, f"Question {number}?", ["HR"], status=status), passages=(live,)))
        await voted(stores, name, name == "up")
    await add(stores, case("only suggested", "Without passages?"))
    await voted(stores, "only suggested", False)
    auditor = CaseAuditor(stores.cases, stores.index, stores.keys, stores.agents)

    async def voted_down() -> dict[str, str]:
        audit = await auditor.audit()
        rows = {row.case_id: row.details for row in audit.findings if row.finding == "voted_down"}
        assert audit.needs_a_person is bool(rows)
        return rows

    assert sorted(await voted_down()) == ["down", "reviewed", "taken back"]
    later = NOON + timedelta(hours=1)
    await stores.cases.vote(vote("taken back", log_id="again", voter="v0", at=later), EVERYTHING)
    await stores.cases.vote(vote("reviewed", log_id=f"{REVIEW_LOG}1", voter="reviewer", at=later), EVERYTHING)
    await stores.cases.vote(vote("down", DOWN, log_id="other", voter="v1", success=False, at=later), EVERYTHING)
    assert await voted_down() == {"down": "2 open: decide about its question in dtrag review, or archive it"}
    await stores.cases.change("down", CaseChange(status="archived"), later, EVERYTHING)
    assert await voted_down() == {}


async def test_a_superseded_article_is_not_valid_except_on_its_day(stores: Stores) -> None:
    old = edition(FIRST, "A kettle.", "A boiler.")
    await stores.writer.write([old])
    await stores.writer.write([edition(SECOND, "A kettle.", "A furnace.", later=LATER)])
    cited = (CitedPassage(f"{old.document_id}:1", content_hash("A boiler.")),)
    await add(
        stores,
        replace(case("today", "Boiler?"), passages=cited),
        replace(case("that day", "Boiler?", as_of=FIRST), passages=cited),
    )
    audit = await CaseAuditor(stores.cases, stores.index, stores.keys, stores.agents).audit()
    stale = {row.case_id: row.details for row in audit.findings if row.finding == "stale"}
    assert stale == {"today": "not valid"}
    assert audit.reusable == 1


async def test_a_case_that_was_shown_before_many_other_answers_stays(stores: Stores) -> None:
    await add(stores, case("shown", "A?", at=LONG_AGO), case("unused", "B?", at=LONG_AGO))
    shown = CaseLog(log_id="s", timestamp=NOON - timedelta(days=2), query="", kind="answer", shown_case_id="shown")
    await stores.cases.add_log(shown)
    await stores.cases.add_log(replace(shown, log_id="old", timestamp=LONG_AGO, shown_case_id="unused"))
    assert await stores.cases.shown_since(NOON - timedelta(days=90)) == {"shown": shown.timestamp}
    assert [each.case.case_id for each in (await consolidation(stores).run()).archived] == ["unused"]


async def test_a_deleted_case_leaves_the_interactions_that_name_others(stores: Stores) -> None:
    await add(stores, case("a"), case("b"))
    own = CaseLog(log_id="own", timestamp=NOON, query="", suggested_case_ids=("a",), picked_case_ids=("a",))
    both = CaseLog(
        log_id="both",
        timestamp=NOON,
        query="",
        suggested_case_ids=("a", "b"),
        picked_case_ids=("a",),
        shown_case_id="a",
    )
    for log in (own, both):
        await stores.cases.add_log(log)
    assert await stores.cases.delete("a", EVERYTHING)
    remaining = replace(both, suggested_case_ids=("b",), picked_case_ids=(), shown_case_id=None)
    assert await stores.cases.logs(EVERYTHING, 10) == [remaining]
    assert await stores.cases.delete("b", EVERYTHING)
    assert await stores.cases.logs(EVERYTHING, 10) == []
