"""Texts as of an earlier day: what of a regulation is known to have been the same then, and what was not."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from dtrag.core.access.scope import NO_FILTERS, Scope, SearchFilters
from dtrag.core.documents import SearchResult
from dtrag.core.editions import ChangedText
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.ports import Index, RegulationStore
from dtrag.regulations.korean.amendments import amended_after, text_of_day


async def fetch_of_day(
    index: Index, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy, filters: SearchFilters = NO_FILTERS
) -> dict[str, SearchResult]:
    """The passages as `Index.fetch` returns them, without the words of paragraphs amended after the day."""
    passages = await index.fetch(chunk_ids, scope, taxonomy, filters)
    if scope.as_of is None:
        return passages
    return {key: of_day(passage, scope.as_of) for key, passage in passages.items()}


def of_day(passage: SearchResult, day: date) -> SearchResult:
    """The passage with blanks in place of the paragraphs of an article that were amended after the day."""
    if not _is_article(passage):
        return passage
    text = text_of_day(passage.text, day.isoformat())
    return passage if text == passage.text else replace(passage, text=text)


async def changed_texts(
    index: Index, store: RegulationStore, passages: Sequence[SearchResult], scope: Scope, taxonomy: Taxonomy
) -> Mapping[str, Sequence[ChangedText]]:
    """Chunk id -> what of these passages of today is not the text of the scope's day, which is not stored."""
    if scope.as_of is None:
        return {}
    dated = {passage.chunk_id: passage for passage in passages if "effective_from" in passage.metadata}
    same = await index.fetch(list(dated), scope, taxonomy)
    in_part = {
        key: [
            ChangedText(f"{_name(passage)}제{number}항", since, start, end)
            for start, end, number, since in amended_after(passage.text, scope.as_of.isoformat())
        ]
        for key, passage in dated.items()
        if key in same and _is_article(passage)
    }
    others = [passage for key, passage in dated.items() if key not in same]
    replaced = await _in_other_editions(index, store, others, scope, taxonomy)
    whole = {
        passage.chunk_id: [ChangedText(_name(passage), passage.metadata["effective_from"], 0, len(passage.text))]
        for passage in others
        if passage.chunk_id not in replaced
    }
    return whole | {key: texts for key, texts in in_part.items() if texts}


async def _in_other_editions(
    index: Index, store: RegulationStore, passages: Sequence[SearchResult], scope: Scope, taxonomy: Taxonomy
) -> set[str]:
    """Ids of the passages whose provision has a text of the day in another edition."""
    ids = sorted({uuid.UUID(str(passage.metadata["document_id"])) for passage in passages})
    editions = await store.editions(ids, scope) if ids else []
    works = {edition.document_id: edition.work_id for edition in editions}
    alternatives = {
        passage.chunk_id: [
            f"{edition.document_id}:{provision.first}"
            for edition in editions
            if edition.work_id == works.get(uuid.UUID(str(passage.metadata["document_id"])))
            for provision in edition.provisions
            if provision.label == passage.metadata.get("article")
        ]
        for passage in passages
    }
    valid = await index.fetch(sorted({key for keys in alternatives.values() for key in keys}), scope, taxonomy)
    return {chunk_id for chunk_id, keys in alternatives.items() if any(key in valid for key in keys)}


def _is_article(passage: SearchResult) -> bool:
    return bool(passage.metadata.get("regulation")) and passage.metadata.get("kind") == "article"


def _name(passage: SearchResult) -> str:
    return f"{passage.metadata.get('regulation') or passage.title} {passage.metadata.get('article') or ''}".rstrip()
