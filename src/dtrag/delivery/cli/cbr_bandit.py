"""`dtrag cbr bandit`: what the choice of ways to answer has learned, and whether switching it on would help."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.cases.bandit import OfflineEvaluation, PolicyValue

VERDICTS = {
    "helps": "It earns more than the default: switch it on with FEATURE_SOFT_Q_BANDIT=true",
    "harms": "It earns less than the default: leave it off.",
    "no difference found": "No difference is beyond chance: leave it off, or explore longer.",
    "not enough data": "More exploring answers are needed: dtrag cbr bandit --explore 5",
}


def bandit(
    context: typer.Context,
    explore: Annotated[
        float | None,
        typer.Option(metavar="PERCENT", help="Let so many percent of the answers explore; 0 ends it."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show whether choosing fusion weights by question would help.

    While a share of the answers explores (CBR_ENABLED=true), each records its
    choice, how likely that was, and what it earned: .7 of the confidence and
    .3 of the speed. From these the earnings of the learned policy are
    estimated, on answers that it did not learn from.
    """

    async def run(opened: App) -> tuple[float, OfflineEvaluation]:
        if explore is not None:
            await opened.learning.explore(explore)
        return await opened.learning.exploration(), await opened.learning.evaluation()

    share, evaluation = with_app(context, run)
    from dtrag.delivery.cli.console import show_json

    if as_json:
        show_json({"explore": share, **asdict(evaluation), "verdict": evaluation.verdict})
        return OK
    typer.echo(f"Exploring: {share:.1%} of the answers")
    typer.echo(f"Recorded: {evaluation.experiences:,} answers, {evaluation.explored:,} explored")
    for name, value in (
        ("Default", evaluation.default),
        ("Learned", evaluation.learned),
        ("Learned, by replay", evaluation.learned_by_replay),
        ("Gain", evaluation.gain),
    ):
        typer.echo(f"{name:<20}{_shown(value)}")
    typer.echo(VERDICTS[evaluation.verdict])
    return OK


def _shown(value: PolicyValue) -> str:
    if value.value is None or value.low is None or value.high is None:
        return "-"
    return f"{value.value:6.3f}  95 % {value.low:.3f} to {value.high:.3f}  ({value.answers:,} answers)"
