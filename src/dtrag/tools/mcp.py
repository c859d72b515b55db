"""Tools of MCP servers: asked for now and then, approved by people, and registered only as what was approved.

A server never delays anything: it is asked beside everything else, and what it said last counts for some minutes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import scope_rows
from dtrag.core.tool_approval import Approval, OfferedTool, State, fingerprint, problem, state
from dtrag.errors import Conflict, DtragError, InvalidInput, NotFound, ToolChanged, ToolServerFailed
from dtrag.ports import ApprovalStore, Recorder, ToolServer, unrecorded
from dtrag.tools.registry import Tool, ToolRegistry

FRESH_S = 300.0
"""What a server said counts for so long, in seconds; servers that announce a change are asked at once when used."""
RETRY_S = 30.0
"""A server that could not be reached is left alone for so long."""
PATIENCE_S = 0.1
"""Longest wait of whoever plans with the tools that there are; late ones are there the next time."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """Where one tool stands; `server` is "" for a built-in one. `usable`: it would be executed now.

    `fingerprint` is what an approval is about, in hexadecimal; "" for a tool that is built in, gone or refused.
    `reason`: why it cannot be used, for people; "" without a special one.
    """

    name: str
    server: str
    description: str
    input_schema: Mapping[str, Any]
    state: State | Literal["built-in"]
    usable: bool
    fingerprint: str = ""
    reason: str = ""
    approved_by: str | None = None
    approved_at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"approved_at": self.approved_at.isoformat() if self.approved_at else None}


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server. `problem`: why it cannot be used, "" when it can; `asking`: its answer is not there yet."""

    name: str
    where: str
    tools: int
    problem: str
    asking: bool


@dataclass(slots=True)
class _Seen:
    """What a server said last. `until` in seconds of `time.monotonic()`."""

    tools: list[OfferedTool] = field(default_factory=list)
    problem: str = ""
    until: float = 0.0


