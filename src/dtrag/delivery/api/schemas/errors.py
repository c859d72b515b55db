"""The error responses that routes declare in OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from dtrag.core.statements import Statement

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


class ErrorShape(BaseModel):
    """The body of every error response."""

    detail: str = Field(description="One sentence: what happened, and what to do.", examples=["The question is empty."])
    type: str = Field(description="The error type, for programs.", examples=["InvalidInput"])
    request_id: str | None = Field(description="The id of the request, as in X-Request-ID and in the log.")
    detail_statements: list[Statement] = Field(
        default=[], description="The detail with its code; absent for one of which only the text is known."
    )


def failures(
    *statuses: int, model: type[ErrorShape] = ErrorShape, descriptions: Mapping[int, str] | None = None
) -> Failures:
    """The OpenAPI entries of these statuses; `descriptions` replace the usual ones."""
    texts = {**_DESCRIPTIONS, **(descriptions or {})}
    return {status: {"model": model, "description": texts[status]} for status in statuses}


QUESTION_FAILURES = failures(400, 403, 413, 415, 422, 503)
