"""One connection to an MCP server, in its own task from its creation until `end` or a failure.

The SDK requires its client to be entered and left in the same task, while the callers are in many.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dtrag.adapters.mcp.config import ServerConfig
from dtrag.core.tool_approval import OfferedTool
from dtrag.errors import DtragError, FetchFailed, MissingExtra, ToolServerFailed

LAST_LINE_CHARACTERS = 200
"""Characters of the last line of stderr that are shown."""


@dataclass(slots=True)
class ConnectionState:
    """State of one connection. `stderr_tail` is the end of the program's stderr: untrusted text."""

    on_failure: Callable[[], None]
    problem: str = ""
    stderr_tail: str = ""
    closing: bool = False
    """We end it ourselves: an end is not a fault of the server."""

    def failed(self, problem: str) -> None:
        """The connection is unusable; the first reported problem is the cause of the others."""
        if not self.closing:
            self.problem = self.problem or problem
        self.on_failure()

    def reason(self, otherwise: str) -> str:
        """The problem, or `otherwise`, with the last line of the server's stderr."""
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        last = f' Its last line of stderr: "{lines[-1][:LAST_LINE_CHARACTERS]}".' if lines else ""
        return f"{self.problem or otherwise}{last}"


if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult

T = TypeVar("T")
Link = Callable[[ServerConfig, ConnectionState], "AbstractAsyncContextManager[TransportStreams]"]

LIST_SECONDS = 10.0
"""Longest wait for the list of tools, all pages."""
PAGES = 20
MOST_TOOLS = 200
"""Of one server; a planner chooses badly among more."""
DOUBTS = 2
"""Consecutive missing answers: after one, the tools are listed again, which a live server answers at once; when that
is not answered either, the server hangs."""
WHY_SECONDS = 1.0
"""Time for the task of an ended connection to report the cause."""
END_SECONDS = 10.0
"""A connection has ended after so long; the steps of ending a program take less together."""
_LOG = logging.getLogger(__name__)


