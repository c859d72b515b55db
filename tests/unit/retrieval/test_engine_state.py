"""Which state of the index a search has: the one in memory while it is the index's, else a newer one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import ROOT, Node, Taxonomy
from tests.unit.retrieval.memory import MemoryIndex
from tests.unit.retrieval.small import EVERYTHING, ROWS, TREE, engine_on, small_index


async def test_a_search_after_the_first_one_reads_no_snapshot() -> None:
    index = small_index()
    engine = engine_on(index, scope=EVERYTHING)
    await engine.search("kettle")
    index.calls.clear()
    assert [result.chunk_id for result in (await engine.search("boiler"))[0]] == ["b"]
    assert (index.calls.count("snapshot"), index.calls.count("fetch")) == (0, 1)
    await engine.search("boiler")
    assert (index.calls.count("snapshot"), index.calls.count("fetch")) == (1, 1), "before a cached result"


async def test_a_search_without_results_sees_a_write_too() -> None:
    index = small_index()
    engine = engine_on(index, scope=EVERYTHING)
    assert (await engine.search("kettle", filters={"canonical_in": [["Pumps"]]}))[0] == []
    index.settings = {"generation": 2}
    index.taxonomy = Taxonomy.of("2", [*TREE.nodes.values(), Node(4, ROOT, "Pumps", "pumps")])
    index.rows["a"] = index.rows.pop("a")
    index.rows |= {"a": type(ROWS[0])("a", ROWS[0].text, 4)}
    assert [hit.id for hit in (await engine.search("valve", filters={"canonical_in": [["Pumps"]]}))[0]] == ["a"]


class ChangingIndex(MemoryIndex):
    """Loses the first of the requested passages whenever passages are fetched, `losses` times."""

    losses = 0

    async def fetch(self, chunk_ids: Sequence[str], *arguments: Any, **options: Any) -> dict[str, SearchResult]:
        if self.losses and chunk_ids:
            self.losses -= 1
            del self.rows[chunk_ids[0]]
            self.settings = {"generation": self.settings["generation"] + 1}
        return await super().fetch(chunk_ids, *arguments, **options)


async def changing(losses: int) -> tuple[ChangingIndex, list[str]]:
    """The index, and the results for "valve" while it loses that many passages."""
    index = ChangingIndex(ROWS, None, TREE)
    engine = engine_on(index, scope=EVERYTHING, hops=1)
    await engine.search("kettle")
    index.losses, index.calls = losses, []
    return index, [
        result.chunk_id for result in (await engine.search("valve", 2, exact_candidates=True, bm25_candidates=2))[0]
    ]


async def test_a_passage_that_is_deleted_during_a_search_is_replaced_by_the_next_one() -> None:
    index, results = await changing(1)
    assert set(results) < {"a", "b", "d"} and len(results) == 2 and index.calls.count("snapshot") == 1


async def test_a_search_ends_though_the_index_never_rests() -> None:
    index, results = await changing(3)
    assert results == [] and not {"a", "b", "d"} & index.rows.keys()
    assert (index.calls.count("snapshot"), index.calls.count("lexical")) == (2, 3)


async def test_a_caller_that_joins_a_running_search_sees_what_was_written_before_its_own() -> None:
    index = small_index()
    engine = engine_on(index, scope=EVERYTHING)
    await engine.search("salary")
    index.gates["lexical"] = asyncio.Event()
    first = asyncio.create_task(engine.search("kettle valve"))
    while "lexical" not in index.calls[4:]:  # noqa: ASYNC110 - a turn of the loop is enough
        await asyncio.sleep(0)
    index.settings = {"generation": 2}
    del index.rows["a"]
    second = asyncio.create_task(engine.search("kettle valve"))
    await asyncio.sleep(0)
    index.gates["lexical"].set()
    for results, _ in await asyncio.gather(first, second):
        assert {result.chunk_id for result in results} == {"b", "d"}
