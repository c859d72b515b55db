"""A parser without a process of its own: quick, and without the limits that hostile files need."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from dtrag.adapters.parsers.formats import check_content, format_of, knows
from dtrag.adapters.parsers.worker import reason_for
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed


class InProcessParser:
    """Implements `dtrag.ports.Parser` with the same formats as the parser process. For files that are trusted."""

    def knows(self, name: str) -> bool:
        """Whether the format of a file with this name is supported."""
        return knows(name)

    async def parse(self, path: Path, name: str) -> AsyncGenerator[ParsedDocument, None]:
        """The documents in the file. Raises `ParseFailed`, possibly after some documents."""
        file_format = format_of(name)
        has_text = False
        try:
            check_content(path, file_format)
            for document in file_format.load()(path, name):
                has_text = has_text or not document.text.isspace()
                yield document
        except ParseFailed:
            raise
        except Exception as error:  # the parsers' boundary, as in the process: a damaged file fails this file only
            raise ParseFailed(reason_for(error, file_format, memory_mb=0)) from error
        if not has_text:
            raise ParseFailed(stated("no_text", "no text in it"))

    async def close(self) -> None:
        """There is no process."""
