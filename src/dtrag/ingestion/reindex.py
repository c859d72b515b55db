"""Rebuilds the index from the stored texts, for a new analyzer."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from dtrag.core.documents import Draft
from dtrag.core.text.analysis import Analyzer
from dtrag.ingestion.analysis import analyse_documents, fingerprint
from dtrag.ports import IndexWriter

BATCH_DOCUMENTS = 200


async def reindex(
    writer: IndexWriter,
    on_progress: Callable[[int], None] | None = None,
    analyzer: Analyzer = Analyzer(),
) -> int:
    """Rewrite all documents, in the order of their ids, with the same passages; returns how many."""
    done = 0
    after: uuid.UUID | None = None
    while drafts := await writer.read_back(after, BATCH_DOCUMENTS):
        marked = [replace(draft, fingerprint=_fingerprint(draft, analyzer), replaces=True) for draft in drafts]
        await writer.write(await analyse_documents(marked, analyzer))
        after = drafts[-1].document_id
        done += len(drafts)
        if on_progress is not None:
            on_progress(done)
    await writer.tidy()
    return done


def _fingerprint(draft: Draft, analyzer: Analyzer) -> bytes:
    return fingerprint(draft.passages.document, analyzer, edition=draft.edition, uri=draft.source_uri)
