"""`dtrag cbr`: the case memory, earlier questions and the passages that answered them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.response import plain
from dtrag.core.statements import text_of
from dtrag.delivery.cli import cbr_cases, cbr_checks
from dtrag.delivery.cli.console import (
    Facts,
    Rows,
    cropped,
    note,
    plural,
    safe,
    show_json,
    show_result,
)
from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import OK
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.cases.maintenance import Migrated
    from dtrag.core.cases.bandit import OfflineEvaluation, PolicyValue
    from dtrag.core.cases.evidence import CollectionEvidence
    from dtrag.core.cases.statistics import CaseStatistics

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


FILE = "cbr_system.db"


@app.command("stats")
def stats(context: typer.Context, as_json: Json = False) -> int:
    """Show the numbers of cases and interactions, their success and the speed of suggestions."""
    from dtrag.core.access.scope import EVERYTHING

    async def read(opened: App) -> tuple[CaseStatistics, CollectionEvidence]:
        return await opened.cases.statistics(), await opened.reuse.evidence(EVERYTHING)

    statistics, evidence = with_app(context, read)
    from dtrag.cases.views import StatisticsView
    from dtrag.core.cases.statistics import Readiness

    readiness = Readiness.of(statistics)
    figures = plain(StatisticsView.of(statistics))
    value = {**figures, "neural_selector_ready": readiness.ready, "reuse": evidence.as_dict()}
    largest = sorted(statistics.category_distribution.items(), key=lambda row: (-row[1], row[0]))
    rows = [
        ("Cases", f"{statistics.total_cases:,} active, {statistics.archived_cases:,} archived"),
        ("Quality", f"{statistics.average_quality_score:.2f} on average"),
        ("Votes", f"{statistics.total_usage_count:,}"),
        ("Most votes", statistics.most_used_case or "none yet"),
        ("Interactions", f"{statistics.total_interactions:,}, {statistics.success_rate:.0%} successful"),
        ("Suggestions", f"{statistics.average_response_time_ms:.1f} ms on average"),
        ("Selector", "ready to be trained" if readiness.ready else readiness.missing),
        ("Reuse", ("allowed. " if evidence.allowed else "not allowed. ") + text_of(evidence.reason)),
        *(("" if number else "Categories", f"{name}: {count:,}") for number, (name, count) in enumerate(largest)),
    ]
    return show_result(as_json, value, Facts(rows))


@app.command("logs")
def logs(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of entries.")] = 100,
    success_only: Annotated[
        bool, typer.Option("--success-only", help="Only interactions that ended with success.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List the newest interactions, newest first."""
    newest = with_app(context, lambda opened: opened.cases.logs(limit, success_only=success_only))
    from dtrag.cases.views import InteractionView

    rows = [
        (
            f"{log.timestamp:%Y-%m-%d %H:%M:%S}",
            log.query or "(without text)",
            len(log.suggested_case_ids),
            log.feedback.value if log.feedback else "",
            log.log_id,
        )
        for log in newest
    ]
    listed = Rows(("Time (UTC)", "Question", "Cases", "Vote", "Id"), rows, whole=("Cases",))
    count = plural(len(newest), "interaction") if newest else "There are no such interactions."
    return show_result(as_json, {"logs": list(map(InteractionView.of, newest)), "limit": limit}, listed, notes=[count])


@app.command("export")
def export(
    context: typer.Context,
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of cases, and of interactions.")
    ] = 10_000,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file.", show_default="standard output")
    ] = None,
    as_json: Json = False,
) -> int:
    """Export cases and interactions as training data, in JSON.

    The export contains questions as far as they are stored: treat it like the
    database.
    """
    exported = with_app(context, lambda opened: opened.cases.export(limit))
    import json
    from datetime import UTC, datetime

    from dtrag.cases.views import ExportView

    rows = plain(ExportView.of(exported, datetime.now(UTC)))
    if output is None:
        show_json(rows)
    else:
        output.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", "utf-8")
        if as_json:
            show_json({"file": str(output), "metadata": rows["training_data"]["metadata"]})
    cases, interactions = plural(len(exported.cases), "case"), plural(len(exported.interactions), "interaction")
    note(f"{cases}, {interactions}" + ("" if exported.complete else "; there are more, raise --limit"))
    return OK


