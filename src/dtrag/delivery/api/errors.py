"""Error responses, all of one shape: `{"detail": "<one sentence>", "type": …, "request_id": …}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Scope

from dtrag import logs
from dtrag.core.statements import Statement, statement_of
from dtrag.errors import DtragError

_TYPES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    422: "InvalidInput",
}
_SENTENCES = {
    404: "There is nothing at this address; /docs lists the routes.",
    405: "This address does not take the method {method}; /docs lists the routes.",
}
OPENAI_ROUTES = "/v1/"
"""Below this path errors also have the form of the OpenAI protocol, and invalid input is a 400."""
_CODES = {
    "Unauthorized": "invalid_api_key",
    "NotFound": "model_not_found",
    "TooManyRequests": "rate_limit_exceeded",
    "Overloaded": "overloaded",
}
DIFY_ROUTE = "/retrieval"
"""On this path errors also have the form that Dify expects of an external knowledge base."""
_DIFY_CODES = {403: 1002, 404: 2001}
_BEARER = re.compile(r"bearer +\S", re.IGNORECASE)
_Fields = Callable[[str, str, int], dict[str, Any]]
"""Sentence, kind and status of an error -> what a protocol adds to the body."""
_added_fields: ContextVar[_Fields | None] = ContextVar("dtrag_added_fields", default=None)
_SHOWN_NAME = 60
_SUBJECT = re.compile(r"^(Value error, |(Input|String|List|Dictionary|Tuple|Set|Bytes) (?=should ))")
"""The beginning of pydantic's messages; ours begin with the name of the field."""
_ENDS_WITH_COMMAND = re.compile(r"dtrag [a-z]+\S*( \S+)*$|(?:GET|POST|PUT|DELETE) /\S+$")
RETRY_AFTER_S = "1"
"""About the time that a restart of the database or a full queue takes."""


class ErrorShape(BaseModel):
    """The body of every error response."""

    detail: str = Field(description="One sentence: what happened, and what to do.", examples=["The question is empty."])
    type: str = Field(description="The error type, for programs.", examples=["InvalidInput"])
    request_id: str | None = Field(description="The id of the request, as in X-Request-ID and in the log.")
    detail_statements: list[Statement] = Field(
        default=[], description="The detail with its code; absent for one of which only the text is known."
    )


class OpenAIError(BaseModel):
    """The error."""

    message: str = Field(description="One sentence: what happened, and what to do.")
    type: str = Field(description="invalid_request_error, rate_limit_error or server_error.")
    param: None = Field(default=None, description="Always null.")
    code: str = Field(description="The error type, for programs.")


class OpenAIFailure(ErrorShape):
    """The body of every error response below /v1: that of the other routes, and the protocol's `error`."""

    error: OpenAIError = Field(description="The error in the form of the protocol.")


class DifyFailure(ErrorShape):
    """The body of every error response of `POST /retrieval`: that of the other routes, and what Dify expects."""

    error_code: int = Field(
        description="1001: no Authorization: Bearer header; 1002: the key is invalid or does not allow it; 2001: no "
        "such knowledge; else the HTTP status."
    )
    error_msg: str = Field(description="One sentence: what happened, and what to do.")


def sentence(text: str) -> str:
    """The text on one line, without lone surrogates, with a full stop unless it ends with a command."""
    line = " ".join(text.split()).encode("utf-8", "replace").decode("utf-8")
    return line if line.endswith((".", "!", "?")) or _ENDS_WITH_COMMAND.search(line) else f"{line}."


def detail_of(error: DtragError) -> Statement:
    """The message of an error for clients of the service."""
    return replace(statement_of(error), text=error.over_http)


@contextmanager
def protocol_of(scope: Scope) -> Iterator[None]:
    """Error responses inside the block have the form that clients of this request expect."""
    added: _Fields | None = None
    if scope["path"].startswith(OPENAI_ROUTES):
        added = _openai_fields
    elif scope["path"] == DIFY_ROUTE:
        is_bearer = _BEARER.match(Headers(scope=scope).get("authorization", ""))
        added = partial(_dify_fields, 1002 if is_bearer else 1001)
    token = _added_fields.set(added)
    try:
        yield
    finally:
        _added_fields.reset(token)


