"""`dtrag trace`, `feedback` and `replay`: how an answer was produced, rated, and is given now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.console import (
    Facts,
    ListFormat,
    Rows,
    data,
    facts,
    note,
    paragraph,
    plural,
    show_json,
    show_result,
    table,
)
from dtrag.delivery.cli.context import Form, Json, question_of, with_app
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.answers.replay import Replay
    from dtrag.core.trace import CallTrace, Trace
    from dtrag.pipeline.answer_feedback import FeedbackOutcome


def trace(
    context: typer.Context,
    trace_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Default: the newest one.", show_default=False)
    ] = None,
    last: Annotated[
        int | None, typer.Option("--list", metavar="N", min=1, max=1_000, help="List the newest N instead.")
    ] = None,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """Show how an answer was produced: steps, model calls, debate.

    Each step is shown with its time budget. Texts are shown if DTRAG_TRACE_TEXT
    was on when the answer was given.
    """
    if trace_id is not None and last is not None:
        raise typer.BadParameter("give an ID or --list, not both")
    if last is None and form in {ListFormat.csv, ListFormat.md}:
        raise typer.BadParameter(f"a single trace is no list: --format {form} needs --list")

    async def load(opened: App) -> tuple[list[Trace], dict[str, str]]:
        loaded = [await opened.traces.get(trace_id)] if trace_id else await opened.traces.newest(last or 1)
        return loaded, await opened.traces.titles(key for row in loaded for key in row.document_ids)

    traces, titles = with_app(context, load)
    values, is_table = [_row(row, titles) for row in traces], not as_json and form is ListFormat.table
    if last is not None and not (is_table and not traces):
        count = plural(len(traces), "trace")
        return show_result(as_json or form, {"traces": values}, _rows(traces, short=is_table), notes=[count])
    if not is_table:
        show_json(values[0] if values else {})
    elif not traces:
        note('There is no trace yet. Ask something with: dtrag ask "…"')
    else:
        _show(traces[0], titles)
    return OK


def _row(run: Trace, titles: Mapping[str, str]) -> dict[str, object]:
    own = {key: titles[key] for key in run.document_ids if key in titles}
    shown: dict[str, object] = {}
    values = run.as_dict()
    for call in values["calls"]:
        del call["prompt_hash"]
    for name, value in values.items():
        if name not in {"owner", "record"}:
            shown[name] = value
        if name == "document_ids":
            shown["titles"] = own
    return shown


def _rows(traces: list[Trace], *, short: bool) -> Rows:
    moment = "%m-%d %H:%M:%S" if short else "%Y-%m-%d %H:%M:%S"
    rows = [
        (
            str(row.trace_id),
            f"{row.created_at:{moment}}",
            round(row.seconds * 1000),
            row.decision + (f", without {', '.join(row.degraded)}" if row.degraded else ""),
        )
        for row in traces
    ]
    return Rows(("Id", "When", "ms", "Decision"), rows, whole=("Id", "When"))


def _show(run: Trace, titles: Mapping[str, str]) -> None:
    out = data()
    head = [("Trace", str(run.trace_id)), ("When", f"{run.created_at:%Y-%m-%d %H:%M:%S} UTC")]
    head += [(name, text) for name, text in (("Question", run.question), ("Answer", run.answer)) if text]
    head += [("Decision", f"{run.decision}, confidence {run.confidence:.2f}")]
    head += [("Time", f"{run.seconds * 1000:,.0f} ms"), ("Tree", run.taxonomy_version)]
    if run.degraded:
        head.append(("Without", ", ".join(run.degraded)))
    head += [("Document", titles.get(document_id, document_id)) for document_id in run.document_ids]
    out.print(facts(head))
    out.print()
    steps = [(step.name, _ms(step.seconds), _ms(step.budget), step.outcome, _facts(step.facts)) for step in run.steps]
    out.print(table(("Step", "ms", "Budget", "Outcome", "Facts"), steps, whole=("Step", "ms", "Budget", "Outcome")))
    if run.calls:
        out.print()
        calls = [
            (call.step, call.model, _ms(call.seconds), f"{call.input_tokens:,}+{call.output_tokens:,}", _outcome(call))
            for call in run.calls
        ]
        out.print(table(("Call", "Model", "ms", "Tokens", "Outcome"), calls, whole=("Call", "ms", "Tokens")))
        _show_call_texts(run.calls)
    if run.debate is not None:
        _show_debate(run.debate)


def _show_debate(debate: Mapping[str, Any]) -> None:
    """Print the numbers of a debate, then its stored texts: round by round, and the final answer."""
    texts = ("affirmative_answers", "critical_answers", "final_answer", "affirmative_answer", "critical_answer")
    data().print("\nDebate", style="bold")
    numbers = ((name, value) for name, value in debate.items() if name not in texts)
    data().print(facts((name.replace("_", " ").capitalize(), _fact(value)) for name, value in numbers))
    sides = [("affirmative", debate.get("affirmative_answers", ())), ("critical", debate.get("critical_answers", ()))]
    for number in range(max(len(answers) for _, answers in sides)):
        for side, answers in sides:
            if number < len(answers):
                _show_text(f"Round {number + 1}, {side}", answers[number])
    _show_text("Final answer", debate.get("final_answer") or "")


def _show_call_texts(calls: tuple[CallTrace, ...]) -> None:
    for number, call in enumerate(calls, start=1):
        _show_text(f"Call {number}, prompt", call.prompt)
        _show_text(f"Call {number}, reply", call.reply)


def _show_text(heading: str, text: str) -> None:
    if not text:
        return

    data().print(f"\n{heading}:")
    paragraph(data(), text, indent=2)


def _outcome(call: CallTrace) -> str:
    if call.error:
        return call.error
    return f"{call.cost:,.2f} won" if call.cost else "done"


def _ms(seconds: float) -> str:
    """`< 1` rather than 0: every step takes some time."""
    return f"{seconds * 1000:,.0f}" if seconds >= 0.0005 else "<1"


def _facts(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_fact(value)}" for name, value in facts.items())


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, dict):
        return (
            ", ".join(
                f"{name} ({_fact(inner)})" if isinstance(inner, dict) else f"{name}: {_fact(inner)}"
                for name, inner in value.items()
            )
            or "none"
        )
    if isinstance(value, list):
        return " ".join(_fact(inner) for inner in value) or "none"
    return str(value)


_WORDS = {"recorded": "Recorded", "case_made": "Recorded; a case was made", "case_voted": "Recorded; voted on the case"}


def feedback(
    context: typer.Context,
    trace_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the answer's trace.", show_default=False)],
    rating: Annotated[
        str, typer.Argument(metavar="up|down|1-5", help="4 and 5 are up, 1 and 2 down.", show_default=False)
    ],
    *,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for administrators.")] = None,
    as_json: Json = False,
) -> int:
    """Say whether an answer was right; given again, it replaces the earlier feedback.

    With the case memory on, a thumbs-up makes the answer a case, or counts as a vote on it.
    """
    stars = int(rating) if rating.isascii() and rating.isdecimal() and len(rating) < 4 else None
    thumbs = rating if stars is None else None

    async def give(opened: App) -> FeedbackOutcome:
        return await opened.feedback.give(trace_id, rating=stars, thumbs=thumbs, reason=reason)

    outcome = with_app(context, give)
    case = f" {outcome.case_id}" if outcome.case_id else ""
    done = f"{_WORDS[outcome.effect]}{case}: {outcome.feedback.value}"
    return show_result(as_json, outcome, done, notes=[outcome.note])


TraceId = Annotated[str, typer.Argument(metavar="TRACE_ID", help="The trace_id of the answer.", show_default=False)]
Question = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="The question, where its trace has not kept it; - reads standard input.",
        show_default=False,
    ),
]
_CONFIRMED = {
    "confirmed": "confirmed by the audit log",
    "altered": "ALTERED: the audit log has another digest",
    "not_audited": "not in the audit log",
}


def replay(context: typer.Context, trace_id: TraceId, question: Question = None, as_json: Json = False) -> int:
    """Answer the question of a trace again, and say what differs and why.

    The categories, the day of the texts and the options are those of then.
    A replay is recorded in the audit log and nowhere else.
    """
    text = None if question is None else question_of([question])

    async def compared(opened: App) -> Replay:
        return await opened.replays.replay(trace_id, question=text)

    _show_replay(with_app(context, compared), as_json=as_json)
    return OK


def _show_replay(replayed: Replay, *, as_json: bool) -> None:
    """Print the verdict, what was compared, and what has changed."""
    from dtrag.delivery.texts import in_language_of

    verdict = "The answer is the same." if replayed.same else "The answer differs."
    if not replayed.explained:
        verdict += " Nothing that was checked has changed."
    rows = [(each.name, "same" if each.same else "differs", each.then, each.now) for each in replayed.aspects]
    when = f"{replayed.answered_at:%Y-%m-%d %H:%M:%S} UTC"
    head = Facts([("Answered", when), ("Record", _CONFIRMED[replayed.record])])
    reasons = [in_language_of(replayed.text, [reason]) for reason in replayed.reasons]
    texts = [] if replayed.same else [f"Then: {replayed.earlier_text}"] * bool(replayed.earlier_text)
    texts += [] if replayed.same else [f"Now: {replayed.text}"]
    show_result(
        as_json,
        replayed,
        verdict,
        head,
        Rows(("Part", "Verdict", "Then", "Now"), rows, whole=("Part", "Verdict")),
        *(f"- {reason}" for reason in reasons),
        *texts,
        notes=[in_language_of(replayed.text, [each]) for each in replayed.notes],
    )
