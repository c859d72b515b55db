"""The command line beside a running service: it asks through the socket in the data folder, or says why it does not."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import uvicorn

from dtrag.adapters.postgres.server import server
from dtrag.app import App
from dtrag.core.documents import Answer, SearchMetrics
from dtrag.core.response import plain
from dtrag.delivery import local_socket
from dtrag.delivery.api import http_server
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.connections import ConnectionLimits, Connections
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.owner_socket import owner_socket
from dtrag.delivery.cli import exit_codes, reading
from dtrag.delivery.cli.reading import Listing, OwnApp, RunningService, Source
from dtrag.errors import Overloaded
from dtrag.settings import Settings
from tests.integration.cli_process import Cli, Ran
from tests.store import Databases

BOOK = Path(__file__).parents[2] / "examples" / "hanbit-university" / "regulations.md"
QUESTION = "How many days of annual leave are there?"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder for sockets, whose path is short."""
    with tempfile.TemporaryDirectory(prefix="dtrag-s-") as path:
        yield Path(path)


@pytest.fixture
def settings(databases: Databases, folder: Path) -> Settings:
    return databases.settings()


@pytest.fixture
def cli(app: App) -> Cli:
    """Commands with the settings of the test's own database."""
    mine = app.settings
    return Cli(mine.data_dir, (("DTRAG_EMBEDDER", mine.embedder), ("DTRAG_DATABASE_NAME", mine.database_name)))


@asynccontextmanager
async def serving(app: App, settings: Settings | None = None) -> AsyncIterator[Service]:
    """The service of an open app, on the socket of its data folder."""
    api = create_app(settings or app.settings)
    service: Service = api.state.service
    service.opened = app
    config = uvicorn.Config(api, lifespan="off", log_config=None, ws="none")
    serving = http_server.HttpServer(config, Connections(ConnectionLimits()), lambda: None)
    with owner_socket(service) as serving.owner:
        running = asyncio.create_task(serving.serve([]))
        while not serving.started:  # noqa: ASYNC110 - it has no event for this
            await asyncio.sleep(0.01)
        try:
            yield service
        finally:
            serving.should_exit = serving.force_exit = True
            await running


async def call(cli: Cli, *arguments: str, **environment: str) -> Ran:
    """The command in a thread, while this loop plays the service."""
    return await asyncio.to_thread(cli.call, *arguments, **environment)


def never_alone() -> AbstractContextManager[Any]:
    """Fails the test when a command works in its own process."""
    return patch.object(reading, "run_async", side_effect=AssertionError("worked in its own process"))


@pytest.fixture
async def filled(app: App, tmp_path: Path) -> App:
    (tmp_path / "leave.md").write_text("# Leave\n\nThere are 26 days of annual leave in a calendar year.\n")
    await app.ingest([tmp_path / "leave.md"], "HR/Leave")
    return app


async def test_commands_use_the_service_and_print_the_same(filled: App, cli: Cli) -> None:
    alone = OwnApp(filled)
    answer = await alone.ask(QUESTION, {"taxonomy_paths": ["HR"]}, None)
    results, _ = await alone.search("leave", 5, {"explain": True})
    (listed_alone,) = (await alone.documents(Listing(100))).documents
    with never_alone():
        async with serving(filled):
            asked = await call(cli, "ask", *QUESTION.split(), "--category", "HR", "--json")
            searched = await call(cli, "search", "leave", "--explain", "--json")
            listed = await call(cli, "documents", "--json")
            shown = await call(cli, "documents", "show", listed_alone.document_id, "--json")
            absent = await call(cli, "documents", "show", "nonesuch", "--json")
            unknown = await call(cli, "ask", "leave", "--category", "HR/Leav")
    assert asked.json["text"] == answer.text
    assert "26 days" in asked.json["text"] and asked.err == ""
    assert [row["chunk_id"] for row in searched.json["results"]] == [row.chunk_id for row in results]
    assert searched.json["results"][0]["explanation"]["terms"] == ["leave"]
    assert listed.json["documents"] == [json.loads(json.dumps(dataclasses.asdict(listed_alone)))]
    assert "26 days" in shown.json["text"]
    assert (absent.code, absent.json["error"]["type"]) == (exit_codes.FAILURE, "NotFound")
    assert absent.err == (
        "dtrag: There is no document 'nonesuch' that you may see. `dtrag documents` lists what there is.\n"
    )
    assert "There is no category 'HR/Leav'. Nearest: HR/Leave." in unknown.err


