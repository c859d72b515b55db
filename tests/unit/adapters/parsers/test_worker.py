"""The child's side of the parser process, in this process: batches, the seam, the frames; and what it gives up."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pytest
from lxml import etree
from pypdf.errors import LimitReachedError, PdfReadError

from dtrag.adapters.parsers import ocr, text, wire, worker
from dtrag.adapters.parsers.formats import format_of
from dtrag.adapters.parsers.process import environment
from dtrag.core.documents import Block, ParsedDocument

DOCUMENT = ParsedDocument(
    "제목",
    "one\n\ntwo",
    "text/plain",
    (Block(0, 3, "heading", 1, "H"), Block(5, 8)),
    "p",
    ("AI", "ML"),
    {"a": 1, "b": None},
)


def frames(data: bytes) -> Iterator[dict[str, Any]]:
    stream = io.BytesIO(data)
    while header := stream.read(wire.LENGTH.size):
        yield wire.unpack(stream.read(wire.LENGTH.unpack(header)[0]))


def served(
    tmp_path: Path, name: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[dict[str, Any]], bool]:
    monkeypatch.setattr(worker, "allow_cpu", lambda seconds: None)
    path = tmp_path / "input"
    path.write_bytes(data)
    pipe = io.BytesIO()
    for name_of_state in ("_languages", "page_done"):  # they are of a process of its own, whose time is limited
        monkeypatch.setattr(ocr, name_of_state, getattr(ocr, name_of_state))
    usable = worker.serve({"path": str(path), "name": name, "cpu_seconds": 1}, worker._Replies(pipe), 64)
    return list(frames(pipe.getvalue())), usable


def test_a_document_can_be_sent_between_processes() -> None:
    [message] = frames(wire.pack({"documents": [wire.to_row(DOCUMENT)]}))
    assert wire.from_row(message["documents"][0]) == DOCUMENT
    with pytest.raises(ValueError, match="object"):
        wire.unpack(b"[]")


def test_small_documents_travel_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BATCH_SECONDS", 1e9)
    monkeypatch.setattr(worker, "BATCH_CHARACTERS", 100)
    data = b"".join(json.dumps({"text": "x" * 30}).encode() + b"\n" for _ in range(5))
    messages, usable = served(tmp_path, "a.jsonl", data, monkeypatch)
    assert usable
    assert [len(message.get("documents", ())) for message in messages] == [2, 2, 1, 0]
    assert messages[-1] == {"done": True}


def test_good_documents_come_before_the_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages, usable = served(tmp_path, "a.jsonl", b'{"text": "good"}\nbad\n', monkeypatch)
    assert usable
    assert len(messages[0]["documents"]) == 1
    assert (messages[1]["failed"]["text"], messages[1]["spent"]) == ("1 of 2 lines: line 2: not JSON", False)
    assert messages[1]["failed"]["values"] == {"failed": "1", "total": "2", "lines": "line 2: not JSON"}


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
def test_a_file_without_documents_has_no_text(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages, usable = served(tmp_path, name, b"\n\n", monkeypatch)
    assert usable
    assert messages == [{"failed": {"code": "no_text", "text": "no text in it", "values": {}}, "spent": False}]


def test_a_document_longer_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_TEXT", 10)
    messages, _ = served(tmp_path, "a.txt", b"more than ten characters", monkeypatch)
    assert "longer than 10 characters" in messages[0]["failed"]["text"]


def test_the_worker_turns_any_exception_into_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path, name: str) -> Iterator[ParsedDocument]:
        yield DOCUMENT
        raise IndexError("secret words of the document")

    monkeypatch.setattr(text, "parse", broken)
    messages, usable = served(tmp_path, "a.txt", b"x", monkeypatch)
    assert not usable
    assert len(messages[0]["documents"]) == 1
    assert (messages[1]["failed"]["text"], messages[1]["spent"]) == (
        "it is damaged, or not a plain text file (IndexError)",
        True,
    )
    assert messages[1]["failed"]["code"] == "file_damaged_or_other"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "needs more than 64 MiB"),
        (etree.LxmlError("Memory allocation failed"), "needs more than 64 MiB"),
        (RecursionError(), "nested too deeply"),
        (PdfReadError("x"), "the PDF is damaged (PdfReadError)"),
        (LimitReachedError("x"), "unpacks to more"),
        (zlib.error("x"), "the archive is damaged"),
        (BadZipFile("x"), "the archive is damaged"),
        (etree.LxmlError("x"), "its markup is damaged"),
        (PermissionError(13, "Permission denied"), "cannot be read: Permission denied"),
        (KeyError("x"), "not a PDF file (KeyError)"),
    ],
)
def test_reasons(error: Exception, reason: str) -> None:
    assert reason in str(worker.reason_for(error, format_of("a.pdf"), 64))


def run(script: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-B", "-c", script],
        env=environment(),
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_output_of_libraries_does_not_reach_the_replies(tmp_path: Path) -> None:
    script = """
