"""Tools of MCP servers: listed at intervals, approved by an administrator, and registered exactly as approved.

Servers never block other work: they are listed in the background, and a list is used for some minutes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.grade_limits import Recipient
from dtrag.core.access.scope import scope_rows
from dtrag.core.response import response
from dtrag.core.tool_approval import Approval, OfferedTool, State, fingerprint, problem, state
from dtrag.errors import Advice, Conflict, DtragError, InvalidInput, NotFound, ToolChanged, ToolServerFailed
from dtrag.ports import ApprovalStore, Recorder, ToolServer, unrecorded
from dtrag.tools.registry import Tool, ToolRegistry

FRESH_S = 300.0
"""Seconds for which a server's list is used; a server that announces a change is listed again at its next use."""
RETRY_S = 30.0
"""Seconds until a server that could not be reached is tried again."""
PATIENCE_S = 0.1
"""Longest wait of a planner for outdated lists, in seconds; tools that arrive later are available the next time."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """A tool."""

    __pydantic_config__ = response("ToolShape")

    name: str
    """`server.tool` for one of an MCP server."""
    server: str
    """The MCP server that offers it; "" for a built-in one."""
    description: str
    """Its own description; untrusted text for a tool of an MCP server."""
    input_schema: Mapping[str, Any]
    """JSON Schema of its input; {} for a missing or refused tool."""
    state: State | Literal["built-in"]
    """Its state; only built-in and approved tools are executed."""
    usable: bool
    """Whether it can be executed now."""
    fingerprint: str = ""
    """SHA-256 of its name, description and schema, in hexadecimal; "" for a tool that is built in, missing or
    refused."""
    reason: str = ""
    """Why it cannot be used; "" without a special reason."""
    approved_by: str | None = None
    """Who approved it, or its earlier form before it changed."""
    approved_at: datetime | None = None
    """When it was approved."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """An MCP server."""

    __pydantic_config__ = response("ServerShape")

    name: str
    """Its name in the settings."""
    where: str
    """Its command or address."""
    tools: int
    """Number of tools in its last response."""
    problem: str
    """Why it cannot be used now; "" if it can."""
    asking: bool
    """Whether a request to it is under way; these values may then be outdated."""


@dataclass(slots=True)
class _ServerList:
    """The latest list of a server. `until`: when it expires, in seconds of `time.monotonic()`."""

    tools: list[OfferedTool] = field(default_factory=list)
    problem: str = ""
    until: float = 0.0


class McpTools:
    """The tools of all configured servers of one app. Approved ones are in `registry`, as `server.tool`."""

    def __init__(
        self,
        servers: Sequence[ToolServer],
        approvals: ApprovalStore,
        registry: ToolRegistry,
        record: Recorder = unrecorded,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._servers = {server.name: server for server in servers}
        self._approvals = approvals
        self._registry = registry
        self._record = record
        self._monotonic = monotonic
        self._lists = {name: _ServerList() for name in self._servers}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._registered: dict[str, bytes] = {}

    @property
    def configured(self) -> bool:
        """Whether any server is configured."""
        return bool(self._servers)

    @property
    def destinations(self) -> list[Recipient]:
        """The servers."""
        return [_destination(server) for server in self._servers.values()]

    async def refresh(self, seconds: float = PATIENCE_S) -> None:
        """Update the registry, waiting at most `seconds` for servers whose lists have expired.

        Approvals and revocations of other processes are included.
        """
        if not self._servers:
            return
        now = self._monotonic()
        await self._list_servers([name for name, latest in self._lists.items() if latest.until <= now], seconds)
        self._register(await self._approvals.every())

    async def status(self, seconds: float = PATIENCE_S) -> tuple[list[ServerStatus], list[ToolStatus]]:
        """The servers, and the offered and approved tools by name, after a `refresh`."""
        await self.refresh(seconds)
        approvals = await self._approvals.every()
        servers = [
            ServerStatus(name, server.where, len(self._lists[name].tools), self._lists[name].problem, self._busy(name))
            for name, server in self._servers.items()
        ]
        tools = {tool.full_name: self._status(tool, approvals) for tool in self._offered()}
        for name in approvals.keys() - tools.keys():
            tools[name] = self._gone(approvals[name])
        return servers, [tools[name] for name in sorted(tools)]

    async def approve(self, name: str, expected: str | None = None, *, caller: Caller = LOCAL) -> ToolStatus:
        """Approve a tool as its server describes it now; `expected` is the fingerprint that was reviewed.

        Raises `NotFound`, `ToolServerFailed`, `InvalidInput` for a tool that can never be used, and `Conflict` if the
        tool has changed since the review.
        """
        tool = await self._find(name)
        if refusal := problem(tool):
            raise InvalidInput(f"The tool {name!r} cannot be approved: {refusal}")
        current = fingerprint(tool)
        if expected is not None and expected.lower() != current.hex():
            raise Conflict(
                f"The tool {name!r} has changed since you reviewed it: its fingerprint is now {current.hex()}.",
                Advice.REVIEW_TOOL,
            )
        await self._approvals.put(Approval(name, current, caller.name, datetime.now(UTC)))
        await self._record_change(caller, "tools.approve", name, {"fingerprint": current.hex()})
        approvals = await self._approvals.every()
        self._register(approvals)
        return self._status(tool, approvals)

    async def revoke(self, name: str, *, caller: Caller = LOCAL) -> None:
        """Revoke an approval: the tool is not called any more. Raises `NotFound`."""
        if not await self._approvals.remove(name):
            raise _unknown(f"No tool {name[:130]!r} of an MCP server is approved.")
        await self._record_change(caller, "tools.revoke", name, {})
        self._register(await self._approvals.every())

    async def close(self) -> None:
        """Close all connections and end all server processes."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()))
        for name in list(self._registered):
            self._drop(name)

    async def _list_servers(self, names: Collection[str], seconds: float) -> None:
        """List the tools of these servers at the same time; lists that are late continue in the background."""
        for name in names:
            if not self._busy(name):
                self._asking[name] = asyncio.create_task(self._list_server(name), name=f"mcp-{name}-list")
        waiting = {self._asking[name] for name in names}
        if waiting:
            await asyncio.wait(waiting, timeout=seconds)

    def _busy(self, name: str) -> bool:
        return name in self._asking and not self._asking[name].done()

    async def _list_server(self, name: str) -> None:
        """Fetch the list of one server; the previous one is kept if that fails."""
        latest = self._lists[name]
        try:
            latest.tools = await self._servers[name].tools()
        except DtragError as error:
            if latest.problem != str(error):
                _LOG.warning("An MCP server cannot be used", extra={"server": name, "why": str(error)})
            latest.problem = str(error)
            latest.until = self._monotonic() + RETRY_S
        else:
            latest.problem = ""
            latest.until = self._monotonic() + FRESH_S

    def _register(self, approvals: Mapping[str, Approval]) -> None:
        """Make the registry contain exactly the approved, unchanged tools of reachable servers."""
        approved = {
            tool.full_name: tool
            for tool in self._offered()
            if not self._lists[tool.server].problem and state(tool, approvals.get(tool.full_name)) == "approved"
        }
        for name, registered in list(self._registered.items()):
            if name not in approved or approvals[name].fingerprint != registered:
                self._drop(name)
        for name in approved.keys() - self._registered.keys():
            self._add(approved[name], approvals[name].fingerprint)

    def _add(self, tool: OfferedTool, approved: bytes) -> None:
        server = self._servers[tool.server]
        execute = partial(self._execute, server, tool, approved)
        try:
            self._registry.register(
                Tool(
                    tool.full_name,
                    tool.description,
                    tool.input_schema,
                    execute,
                    server.answer_seconds,
                    _destination(server),
                )
            )
        except InvalidInput as error:  # a program registered a tool of that name, which stays
            _LOG.warning("A tool of an MCP server cannot be registered", extra={"why": str(error)})
        else:
            self._registered[tool.full_name] = approved

    def _drop(self, name: str) -> None:
        self._registered.pop(name, None)
        self._registry.unregister(name)

    async def _execute(
        self, server: ToolServer, tool: OfferedTool, approved: bytes, arguments: Mapping[str, Any]
    ) -> Any:
        """Call the tool as it was approved; one that has changed is removed from the registry at once."""
        try:
            return await server.call(tool.name, arguments, approved)
        except (ToolChanged, ToolServerFailed) as error:
            self._lists[tool.server].until = 0.0
            if isinstance(error, ToolChanged):
                self._drop(tool.full_name)
            raise

    async def _find(self, name: str) -> OfferedTool:
        """The tool as its server describes it now."""
        server = name.partition(".")[0]
        if server not in self._servers:
            raise _unknown(f"There is no tool {name[:130]!r} of an MCP server.")
        await self._list_servers([server], float("inf"))
        if self._lists[server].problem:
            raise ToolServerFailed(self._lists[server].problem)
        for tool in self._lists[server].tools:
            if tool.full_name == name:
                return tool
        raise _unknown(f"The MCP server {server!r} does not offer a tool {name[:130]!r}.")

    def _offered(self) -> list[OfferedTool]:
        return [tool for latest in self._lists.values() for tool in latest.tools]

    def _status(self, tool: OfferedTool, approvals: Mapping[str, Approval]) -> ToolStatus:
        approval = approvals.get(tool.full_name)
        refusal = problem(tool)
        return ToolStatus(
            tool.full_name,
            tool.server,
            tool.description,
            {} if refusal else tool.input_schema,
            state(tool, approval),
            tool.full_name in self._registered,
            "" if refusal else fingerprint(tool).hex(),
            refusal,
            approval.approved_by if approval else None,
            approval.approved_at if approval else None,
        )

    def _gone(self, approval: Approval) -> ToolStatus:
        server = approval.tool.partition(".")[0]
        latest = self._lists.get(server)
        reason = "its server does not offer it any more." if latest else f"there is no MCP server {server!r} any more."
        if latest and (latest.problem or self._busy(server)):
            reason = "its server does not answer now."
        return ToolStatus(
            approval.tool, server, "", {}, "gone", False, "", reason, approval.approved_by, approval.approved_at
        )

    async def _record_change(self, caller: Caller, action: str, name: str, details: Mapping[str, Any]) -> None:
        scope = scope_rows(caller.access)
        await self._record(caller.name, action, scope=scope, subjects=[name], decision="done", details=details)


def _destination(server: ToolServer) -> Recipient:
    return Recipient("mcp", server.name, server.where)


def _unknown(reason: str) -> NotFound:
    return NotFound(reason, Advice.LIST_TOOLS)
