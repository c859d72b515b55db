"""Analyses passages for the index: terms with field weights, language, fingerprint, and the text of the vector."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dtrag.core.documents import Chunk, Draft, IndexedChunk, IndexedDocument, ParsedDocument
from dtrag.core.editions import Edition
from dtrag.core.ranking.segments import quantised
from dtrag.core.text.analysis import Analyzer, clean, language
from dtrag.ingestion.chunking import CHUNKER, PDF_CHUNKER

TITLE_WEIGHT = 2.0
BREADCRUMB_WEIGHT = 1.0
"""An occurrence in the title counts twice, in the headings once: regulation articles .519 -> .540, hotpotqa100 .804 ->
.812, cranfield hybrid +.003. Without the title every set loses (regulation articles .49, hotpotqa100 .76)."""
LONGEST_NAME = 40
"""A title longer than this with which the text begins was made from the text: it counts once (kobest .957 -> .961)."""
MOST_TERMS = 8_000
"""Distinct terms of one passage that are indexed, the most frequent first (pgvector's sparsevec holds 16,000)."""


def analyse(document: ParsedDocument, chunk: Chunk, analyzer: Analyzer = Analyzer()) -> IndexedChunk:
    """The chunk with its terms."""
    frequencies: dict[int, float] = analyzer.counts(chunk.text)  # type: ignore[assignment]
    length = float(sum(frequencies.values()))
    for field_text, weight in (
        (document.title, title_weight(document)),
        (" ".join(chunk.breadcrumb), BREADCRUMB_WEIGHT),
    ):
        for term, count in analyzer.counts(field_text).items():
            frequencies[term] = frequencies.get(term, 0.0) + weight * count
            length += weight * count
    if len(frequencies) > MOST_TERMS:
        heaviest = sorted(frequencies, key=lambda term: (-frequencies[term], term))[:MOST_TERMS]
        frequencies = {term: frequencies[term] for term in heaviest}
    ids = np.fromiter(frequencies.keys(), np.int32, len(frequencies))
    occurrences = quantised(np.fromiter(frequencies.values(), np.float32, len(frequencies)))
    order = ids.argsort()
    return IndexedChunk(chunk, language(chunk.text), max(1, round(length)), ids[order], occurrences[order])


def title_weight(document: ParsedDocument) -> float:
    """The weight of a term in the title."""
    title = document.title
    made = len(title) > LONGEST_NAME and " ".join(document.text[: 4 * len(title)].split()).startswith(title)
    return 1.0 if made else TITLE_WEIGHT


def fingerprint(
    document: ParsedDocument,
    analyzer: Analyzer = Analyzer(),
    *,
    edition: Edition | None = None,
    uri: str = "",
    personal_data: str = "",
    original: bytes = b"",
) -> bytes:
    """32 bytes that change whenever writing the document again would change the index.

    Files may contain the same edition: it belongs to the last one, so that its address counts. `personal_data` is the
    id of the policy that it was read with, `original` the file that is stored with it.
    """
    chunker = PDF_CHUNKER if document.content_type == "application/pdf" else CHUNKER
    parts: list[object] = [
        document.title,
        document.text,
        document.content_type,
        list(document.category_path or ()),
        dict(document.metadata),
        [analyzer.id, chunker, TITLE_WEIGHT, BREADCRUMB_WEIGHT, LONGEST_NAME],
        "",  # where earlier releases named the embedder: other fingerprints would count every document as changed
    ]
    if edition is not None and edition.effective_from is not None:
        dates = sorted((label, day.isoformat()) for label, day in edition.article_dates.items())
        parts += [uri, edition.work, edition.effective_from.isoformat(), dates, list(edition.repeals)]
    if personal_data:
        parts.append(personal_data)
    if original:
        parts.append(hashlib.blake2b(original, digest_size=32).hexdigest())
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8"), digest_size=32).digest()


async def analyse_documents(drafts: Sequence[Draft], analyzer: Analyzer = Analyzer()) -> list[IndexedDocument]:
    """The documents with the terms of their passages.

    The analysis is pure Python and would only fight a thread for the interpreter: it runs here and yields after
    eight chunks, so that the writer keeps the database busy (slices of 5 ms cost a third of the speed).
    """
    analysed: list[list[IndexedChunk]] = []
    count = 0
    for draft in drafts:
        chunks = []
        for chunk in draft.passages.chunks:
            chunks.append(analyse(draft.passages.document, chunk, analyzer))
            count += 1
            if count % 8 == 0:
                await asyncio.sleep(0)
        analysed.append(chunks)
    return [
        IndexedDocument(
            document_id=draft.document_id,
            source_id=draft.source_id,
            source_uri=draft.source_uri,
            document=draft.passages.document,
            node_id=draft.node_id,
            language=language(draft.passages.document.text),
            fingerprint=draft.fingerprint,
            chunks=tuple(chunks),
            replaces=draft.replaces,
            source_path=draft.source_path,
            edition=draft.edition,
            personal_data=draft.personal_data,
            original=draft.original,
        )
        for draft, chunks in zip(drafts, analysed, strict=True)
    ]


def embedded_text(title: str, breadcrumb: Sequence[str], text: str) -> str:
    """Title, last heading and passage: the text of the vector."""
    heads = [title, *(head for head in breadcrumb[-1:] if head != title)]
    return "\n".join([*(head for head in heads if head and not text.startswith(head)), text])


def cleaned(document: ParsedDocument) -> ParsedDocument:
    """The document without characters that PostgreSQL cannot hold. Spans stay valid: parsers guarantee a clean text."""
    metadata = {key: clean(value) if isinstance(value, str) else value for key, value in document.metadata.items()}
    return replace(document, title=clean(document.title)[:500], metadata=metadata)
