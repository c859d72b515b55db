"""`dtrag calibrate`: the confidence fitted to one's own documents, from questions that somebody has judged."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import FAILURE, OK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtrag.evaluation.answerability import Judged
    from dtrag.evaluation.calibration import Calibrated
    from dtrag.settings import Settings

METHODS = {
    "shipped": "as shipped: nothing was better",
    "line": "shipped, with another intercept and slope",
    "weights": "weights of its own",
}


def calibrate(
    context: typer.Context,
    questions: Annotated[
        Path | None,
        typer.Argument(metavar="[QUESTIONS.jsonl]", help="Judged questions, one a line.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only measure; change nothing.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the confidence that dtrag comes with.")] = False,
    as_json: Json = False,
) -> int:
    """Fit the confidence to your documents.

    A line is {"question": "...", "answerable": false}, or names what answers it:
    {"question": "...", "document": "..."} or "answer". 20 lines at least, 75 are
    better. It counts from the next question on, for every process.
    """
    if reset == (questions is not None) or (reset and dry_run):
        raise typer.BadParameter("give either a file of questions (with or without --dry-run), or --reset alone")
    settings = invocation(context).settings()
    if questions is None:
        return _reset(settings, as_json)
    from dtrag.evaluation.calibration import read_questions

    found = run_async(_calibrate(settings, read_questions(questions), keep=not dry_run))
    from dtrag.delivery.cli.console import data, facts, note, show_json

    if as_json:
        show_json(as_dict(found, kept=found.helps and not dry_run))
    else:
        data().print(facts(_rows(found)))
        for refusal in found.refusals:
            note(f"Refused for model {refusal.model} ({METHODS[refusal.method]}): {'; '.join(refusal.reasons)}.")
    if found.missed:
        note(
            f"Of {found.missed:,} answerable questions the answer was not among the passages that are read: "
            "they count as not answered."
        )
    note(_outcome(found, dry_run))
    return OK if dry_run or found.helps else FAILURE


def _outcome(found: Calibrated, dry_run: bool) -> str:
    if dry_run:
        return "Nothing was changed (--dry-run)."
    if found.helps:
        return "In force from the next question on."
    return "Nothing was changed: no fit is better than the confidence in use by default. More questions may help."


def _reset(settings: Settings, as_json: bool) -> int:
    there = run_async(_forget(settings))
    from dtrag.delivery.cli.console import data, show_json

    if as_json:
        show_json({"reset": there})
    else:
        data().print("Back to the shipped confidence." if there else "There was no calibration: nothing to reset.")
    return OK


async def _forget(settings: Settings) -> bool:
    from dtrag.app import open_app

    async with open_app(settings) as app:
        return await app.uncalibrate()


async def _calibrate(settings: Settings, judged: Sequence[Judged], *, keep: bool) -> Calibrated:
    from dtrag.app import open_app
    from dtrag.delivery.cli.progress import progress

    total = len(judged)
    async with open_app(settings) as app:
        with progress("Asking") as update:
            return await app.calibrate(
                judged, lambda done: update(done, total, f"{done:,}/{total:,} questions"), keep=keep
            )


def as_dict(found: Calibrated, *, kept: bool) -> dict[str, Any]:
    """The JSON object of a calibration. What was fitted is null where the shipped confidence stays."""
    models = []
    for name, method in found.methods.items():
        model = found.models.get(name)
        weights = None if model is None else dict(model.weights)
        intercept = None if model is None else model.intercept
        limits = found.thresholds.get(name)
        thresholds = None if limits is None else asdict(limits)
        models.append(
            {"model": name, "method": method, "intercept": intercept, "weights": weights, "thresholds": thresholds}
        )
    return {
        "questions": found.questions,
        "cases": dict(found.kinds),
        "missed": found.missed,
        "before": asdict(found.before),
        "after": asdict(found.after),
        "models": models,
        "refused": [asdict(refusal) for refusal in found.refusals],
        "kept": kept,
    }


def _rows(found: Calibrated) -> list[tuple[str, str]]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items())
    rows = [("questions", f"{found.questions:,}"), ("asked as", kinds)]
    names = {
        "auroc": "AUROC (1 is best, .5 a coin)",
        "selective_risk": "wrong among the answered",
        "abstention": "unanswerable abstained from",
        "calibration_error": "calibration error (0 is best)",
        "log_loss": "log loss (0 is best)",
        "coverage_at_95": "answered at .95 right",
    }
    before, after = asdict(found.before), asdict(found.after)
    rows += [(label, f"{before[name]:.3f} before, {after[name]:.3f} after") for name, label in names.items()]
    return rows + [(f"model {name}", METHODS[method]) for name, method in found.methods.items()]
