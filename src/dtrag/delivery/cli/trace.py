"""`dtrag trace`: what happened while an answer was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.trace import CallTrace, Trace
    from dtrag.settings import Settings


def trace(
    context: typer.Context,
    trace_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The newest one without it.", show_default=False)
    ] = None,
    last: Annotated[
        int | None, typer.Option("--list", metavar="N", min=1, max=1_000, help="List the newest N instead.")
    ] = None,
    as_json: Json = False,
) -> int:
    """What happened while an answer was made: steps, calls of models, debate.

    Each step's time stands against its budget. Texts are there if DTRAG_TRACE_TEXT
    was on when the answer was made.
    """
    if trace_id is not None and last is not None:
        raise typer.BadParameter("give an ID or --list, not both")
    found = run_async(_traces(invocation(context).settings(), trace_id, last or 1))
    from dtrag.delivery.cli.console import note, show_json

    if as_json:
        shown = [_as_dict(one) for one in found]
        if last is not None:
            show_json({"traces": shown})
        else:
            show_json(shown[0] if shown else {})
    elif not found:
        note('There is no trace yet. Ask something with: dtrag ask "…"')
    elif last is not None:
        _list(found)
    else:
        _show(found[0])
    return OK


def _list(found: list[Trace]) -> None:
    from dtrag.delivery.cli.console import data, note, plural, table

    rows = [
        (
            str(one.trace_id),
            f"{one.created_at:%m-%d %H:%M:%S}",
            f"{one.seconds * 1000:,.0f}",
            one.decision + (f", without {', '.join(one.degraded)}" if one.degraded else ""),
        )
        for one in found
    ]
    data().print(table(("Id", "When", "ms", "Decision"), rows, whole=("Id", "When")))
    note(plural(len(found), "trace"))


def _show(found: Trace) -> None:
    from dtrag.delivery.cli.console import data, facts, table

    out = data()
    head = [("Trace", str(found.trace_id)), ("When", f"{found.created_at:%Y-%m-%d %H:%M:%S} UTC")]
    head += [(name, text) for name, text in (("Question", found.question), ("Answer", found.answer)) if text]
    head += [("Decision", f"{found.decision}, confidence {found.confidence:.2f}")]
    head += [("Time", f"{found.seconds * 1000:,.0f} ms"), ("Tree", found.taxonomy_version)]
    if found.degraded:
        head.append(("Without", ", ".join(found.degraded)))
    out.print(facts(head))
    out.print()
    steps = [(step.name, _ms(step.seconds), _ms(step.budget), step.outcome, _told(step.facts)) for step in found.steps]
    out.print(table(("Step", "ms", "Budget", "Outcome", "Facts"), steps, whole=("Step", "ms", "Budget", "Outcome")))
    if found.calls:
        out.print()
        calls = [
            (call.step, call.model, _ms(call.seconds), f"{call.input_tokens:,}+{call.output_tokens:,}", _outcome(call))
            for call in found.calls
        ]
        out.print(table(("Call", "Model", "ms", "Tokens", "Outcome"), calls, whole=("Call", "ms", "Tokens")))
        _texts(found.calls)
    if found.debate is not None:
        _debate(found.debate)


def _debate(told: Mapping[str, Any]) -> None:
    """Its numbers, then what was said, where that was kept: round by round, and the answer at the end."""
    from dtrag.delivery.cli.console import data, facts

    texts = ("affirmative_answers", "critical_answers", "final_answer", "affirmative_answer", "critical_answer")
    data().print("\nDebate", style="bold")
    numbers = ((name, value) for name, value in told.items() if name not in texts)
    data().print(facts((name.replace("_", " ").capitalize(), _fact(value)) for name, value in numbers))
    sides = [("affirmative", told.get("affirmative_answers", ())), ("critical", told.get("critical_answers", ()))]
    for number in range(max(len(said) for _, said in sides)):
        for side, said in sides:
            if number < len(said):
                _said(f"Round {number + 1}, {side}", said[number])
    _said("Final answer", told.get("final_answer") or "")


def _texts(calls: tuple[CallTrace, ...]) -> None:
    for number, call in enumerate(calls, start=1):
        _said(f"Call {number}, prompt", call.prompt)
        _said(f"Call {number}, reply", call.reply)


def _said(heading: str, text: str) -> None:
    if not text:
        return
    from rich.text import Text

    from dtrag.delivery.cli.console import data, paragraph, safe

    data().print(f"\n{heading}:")
    paragraph(data(), Text(safe(text)), indent=2)


def _outcome(call: CallTrace) -> str:
    if call.error:
        return call.error
    return f"{call.cost:,.2f} won" if call.cost else "done"


def _ms(seconds: float) -> str:
    """`< 1` rather than 0: every step takes some time."""
    return f"{seconds * 1000:,.0f}" if seconds >= 0.0005 else "<1"


def _told(facts: Any) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_fact(value)}" for name, value in facts.items())


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_fact(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return " ".join(_fact(inner) for inner in value) or "none"
    return str(value)


def _as_dict(found: Trace) -> dict[str, Any]:
    return {name: value for name, value in found.as_dict().items() if name != "owner"}


async def _traces(settings: Settings, trace_id: str | None, wanted: int) -> list[Trace]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return [await opened.traces.get(trace_id)] if trace_id else await opened.traces.newest(wanted)
