"""`DtragRetriever` for LangChain; needs `pip install 'dtrag[langchain]'`."""

from __future__ import annotations

from typing import Any, Unpack

from dtrag.errors import MissingExtra
from dtrag.integrations.passages import PassageSource, RetrievedPassage, SourceOptions

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import PrivateAttr
except ImportError as error:
    raise MissingExtra(feature="The retriever for LangChain", extra="langchain") from error


class DtragRetriever(BaseRetriever):
    """Passages of a service or of an open app as documents, with their score in `metadata`."""

    _source: PassageSource = PrivateAttr()

    def __init__(
        self, *, tags: list[str] | None = None, metadata: dict[str, Any] | None = None, **options: Unpack[SourceOptions]
    ) -> None:
        super().__init__(tags=tags, metadata=metadata)
        self._source = PassageSource(**options)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [_document(passage) for passage in self._source.passages(query)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(passage) for passage in await self._source.apassages(query)]


def _document(passage: RetrievedPassage) -> Document:
    return Document(passage.text, id=passage.id, metadata={**passage.metadata, "score": passage.score})
