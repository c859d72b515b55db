"""The reader of documents as a tool: takes the content of a file, never a path, and reads it where ingestion does."""

from __future__ import annotations

import asyncio
import base64
import binascii
import shutil
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, Literal

from dtrag.errors import ParseFailed
from dtrag.ports import Parser
from dtrag.tools.registry import Tool
from dtrag.tools.schema import tool

CONTENT_CHARACTERS = 8 << 20
"""6 MiB of a file in base64: larger ones are for `dtrag ingest`."""
TEXT_CHARACTERS = 50_000
"""Of all documents in the file together, so that the whole output stays below what a tool may give back."""
MOST_DOCUMENTS = 100
Format = Literal["txt", "md", "html", "pdf", "docx", "hwpx", "csv", "jsonl"]


def doc_parser(parser: Parser | None) -> Tool:
    """The tool on a parser, which reads in a limited process of its own; None where there is none."""

    @tool(name="doc_parser")
    async def parse(
        content: Annotated[str, "The file: as text, or in base64", {"maxLength": CONTENT_CHARACTERS}],
        format: Annotated[Format, "What kind of file it is"] = "txt",  # noqa: A002 - what callers of the tool write
        encoding: Annotated[Literal["text", "base64"], "How content is written"] = "text",
    ) -> dict[str, Any]:
        """Reads the text out of a document that is handed over. Gives `documents`, each with title and text, and
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
            else:  # a thread that still writes would put the file back
                writing.add_done_callback(lambda _: shutil.rmtree(folder, ignore_errors=True))

    return parse


def _write(path: Path, content: str, encoding: str) -> None:
    """Blocking. Raises `ParseFailed` for what is not base64."""
    if encoding == "text":
        path.write_bytes(content.encode("utf-8", "replace"))
        return
    try:
        path.write_bytes(base64.b64decode("".join(content.split()), validate=True))
    except (binascii.Error, ValueError) as error:
        raise ParseFailed("content is not base64") from error


async def _read(parser: Parser, path: Path) -> dict[str, Any]:
    """The documents in the file, as many characters of them as are given. Raises `ParseFailed`."""
    documents: list[dict[str, str]] = []
    left = TEXT_CHARACTERS
    truncated = False
    async with aclosing(parser.parse(path, path.name)) as found:
        async for document in found:
            if left <= 0 or len(documents) == MOST_DOCUMENTS:
                truncated = True
                break
            documents.append({"title": document.title[:300], "text": document.text[:left]})
            truncated = truncated or len(document.text) > left
            left -= len(document.text)
    return {"documents": documents, "truncated": truncated}
