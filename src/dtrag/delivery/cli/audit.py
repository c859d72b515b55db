"""`dtrag audit`: list and verify the audit log, and test the isolation of scopes."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import (
    ListFormat,
    Rows,
    data,
    facts,
    note,
    plural,
    progress,
    safe,
    show_json,
    show_result,
)
from dtrag.delivery.cli.context import Form, Json, invocation, run_async, with_app
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.access.audit_chain import ChainVerdict
    from dtrag.isolation.proof import Proof

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="The audit log, and the isolation test.")


@app.command("list")
def list_lines(
    context: typer.Context,
    *,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Only lines since then (2030-01-31, UTC).")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only lines before then, which is later than --since.")
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Only lines of this caller.")] = None,
    action: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only lines whose action contains this, such as /search.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of lines.")] = 100,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the newest lines of the audit log."""
    earliest, latest = _time(since), _time(until)
    rows = with_app(
        context,
        lambda opened: opened.audit.newest(limit=limit, since=earliest, until=latest, actor=actor, action=action),
    )
    from dtrag.core.access.audit_chain import AuditLine

    moment = "%m-%d %H:%M:%S" if form is ListFormat.table else "%Y-%m-%d %H:%M:%S"
    listed = [(r.number, f"{r.entry.at:{moment}}", r.entry.actor, r.entry.action, r.entry.decision) for r in rows]
    shown = Rows(("Number", "When", "Who", "What", "Decision"), listed, whole=("Number", "When", "Decision"))
    count = plural(len(rows), "line") if rows else "There are no such lines."
    return show_result(as_json or form, {"lines": list(map(AuditLine.of, rows))}, shown, notes=[count])


@app.command("verify")
def verify(
    context: typer.Context,
    expect: Annotated[
        str | None, typer.Option(metavar="HEAD", help="Output of an earlier run, which must still be in the log.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check that no line was changed, removed or added by hand.

    Prints the number and hash of the newest line. Store them elsewhere: with
    --expect the next run also detects lines removed from the end.
    """
    from dtrag.core.access.audit_chain import ChainHead

    expected = ChainHead.parse(expect) if expect else None

    async def check(opened: App) -> ChainVerdict:
        with progress("Checking") as show:
            return await opened.audit.verify(expected, lambda done: show(done, None, f"{done:,} lines"))

    verdict = with_app(context, check)
    advice = "The lines before it are unchanged. Compare with a backup of the database."
    if verdict.ok:
        advice = f"{plural(verdict.head.number, 'line')}, all unchanged."
    show_result(as_json, verdict, str(verdict.head) if verdict.ok else f"Damaged: {verdict.reason}.", notes=[advice])
    return OK if verdict.ok else FAILURE


@app.command("isolation")
def isolation(
    context: typer.Context,
    *,
    requests: Annotated[int, typer.Option(min=1, max=10_000_000, help="Minimum number of requests.")] = 10_000,
    documents: Annotated[int, typer.Option(min=10, max=1_000_000, help="Documents of the test index.")] = 5_000,
    nodes: Annotated[int, typer.Option(min=4, max=2_000, help="Categories of the test index.")] = 200,
    live: Annotated[bool, typer.Option("--live", help="Test your own index; nothing is written.")] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the full result to this file, as JSON.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random requests.")] = 1,
    as_json: Json = False,
) -> int:
    """Test the isolation: hostile requests by callers with restricted scopes.

    Two collections that differ only in what the callers may not see get the same
    requests on every route: each pair of responses must be equal. With --live,
    what callers get from your own index is compared with what the database
    answers its owner.
    Exit code 1 if a single response differs or anything from outside is returned.
    """
    settings = invocation(context).settings()

    async def run() -> Proof:
        from dtrag.app import open_app
        from dtrag.delivery.api.app import serve_opened
        from dtrag.isolation.live import check_live
        from dtrag.isolation.proof import prove

        with progress("Testing") as show:
            if not live:
                sizes = {"requests": requests, "documents": documents, "nodes": nodes}
                return await prove(settings, serve_opened, **sizes, seed=seed, on_progress=show)
            async with open_app(settings) as opened:
                return await check_live(opened, requests, seed=seed, on_progress=show)

    proof = run_async(run())

    result = proof.as_dict()
    if report is not None:
        import json

        report.write_text(json.dumps(result, ensure_ascii=False, indent=2) + "\n", "utf-8")
    if as_json:
        show_json(result)
    else:
        data().print(facts(_rows(proof)))
        for leak in proof.examples[:5]:
            data().print(safe(f"{leak.kind} on {leak.path}: {leak.what}"), soft_wrap=True)
        note("Leaks were detected. Do not put this service online." if proof.failed else "No leak was detected.")
    return FAILURE if proof.failed else OK


def _rows(proof: Proof) -> list[tuple[str, str]]:
    twins = proof.twins
    rows = [
        ("Requests", f"{proof.requests:,}"),
        ("Over HTTP", f"{proof.http:,}"),
        ("Documents", f"{proof.documents:,}"),
        ("Nodes", f"{proof.nodes:,}"),
        ("Identities", f"{proof.identities:,}"),
        ("Leaks", f"{proof.kinds.total():,}"),
        ("Seconds", f"{proof.seconds:,.1f}"),
        *((f"  {path}", f"{count:,} requests") for path, count in sorted(proof.paths.items())),
    ]
    if twins.pairs:
        differences = f"{twins.differing.total():,} differences"
        rows.append(("Twin worlds", f"{twins.pairs.total():,} pairs of responses, {differences}"))
        for route, pairs in sorted(twins.pairs.items()):
            differing = f", {twins.differing[route]:,} differences" if twins.differing[route] else ""
            rows.append((f"  {route}", f"{pairs:,} pairs{differing}"))
        first, second = twins.medians()
        rows.append(("Time", f"{first} ms for a search where there are hidden documents, {second} ms in their absence"))
    return rows


def _time(option: str | None) -> datetime.datetime | None:
    if option is None:
        return None

    try:
        time = datetime.datetime.fromisoformat(option.strip())
    except ValueError as error:
        raise InvalidInput(f"{option[:40]!r} is not a valid time. Give a date, such as 2030-01-31.") from error
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
