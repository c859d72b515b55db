"""What routes share: strict JSON bodies, parameters of lists, declared errors, and the bodies of searches."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import Annotated, Any, NoReturn

from fastapi import Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from starlette.exceptions import HTTPException

from dtrag.core.access.scope import CONTENT_TYPES, MAX_METADATA, MAX_PATHS
from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.core.response import deeper_than
from dtrag.core.statements import Statement
from dtrag.delivery.api.errors import ErrorShape
from dtrag.errors import InvalidInput
from dtrag.retrieval.request import CANDIDATES, MAX_EXPLAINED, MAX_ID, MAX_QUERY, MAX_TOP_K, MODES, passage_count

MAX_OFFSET = 1_000_000_000
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Number of entries to skip.")]
ReasonStatements = Annotated[tuple[Statement, ...], Field(description="The sentences of reason with codes.")]
NoteStatements = Annotated[tuple[Statement, ...], Field(description="The notes with codes.")]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("must be a time in the years 1 to 9999 in UTC") from None


Time = Annotated[datetime, Field(strict=False), AfterValidator(_in_utc)]
"""A time in ISO 8601, UTC if it has no zone."""


class Page(BaseModel):
    """A page of a list."""

    total: int = Field(description="Number of entries of all pages.")
    limit: int = Field(description="The requested page size.")
    offset: int = Field(description="Entries before this page.")


class StrictBody(BaseModel):
    """A request body without unknown fields and type conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


Failures = dict[int | str, dict[str, Any]]
"""FastAPI's type of `responses`."""

_DESCRIPTIONS = {
    400: "The body cannot be read.",
    401: "The key is missing or invalid.",
    403: "Your key does not allow it, or the filters reach outside your scope.",
    404: "It does not exist, or you may not see it.",
    409: "It was modified concurrently.",
    413: "The body is too large.",
    415: "The media type of the body is not supported.",
    422: "The input is invalid.",
    429: "Too many requests; see Retry-After.",
    507: "The disk is too full to add anything; searches and answers still work.",
    501: "The case memory is not enabled (CBR_ENABLED).",
    502: "An upstream service returned no usable answer.",
    503: "The database is unreachable or was built with another analyzer or embedder, or the service is overloaded.",
}


def failures(
    *statuses: int, model: type[ErrorShape] = ErrorShape, descriptions: Mapping[int, str] | None = None
) -> Failures:
    """The OpenAPI entries of these statuses; `descriptions` replace the usual ones."""
    texts = {**_DESCRIPTIONS, **(descriptions or {})}
    return {status: {"model": model, "description": texts[status]} for status in statuses}


QUESTION_FAILURES = failures(400, 403, 413, 415, 422, 503)


MAX_DEPTH = 32
"""Maximum nesting of a body; routes need 4. Deeper values could exhaust the stack."""


class JsonRoute(APIRoute):
    """A route whose body, if it has one, must be `application/json` in UTF-8, parsed more strictly than by the standard
    library: ambiguous or hostile input is refused.

    This also protects against pages of other origins: browsers send a preflight request for this type.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with a check of the content type."""
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler

        async def checked(request: Request) -> Response:
            kind, charset = media_type(request)
            if kind != "application/json":
                raise HTTPException(415, "Send the body as application/json")
            if charset not in {"", "utf-8", "utf8"}:
                raise HTTPException(415, "Send the body in UTF-8")
            return await handler(JsonRequest(request.scope, request.receive))

        return checked


class JsonRequest(Request):
    """A request whose `json()` refuses duplicate keys, NaN, wrong encodings and deep nesting, with a 400."""

    async def json(self) -> Any:
        """The parsed body."""
        body = await self.body()
        try:
            parsed = json.loads(
                body.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_no_constant
            )
        except UnicodeDecodeError as error:
            raise HTTPException(400, "The body is not UTF-8") from error
        except RecursionError as error:
            raise HTTPException(400, "The body is nested too deeply") from error
        except json.JSONDecodeError as error:
            raise HTTPException(400, f"The body is not valid JSON: {error.msg} at character {error.pos}") from error
        except ValueError as error:
            raise HTTPException(400, "The body holds a number that is too long") from error
        if deeper_than(parsed, MAX_DEPTH):
            raise HTTPException(400, "The body is nested too deeply")
        return parsed


