"""Documents handed to the tool are read by the parsers of ingestion, in their own process."""

from __future__ import annotations

import asyncio
import base64
import os
import tempfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import pytest
import pytest_asyncio

from dtrag.adapters.parsers.process import ParserProcess
from dtrag.tools import ToolExecutionResult, ToolRegistry, execute_tool
from dtrag.tools.builtin import builtin_tools


@pytest_asyncio.fixture(scope="module")
async def parser() -> AsyncIterator[ParserProcess]:
    made = ParserProcess(memory_mb=512, seconds=20)
    yield made
    await made.close()


@pytest.fixture
def registry(parser: ParserProcess) -> ToolRegistry:
    made = ToolRegistry()
    for tool in builtin_tools(parser=parser):
        made.register(tool)
    return made


async def parse(registry: ToolRegistry, seconds: float = 30.0, **given: Any) -> ToolExecutionResult:
    return await execute_tool("doc_parser", given, seconds, registry=registry)


async def test_text_is_read(registry: ToolRegistry) -> None:
    done = await parse(registry, content="# 휴학\n\n휴학은 **두 학기**까지.", format="md")
    assert done.success
    assert done.result["truncated"] is False
    assert done.result["documents"][0]["title"] == "휴학"
    assert "두 학기" in done.result["documents"][0]["text"]


async def test_a_file_in_base64_is_read(registry: ToolRegistry) -> None:
    written, data = docx.Document(), BytesIO()
    written.add_paragraph("등록금은 학기마다 낸다.")
    written.save(data)
    content = base64.encodebytes(data.getvalue()).decode()
    done = await parse(registry, content=content, format="docx", encoding="base64")
    assert done.result["documents"][0]["text"].strip() == "등록금은 학기마다 낸다."


async def test_long_documents_are_truncated(registry: ToolRegistry) -> None:
    done = await parse(registry, content="가나다라 " * 20_000)
    assert done.result["truncated"] is True
    assert len(done.result["documents"][0]["text"]) == 50_000
    rows = "\n".join(f'{{"id": "{n}", "text": "row {n} {"x" * 30_000}"}}' for n in range(4))
    several = await parse(registry, content=rows, format="jsonl")
    assert [len(row["text"]) < 30_000 for row in several.result["documents"]] == [False, True]
    assert several.result["truncated"] is True


async def test_the_number_of_documents_is_limited(registry: ToolRegistry) -> None:
    rows = "\n".join(f'{{"id": "{n}", "text": "row {n}"}}' for n in range(150))
    done = await parse(registry, content=rows, format="jsonl")
    assert (len(done.result["documents"]), done.result["truncated"]) == (100, True)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"content": "x", "format": "exe"}, "Input validation failed: 'exe' is not one of"),
        ({"content": "x", "path": "/etc/passwd"}, "Input validation failed: Additional properties"),
        ({}, "Input validation failed: 'content' is a required property"),
        ({"content": "!!", "encoding": "base64"}, "Execution error: content is not base64"),
        ({"content": "학칙", "encoding": "base64"}, "Execution error: content is not base64"),
        ({"content": "bm8gcGRm", "format": "pdf", "encoding": "base64"}, "Execution error: "),
        ({"content": "   "}, "Execution error: no text in it"),
    ],
)
async def test_unreadable_content_is_reported(registry: ToolRegistry, given: dict[str, Any], error: str) -> None:
    done = await parse(registry, **given)
    assert not done.success
    assert str(done.error).startswith(error)


async def test_nothing_stays_behind_when_the_time_is_over(
    registry: ToolRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = "\n".join(f'{{"id": "{n}", "text": "row {n} {"word " * 900}"}}' for n in range(1_600))
    assert (await parse(registry, 0.0001, content=rows, format="jsonl")).error == "Tool execution timeout (0.0001s)"
    for seconds in (0.0001, 0.002, 0.02, 0.1):  # at some of them there is a file, at some a child that reads it
        await parse(registry, seconds, content=rows, format="jsonl")
        for _ in range(500):  # a thread that writes is let end first
            if not os.listdir(tmp_path):  # noqa: PTH208 - a look at a folder, in a test
                break
            await asyncio.sleep(0.01)
        assert os.listdir(tmp_path) == []  # noqa: PTH208
    assert (await parse(registry, content="still there")).success
