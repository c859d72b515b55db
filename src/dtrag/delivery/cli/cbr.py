"""`dtrag cbr`: the case memory, earlier questions and the passages that answered them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import Facts, ListFormat, Rows, cropped, note, plural, safe, show_json, show_result
from dtrag.delivery.cli.context import Form, Json, question_of, with_app
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.cases.maintenance import ConsolidationReport, Migrated
    from dtrag.core.cases.bandit import OfflineEvaluation, PolicyValue
    from dtrag.core.cases.reuse_verdict import CollectionEvidence
    from dtrag.core.cases.statistics import CaseStatistics

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="The case memory: earlier questions, and when an answer may be reused.",
)

FILE = "cbr_system.db"
_MAX_FILE_BYTES = 200_000_000
_SHOWN = 40
"""Findings that are printed; `--json` has all."""

CaseId = Annotated[str, typer.Argument(metavar="ID", help="The id from the list.", show_default=False)]
Query = Annotated[list[str], typer.Argument(metavar="QUESTION", help="The question; - reads standard input.")]
Category = Annotated[
    str | None, typer.Option(metavar="PATH", help='The category, such as "HR/Leave".', show_default=False)
]
Content = Annotated[str | None, typer.Option(metavar="TEXT", help="What is shown with the case.", show_default=False)]
Quality = Annotated[
    float | None, typer.Option(metavar="NUMBER", min=0, max=1, help="Its quality, from 0 to 1.", show_default=False)
]
Passages = Annotated[
    list[str] | None,
    typer.Option("--passage", metavar="CHUNK_ID", help="A passage that it cites; may be repeated.", show_default=False),
]
Metadata = Annotated[str | None, typer.Option(metavar="JSON", help="Metadata, as a JSON object.", show_default=False)]
Status = Annotated[
    Literal["active", "archived"] | None, typer.Option(help="An archived case is never suggested.", show_default=False)
]
Limit = Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of entries.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]


@app.callback()
def cbr() -> None:
    """The case memory: earlier questions, and when an answer may be reused."""


@app.command("suggest")
def suggest(
    context: typer.Context,
    query: Query,
    *,
    category: Category = None,
    subcategories: Annotated[bool, typer.Option("--subcategories", help="The branch below --category, too.")] = False,
    k: Annotated[int, typer.Option("-k", min=1, max=50, help="Maximum number of cases.")] = 5,
    similarity: Annotated[
        Literal["cosine", "euclidean", "jaccard", "semantic"], typer.Option(help="How questions are compared.")
    ] = "semantic",
    min_quality: Annotated[float, typer.Option(min=0, max=1, help="Leave out cases of a lower quality.")] = 0.0,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """Show the cases whose questions are most similar, best first."""
    from dtrag.core.cases.case import SimilarityMethod

    text, method = question_of(query), SimilarityMethod(similarity)
    suggested = with_app(
        context,
        lambda opened: opened.cases.suggest(
            text, category, k, method=method, min_quality=min_quality, prefix=subcategories
        ),
    )
    value = {
        "query": text,
        "suggestions": [{**plain(case), "similarity_score": score} for case, score in suggested.cases],
        "similarity_method": suggested.method.value,
        "execution_time_ms": suggested.milliseconds,
        "log_id": suggested.log_id,
        "notes": list(map(str, suggested.notes)),
    }
    rows = [
        (f"{score:.2f}", case.query, "/".join(case.category_path), f"{case.quality_score:.2f}", case.case_id)
        for case, score in suggested.cases
    ]
    votable = suggested.cases and suggested.log_id is not None
    return show_result(
        as_json or form,
        value,
        Rows(("Same", "Question", "Category", "Quality", "Id"), rows, whole=("Same", "Quality")),
        notes=[
            "" if suggested.cases else "There is no case to suggest.",
            *map(str, suggested.notes),
            f"To vote: dtrag cbr feedback {suggested.log_id} ID thumbs_up" if votable else "",
        ],
    )


@app.command("add")
def add(
    context: typer.Context,
    query: Query,
    *,
    category: Annotated[
        str, typer.Option(metavar="PATH", help='Its category, such as "HR/Leave".', show_default=False)
    ],
    content: Annotated[str, typer.Option(metavar="TEXT", help="What is shown with the case.", show_default=False)],
    quality: Quality = None,
    passage: Passages = None,
    metadata: Metadata = None,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="The day of the question, such as 2024-03-01.", show_default="today"),
    ] = None,
    case_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its id.", show_default="a new one")] = None,
    as_json: Json = False,
) -> int:
    """Add a case. With passages it can be reused, once votes or later answers confirm it."""
    from dtrag.core.cases.case import DEFAULT_QUALITY

    values: dict[str, Any] = {
        "quality_score": DEFAULT_QUALITY if quality is None else quality,
        "metadata": _metadata(metadata) or {},
        "case_id": case_id,
        "passages": passage or (),
        "as_of": as_of,
    }
    text = question_of(query)
    case = with_app(context, lambda opened: opened.cases.add(text, category, content, **values))
    from dtrag.cases.views import notes_on

    for remark in notes_on(case):
        note(str(remark))
    return show_result(as_json, case, f"Added {case.case_id}")


@app.command("show")
def show(context: typer.Context, case_id: CaseId, as_json: Json = False) -> int:
    """Show one case, archived or not."""
    case = with_app(context, lambda opened: opened.cases.get(case_id))
    rows = [
        ("Id", case.case_id),
        ("Question", case.query or "(stored without text)"),
        ("Category", "/".join(case.category_path)),
        ("Content", case.content),
        ("Quality", f"{case.quality_score:.2f}"),
        ("Votes", f"{case.upvotes:,} up, {case.downvotes:,} down, {case.usage_count:,} in all"),
        ("Success", f"{case.success_rate:.0%}"),
        ("Origin", case.origin),
        ("Status", case.status),
        *(("Passages" if not number else "", cited.chunk_id) for number, cited in enumerate(case.passages)),
        *((("Day", case.as_of.isoformat()),) if case.as_of else ()),
        ("Created", case.created_at.isoformat()),
        ("Changed", case.updated_at.isoformat()),
    ]
    return show_result(as_json, case, Facts(rows))


@app.command("list")
def list_cases(
    context: typer.Context,
    *,
    limit: Limit = 100,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Continue after this id.", show_default=False)] = None,
    status: Status = None,
    stale: Annotated[
        bool | None,
        typer.Option("--stale/--fresh", help="Only cases with changed or missing passages, or only the others."),
    ] = None,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the cases by id."""
    page = with_app(context, lambda opened: opened.cases.page(limit, after, status=status, stale=stale))
    rows = [
        (
            case.case_id,
            case.query or "(without text)",
            f"{case.quality_score:.2f}",
            case.usage_count,
            "stale" if case.stale else case.status,
        )
        for case in page.cases
    ]
    count = plural(len(page.cases), "case") if page.cases or page.next else "There are no such cases."
    more = "" if page.next is None else f"More: dtrag cbr list --after {page.next}"
    listed = Rows(("Id", "Question", "Quality", "Votes", "State"), rows, whole=("Quality", "Votes", "State"))
    return show_result(as_json or form, page, listed, notes=[count, more])


