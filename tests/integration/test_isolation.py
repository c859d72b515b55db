"""The proof of isolation can fail: it finds what broken gates let out; and one gate holds what the other lets by."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.unscoped import UnscopedReads
from dtrag.app import App, open_app, open_throwaway
from dtrag.core.access.scope import NO_FILTERS, Scope, SearchFilters
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.delivery.isolation.http import (
    case_memory_enabled,
    load_garden,
    plant_canaries,
    plant_cases,
    prove,
    service_call,
)
from dtrag.errors import InvalidInput
from dtrag.evaluation.canaries import Garden, Identity, WordHashes, identities
from dtrag.evaluation.isolation import Proof, run_isolation_test
from dtrag.evaluation.live_garden import LiveGarden
from dtrag.settings import Settings, set_feature_flag
from tests.cases import each
from tests.store import Store

EVERYTHING = Scope.everything()
REQUESTS, DOCUMENTS, NODES = 300, 300, 30


@dataclass
class Planted:
    """An index with canaries, and those who try to see them."""

    app: App
    garden: Garden
    callers: list[Identity]

    async def run(self, **more: Any) -> Proof:
        return await run_isolation_test(self.app, self.garden, self.callers, REQUESTS, seed=5, **more)


@pytest_asyncio.fixture
async def house(settings: Settings) -> AsyncIterator[Planted]:
    async with open_throwaway(settings, WordHashes()) as app:
        paths, texts = await plant_canaries(app, DOCUMENTS, NODES, 5)
        garden = await load_garden(app, texts)
        yield Planted(app, garden, identities(garden.taxonomy, paths, 8, 5))


def break_gate_one(house: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates are proposed without a look at the scope."""
    index = house.app.index
    for name in ("lexical", "strict", "vectors"):
        whole = getattr(index, name)

        async def unscoped(query: Any, scope: Scope, *rest: Any, _whole: Any = whole) -> dict[str, float]:
            found: dict[str, float] = await _whole(query, EVERYTHING, *rest)
            return found

        monkeypatch.setattr(index, name, unscoped)


