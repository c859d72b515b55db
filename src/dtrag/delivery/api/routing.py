"""What routes share: the class for strict JSON bodies, parameters of lists, and the errors that they declare."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import Annotated, Any, NoReturn

from fastapi import Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from dtrag.core.nesting import deeper_than
from dtrag.core.statements import Statement
from dtrag.delivery.api.errors import ErrorShape

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
