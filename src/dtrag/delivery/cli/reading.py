"""Runs a reading command through the service on the data folder, or in its own process.

The service answers in a fraction of the time that the engine needs to start. For that only the standard library and the
result types are imported.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from dtrag import __version__, errors
from dtrag.delivery.cli.context import invocation, run_async
from dtrag.delivery.local.results import from_json
from dtrag.delivery.local.socket import FOLDER, PROTOCOL, socket_address
from dtrag.settings import answer_settings

if TYPE_CHECKING:
    from io import BufferedRWPair
    from pathlib import Path

    from dtrag.settings import Settings

T = TypeVar("T")

ANSWERS_WITHIN_S = 0.3
"""Maximum wait for the service's first message; a busier service is not used."""


class _NoService(Exception):
    """The service cannot be used; the message is the reason, "" if none is running."""


def read(context: typer.Context, operation: str, arguments: Mapping[str, object], kind: type[T], *, direct: bool) -> T:
    """The result of an operation of `delivery.local.operations`; `direct` does not use the service."""
    settings = invocation(context).settings()
    if not direct:
        try:
            value = _from_service(settings, operation, arguments)
        except _NoService as reason:
            if str(reason):
                from dtrag.delivery.cli.console import note

                note(f"The running service is not used: {reason}.")
        else:
            parsed = from_json(kind, value)
            assert isinstance(parsed, kind)  # noqa: S101 - `from_json` returns a value of that type
            return parsed
    from dtrag.delivery.cli.own_process import in_this_process

    result = run_async(in_this_process(settings, operation, arguments))
    assert isinstance(result, kind)  # noqa: S101 - the table of operations says so
    return result


def _from_service(settings: Settings, operation: str, arguments: Mapping[str, object]) -> object:
    """The service's result, as JSON. Raises `_NoService`, and the `DtragError` that the service reports."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWERS_WITHIN_S)
        _connect(connection, settings.data_dir)
        try:
            with connection.makefile("rwb") as stream:
                hello = {"protocol": PROTOCOL, "version": __version__, "settings": answer_settings(settings)}
                ready = _exchange(stream, hello)
                if "refused" in ready:
                    raise _NoService(ready["refused"])
                connection.settimeout(None)  # the operation has limits of its own, and Ctrl-C works
                reply = _exchange(stream, {"operation": operation, "arguments": dict(arguments)})
        except TimeoutError:
            raise _NoService(f"it did not respond within {ANSWERS_WITHIN_S} s") from None
        except (OSError, ValueError) as error:
            raise _NoService("it closed the connection") from error
    failure = reply.get("error")
    if failure is not None:
        kind = getattr(errors, str(failure["type"]), errors.DtragError)
        if kind is errors.Stopping:
            raise _NoService("it is stopping")
        raise kind(failure["message"])
    return reply["result"]


def _connect(connection: socket.socket, data_dir: Path) -> None:
    """Connect. Raises `_NoService`, without a reason if no service is listening."""
    try:
        if (data_dir / FOLDER).lstat().st_uid != os.geteuid():
            raise _NoService("its socket belongs to another user")
        with socket_address(data_dir) as address:
            connection.connect(address)
    except (TimeoutError, BlockingIOError):
        raise _NoService(f"it did not respond within {ANSWERS_WITHIN_S} s") from None
    except OSError:
        raise _NoService from None


def _exchange(stream: BufferedRWPair, message: Mapping[str, object]) -> dict[str, Any]:
    """The reply to a message. Raises `OSError` and `ValueError`."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
    reply = json.loads(stream.readline())
    if not isinstance(reply, dict):
        raise ValueError("a message is a JSON object")
    return reply
