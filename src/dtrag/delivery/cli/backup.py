"""`dtrag backup`, `restore`, `upgrade` and `export`: the contents of the database as files, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import Facts, megabytes, note, plural, progress, show_result
from dtrag.delivery.cli.context import Json, Yes, confirmed, invocation, run_async, with_app
from dtrag.delivery.cli.exit_codes import FAILURE

if TYPE_CHECKING:
    from dtrag.backups import RestorePlan

_SHOWN = 10
"""Names that the text output has of each kind; `--json` has more."""
_TARGETS = {
    "empty": "empty",
    "later": "a later state of the same installation",
    "earlier": "an earlier state of the same installation",
    "branched": "the same installation, which was restored from an earlier backup",
    "other": "another installation",
}


def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Json = False,
) -> int:
    """Back up the database into one file, also while a service runs.

    The file has all documents, categories, keys, agents, cases, reviews and the
    audit log, of one moment. It is encrypted if DTRAG_BACKUP_KEY_FILE or
    DTRAG_BACKUP_KEY is set.
    """
    settings = invocation(context).settings()
    from dtrag.backups import make

    with progress("Backing up") as show:
        report = run_async(
            make(
                settings,
                file.absolute(),
                force=force,
                on_progress=lambda done, total: show(done, total, megabytes(done)),
            )
        )
    tables = report.manifest.tables
    rows = [
        ("Backup", f"{report.file}, {megabytes(report.bytes)}{', encrypted' if report.encrypted else ''}"),
        ("Contents", f"{plural(tables.get('documents', 0), 'document')}, {plural(tables.get('api_keys', 0), 'key')}"),
        ("Id", report.manifest.backup_id),
        ("Audit log", str(report.manifest.audit_head)),
    ]
    unencrypted = "" if report.encrypted else "It is not encrypted: store it where only you can read it."
    unrecorded = report.unrecorded and f"The audit log has no line about it: {report.unrecorded}"
    return show_result(as_json, report, Facts(rows), notes=[unencrypted, unrecorded])


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", show_default=False)],
    *,
    keep_keys: Annotated[
        bool, typer.Option("--keep-keys", help="Keep the keys valid; by default an empty target revokes all of them.")
    ] = False,
    deletions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A later audit log, audit.jsonl of `dtrag export`: what it reports as deleted and revoked is deleted "
            "and revoked again.",
        ),
    ] = None,
    bring_back: Annotated[
        bool, typer.Option("--bring-back", help="Documents and keys that were deleted or revoked since come back.")
    ] = False,
    replace_other: Annotated[
        bool, typer.Option("--replace-other", help="Replace the database of another installation.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> int:
    """Put a backup in place of the database.

    The file is checked to its end first. Nothing may use the database. A
    database that is not empty is compared with the backup and replaced only after
    confirmation; an interrupted restore leaves it as it was.
    """
    settings = invocation(context).settings()
    from dtrag.backups import RestoreOptions
    from dtrag.backups import restore as put_back

    def confirm(plan: RestorePlan) -> bool:
        if yes:
            return True
        for line in _differences(plan):
            note(line)
        return confirmed("Replace it?", "The database is not empty. Confirm with --yes that the backup replaces it.")

    with progress("Checking") as show:
        plan = run_async(
            put_back(
                settings,
                file.absolute(),
                RestoreOptions(keep_keys, bring_back, replace_other, deletions),
                confirm=confirm,
                on_progress=lambda done, total: show(done, total, megabytes(done)),
            )
        )
    if plan is None:
        note("Nothing was changed.")
        return FAILURE
    documents = plan.manifest.tables.get("documents", 0) - plan.deleted
    done = f"Restored {plural(documents, 'document')} of {plan.manifest.made_at}"
    return show_result(as_json, plan, done, notes=_differences(plan))


def _differences(plan: RestorePlan) -> Iterator[str]:
    """What is lost, comes back, and is deleted or revoked, a line each."""
    if plan.target != "empty":
        yield f"The database in its place is {_TARGETS[plan.target]}."
    named: list[tuple[str, int, list[str]]] = [
        ("revoked: {} of the backup", len(plan.revoked_keys), list(plan.revoked_keys)),
        ("valid again, though revoked since: {}", len(plan.returning_keys), list(plan.returning_keys)),
        ("created since, and lost: {}", len(plan.lost_keys), list(plan.lost_keys)),
    ]
    for text, count, names in named:
        if count:
            yield f"Keys {text.format(count)}: {_few(names)}"
    documents = [
        ("deleted again, as since the backup", plan.deleted, [each.title for each in plan.deleted_documents]),
        ("back, though deleted since", plan.returning, [each.title for each in plan.returning_documents]),
    ]
    for text, count, names in documents:
        if count:
            yield f"Documents {text}: {count:,}: {_few(names)}"
    if plan.lost:
        yield f"Documents that are not in the backup, and lost: {plan.lost:,}"


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def upgrade(context: typer.Context, as_json: Json = False) -> int:
    """Copy a data folder of an earlier PostgreSQL into one of the present version.

    Without an earlier one: migrate the schema, as every start does. After an
    interruption run it again.
    """
    settings = invocation(context).settings()
    from dtrag.backups import upgrade as copy

    with progress("Upgrading"):
        report = run_async(copy(settings))
    text = f"PostgreSQL {report.to_major}: the schema is current"
    if report.earlier is not None:
        copied = plural(len(report.databases), "database")
        text = f"Copied {copied} from PostgreSQL {report.from_major} to {report.to_major}"
    advice = f"The earlier database is {report.earlier}: delete it when everything works."
    return show_result(as_json, report, text, notes=[advice if report.earlier else ""])


def export(
    context: typer.Context,
    target: Annotated[
        Path, typer.Argument(metavar="FOLDER|FILE", help="A folder, or a file *.jsonl.", show_default=False)
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: Json = False,
) -> int:
    """Write documents, trees, agents, cases and the audit log as JSON lines.

    Into one file of the folder for each kind, or into one file *.jsonl whose lines
    have a kind. They contain the texts of all documents that exports may have
    (setting grade_limits): treat them like the database.
    """
    from dtrag.exports import export as write

    with progress("Exporting") as show:
        exported = with_app(
            context,
            lambda opened: write(
                opened,
                target.absolute(),
                force=force,
                on_progress=lambda kind, done: show(done, None, f"{done:,} {kind}"),
            ),
        )
    rows = [(kind, f"{count:,}") for kind, count in exported.lines.items()]
    left_out = [f"{count:,} {kind}" for kind, count in exported.above_grade.items()]
    advice = f"Left out, because exports may not have their grade (DTRAG_GRADE_LIMITS): {', '.join(left_out)}."
    notes = [advice if left_out else ""]
    return show_result(as_json, {"path": str(target.absolute()), **plain(exported)}, Facts(rows), notes=notes)
