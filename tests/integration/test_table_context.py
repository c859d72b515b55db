"""The header of a table that begins in an earlier passage: read in scope, and not waited for beyond the step's time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dtrag.app import App
from dtrag.pipeline import retrieve

TOWNS = [f"Town {number}" for number in range(200)]
TABLE = "| Town | Ceiling in EUR |\n|---|---|\n" + "\n".join(f"| {town} | {1000 + n} |" for n, town in enumerate(TOWNS))
QUESTION = "Which ceiling has Town 150?"


async def test_a_row_far_from_its_header_has_it(app: App, tmp_path: Path) -> None:
    (tmp_path / "towns.md").write_text(f"# Hotels\n\n{TABLE}\n", "utf-8")
    await app.ingest(tmp_path / "towns.md", "Travel")
    answer = await app.ask(QUESTION)
    rows = [citation for citation in answer.citations if citation.quote == "Town 150 | 1150"]
    assert rows, answer
    row = rows[0]
    _, text = await app.document(row.document_id)
    assert [(part.kind, part.text) for part in row.context] == [("header", "Town | Ceiling in EUR")]
    assert all(text[part.start : part.end] == part.text for part in row.context)


async def test_a_late_header_is_left_out_and_named(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*_: Any) -> Any:
        raise TimeoutError

    monkeypatch.setattr(retrieve, "preceding_texts", late)
    (tmp_path / "towns.md").write_text(f"# Hotels\n\n{TABLE}\n", "utf-8")
    await app.ingest(tmp_path / "towns.md", "Travel")
    answer = await app.ask(QUESTION)
    assert "context" in answer.degraded
    assert "confidence" not in answer.degraded