def _openai_fields(text: str, kind: str, status: int) -> dict[str, Any]:
    group = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    code = _CODES.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
    return {"error": OpenAIError(message=text, type=group, code=code).model_dump(mode="json")}


def _dify_fields(unauthorized: int, text: str, kind: str, status: int) -> dict[str, Any]:
    code = unauthorized if status == 401 else _DIFY_CODES.get(status, status)
    return {"error_code": code, "error_msg": text}


def error_body(detail: str | Statement, kind: str, status: int = 500) -> dict[str, Any]:
    """The body of an error response, with what the protocol of the request adds."""
    text = sentence(str(detail))
    body = ErrorShape(detail=text, type=kind, request_id=logs.request_id.get())
    if isinstance(detail, Statement) and detail.code:
        body.detail_statements = [replace(detail, text=sentence(detail.text))]
    shown = body.model_dump(mode="json", exclude_unset=True)
    added = _added_fields.get()
    return shown if added is None else shown | added(text, kind, status)


def error_response(
    status: int, detail: str | Statement, kind: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The response to a failed request; 503 has a `Retry-After` header."""
    all_headers = dict(headers or {})
    if status == 503:
        all_headers.setdefault("Retry-After", RETRY_AFTER_S)
    if status == 422 and _added_fields.get() is _openai_fields:
        status, kind = 400, kind or _TYPES[422]
    body = error_body(detail, kind or _TYPES.get(status, "HTTPError"), status)
    return JSONResponse(body, status, headers=all_headers)


def install(api: FastAPI) -> None:
    """Register the exception handlers: for our errors, the framework's, and invalid requests."""
    api.add_exception_handler(DtragError, _dtrag_error)
    api.add_exception_handler(RequestValidationError, _validation_error)
    api.add_exception_handler(HTTPException, _framework_error)


async def _dtrag_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DtragError)  # noqa: S101 - registered for this class
    wait_s = error.fields.get("seconds")
    headers = {"Retry-After": str(wait_s)} if wait_s is not None and error.http_status in {429, 503} else None
    kind = type(error).__name__
    if getattr(request.state, "from_owner", False):  # a command prints it
        body = {"detail": str(error), "type": kind, "request_id": logs.request_id.get()}
        return JSONResponse(body, error.http_status, headers=headers)
    return error_response(error.http_status, detail_of(error), kind, headers=headers)


async def _framework_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    sentence_for_status = _SENTENCES.get(error.status_code, "").format(method=request.method)
    return error_response(error.status_code, sentence_for_status or str(error.detail), headers=error.headers)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    return error_response(422, validation_sentence(error.errors()))


class ValidationProblem(TypedDict):
    """What of pydantic's error details is used."""

    type: str
    loc: tuple[int | str, ...]
    msg: str


def validation_sentence(problems: Sequence[ValidationProblem]) -> str:
    """One sentence that names the first invalid field and never repeats its value."""
    first = problems[0]
    place = [str(part) for part in first["loc"][1:]]
    name = ".".join(place)[:_SHOWN_NAME]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    kind = first["type"]
    if not name:
        return f"The body must be a JSON object with the documented fields{more}."
    if kind == "missing":
        return f"The field {name!r} is missing{more}."
    if kind == "extra_forbidden":
        return f"There is no field {name!r}{more}."
    message = _SUBJECT.sub("", str(first["msg"]))
    return f"The field {name!r} {message}{more}."


def invalid_sentence(error: ValidationError) -> str:
    """`validation_sentence` of a value that a route checks itself."""
    problems = error.errors(include_url=False, include_input=False)
    return validation_sentence(
        [{"type": each["type"], "loc": ("", *each["loc"]), "msg": each["msg"]} for each in problems]
    )