def media_type(request: Request) -> tuple[str, str]:
    """Content type and charset of a request, in lower case; "" if missing."""
    message = Message()
    message["content-type"] = request.headers.get("content-type", "") or "none/none"
    charset = message.get_content_charset() or ""
    return message.get_content_type(), charset.lower()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise HTTPException(400, "The body has a key twice in one object")
    return unique


def _no_constant(name: str) -> NoReturn:
    raise HTTPException(422, f"The body holds {name}, which is not a JSON number")


MAX_SEARCHES = 50
"""Maximum number of searches in one batch."""
JsonObject = dict[str, Any]
"""A JSON object of a request, not validated yet."""

_PATHS = {
    "type": "array",
    "maxItems": MAX_PATHS,
    "items": {"type": "array", "items": {"type": "string"}},
    "description": "Category paths, outermost name first; each includes its whole branch.",
}
_DATE = {"type": "string", "description": "ISO 8601, such as 2025-01-31 or 2025-01-31T09:00:00Z."}
_FILTERS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "taxonomy_paths": _PATHS,
        "allowed_category_paths": _PATHS,
        "canonical_in": _PATHS,
        "content_types": {"type": "array", "items": {"type": "string", "enum": sorted(CONTENT_TYPES)}},
        "date_from": _DATE,
        "date_to": _DATE,
        "metadata": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": MAX_METADATA,
            "additionalProperties": {"type": ["string", "number", "boolean"]},
            "description": "Metadata fields that must be equal; the keys are declared in the settings.",
        },
    },
}
Filters = Annotated[
    JsonObject | None,
    WithJsonSchema({"anyOf": [_FILTERS, {"type": "null"}]}),
    Field(
        description="Narrows the search: one of taxonomy_paths, allowed_category_paths, canonical_in (a list of "
        "category paths), content_types, date_from, date_to (ISO 8601), metadata.",
        examples=[{"taxonomy_paths": [["HR", "Leave"]]}],
    ),
]


AsOf = Annotated[
    str | None,
    Field(
        json_schema_extra={"format": "date"},
        description="Regulations as they were valid on this day; null: today.",
        examples=["2024-03-01"],
    ),
]


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("should hold characters only, no half of a pair") from error
    return text


Text = Annotated[str, AfterValidator(_encodable)]
"""A string that UTF-8 can encode: JSON may contain lone surrogates, which no database and no response can hold."""


class RequestBody(StrictBody):
    """A body that programs may construct: `client.post(path, json=request.dict())`."""

    def dict(self, **options: Any) -> JsonObject:
        """The same as `model_dump`."""
        return self.model_dump(**options)


_NUMBER: JsonObject = {"minimum": 1, "maximum": MAX_TOP_K}


