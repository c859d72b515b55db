"""Verifies the citations of a text against the regulations in a scope."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dtrag.core.access.scope import Scope
from dtrag.core.provisions import RegulationText
from dtrag.core.text.analysis import clean
from dtrag.core.verification import Verification
from dtrag.errors import InvalidInput, NotFound
from dtrag.packs.regulation_ko.collection import Collection, Regulation
from dtrag.packs.regulation_ko.verification.check import MAX_TEXT, read_text
from dtrag.ports import RegulationStore
from dtrag.retrieval.regulation_collection import READ_AT_ONCE


async def verify_citations(
    text: str, collection: Collection, store: RegulationStore, scope: Scope, regulation: str | None = None
) -> Verification:
    """The citations of a text with their statuses; `regulation` is the one that references before any name mean.

    Raises `InvalidInput` for a longer text than `MAX_TEXT`, and `NotFound` for an unknown `regulation`.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInput(
            f"The text has {len(text):,} characters; at most {MAX_TEXT:,} are verified at once. Verify it in parts."
        )
    if clean(text) != text:
        raise InvalidInput("The text contains characters that no document may contain: NUL, or half of a pair.")
    default = collection.named(regulation) if regulation is not None else None
    written = await asyncio.to_thread(read_text, text, collection, default)
    keys = list(dict.fromkeys(key for keys in written.editions.values() for key in keys))
    texts = await _texts([collection.by_chunk[key] for key in keys], store, scope)
    return await asyncio.to_thread(written.judged, texts)


async def _texts(regulations: Sequence[Regulation], store: RegulationStore, scope: Scope) -> list[RegulationText]:
    """The texts of the regulations. Raises `NotFound` when one was replaced since the collection was read."""
    texts: dict[object, RegulationText] = {}
    keys = [regulation.document_id for regulation in regulations]
    for first in range(0, len(keys), READ_AT_ONCE):
        texts |= {text.document_id: text for text in await store.read(keys[first : first + READ_AT_ONCE], scope)}
    for regulation in regulations:
        text = texts.get(regulation.document_id)
        if text is None or text.provisions != regulation.provisions:
            raise NotFound(f"{regulation.name} was replaced during the request. Try again.")
    return list(texts.values())
