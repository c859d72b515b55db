"""The transport of an MCP server that is a program on this machine: its process group, pipes and end.

The transport of the SDK reads lines of any length; this one has a limit, and keeps the end of stderr.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from dtrag.adapters.mcp.config import ServerConfig
from dtrag.adapters.mcp.connection import ConnectionState
from dtrag.errors import ToolServerFailed
from dtrag.settings import passed_on

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

MESSAGE_BYTES = 4 << 20
"""Longest message of a server: sixty times the largest result of a tool, and parsed without a noticeable pause."""
NOISE = 1_000
"""Lines on stdout that are not messages; after so many the program does not speak the protocol."""
STDERR_BYTES = 2_000
"""The end of stderr, kept to explain a failure."""
LEAVE_SECONDS = 2.0
"""Time for the program to exit after its input is closed, and again after SIGTERM; then it is killed."""
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "SYSTEMROOT")
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def program(config: ServerConfig, health: ConnectionState) -> AsyncIterator[TransportStreams]:
    """The streams of a new process of the server. Failures are reported to `health`. Raises `ToolServerFailed`."""
    import anyio
    from mcp.shared.message import SessionMessage

    process = await _start(config)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, incoming, health), name=f"mcp-{config.name}-read"),
        asyncio.create_task(_write(process, outgoing, incoming), name=f"mcp-{config.name}-write"),
        asyncio.create_task(_listen(process, health), name=f"mcp-{config.name}-stderr"),
    ]
    try:
        yield read, write
    finally:
        health.closing = True
        try:
            await _end(process)
        finally:
            # Its children end with it, also when this is cancelled a second time.
            _signal(process, signal.SIGKILL)
            for task in tasks:
                task.cancel()
            for stream in (read, write, incoming, outgoing):
                stream.close()
            _close_pipes(process)
        await asyncio.gather(*tasks, return_exceptions=True)


async def _start(config: ServerConfig) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *config.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=passed_on((*_PASSED_ON, *config.env)),
            cwd=config.folder,
            start_new_session=True,  # a group of its own: its children end with it, and Ctrl-C is not for it
            limit=MESSAGE_BYTES,
        )
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or str(error)
        reason = f"{config.command[0][:100]!r} cannot be started ({what})."
        raise ToolServerFailed(name=config.name, reason=reason) from error


async def _read(
    process: asyncio.subprocess.Process,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    health: ConnectionState,
) -> None:
    """Forward the program's messages until it ends, exceeds a limit, or the reader is closed."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    assert process.stdout is not None  # noqa: S101 - started with a pipe
    noise = 0
    with incoming, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while noise < NOISE:
            try:
                line = await process.stdout.readline()
            except ValueError:
                health.failed(f"it sent a message of more than {MESSAGE_BYTES >> 20} MiB.")
                return
            if not line:
                health.failed("its process has ended.")
                return
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                noise += 1
                continue
            await incoming.send(SessionMessage(message))
        health.failed("it writes lines to stdout that are not MCP messages.")


async def _write(
    process: asyncio.subprocess.Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    assert process.stdin is not None  # noqa: S101 - started with a pipe
    try:
        async for waiting in outgoing:
            line = waiting.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()
    except OSError:
        incoming.close()  # callers that wait for an answer get an error


async def _listen(process: asyncio.subprocess.Process, health: ConnectionState) -> None:
    assert process.stderr is not None  # noqa: S101 - started with a pipe
    tail = b""
    while piece := await process.stderr.read(4096):
        tail = (tail + piece)[-STDERR_BYTES:]
        health.stderr_tail = tail.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, then terminate, then kill it and its children; wait after each."""
    assert process.stdin is not None  # noqa: S101 - started with a pipe
    with suppress(OSError):
        process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not await _gone(process):
            _signal(process, number)
    await _gone(process)


async def _gone(process: asyncio.subprocess.Process) -> bool:
    """Whether it ends in time. Not `process.wait()`, which waits for children that have its pipes open, too."""
    deadline = asyncio.get_running_loop().time() + LEAVE_SECONDS
    while process.returncode is None:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    """Signal the group that the process was started in; what of it is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close our ends. A grandchild in another session may hold the others, and nothing public closes ours then."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with suppress(PermissionError, ProcessLookupError):
            transport.close()
