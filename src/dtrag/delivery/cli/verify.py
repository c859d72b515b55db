"""`dtrag regulations verify`: whether what a text cites exists."""

from __future__ import annotations

import sys
from bisect import bisect_right
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import AsOf, Direct, Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.delivery.cli.file_documents import documents_of
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.core.verification import QuotationStatus, VerifiedCitation, VerifiedQuotation
    from dtrag.settings import Settings

MOST_CHARACTERS = 1_000_000
"""Maximum read from standard input or a file; how much is verified at once is decided later."""

IN_WORDS: dict[QuotationStatus, str] = {
    "verbatim": "verbatim in",
    "same_letters": "in other blanks or punctuation in",
    "different": "not in the text of",
}


def verify(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A text or document; - reads standard input.", show_default=False)
    ],
    *,
    regulation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The regulation of references before any name.", show_default=False),
    ] = None,
    as_of: AsOf = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Check whether the articles and regulations that a text cites exist.

    Exit code 1: at least one citation is missing, repealed, unclear, or has
    another name or title.
    """
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import Verification

    text = _standard_input() if file == "-" else run_async(_file_text(invocation(context).settings(), Path(file)))
    arguments = {"text": text, "regulation": regulation, "as_of": as_of}
    verified = read(context, "verify", arguments, Verification, direct=direct)
    from dtrag.delivery.cli.console import data, note, plural, safe, show_json

    if as_json:
        citations = [asdict(citation) for citation in verified.citations]
        quotations = [asdict(quotation) for quotation in verified.quotations]
        show_json({"citations": citations, "counts": verified.counts, "quotations": quotations})
    else:
        line_starts = [0, *(place + 1 for place, character in enumerate(text) if character == "\n")]
        for citation in verified.citations:
            line = bisect_right(line_starts, citation.start)
            style = "dim" if citation.status == "exists" else None
            data().print(safe(_described(citation, line)), soft_wrap=True, style=style)
        for quotation in verified.quotations:
            line = bisect_right(line_starts, quotation.start)
            style = "dim" if quotation.status == "verbatim" else None
            data().print(safe(_compared(quotation, line)), soft_wrap=True, style=style)
    if not verified.citations:
        note(f"The text has no citations of regulations ({plural(len(text), 'character')} read).")
    else:
        counts = ", ".join(f"{number:,} {status}" for status, number in verified.counts.items() if number)
        note(f"{plural(len(verified.citations), 'citation')}: {counts}")
    return OK if verified.all_exist else FAILURE


def _described(citation: VerifiedCitation, line: int) -> str:
    """Line 3: 학칙 제99조: missing. 학칙 has no 제99조. There are 제1조–제23조."""
    described = f"line {line}: {' '.join(citation.text.split())}: {citation.status}"
    if citation.status == "exists":
        return f"{described} → {citation.target}" + (f"({citation.title})" if citation.title else "")
    described += f". {citation.reason}" if citation.reason else ""
    return described + (f" There are {citation.range}." if citation.range else "")


def _compared(quotation: VerifiedQuotation, line: int) -> str:
    """Line 3: “휴학은 4학기까지로 한다.”: verbatim in 학칙 제2조."""
    described = f"line {line}: “{' '.join(quotation.text.split())}”"
    if quotation.target is None:
        return f"{described}: not compared: there is no text of what is cited beside it"
    return f"{described}: {IN_WORDS[quotation.status]} {quotation.target}"


def _standard_input() -> str:
    """The text of standard input. Raises `InvalidInput` when it is not UTF-8."""
    try:
        return sys.stdin.read(MOST_CHARACTERS)
    except UnicodeDecodeError as error:
        raise InvalidInput("Standard input is not UTF-8 text.") from error


async def _file_text(settings: Settings, path: Path) -> str:
    """The text of a file. Raises `InvalidInput` for one that cannot be read."""
    return "\n\n".join(document.text for document in await documents_of(settings, path, MOST_CHARACTERS))
