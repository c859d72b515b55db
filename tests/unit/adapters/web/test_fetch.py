"""Asking servers of the web: only addresses that were judged are connected to, and every answer has its limits."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dtrag.adapters.web.fetch import REDIRECTS, WebFetcher
from dtrag.errors import EgressBlocked, FetchFailed
from dtrag.ports import WebReply, WebRequest
from tests.web_server import Asked, WebServer, always, answer, web_server

JSON = ("application/json",)


class Names:
    """A server of names: `host` -> what it answers, one answer after the other, the last one for ever."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers[host.replace(".", "_")]
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def ask(
    server: WebServer, path: str = "/", request: WebRequest | None = None, *, seconds: float = 10.0, most: int = 10_000
) -> WebReply:
    wanted = request or WebRequest(server.address + path)
    return await WebFetcher(server.allowed).fetch(wanted, seconds=seconds, most=most, types=JSON)


async def test_a_response_is_returned() -> None:
    async with web_server(always(answer(body=b'{"a": 1}', content_type="Application/JSON; charset=utf-8"))) as server:
        reply = await ask(server, "/search?q=a%20b")
    assert reply == WebReply(200, f"{server.address}/search?q=a%20b", "application/json", b'{"a": 1}')
    asked = server.requests[0]
    assert (asked.method, asked.path) == ("GET", "/search?q=a%20b")
    assert asked.headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept": "application/json",
        "accept-encoding": "identity",
        "connection": "close",
        "user-agent": "dtrag",
    }


async def test_a_body_is_sent() -> None:
    async with web_server(always(answer())) as server:
        request = WebRequest(server.address, method="POST", headers={"Authorization": "Bearer k"}, body=b'{"query": 1}')
        await ask(server, request=request)
    asked = server.requests[0]
    assert (asked.method, asked.body, asked.headers["authorization"]) == ("POST", b'{"query": 1}', "Bearer k")


async def test_an_error_status_is_returned_without_its_body() -> None:
    async with web_server(always(answer(429, b"<html>" * 10_000, "text/html"))) as server:
        reply = await ask(server)
    assert (reply.status, reply.body) == (429, b"")


async def test_chunked_answers_and_provisional_ones_are_understood() -> None:
    said = (
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n"
    )
    async with web_server(always(said)) as server:
        assert (await ask(server)).body == b"[1]"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (answer(body=b"x" * 10_001), "longer than 10,000 bytes"),
        (answer(content_type="text/html"), "of the type 'text/html'"),
        (answer(Content_Encoding="gzip"), "compressed"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "not valid HTTP"),
        (b"", "not valid HTTP"),
        (answer(body=b"{}")[:-1], "not valid HTTP"),
    ],
)
async def test_an_invalid_response_is_refused(said: bytes, reason: str) -> None:
    async with web_server(always(said)) as server:
        with pytest.raises(FetchFailed, match=reason):
            await ask(server)