def break_gate_two(house: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are fetched without a look at the scope."""
    whole = house.app.index.fetch

    async def unscoped(
        keys: Sequence[str], scope: Scope, taxonomy: Taxonomy, filters: SearchFilters = NO_FILTERS
    ) -> dict[str, SearchResult]:
        return await whole(keys, EVERYTHING, taxonomy, filters)

    monkeypatch.setattr(house.app.index, "fetch", unscoped)


async def test_no_content_leaks_on_any_route(house: Planted) -> None:
    proof = await house.run(call=await service_call(house.app, house.callers))
    assert proof.examples == []
    assert not proof.failed
    assert proof.requests == REQUESTS == proof.paths.total()
    assert len(proof.paths) > 15
    assert any(path.startswith("HTTP") for path in proof.paths)


async def test_no_case_leaks_on_any_route(house: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    call = await service_call(house.app, house.callers)
    with case_memory_enabled():
        await plant_cases(house.app, house.garden)
        proof = await house.run(call=call)
        assert proof.examples == []
        assert {"cases: counts", "cases: suggestions for foreign words"} <= proof.paths.keys()
        assert any(path.startswith("HTTP GET /cbr/") for path in proof.paths)
        store = house.app.case_store
        for method in ("nearest", "statistics"):
            whole = getattr(store, method)

            async def of_everything(*values: Any, _whole: Any = whole) -> Any:
                return await _whole(*(EVERYTHING if isinstance(value, Scope) else value for value in values))

            monkeypatch.setattr(store, method, of_everything)
        proof = await house.run()
        assert min(proof.kinds[kind] for kind in ("content", "counts")) > 0


async def test_row_security_blocks_what_the_scope_filter_misses(
    house: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_gate_one(house, monkeypatch)
    proof = await house.run()
    assert proof.kinds["content"] == 0, proof.examples
    assert proof.kinds["statistics"] > 0, "numbers of candidates tell of foreign words, and that is noticed"


async def test_two_broken_gates_are_caught(house: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    break_gate_one(house, monkeypatch)
    break_gate_two(house, monkeypatch)
    proof = await house.run()
    assert proof.kinds["content"] > 10
    assert proof.examples[0].identity.startswith("canary-")
    assert proof.as_dict()["leaks"] >= proof.kinds["content"]


async def test_a_broken_second_gate_alone_is_caught(house: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    break_gate_two(house, monkeypatch)
    proof = await house.run()
    assert proof.kinds["content"] > 0
    assert {leak.path for leak in proof.examples} == {"index: fetch"}


async def test_wrong_counts_revealing_answers_and_log_lines_are_detected(
    house: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def counts(*, scope: Any = None) -> tuple[int, int]:
        logging.getLogger("dtrag.app").error("counting for %s", house.garden.hidden[0].words[0])
        return (DOCUMENTS, DOCUMENTS)

    async def document(document_id: str, *, scope: Any = None) -> Any:
        known = document_id in house.garden.node_of
        raise InvalidInput("You may not see it." if known else "There is none.")

    monkeypatch.setattr(house.app, "counts", counts)
    monkeypatch.setattr(house.app, "document", document)
    proof = await house.run()
    assert min(proof.kinds[kind] for kind in ("counts", "existence", "log")) > 0


async def two_branches(app: App, folder: Path) -> None:
    """Three documents in each of two branches, and one that waits for a category."""
    for branch in ("One", "Two"):
        files = [folder / f"{branch}{number}.md" for number in range(3)]
        for number, file in enumerate(files):
            file.write_text(f"# {branch} {number}\n\nThe lantern of {branch} number {number}.", "utf-8")
        await app.ingest(files, category=branch)
    waiting = folder / "waiting.md"
    waiting.write_text("# Waiting\n\nThe orchard of the violin.", "utf-8")
    await app.ingest([waiting])


async def test_a_live_index_is_only_read(settings: Settings, tmp_path: Path) -> None:
    async with open_app(settings) as app:
        with pytest.raises(InvalidInput, match="no documents"):
            await prove(settings, requests=5, live=True)
        await two_branches(app, tmp_path)
        before = (await app.index.snapshot()).generation
        for seed in range(1, 5):  # documents without a category are requested, too
            proof = await prove(settings, requests=100, live=True, seed=seed)
            assert (proof.documents, proof.nodes, proof.examples) == (7, 3, [])
        assert (await app.index.snapshot()).generation == before
        assert await app.keys.every() == []


MANY = 20_500


async def test_a_live_index_of_many_documents_gives_no_false_alarm(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    async with open_app(settings) as app:
        await two_branches(app, tmp_path)
        store.rows(
            "insert into documents select (jsonb_populate_record(d, jsonb_build_object("
            "'document_id', gen_random_uuid(), 'source_id', gen_random_uuid(), 'chunks', 0))).*"
            f" from documents d, generate_series(1, {MANY}) where title = 'Two 1'"
        )
        proof = await prove(settings, requests=200, live=True)
        assert (proof.documents, proof.examples) == (MANY + 7, [])
        assert proof.paths["documents: counts"] > 0


POLICIES = {
    "documents": "documents",
    "chunks": "chunks",
    "imagined_questions": "imagined",
    "cbr_cases": "cases",
    "cbr_logs": "logs",
}
"""Table -> the beginning of the name of its policy for callers."""


CONDITIONS = {
    "documents": {"node_id"},
    "chunks": {"node_id"},
    "imagined_questions": {"node_id"},
    "cbr_cases": {"node_id", "asked_in", "document_ids"},
    "cbr_logs": {"node_id", "asked_in", "document_ids", "case_ids"},
}
"""Columns that the policies depend on."""


def test_the_policies_are_those_that_are_compared(settings: Settings, store: Store) -> None:
    """A new table under row-level security, and a new condition, belong into `sql/unscoped.sql`, too."""
    rows = store.rows("select tablename, qual from pg_policies where 'dtrag_reader' = any (roles)")
    columns = store.rows("select table_name, column_name from information_schema.columns where table_schema = 'dtrag'")
    used = {
        table: {name for owner, name in columns if owner == table and re.search(rf"(?<!::)\b{name}\b", condition)}
        for table, condition in rows
    }
    assert used == CONDITIONS
    assert used.keys() == POLICIES.keys()


@each(
    "statement",
    [
        "alter table {0} disable row level security",
        "drop policy {1}_in_scope on {0}",
        "drop policy {1}_in_scope on {0}; create policy {1}_in_scope on {0} for select to dtrag_reader using (true)",
    ],
)
async def test_a_dropped_policy_of_a_live_index_is_found(
    settings: Settings, store: Store, tmp_path: Path, statement: str
) -> None:
    """Whether it shows everything, or nothing."""
    async with open_app(settings) as app:
        await two_branches(app, tmp_path)
        ids = [names[-1] async for _, names in app.imagination.named()]
        await app.imagination.import_lines(
            [json.dumps({"id": each, "questions": ["Where does the lantern hang?"]}) for each in ids]
        )
        set_feature_flag("cbr_enabled", True)
        try:
            for branch in ("One", "Two"):
                await app.cases.add("What is the lantern?", [branch], "See there.")
                await app.cases.suggest("What is the lantern?", [branch])
        finally:
            set_feature_flag("cbr_enabled", None)
        garden = await LiveGarden.load(app.index, UnscopedReads(app.database))
        [reader] = identities(garden.taxonomy, [("One",), ("Two",)], 2, 1)[1:]
        assert await garden.policy_faults(reader) == []
        for table, name in POLICIES.items():
            [(condition,)] = store.rows(f"select qual from pg_policies where policyname = '{name}_in_scope'")
            store.rows(statement.format(table, name))
            assert any(fault.startswith(table) for fault in await garden.policy_faults(reader)), table
            if table == "chunks":
                proof = await prove(settings, requests=20, live=True)
                assert proof.kinds["policy"] > 0
            store.rows(
                f"drop policy if exists {name}_in_scope on {table};"
                f"create policy {name}_in_scope on {table} for select to dtrag_reader using ({condition});"
                f"alter table {table} enable row level security"
            )
        assert await garden.policy_faults(reader) == []


async def test_holes_in_a_live_index_are_found(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count of everything, an id from outside, and a text under another id."""
    async with open_app(settings) as app:
        await two_branches(app, tmp_path)
        garden = await LiveGarden.load(app.index, UnscopedReads(app.database))
        callers = identities(garden.taxonomy, [("One",), ("Two",)], 6, 1)

        async def kinds() -> dict[str, int]:
            app.engine.clear_cache()
            return dict((await run_isolation_test(app, garden, callers, 200)).kinds)

        assert await kinds() == {}
        for target, method, kind in ((app, "counts", "counts"), (app, "documents", "content")):
            whole = getattr(target, method)

            async def of_everything(*values: Any, scope: Any = None, _whole: Any = whole, **more: Any) -> Any:
                return await _whole(*values, scope=EVERYTHING, **more)

            with monkeypatch.context() as broken:
                broken.setattr(target, method, of_everything)
                assert (await kinds()).keys() == {kind}
        fetch = app.index.fetch

        async def with_another_text(keys: Sequence[str], *rest: Any) -> dict[str, SearchResult]:
            passages = await fetch(keys, *rest)
            return {key: replace(passage, text="The lantern of Two number 1.") for key, passage in passages.items()}

        with monkeypatch.context() as broken:
            broken.setattr(app.index, "fetch", with_another_text)
            assert (await kinds())["content"] > 0
        assert await kinds() == {}
