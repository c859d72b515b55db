"""The isolation test can fail: it finds what broken gates let out, in twin worlds and in an existing index."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.postgres.lexical.strict_index import UnscopedReads
from dtrag.app import App, open_app
from dtrag.core.access.scope import NO_FILTERS, Scope, SearchFilters
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.delivery.api.app import serve_opened
from dtrag.errors import InvalidInput
from dtrag.isolation.library import ONE
from dtrag.isolation.live import callers_of, check_live, policy_faults
from dtrag.isolation.proof import LogWatch, Proof, prove
from dtrag.isolation.worlds import TwinWorlds
from dtrag.settings import Settings, set_feature_flag
from tests.cases import each
from tests.store import Store

EVERYTHING = Scope.everything()


async def test_changes_outside_and_log_lines_are_found(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof()
    with LogWatch(proof):
        logging.getLogger("dtrag.app").error("the leave of the manager was searched")
        assert proof.kinds == {}
        logging.getLogger("dtrag.app").error("Blackbird was searched")
    logging.getLogger("dtrag.app").error("Blackbird was searched after it")
    assert (proof.kinds, proof.failed) == ({"log": 1}, True)
    assert "blackbird" in ONE.own_words > {"zanzibar"}
    assert not ONE.own_words & {"salary", "harbour", "징계"}

    whole, calls = TwinWorlds.hidden_documents, iter(((9, 9), (8, 8)))

    async def one_less(pair: TwinWorlds) -> tuple[int, int]:
        assert (await whole(pair))[0] > 50
        return next(calls)

    monkeypatch.setattr(TwinWorlds, "hidden_documents", one_less)
    proof = await prove(settings, serve_opened, requests=1, documents=20, nodes=5)
    assert (proof.kinds, proof.documents >= 20 + 50, proof.nodes > 10) == ({"change": 1}, True, True)


def break_gate_one(app: App, patch: pytest.MonkeyPatch) -> None:
    """Candidates are proposed without a look at the scope."""
    for name in ("lexical", "strict", "vectors"):
        whole = getattr(app.index, name)

        async def unscoped(query: Any, *rest: Any, _whole: Any = whole) -> dict[str, float]:
            found: dict[str, float] = await _whole(
                query, *(EVERYTHING if isinstance(value, Scope) else value for value in rest)
            )
            return found

        patch.setattr(app.index, name, unscoped)


def break_gate_two(app: App, patch: pytest.MonkeyPatch) -> None:
    """Texts are fetched without a look at the scope."""
    whole = app.index.fetch

    async def unscoped(
        keys: Sequence[str], scope: Scope, taxonomy: Taxonomy, filters: SearchFilters = NO_FILTERS, **options: Any
    ) -> dict[str, SearchResult]:
        return await whole(keys, EVERYTHING, taxonomy, filters, **options)

    patch.setattr(app.index, "fetch", unscoped)


async def test_one_gate_holds_what_the_other_lets_by(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(settings) as app:
        await two_branches(app, tmp_path)

        async def paths() -> set[str]:
            app.engine.clear_cache()
            proof = await check_live(app, 200)
            assert proof.kinds.keys() <= {"content", "existence"}
            return {finding.path for finding in proof.examples}

        with monkeypatch.context() as broken:
            break_gate_one(app, broken)
            assert await paths() == set()
        with monkeypatch.context() as broken:
            break_gate_two(app, broken)
            assert await paths() == {"index: fetch"}
            break_gate_one(app, broken)
            assert await paths() == {"index: fetch", "search: words of a title"}


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
            await check_live(app, 5)
        await two_branches(app, tmp_path)
        before = (await app.index.snapshot()).generation
        for seed in range(1, 5):  # documents without a category are requested, too
            proof = await check_live(app, 100, seed=seed)
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
        proof = await check_live(app, 200)
        assert (proof.documents, proof.examples) == (MANY + 7, [])
        assert proof.paths["documents: counts"] > 0


POLICIES = {
    "documents": "documents",
    "chunks": "chunks",
    "sentence_vectors": "sentences",
    "originals": "originals",
    "imagined_questions": "imagined",
    "cbr_cases": "cases",
    "cbr_logs": "logs",
}
"""Table -> the beginning of the name of its policy for callers."""


CONDITIONS = {
    "documents": {"node_id"},
    "chunks": {"node_id"},
    "sentence_vectors": {"node_id"},
    "originals": {"node_id"},
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
        store.rows(
            "insert into sentence_vectors select document_id, ordinal, node_id, 1, '', '' from chunks"
            " on conflict do nothing"
        )
        store.rows("insert into originals select document_id, node_id, '' from documents on conflict do nothing")
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
        documents = await app.documents(scope=EVERYTHING)
        taxonomy = (await app.index.snapshot()).taxonomy
        [reader] = callers_of(taxonomy, taxonomy.nodes, 2, 1)[1:]

        async def faults() -> list[str]:
            return await policy_faults(
                app, UnscopedReads(app.database), reader, [each.document_id for each in documents]
            )

        assert await faults() == []
        for table, name in POLICIES.items():
            [(condition,)] = store.rows(f"select qual from pg_policies where policyname = '{name}_in_scope'")
            store.rows(statement.format(table, name))
            assert any(fault.startswith(table) for fault in await faults()), table
            if table == "chunks":
                proof = await check_live(app, 20)
                assert proof.kinds["policy"] > 0
            store.rows(
                f"drop policy if exists {name}_in_scope on {table};"
                f"create policy {name}_in_scope on {table} for select to dtrag_reader using ({condition});"
                f"alter table {table} enable row level security"
            )
        assert await faults() == []


async def test_holes_in_a_live_index_are_found(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count of everything, an id from outside, and a text under another id."""
    async with open_app(settings) as app:
        await two_branches(app, tmp_path)

        async def kinds() -> dict[str, int]:
            app.engine.clear_cache()
            return dict((await check_live(app, 200)).kinds)

        assert await kinds() == {}
        for target, method, kind in ((app, "counts", "counts"), (app, "documents", "content")):
            whole = getattr(target, method)

            async def of_everything(*values: Any, scope: Any = None, _whole: Any = whole, **more: Any) -> Any:
                return await _whole(*values, scope=EVERYTHING, **more)

            with monkeypatch.context() as broken:
                broken.setattr(target, method, of_everything)
                assert (await kinds()).keys() == {kind}
        fetch = app.index.fetch

        async def with_another_text(keys: Sequence[str], *rest: Any, **options: Any) -> dict[str, SearchResult]:
            passages = await fetch(keys, *rest, **options)
            return {key: replace(passage, text="The lantern of Two number 1.") for key, passage in passages.items()}

        with monkeypatch.context() as broken:
            broken.setattr(app.index, "fetch", with_another_text)
            assert (await kinds())["content"] > 0
        assert await kinds() == {}
