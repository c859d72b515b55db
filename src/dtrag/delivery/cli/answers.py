"""`dtrag answers` and `dtrag verify`: answers as signed files, and their verification without a database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import Facts, Verbatim, note, show_result
from dtrag.delivery.cli.context import Json, invocation, question_of, with_app
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.trace import Question, TraceId
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.answer_bundle import Bundle

app = typer.Typer(no_args_is_help=True, help="Signed files of answers, and the key that signs them.")


@app.command("export")
def export(
    context: typer.Context,
    trace_id: TraceId,
    question: Question = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A new file; by default standard output.")] = None,
) -> int:
    """Write an answer with its evidence as one signed file.

    Texts that are not kept are left out; with --question the answer is given
    again, and is part of the file if it is the same.
    """
    text = None if question is None else question_of([question])

    async def exported(opened: App) -> Bundle:
        return await opened.replays.bundle(trace_id, question=text)

    bundle = with_app(context, exported)
    if out is None:
        return show_result(False, None, Verbatim(bundle.written().decode()))
    from dtrag.adapters.backup_file import new_file

    with new_file(out, force=False) as file:
        file.write(bundle.written())
    if left_out := bundle.payload["left_out"]:
        note(
            "Left out, because it is not kept, not there any more, or of a grade that exports may not have "
            f"(DTRAG_GRADE_LIMITS): {', '.join(left_out)}."
        )
    return OK


@app.command("key")
def key(context: typer.Context, as_json: Json = False) -> int:
    """Show the public key by which others verify files of answers."""
    from dtrag.adapters.answer_key import answer_seed
    from dtrag.adapters.answer_signature import public_key

    shown = public_key(answer_seed(invocation(context).settings()))
    return show_result(as_json, {"public_key": shown}, shown)


def verify(
    bundle: Annotated[Path, typer.Argument(metavar="FILE", help="The file; - reads standard input.")],
    key: Annotated[
        str | None, typer.Option(metavar="PUBLIC", help="The public key that the sender is known to have.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Verify a signed file of an answer. Needs no database and no network.

    Without --key it only shows that the file is unchanged since the owner of
    the key in it signed it.
    """
    from dtrag.adapters.answer_signature import verified
    from dtrag.core.answer_bundle import MOST_BYTES

    try:
        with sys.stdin.buffer if str(bundle) == "-" else bundle.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{bundle} cannot be read: {error.strerror}. Name the file of the bundle.") from error
    payload = verified(data, key).payload
    rows = [
        ("Key", payload["public_key"]),
        ("Answered", payload["answered_at"]),
        ("Question", payload["question"] or "(left out)"),
        ("Answer", payload["answer"] or "(left out)"),
        ("Decision", f"{payload['decision']}, confidence {payload['confidence']:.2f}"),
        *((f"[{each['number']}]", each["quote"] or "(left out)") for each in payload["citations"]),
    ]
    unknown = "" if key else "Whose key this is was not verified: compare it with --key PUBLIC."
    return show_result(as_json, payload, "The bundle is unchanged.", Facts(rows), notes=[unknown])
