"""SIGTERM while answers are being made: they are finished, or their clients are told; the process ends with 0."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2

from tests.api.conftest import Served
from tests.api.shape import FORM, file_form
from tests.api.test_chat import events_of
from tests.model_server import ModelServer

QUESTION = "What does the gearbox of a windmill turn?"
DOCUMENT = b"# Windmill\n\nThe gearbox of a windmill turns the millstone."


class Asking:
    """A client that waits for an answer in a thread of its own."""

    def __init__(self, served: Served, path: str) -> None:
        self.text, self.status = "", 0
        self._url = served.address + path
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        response = httpx2.post(self._url, json={"message": QUESTION}, timeout=60)
        self.status, self.text = response.status_code, response.text

    def wait(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


def begun(start: Callable[..., Served], model: ModelServer, **settings: str) -> tuple[Served, list[Asking]]:
    """A service in which two answers wait for the model."""
    served = start(llm="openai:test", llm_base_url=model.url, llm_api_key="x", **settings)
    sent: Any = served.client.post("/documents", content=file_form(b"windmill.md", DOCUMENT), headers=FORM)
    assert sent.status_code == 201
    asking = [Asking(served, "/chat/stream"), Asking(served, "/chat/run")]
    deadline = time.monotonic() + 30
    while len(model.requests) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(model.requests) >= 2
    return served, asking


def test_a_running_answer_is_finished(start: Callable[..., Served]) -> None:
    with ModelServer("The millstone. [1]", delay=2.0) as model:
        served, (stream, run) = begun(start, model)
        assert served.stop()[0] == 0
        for asking in (stream, run):
            asking.wait()
            assert asking.status == 200
        assert events_of(stream.text)[-1][0] == "done"
        assert "millstone" in events_of(stream.text)[-1][1]["response"]


def test_an_unfinished_answer_is_reported(start: Callable[..., Served]) -> None:
    with ModelServer(fault="hang") as model:
        served, (stream, run) = begun(start, model, stop_seconds="4")
        ready: list[int] = []

        def look() -> None:
            while True:
                try:
                    ready.append(httpx2.get(f"{served.address}/readyz", timeout=5).status_code)
                except httpx2.HTTPError:
                    return
                time.sleep(0.1)

        looking = threading.Thread(target=look)
        looking.start()
        code, said = served.stop()
        looking.join(30)
        for asking in (stream, run):
            asking.wait()
        assert code == 0, said
        assert 503 in ready
        assert stream.status == 200
        name, told = events_of(stream.text)[-1]
        assert (name, told["type"]) == ("error", "Stopping")
        assert run.status == 503
        assert "Traceback" not in said
