"""What stores of the case memory must do."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from dtrag.core.access.scope import EVERYTHING, PUBLISHED, Scope
from dtrag.core.cases.case import (
    Case,
    CaseChange,
    CaseLog,
    CaseQuery,
    CitedPassage,
    DecisionCounts,
    FeedbackType,
    QuestionVector,
    ReuseDecision,
    SimilarityMethod,
)
from dtrag.core.cases.index import admits, cosine, order, question_hash, similarity
from dtrag.core.cases.statistics import VoterCount
from dtrag.core.cases.votes import CountedVote, Replacement, bounded
from dtrag.core.documents import document_id
from dtrag.ports import Stores
from tests.builders import (
    KETTLE,
    LEAVE,
    MINUTE,
    NOON,
    NOTHING,
    branch_nodes,
    case,
    chunk_id,
    filled,
    indexed_document,
    vote,
)

UP, DOWN, SELECTED, IGNORED = (
    FeedbackType.THUMBS_UP,
    FeedbackType.THUMBS_DOWN,
    FeedbackType.SELECTED,
    FeedbackType.IGNORED,
)


def log(log_id: str, minutes: int = 0, **values: Any) -> CaseLog:
    """An interaction some minutes after noon."""
    return CaseLog(log_id=log_id, timestamp=NOON + minutes * MINUTE, query=values.pop("query", "a question"), **values)


def decision(case_id: str, log_id: str, *, correct: bool, asked_in: frozenset[int] | None = None) -> ReuseDecision:
    """A decision of a replay."""
    return ReuseDecision(
        case_id=case_id, log_id=log_id, kind="replay", correct=correct, at=NOON, asker=log_id, asked_in=asked_in
    )


def case_similarity(query: CaseQuery, case: Case) -> float:
    """How alike the query and the question of the case are: of a case without text 1.0 for the same question."""
    if query.method is SimilarityMethod.SEMANTIC:
        return cosine(query.vector, case.vector)
    if not case.query:
        return 1.0 if case.query_hash and case.query_hash == question_hash(query.text) else 0.0
    return similarity(query.text, case.query, query.method)


def brute_force(cases: list[Case], query: CaseQuery) -> list[tuple[str, float]]:
    """The nearest cases by comparing every one."""
    scored = [(each, case_similarity(query, each)) for each in cases if admits(query, each)]
    scored.sort(key=lambda pair: order(*pair))
    return [(each.case_id, score) for each, score in scored[: query.limit]]


WIDER = ("asked in both", "asked in the whole tree")
"""Cases of a visible category and document, with questions of a wider scope."""


async def nearest(stores: Stores, query: CaseQuery, scope: Scope = EVERYTHING) -> list[tuple[str, float]]:
    """Ids and similarities."""
    return [(each.case_id, score) for each, score in await stores.cases.nearest(query, scope)]


def random_case(random_source: random.Random, number: int) -> Case:
    """One of few words, so that there are many ties."""
    words = random_source.choices(["leave", "days", "Days", "pay", "휴가", "며칠"], k=random_source.randint(1, 5))
    values = np.array(random_source.choices([0.0, 1.0], k=4), np.float32).tobytes()
    vector = QuestionVector(random_source.choice(["toy@1", "toy@1", "other@1"]), values)
    return case(
        f"case-{number}",
        " ".join(words) if random_source.random() < 0.9 else "",
        random_source.choice([("A",), ("A", "B"), ("C",)]),
        quality_score=random_source.choice([0.2, 0.5, 0.8]),
        usage_count=random_source.randint(0, 2),
        status=random_source.choice(["active", "active", "active", "archived"]),
        vector=random_source.choice([vector, None]),
    )


def random_query(random_source: random.Random) -> CaseQuery:
    """A search in the cases of `random_case`."""
    return CaseQuery(
        text=" ".join(random_source.choices(["leave", "DAYS", "pay", "휴가", "other"], k=random_source.randint(1, 4))),
        limit=random_source.randint(1, 12),
        method=random_source.choice(list(SimilarityMethod)),
        category_path=random_source.choice([None, ("A",), ("C",)]),
        prefix=random_source.random() < 0.5,
        min_quality=random_source.choice([0.0, 0.5, 0.6]),
        vector=QuestionVector("toy@1", np.array([1, 1, 0, 1], np.float32).tobytes()),
    )


class TestCases:
    """Cases and their similarity."""

    async def test_a_case_is_given_back_as_it_was_stored(self, stores: Stores) -> None:
        stored = case(
            "one",
            "휴가는 며칠인가요? 😀",
            ("인사", "휴가"),
            passages=[chunk_id(document_id("test:a"), 2), "no document"],
            quality_score=0.75,
            usage_count=3,
            success_rate=0.5,
            metadata={"version": "2.0", "list": [1, None]},
            origin="answer",
            author="kim",
            as_of=date(2024, 3, 1),
            asked_in=frozenset({7, 4}),
            upvotes=2,
            downvotes=1,
            vector=QuestionVector("toy@1", b"\0\0\x80?"),
        )
        assert await stores.cases.add(stored)
        assert not await stores.cases.add(case("one", "another question"))
        assert await stores.cases.get("one", EVERYTHING) == stored
        assert await stores.cases.of(["one", "two"], EVERYTHING) == {"one": stored}
        assert await stores.cases.get("two", EVERYTHING) is None

    async def test_given_fields_are_replaced(self, stores: Stores) -> None:
        stored = case("one", node_id=1, metadata={"a": 1}, vector=QuestionVector("toy@1", b"\0\0\x80?"))
        await stores.cases.add(stored)
        later = NOON + MINUTE
        changed = await stores.cases.change("one", CaseChange(quality_score=0.9), later, EVERYTHING)
        assert changed is not None
        assert changed[0] == stored
        assert (changed[1].quality_score, changed[1].updated_at, changed[1].vector) == (0.9, later, stored.vector)
        moved = CaseChange(query="new", query_hash=b"h", category_path=("AI", "ML"), content="c", metadata={})
        assert await stores.cases.change("one", moved, later, EVERYTHING) is not None
        after = await stores.cases.get("one", EVERYTHING)
        assert after is not None
        assert (after.query, after.category_path, after.node_id, after.vector) == ("new", ("AI", "ML"), None, None)
        assert (after.content, after.metadata, after.quality_score, after.created_at) == ("c", {}, 0.9, NOON)
        assert await stores.cases.change("two", moved, later, EVERYTHING) is None

    async def test_vectors_of_other_models_are_replaced(self, stores: Stores) -> None:
        old, new = QuestionVector("old@1", b"\0\0\x80?"), QuestionVector("new@1", b"\0\0\x80?\0\0\0\0")
        names = {"a": None, "b": old, "c": new, "d": None}
        for name, vector in names.items():
            await stores.cases.add(case(name, vector=vector, status="archived" if name == "d" else "active"))
        await stores.cases.add(case("textless", ""))
        missing = await stores.cases.without_vector(["new@1", "other@1"], 9)
        assert [each.case_id for each in missing] == ["a", "b"]
        assert [each.case_id for each in await stores.cases.without_vector(["new@1"], 1)] == ["a"]
        assert [each.case_id for each in await stores.cases.without_vector(["new@1"], 9, "a")] == ["b"]
        assert [each.case_id for each in await stores.cases.without_vector([], 9)] == ["a", "b", "c"]
        query = CaseQuery(text="q", limit=9, method=SimilarityMethod.SEMANTIC, vector=new)
        assert dict(await nearest(stores, query)) == {"a": 0.0, "b": 0.0, "c": 1.0, "textless": 0.0}
        changed, gone = replace(missing[1], query="another question by then"), case("gone")
        await stores.cases.put_vectors([(missing[0], new), (changed, new), (gone, new)])
        assert dict(await nearest(stores, query)) == {"a": 1.0, "b": 0.0, "c": 1.0, "textless": 0.0}
        kept = await stores.cases.get("b", EVERYTHING)
        assert kept is not None
        assert kept.vector == old

    async def test_a_deleted_case_takes_everything_that_names_only_it(self, stores: Stores) -> None:
        await stores.cases.add(case("one"))
        await stores.cases.add(case("two"))
        await stores.cases.add_log(log("both", suggested_case_ids=("one", "two")))
        await stores.cases.add_log(log("shown", shown_case_id="one"))
        await stores.cases.add_log(log("other", suggested_case_ids=("two",)))
        await stores.cases.vote(vote("one", log_id="picked"), EVERYTHING)
        await stores.cases.add_decision(decision("one", "r", correct=True))
        assert await stores.cases.delete("one", EVERYTHING)
        assert not await stores.cases.delete("one", EVERYTHING)
        assert {each.log_id for each in await stores.cases.logs(EVERYTHING, 10)} == {"both", "other"}
        assert await stores.cases.decisions() == DecisionCounts()
        await stores.cases.add(case("one"))
        assert await stores.cases.votes(["one"], EVERYTHING) == {"one": []}
        assert [key for key, _ in await nearest(stores, CaseQuery(text="days", limit=5))] == ["one", "two"]

    async def test_pages_follow_by_id(self, stores: Stores) -> None:
        for name in "bdca":
            await stores.cases.add(case(name, status="archived" if name == "c" else "active"))
        first = await stores.cases.page(EVERYTHING, 3)
        assert [each.case_id for each in first] == ["a", "b", "c"]
        assert [each.case_id for each in await stores.cases.page(EVERYTHING, 3, "c")] == ["d"]

    async def test_the_most_similar_come_first(self, stores: Stores) -> None:
        await stores.cases.add(case("ml", "machine learning algorithms", ("AI", "ML"), quality_score=0.8))
        await stores.cases.add(case("dl", "deep learning", ("AI", "ML")))
        await stores.cases.add(case("db", "database indexes", ("Database",)))
        query = CaseQuery(text="deep learning neural networks", limit=5)
        assert await nearest(stores, query) == [("dl", 0.5), ("ml", 1 / 6), ("db", 0.0)]
        database = CaseQuery(text="deep learning", limit=5, category_path=("Database",))
        assert [key for key, _ in await nearest(stores, database)] == ["db"]
        branch = CaseQuery(text="deep learning", limit=5, category_path=("AI",), prefix=True)
        assert [key for key, _ in await nearest(stores, branch)] == ["dl", "ml"]
        assert await nearest(stores, CaseQuery(text="deep learning", limit=5, category_path=("AI",))) == []

    async def test_a_category_is_compared_by_its_nodes(self, stores: Stores) -> None:
        for name, path, node_id in (("moved", ("Old",), 7), ("other", ("New",), 8), ("no-node", ("New",), None)):
            await stores.cases.add(case(name, "same words", path, node_id=node_id))
        query = CaseQuery(text="same words", limit=5, category_path=("New",))
        assert [key for key, _ in await nearest(stores, query)] == ["no-node", "other"]
        by_node = replace(query, nodes=frozenset({7}))
        assert [key for key, _ in await nearest(stores, by_node)] == ["moved", "no-node"]
        assert [key for key, _ in await nearest(stores, replace(query, nodes=frozenset()))] == ["no-node"]

    async def test_another_question_or_passage_forgets_what_confirmed_the_case(self, stores: Stores) -> None:
        passage = CitedPassage(chunk_id(document_id("test:a"), 0), b"h")
        for number, change in enumerate((CaseChange(query="new"), CaseChange(passages=(passage,)))):
            key = f"case-{number}"
            await stores.cases.add(replace(case(key), origin="answer", author="kim"))
            for voter, feedback in (("lee", FeedbackType.THUMBS_UP), ("cho", FeedbackType.THUMBS_DOWN)):
                await stores.cases.vote(vote(key, feedback, log_id=f"log-{voter}", voter=voter), EVERYTHING)
            for log_id, correct in (("one", True), ("two", False)):
                decision = ReuseDecision(
                    case_id=key, log_id=log_id, kind="replay", correct=correct, at=NOON, asker=log_id
                )
                await stores.cases.add_decision(decision)
            same = CaseChange(query=case(key).query, passages=(), author="eve")
            await stores.cases.change(key, same, NOON, EVERYTHING)
            assert await stores.cases.decisions(key) == DecisionCounts(1, 1)
            _, after = await stores.cases.change(key, replace(change, author="eve"), NOON, EVERYTHING) or (None, None)
            assert after is not None
            assert (after.origin, after.author, after.upvotes, after.downvotes) == ("manual", "eve", 0, 1)
            assert await stores.cases.get(key, EVERYTHING) == after
            assert await stores.cases.decisions(key) == DecisionCounts(0, 1)
            [record] = [each for each in await stores.cases.records(9) if each.case.case_id == key]
            assert [counted.vote.voter for counted in record.votes] == ["cho"]

    async def test_ties_go_by_quality_then_use_then_id(self, stores: Stores) -> None:
        for name, quality, uses in [("d", 0.5, 1), ("c", 0.5, 0), ("b", 0.5, 0), ("a", 0.4, 9), ("e", 0.9, 0)]:
            await stores.cases.add(case(name, "same words", quality_score=quality, usage_count=uses))
        assert [key for key, _ in await nearest(stores, CaseQuery(text="same", limit=9))] == ["e", "d", "b", "c", "a"]
        assert [key for key, _ in await nearest(stores, CaseQuery(text="none", limit=3))] == ["e", "d", "b"]

    async def test_changes_are_seen_at_once(self, stores: Stores) -> None:
        query = CaseQuery(text="annual leave", limit=2)
        await stores.cases.add(case("one", "annual leave"))
        assert await nearest(stores, query) == [("one", 1.0)]
        await stores.cases.change("one", CaseChange(query="sick leave"), NOON, EVERYTHING)
        assert await nearest(stores, query) == [("one", 1 / 3)]
        await stores.cases.change("one", CaseChange(status="archived"), NOON, EVERYTHING)
        assert await nearest(stores, query) == []
        await stores.cases.add(case("two", "annual leave"))
        assert await nearest(stores, query) == [("two", 1.0)]
        await stores.cases.delete("two", EVERYTHING)
        await stores.cases.add(case("two", "parental leave"))
        assert await nearest(stores, query) == [("two", 1 / 3)]

    @pytest.mark.parametrize("seed", range(3))
    async def test_the_nearest_are_those_of_comparing_every_case(self, stores: Stores, seed: int) -> None:
        random_source = random.Random(seed)  # nosec B311
        cases = {each.case_id: each for each in (random_case(random_source, number) for number in range(40))}
        for each in cases.values():
            await stores.cases.add(each)
        for number in range(60):
            query = random_query(random_source)
            expected = brute_force(list(cases.values()), query)
            assert await nearest(stores, query) == expected
            changed = random_case(random_source, number % 40)
            if number % 3 == 0:
                await stores.cases.delete(changed.case_id, EVERYTHING)
                await stores.cases.add(changed)
                cases[changed.case_id] = changed

    async def test_a_case_without_text_is_found_by_the_same_question(self, stores: Stores) -> None:
        stored = case("one", "How many  DAYS?")
        await stores.cases.add(Case(**{name: getattr(stored, name) for name in stored.__slots__} | {"query": ""}))
        assert await nearest(stores, CaseQuery(text="how many days?", limit=1)) == [("one", 1.0)]
        assert await nearest(stores, CaseQuery(text="how many weeks?", limit=1)) == [("one", 0.0)]

    async def test_a_copy_holds_everything(self, stores: Stores) -> None:
        await stores.cases.add(case("one"))
        await stores.cases.vote(vote("one", voter="kim"), EVERYTHING)
        await stores.cases.add_decision(decision("one", "r", correct=True))
        await stores.cases.add_log(log("a", 1, kind="answer", details={"confidence": 0.5}, as_of=date(2024, 1, 2)))
        (record,) = await stores.cases.records(10)
        logs = await stores.cases.log_page(10)
        assert [each.log_id for each in logs] == ["a", "log"]
        assert [each.log_id for each in await stores.cases.log_page(10, "a")] == ["log"]
        assert await stores.cases.records(10, "one") == []
        assert not await stores.cases.put(record)
        await stores.cases.delete("one", EVERYTHING)
        assert await stores.cases.put(record)
        assert list(await stores.cases.records(10)) == [record]
        assert await stores.cases.log("a", "") == logs[0]


class TestCaseReplacements:
    """Several cases are replaced together, or none of them."""

    async def test_cases_are_replaced_with_their_votes(self, stores: Stores) -> None:
        for name in ("a", "b"):
            await stores.cases.add(case(name))
        await stores.cases.vote(vote("a", UP, log_id="l1", voter="kim"), EVERYTHING)
        before = await stores.cases.of(["a", "b"], EVERYTHING)
        after = [replace(before["a"], usage_count=7), replace(before["b"], status="archived", metadata={"n": [1]})]
        copy = CountedVote(vote("b", DOWN, log_id="copy", voter="lee"), 0.0)
        first, second = Replacement(before["a"], after[0]), Replacement(before["b"], after[1], (copy,))
        assert await stores.cases.replace([first, second])
        assert list((await stores.cases.of(["a", "b"], EVERYTHING)).values()) == after
        assert [each.log_id for each in (await stores.cases.votes(["b"], EVERYTHING))["b"]] == ["copy"]
        assert not await stores.cases.replace([first])  # it is not stored like this any more
        removal = Replacement(after[1], before["b"], removed=frozenset({"copy"}))
        assert not await stores.cases.replace([removal, first])
        assert (await stores.cases.votes(["b"], EVERYTHING))["b"] != []
        assert await stores.cases.replace([removal])
        assert (await stores.cases.votes(["a", "b"], EVERYTHING))["b"] == []
        assert (await stores.cases.get("b", EVERYTHING)) == before["b"]
        assert not await stores.cases.replace([Replacement(case("unknown"), case("unknown"))])
        assert await stores.cases.replace([])

    async def test_replaced_cases_are_found_as_they_are_now(self, stores: Stores) -> None:
        await stores.cases.add(case("a", "annual leave"))
        query = CaseQuery(text="annual leave", limit=5)
        assert [name for name, _ in await nearest(stores, query)] == ["a"]
        stored = await stores.cases.get("a", EVERYTHING)
        assert stored is not None
        assert await stores.cases.replace([Replacement(stored, replace(stored, status="archived"))])
        assert await nearest(stores, query) == []

    async def test_a_vote_and_a_replacement_exclude_each_other(self, stores: Stores) -> None:
        await stores.cases.add(case("a"))
        stored = await stores.cases.get("a", EVERYTHING)
        assert stored is not None
        done, voted = await asyncio.gather(
            stores.cases.replace([Replacement(stored, replace(stored, content="other"))]),
            stores.cases.vote(vote("a", UP, log_id="l1", voter="kim"), EVERYTHING),
        )
        now = await stores.cases.get("a", EVERYTHING)
        assert voted is not None
        assert now is not None
        assert (now.usage_count, now.content == "other") == (1, done)


class TestCaseVotes:
    """Votes are exact, and each counts once."""

    async def test_a_vote_moves_quality_and_use(self, stores: Stores) -> None:
        await stores.cases.add(case("one", quality_score=0.6))
        expected = [(UP, 0.7, 1), (SELECTED, 0.8, 2), (IGNORED, 0.8, 3), (DOWN, 0.7, 4)]
        for number, (feedback, quality, uses) in enumerate(expected):
            after = await stores.cases.vote(vote("one", feedback, log_id=f"log-{number}"), EVERYTHING)
            assert after is not None
            assert (after.quality_score, after.usage_count) == (quality, uses)
            assert await stores.cases.get("one", EVERYTHING) == after
        assert after is not None
        assert (after.upvotes, after.downvotes, after.success_rate) == (2, 1, 1.0)

    async def test_the_same_vote_again_changes_nothing(self, stores: Stores) -> None:
        await stores.cases.add(case("one"))
        first = await stores.cases.vote(vote("one"), EVERYTHING)
        again = await stores.cases.vote(vote("one", at=NOON + MINUTE), EVERYTHING)
        assert first == again
        assert len((await stores.cases.votes(["one"], EVERYTHING))["one"]) == 1

    async def test_another_vote_replaces_the_first(self, stores: Stores) -> None:
        await stores.cases.add(case("one"))
        await stores.cases.vote(vote("one", UP), EVERYTHING)
        after = await stores.cases.vote(vote("one", DOWN, success=False), EVERYTHING)
        assert after is not None
        assert (after.quality_score, after.usage_count, after.success_rate) == (0.4, 1, 0.0)
        assert (after.upvotes, after.downvotes) == (0, 1)
        voted = await stores.cases.log("log", "")
        assert voted is not None
        assert (voted.success, voted.feedback, voted.picked_case_ids) == (False, DOWN, ())

    async def test_quality_stays_within_its_bounds(self, stores: Stores) -> None:
        await stores.cases.add(case("one", quality_score=0.95))
        after = await stores.cases.vote(vote("one", UP), EVERYTHING)
        assert after is not None
        assert after.quality_score == 1.0
        back = await stores.cases.vote(vote("one", IGNORED), EVERYTHING)
        assert back is not None
        assert back.quality_score == 0.95

    async def test_the_author_moves_the_own_case_by_three_steps(self, stores: Stores) -> None:
        await stores.cases.add(case("one", author="kim", quality_score=0.2))
        for number in range(6):
            await stores.cases.vote(vote("one", log_id=f"log-{number}", voter="kim"), EVERYTHING)
        after = await stores.cases.vote(vote("one", voter="lee"), EVERYTHING)
        assert after is not None
        assert (after.quality_score, after.usage_count) == (0.6, 7)

    async def test_concurrent_votes_all_count(self, stores: Stores) -> None:
        await stores.cases.add(case("one", quality_score=0.5))
        votes = [vote("one", (UP, DOWN)[n % 2], log_id=f"log-{n}", success=n % 4 == 0) for n in range(200)]
        await asyncio.gather(*(stores.cases.vote(each, EVERYTHING) for each in votes))
        after = await stores.cases.get("one", EVERYTHING)
        assert after is not None
        assert (after.usage_count, after.upvotes, after.downvotes, after.success_rate) == (200, 100, 100, 0.25)
        counted = (await stores.cases.records(1))[0].votes
        assert bounded(0.5 + sum(each.moved for each in counted)) == after.quality_score

    async def test_a_vote_completes_its_interaction(self, stores: Stores) -> None:
        await stores.cases.add(case("one"))
        await stores.cases.add_log(log("log", suggested_case_ids=("one",), similarity_method="cosine", user_id="kim"))
        await stores.cases.vote(vote("one", SELECTED, voter="kim"), EVERYTHING)
        voted = await stores.cases.log("log", "kim")
        assert voted is not None
        assert (voted.feedback, voted.success, voted.picked_case_ids) == (SELECTED, True, ("one",))
        assert await stores.cases.log("log", "lee") is None
        await stores.cases.add_log(log("log", query="other", user_id="kim"))
        assert await stores.cases.log("log", "kim") == voted
        await stores.cases.vote(vote("one", log_id="unknown"), EVERYTHING)
        own = await stores.cases.log("unknown", "")
        assert own is not None
        assert own.case_ids == {"one"}
        await stores.cases.add(case("two", asked_in=frozenset({5})))
        await stores.cases.vote(vote("two", log_id="another"), EVERYTHING)
        own = await stores.cases.log("another", "")
        assert own is not None and own.asked_in == frozenset({5})  # it has the question of the case

    async def test_a_vote_on_an_unknown_case_is_none(self, stores: Stores) -> None:
        assert await stores.cases.vote(vote("one"), EVERYTHING) is None
        assert await stores.cases.log("log", "") is None


class TestCaseLogs:
    """Interactions, decisions and figures."""

    async def test_the_newest_interactions_come_first(self, stores: Stores) -> None:
        for minutes, name in enumerate("abc"):
            await stores.cases.add_log(log(name, minutes, success=name != "b"))
        assert [each.log_id for each in await stores.cases.logs(EVERYTHING, 2)] == ["c", "b"]
        assert [each.log_id for each in await stores.cases.logs(EVERYTHING, 9, success_only=True)] == ["c", "a"]
        assert await stores.cases.forget_logs(NOON + 2 * MINUTE) == 2
        assert [each.log_id for each in await stores.cases.logs(EVERYTHING, 9)] == ["c"]

    async def test_concurrent_interactions_are_all_stored(self, stores: Stores) -> None:
        await asyncio.gather(*(stores.cases.add_log(log(f"log-{number}", number)) for number in range(50)))
        assert len(await stores.cases.logs(EVERYTHING, 100)) == 50

    async def test_the_scope_of_the_answer_is_stored(self, stores: Stores) -> None:
        for key, nodes in (("whole", None), ("nothing", frozenset[int]()), ("branch", frozenset({3, 1}))):
            await stores.cases.add(replace(case(key), origin="answer", answered_in=nodes))
            stored = await stores.cases.get(key, EVERYTHING)
            assert stored is not None
            assert stored.answered_in == nodes
        changed = await stores.cases.change("branch", CaseChange(query="new"), NOON, EVERYTHING)
        assert changed is not None
        assert changed[1].answered_in is None  # a question of an editor
        assert await stores.cases.get("branch", EVERYTHING) == changed[1]

    async def test_only_a_chosen_category_is_an_audience(self, stores: Stores) -> None:
        await stores.cases.add(case("one", asked_in=None))
        kept = await stores.cases.change("one", CaseChange(query="new", content="c", passages=()), NOON, EVERYTHING)
        assert kept is not None and kept[1].asked_in is None
        chosen = await stores.cases.change("one", CaseChange(category_path=("Handbook",)), NOON, EVERYTHING)
        assert chosen is not None and chosen[1].asked_in == PUBLISHED
        assert await stores.cases.get("one", EVERYTHING) == chosen[1]

    async def test_decisions_are_counted(self, stores: Stores) -> None:
        await stores.cases.add(case("one"))
        await stores.cases.add(case("two"))
        for name, correct in [("r", True), ("s", True), ("t", False)]:
            await stores.cases.add_decision(decision("one", name, correct=correct))
        await stores.cases.add_decision(decision("two", "r", correct=True))
        await stores.cases.add_decision(decision("one", "s", correct=False))
        assert await stores.cases.decisions("one") == DecisionCounts(1, 2)
        assert await stores.cases.decisions() == DecisionCounts(2, 2)
        await stores.cases.add_decision(decision("unknown", "r", correct=False))
        await stores.cases.add_decision(replace(decision("one", "r", correct=False), kind="vote", log_id="later"))
        await stores.cases.add_decision(decision("one", "r", correct=True))
        assert await stores.cases.decisions() == DecisionCounts(1, 3)  # no case; a vote stays
        _, machines, staff = await filled(stores)
        (node,) = branch_nodes(machines)
        await stores.cases.add(case("three", node_id=node, passages=[chunk_id(KETTLE)]))
        await stores.cases.add(case("four", node_id=node, passages=[chunk_id(KETTLE), chunk_id(LEAVE)]))
        for name in ("three", "four"):
            await stores.cases.add_decision(decision(name, "r", correct=True, asked_in=machines.nodes))
            await stores.cases.add_decision(decision(name, "whole tree", correct=False))
            await stores.cases.add_decision(
                decision(
                    name, "both", correct=False, asked_in=(machines.nodes or PUBLISHED) | (staff.nodes or PUBLISHED)
                )
            )
        assert await stores.cases.decisions(scope=machines) == DecisionCounts(1, 0)
        assert await stores.cases.decisions("three", machines) == DecisionCounts(1, 0)
        assert await stores.cases.decisions("three", staff) == DecisionCounts()
        assert await stores.cases.decisions("four", machines) == DecisionCounts()

    async def test_figures(self, stores: Stores) -> None:
        empty = await stores.cases.statistics(EVERYTHING)
        assert (empty.total_cases, empty.success_rate, empty.most_used_case) == (0, 0.0, None)
        await stores.cases.add(case("one", quality_score=0.6))
        await stores.cases.add(case("two", path=("Handbook", "Leave"), quality_score=0.8, usage_count=4))
        await stores.cases.add(case("old", quality_score=0.1, status="archived"))
        await stores.cases.add_log(log("a", similarity_method="cosine", execution_time_ms=2.0))
        await stores.cases.add_log(log("b", similarity_method="cosine", execution_time_ms=4.0))
        await stores.cases.vote(vote("one", log_id="b"), EVERYTHING)
        await stores.cases.vote(vote("one", DOWN, log_id="c", success=False), EVERYTHING)
        figures = await stores.cases.statistics(EVERYTHING)
        assert (figures.total_cases, figures.archived_cases, figures.total_usage_count) == (2, 1, 6)
        assert figures.total_interactions == 3  # two suggestions, of which one has a vote, and a vote on its own
        assert (figures.rated_interactions, figures.successful_interactions, figures.success_rate) == (2, 1, 0.5)
        assert figures.average_response_time_ms == pytest.approx(3.0)
        assert figures.average_quality_score == pytest.approx(0.5)
        assert figures.most_used_case == "two"
        assert figures.category_distribution == {"Handbook": 2, "Handbook/Leave": 1}
        assert figures.similarity_method_usage == {"cosine": 2}

    async def test_figures_by_node_and_by_voter(self, stores: Stores) -> None:
        await stores.cases.add(case("new", path=("HR", "Leave"), node_id=7))
        await stores.cases.add(case("old", path=("Staff", "Leave"), node_id=7))
        await stores.cases.add(case("outside", path=("Staff", "Leave")))
        await stores.cases.add_log(log("answer", kind="answer", user_id="kim"))
        await stores.cases.add_log(log("unvoted", user_id="kim"))
        for log_id, voter, success in (("answer", "kim", True), ("first", "kim", False), ("second", "lee", True)):
            await stores.cases.vote(vote("new", log_id=log_id, voter=voter, success=success), EVERYTHING)
        figures = await stores.cases.statistics(EVERYTHING)
        assert [(each.node_id, each.cases) for each in figures.largest_categories] == [(7, 2), (None, 1)]
        assert figures.category_distribution == {"Staff/Leave": 3}
        assert sorted(figures.voters, key=lambda each: (each.user_id, each.answered)) == [
            VoterCount("kim", False, 1, 0),
            VoterCount("kim", True, 1, 1),
            VoterCount("lee", False, 1, 1),
        ]


class TestCaseSight:
    """A case is in scope with its category and every document that it cites."""

    async def test_only_cases_in_scope_are_there(self, stores: Stores) -> None:
        _, machines, staff = await filled(stores)
        kettle, salary = chunk_id(document_id("test:kettle")), chunk_id(document_id("test:salary"))
        (node,) = branch_nodes(staff)
        inside = min(machines.nodes or ())
        cases = [
            case("seen", node_id=inside, passages=[kettle]),
            case("foreign", node_id=node, passages=[salary]),
            case("foreign passage", node_id=inside, passages=[kettle, salary]),
            case("deleted passage", node_id=inside, passages=[chunk_id(document_id("test:deleted"))]),
            case("nowhere"),
            case("asked in both", node_id=inside, passages=[kettle], asked_in=frozenset({inside, node})),
            case("asked in the whole tree", node_id=inside, passages=[kettle], asked_in=None),
        ]
        for each in cases:
            await stores.cases.add(each)
            asked = log(
                f"log of {each.case_id}", node_id=inside, shown_case_id=each.case_id, asked_in=frozenset({inside})
            )
            await stores.cases.add_log(asked)
        for number, wider in enumerate((None, frozenset({inside, node}))):
            await stores.cases.add_log(log(f"wider {number}", node_id=inside, shown_case_id="seen", asked_in=wider))
        hidden = [each.case_id for each in cases[1:]]
        await self.check_reads(stores, machines, {"seen"})
        await self.check_reads(stores, NOTHING, set())
        await self.check_reads(stores, EVERYTHING, {each.case_id for each in cases})
        for case_id in hidden:
            assert await stores.cases.vote(vote(case_id), machines) is None
            assert await stores.cases.change(case_id, CaseChange(content="x"), NOON, machines) is None
            assert not await stores.cases.delete(case_id, machines)
            assert not await stores.cases.add(case(case_id))
        assert await stores.cases.of(hidden, EVERYTHING) == {each.case_id: each for each in cases[1:]}
        assert await stores.cases.vote(vote("seen"), machines) is not None
        assert await stores.cases.change("seen", CaseChange(content="x"), NOON, machines) is not None
        assert await stores.cases.delete("seen", machines)

    async def check_reads(self, stores: Stores, scope: Scope, expected: set[str]) -> None:
        """All reads give the same cases."""
        every = ["seen", "foreign", "foreign passage", "deleted passage", "nowhere", *WIDER]
        assert set(await stores.cases.of(every, scope)) == expected
        assert {each.case_id for each in await stores.cases.page(scope, 10)} == expected
        assert {key for key, _ in await nearest(stores, CaseQuery(text="days", limit=10), scope)} == expected
        by_limit = await nearest(stores, CaseQuery(text="days", limit=1), scope)
        assert len(by_limit) == min(1, len(expected))
        assert set(await stores.cases.votes(every, scope)) == expected
        logs = await stores.cases.logs(scope, 20)
        assert {each.shown_case_id for each in logs} == expected
        assert scope.nodes is None or not any(each.log_id.startswith("wider") for each in logs)
        assert (await stores.cases.statistics(scope)).total_cases == len(expected)

    async def test_a_document_that_moves_takes_its_cases_along(self, stores: Stores) -> None:
        _, machines, staff = await filled(stores)
        (node,) = branch_nodes(staff)
        kettle = document_id("test:kettle")
        await stores.cases.add(case("one", node_id=min(machines.nodes or ()), passages=[chunk_id(kettle)]))
        assert await stores.cases.get("one", machines) is not None
        await stores.writer.write([indexed_document("test:kettle", ["Moved."], node_id=node, replaces=True)])
        assert await stores.cases.get("one", machines) is None
        assert await nearest(stores, CaseQuery(text="days", limit=3), machines) == []

    async def test_many_hidden_cases_do_not_push_others_out(self, stores: Stores) -> None:
        _, machines, _ = await filled(stores)
        node = min(machines.nodes or ())
        for number in range(300):
            await stores.cases.add(case(f"a-{number:03}", "annual leave", node_id=node, passages=["hidden:0"]))
        await stores.cases.add(case("seen", "sick leave", node_id=node))
        assert await nearest(stores, CaseQuery(text="annual leave", limit=1), machines) == [("seen", 1 / 3)]
