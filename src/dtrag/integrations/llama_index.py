"""`DtragRetriever` for LlamaIndex; needs `pip install 'dtrag[llama-index]'`."""

from __future__ import annotations

from typing import Unpack

from dtrag.errors import MissingExtra
from dtrag.integrations.passages import PassageSource, RetrievedPassage, SourceOptions

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingExtra(feature="The retriever for LlamaIndex", extra="llama-index") from error


class DtragRetriever(BaseRetriever):
    """Passages of a service or of an open app as nodes with scores."""

    def __init__(self, **options: Unpack[SourceOptions]) -> None:
        self._source = PassageSource(**options)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in self._source.passages(query_bundle.query_str)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(passage) for passage in await self._source.apassages(query_bundle.query_str)]


def _node(passage: RetrievedPassage) -> NodeWithScore:
    start, end = passage.metadata["start"], passage.metadata["end"]
    node = TextNode(
        id_=passage.id, text=passage.text, metadata=passage.metadata, start_char_idx=start, end_char_idx=end
    )
    return NodeWithScore(node=node, score=passage.score)
