"""Notes on the articles that an answer cites: amendments, changes to come, transitional provisions, missing dates."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import date

from dtrag.core.access.scope import Scope
from dtrag.core.documents import SearchResult
from dtrag.core.provisions import RegulationText
from dtrag.core.statements import Statement
from dtrag.core.text.analysis import language
from dtrag.ports import RegulationStore, valid_day
from dtrag.regulations.korean.edition_notes import EditionText, edition_notes, undated_note
from dtrag.regulations.korean.provision_days import text_of

MOST_ARTICLES = 5
"""Articles whose history is read: an answer quotes the first five passages."""


async def notes_on(
    query: str, passages: Sequence[SearchResult], store: RegulationStore, caller: Scope
) -> dict[str, list[Statement]]:
    """Chunk id -> notes, for the regulations among the passages; `caller.as_of` is the day of the question, if any."""
    korean, notes = language(query) == "ko", dict[str, list[Statement]]()
    dated: dict[tuple[uuid.UUID, str], list[SearchResult]] = {}
    for passage in passages:
        label = str(passage.metadata.get("article") or "")
        if not passage.metadata.get("regulation"):
            continue
        if "effective_from" not in passage.metadata:
            if caller.as_of is not None:
                notes[passage.chunk_id] = [undated_note(passage.title, caller.as_of, korean=korean)]
        elif label and passage.metadata.get("kind") != "addendum":
            dated.setdefault((uuid.UUID(str(passage.metadata["document_id"])), label), []).append(passage)
    first = dict(list(dated.items())[:MOST_ARTICLES])
    editions = await store.editions(sorted({key for key, _ in first}), caller) if first else []
    today = valid_day(Scope(caller.nodes))
    for (document_id, label), pieces in first.items():
        text = _edition_text(document_id, label, pieces[0], editions)
        if text is not None:
            article_notes = list(edition_notes(text, caller.as_of, today, korean=korean))
            notes |= {piece.chunk_id: article_notes for piece in pieces}
    return notes


def _edition_text(
    document_id: uuid.UUID, label: str, passage: SearchResult, editions: Sequence[RegulationText]
) -> EditionText | None:
    """The cited article in its edition, with its text in the one before; None when it was replaced meanwhile."""
    own = next((edition for edition in editions if edition.document_id == document_id), None)
    if own is None:
        return None
    start, end = passage.metadata["effective_from"], passage.metadata.get("superseded_from")
    earlier = [
        edition
        for edition in editions
        if edition.work_id == own.work_id
        and edition.effective_from is not None
        and own.effective_from is not None
        and edition.effective_from < own.effective_from
    ]
    return EditionText(
        regulation=own,
        label=label,
        text=text_of(own, label),
        effective_from=date.fromisoformat(start),
        superseded_from=date.fromisoformat(end) if end else None,
        before=text_of(earlier[-1], label) if earlier else None,
    )