@app.command("set")
def set_case(
    context: typer.Context,
    case_id: CaseId,
    *,
    query: Annotated[str | None, typer.Option(metavar="QUESTION", help="The new question.", show_default=False)] = None,
    category: Category = None,
    content: Content = None,
    quality: Quality = None,
    passage: Passages = None,
    metadata: Metadata = None,
    status: Status = None,
    as_json: Json = False,
) -> int:
    """Change a case; what is not given stays."""
    values: dict[str, Any] = {
        "query": query,
        "category_path": category,
        "content": content,
        "quality_score": quality,
        "passages": passage or None,
        "metadata": _metadata(metadata),
        "status": status,
    }
    _, case = with_app(context, lambda opened: opened.cases.change(case_id, **values))
    return show_result(as_json, case, f"Changed {case.case_id}")


def _metadata(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput('--metadata is not JSON. Give an object, such as \'{"source": "help desk"}\'.') from error
    if not isinstance(value, dict):
        raise InvalidInput('--metadata is not a JSON object, such as \'{"source": "help desk"}\'.')
    return value


@app.command("delete")
def delete(context: typer.Context, case_id: CaseId, as_json: Json = False) -> int:
    """Delete a case with its votes and the interactions that name only it."""
    with_app(context, lambda opened: opened.cases.delete(case_id))
    return show_result(as_json, {"deleted": case_id}, f"Deleted {case_id}")


@app.command("feedback")
def feedback(
    context: typer.Context,
    log_id: Annotated[str, typer.Argument(metavar="LOG_ID", help="The log id of the suggestion.", show_default=False)],
    case_id: CaseId,
    vote: Annotated[
        Literal["thumbs_up", "thumbs_down", "selected", "ignored"],
        typer.Argument(metavar="VOTE", help="thumbs_up, thumbs_down, selected or ignored.", show_default=False),
    ],
    *,
    failed: Annotated[bool, typer.Option("--failed", help="The case did not help.")] = False,
    as_json: Json = False,
) -> int:
    """Vote on a case that `dtrag cbr suggest` showed; another vote replaces the first."""
    from dtrag.core.cases.case import FeedbackType

    kind, success = FeedbackType(vote), False if failed else None
    case = with_app(context, lambda opened: opened.cases.feedback(log_id, case_id, kind, success=success))
    value = {
        "log_id": log_id,
        "case_id": case.case_id,
        "feedback": vote,
        "quality_score": case.quality_score,
        "usage_count": case.usage_count,
        "success_rate": case.success_rate,
    }
    voted = f"{case.case_id}: quality {case.quality_score:.2f}, {plural(case.usage_count, 'vote')}"
    return show_result(as_json, value, voted)


@app.command("stats")
def stats(context: typer.Context, as_json: Json = False) -> int:
    """Show the numbers of cases and interactions, their success and the speed of suggestions."""
    from dtrag.core.access.scope import EVERYTHING
    from dtrag.core.cases.statistics import Readiness

    async def read(opened: App) -> tuple[CaseStatistics, CollectionEvidence]:
        return await opened.cases.statistics(), await opened.reuse.evidence(EVERYTHING)

    statistics, evidence = with_app(context, read)
    readiness = Readiness.of(statistics)
    rows = [
        ("Cases", f"{statistics.total_cases:,} active, {statistics.archived_cases:,} archived"),
        ("Quality", f"{statistics.average_quality_score:.2f} on average"),
        ("Votes", f"{statistics.total_usage_count:,}"),
        ("Most votes", statistics.most_used_case or "none yet"),
        ("Interactions", f"{statistics.total_interactions:,}, {statistics.success_rate:.0%} successful"),
        ("Suggestions", f"{statistics.average_response_time_ms:.1f} ms on average"),
        ("Selector", "ready to be trained" if readiness.ready else readiness.missing),
        ("Reuse", ("allowed. " if evidence.allowed else "not allowed. ") + evidence.reason),
    ]
    for number, (name, count) in enumerate(statistics.category_distribution.items()):
        rows.append(("" if number else "Categories", f"{name}: {count:,}"))
    value = {**plain(statistics), "neural_selector_ready": readiness.ready, "reuse": evidence}
    return show_result(as_json, value, Facts(rows))


@app.command("logs")
def logs(
    context: typer.Context,
    *,
    limit: Limit = 100,
    success_only: Annotated[
        bool, typer.Option("--success-only", help="Only interactions that ended with success.")
    ] = False,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the newest interactions, newest first."""
    newest = with_app(context, lambda opened: opened.cases.logs(limit, success_only=success_only))
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
    return show_result(as_json or form, {"logs": newest, "limit": limit}, listed, notes=[count])


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
    metadata = exported.training_data.metadata
    if output is None:
        show_json(exported)
    else:
        output.write_text(json.dumps(plain(exported), ensure_ascii=False, indent=2) + "\n", "utf-8")
        if as_json:
            show_json({"file": str(output), "metadata": metadata})
    cases, interactions = plural(metadata.case_count, "case"), plural(metadata.interaction_count, "interaction")
    note(f"{cases}, {interactions}" + ("" if metadata.complete else "; there are more, raise --limit"))
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


def _lines(texts: Iterable[str]) -> list[str]:
    return [cropped(safe(text), 80) for text in texts]


@app.command("audit")
def audit(context: typer.Context, as_json: Json = False) -> int:
    """Check that every case can be traced to live sources.

    The exit code is 1 when cases need a person: stale ones, duplicates, ones
    that refer to themselves, and ones that a reader voted down.
    """
    report = with_app(context, lambda opened: opened.case_auditor.audit())
    from dtrag.cases.maintenance import FINDINGS, NEED_A_PERSON

    counts = [(f"{report.counts[finding]:,}", text) for finding, text in FINDINGS.items()]
    rows = [row for row in report.findings if row.finding in NEED_A_PERSON]
    show_result(
        as_json,
        report,
        Rows(("Cases", "Finding"), counts, whole=("Cases",)),
        *_lines(f"{row.case_id}: {row.finding.replace('_', ' ')}, {row.details}" for row in rows[:_SHOWN]),
        notes=[
            f"{len(rows) - _SHOWN:,} more: --json has all of them." if len(rows) > _SHOWN else "",
            f"{plural(report.examined, 'case')}, {report.archived:,} archived; {report.reusable:,} cite live passages, "
            f"{report.without_sources:,} cite none and are only suggested.",
        ],
    )
    return FAILURE if report.needs_a_person else OK


@app.command("consolidate")
def consolidate(
    context: typer.Context,
    *,
    dry_run: DryRun = False,
    undo: Annotated[
        str | None, typer.Option(metavar="RUN", help="Restore what this run archived.", show_default=False)
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="List the runs that can be undone.")] = False,
    as_json: Json = False,
) -> int:
    """Merge duplicate cases, and archive poor and unused ones.

    A run that was interrupted is continued by the next one.
    """
    if sum((dry_run, undo is not None, runs)) > 1:
        raise typer.BadParameter("give only one of --dry-run, --undo and --runs")
    from dtrag.core.cases.consolidation import REASONS

    if undo is not None:
        restored = with_app(context, lambda opened: opened.consolidation.undo(undo))
        done = f"Restored {plural(restored, 'case')} of {undo}"
        return show_result(as_json, {"run": undo, "restored": restored}, done)
    if runs:
        listed = with_app(context, lambda opened: opened.consolidation.runs())
        rows = [{"run": name, **{reason: counts[reason] for reason in REASONS}} for name, counts in listed.items()]
        shown = Rows(("Run", "Merged", "Poor", "Unused"), [tuple(row.values()) for row in rows])
        none = "" if rows else "No run can be undone: none has archived cases."
        return show_result(as_json, {"runs": rows}, shown, notes=[none])
    report = with_app(context, lambda opened: opened.consolidation.run(dry_run=dry_run))
    lines = _lines(
        f"{each.case.case_id}: {each.reason}" + (f" into {each.into.case_id}" if each.into is not None else "")
        for each in report.archived[:_SHOWN]
    )
    return show_result(as_json, report, *lines, notes=_consolidated(report, REASONS))


def _consolidated(report: ConsolidationReport, reasons: Iterable[str]) -> Iterator[str]:
    counts = ", ".join(f"{report.count(reason):,} {reason}" for reason in reasons)
    examined = plural(report.examined, "case")
    if report.made_from_review:
        yield f"{plural(report.made_from_review, 'case')} made from earlier decisions of reviewers."
    if report.dry_run:
        yield f"{examined} examined; would be archived: {counts}. Nothing was changed."
    elif not report.archived:
        yield f"{examined} examined; nothing to archive."
    else:
        yield f"{examined} examined; archived: {counts}. Undo: dtrag cbr consolidate --undo {report.run_id}"
    if report.changed_meanwhile:
        yield f"{plural(report.changed_meanwhile, 'case')} changed meanwhile: run the command again."


@app.command("reflect")
def reflect(context: typer.Context, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Show how often each case helped, and what to correct.

    Cases that failed in most of at least 10 votes get a lower quality, so that
    they are not reused, and their questions wait in the review queue.
    """
    report = with_app(context, lambda opened: opened.reflection.reflect(dry_run=dry_run))
    rows = [
        (f"{each.success_rate:.0%}", f"{each.votes:,}", each.case.case_id, each.advice or "It helps.")
        for each in report.cases[:_SHOWN]
    ]
    queued = sum(each.in_review for each in report.cases)
    overall = "" if report.success_rate is None else f", {report.success_rate:.0%} of which report a success"
    in_review = "" if dry_run else f" {plural(queued, 'question')} in the review queue: dtrag review"
    judged = "" if report.cases else "No case has 10 votes: too few for a judgement."
    if report.bad:
        judged = f"{plural(len(report.bad), 'case')} failed more often than helped.{in_review}"
    return show_result(
        as_json,
        report,
        Rows(("Helped", "Votes", "Case", "Advice"), rows, whole=("Helped", "Votes")),
        notes=[f"{plural(report.examined, 'case')} with {plural(report.votes, 'vote')}{overall}.", judged],
    )


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
    wrong = _lines(
        f"False hit {pair.id}: {decision.reason}"
        for pair, decision in report.decisions
        if pair.same is False and decision.same
    )
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