import os, sys
from dtrag.adapters.parsers import text, worker
quiet = text.parse
def noisy(path, name):
    print("noise"); sys.stdout.flush(); os.write(1, b"noise"); os.write(2, b"x" * 100)
    yield from quiet(path, name)
text.parse = noisy
sys.argv = ["worker", "256", "auto"]
sys.exit(worker.main())
"""
    path = tmp_path / "a.txt"
    path.write_text("hello")
    done = run(script, wire.pack({"path": str(path), "name": "a.txt", "cpu_seconds": 5}))
    ready, documents, end = frames(done.stdout)
    assert (ready, end, done.returncode) == ({"ready": True}, {"done": True}, 0)
    assert wire.from_row(documents["documents"][0]).text == "hello"
    assert b"noisenoise" in done.stderr.replace(b"\n", b"")


FORBIDDEN = {
    "connect": "import socket; socket.socket().connect(('127.0.0.1', 9))",
    "bind": "import socket; socket.socket().bind(('127.0.0.1', 0))",
    "resolve": "import socket; socket.getaddrinfo('localhost', 80)",
    "url": "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')",
    "program": "import subprocess; subprocess.run(['true'])",
    "shell": "import os; os.system('true')",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "fork": "import os; os.fork()",
    "write": "open('PATH', 'w')",
    "append": "open('PATH', 'ab')",
    "create": "import os; os.open('PATH', os.O_CREAT | os.O_WRONLY)",
    "remove": "import os; os.remove('PATH')",
    "kill": "import os; os.kill(os.getppid(), 0)",
    "pickle": "import pickle; pickle.loads(b'cos\\nsystem\\n.')",
}


@pytest.mark.parametrize("deed", FORBIDDEN.values(), ids=FORBIDDEN)
def test_operations_that_the_child_may_not_do(deed: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    attempt = f"""
try:
    {deed.replace("PATH", str(kept))}
except PermissionError as error:
    print("refused:", error)
else:
    print("done")
"""
    refused = run("from dtrag.adapters.parsers.worker import restrict\nrestrict(512)\n" + attempt)
    assert refused.stdout.startswith(b"refused: the parser process may not"), refused.stderr
    assert kept.read_text() == "kept"


def test_reading_and_importing_stay_possible(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("readable")
    script = f"""
from dtrag.adapters.parsers.worker import restrict
restrict(512)
import docx, pypdf, markdown_it, lxml.html, resource
print(open({str(tmp_path / "a")!r}).read())
print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_FSIZE))
"""
    done = run(script)
    assert done.stdout.decode().splitlines() == ["readable", "(0, 0) (0, 0)"], done.stderr


def test_memory_is_limited() -> None:
    done = run("from dtrag.adapters.parsers.worker import restrict\nrestrict(64)\nx = bytearray(200 << 20)")
    assert b"MemoryError" in done.stderr


def test_processor_time_is_limited() -> None:
    done = run("from dtrag.adapters.parsers.worker import allow_cpu\nallow_cpu(0)\nwhile True: pass")
    assert done.returncode == -signal.SIGXCPU