async def test_an_endless_response_is_cut_at_its_limit() -> None:
    async def pour(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with web_server(pour) as server:
        with pytest.raises(FetchFailed, match="longer than"):
            await ask(server, most=1 << 20)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["])
async def test_a_silent_server_times_out(said: bytes) -> None:
    async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        await asyncio.sleep(5)

    async with web_server(hang) as server:
        started = time.perf_counter()
        with pytest.raises(FetchFailed, match=r"longer than 0.3 s"):
            await ask(server, seconds=0.3)
        assert time.perf_counter() - started < 2


async def test_a_broken_connection_is_reported() -> None:
    async def reset(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with web_server(reset) as server:
        with pytest.raises(FetchFailed, match="the connection broke"):
            await ask(server)


async def test_an_unreachable_server_is_reported() -> None:
    async with web_server(always(answer())) as server:
        pass
    with pytest.raises(FetchFailed, match="does not accept connections"):
        await ask(server)


async def test_an_unknown_name_is_reported() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(FetchFailed, match="name cannot be resolved"):
        await WebFetcher(resolve=unknown).fetch(WebRequest("https://example.com"), seconds=5, most=1, types=JSON)


async def test_names_are_resolved_by_the_machine() -> None:
    async with web_server(always(answer())) as server:
        fetcher = WebFetcher(frozenset({("localhost", server.port)}))
        reply = await fetcher.fetch(WebRequest(f"http://localhost:{server.port}/"), seconds=10, most=1_000, types=())
    assert reply.status == 200
    assert server.requests[0].headers["host"] == f"localhost:{server.port}"


# --- redirects ------------------------------------------------------------------------------------------------------


async def test_a_redirect_is_followed_and_secrets_stay_with_their_origin() -> None:
    async with web_server(always(answer(body=b"[2]"))) as second:
        moved = answer(302, Location=f"{second.address}/there")

        async def first_answers(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(moved if asked.path == "/b" else answer(301, Location="/b"))

        async with web_server(first_answers) as first:
            fetcher = WebFetcher(first.allowed | second.allowed)
            request = WebRequest(
                f"{first.address}/a", method="POST", headers={"X-Key": "k", "Content-Type": "text/plain"}, body=b"x"
            )
            reply = await fetcher.fetch(request, seconds=10, most=100, types=JSON)
    assert (reply.url, reply.body) == (f"{second.address}/there", b"[2]")
    assert [(asked.method, asked.path) for asked in first.requests] == [("POST", "/a"), ("GET", "/b")]
    assert first.requests[1].headers["x-key"] == "k"
    assert "content-type" not in first.requests[1].headers
    assert "x-key" not in second.requests[0].headers


async def test_a_body_is_not_sent_to_another_server() -> None:
    async with web_server(always(answer())) as second:
        moved = answer(307, Location=f"{second.address}/")
        async with web_server(always(moved)) as first:
            fetcher = WebFetcher(first.allowed | second.allowed)
            request = WebRequest(first.address, method="POST", body=b"secret")
            with pytest.raises(FetchFailed, match="redirects a request with a body to another server"):
                await fetcher.fetch(request, seconds=10, most=100, types=JSON)
    assert second.connections == 0


async def test_a_redirect_that_keeps_the_method_sends_the_body_again_to_the_same_server() -> None:
    async def once(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer() if asked.path == "/b" else answer(308, Location="/b"))

    async with web_server(once) as server:
        await ask(server, request=WebRequest(server.address, method="POST", body=b"x"))
    assert [(asked.method, asked.body) for asked in server.requests] == [("POST", b"x"), ("POST", b"x")]


async def test_redirects_end() -> None:
    async with web_server(always(answer(302, Location="/again"))) as server:
        with pytest.raises(FetchFailed, match="more than 3 times"):
            await ask(server)
    assert len(server.requests) == server.connections == REDIRECTS + 1


async def test_a_redirect_without_a_location_is_a_response() -> None:
    async with web_server(always(answer(302))) as server:
        assert (await ask(server)).status == 302


async def test_hostile_29_a_redirect_to_what_may_not_be_asked_is_not_followed() -> None:
    async with web_server(always(answer())) as secret:
        for location in (
            secret.address,
            "http://169.254.169.254/",
            "file:///etc/passwd",
            "//127.0.0.1:5432/",
            "http://0/",
        ):
            async with web_server(always(answer(302, Location=location))) as server:
                with pytest.raises(EgressBlocked):
                    await ask(server)
        assert secret.connections == 0


# --- names ----------------------------------------------------------------------------------------------------------


async def test_the_address_that_was_judged_is_the_one_that_is_connected_to() -> None:
    async with web_server(always(answer(body=b"[1]"))) as server:
        names = Names(search_example=[["127.0.0.1"], ["192.0.2.1"]])
        fetcher = WebFetcher(frozenset({("search.example", server.port)}), names)
        request = WebRequest(f"http://search.example:{server.port}/")
        assert (await fetcher.fetch(request, seconds=10, most=100, types=JSON)).body == b"[1]"
    assert names.asked == ["search.example"]
    assert server.requests[0].headers["host"] == f"search.example:{server.port}"


async def test_hostile_29_a_name_whose_address_changes_is_judged_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    async def connect(loop: object, factory: object, host: str, port: int, **_: object) -> None:
        opened.append(host)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", connect)
    fetcher = WebFetcher(resolve=Names(rebind_example=[["8.8.8.8"], ["127.0.0.1"]]))
    request = WebRequest("http://rebind.example/")
    with pytest.raises(FetchFailed):
        await fetcher.fetch(request, seconds=5, most=1, types=JSON)
    with pytest.raises(EgressBlocked):
        await fetcher.fetch(request, seconds=5, most=1, types=JSON)
    assert opened == ["8.8.8.8"]


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "http://[::ffff:127.0.0.1]/",
        "http://2130706433/",
        "http://0/",
        "http://127.1:5432/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "http://user@127.0.0.1",
    ],
)
async def test_hostile_28_what_may_not_be_asked_opens_no_socket(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", refused)
    names = Names()
    with pytest.raises(EgressBlocked):
        await WebFetcher(resolve=names).fetch(WebRequest(url), seconds=5, most=1, types=JSON)
    assert names.asked == []


async def test_an_address_that_does_not_respond_is_skipped() -> None:
    async with web_server(always(answer(body=b"[1]"))) as server:
        names = Names(search_example=[["127.0.0.2", "127.0.0.1"]])
        fetcher = WebFetcher(frozenset({("search.example", server.port)}), names)
        request = WebRequest(f"http://search.example:{server.port}/")
        assert (await fetcher.fetch(request, seconds=10, most=100, types=JSON)).body == b"[1]"


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """What a server needs to speak TLS under a certificate that nobody has signed."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_nothing_is_sent_to_a_server_without_a_valid_certificate(self_signed: ssl.SSLContext) -> None:
    async with web_server(always(answer()), self_signed) as server:
        request = WebRequest(f"https://127.0.0.1:{server.port}/", headers={"X-Key": "k"})
        with pytest.raises(FetchFailed, match="certificate is not valid"):
            await ask(server, request=request)
    assert server.requests == []
