"""The documents in a file that a command reads without indexing it."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.core.documents import ParsedDocument
    from dtrag.settings import Settings


async def documents_of(settings: Settings, path: Path, most_characters: int | None = None) -> list[ParsedDocument]:
    """The documents in a file of any format that `dtrag ingest` reads, up to a number of characters.

    Raises `InvalidInput` with the reason for a file that cannot be read.
    """
    from dtrag.assembly import parser_process
    from dtrag.errors import ParseFailed

    parser = parser_process(settings, settings.max_file_mb)
    documents: list[ParsedDocument] = []
    characters = 0
    try:
        async with aclosing(parser.parse(path, path.name)) as parsed:
            async for document in parsed:
                documents.append(document)
                characters += len(document.text)
                if most_characters is not None and characters > most_characters:
                    break
    except ParseFailed as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}") from error
    finally:
        await parser.close()
    return documents