async def test_the_audit_log_names_the_local_owner(filled: App, cli: Cli) -> None:
    with never_alone():
        async with serving(filled):
            await call(cli, "ask", QUESTION)
    (line,) = await filled.audit.newest(limit=1)
    assert (line.entry.actor, line.entry.action, line.entry.decision) == ("local", "POST /ask", "allowed")
    assert line.entry.scope is None and len(line.entry.subjects) == 2  # the document and the trace
    assert line.entry.details["local_socket"] is True
    assert QUESTION not in str(line)


async def test_the_socket_is_for_its_owner_only_and_goes_with_the_service(filled: App, cli: Cli) -> None:
    inside = filled.settings.data_dir / local_socket.FOLDER
    async with serving(filled):
        assert stat.S_IMODE(inside.stat().st_mode) == 0o700
        assert stat.S_IMODE((inside / local_socket.SOCKET).stat().st_mode) == 0o600
        async with serving(filled):  # a second service of the folder does not take it over
            pass
        with never_alone():
            assert (await call(cli, "documents")).code == 0
    assert not (inside / local_socket.SOCKET).exists()
    with closing(socket.socket(socket.AF_UNIX)) as killed:  # a killed service leaves its socket
        killed.bind(str(inside / local_socket.SOCKET))
    assert await asyncio.to_thread(refusal, filled.settings) == ""
    async with serving(filled):
        with never_alone():
            assert (await call(cli, "documents")).code == 0


def refusal(settings: Settings) -> str:
    """Why a command with these settings does not use the service."""
    with pytest.raises(reading.NoService) as refused, RunningService(settings):
        pass
    return str(refused.value)


