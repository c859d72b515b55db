"""`dtrag calibrate`: fits the confidence to your documents, with judged questions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import Facts, note, show_result
from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import FAILURE, OK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dtrag.app import App
    from dtrag.evaluation.calibration import Calibrated

METHODS = {
    "shipped": "as shipped: no fit was better",
    "line": "shipped, with a fitted intercept and slope",
    "weights": "fitted weights",
}


def calibrate(
    context: typer.Context,
    questions: Annotated[
        Path | None,
        typer.Argument(metavar="[QUESTIONS.jsonl]", help="Judged questions, one per line.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only measure, change nothing.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Return to the shipped confidence.")] = False,
    as_json: Json = False,
) -> int:
    """Fit the confidence to your documents.

    A line is {"question": "...", "answerable": false}, or names the answer:
    {"question": "...", "document": "..."} or "answer". At least 20 lines, better
    75. It takes effect with the next question, in every process.
    """
    if reset == (questions is not None) or (reset and dry_run):
        raise typer.BadParameter("give either a file of questions (with or without --dry-run), or --reset alone")
    if questions is None:
        return _reset(context, as_json)
    from dtrag.delivery.cli.console import progress
    from dtrag.evaluation.calibration import read_questions

    judged = read_questions(questions)

    async def fit(opened: App) -> Calibrated:
        with progress("Asking") as update:
            return await opened.calibrate(
                judged,
                lambda done: update(done, len(judged), f"{done:,}/{len(judged):,} questions"),
                keep=not dry_run,
            )

    result = with_app(context, fit)
    refusals = [
        f"Refused for model {refusal.model} ({METHODS[refusal.method]}): {'; '.join(refusal.reasons)}."
        for refusal in result.refusals
    ]
    show_result(as_json, as_dict(result, stored=result.helps and not dry_run), Facts(_rows(result)), notes=refusals)
    if result.missed:
        note(
            f"For {result.missed:,} answerable questions the answer was not among the retrieved passages: "
            "they count as unanswered."
        )
    note(_outcome(result, dry_run))
    return OK if dry_run or result.helps else FAILURE


def _outcome(result: Calibrated, dry_run: bool) -> str:
    if dry_run:
        return "Nothing was changed (--dry-run)."
    if result.helps:
        return "Active from the next question on."
    return "Nothing was changed: no fit is better than the shipped confidence. More questions may help."


def _reset(context: typer.Context, as_json: bool) -> int:
    was_calibrated = with_app(context, lambda opened: opened.uncalibrate())
    done = "Back to the shipped confidence." if was_calibrated else "There was no calibration: nothing to reset."
    return show_result(as_json, {"reset": was_calibrated}, done)


def as_dict(result: Calibrated, *, stored: bool) -> Mapping[str, object]:
    """The JSON object of a calibration. Fitted values are null where the shipped confidence stays."""
    models = []
    for name, method in result.methods.items():
        model = result.models.get(name)
        weights = None if model is None else dict(model.weights)
        intercept = None if model is None else model.intercept
        limits = result.thresholds.get(name)
        thresholds = None if limits is None else asdict(limits)
        models.append(
            {"model": name, "method": method, "intercept": intercept, "weights": weights, "thresholds": thresholds}
        )
    return {
        "questions": result.questions,
        "cases": dict(result.kinds),
        "missed": result.missed,
        "before": asdict(result.before),
        "after": asdict(result.after),
        "models": models,
        "refused": [asdict(refusal) for refusal in result.refusals],
        "kept": stored,
    }


def _rows(result: Calibrated) -> list[tuple[str, str]]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in result.kinds.items())
    rows = [("questions", f"{result.questions:,}"), ("cases", kinds)]
    names = {
        "auroc": "AUROC (1 is best, .5 a coin)",
        "selective_risk": "wrong among answered",
        "abstention": "abstention on unanswerable",
        "calibration_error": "calibration error (0 is best)",
        "log_loss": "log loss (0 is best)",
        "coverage_at_95": "coverage at .95 correct",
    }
    before, after = asdict(result.before), asdict(result.after)
    rows += [(label, f"{before[name]:.3f} before, {after[name]:.3f} after") for name, label in names.items()]
    return rows + [(f"model {name}", METHODS[method]) for name, method in result.methods.items()]
