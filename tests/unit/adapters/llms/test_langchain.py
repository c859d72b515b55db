"""Models over LangChain: the whole contract, and what is LangChain's own."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from dtrag.adapters.llms.langchain import Built, LangChainModel, build, call_options, choose
from dtrag.adapters.llms.specs import FREE, Spec, resolve
from dtrag.core.chat import Message
from dtrag.errors import LanguageModelFailed
from dtrag.ports import ChatModel
from dtrag.settings import Settings
from tests.contract.chat_model import QUESTION, TEXT, ChatServerContract, call
from tests.model_server import FLOOD, ModelServer

KEY = "sk-hunter2hunter2hunter2"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(TEXT) as running:
        yield running


@pytest_asyncio.fixture
async def model(server: ModelServer) -> AsyncIterator[LangChainModel]:
    made = made_for(server)
    await made.warm()
    yield made
    await made.close()


def made_for(server: ModelServer, **more: Any) -> LangChainModel:
    settings = Settings.load(environ={}, llm="openai:test", llm_base_url=server.url, llm_api_key=KEY, **more)
    made, critic = choose(settings)
    assert made is not None
    assert made is critic
    return made


def _forget(module: Any) -> None:
    """What LangSmith remembers of the environment."""
    module.get_env_var.cache_clear()


class TestOverLangChain(ChatServerContract):
    """Every fault, plain and streamed."""


def test_it_is_a_chat_model(model: LangChainModel) -> None:
    as_port: ChatModel = model
    assert as_port.id == "openai:test"


async def test_calls_are_charged_by_the_price(server: ModelServer) -> None:
    model = made_for(server, llm_prices="openai:other=1/1, openai:test=1000000/2000000")
    reply = await model.complete(QUESTION, max_tokens=100, seconds=20.0)
    assert reply.usage.cost == 4 + 2 * len(TEXT.split())
    await model.close()


async def test_tokens_are_estimated_where_the_server_does_not_count(server: ModelServer, model: LangChainModel) -> None:
    server.fault, server.reply = "no-usage", "가나다 abcd"
    reply = await model.complete((Message("user", "a" * 400),), max_tokens=100, seconds=5.0)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (100, 3 + 2)


async def test_an_endless_reply_is_cut_off(server: ModelServer, model: LangChainModel) -> None:
    server.fault = "flood"
    reply, _ = await call(model, True, max_tokens=10, seconds=20.0)
    assert len(reply.text) == 160
    assert await asyncio.to_thread(server.wait_until_idle)
    assert server.bytes_sent < FLOOD / 2
    with pytest.raises(LanguageModelFailed, match="longer than 8 MiB"):
        await call(model, False, max_tokens=10, seconds=20.0)


async def test_compressed_replies_are_refused(server: ModelServer, model: LangChainModel) -> None:
    server.content_encoding = "gzip"
    for streaming in (False, True):
        with pytest.raises(LanguageModelFailed, match="compressed"):
            await call(model, streaming)
    assert {headers["accept-encoding"] for headers in server.headers} == {"identity"}


@pytest.mark.parametrize("variable", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2"])
async def test_nothing_is_sent_to_a_tracing_service(
    server: ModelServer, model: LangChainModel, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langsmith import utils
    from langsmith.run_trees import RunTree

    told: list[str] = []
    with ModelServer() as tracing:
        monkeypatch.setenv(variable, "true")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", tracing.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "key")
        _forget(utils)
        monkeypatch.setattr(RunTree, "post", lambda *_, **__: told.append("post"))
        assert utils.tracing_is_enabled()
        for streaming in (False, True):
            reply, _ = await call(model, streaming)
            assert reply.text == TEXT
        assert (told, tracing.most_connections) == ([], 0)
    monkeypatch.undo()
    _forget(utils)


async def test_variables_of_other_programs_do_not_change_the_address(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as elsewhere:
        for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_PROXY"):
            monkeypatch.setenv(name, elsewhere.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-itself")
        monkeypatch.setenv("OPENAI_ORG_ID", "org")
        model, _ = choose(Settings.load(environ={}, llm="openai:test", llm_base_url=server.url))
        assert model is not None
        assert (await model.complete(QUESTION, max_tokens=100, seconds=20.0)).text == TEXT
        await model.close()
        assert elsewhere.most_connections == 0
    assert server.headers[0]["authorization"] == "Bearer no-key"


async def test_the_key_is_in_no_error_log_or_representation(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model = made_for(server)
    server.fault = "401"
    server.words = f"Incorrect key provided: {KEY}, or sk-proj-abcdefgh"
    with pytest.raises(LanguageModelFailed, match=r"401 \(Incorrect key provided: \*\*\*, or \*\*\*\)") as caught:
        await model.complete(QUESTION, max_tokens=100, seconds=20.0)
    server.fault = None
    await model.complete(QUESTION, max_tokens=100, seconds=20.0)
    await model.close()
    seen = f"{caught.value!r} {model.problem} {model!r} {vars(model)} {caplog.text}"
    assert "hunter2" not in seen
    assert "How many days" not in caplog.text
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_a_problem_is_remembered_until_the_next_answer(server: ModelServer, model: LangChainModel) -> None:
    assert model.problem == ""
    server.fault = "401"
    with pytest.raises(LanguageModelFailed):
        await call(model, False)
    assert "401" in model.problem
    server.fault = "hang"
    with pytest.raises(LanguageModelFailed):
        await call(model, True, seconds=0.1)
    assert model.problem == "it did not answer within 0.1 s."
    server.fault = None
    await call(model, True)
    assert model.problem == ""


async def test_a_model_with_a_temperature_of_its_own_is_not_given_one(
    server: ModelServer, model: LangChainModel
) -> None:
    server.fault = lambda call: "400" if "temperature" in call else None
    server.words = "Unsupported value: 'temperature' does not support 0 with this model."
    for streaming in (False, True):
        reply, _ = await call(model, streaming)
        assert reply.text == TEXT
    assert ["temperature" in request for request in server.requests] == [True, False, False]


async def test_a_call_that_a_library_cancels_is_a_failure(server: ModelServer) -> None:
    class Cancelling:
        async def ainvoke(self, *_: Any, **__: Any) -> None:
            raise asyncio.CancelledError

    settings = Settings(llm_base_url=server.url)
    model = LangChainModel(resolve("openai:test", settings), FREE, lambda _: Built(Cancelling()))
    with pytest.raises(LanguageModelFailed, match="broken off"):
        await call(model, False, seconds=5.0)


async def test_it_is_built_once_by_a_thread_and_outlives_the_call_that_began_it(server: ModelServer) -> None:
    begun: list[str] = []

    def slow(spec: Spec) -> Built:
        begun.append(threading.current_thread().name)
        time.sleep(0.5)  # such as importing the library
        return build(spec)

    settings = Settings.load(environ={}, llm="openai:test", llm_base_url=server.url)
    model = LangChainModel(resolve("openai:test", settings), FREE, slow)
    with pytest.raises(LanguageModelFailed, match=r"within 0\.1 s"):
        await call(model, False, seconds=0.1)
    replies = await asyncio.gather(*(call(model, False, seconds=20.0) for _ in range(5)))
    assert {reply.text for reply, _ in replies} == {TEXT}
    assert len(begun) == 1
    assert begun[0] != threading.current_thread().name
    await model.close()
    await model.close()


async def test_a_failed_construction_is_reported_and_repeated(server: ModelServer) -> None:
    def broken(spec: Spec) -> Built:
        raise ImportError("no such library")

    model = LangChainModel(resolve("openai:test", Settings(llm_base_url=server.url)), FREE, broken)
    await model.warm()
    assert "ImportError" in model.problem
    with pytest.raises(LanguageModelFailed, match="ImportError"):
        await call(model, True)
    model._make = build
    assert (await call(model, True, seconds=20.0))[0].text == TEXT
    await model.close()


def test_each_provider_gets_the_limit_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = resolve("ollama:qwen3:8b", Settings())
    assert call_options(provider, 50, temperature=True) == {"temperature": 0, "extra_body": {"max_tokens": 50}}
    official = resolve("openai:gpt-4o-mini", Settings(llm="openai:gpt-4o-mini", llm_api_key="key"))
    assert call_options(official, 50, temperature=False) == {"max_tokens": 50}


def test_choosing_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from dtrag.adapters.llms.langchain import choose\n"
        "from dtrag.settings import Settings\n"
        "assert choose(Settings(llm='ollama:qwen3:8b'))[0].id == 'ollama:qwen3:8b'\n"
        "heavy = {'langchain', 'langchain_core', 'langchain_openai', 'openai', 'httpx', 'pydantic', 'langsmith'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
