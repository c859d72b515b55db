"""The shape of a search as it is asked for over HTTP, precise enough in OpenAPI to make requests from."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.access.scope import CONTENT_TYPES, MAX_METADATA, MAX_PATHS
from dtrag.errors import InvalidInput
from dtrag.retrieval.request import CANDIDATES, MAX_EXPLAINED, MAX_ID, MAX_QUERY, MAX_TOP_K, MODES, passage_count

MAX_SEARCHES = 50
"""Searches of one batch."""

_PATHS = {
    "type": "array",
    "maxItems": MAX_PATHS,
    "items": {"type": "array", "items": {"type": "string"}},
    "description": "Category paths, outermost name first; each stands for its whole branch.",
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
            "description": "Facts of the document that must be just so, of the keys that the settings declare.",
        },
    },
}
Filters = Annotated[
    dict[str, Any] | None,
    WithJsonSchema({"anyOf": [_FILTERS, {"type": "null"}]}),
    Field(
        description="Narrows the search: one of taxonomy_paths, allowed_category_paths, canonical_in (a list of "
        "category paths), content_types, date_from, date_to (ISO 8601), metadata.",
        examples=[{"taxonomy_paths": [["HR", "Leave"]]}],
    ),
]
_REQUEST = ConfigDict(extra="forbid", strict=True)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("should hold characters only, no half of a pair") from error
    return text


Text = Annotated[str, AfterValidator(_encodable)]
"""What UTF-8 can carry: JSON can name halves of surrogate pairs, which no database and no answer can hold."""


class RequestBody(BaseModel):
    """A body of a request, which a program may make: `client.post(path, json=request.dict())`."""

    model_config = _REQUEST

    def dict(self, **options: Any) -> dict[str, Any]:
        """As `model_dump`."""
        return self.model_dump(**options)


_NUMBER: dict[str, Any] = {"minimum": 1, "maximum": MAX_TOP_K}


class SearchRequest(RequestBody):
    """What to search for. Limits are declared for OpenAPI and checked where the search is made, not on construction."""

    query: Text = Field(
        json_schema_extra={"maxLength": MAX_QUERY},
        description="Words or a question; blank finds nothing.",
        examples=["parental leave"],
    )
    top_k: int = Field(default=10, json_schema_extra=_NUMBER, description="How many passages at most.", examples=[5])
    limit: int | None = Field(default=None, json_schema_extra=_NUMBER, description="Another name of top_k.")
    mode: Annotated[Text, WithJsonSchema({"type": "string", "enum": list(MODES)})] = Field(
        default="hybrid", description="hybrid, lexical, strict (every word must occur) or vector."
    )
    filters: Filters = None
    min_score: float = Field(
        default=0.0,
        json_schema_extra={"minimum": 0, "maximum": 1},
        description="Leaves out passages whose bm25_score and vector_score are both lower; these two mean the same "
        "for every query, hybrid_score does not.",
    )
    bm25_candidates: int = Field(
        default=CANDIDATES, json_schema_extra=_NUMBER, description="Passages the lexical leg proposes at most."
    )
    vector_candidates: int = Field(
        default=CANDIDATES, json_schema_extra=_NUMBER, description="Passages the vector leg proposes at most."
    )
    highlights: bool = Field(default=True, description="Whether to say which characters hold words of the query.")
    explain: bool = Field(default=False, description="Whether to say of each passage why it stands where it stands.")
    explain_documents: list[Annotated[Text, WithJsonSchema({"type": "string", "maxLength": MAX_ID})]] = Field(
        default=[],
        json_schema_extra={"maxItems": MAX_EXPLAINED},
        description="Ids of documents: metrics.absent says why they are not found.",
    )

    def least_score(self) -> float:
        """`min_score`. Raises `InvalidInput` for one outside of [0, 1]."""
        if not 0 <= self.min_score <= 1:
            raise InvalidInput("min_score must be a number from 0 to 1.")
        return self.min_score

    @property
    def wanted(self) -> int:
        """How many passages at most, by whichever name. Raises `InvalidInput` for two numbers that differ."""
        if self.limit is None or self.limit == self.top_k:
            return self.top_k
        passage_count("limit", self.limit)
        if "top_k" in self.model_fields_set and "limit" in self.model_fields_set:
            raise InvalidInput("top_k and limit are two names of one number: give one of them.")
        return self.limit


class BatchRequest(BaseModel):
    """Several searches at once. Each is checked on its own, so that one that is wrong does not stop the others."""

    model_config = _REQUEST

    searches: Annotated[
        list[Any],
        WithJsonSchema(
            {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_SEARCHES,
                "items": {"$ref": "#/components/schemas/SearchRequest"},
            }
        ),
    ] = Field(min_length=1, max_length=MAX_SEARCHES, description=f"1 to {MAX_SEARCHES} bodies of POST /search.")
