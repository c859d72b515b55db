"""The document reader as a tool: takes the content of a file, never a path, and parses it as ingestion does."""

from __future__ import annotations

import asyncio
import base64
import binascii
import shutil
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from dtrag.errors import ParseFailed
from dtrag.ports import Parser
from dtrag.tools.registry import Tool
from dtrag.tools.schema import tool_of

CONTENT_CHARACTERS = 8 << 20
"""Maximum size of a file: 6 MiB in base64. Larger ones are for `dtrag ingest`."""
TEXT_CHARACTERS = 50_000
"""Maximum text of all documents in the file together, so that the output stays below the limit of tools."""
MOST_DOCUMENTS = 100
Format = Literal[
    "txt", "md", "html", "pdf", "docx", "pptx", "odt", "hwpx", "hwp", "hml", "eml", "xlsx", "xls", "ods", "csv",
    "jsonl", "json", "xml",
]  # fmt: skip


class DocumentOutput(TypedDict):
    """A document of a file."""

    title: str
    text: str


class ParsedFile(TypedDict):
    """The output of the tool."""

    documents: list[DocumentOutput]
    truncated: bool


def doc_parser(parser: Parser | None) -> Tool:
    """The tool with a parser, which runs in a limited child process; without one the tool only reports that."""

    async def parse(
        content: Annotated[str, "The file: as text, or in base64", {"maxLength": CONTENT_CHARACTERS}],
        format: Annotated[Format, "What kind of file it is"] = "txt",  # noqa: A002 - the published name
        encoding: Annotated[Literal["text", "base64"], "How content is written"] = "text",
    ) -> ParsedFile:
        """Extracts the text of a document in the input. Returns `documents`, each with title and text, and
        `truncated`: whether there was more than is given."""
        if parser is None:
            raise ParseFailed("documents can be read while an app is open: async with dtrag.open()")
        folder = tempfile.mkdtemp(prefix="dtrag-tool-")
        path = Path(folder) / f"document.{format}"
        writing = asyncio.ensure_future(asyncio.to_thread(_write, path, content, encoding))
        try:
            await asyncio.shield(writing)
            return await _read(parser, path)
        finally:
            if writing.done():
                shutil.rmtree(folder, ignore_errors=True)
            else:  # a thread that is still writing would create the file again
                writing.add_done_callback(lambda _: shutil.rmtree(folder, ignore_errors=True))

    return tool_of(parse, name="doc_parser")


def _write(path: Path, content: str, encoding: str) -> None:
    """Write the content to the file. Blocking. Raises `ParseFailed` for invalid base64."""
    if encoding == "text":
        path.write_bytes(content.encode("utf-8", "replace"))
        return
    try:
        path.write_bytes(base64.b64decode("".join(content.split()), validate=True))
    except (binascii.Error, ValueError) as error:
        raise ParseFailed("content is not base64") from error


async def _read(parser: Parser, path: Path) -> ParsedFile:
    """The documents in the file, up to the limits of number and text. Raises `ParseFailed`."""
    documents: list[DocumentOutput] = []
    left = TEXT_CHARACTERS
    truncated = False
    async with aclosing(parser.parse(path, path.name)) as parsed:
        async for document in parsed:
            if left <= 0 or len(documents) == MOST_DOCUMENTS:
                truncated = True
                break
            documents.append({"title": document.title[:300], "text": document.text[:left]})
            truncated = truncated or len(document.text) > left
            left -= len(document.text)
    return {"documents": documents, "truncated": truncated}
