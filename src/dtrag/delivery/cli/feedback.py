"""`dtrag feedback`: what one thinks of an answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.pipeline.answer_feedback import FeedbackOutcome

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
    from dtrag.delivery.cli.console import data, note, show_json

    if as_json:
        show_json(asdict(outcome))
        return OK
    case = f" {outcome.case_id}" if outcome.case_id else ""
    data().print(f"{_WORDS[outcome.effect]}{case}: {outcome.feedback.value}", soft_wrap=True)
    if outcome.note:
        note(outcome.note)
    return OK
