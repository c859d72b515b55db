"""JSON lines of an app's contents: complete, readable again by an ingest, and never half written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtrag.app import App, open_app
from dtrag.core.access.audit_chain import START, read_lines
from dtrag.core.documents import uuid_or_none
from dtrag.errors import InvalidInput
from dtrag.exports import export
from dtrag.testing import add_texts
from tests.builders import case
from tests.store import Databases


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


async def test_everything_is_exported_and_documents_can_be_read_again(
    app: App, tmp_path: Path, databases: Databases
) -> None:
    kettle, pan = await add_texts(
        app, {"kettle.md": "# Kettle\n\nThe kettle boils.", "pan.md": "# 팬\n\n달걀을 부친다."}, "Kitchen/Tools"
    )
    await app.case_store.add(case("one"))
    await app.taxonomy.propose([{"op": "add", "path": ["Garden"]}])
    await app.delete_documents([pan])
    lines = (await export(app, tmp_path / "all")).lines
    assert lines == {"documents": 1, "trees": 2, "agents": 0, "cases": 1, "audit": 2}
    [document] = read(tmp_path / "all" / "documents.jsonl")
    assert (document["id"], document["title"], document["text"]) == (kettle, "Kettle", "Kettle\n\nThe kettle boils.")
    assert document["category_path"] == ["Kitchen", "Tools"]
    assert {node["name"] for tree in read(tmp_path / "all" / "trees.jsonl") for node in tree["nodes"]} >= {"Garden"}
    assert [each["case_id"] for each in read(tmp_path / "all" / "cases.jsonl")] == ["one"]
    with (tmp_path / "all" / "audit.jsonl").open(encoding="utf-8") as written:
        assert read_lines(written, START).documents == {uuid_or_none(pan)}
    with pytest.raises(InvalidInput, match="--force"):
        await export(app, tmp_path / "all")

    one = tmp_path / "all.jsonl"
    await export(app, one)
    assert [line["kind"] for line in read(one)] == ["documents", "trees", "trees", "cases", "audit", "audit"]
    async with open_app(databases.settings()) as other:
        report = await other.ingest(tmp_path / "all" / "documents.jsonl")
        assert report.documents == 1
        [summary] = await other.documents()
        assert (summary.title, summary.taxonomy_path) == ("Kettle", ("Kitchen", "Tools"))
