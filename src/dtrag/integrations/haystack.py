"""`DtragRetriever` for Haystack; needs `pip install 'dtrag[haystack]'`."""

from __future__ import annotations

from typing import Any, Unpack

from dtrag.errors import MissingExtra
from dtrag.integrations.passages import PassageSource, RetrievedPassage, SourceOptions

try:
    from haystack import Document, component
except ImportError as error:
    raise MissingExtra(feature="The retriever for Haystack", extra="haystack") from error


@component
class DtragRetriever:
    """Passages of a service or of an open app as documents."""

    def __init__(self, **options: Unpack[SourceOptions]) -> None:
        self._source = PassageSource(**options)

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        """The `documents`, best first; `top_k` replaces that of the retriever."""
        return {"documents": [_document(passage) for passage in self._source.passages(query, top_k)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        """As `run`, without blocking the event loop."""
        return {"documents": [_document(passage) for passage in await self._source.apassages(query, top_k)]}


def _document(passage: RetrievedPassage) -> Document:
    return Document(id=passage.id, content=passage.text, meta=passage.metadata, score=passage.score)
