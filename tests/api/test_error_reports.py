"""Reports of unexpected errors: what arrives at a local server that plays the ingest endpoint, and what must not."""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dtrag.adapters import error_reports
from dtrag.delivery.api.app import create_app
from dtrag.errors import InvalidInput, MissingExtra
from dtrag.settings import Settings
from tests.store import Databases

QUESTION = "How many sabbatical weeks does Wilhelmina Quartz have?"
DOCUMENT = "Wilhelmina Quartz has seventeen sabbatical weeks in Umbershire."
SECRETS = ("sabbatical", "Wilhelmina", "Quartz", "seventeen", "Umbershire", "weeks", "X-Secret", "hidden-header")


class Ingest:
    """An ingest endpoint of Sentry on loopback: bodies and headers of what was posted."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.heads: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.bodies.append(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                outer.heads.append(f"{self.path}\n{self.headers}")
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                """Not on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.dsn = f"http://publickey@127.0.0.1:{self._server.server_port}/7"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def events(self) -> list[dict[str, Any]]:
        """The events in the envelopes."""
        found = []
        for body in self.bodies:
            lines = [json.loads(line) for line in body.decode().splitlines() if line]
            found += [item for head, item in zip(lines[1::2], lines[2::2], strict=True) if head["type"] == "event"]
        return found

    def everything(self) -> str:
        return "\n".join([*self.heads, *(body.decode() for body in self.bodies)])


@pytest.fixture
def ingest() -> Iterator[Ingest]:
    server = Ingest()
    yield server
    server.close()


async def test_a_failing_question_is_reported_without_its_words(
    databases: Databases, ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither question, document, key nor header: not in the message, the cause, locals, arguments or the address."""
    (tmp_path / "leave.md").write_text(DOCUMENT, "utf-8")
    settings = databases.settings(sentry_dsn=ingest.dsn)
    api = create_app(settings)
    async with api.router.lifespan_context(api):
        app = api.state.service.app
        await app.ingest([tmp_path / "leave.md"])
        key = (await app.keys.create("reader", "admin")).secret
        headers = {"X-API-Key": key, "X-Secret": "hidden-header", "X-Request-ID": "Wilhelmina-Quartz"}

        passages = (await app.search(QUESTION))[0]
        assert "seventeen" in passages[0].text

        async def fail(question: str, *_: object, **__: object) -> None:
            logging.getLogger("dtrag.test").warning("breadcrumb about %s", question)
            try:
                text = passages[0].text
                raise ValueError(f"{question}: {text}")
            except ValueError as error:
                raise RuntimeError({"question": question, "key": key}) from error

        monkeypatch.setattr(app, "ask", fail)
        transport = httpx2.ASGITransport(api)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            address = "/ask?note=Umbershire"
            assert (await client.post(address, json={"question": QUESTION}, headers=headers)).status_code == 500
            plain = {"X-API-Key": key}
            failed = await client.post(address, json={"question": QUESTION}, headers=plain)
    first, second = ingest.events()
    kinds = [exception["type"] for exception in first["exception"]["values"]]
    assert kinds == ["ValueError", "RuntimeError"]
    frames = first["exception"]["values"][1]["stacktrace"]["frames"]
    assert frames[-1]["function"] == "fail" and frames[-1]["lineno"] > 0
    assert all(set(frame) <= {"filename", "function", "module", "lineno", "in_app"} for frame in frames)
    assert first["logger"] == "dtrag.access" and first["release"].startswith("dtrag@")
    assert "tags" not in first  # the caller chose that id
    assert second["tags"] == {"request_id": failed.headers["X-Request-ID"]}
    sent = ingest.everything()
    assert [word for word in (*SECRETS, key) if word.lower() in sent.lower()] == []
    assert str(Path.home()) not in sent


async def test_additions_of_the_sdk_are_dropped(ingest: Ingest) -> None:
    event: dict[str, Any] = {
        "event_id": "e",
        "message": "secret",
        "request": {"data": "secret", "query_string": "secret", "headers": {"X-API-Key": "secret"}, "url": "secret"},
        "breadcrumbs": {"values": [{"message": "secret"}]},
        "extra": {"sys.argv": ["secret"]},
        "server_name": "secret",
        "user": {"ip_address": "secret"},
        "contexts": {"trace": {"description": "secret"}},
        "modules": {"secret": "1"},
        "exception": {
            "values": [
                {
                    "type": "KeyError",
                    "value": "secret",
                    "mechanism": {"type": "logging", "data": {"x": "secret"}, "meta": "secret"},
                    "stacktrace": {
                        "frames": [
                            {
                                "function": "ask",
                                "vars": {"question": "secret"},
                                "context_line": "secret",
                                "pre_context": ["secret"],
                                "post_context": ["secret"],
                                "abs_path": "/home/secret/x.py",
                            }
                        ]
                    },
                }
            ]
        },
    }
    sent: Any = error_reports.without_text(event, {})  # type: ignore[arg-type]
    assert sent == {
        "event_id": "e",
        "exception": {
            "values": [
                {
                    "type": "KeyError",
                    "mechanism": {"type": "logging"},
                    "stacktrace": {"frames": [{"function": "ask"}]},
                }
            ]
        },
    }


async def test_errors_without_an_exception_and_warnings_are_not_reported(ingest: Ingest) -> None:
    async with error_reports.error_reports(ingest.dsn, "0"):
        logging.getLogger("dtrag.test").error("no exception")
        try:
            raise ValueError("secret")
        except ValueError as error:
            logging.getLogger("dtrag.test").warning("only a warning", exc_info=error)
    before = list(logging.getLogger().handlers)
    assert ingest.events() == []
    assert not [handler for handler in before if "Reporter" in type(handler).__name__]


async def test_without_the_extra_the_error_says_how_to_install_it(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_reports, "find_spec", lambda _: None)
    api = create_app(databases.settings(sentry_dsn="http://key@127.0.0.1:9/1"))
    with pytest.raises(MissingExtra, match=r"pip install 'dtrag\[sentry\]'"):
        async with api.router.lifespan_context(api):
            raise AssertionError("it must not open")


async def test_an_invalid_address_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SENTRY_DSN is not the address"):
        async with error_reports.error_reports("sentry.example/secret", "0"):
            raise AssertionError("it must not open")


def test_the_setting_is_read_under_both_names_and_is_secret() -> None:
    for name in ("SENTRY_DSN", "DTRAG_SENTRY_DSN"):
        settings = Settings.load(environ={name: "https://key@sentry.example/1"})
        assert settings.sentry_dsn == "https://key@sentry.example/1"
        (row,) = [row for row in settings.rows() if row["name"] == "sentry_dsn"]
        assert row["value"] == "(set)" and "sentry.example" not in repr(settings)


def test_without_an_address_the_sdk_is_not_imported() -> None:
    code = (
        "import asyncio, sys\n"
        "from dtrag.adapters.error_reports import error_reports\n"
        "from dtrag.delivery.api.app import create_app\n"
        "from dtrag.settings import Settings\n"
        "create_app(Settings.load(environ={}))\n"
        "async def run():\n"
        "    async with error_reports(None, '0'):\n"
        "        pass\n"
        "asyncio.run(run())\n"
        "sys.exit('sentry_sdk' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
