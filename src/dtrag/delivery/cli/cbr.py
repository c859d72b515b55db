"""`dtrag cbr`: the case memory, earlier questions and the passages that answered them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli import cbr_cases, cbr_checks, cbr_data
from dtrag.delivery.cli.cbr_bandit import bandit
from dtrag.delivery.cli.context import Json
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.evaluation.question_pairs import PairsReport

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="The case memory: earlier questions, and when an answer may be reused.",
)

_MAX_FILE_BYTES = 200_000_000


@app.callback()
def cbr() -> None:
    """The case memory: earlier questions, and when an answer may be reused."""


app.command("suggest")(cbr_cases.suggest)
app.command("add")(cbr_cases.add)
app.command("show")(cbr_cases.show)
app.command("list")(cbr_cases.list_cases)
app.command("set")(cbr_cases.set_case)
app.command("delete")(cbr_cases.delete)
app.command("feedback")(cbr_cases.feedback)
app.command("stats")(cbr_data.stats)
app.command("logs")(cbr_data.logs)
app.command("export")(cbr_data.export)
app.command("migrate")(cbr_data.migrate)
app.command("bandit")(bandit)
app.command("audit")(cbr_checks.audit)
app.command("consolidate")(cbr_checks.consolidate)
app.command("reflect")(cbr_checks.reflect)


@app.command("same")
def same(
    pairs: Annotated[
        str,
        typer.Argument(
            metavar="PAIRS",
            help="JSON lines with id, base, other and same; - reads standard input.",
            show_default=False,
        ),
    ],
    as_json: Json = False,
) -> int:
    """Decide for pairs of questions whether both ask the same.

    Where a line has "same", the decisions are counted: false hits among the
    pairs that ask something else, hits among those that ask the same. This
    needs no data folder.
    """
    from dtrag.evaluation.question_pairs import judged, read_pairs

    name = "Standard input" if pairs == "-" else Path(pairs).name
    report = judged(read_pairs(_text(pairs, name).splitlines(), name))
    from dtrag.delivery.cli.console import show_json

    if as_json:
        show_json(report.as_dict())
    else:
        _show(report)
    return OK


def _show(report: PairsReport) -> None:
    from dtrag.delivery.cli.console import cropped, data, note, plural, safe, table

    expected = {False: "no", True: "yes", None: "unknown"}
    rows = [(row.kind, expected[row.same], row.pairs, row.accepted) for row in report.kinds()]
    data().print(table(("Kind", "Same", "Pairs", "Taken for the same"), rows))
    for pair, decision in report.decisions:
        if pair.same is not None and decision.same != pair.same and not pair.same:
            data().print(safe(cropped(f"False hit {pair.id}: {decision.reason}", 80)), soft_wrap=True)
    counted = []
    if report.traps:
        bound = f"95 % upper bound {100 * report.upper_bound:.2f} %"
        counted.append(f"{plural(report.false_hits, 'false hit')} in {report.traps:,} traps ({bound})")
    if report.paraphrases:
        counted.append(f"{plural(report.hits, 'hit')} in {report.paraphrases:,} paraphrases")
    note("; ".join(counted) or plural(len(report.decisions), "pair"))


def _text(pairs: str, name: str) -> str:
    """The text of the file or of standard input. Raises `InvalidInput` when it cannot be read."""
    from dtrag.errors import InvalidInput

    try:
        if pairs == "-":
            return sys.stdin.read(_MAX_FILE_BYTES)
        file = Path(pairs)
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidInput(f"{name} is larger than {_MAX_FILE_BYTES // 1_000_000} MB. Split it into several files.")
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is not UTF-8 text. Give JSON lines in UTF-8.") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"{name} cannot be read: {reason}. Give a file of JSON lines, or - for input.") from error
