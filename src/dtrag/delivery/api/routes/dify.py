"""`POST /retrieval`: passages in the form that Dify expects of an external knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from dtrag.core.access.metadata_conditions import MetadataConditions
from dtrag.core.access.scope import Access, Grant
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.errors import DIFY_ROUTE, DifyFailure
from dtrag.delivery.api.permissions import BROWSE, caller_of
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routes.search import search_in
from dtrag.delivery.api.routing import JsonRoute, StrictBody, Text, failures
from dtrag.errors import InvalidInput, NotFound
from dtrag.retrieval.request import MAX_QUERY, MAX_TOP_K, passage_count

EVERYTHING, AGENT = "all", "agent:"
CONSIDERED = MAX_TOP_K
"""Passages of the query to which conditions are applied that the database does not decide."""
MAX_KNOWLEDGE_ID = 500


class RetrievalSetting(StrictBody):
    """How many passages, and how similar."""

    top_k: int = Field(json_schema_extra={"minimum": 1, "maximum": MAX_TOP_K}, description="Maximum number of records.")
    score_threshold: float | None = Field(
        default=None,
        json_schema_extra={"minimum": 0, "maximum": 1},
        description="Leaves out records with a lower score, as min_score of POST /search; null or 0: none.",
    )


class MetadataRow(StrictBody):
    """A condition on metadata."""

    name: Text | list[Text] = Field(description="A field, or several.", examples=["category"])
    comparison_operator: Text = Field(description="An operator of the contract; others are refused.", examples=["is"])
    value: Text | int | float | list[Text | int | float] | None = Field(
        default=None, description="What to compare with; none for empty and not empty."
    )


class MetadataCondition(StrictBody):
    """Conditions on metadata, all of which are applied."""

    logical_operator: Literal["and", "or"] | None = Field(default=None, description="and (the default) or or.")
    conditions: list[MetadataRow] | None = Field(default=None, description="The conditions.")

    def parsed(self, keys: frozenset[str]) -> MetadataConditions:
        """The conditions. Raises `InvalidInput`."""
        rows = [(row.name, row.comparison_operator, row.value) for row in self.conditions or ()]
        return MetadataConditions.parse(rows, keys, alternatives=self.logical_operator == "or")


class RetrievalRequest(StrictBody):
    """A search of an external knowledge base."""

    knowledge_id: Text = Field(
        max_length=MAX_KNOWLEDGE_ID,
        description="all, agent: with the name or the id of an agent, or a category such as HR/Leave.",
        examples=["all"],
    )
    query: Text = Field(json_schema_extra={"maxLength": MAX_QUERY}, description="Words or a question.")
    retrieval_setting: RetrievalSetting = Field(description="The number of records and their least similarity.")
    metadata_condition: MetadataCondition | None = Field(default=None, description="Conditions on metadata.")


class RetrievalRecord(BaseModel):
    """A passage."""

    content: str = Field(description="The passage, verbatim.")
    score: float = Field(
        description="Its similarity in [0, 1], at least that of the records after it: sorting keeps the order."
    )
    title: str = Field(description="Title of its document.")
    metadata: dict[str, Any] = Field(
        description="Metadata of document and passage with chunk_id, document_id, category, section, source_url, start "
        "and end."
    )


class RetrievalResponse(BaseModel):
    """The records, best first."""

    records: list[RetrievalRecord] = Field(description="The passages, best first.")
    notes: list[str] = Field(description="What the reader should know about the search.")


router = APIRouter(route_class=JsonRoute, tags=["dify"])
_failures = partial(
    failures, model=DifyFailure, descriptions={404: "The knowledge does not exist, or you may not see it."}
)


@router.post(DIFY_ROUTE, responses=_failures(400, 403, 404, 413, 415, 422, 503), dependencies=BROWSE)
async def retrieve(request: Request, body: RetrievalRequest) -> RetrievalResponse:
    """The best passages of a knowledge base that fulfil the conditions, for Dify."""
    return await until_gone(request, service_of(request).in_flight, _retrieved(request, body))


async def _retrieved(request: Request, body: RetrievalRequest) -> RetrievalResponse:
    threshold = body.retrieval_setting.score_threshold or 0.0
    if not 0 <= threshold <= 1:
        raise InvalidInput("score_threshold must be a number from 0 to 1.")
    conditions = (body.metadata_condition or MetadataCondition()).parsed(app_of(request).engine.filter_keys)
    access, top_k, options = await _knowledge(
        request, body.knowledge_id, passage_count("top_k", body.retrieval_setting.top_k)
    )
    filters, is_exact = conditions.as_filters()
    if not is_exact:
        options = {"bm25_candidates": CONSIDERED, "vector_candidates": CONSIDERED}
    results, metrics = await search_in(
        request,
        access,
        body.query,
        top_k if is_exact else CONSIDERED,
        filters or None,
        as_of=conditions.as_of,
        highlights=False,
        **options,
    )
    admitted = [
        result for result in results if _similarity(result) >= threshold and conditions.admits(result.flat_metadata())
    ]
    notes = list(metrics.notes)
    if not is_exact and len(results) == CONSIDERED and len(admitted) < top_k:
        notes.append(
            f"The conditions were applied to the best {CONSIDERED:,} passages of the query; others may fulfil them."
        )
    best = admitted[:top_k]
    add_subjects(request, (str(result.metadata["document_id"]) for result in best))
    return RetrievalResponse(records=_records(best), notes=notes)


async def _knowledge(request: Request, knowledge_id: str, top_k: int) -> tuple[Access, int, dict[str, Any]]:
    """What the caller may see of the knowledge base, the number of passages, and options of its search.

    Raises `NotFound` in the same words for one that does not exist and for one that the caller may not see.
    """
    app, caller = app_of(request), caller_of(request)
    if knowledge_id == EVERYTHING:
        return caller.access, top_k, {}
    try:
        if knowledge_id.startswith(AGENT):
            agent = await app.agents.named(knowledge_id.removeprefix(AGENT), caller=caller)
            add_subjects(request, [str(agent.agent_id)])
            limits = agent.manifest.retrieval
            options = {
                "bm25_candidates": limits.bm25_topk,
                "vector_candidates": limits.vector_topk,
                "exact_candidates": True,
            }
            return app.agents.access(agent, caller), min(top_k, limits.rerank.final_topk), options
        path = _path(knowledge_id)
    except NotFound:
        path = None
    taxonomy = (await app.index.snapshot()).taxonomy
    node = taxonomy.find(path) if path is not None else None
    nodes = caller.access.resolved(taxonomy).nodes
    if path is None or node is None or (nodes is not None and nodes.isdisjoint(taxonomy.subtree(node))):
        raise NotFound(
            "There is no such knowledge that you may see: knowledge_id is all, agent: with the name of an agent, or a "
            "category such as HR/Leave."
        )
    return caller.access.within(Grant.of([path], taxonomy)), top_k, {}


def _path(text: str) -> CategoryPath | None:
    try:
        return CategoryPath.parse(text)
    except InvalidInput:
        return None


def _similarity(result: SearchResult) -> float:
    """The score that is comparable across queries, as for `min_score`."""
    return min(1.0, max(0.0, result.bm25_score, result.vector_score))


def _records(results: Sequence[SearchResult]) -> list[RetrievalRecord]:
    """The records. Dify sorts by `score`, and the order of a search is not that of the similarities."""
    scores = [*accumulate((_similarity(result) for result in reversed(results)), max)][::-1]
    return [
        RetrievalRecord(content=result.text, score=score, title=result.title, metadata=result.flat_metadata())
        for result, score in zip(results, scores, strict=True)
    ]
