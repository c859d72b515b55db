"""The regulations that a text itself contains: a draft, whose references without a name are to its own articles."""

from __future__ import annotations

import uuid

from dtrag.core.documents import ParsedDocument
from dtrag.core.provisions import RegulationText, provisions_of
from dtrag.packs.regulation_ko.collection import Regulation
from dtrag.packs.regulation_ko.structure import split

_NAMESPACE = uuid.UUID("6b0d6a0e-3b0c-5a55-9d43-3a1a9a4a2f10")
UNNAMED = "이 규정"


def own_regulations(text: str) -> list[tuple[int, RegulationText, Regulation]]:
    """Start, text and outline of each regulation in a text, in order; none in a text of another kind."""
    regulations: list[tuple[int, RegulationText, Regulation]] = []
    behind = 0
    for part in split(ParsedDocument("", text, "text/plain")) or ():
        own = part.document
        start = text.index(own.text, behind)
        behind = start + len(own.text)
        code = str(own.metadata.get("code") or "")
        key = uuid.uuid5(_NAMESPACE, f"{len(regulations)}")
        read = RegulationText(key, own.title or UNNAMED, code, own.text, provisions_of(part.chunks))
        regulations.append((start, read, Regulation.of(read)))
    return regulations