class SearchRequest(RequestBody):
    """A search. The limits declared for OpenAPI are checked by the search, not on construction."""

    query: Text = Field(
        json_schema_extra={"maxLength": MAX_QUERY},
        description="Words or a question; a blank query has no results.",
        examples=["parental leave"],
    )
    top_k: int | None = Field(
        default=None,
        json_schema_extra=_NUMBER,
        description="Maximum number of passages; without it 10, or as many as a question about regulations needs.",
        examples=[5],
    )
    limit: int | None = Field(default=None, json_schema_extra=_NUMBER, description="The same as top_k.")
    mode: Annotated[Text, WithJsonSchema({"type": "string", "enum": list(MODES)})] = Field(
        default="hybrid",
        description="hybrid, lexical, strict (every word must occur; Korean words without particles) or vector.",
    )
    filters: Filters = None
    as_of: AsOf = None
    min_score: float = Field(
        default=0.0,
        json_schema_extra={"minimum": 0, "maximum": 1},
        description="Leaves out passages whose bm25_score and vector_score are both lower; both are comparable across "
        "queries, hybrid_score is not.",
    )
    bm25_candidates: int = Field(
        default=CANDIDATES, json_schema_extra=_NUMBER, description="Maximum number of lexical candidates."
    )
    vector_candidates: int = Field(
        default=CANDIDATES, json_schema_extra=_NUMBER, description="Maximum number of vector candidates."
    )
    highlights: bool = Field(default=True, description="Whether to mark the words of the query in the text.")
    explain: bool = Field(default=False, description="Whether to explain the rank of each passage.")
    explain_documents: list[Annotated[Text, WithJsonSchema({"type": "string", "maxLength": MAX_ID})]] = Field(
        default=[],
        json_schema_extra={"maxItems": MAX_EXPLAINED},
        description="Ids of documents: metrics.absent explains why they are not among the results.",
    )

    def least_score(self) -> float:
        """`min_score`. Raises `InvalidInput` if it is outside [0, 1]."""
        if not 0 <= self.min_score <= 1:
            raise InvalidInput("min_score must be a number from 0 to 1.")
        return self.min_score

    @property
    def requested_k(self) -> int | None:
        """`top_k` or `limit`; None without both. Raises `InvalidInput` if both are set and differ."""
        if self.limit is None or self.limit == self.top_k:
            return self.top_k
        passage_count("limit", self.limit)
        if self.top_k is not None:
            raise InvalidInput("top_k and limit are the same option: set only one of them.")
        return self.limit


class BatchRequest(StrictBody):
    """Several searches. Each is validated on its own: an invalid one does not affect the others."""

    searches: Annotated[
        list[object],
        WithJsonSchema(
            {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_SEARCHES,
                "items": {"$ref": "#/components/schemas/SearchRequest"},
            }
        ),
    ] = Field(min_length=1, max_length=MAX_SEARCHES, description=f"1 to {MAX_SEARCHES} bodies of POST /search.")


class HitSource(BaseModel):
    """The document of a hit."""

    url: str = Field(description="Its source address.")
    title: str = Field(description="Its title.")


class HitMetadata(BaseModel):
    """The category of a hit."""

    canonical_path: list[str] = Field(description="Its category, outermost name first; [] for none.")


class Hit(BaseModel):
    """The short form of a result, without text; `results` has the same passages in full."""

    chunk_id: str = Field(description="Id of the passage.")
    score: float = Field(description="The ordering score: rerank_score if there is one, else hybrid_score.")
    source: HitSource = Field(description="Its document.")
    metadata: HitMetadata = Field(description="The category of its document.")

    @classmethod
    def of(cls, passage: SearchResult) -> Hit:
        """The short form of a passage."""
        return cls(
            chunk_id=passage.chunk_id,
            score=passage.ordering_score,
            source=HitSource(url=passage.source_url, title=passage.title),
            metadata=HitMetadata(canonical_path=passage.taxonomy_path),
        )


class SearchResponse(BaseModel):
    """The results of a search, best first, with its metrics."""

    results: list[SearchResult] = Field(description="The passages, best first.")
    metrics: SearchMetrics = Field(description="Times and counts.")
    hits: list[Hit] = Field(description="The same passages in short form.")
    total_count: int = Field(description="Number of results in this response.")
    latency: float = Field(description="The same as metrics.total_time.")


class SearchFailure(BaseModel):
    """A failed search of a batch."""

    detail: str = Field(description="One sentence: what happened, and what to do.")
    type: str = Field(description="The error type, for programs.")
    status: int = Field(description="The HTTP status of the same search on its own.")


class BatchResponse(BaseModel):
    """The outcome of each search, in the order of the request."""

    answers: list[SearchResponse | SearchFailure] = Field(
        description="For each search the response of POST /search, or its error."
    )


class AskRequest(StrictBody):
    """A question to the documents."""

    question: str = Field(
        max_length=MAX_QUERY, description="The question.", examples=["How many days of parental leave are there?"]
    )
    filters: Filters = None
    as_of: AsOf = None
