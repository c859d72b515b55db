"""Twin worlds with callers who ask in one of them only: visitors notice nothing, unless the words of questions leak."""

from __future__ import annotations

import pytest

from dtrag.core.access.scope import Scope
from dtrag.delivery.api.app import serve_opened
from dtrag.isolation.case_scenarios import ask_in_one_world
from dtrag.isolation.library import VISITORS
from dtrag.isolation.visits import SCENARIOS, Comparison, compare
from dtrag.isolation.worlds import TwinWorlds, WordHashes, twin_worlds
from dtrag.settings import Settings

ALONE = """
alter policy {name}_in_scope on cbr_{name}
using (node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[]))
"""
"""The policy of cases or interactions without the scope in which a question was asked."""


async def compared(pair: TwinWorlds, seed: int) -> Comparison:
    """The visitors' search for questions of others."""
    [scenario] = [entry for entry in SCENARIOS if entry.name == "questions_of_others"]
    found = Comparison()
    for visitor in VISITORS[:4]:
        await compare(scenario, pair.worlds, visitor, f"{seed}:{visitor.name}", into=found)
    return found


@pytest.mark.parametrize("case_files", [False, True])
async def test_questions_of_one_world_are_noticed_only_when_they_leak(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, case_files: bool
) -> None:
    async with twin_worlds(settings, WordHashes(), serve_opened, case_files=case_files) as pair:
        await ask_in_one_world(pair.worlds[0], "1")
        cases = [await app.case_store.page(Scope.everything(), 100) for app in pair.apps]
        asked_outside = [sum(case.asked_in is None or bool(case.asked_in) for case in each) for each in cases]
        assert asked_outside[0] >= 8  # of every asker: of answers voted up, and of a correction
        assert asked_outside[1] == 0
        found = await compared(pair, 1)
        assert (found.examples, found.differing.total()) == ([], 0)
        assert found.pairs.total() > 50

        monkeypatch.setattr(Scope, "reads", lambda scope, asked_in: True)
        if not case_files:
            async with pair.apps[0].database.connection("owner") as connection:
                for name in ("cases", "logs"):
                    await connection.execute(ALONE.format(name=name))
        differing = (await compared(pair, 2)).differing
        lists = {"POST /cbr/suggest", "POST /search/neural", "GET /cbr/cases", "GET /cbr/export"}
        assert lists | {"GET /cbr/stats", "GET /cbr/logs", "POST /ask"} <= differing.keys()
