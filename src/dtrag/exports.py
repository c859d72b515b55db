"""Export of an app's contents as JSON lines, for other programs: documents, trees, agents, cases, and the audit log.

Of documents and cases, what is above the grade that exports may have (`destinations.py`) is left out: None stands for
it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dtrag.adapters.backup_file import new_file
from dtrag.adapters.postgres.database import compute_inside
from dtrag.adapters.postgres.queries import queries
from dtrag.app import App
from dtrag.core.access.audit_chain import AuditLine
from dtrag.core.response import plain
from dtrag.destinations import CASES, DOCUMENTS

PAGE = 500
"""Rows that are in memory at a time."""
JSON_LINES = ".jsonl"


async def documents(app: App) -> AsyncIterator[dict[str, Any] | None]:
    """All documents of one moment, as lines that `dtrag ingest` reads."""
    tree, outgoing = await app.taxonomy.tree(), await app.exportable(DOCUMENTS)
    async with (
        app.database.connection("owner") as connection,
        connection.transaction(),
        connection.cursor(name="export") as cursor,
    ):
        await compute_inside(connection, 0)  # the reader of a pipe may take its time
        cursor.itersize = PAGE
        await cursor.execute(queries("export")["documents"])
        async for row in cursor:
            node_id, text = row.pop("node_id"), row.pop("text")
            admitted = outgoing.admits_node(node_id)
            yield {**row, "category_path": tree.path(node_id), "text": text} if admitted else None


async def trees(app: App) -> AsyncIterator[object]:
    """All versions of the category tree with their nodes, newest first."""
    for version in await app.taxonomy.versions():
        nodes = (await app.taxonomy.tree(version.version)).nodes
        yield {**plain(version), "nodes": list(nodes.values())}


async def agents(app: App) -> AsyncIterator[object]:
    """All agents with their manifests."""
    offset = 0
    while page := (await app.agents.every(PAGE, offset))[0]:
        for agent in page:
            yield {**plain(agent), "manifest": agent.manifest.as_dict(), "grant": agent.grant.as_json()}
        offset += len(page)


async def cases(app: App) -> AsyncIterator[object]:
    """All cases with their votes and decisions."""
    after: str | None = None
    outgoing = await app.exportable(CASES)
    while page := await app.case_store.records(PAGE, after):
        for record in page:
            case = {**plain(record.case)}
            case.pop("vector", None)
            admitted = outgoing.admits_node(record.case.node_id)
            yield {**case, "votes": record.votes, "decisions": record.decisions} if admitted else None
        after = page[-1].case.case_id


async def audit(app: App) -> AsyncIterator[object]:
    """All lines of the audit log, oldest first: what `dtrag restore --deletions` reads."""
    async for row in app.audit.lines(PAGE):
        yield AuditLine.of(row)


KINDS: dict[str, Callable[[App], AsyncIterator[object]]] = {
    "documents": documents,
    "trees": trees,
    "agents": agents,
    "cases": cases,
    "audit": audit,
}


@dataclass(frozen=True, slots=True)
class Exported:
    """Number of lines by kind that were written, and of those left out because of their grade."""

    lines: dict[str, int]
    above_grade: dict[str, int]


async def export(
    app: App, target: Path, *, force: bool = False, on_progress: Callable[[str, int], None] = lambda kind, lines: None
) -> Exported:
    """Write one file of the folder `target` for each kind.

    If `target` ends in `.jsonl`, all kinds are in this one file, and each line has its `kind`. The files appear
    complete or not at all. Raises `InvalidInput` and `StorageFull`.
    """
    lines, above_grade = dict.fromkeys(KINDS, 0), Counter[str]()
    with ExitStack() as files:
        single = files.enter_context(new_file(target, force=force)) if target.suffix == JSON_LINES else None
        if single is None:
            await asyncio.to_thread(target.mkdir, mode=0o700, parents=True, exist_ok=True)
        for kind, rows in KINDS.items():
            file = single or files.enter_context(new_file(target / f"{kind}{JSON_LINES}", force=force))
            async for row in rows(app):
                if row is None:
                    above_grade[kind] += 1
                    continue
                _write(file, {"kind": kind, **plain(row)} if single else plain(row))
                lines[kind] += 1
                on_progress(kind, lines[kind])
    return Exported(lines, dict(above_grade))


def _write(file: IO[bytes], row: Any) -> None:
    file.write(json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n")
