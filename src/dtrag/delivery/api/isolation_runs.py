"""The isolation test on demand: `dtrag audit isolation` in a process of its own, beside which the service answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from dtrag.errors import Conflict
from dtrag.settings import Settings, environment_of

State = Literal["never", "running", "finished", "failed"]
COMMAND = (sys.executable, "-c", "from dtrag.delivery.cli.main import run; run()")
LONGEST_S = 3_600.0
"""A run that takes longer is ended."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IsolationOptions:
    """What a run tests; the numbers are minimums. `live`: the index of the service, which is only read."""

    requests: int
    documents: int
    nodes: int
    live: bool

    def arguments(self) -> list[str]:
        """The options of the command."""
        numbers = {"--requests": self.requests, "--documents": self.documents, "--nodes": self.nodes}
        return [*(part for name, number in numbers.items() for part in (name, str(number))), *["--live"] * self.live]


@dataclass(frozen=True, slots=True)
class IsolationRun:
    """The last run of this service. `report` is that of `dtrag audit isolation --json`; `problem` why there is none."""

    state: State = "never"
    started_at: datetime | None = None
    finished_at: datetime | None = None
    report: dict[str, Any] | None = None
    problem: str = ""


class IsolationRuns:
    """Starts runs, one at a time. They end with the service."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._task: asyncio.Task[None] | None = None
        self.last = IsolationRun()

    def start(self, settings: Settings, options: IsolationOptions) -> IsolationRun:
        """Start a run. Raises `Conflict` while one is running."""
        if self.last.state == "running":
            raise Conflict("The isolation test is running. Read its report with GET /isolation when it is done.")
        started_at = datetime.now(UTC)
        self.last = IsolationRun("running", started_at)
        self._task = asyncio.create_task(self._run(settings, options, started_at))
        return self.last

    async def close(self) -> None:
        """End the run."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, settings: Settings, options: IsolationOptions, started_at: datetime) -> None:
        report, problem = None, ""
        try:
            printed = await self._output(settings, options)
            read = json.loads(printed)
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
        self.last = IsolationRun(state, started_at, datetime.now(UTC), report, problem)

    async def _output(self, settings: Settings, options: IsolationOptions) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *("audit", "isolation", "--json"),
            *options.arguments(),
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
