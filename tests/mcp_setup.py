"""What tests of MCP servers share: a server with its behaviour in a file, over pipes or over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dtrag.adapters.mcp.config import ServerConfig

SCRIPT = Path(__file__).with_name("mcp_server.py")
PATIENT_S = 90.0
"""For servers that are to start: the machine may have much else to do."""
ADD = {"first": 2, "second": 40}


class Behaviour:
    """What a server does: `set(call="hang")` takes effect with its next request."""

    def __init__(self, folder: Path, name: str = "sums", **now: Any) -> None:
        self.name = name
        self.path = folder / f"{name}.json"
        self.log = folder / f"{name}.log"
        self.set(**now)

    def set(self, **now: Any) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"log": str(self.log), **now}), "utf-8")
        new.rename(self.path)

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(SCRIPT), str(self.path)]

    def config(self, **values: Any) -> ServerConfig:
        given: dict[str, Any] = {"name": self.name, "command": tuple(self.command), "start_seconds": PATIENT_S}
        return ServerConfig(**(given | values))

    def table(self, **values: Any) -> str:
        """The server as the settings file has it."""
        lines = {"command": self.command, "start_seconds": PATIENT_S} | values
        return f"[servers.{self.name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())

    def calls(self) -> list[list[Any]]:
        """What it was asked: process id, tool, arguments."""
        text = self.log.read_text("utf-8") if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


class Web:
    """A server over HTTP on the loopback address."""

    def __init__(self, behaviour: Behaviour) -> None:
        port_file = behaviour.path.with_suffix(".port")
        self.process = subprocess.Popen([*behaviour.command, str(port_file)])
        until = time.monotonic() + PATIENT_S
        while not port_file.exists():
            assert self.process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        self.port = int(port_file.read_text("utf-8"))
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def alive(pid: int) -> bool:
    """Whether there is a process of that number that is not just waiting to be collected."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
