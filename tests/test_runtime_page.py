"""docs/explanation/runtime.md names every module that starts a thread, a task that outlives its call, or a process."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "dtrag"
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "runtime.md"
STARTS = re.compile(
    r"threading\.Thread\(|DaemonThreads\(|ThreadPoolExecutor\(|(?<!group\.)(?<!tasks\.)create_task\(|create_subprocess_exec\("
    r"|subprocess\.(?:run|Popen)\("
)
ELSEWHERE = {
    "concurrency.py": "defines the named pools",
    "delivery/cli/reading.py": "starts the embedded server while a command runs",
}


def test_everything_that_runs_beside_its_caller_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    modules = {
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*.py")
        if STARTS.search(file.read_text("utf-8")) and not file.is_relative_to(SOURCE / "testing")
    }
    assert len(modules) > 25
    assert [name for name in sorted(modules - ELSEWHERE.keys()) if f"`{name}" not in page] == []
    assert ELSEWHERE.keys() <= modules
