"""What `dtrag search` asks the app, and how it writes what it is told."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from dtrag.core.access.confinement import OWNER
from dtrag.core.documents import Absence, Explanation, SearchMetrics, SearchResult
from dtrag.core.query_expansion import ExpansionTerm, QueryExpansion
from dtrag.core.statements import Statement
from dtrag.delivery.cli import reading
from dtrag.retrieval.highlight import highlights
from tests.integration.cli_process import Cli, assert_shape, documented_shapes

TEXT = "A full-time employee has 26 days of paid annual leave, and 휴학은 최대 6학기까지 할 수 있다. " * 3
WHY = Explanation(12.34, 0.81, 0.7312, 1.0, 0.97, 1, 2, 1, ("annual", "leav"), ("연차휴가",))
ADDED = QueryExpansion(("annual", "leave"), "annual leave", "english", "words", (ExpansionTerm("연차휴가", 0.8),))
FOUND = SearchResult(
    "d:1",
    TEXT,
    title="Leave",
    source_url="file:///srv/leave.md",
    bm25_score=0.81,
    hybrid_score=1.0,
    metadata={"document_id": "d"},
    highlights=highlights("annual leave 휴학", TEXT),
)
ABSENT = Absence(
    "1e72659b-bfb0-5f9f-9dd0-a27d2dcd4566",
    (Statement("", "Its best passage is not among the candidates. " * 3),),
    "e:4",
    WHY,
)


class Told:
    """In the place of an app: remembers what it is asked."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    async def search(self, query: str, top_k: int, **options: Any) -> tuple[list[SearchResult], SearchMetrics]:
        self.asked = {"query": query, "top_k": top_k, **options}
        explained = {name: getattr(FOUND, name) for name in FOUND.__slots__}
        result = SearchResult(**(explained | {"explanation": WHY})) if options.get("explain") else FOUND
        absent = (ABSENT,) if options.get("explain_documents") else ()
        added = (ADDED,) if options.get("explain") else ()
        return [result], SearchMetrics(final_results=1, degraded=("rerank",), absent=absent, expansions=added)

    async def counts(self) -> tuple[int, int]:
        return (1, 1)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    app = Told()

    async def run(_settings: object, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await work(reading.OwnApp(app))  # type: ignore[arg-type]

    async def unchecked(_source: object, _categories: object) -> None:
        """There is no tree of categories here."""

    monkeypatch.setattr(reading, "in_this_process", run)
    monkeypatch.setattr(reading, "check_categories", unchecked)
    return app


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_options_reach_the_app(cli: Cli, told: Told) -> None:
    facts = ["language=ko", "year=2024", "open=true", "ratio=0.5", 'number="7"', "note=a=b c", "list=[1]", "empty="]
    arguments = [word for fact in facts for word in ("--metadata", fact)]
    ran = cli.call("search", "x", "--top-k", "3", "--category", "A/B", *arguments, "--why", "d", "--why", "e")
    assert ran.code == 0, ran.err
    metadata = {"language": "ko", "year": 2024, "open": True, "ratio": 0.5, "number": "7", "note": "a=b c"}
    assert told.asked == {
        "query": "x",
        "top_k": 3,
        "mode": "hybrid",
        "filters": {"taxonomy_paths": ["A/B"], "metadata": metadata | {"list": "[1]", "empty": ""}},
        "explain": True,
        "explain_documents": ("d", "e"),
        "scope": OWNER,
    }
    cli.call("search", "x")
    assert told.asked == {"query": "x", "top_k": None, "mode": "hybrid", "filters": None, "scope": OWNER}


@pytest.mark.parametrize("fact", ["language", "=ko", ""])
def test_an_invalid_metadata_filter_is_a_mistake(cli: Cli, told: Told, fact: str) -> None:
    ran = cli.call("search", "x", "--metadata", fact)
    assert ran.code == 2
    assert "KEY=VALUE" in ran.err


def test_a_pipe_gets_plain_text_of_80_columns(cli: Cli, told: Told) -> None:
    ran = cli.call("search", "annual leave 휴학", "--explain", "--why", "e")
    assert "\x1b" not in ran.out
    assert max(map(cell_len, ran.out.splitlines())) <= 80
    assert "words 0.810 (sum 12.34), rank 1 · meaning 0.731, rank 2" in " ".join(ran.out.split())
    assert "matches annual, leav" in " ".join(ran.out.split())
    assert "added by the lexicon: 연차휴가" in " ".join(ran.out.split())
    assert "annual leave → 연차휴가 0.80 ('annual leave' in english, matched by words)" in " ".join(ran.out.split())
    assert f"Not found: {ABSENT.document_id}" in ran.out
    assert "not among the candidates" in " ".join(ran.out.split())
    assert "left out: rerank" in ran.err


def test_a_terminal_gets_the_words_of_the_query_in_bold(cli: Cli, told: Told) -> None:
    ran = cli.call("search", "annual leave 휴학", FORCE_COLOR="1", TERM="xterm-256color")
    for word in ("annual", "leave", "휴학"):
        assert f"\x1b[1;33m{word}\x1b[0m" in ran.out


def test_json_carries_marks_and_reasons(cli: Cli, told: Told) -> None:
    ran = cli.call("search", "annual leave 휴학", "--why", "e", "--json")
    printed = json.loads(ran.out)
    assert_shape(printed, documented_shapes()["dtrag search"])
    (row,) = printed["results"]
    start, end = row["highlights"][0]
    assert row["text"][start:end] == "annual"
    assert row["explanation"]["cosine"] == 0.7312
    assert printed["results"][0]["explanation"]["expansions"] == ["연차휴가"]
    assert printed["metrics"]["expansions"][0]["official"] == [{"text": "연차휴가", "weight": 0.8}]
    assert printed["metrics"]["absent"][0]["reason"] == ABSENT.reason
