"""Streams with a language model behind them: they end in order when it hangs, breaks, or when the client leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from fastapi.sse import KEEPALIVE_COMMENT

from dtrag.delivery.api import sse
from dtrag.delivery.api.dependencies import Service
from dtrag.errors import Overloaded
from tests.api.confined import House, house
from tests.api.shape import assert_failure
from tests.api.test_chat import QUESTION, events_of
from tests.cases import each
from tests.model_server import FAULTS, HARMLESS, Fault, ModelServer
from tests.store import Databases

REPLY = "Machine learning finds rules. [1]"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(REPLY) as server:
        yield server


@pytest_asyncio.fixture
async def built(houses: Databases, model: ModelServer) -> AsyncIterator[House]:
    async with house(houses.settings(llm="openai:test", llm_base_url=model.url, llm_api_key="x")) as running:
        await running.client("all", None)
        await service_of(running).warm()
        yield running


def service_of(built: House) -> Service:
    found = built.api.state.service
    assert isinstance(found, Service)
    return found


async def asked(model: ModelServer, times: int) -> None:
    """Returns when the model has been asked so many times."""
    while len(model.requests) < times:  # noqa: ASYNC110 - the server runs in a thread of its own
        await asyncio.sleep(0.01)


async def test_tokens_as_the_model_writes_them(built: House) -> None:
    told = events_of((await built.clients["all"].post("/chat/stream", json={"message": QUESTION})).text)
    written = "".join(data["text"] for name, data in told if name == "token")
    assert written == REPLY
    done = told[-1][1]
    assert done["metadata"]["model"]
    assert done["metadata"]["tokens"] > 0
    assert done["metadata"]["degraded"] == ["read"]  # this model says the same whatever it is asked


async def test_the_answer_has_neither_html_nor_pleasantries(built: House, model: ModelServer) -> None:
    plain = (await built.clients["all"].post("/ask", json={"question": QUESTION})).json()
    model.reply = f"Great question! <b>안녕하세요!</b> {REPLY}<script>alert(1)</script> I hope this helps!"
    answer = (await built.clients["all"].post("/ask", json={"question": QUESTION})).json()
    assert [answer[name] for name in ("text", "decision", "notes")] == [
        plain[name] for name in ("text", "decision", "notes")
    ]
    assert "[?]" not in plain["text"]


@each("fault", [fault for fault in FAULTS if fault not in HARMLESS])
@pytest.mark.usefixtures("shipped_limits")
async def test_every_fault_of_the_model_ends_in_an_answer(built: House, model: ModelServer, fault: Fault) -> None:
    model.fault = fault
    async with asyncio.timeout(10):
        response = await built.clients["all"].post("/chat/stream", json={"message": QUESTION})
    told = events_of(response.text)
    assert [name for name, _ in told].count("done") == 1
    done = told[-1][1]
    assert done["response"]
    shown = ""
    for name, data in told:
        if name in {"token", "replace"}:
            shown = data["text"] if name == "replace" else shown + data["text"]
    assert shown == done["response"]
    assert not len(service_of(built).in_flight)


async def test_idle_streams_send_comments(built: House, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.1)
    model.delay = 1.0
    text = (await built.clients["all"].post("/chat/stream", json={"message": QUESTION})).text
    assert text.count(KEEPALIVE_COMMENT.decode()) >= 3
    assert events_of(text)[-1][0] == "done"


async def test_overload_is_reported_before_a_stream_begins(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> None:
        raise Overloaded(seconds=3)

    monkeypatch.setattr(built.app.pipeline, "execute", full)
    for path in ("/chat/run", "/chat/stream"):
        response = await built.clients["all"].post(path, json={"message": QUESTION})
        assert assert_failure(response, 503)["type"] == "Overloaded"
        assert response.headers["retry-after"] == "3"


async def test_a_failure_during_a_stream_is_an_event(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, kind in ((Overloaded(seconds=3), "Overloaded"), (RuntimeError("the secret passage"), "InternalError")):

        async def fail(*_: object, emit: Any, failure: Exception = error, **__: object) -> None:
            emit("step", {"name": "intent", "seconds": 0.0, "outcome": "done"})
            raise failure

        monkeypatch.setattr(built.app.pipeline, "execute", fail)
        told = events_of((await built.clients["all"].post("/chat/stream", json={"message": QUESTION})).text)
        assert [name for name, _ in told] == ["step", "error"]
        assert told[1][1]["type"] == kind
        assert "secret" not in told[1][1]["detail"]


class Leaver:
    """A client that asks, and leaves after so many pieces of the answer."""

    def __init__(self, built: House, path: str, body: dict[str, Any]) -> None:
        self._body = json.dumps(body).encode()
        self.left = asyncio.Event()
        self.sent: list[bytes] = []
        self._asked = False
        authorization = built.clients["all"].headers["authorization"].encode()
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"authorization", authorization)]
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [*headers, (b"content-length", str(len(self._body)).encode())],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 8001),
        }

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message.get("body", b""))


@pytest.mark.parametrize("path", ["/chat/run", "/chat/stream", "/v1/chat/completions"])
async def test_the_run_ends_when_the_client_leaves(built: House, model: ModelServer, path: str) -> None:
    model.fault = "hang"
    body: dict[str, Any] = {"message": QUESTION}
    if path.startswith("/v1"):
        body = {"model": "dtrag", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
    leaver = Leaver(built, path, body)
    call = asyncio.create_task(built.api(leaver.scope, leaver.receive, leaver.send))
    async with asyncio.timeout(10):
        await asked(model, 1)
        assert len(service_of(built).in_flight) == 1
        leaver.left.set()
        await call
    assert not len(service_of(built).in_flight)
    assert b"event: done" not in b"".join(leaver.sent)
    assert await asyncio.to_thread(model.wait_until_idle, 3.0)
    names = {task.get_name() for task in asyncio.all_tasks() if task.get_coro().__qualname__.startswith("answered")}  # type: ignore[union-attr]
    assert names == set()


async def test_a_stop_is_reported(built: House, model: ModelServer) -> None:
    model.fault = "hang"
    client = built.clients["all"]
    asks = [
        asyncio.create_task(client.post(path, json={"message": QUESTION})) for path in ("/chat/stream", "/chat/run")
    ]
    async with asyncio.timeout(10):
        await asked(model, 2)
        service_of(built).in_flight.end()
        stream, run = await asyncio.gather(*asks)
    told = events_of(stream.text)
    assert told[-1][0] == "error"
    assert told[-1][1]["type"] == "Stopping"
    assert assert_failure(run, 503)["type"] == "Stopping"
    assert assert_failure(await client.post("/chat/run", json={"message": QUESTION}), 503)["type"] == "Stopping"


async def test_many_streams_at_once_leak_nothing(built: House, model: ModelServer) -> None:
    client: httpx2.AsyncClient = built.clients["all"]
    before = len(asyncio.all_tasks())
    answers = await asyncio.gather(*(client.post("/chat/stream", json={"message": QUESTION}) for _ in range(20)))
    assert {events_of(answer.text)[-1][0] for answer in answers} == {"done"}
    await asyncio.sleep(0.5)
    assert len(asyncio.all_tasks()) <= before + 3  # the writers of the audit log and of the traces, and a pool's
    assert service_of(built).app.run.admission.loads()["run"].working == 0
