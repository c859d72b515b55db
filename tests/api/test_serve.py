"""The service as a process: it listens, refuses what is no request, finishes what it has begun, and ends with 0."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.postgres.server import server as embedded
from dtrag.app import open_app
from dtrag.delivery.listening import is_loopback, listen
from dtrag.errors import CannotListen
from dtrag.settings import Settings
from tests.api.conftest import SERVE, Served
from tests.api.shape import BOUNDARY, assert_failure, file_form

Start = Callable[..., Served]


def talk(port: int, sent: bytes, wait: float = 20) -> tuple[int, bytes]:
    """Status and body of the answer to raw bytes; (0, b"") when the connection is just closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as connection:
        connection.sendall(sent)
        return heard(connection)


def heard(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of one answer."""
    received = b""
    try:
        while piece := connection.recv(65_536):
            received += piece
            head, _, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if length and len(body) >= int(length[1]):
                break
    except ConnectionResetError:
        pass
    head, _, body = received.partition(b"\r\n\r\n")
    return (int(head.split()[1]), body) if head else (0, b"")


def post(path: str, *headers: str, body: bytes = b"", host: str = "localhost") -> bytes:
    """A request as bytes."""
    head = [f"POST {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", *headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def test_it_reports_its_address(served: Served) -> None:
    assert served.lines[-1] == f"dtrag is listening on http://127.0.0.1:{served.port} (docs at /docs)\n"
    served.until_ready()
    assert not any("Warning" in line for line in served.lines)


@pytest.mark.parametrize("length", ["-1", "-9223372036854775808", "1e9", "0x10", "10, 11", "9" * 30, ""])
@pytest.mark.parametrize("path", ["/search", "/documents"])
def test_lying_lengths(served: Served, path: str, length: str) -> None:
    status, body = talk(served.port, post(path, f"Content-Length: {length}", body=b'{"query": "x"}'))
    assert status in {400, 413}
    assert isinstance(json.loads(body)["detail"], str)


def test_a_declared_huge_body_is_refused_before_it_comes(served: Served) -> None:
    status, body = talk(served.port, post("/search", "Content-Length: 10000000000"))
    assert status == 413
    assert json.loads(body)["type"] == "TooLarge"


def test_a_streamed_body_is_counted(served: Served) -> None:
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    sent = post("/search", "Transfer-Encoding: chunked", body=chunk * 18 + b"0\r\n\r\n")
    status, body = talk(served.port, sent)
    assert status == 413
    assert json.loads(body)["type"] == "TooLarge"


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (post("/search", "Content-Length: 2", body=b"{}", host="evil"), {400}),
        (post("/search", "Content-Length: 2", "Host: evil", body=b"{}"), {400}),
        (b"POST /search HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", {400}),
        (b"GET /livez HTTP/1.0\r\n\r\n", {400}),
        (post("/search", "Content-Length: 4", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), {400, 422}),
        (post("/search", "Transfer-Encoding: rot13", "Content-Length: 2", body=b"{}"), {400, 501}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400}),
        (b"no http at all\r\n\r\n", {400}),
        (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 404}),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", {400}),
        (b"GET /documents/%ff%fe%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", {404}),
        (b"GET http://evil/livez HTTP/1.1\r\nHost: localhost\r\n\r\n", {404, 400}),
        (b"CONNECT evil:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 404, 405}),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", {200}),
    ],
)
def test_malformed_requests(served: Served, sent: bytes, statuses: set[int]) -> None:
    status, body = talk(served.port, sent)
    assert status in statuses
    if status >= 400:
        assert isinstance(json.loads(body)["detail"], str)
    assert served.client.get("/livez").status_code == 200


def test_a_client_that_disconnects_affects_no_other(served: Served) -> None:
    for path in ("/search", "/documents"):
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(post(path, "Content-Length: 1000", body=b'{"query": '))
    assert served.client.post("/search", json={"query": "x"}).status_code == 200


def test_a_request_in_flight_is_finished_after_sigterm(start: Start) -> None:
    running = start()
    form = file_form(b"late.txt", b"Latecomers are searchable.")
    head = f"POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(form)}\r\n"
    head += f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as upload:
        upload.sendall(head.encode() + form[:50])
        running.until_ready()
        running.process.send_signal(signal.SIGTERM)
        while (ready := running.client.get("/readyz")).status_code == 200:
            time.sleep(0.005)
        assert assert_failure(ready, 503)["type"] == "Stopping"
        assert running.client.get("/livez").status_code == 200
        _wait_until_refused(running.port)
        upload.sendall(form[50:])
        status, body = heard(upload)
    assert status == 201
    assert json.loads(body)["documents"][0]["file"] == "late.txt"
    running.client.close()
    _, said = running.ended()
    assert (running.process.returncode, said) == (0, "")


def _wait_until_refused(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError("it still listens")


def test_ctrl_c_is_a_normal_end_and_the_database_stops(start: Start, tmp_path: Path) -> None:
    running = start(data_dir=str(tmp_path / "data"))
    assert embedded.status(tmp_path / "data").pid is not None
    assert running.stop(signal.SIGINT) == (0, "")
    assert embedded.status(tmp_path / "data").pid is None


def test_a_second_signal_does_not_wait(start: Start) -> None:
    running = start()
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as stuck:
        stuck.sendall(post("/search", "Content-Length: 100", body=b"{"))
        running.client.get("/livez")
        running.process.send_signal(signal.SIGINT)
        _wait_until_refused(running.port)
        assert running.process.poll() is None
        running.process.send_signal(signal.SIGINT)
        running.ended(20)
    assert running.process.returncode == 0


def test_a_port_in_use(tmp_path: Path, served: Served) -> None:
    arguments = [f"data_dir={tmp_path / 'never'}", f"port={served.port}", "embedder=none"]
    ended = subprocess.run([sys.executable, "-c", SERVE, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    assert f"CannotListen: The service cannot listen on 127.0.0.1 port {served.port}: another program" in ended.stderr
    assert f"dtrag up --port {served.port + 1}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 99_999), ("192.0.2.1", 0), ("a" * 70, 0)])
def test_addresses_that_cannot_be_listened_on(host: str, port: int) -> None:
    with pytest.raises(CannotListen, match="--port") as caught:
        listen(host, port)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("192.0.2.1", False), ("x", False)],
)
def test_loopback_addresses(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_a_database_that_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    arguments = [f"data_dir={tmp_path / 'file'}", "port=0", "embedder=none"]
    ended = subprocess.run([sys.executable, "-c", SERVE, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    assert "DatabaseStartFailed: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_killed_database(start: Start, tmp_path: Path) -> None:
    running = start(data_dir=str(tmp_path / "data"), pool_size="1")
    postmaster = embedded.status(tmp_path / "data").pid
    assert postmaster is not None
    running.until_ready()
    os.kill(postmaster, signal.SIGKILL)
    deadline = time.monotonic() + 30  # A backend may answer one more request before it notices.
    while (ready := running.client.get("/readyz")).status_code == 200:
        assert time.monotonic() < deadline
    assert_failure(ready, 503)
    health = running.client.get("/health")
    assert (health.status_code, health.json()["status"]) == (200, "unhealthy")
    assert running.client.get("/livez").status_code == 200
    assert running.stop(signal.SIGINT)[0] == 0


def test_an_open_address_needs_a_key_first(start: Start, tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    arguments = [f"data_dir={data_dir}", "host=0.0.0.0", "port=0", "embedder=none"]
    ended = subprocess.run([sys.executable, "-c", SERVE, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    assert "CannotListen: 0.0.0.0 is not a loopback address" in ended.stderr
    assert "dtrag keys create" in ended.stderr

    async def create() -> str:
        async with open_app(Settings.load(environ={}, data_dir=data_dir, embedder="none")) as app:
            return (await app.keys.create("first", role="admin")).secret

    secret = asyncio.run(create())
    running = start(data_dir=data_dir, host="0.0.0.0")
    assert not any("No key is configured" in line for line in running.lines)
    headers = {"Host": "localhost"}
    assert_failure(running.client.get("/documents", headers=headers), 401)
    assert running.client.get("/documents", headers={**headers, "X-API-Key": secret}).status_code == 200


def test_an_open_address_needs_no_key_where_only_public_branches_are_read(start: Start, tmp_path: Path) -> None:
    running = start(data_dir=str(tmp_path / "data"), host="0.0.0.0", public="Statutes", log_level="WARNING")
    assert any("DTRAG_PUBLIC: there is no category Statutes" in line for line in running.lines)
    headers = {"Host": "localhost"}
    assert running.client.get("/documents", headers=headers).json()["documents"] == []
    assert_failure(running.client.get("/settings", headers=headers), 401)


def test_a_forwarded_client_is_not_a_local_one(served: Served) -> None:
    assert any("No key is configured: only this machine has access" in line for line in served.lines)
    assert served.client.get("/documents").status_code == 200
    assert_failure(served.client.get("/documents", headers={"X-Forwarded-For": "203.0.113.5"}), 401)
    assert served.client.get("/livez", headers={"X-Forwarded-For": "203.0.113.5"}).status_code == 200


def test_requests_are_logged_as_json_lines(start: Start) -> None:
    running = start(log_level="INFO")
    headers = {"X-Request-ID": "log-me", "Host": "localhost"}
    running.client.post("/search", json={"query": "confidential words"}, headers=headers)
    code, said = running.stop(signal.SIGINT)
    assert code == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines()]
    (line,) = [line for line in lines if line.get("request_id") == "log-me"]
    assert (line["method"], line["route"], line["status"]) == ("POST", "/search", 200)
    assert "confidential" not in said
