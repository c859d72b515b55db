"""The failures that routes declare in OpenAPI, all of one shape."""

from __future__ import annotations

from typing import Any

from dtrag.delivery.api.schemas.common import ErrorShape

Failures = dict[int | str, dict[str, Any]]

_MEANING = {
    400: "The body cannot be read.",
    401: "The key is missing or not valid.",
    403: "Your key does not allow it, or the filters try to get around your scope.",
    404: "There is no such thing that you may see.",
    409: "It was changed meanwhile.",
    413: "The body is too large.",
    415: "The body has another media type.",
    422: "The input is not valid.",
    429: "Too many requests; Retry-After says when to go on.",
    507: "The disk is too full to add anything; searches and answers go on.",
    502: "Another service that this one asks gave no usable answer.",
    503: "The database is not there, or was built with another analyzer or embedder.",
}


def failures(*statuses: int) -> Failures:
    """The OpenAPI entries of these statuses."""
    return {status: {"model": ErrorShape, "description": _MEANING[status]} for status in statuses}


QUESTION_FAILURES = failures(400, 403, 413, 415, 422, 503)