class McpTools:
    """The tools of all configured servers of one app. `registry` gets those that are approved, as `server.tool`."""

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
        self._seen = {name: _Seen() for name in self._servers}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._registered: dict[str, bytes] = {}

    @property
    def configured(self) -> bool:
        """Whether there are servers at all."""
        return bool(self._servers)

    async def refresh(self, seconds: float = PATIENCE_S) -> None:
        """Bring the registry up to date, waiting at most so long for servers whose word is too old.

        What other processes approved and revoked is known when this returns.
        """
        if not self._servers:
            return
        now = self._monotonic()
        await self._asked([name for name, seen in self._seen.items() if seen.until <= now], seconds)
        self._register(await self._approvals.every())

    async def status(self, seconds: float = PATIENCE_S) -> tuple[list[ServerStatus], list[ToolStatus]]:
        """Servers and tools, those that are offered and those that were approved, by name; as `refresh` before."""
        await self.refresh(seconds)
        approvals = await self._approvals.every()
        servers = [
            ServerStatus(name, server.where, len(self._seen[name].tools), self._seen[name].problem, self._busy(name))
            for name, server in self._servers.items()
        ]
        tools = {tool.full_name: self._status(tool, approvals) for tool in self._offered()}
        for name in approvals.keys() - tools.keys():
            tools[name] = self._gone(approvals[name])
        return servers, [tools[name] for name in sorted(tools)]

    async def approve(self, name: str, expected: str | None = None, *, caller: Caller = LOCAL) -> ToolStatus:
        """Allow a tool as its server describes it now; `expected` is the fingerprint of what somebody looked at.

        Raises `NotFound`, `ToolServerFailed`, `InvalidInput` for a tool that can never be used, and `Conflict` when the
        tool is not what was looked at.
        """
        tool = await self._find(name)
        if refusal := problem(tool):
            raise InvalidInput(f"The tool {name!r} cannot be approved: {refusal}")
        found = fingerprint(tool)
        if expected is not None and expected.lower() != found.hex():
            raise Conflict(
                f"The tool {name!r} is not what you looked at: its fingerprint is {found.hex()} now. "
                "Look at it again with `dtrag tools list`, then approve that."
            )
        await self._approvals.put(Approval(name, found, caller.name, datetime.now(UTC)))
        await self._changed(caller, "tools.approve", name, {"fingerprint": found.hex()})
        approvals = await self._approvals.every()
        self._register(approvals)
        return self._status(tool, approvals)

    async def revoke(self, name: str, *, caller: Caller = LOCAL) -> None:
        """Take an approval back: the tool is not started any more. Raises `NotFound`."""
        if not await self._approvals.remove(name):
            raise _unknown(f"No tool {name[:130]!r} of an MCP server is approved.")
        await self._changed(caller, "tools.revoke", name, {})
        self._register(await self._approvals.every())

    async def close(self) -> None:
        """End all connections and processes."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()))
        for name in list(self._registered):
            self._drop(name)

    async def _asked(self, names: Collection[str], seconds: float) -> None:
        """Ask these servers for their tools, all at once; those that are not done in time go on beside."""
        for name in names:
            if not self._busy(name):
                self._asking[name] = asyncio.create_task(self._ask(name), name=f"mcp-{name}-list")
        waiting = {self._asking[name] for name in names}
        if waiting:
            await asyncio.wait(waiting, timeout=seconds)

    def _busy(self, name: str) -> bool:
        return name in self._asking and not self._asking[name].done()

    async def _ask(self, name: str) -> None:
        """Ask one server. What it said before is kept when it says nothing now."""
        seen = self._seen[name]
        try:
            seen.tools = await self._servers[name].tools()
        except DtragError as error:
            if seen.problem != str(error):
                _LOG.warning("An MCP server cannot be used", extra={"server": name, "why": str(error)})
            seen.problem = str(error)
            seen.until = self._monotonic() + RETRY_S
        else:
            seen.problem = ""
            seen.until = self._monotonic() + FRESH_S

    def _register(self, approvals: Mapping[str, Approval]) -> None:
        """Make the registry hold just the tools that are approved as they are, of servers that answer."""
        wanted = {
            tool.full_name: tool
            for tool in self._offered()
            if not self._seen[tool.server].problem and state(tool, approvals.get(tool.full_name)) == "approved"
        }
        for name, registered in list(self._registered.items()):
            if name not in wanted or approvals[name].fingerprint != registered:
                self._drop(name)
        for name in wanted.keys() - self._registered.keys():
            self._add(wanted[name], approvals[name].fingerprint)

    def _add(self, tool: OfferedTool, approved: bytes) -> None:
        server = self._servers[tool.server]
        execute = partial(self._execute, server, tool, approved)
        try:
            self._registry.register(
                Tool(tool.full_name, tool.description, tool.input_schema, execute, server.answer_seconds)
            )
        except InvalidInput as error:  # somebody registered a tool of that name: theirs stays
            _LOG.warning("A tool of an MCP server cannot be registered", extra={"why": str(error)})
        else:
            self._registered[tool.full_name] = approved

    def _drop(self, name: str) -> None:
        self._registered.pop(name, None)
        self._registry.unregister(name)

    async def _execute(
        self, server: ToolServer, tool: OfferedTool, approved: bytes, arguments: Mapping[str, Any]
    ) -> Any:
        """The tool as it was approved; one that is another by now is out of the registry at once."""
        try:
            return await server.call(tool.name, arguments, approved)
        except (ToolChanged, ToolServerFailed) as error:
            self._seen[tool.server].until = 0.0
            if isinstance(error, ToolChanged):
                self._drop(tool.full_name)
            raise

    async def _find(self, name: str) -> OfferedTool:
        """The tool as its server describes it now."""
        server = name.partition(".")[0]
        if server not in self._servers:
            raise _unknown(f"There is no tool {name[:130]!r} of an MCP server.")
        await self._asked([server], float("inf"))
        if self._seen[server].problem:
            raise ToolServerFailed(self._seen[server].problem)
        for tool in self._seen[server].tools:
            if tool.full_name == name:
                return tool
        raise _unknown(f"The MCP server {server!r} does not offer a tool {name[:130]!r}.")

    def _offered(self) -> list[OfferedTool]:
        return [tool for seen in self._seen.values() for tool in seen.tools]

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
        known = self._seen.get(server)
        reason = "its server does not offer it any more." if known else f"there is no MCP server {server!r} any more."
        if known and (known.problem or self._busy(server)):
            reason = "its server does not answer now."
        return ToolStatus(
            approval.tool, server, "", {}, "gone", False, "", reason, approval.approved_by, approval.approved_at
        )

    async def _changed(self, caller: Caller, action: str, name: str, details: Mapping[str, Any]) -> None:
        scope = scope_rows(caller.access)
        await self._record(caller.name, action, scope=scope, subjects=[name], decision="done", details=details)


def _unknown(what: str) -> NotFound:
    return NotFound(f"{what} `dtrag tools list` lists what there is.")
