"""How a reading command gets its result: from the service that runs on the data folder, or in its own process.

The service answers in a fraction of the time that an engine takes to start. Only the standard library and the shapes of
results are imported on that way.
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
from dtrag.delivery.local.results import revived
from dtrag.delivery.local.socket import FOLDER, PROTOCOL, socket_address
from dtrag.settings import answer_settings

if TYPE_CHECKING:
    from pathlib import Path

    from dtrag.settings import Settings

T = TypeVar("T")

ANSWERS_WITHIN_S = 0.3
"""Longest wait for a service's first word; one that is too busy for that is done without."""


class _NoService(Exception):
    """There is no service to use; the message says why where that is worth a line."""


def read(context: typer.Context, operation: str, arguments: Mapping[str, Any], result: type[T], *, direct: bool) -> T:
    """The result of an operation of `delivery.operations`. Raises what it raises; `direct` skips the service."""
    settings = invocation(context).settings()
    if not direct:
        try:
            found = _from_service(settings, operation, arguments)
        except _NoService as reason:
            if str(reason):
                from dtrag.delivery.cli.console import note

                note(f"The running service is not used: {reason}.")
        else:
            made = revived(result, found)
            assert isinstance(made, result)  # noqa: S101 - `revived` makes what it is given
            return made
    from dtrag.delivery.cli.own_process import in_this_process

    done = run_async(in_this_process(settings, operation, arguments))
    assert isinstance(done, result)  # noqa: S101 - the table of operations says so
    return done


def _from_service(settings: Settings, operation: str, arguments: Mapping[str, Any]) -> Any:
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
            raise _NoService(f"it did not answer within {ANSWERS_WITHIN_S} s") from None
        except (OSError, ValueError) as error:
            raise _NoService("it ended the connection") from error
    failure = reply.get("error")
    if failure is not None:
        kind = getattr(errors, str(failure["type"]), errors.DtragError)
        if kind is errors.Stopping:
            raise _NoService("it is stopping")
        raise kind(failure["message"])
    return reply["result"]


def _connect(connection: socket.socket, data_dir: Path) -> None:
    """Raises `_NoService`: without words where no service listens, as after its end."""
    try:
        if (data_dir / FOLDER).lstat().st_uid != os.geteuid():
            raise _NoService("its socket belongs to another user")
        with socket_address(data_dir) as address:
            connection.connect(address)
    except (TimeoutError, BlockingIOError):
        raise _NoService(f"it did not answer within {ANSWERS_WITHIN_S} s") from None
    except OSError:
        raise _NoService from None


def _exchange(stream: Any, message: dict[str, Any]) -> dict[str, Any]:
    """The reply to a message. Raises `OSError` and `ValueError`."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
    reply = json.loads(stream.readline())
    if not isinstance(reply, dict):
        raise ValueError("a message is a JSON object")
    return reply
