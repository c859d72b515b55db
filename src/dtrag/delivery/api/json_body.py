"""JSON bodies, parsed more strictly than by the standard library: ambiguous or hostile input is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from email.message import Message
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from dtrag.core.nesting import deeper_than

MAX_DEPTH = 32
"""Maximum nesting of a body; routes need 4. Deeper values could exhaust the stack."""


class JsonRoute(APIRoute):
    """A route that accepts only `application/json` in UTF-8.

    This also protects against pages of other origins: browsers send a preflight request for this type.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with a check of the content type."""
        handler = super().get_route_handler()

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
