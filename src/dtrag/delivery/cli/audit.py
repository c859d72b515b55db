"""`dtrag audit`: read the audit log, check that it is whole, and try to see what must not be seen."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import FAILURE, OK

if TYPE_CHECKING:
    from dtrag.core.access.audit_chain import AuditRow, ChainHead, Verdict
    from dtrag.evaluation.isolation import Proof
    from dtrag.settings import Settings

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="The audit log, and the proof of isolation.")


@app.command("list")
def list_lines(
    context: typer.Context,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only lines from then on (2030-01-31, UTC).")
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Only lines of this caller.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 100,
    as_json: Json = False,
) -> int:
    """The newest lines of the audit log."""
    asked = {"since": _moment(since), "actor": actor, "limit": limit}
    rows = run_async(_lines(invocation(context).settings(), asked))
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        show_json({"lines": [row_as_dict(row) for row in rows]})
        return OK
    if rows:
        listed = [
            (r.number, f"{r.entry.at:%m-%d %H:%M:%S}", r.entry.actor, r.entry.action, r.entry.decision) for r in rows
        ]
        data().print(table(("Number", "When", "Who", "What", "Decision"), listed, whole=("Number", "When", "Decision")))
        note(plural(len(rows), "line"))
    else:
        note("There are no such lines.")
    return OK


@app.command("verify")
def verify(
    context: typer.Context,
    expect: Annotated[
        str | None, typer.Option(metavar="HEAD", help="What an earlier run printed: this line must still be there.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check that no line was changed, taken out or added by hand.

    Prints the number and hash of the newest line. Keep them elsewhere: with
    --expect the next run also finds lines that were cut off at the end.
    """
    from dtrag.core.access.audit_chain import ChainHead

    expected = ChainHead.parse(expect) if expect else None
    verdict = run_async(_verdict(invocation(context).settings(), expected))
    from dtrag.delivery.cli.console import data, note, plural, show_json

    if as_json:
        show_json(
            {
                "ok": verdict.ok,
                "lines": verdict.head.number,
                "head": str(verdict.head),
                "first_bad": verdict.first_bad,
                "reason": verdict.reason,
            }
        )
    elif verdict.ok:
        data().print(str(verdict.head), soft_wrap=True)
        note(f"{plural(verdict.head.number, 'line')}, all as they were written.")
    else:
        data().print(f"Not whole: {verdict.reason}.", soft_wrap=True)
        note("The lines before it are as they were written. Compare with a backup of the database.")
    return OK if verdict.ok else FAILURE


@app.command("isolation")
def isolation(
    context: typer.Context,
    *,
    requests: Annotated[int, typer.Option(min=1, max=10_000_000, help="How many requests to send, at least.")] = 10_000,
    documents: Annotated[int, typer.Option(min=10, max=1_000_000, help="Documents of the throw-away copy.")] = 5_000,
    nodes: Annotated[int, typer.Option(min=4, max=2_000, help="Categories of the throw-away copy.")] = 200,
    live: Annotated[bool, typer.Option("--live", help="Try it on your own index; nothing is written.")] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything that was found there, as JSON.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another number fires other requests.")] = 1,
    as_json: Json = False,
) -> int:
    """Try to see what must not be seen: hostile requests from callers who may see a part only.

    Two collections that differ only in what the callers may not see get the same
    requests on every route: each pair of answers must be alike. Then every branch
    of a throw-away index gets words that stand nowhere else, and callers confined
    to other branches try to get at them on every way of reading.
    Exit code 1 if a single answer differs, or a single word comes back.
    """
    settings = invocation(context).settings()
    plan = {"requests": requests, "documents": documents, "nodes": nodes, "live": live, "seed": seed}
    proof = run_async(_isolation(settings, plan))
    from dtrag.delivery.cli.console import data, facts, note, safe, show_json

    found = proof.as_dict()
    if report is not None:
        import json

        report.write_text(json.dumps(found, ensure_ascii=False, indent=2) + "\n", "utf-8")
    if as_json:
        show_json(found)
    else:
        data().print(facts(_rows(found)))
        for leak in found["examples"][:5]:
            data().print(safe(f"{leak['kind']} on {leak['path']}: {leak['what']}"), soft_wrap=True)
        note("Nothing came out." if not proof.failed else "Something came out that must not. Do not go online.")
    return FAILURE if proof.failed else OK


def row_as_dict(row: AuditRow) -> dict[str, Any]:
    """A line for programs."""
    entry = row.entry
    return {
        "number": row.number,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "action": entry.action,
        "scope": entry.scope,
        "subjects": entry.subjects,
        "decision": entry.decision,
        "details": entry.details,
        "hash": row.hash.hex(),
    }


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [(name.capitalize(), f"{found[name]:,}") for name in ("requests", "documents", "nodes", "identities")]
    twins = found["twins"]
    rows[1:1] = [("Over HTTP", f"{found['http']:,} ({found['http'] / max(1, found['requests']):.0%})")]
    rows += [("Twin worlds", f"{twins['pairs']:,} pairs of answers, {twins['differences']:,} differences")]
    rows += [(f"  {route}", _pairs(counts)) for route, counts in twins["routes"].items()]
    rows += [("Leaks", f"{found['leaks']:,}"), ("Seconds", f"{found['seconds']:,.1f}")]
    rows += [(f"  {path}", f"{count:,} requests") for path, count in found["paths"].items()]
    timing = found["timing_ms"]
    if timing["foreign"] is not None:
        rows.append(("Time", f"{timing['foreign']:.2f} ms for a foreign word, {timing['nonsense']:.2f} ms for none"))
    return rows


def _pairs(counts: dict[str, int]) -> str:
    compared = f"{counts['pairs']:,} pairs"
    return f"{compared}, {counts['differences']:,} differences" if counts["differences"] else compared


def _moment(given: str | None) -> datetime.datetime | None:
    if given is None:
        return None
    from dtrag.errors import InvalidInput

    try:
        moment = datetime.datetime.fromisoformat(given.strip())
    except ValueError as error:
        raise InvalidInput(f"{given[:40]!r} is no time. Give a date, such as 2030-01-31.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


async def _lines(settings: Settings, asked: dict[str, Any]) -> list[AuditRow]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.audit.newest(**asked)


async def _verdict(settings: Settings, expected: ChainHead | None) -> Verdict:
    from dtrag.app import open_app
    from dtrag.delivery.cli.progress import progress

    async with open_app(settings) as opened:
        with progress("Checking") as show:
            return await opened.audit.verify(expected, lambda done: show(done, None, f"{done:,} lines"))


async def _isolation(settings: Settings, plan: dict[str, Any]) -> Proof:
    from dtrag.delivery.cli.progress import progress
    from dtrag.delivery.isolation.http import prove

    with progress("Trying") as show:
        return await prove(settings, **plan, on_progress=show)