async def test_commands_ignore_a_service_with_other_settings_or_versions_or_one_that_stops(
    filled: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = filled.settings
    async with serving(filled) as service:
        other = Settings.load(
            {}, data_dir=mine.data_dir, database_name=mine.database_name, embedder="none", morphemes="kiwi", port=1
        )
        assert await asyncio.to_thread(refusal, other) == "it has other settings (DTRAG_MORPHEMES)"
        with monkeypatch.context() as patched:
            patched.setattr(reading, "__version__", "9.9")
            assert (await asyncio.to_thread(refusal, mine)).startswith("it is dtrag ")
        service.stopping = True
        assert await asyncio.to_thread(refusal, mine) == "it is stopping"


async def test_direct_and_a_refusing_service_use_an_own_process_with_a_note(filled: App, cli: Cli) -> None:
    made = await OwnApp(filled).documents(Listing(100))

    def alone(work: Any) -> Any:
        work.close()
        return made

    with patch.object(reading, "run_async", side_effect=alone) as own:
        async with serving(filled):
            direct = await call(cli, "documents", "--direct")
            assert (own.call_count, direct.code) == (1, 0)
            assert "service" not in direct.err
            other = await call(cli, "documents", DTRAG_TRACES="errors")
    assert own.call_count == 2
    assert other.out == direct.out
    assert "The running service is not used: it has other settings (DTRAG_TRACES)." in other.err.splitlines()


REQUEST = b"%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


async def test_a_command_that_leaves_ends_its_work(filled: App, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(*_arguments: object, **_options: object) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    monkeypatch.setattr(App, "ask", slow)
    body = b'{"question": "How long?"}'
    async with serving(filled):
        with local_socket.socket_address(filled.settings.data_dir) as address:
            _, writer = await asyncio.open_unix_connection(address)
        writer.write(REQUEST % (b"POST /ask", len(body), body))
        await asyncio.wait_for(begun.wait(), 5)
        writer.close()
        await asyncio.wait_for(ended.wait(), 5)


async def test_the_socket_serves_the_whole_interface_to_the_owner_and_only_to_the_owner(
    filled: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where keys are required, the owner of the folder needs none; a process of another user is disconnected."""

    async def reply() -> bytes:
        with local_socket.socket_address(filled.settings.data_dir) as address:
            reader, writer = await asyncio.open_unix_connection(address)
        with closing(writer):
            writer.write(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") % (b"GET /keys", 0, b""))
            with suppress(ConnectionError):  # hung up with some of our bytes unread
                return await asyncio.wait_for(reader.read(), 5)
            return b""

    await filled.keys.create("someone", "reader")
    async with serving(filled):
        assert b'"someone"' in await reply()
        monkeypatch.setattr(http_server, "is_owner", lambda accepted: False)
        assert await reply() == b""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the way around long paths is /proc")
async def test_a_long_path_of_the_data_folder_is_handled(folder: Path, filled: App) -> None:
    deep = folder / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    same = Settings.load({}, data_dir=deep)
    async with serving(filled, same):
        assert await asyncio.to_thread(total, same) == 1


def total(settings: Settings) -> int:
    """The number of documents that the service has."""
    with RunningService(settings) as service:
        return reading._without_waiting(service.documents(Listing(1))).total


class SilentService:
    """A service that takes connections and answers nothing, or only the first request with `response`."""

    def __init__(self, data_dir: Path, response: bytes = b"") -> None:
        (data_dir / local_socket.FOLDER).mkdir(mode=0o700)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(data_dir / local_socket.FOLDER / local_socket.SOCKET))
        self._listener.listen()
        self._response = response
        self.requested = threading.Event()
        self.left = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._listener:
            connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as lines:
            while lines.readline().strip():
                pass
            connection.sendall(self._response)
            if lines.readline():
                self.requested.set()
            lines.read()
            self.left.set()


def test_a_service_that_does_not_respond_is_ignored(folder: Path) -> None:
    SilentService(folder)
    started = time.monotonic()
    assert refusal(Settings.load({}, data_dir=folder)) == "it did not respond within 0.3 s"
    assert time.monotonic() - started < 3 * reading.ANSWERS_WITHIN_S


def test_ctrl_c_while_the_service_works_is_one_line_and_code_130(folder: Path) -> None:
    service = SilentService(folder, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    process = Cli(folder).start("ask", "how", "long")
    assert service.requested.wait(30)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (exit_codes.INTERRUPTED, b"")
    assert err == b"dtrag: Interrupted; what was acknowledged is kept.\n"
    assert service.left.wait(5), "the service sees that nobody waits any more"


def test_ctrl_c_while_the_database_starts_leaves_nothing_running(folder: Path) -> None:
    process = Cli(folder / "data", (("DTRAG_EMBEDDER", "none"),)).start("ask", "how", "long")
    deadline = time.monotonic() + 60
    while not (folder / "data" / "start.lock").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (exit_codes.INTERRUPTED, b"")
    assert err == b"dtrag: Interrupted; what was acknowledged is kept.\n"
    assert server.status(folder / "data").pid is None


async def test_an_own_process_has_the_same_results_and_closes_its_resources(filled: App) -> None:
    with patch("dtrag.adapters.postgres.server.server.EmbeddedServer.open", wraps=server.EmbeddedServer.open) as opened:
        listing = await reading.in_this_process(filled.settings, lambda source: source.documents(Listing(100)))
    assert listing.total == 1
    assert opened.call_count == 2, "one attachment beside the imports, one of the app"


def test_the_way_through_the_service_loads_no_engine(folder: Path) -> None:
    code = (
        "import sys; from dtrag.delivery.cli.main import main; "
        "import dtrag.delivery.cli.reading, dtrag.delivery.cli.ask; main(['ask', '-h']); "
        "heavy = {'numpy', 'psycopg', 'fastapi', 'langgraph', 'onnxruntime', 'asyncio', 'lxml', 'dtrag.app'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_values_are_the_same_over_http(filled: App) -> None:
    options = {"explain": True, "explain_documents": ("x",)}

    async def values(source: Source) -> list[Any]:
        results, metrics = await source.search("leave", 5, options)
        answer = await source.ask(QUESTION, None, None)
        page = await source.documents(Listing(1, text="leave", content_types=["text/markdown"], sort="title"))
        document = await source.document(page.documents[0].document_id)
        return [results, metrics, answer, page, document, await source.own_entries(), sorted(await source.categories())]

    def through_service() -> list[Any]:
        with RunningService(filled.settings) as service:
            return reading._without_waiting(values(service))

    async with serving(filled):
        sent = await asyncio.to_thread(through_service)
    for there, here in zip(sent, await values(OwnApp(filled)), strict=True):
        assert type(there) is type(here)
        assert comparable(there) == comparable(here)
    assert sent[2].reason_statements[0].code


def comparable(value: Any) -> Any:
    """A value without times, ids of the run and what HTTP does not send."""
    if isinstance(value, SearchMetrics):
        times: dict[str, Any] = {field.name: 0.0 for field in dataclasses.fields(value) if field.name.endswith("_time")}
        return {**plain(value), **times, "cache_hit": False}
    if isinstance(value, Answer):
        return {**plain(value), "stages": {}, "trace_id": ""}
    return value


async def test_long_lists_come_in_pages(filled: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.md").write_text(f"# Title {number}\n\nText {number}.\n")
    await filled.ingest(tmp_path)
    monkeypatch.setattr(reading, "PAGE", 2)

    def through_service(listing: Listing) -> reading.Documents:
        with RunningService(filled.settings) as service:
            return reading._without_waiting(service.documents(listing))

    async with serving(filled):
        for listing in (Listing(4, 1), Listing(5), Listing(100), Listing(3, sort="title")):
            assert await asyncio.to_thread(through_service, listing) == await OwnApp(filled).documents(listing)


async def test_a_korean_answer_has_a_korean_reason(filled: App, cli: Cli) -> None:
    question = "휴학은 몇 학기까지 할 수 있나요?"
    async with serving(filled):
        with never_alone():
            through_service = await call(cli, "ask", question)
    alone = await call(cli, "ask", question, "--direct")
    for asked in (through_service, alone):
        assert asked.code == 0, asked.err
        reason = asked.out.rpartition("Confidence")[2].partition(").")[2].partition("Stages:")[0]
        assert "구절" in reason, asked.out
        assert not re.search(r"[a-z]{3}", reason), reason


async def test_an_unknown_category_is_named_with_the_nearest(filled: App) -> None:
    alone = OwnApp(filled)
    with pytest.raises(ValueError, match=r"There is no category 'HR/Leav'\. Nearest: HR/Leave"):
        await reading.check_categories(alone, ["HR/Leav"])
    with pytest.raises(ValueError, match=r"Nearest: HR/Leave\."):
        await reading.check_categories(alone, ["leave"])
    with pytest.raises(ValueError, match="dtrag taxonomy tree"):
        await reading.check_categories(alone, ["Zzz"])
    await reading.check_categories(alone, ["hr"])


async def test_searches_of_commands_are_admitted_like_those_of_requests(filled: App, cli: Cli) -> None:
    with never_alone(), patch.object(type(filled.run.admission), "search", side_effect=Overloaded(seconds=1)):
        async with serving(filled):
            refused = await call(cli, "search", "leave", "--json")
    assert (refused.code, refused.json["error"]["type"]) == (exit_codes.FAILURE, "Overloaded")


async def test_regulations_come_from_the_service_and_are_in_the_audit_log(app: App, cli: Cli) -> None:
    assert not (await app.ingest(BOOK)).failed
    with never_alone():
        async with serving(app):
            listed = await call(cli, "regulations", "list", "--json")
            shown = await call(cli, "regulations", "show", "학칙 제21조", "--json")
            cited = await call(cli, "regulations", "citations", "--regulation", "학칙", "--json")
    ids = {row["name"]: row["document_id"] for row in listed.json["regulations"]}
    assert shown.json["document_id"] == ids["학칙"]
    assert shown.json["citations"][0] in cited.json["citations"]
    lines = {str(line.entry.action): line.entry for line in await app.audit.newest(limit=10)}
    assert lines["GET /regulations/show"].subjects == [ids["학칙"]]
    assert set(lines["GET /regulations"].subjects) == set(ids.values())
    assert "GET /regulations/citations" in lines
