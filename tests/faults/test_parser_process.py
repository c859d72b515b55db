"""The parser process when it hangs, dies, is interrupted, or when nobody reads: the next file is read all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dtrag.adapters.parsers import process as parser_process
from dtrag.adapters.parsers.process import ChildDied, ParserProcess, ParserUnavailable
from dtrag.errors import ParseFailed
from dtrag.ports import Parser

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="looks into /proc")


@pytest.fixture
async def parser() -> AsyncIterator[ParserProcess]:
    made = ParserProcess(memory_mb=256, seconds=30, max_file_mb=64)
    yield made
    await made.close()


async def texts(parser: Parser, path: Path) -> list[str]:
    return [document.text async for document in parser.parse(path, path.name)]


async def works(parser: ParserProcess, folder: Path) -> None:
    path = folder / "good.txt"
    path.write_text("a good file")
    assert await texts(parser, path) == ["a good file"]


def slow_file(folder: Path) -> Path:
    """Markdown that keeps its parser busy for minutes: every open bracket is looked up to the end again."""
    path = folder / "slow.md"
    path.write_bytes(b"[" * 3_000_000)
    return path


def long_file(folder: Path) -> Path:
    path = folder / "long.jsonl"
    path.write_bytes(b"".join(b'{"text": "%s"}\n' % (b"word " * 200) for _ in range(30_000)))
    return path


def gone(pid: int) -> bool:
    """Neither running nor a zombie."""
    return not Path(f"/proc/{pid}").exists()


async def busy(parser: ParserProcess) -> int:
    """The pid of the child, once it has begun to work."""
    while parser.pid is None or _ticks(parser.pid) < 30:  # noqa: ASYNC110 - the kernel sends no event for this
        await asyncio.sleep(0.02)
    return parser.pid


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


async def test_one_child_serves_many_files_and_close_ends_it(parser: ParserProcess, tmp_path: Path) -> None:
    assert isinstance(parser.knows("a.pdf"), bool)
    await works(parser, tmp_path)
    first = parser.pid
    await works(parser, tmp_path)
    assert first is not None
    assert parser.pid == first
    await parser.close()
    assert gone(first)
    await works(parser, tmp_path)
    assert parser.pid != first


async def test_a_child_is_replaced_after_enough_files(
    parser: ParserProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_process, "FILES_PER_CHILD", 2)
    pids = []
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x"}\n')
    for _ in range(4):
        pids.extend([parser.pid async for _document in parser.parse(path, path.name)])
    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_a_silent_child_is_killed(tmp_path: Path) -> None:
    parser = ParserProcess(seconds=1.5)
    slow = slow_file(tmp_path)
    task = asyncio.create_task(texts(parser, slow))
    pid = await busy(parser)
    with pytest.raises(ParseFailed, match=r"longer than 1\.5 s"):
        await task
    assert gone(pid)
    await works(parser, tmp_path)
    await parser.close()


async def test_cancellation_kills_the_child(parser: ParserProcess, tmp_path: Path) -> None:
    task = asyncio.create_task(texts(parser, slow_file(tmp_path)))
    pid = await busy(parser)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(pid)
    assert parser.pid is None
    await works(parser, tmp_path)


async def test_leaving_early_kills_the_child(parser: ParserProcess, tmp_path: Path) -> None:
    documents = parser.parse(long_file(tmp_path), "long.jsonl")
    await anext(documents)
    pid = parser.pid
    assert pid is not None
    await documents.aclose()
    assert gone(pid)
    await works(parser, tmp_path)


async def test_the_child_waits_while_its_output_is_not_read(parser: ParserProcess, tmp_path: Path) -> None:
    path = long_file(tmp_path)
    documents = parser.parse(path, path.name)
    await anext(documents)
    seen = -1
    while seen != (now := _bytes_read(parser)):
        seen = now
        await asyncio.sleep(0.3)
    assert seen < 20 << 20 < path.stat().st_size
    rest = [document.part async for document in documents]
    assert rest[-1] == "line-30000"
    assert len(rest) == 29_999


def environment_of(parser: ParserProcess) -> bytes:
    return Path(f"/proc/{parser.pid}/environ").read_bytes()


def _bytes_read(parser: ParserProcess) -> int:
    return int(Path(f"/proc/{parser.pid}/io").read_text().split()[1])


async def test_streamed_files_have_no_size_limit_and_others_do(tmp_path: Path) -> None:
    parser = ParserProcess(max_file_mb=1)
    big = tmp_path / "big.txt"
    big.write_bytes(b"x" * (2 << 20))
    with pytest.raises(ParseFailed, match="larger than 1 MiB"):
        await texts(parser, big)
    assert parser.pid is None
    lines = tmp_path / "big.jsonl"
    lines.write_bytes(b'{"text": "%s"}\n' % (b"x" * 1000) * 2_500)
    assert len(await texts(parser, lines)) == 2_500
    await parser.close()


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGSEGV, r"crashed \(signal 11\)"),
        (signal.SIGKILL, "more than 256 MiB of memory"),
        (signal.SIGXCPU, "processor time"),
    ],
)
async def test_a_child_that_dies_fails_one_file(
    number: signal.Signals, reason: str, parser: ParserProcess, tmp_path: Path
) -> None:
    task = asyncio.create_task(texts(parser, slow_file(tmp_path)))
    pid = await busy(parser)
    os.kill(pid, number)
    with pytest.raises(ParseFailed, match=reason):
        await task
    assert gone(pid)
    await works(parser, tmp_path)


def test_an_exit_code_is_reported() -> None:
    assert "exit code 3" in str(ChildDied(3).reason(1))


async def test_a_child_that_died_between_files_is_not_noticed(parser: ParserProcess, tmp_path: Path) -> None:
    await works(parser, tmp_path)
    pid = parser.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while parser.pid is not None:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
    await works(parser, tmp_path)
    assert gone(pid)


async def test_a_file_that_needs_too_much_memory(tmp_path: Path) -> None:
    parser = ParserProcess(memory_mb=64)
    path = tmp_path / "big.txt"
    path.write_bytes(b"word \n" * 15_000_000)
    with pytest.raises(ParseFailed, match="more than 64 MiB of memory"):
        await texts(parser, path)
    await works(parser, tmp_path)
    await parser.close()


async def test_close_fails_the_file_at_work(parser: ParserProcess, tmp_path: Path) -> None:
    task = asyncio.create_task(texts(parser, slow_file(tmp_path)))
    await busy(parser)
    await parser.close()
    with pytest.raises(ParseFailed, match="closed"):
        await task
    await works(parser, tmp_path)


async def test_close_between_two_documents(parser: ParserProcess, tmp_path: Path) -> None:
    documents = parser.parse(long_file(tmp_path), "long.jsonl")
    await anext(documents)
    await parser.close()
    with pytest.raises(ParseFailed, match="closed"):
        async for _document in documents:
            pass


async def test_callers_take_turns(parser: ParserProcess, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(str(number))
    found = await asyncio.gather(*[texts(parser, tmp_path / f"{number}.txt") for number in range(4)])
    assert found == [["0"], ["1"], ["2"], ["3"]]


async def test_the_environment_of_the_child_has_no_secrets(
    parser: ParserProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTRAG_DATABASE_URL", "postgresql://user:hunter2@host/db")
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    await works(parser, tmp_path)
    variables = environment_of(parser)
    assert b"PYTHONPATH" in variables
    assert b"hunter2" not in variables


async def test_a_process_that_does_not_start_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = ParserProcess()
    path = tmp_path / "a.txt"
    path.write_text("x")
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no such module' >&2\nexit 1\n")
    broken.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(broken))
        with pytest.raises(ParserUnavailable, match="no such module"):
            await texts(parser, path)
    assert await texts(parser, path) == ["x"]
    await parser.close()


@pytest.mark.parametrize("answer", [b'{"documents": [[1]]}', b'{"documents": 5}', b"no json", b"[]"])
async def test_an_answer_without_sense(answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = ParserProcess()
    path = tmp_path / "a.txt"
    path.write_text("x")
    ready = b'\\0\\0\\0\\016{"ready":true}'.decode()
    broken = tmp_path / "python"
    broken.write_text(
        f"#!/bin/sh\nprintf '{ready}\\0\\0\\0\\{len(answer):03o}'\nprintf '%s' '{answer.decode()}'\nexec sleep 60\n"
    )
    broken.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(broken))
        with pytest.raises(ParseFailed, match="no sense"):
            await texts(parser, path)
    await works(parser, tmp_path)
    await parser.close()


async def test_files_that_are_none(parser: ParserProcess, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.txt").mkdir()
    for name, reason in (
        ("pipe.txt", "regular"),
        ("folder.txt", "regular"),
        ("none.txt", "No such file"),
        ("a\0.txt", "null"),
    ):
        with pytest.raises(ParseFailed, match=reason):
            await texts(parser, tmp_path / name)
    assert parser.pid is None
