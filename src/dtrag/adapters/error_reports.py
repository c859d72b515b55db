"""Unexpected errors of the service as reports to a Sentry project: what failed and where, never what it was about.

A report is built from a list of what may be sent, so nothing new in the SDK gets into it: classes of exceptions with
file, function and line of each frame, the logger, the release and the id of the request. There are no messages of
exceptions (they quote values), no local variables, lines of code, headers, addresses, bodies or breadcrumbs.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dtrag.errors import InvalidInput, MissingExtra
from dtrag.logs import request_id

if TYPE_CHECKING:
    from sentry_sdk import Client
    from sentry_sdk.types import Event, Hint

CLOSE_S = 2.0
"""Longest wait for reports that are still to be sent when the service stops."""
_EVENT = ("event_id", "timestamp", "platform", "level", "logger", "release", "environment", "sdk")
_EXCEPTION = ("type", "module")
_MECHANISM = ("type", "handled", "exception_id", "parent_id", "is_exception_group")
_FRAME = ("filename", "function", "module", "lineno", "in_app")
_GENERATED_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")
"""Ids of requests that are sent along: a caller may have chosen another one, and words for it."""


@asynccontextmanager
async def error_reports(dsn: str | None, version: str) -> AsyncIterator[None]:
    """While the block runs, errors that are logged with an exception are reported. Without a DSN nothing is imported.

    Raises `MissingExtra` when the SDK is not installed and `InvalidInput` for an address that is not one.
    """
    if not dsn:
        yield
        return
    client = await asyncio.to_thread(_client, dsn, version)
    handler = _Reporter(client)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        await asyncio.to_thread(client.close, CLOSE_S)


def _client(dsn: str, version: str) -> Client:
    if find_spec("sentry_sdk") is None:
        raise MissingExtra(feature="SENTRY_DSN", extra="sentry")
    from sentry_sdk import Client
    from sentry_sdk.utils import BadDsn

    try:
        return Client(
            dsn=dsn,
            release=f"dtrag@{version}",
            before_send=without_text,
            default_integrations=False,  # they look into requests, arguments, log lines and the environment
            auto_enabling_integrations=False,
            auto_session_tracking=False,
            send_client_reports=False,
            enable_backpressure_handling=False,
            include_local_variables=False,
            include_source_context=False,
            max_request_body_size="never",
            max_breadcrumbs=0,
            traces_sample_rate=None,
            spotlight=False,
            shutdown_timeout=CLOSE_S,
        )
    except BadDsn as error:
        raise InvalidInput(
            "SENTRY_DSN is not the address of a Sentry project; it looks like https://KEY@HOST/NUMBER."
        ) from error


class _Reporter(logging.Handler):
    """Reports the exceptions of log records from ERROR up."""

    def __init__(self, client: Client) -> None:
        super().__init__(logging.ERROR)
        self._client = client

    def emit(self, record: logging.LogRecord) -> None:
        """The SDK puts the report into a queue and never waits for the network."""
        if not record.exc_info or record.exc_info[1] is None or record.name.startswith(("sentry_sdk", "urllib3")):
            return
        from sentry_sdk.utils import event_from_exception

        mechanism = {"type": "logging", "handled": True}
        event, hint = event_from_exception(record.exc_info, client_options=self._client.options, mechanism=mechanism)
        event["logger"] = record.name
        self._client.capture_event(event, hint)


def without_text(event: Event, hint: Hint) -> Event:
    """The parts of the event that may be sent."""
    sent: dict[str, object] = _only(event, _EVENT)
    exceptions = event.get("exception", {}).get("values", [])
    sent["exception"] = {"values": [_exception(exception) for exception in exceptions]}
    current = request_id.get()
    if current is not None and _GENERATED_ID.fullmatch(current):
        sent["tags"] = {"request_id": current}
    return sent  # type: ignore[return-value]  # a plain dict with keys of an Event


def _exception(exception: Mapping[str, Any]) -> dict[str, object]:
    frames = (exception.get("stacktrace") or {}).get("frames") or []
    return {
        **_only(exception, _EXCEPTION),
        "mechanism": _only(exception.get("mechanism") or {}, _MECHANISM),
        "stacktrace": {"frames": [_only(frame, _FRAME) for frame in frames]},
    }


def _only(values: Mapping[str, object], names: tuple[str, ...]) -> dict[str, object]:
    return {name: values[name] for name in names if values.get(name) is not None}
