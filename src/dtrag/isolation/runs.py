"""The isolation test on demand: `dtrag audit isolation` in a process of its own, beside which the service answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from dtrag.core.response import response
from dtrag.counts import CURRENT, Counts
from dtrag.errors import Conflict
from dtrag.settings import Settings, environment_of

State = Literal["never", "running", "finished", "failed"]
COMMAND = (sys.executable, "-c", "from dtrag.delivery.cli.main import run; run()")
LONGEST_S = 3_600.0
"""A run that takes longer is ended."""
LONGEST_REPORT = 1 << 18
"""Bytes of a report, compressed to a tenth."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IsolationRun:
    """The last run of the isolation test in this service."""

    __pydantic_config__ = response("IsolationShape")

    state: State = "never"
    """never, running, finished or failed."""
    started_at: str | None = None
    """When it was started, ISO 8601 in UTC; null for never."""
    finished_at: str | None = None
    """When it ended."""
    outcome: Literal["isolated", "leaks"] | None = field(init=False, default=None)
    """isolated: no response differed, nothing from outside was returned; null without a report."""
    report: dict[str, Any] | None = None
    """The report of `dtrag audit isolation --json`."""
    problem: str = ""
    """Why there is no report; empty otherwise."""

    def __post_init__(self) -> None:
        if self.report is not None:
            leaks = self.report["leaks"] or self.report["twins"]["differences"]
            object.__setattr__(self, "outcome", "leaks" if leaks else "isolated")


class IsolationRuns:
    """Starts runs, one at a time among the processes that share `counts`. They end with their process."""

    def __init__(self, command: Sequence[str] = COMMAND, *, counts: Counts | None = None) -> None:
        self._command = command
        self._task: asyncio.Task[None] | None = None
        counts = counts or Counts()
        self._lock = counts.lock
        self._running = counts.row(f"{CURRENT}isolation")
        self._stored = counts.common("isolation", width=LONGEST_REPORT // 8).cast("B")

    @property
    def last(self) -> IsolationRun:
        """The last run in any of the processes."""
        with self._lock:
            size = int.from_bytes(self._stored[:8])
            stored = bytes(self._stored[8 : 8 + size])
        run = IsolationRun(**json.loads(zlib.decompress(stored))) if stored else IsolationRun()
        if run.state == "running" and not self._running.total():
            return replace(run, state="failed", problem="The isolation test ended with its process. Start it again.")
        return run

    @last.setter
    def last(self, run: IsolationRun) -> None:
        values = {declared.name: getattr(run, declared.name) for declared in fields(run) if declared.init}
        stored = zlib.compress(json.dumps(values).encode())
        if len(stored) > LONGEST_REPORT - 8:
            self.last = replace(run, state="failed", report=None, problem="The report is too long: see the command.")
            return
        self._running.own[0] = 1.0  # before the run is there: other processes take one without a process for failed
        with self._lock:
            self._stored[:8] = len(stored).to_bytes(8)
            self._stored[8 : 8 + len(stored)] = stored
        self._running.own[0] = run.state == "running"

    def start(self, settings: Settings, options: Mapping[str, int | bool]) -> IsolationRun:
        """Start a run with these options of the command. Raises `Conflict` while one is running."""
        if self.last.state == "running":
            raise Conflict("The isolation test is running. Read its report with GET /isolation when it is done.")
        self.last = IsolationRun("running", datetime.now(UTC).isoformat())
        self._task = asyncio.create_task(self._run(settings, arguments_of(options)))
        return self.last

    async def close(self) -> None:
        """End the run."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._running.own[0] = 0.0

    async def _run(self, settings: Settings, arguments: Sequence[str]) -> None:
        report, problem = None, ""
        try:
            read = json.loads(await self._output(settings, arguments))
            if isinstance(read, dict) and "leaks" in read:
                report = read
            else:
                problem = str(read["error"]["message"])
        except TimeoutError:
            problem = f"The isolation test took longer than {LONGEST_S / 60:.0f} minutes. Test with fewer requests."
        except (OSError, ValueError, KeyError, TypeError) as error:
            _LOG.warning("the isolation test failed", exc_info=error)
            problem = "The isolation test ended without a report; `dtrag audit isolation` shows why."
        state: State = "failed" if report is None else "finished"
        self.last = IsolationRun(state, self.last.started_at, datetime.now(UTC).isoformat(), report, problem)

    async def _output(self, settings: Settings, arguments: Sequence[str]) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *("audit", "isolation", "--json"),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment_of(settings),
        )
        try:
            async with asyncio.timeout(LONGEST_S):
                printed, _ = await process.communicate()
                return printed
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()


def arguments_of(options: Mapping[str, int | bool]) -> list[str]:
    """The options as arguments of the command: a flag when it is True, a number with its value."""
    arguments = []
    for name, value in options.items():
        arguments += ([f"--{name}"] if value else []) if isinstance(value, bool) else [f"--{name}", str(value)]
    return arguments