class McpConnection:
    """A connection. `users` counts who uses it now; `listed` are its tools by name, None when they must be requested.

    Needs a running event loop.
    """

    def __init__(self, config: ServerConfig, link: Link) -> None:
        self._config = config
        self._link = link
        self._end = asyncio.Event()
        self._health = ConnectionState(self._end.set)
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(_retrieve_error)
        self._task = asyncio.create_task(self._run(), name=f"mcp-{config.name}")
        self._doubts = 0
        self.users = 0
        self.listed: dict[str, OfferedTool] | None = None

    @property
    def broken(self) -> bool:
        """Whether it is unusable: it ended, or its latest answers did not arrive in time."""
        return self._end.is_set() or self._task.done() or self._doubts >= DOUBTS

    @property
    def gone(self) -> bool:
        """Whether nothing of it is left."""
        return self._task.done()

    async def tools(self) -> dict[str, OfferedTool]:
        """The tools by name, requested when they are unknown. Raises `ToolServerFailed`."""
        client = await asyncio.shield(self._ready)
        if self.listed is None:
            self.listed = await self._answered(self._list(client), LIST_SECONDS)
        return self.listed

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """The result of the tool as the protocol has it. Raises `ToolServerFailed`."""
        client = await asyncio.shield(self._ready)
        return await self._answered(_called(client, tool, arguments), self._config.answer_seconds)

    def end(self) -> None:
        """Start to end it; `ended` waits for that."""
        self._end.set()

    async def ended(self) -> None:
        """End it and wait until nothing of it is left."""
        self._end.set()
        if not self._ready.done():
            self._task.cancel()  # still starting, for no caller
        _, still = await asyncio.wait({self._task}, timeout=END_SECONDS)
        if still:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=END_SECONDS)

    async def _run(self) -> None:
        """The whole life of the connection. `_ready` gets the error of a failed start."""
        try:
            # Seconds of work for the processor, the first time: not on the event loop, and not the server's fault.
            await asyncio.to_thread(_imported)
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._config.start_seconds):
                    client = await stack.enter_async_context(self._client())
                self._ready.set_result(client)
                async with _beside(self._hear(client)):
                    await self._end.wait()
        except TimeoutError:
            self._failed(f"it did not start within {self._config.start_seconds:g} seconds.")
        except DtragError as error:
            self._failed(str(error), error)
        except asyncio.CancelledError:
            self._failed("the connection was closed.")
            raise
        except BaseExceptionGroup as group:  # the SDK runs task groups: what broke one of them comes in a group
            self._failed(_cause(group), _told(group))
        except Exception as error:  # noqa: BLE001 - the boundary to the SDK, which raises any class
            self._failed(_cause(error), error)
        finally:
            self._end.set()

    def _client(self) -> Client:
        from mcp import Client
        from mcp_types import Implementation

        async def heard(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                self.listed = None

        return Client(
            self._link(self._config, self._health),
            cache=None,
            client_info=Implementation(name="dtrag", version="1"),
            message_handler=heard,
        )

    async def _hear(self, client: Client) -> None:
        """Forget the tools when the server announces that they changed, and when it stops announcing.

        Servers of protocols before 2026-07-28 announce it without being asked: see `_client`.
        """
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError

        offers = client.server_capabilities.tools
        if offers is None or not offers.list_changed:
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self.listed = None
        except ListenNotSupportedError:
            return
        except (MCPError, RuntimeError, TimeoutError, ValueError):
            _LOG.debug("An MCP server stopped announcing changes", extra={"server": self._config.name})
        self.listed = None

    async def _list(self, client: Client) -> dict[str, OfferedTool]:
        offered_tools: dict[str, OfferedTool] = {}
        cursor = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if self._config.tools is None or tool.name in self._config.tools:
                    offered = OfferedTool(self._config.name, tool.name, tool.description or "", tool.input_schema)
                    offered_tools.setdefault(tool.name, offered)
            cursor = page.next_cursor
            if cursor is None:
                break
        if len(offered_tools) > MOST_TOOLS:
            reason = f"it offers {len(offered_tools):,} tools; name at most {MOST_TOOLS} of them in `tools`."
            raise ToolServerFailed(name=self._config.name, reason=reason)
        return offered_tools

    async def _answered(self, work: Awaitable[T], seconds: float) -> T:
        """What the server answers, in time. A connection that was left in doubt has to list its tools again."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        try:
            async with asyncio.timeout(seconds):
                answer = await work
        except TimeoutError as error:
            raise self._doubted(f"it did not answer within {seconds:g} seconds.") from error
        except asyncio.CancelledError:
            self._doubted("")
            raise
        except MCPError as error:
            self.listed = None
            if error.code == CONNECTION_CLOSED:
                await asyncio.wait({self._task}, timeout=WHY_SECONDS)
            raise self._refused(_sentence(error.message)) from error
        except (ValueError, RuntimeError) as error:  # what the SDK raises for an invalid answer
            self.listed = None
            raise self._refused("its answer does not follow the protocol.") from error
        self._doubts = 0
        return answer

    def _doubted(self, reason: str) -> ToolServerFailed:
        self._doubts += 1
        self.listed = None
        return self._refused(reason)

    def _refused(self, reason: str) -> ToolServerFailed:
        return ToolServerFailed(name=self._config.name, reason=self._health.reason(reason))

    def _failed(self, reason: str, cause: BaseException | None = None) -> None:
        if isinstance(cause, ToolServerFailed | FetchFailed):
            reason = str(cause.fields["reason"])
        self._health.problem = self._health.problem or _sentence(reason)
        if not self._ready.done():
            explained = isinstance(cause, DtragError) and not isinstance(cause, ToolServerFailed | FetchFailed)
            self._ready.set_exception(cause if explained and cause is not None else self._refused(reason))
        _LOG.info("The connection to an MCP server ended", extra={"server": self._config.name, "why": reason})


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the work during the block; cancel the rest of it at the end."""
    task = asyncio.create_task(work, name="mcp-hear")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _imported() -> None:
    """Import the SDK. Raises `MissingExtra`."""
    try:
        import mcp
        import mcp.client.streamable_http  # noqa: F401

        # Its tracebacks quote what servers sent; callers get the error themselves.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
    except ImportError as error:
        raise MissingExtra(feature="The client of MCP servers", extra="mcp") from error


async def _called(client: Client, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    """As `Client.call_tool`, without checking the result by the server's schema: its patterns could take forever."""
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
    return await client.session.send_request(request, CallToolResult)


def _told(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The first error of ours in the group."""
    for error in group.exceptions:
        inner = _told(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(inner, DtragError):
            return inner
    return None


def _cause(error: BaseException) -> str:
    """The first single error as a sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return _sentence(str(error) or type(error).__name__)


def _sentence(text: str) -> str:
    shown = " ".join(text.split())[:300]
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def _retrieve_error(future: asyncio.Future[Client]) -> None:
    """Retrieve the exception, so that asyncio does not warn."""
    if not future.cancelled():
        future.exception()
