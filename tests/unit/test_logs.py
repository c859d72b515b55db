"""Log lines: their shape, and what never gets into them."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from dtrag import logs
from dtrag.errors import InvalidInput
from dtrag.settings import address_without_credentials

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """Log lines at INFO and above, parsed; the root logger is put back afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    logs.configure("info")

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    yield read
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_is_one_json_object(lines: Lines) -> None:
    logging.getLogger("dtrag.x").info("two\nlines %s", "휴학", extra={"route": "/search", "ms": 1.5})
    (line,) = lines()
    assert line.pop("ts").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "dtrag.x",
        "message": "two\nlines 휴학",
        "route": "/search",
        "ms": 1.5,
    }


def test_levels(lines: Lines) -> None:
    logging.getLogger("dtrag.x").debug("no")
    logs.configure("ERROR")
    logging.getLogger("dtrag.x").warning("no")
    logging.getLogger("dtrag.x").error("yes")
    assert [line["message"] for line in lines()] == ["yes"]
    with pytest.raises(InvalidInput, match="DEBUG, INFO"):
        logs.configure("loud")


def test_a_terminal_gets_short_lines_for_people(lines: Lines, capsys: pytest.CaptureFixture[str]) -> None:
    with patch.object(sys.stderr, "isatty", return_value=True):
        logs.configure("INFO")
    try:
        raise ValueError("a sentence of a document")
    except ValueError:
        logging.getLogger("dtrag.x").warning("two\nlines\x1b[2J", extra={"ms": 1.5}, exc_info=True)
    assert capsys.readouterr().err == "dtrag: warning: two lines [2J (ms=1.5, ValueError)\n"
    logs.configure("INFO", "json")
    logging.getLogger("dtrag.x").info("x")
    assert lines()[0]["message"] == "x"
    logs.configure("INFO", "TEXT")
    logging.getLogger("dtrag.x").info("x")
    assert capsys.readouterr().err == "dtrag: info: x\n"
    with pytest.raises(InvalidInput, match="auto, json, text"):
        logs.configure("INFO", "xml")


def test_the_request_id_is_on_every_line(lines: Lines) -> None:
    token = logs.request_id.set("r-1")
    logging.getLogger("dtrag.x").info("inside")
    logs.request_id.reset(token)
    logging.getLogger("dtrag.x").info("outside")
    inside, outside = lines()
    assert inside["request_id"] == "r-1"
    assert "request_id" not in outside


def test_an_exception_is_its_class_and_its_stack(lines: Lines) -> None:
    try:
        raise ValueError("a sentence of a document")
    except ValueError:
        logging.getLogger("dtrag.x").exception("it failed")
    (line,) = lines()
    assert line["exception"] == "ValueError"
    assert "test_an_exception_is_its_class_and_its_stack" in line["stack"][-1]
    assert "sentence of a document" not in json.dumps(line)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://rag:hunter2@db.example/rag",
        "could not connect to postgresql://rag:hunter2@db.example:5432/rag?x=1",
        "postgresql://:hunter2@db.example/rag",
        "host=db password=hunter2 user=rag",
        "host=db password='hunter2' user=rag",
        '{"password": "hunter2"}',
        "Authorization: Bearer hunter2",
        "OPENAI_API_KEY=hunter2",
        "api-key: hunter2",
        "token=hunter2&x=1",
        "client_secret = hunter2",
        "https://hunter2@proxy.example/v1",
        "https://x.example/v1?key=hunter2",
        "https://x.example/v1?a=1&X-Amz-Signature=hunter2&b=2",
        "https://x.example/v1?key=A@hunter2",
        "https://user:hun/hunter2@host/v1",
        "https://user:h@hunter2@host/v1",
    ],
)
def test_secrets_are_unreadable(lines: Lines, text: str) -> None:
    logging.getLogger("dtrag.x").warning("%s", text, extra={"address": text})
    (line,) = lines()
    assert "hunter2" not in json.dumps(line)
    assert "***" in line["message"]
    assert "***" in line["address"]


@pytest.mark.parametrize("text", ["the tokenizer has 12 tokens", "http://127.0.0.1:8001 is open", "route /search: 200"])
def test_ordinary_words_stay(text: str) -> None:
    assert logs.redact(text) == text


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:8001/v1", "http://127.0.0.1:8001/v1"),
        ("https://sk-live-TOKEN@proxy.example/v1", "https://***@proxy.example/v1"),
        ("https://x.example/v1?key=AIzaSECRET#SECRET", "https://x.example/v1?***"),
        ("https://user:pa/ss@host/v1", "https://***@host/v1"),
        ("user:p@ss@host/v1", "***@host/v1"),
        ("https://user:pa?ss@host/v1", "https://***"),
        ("https://user:p://ss@host/v1", "***@host/v1"),
    ],
)
def test_addresses_are_shown_without_credentials(address: str, shown: str) -> None:
    assert address_without_credentials(address) == shown