@app.command("migrate")
def migrate(
    context: typer.Context,
    *,
    to_sqlite: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Copy from the database to cbr_system.db there.", show_default=False),
    ] = None,
    from_sqlite: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Copy from cbr_system.db there to the database.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> int:
    """Copy the case memory between the database and an SQLite file.

    Cases are copied with their votes and decisions, and interactions. What the
    target has already stays as it is there; nothing is deleted.
    """
    folder = to_sqlite or from_sqlite
    if folder is None or (to_sqlite and from_sqlite):
        raise typer.BadParameter("give either --to-sqlite or --from-sqlite")
    if from_sqlite and not (from_sqlite / FILE).is_file():
        raise InvalidInput(f"There is no {FILE} in {folder}. Give the folder that was CBR_DATA_DIR.")

    async def copy(opened: App) -> Migrated:
        from dtrag.assembly import both_case_stores
        from dtrag.cases.maintenance import migrate
        from dtrag.core.access.api_key import LOCAL

        in_database, in_file = both_case_stores(opened.settings, opened.database, folder.absolute())
        try:
            done = await (migrate(in_file, in_database) if from_sqlite else migrate(in_database, in_file))
        finally:
            await in_file.close()
        details = {"to": "database" if from_sqlite else "sqlite", "cases": done.cases, "logs": done.logs}
        await opened.audit.record(
            LOCAL.name, "cases.migrate", scope=None, subjects=(), decision="done", details=details
        )
        return done

    migrated = with_app(context, copy)
    value = {
        "cases": migrated.cases,
        "known_cases": migrated.known_cases,
        "interactions": migrated.logs,
        "known_interactions": migrated.known_logs,
    }
    copied = f"Copied {plural(migrated.cases, 'case')} and {plural(migrated.logs, 'interaction')}"
    known = f"There already: {plural(migrated.known_cases, 'case')}, {plural(migrated.known_logs, 'interaction')}"
    return show_result(as_json, value, copied, notes=[known] if migrated.known_cases or migrated.known_logs else [])


VERDICTS = {
    "helps": "It earns more than the default: switch it on with FEATURE_SOFT_Q_BANDIT=true",
    "harms": "It earns less than the default: leave it off.",
    "no difference found": "No difference is beyond chance: leave it off, or explore longer.",
    "not enough data": "More exploring answers are needed: dtrag cbr bandit --explore 5",
}


@app.command("bandit")
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
    figures = (
        ("Default", evaluation.default),
        ("Learned", evaluation.learned),
        ("Learned, by replay", evaluation.learned_by_replay),
        ("Gain", evaluation.gain),
    )
    return show_result(
        as_json,
        {"explore": share, **asdict(evaluation), "verdict": evaluation.verdict},
        f"Exploring: {share:.1%} of the answers",
        f"Recorded: {evaluation.experiences:,} answers, {evaluation.explored:,} explored",
        *(f"{name:<20}{_value_with_interval(value)}" for name, value in figures),
        VERDICTS[evaluation.verdict],
    )


def _value_with_interval(value: PolicyValue) -> str:
    if value.value is None or value.low is None or value.high is None:
        return "-"
    return f"{value.value:6.3f}  95 % {value.low:.3f} to {value.high:.3f}  ({value.answers:,} answers)"


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

    expected = {False: "no", True: "yes", None: "unknown"}
    rows = [(row.kind, expected[row.same], row.pairs, row.accepted) for row in report.kinds()]
    wrong = [
        cropped(safe(f"False hit {pair.id}: {decision.reason}"), 80)
        for pair, decision in report.decisions
        if pair.same is False and decision.same
    ]
    counted = []
    if report.traps:
        bound = f"95 % upper bound {100 * report.upper_bound:.2f} %"
        counted.append(f"{plural(report.false_hits, 'false hit')} in {report.traps:,} traps ({bound})")
    if report.paraphrases:
        counted.append(f"{plural(report.hits, 'hit')} in {report.paraphrases:,} paraphrases")
    summary = "; ".join(counted) or plural(len(report.decisions), "pair")
    listed = Rows(("Kind", "Same", "Pairs", "Taken for the same"), rows)
    return show_result(as_json, report.as_dict(), listed, *wrong, notes=[summary])


def _text(pairs: str, name: str) -> str:
    """The text of the file or of standard input. Raises `InvalidInput` when it cannot be read."""
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
