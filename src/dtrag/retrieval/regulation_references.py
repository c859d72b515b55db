"""What a question names by number (학칙 제21조), as passages: the first results, and quoted whole by an answer."""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Sequence
from dataclasses import replace

from dtrag.core.documents import SearchResult
from dtrag.packs.regulation_ko.collection import CitableProvision, Collection, provision_names
from dtrag.packs.regulation_ko.references import named_provisions
from dtrag.ports import NamedPassages


def named_passages(
    collection: Collection, question: str, earlier: Sequence[str] = (), documents: Ids[str] = ()
) -> NamedPassages | None:
    """The provisions of the collection that the question names; None when it names nothing."""
    named = named_provisions(question, collection, earlier, documents)
    if named is None:
        return None
    regulation = named.regulation
    label = named.absent.removeprefix(f"{regulation.name} ") if regulation is not None else ""
    is_deleted = regulation is not None and any(provision.label == label for provision in regulation.deleted)
    return NamedPassages(
        question=named.question,
        names=tuple(source.name for source in named.sources),
        chunk_ids=tuple(dict.fromkeys(key for source in named.sources for key in chunk_ids(source))),
        paragraph=named.paragraph,
        asks_only=named.asks_only,
        choices=tuple(_with_title(source) for source in named.choices),
        absent=named.absent,
        existing=provision_names(regulation) if regulation is not None else "",
        deleted=is_deleted,
        deleted_on=regulation.deleted_on.get(label) if regulation is not None else None,
    )


def chunk_ids(source: CitableProvision) -> tuple[str, ...]:
    """The passages of a provision, in the order of the text."""
    return tuple(
        f"{source.regulation.document_id}:{ordinal}"
        for provision in source.provisions
        for ordinal in range(provision.first, provision.last + 1)
    )


def named_first(results: Sequence[SearchResult], named: NamedPassages) -> list[SearchResult]:
    """The results with the named provisions first, in the order of the question, with the score 1."""
    order = {key: place for place, key in enumerate(named.chunk_ids)}
    first = sorted((hit for hit in results if hit.chunk_id in order), key=lambda hit: order[hit.chunk_id])
    return [replace(hit, hybrid_score=1.0) for hit in first] + [hit for hit in results if hit.chunk_id not in order]


def _with_title(source: CitableProvision) -> str:
    title = source.provisions[0].title
    return f"{source.name}({title})" if title else source.name
