"""The official client of the OpenAI protocol against a real service on loopback; and what no client would send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest
import pytest_asyncio
import uvicorn

from dtrag.delivery.listening import listen
from tests.api.confined import House, house
from tests.api.shape import assert_failure
from tests.api.test_chat import QUESTION
from tests.cases import each
from tests.store import Databases

Client = Callable[[str], openai.AsyncOpenAI]
ASKED: Any = [{"role": "user", "content": QUESTION}]


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    async with house(houses_of_module.settings()) as running:
        await running.client("all", None)
        await running.client("hr", ["HR"])
        made = {"version": "1.0.0", "node_paths": [["AI", "ML"]], "name": "Teacher of machines"}
        assert (await running.clients["all"].post("/agents/from-category", json=made)).status_code == 200
        yield running


@pytest_asyncio.fixture(scope="module")
async def address(built: House) -> AsyncIterator[str]:
    """The house of the module on a real socket."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(built.api, lifespan="off", log_config=None, ws="none"))
    serving = asyncio.create_task(server.serve([listener]))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    server.should_exit = True
    await serving
    listener.close()


@pytest_asyncio.fixture
async def client(built: House, address: str) -> AsyncIterator[Client]:
    """Clients of the protocol, with the key of whoever is named."""
    made: list[openai.AsyncOpenAI] = []

    def of(name: str) -> openai.AsyncOpenAI:
        headers = built.clients[name].headers if name in built.clients else {"authorization": "Bearer no-such-key"}
        key = headers["authorization"].removeprefix("Bearer ")
        made.append(openai.AsyncOpenAI(base_url=address, api_key=key, max_retries=0, timeout=30))
        return made[-1]

    yield of
    for opened in made:
        await opened.close()


async def test_models(client: Client) -> None:
    mine = [model async for model in client("all").models.list()]
    assert [model.id for model in mine] == ["dtrag", "agent:Teacher of machines"]
    assert mine[1].created > 1_600_000_000
    assert [model.id async for model in client("hr").models.list()] == ["dtrag"]
    one = await client("all").models.retrieve("agent:Teacher of machines")
    assert one == mine[1]
    assert (await client("all").models.retrieve("dtrag")).owned_by == "dtrag"
    with pytest.raises(openai.NotFoundError):
        await client("hr").models.retrieve("agent:Teacher of machines")


async def test_an_answer(client: Client) -> None:
    done = await client("all").chat.completions.create(model="dtrag", messages=ASKED, temperature=0.2, user="somebody")
    message = done.choices[0].message
    assert message.content is not None
    assert "[1]" in message.content
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None
    assert done.usage.total_tokens == 0
    extra: Any = message.model_extra
    assert extra["citations"][0]["quote"] in message.content
    assert done.id.startswith("chatcmpl-")
    assert done.model == "dtrag"


async def test_a_stream(client: Client) -> None:
    plain = await client("all").chat.completions.create(model="dtrag", messages=ASKED)
    stream = await client("all").chat.completions.create(
        model="dtrag", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    pieces = [piece async for piece in stream]
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == plain.choices[0].message.content
    assert pieces[0].choices[0].delta.role == "assistant"
    last: Any = pieces[-2].choices[0]
    assert last.finish_reason == "stop"
    assert last.delta.model_extra["citations"] == plain.choices[0].message.model_extra["citations"]  # type: ignore[index]
    assert pieces[-1].choices == []
    assert pieces[-1].usage is not None
    assert len({piece.id for piece in pieces}) == 1
    assert sum(len(piece.choices) for piece in pieces) > 3


async def test_a_conversation_in_parts(client: Client) -> None:
    said: Any = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": "What is a decision tree?"},
        {"role": "assistant", "content": "It asks one question after another."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "What does machine"}, {"type": "text", "text": "learning find?"}],
        },
    ]
    done = await client("all").chat.completions.create(model="agent:Teacher of machines", messages=said)
    assert done.choices[0].message.content


async def test_an_agent_is_asked_by_name_or_by_id(client: Client, built: House) -> None:
    [agent] = (await built.clients["all"].get("/agents")).json()["agents"]
    for model in ("agent:Teacher of machines", f"agent:{agent['agent_id']}"):
        done = await client("all").chat.completions.create(model=model, messages=ASKED)
        extra: Any = done.choices[0].message.model_extra
        assert {citation["label"] for citation in extra["citations"]} <= {"Trees", "Descent"}
        with pytest.raises(openai.NotFoundError):
            await client("hr").chat.completions.create(model=model, messages=ASKED)


async def test_two_agents_of_one_name(client: Client, built: House) -> None:
    made = {"version": "1.0.0", "node_paths": [["HR"]], "name": "Teacher of machines"}
    agent_id = (await built.clients["all"].post("/agents/from-category", json=made)).json()["agent_id"]
    listed = [model.id async for model in client("all").models.list()]
    assert f"agent:{agent_id}" in listed
    assert "agent:Teacher of machines" not in listed
    with pytest.raises(openai.BadRequestError, match="by id"):
        await client("all").chat.completions.create(model="agent:Teacher of machines", messages=ASKED)
    assert (await built.clients["all"].delete(f"/agents/{agent_id}")).status_code == 204


@each(
    "extra",
    [
        {"n": 2},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
        {"logprobs": True},
        {"response_format": {"type": "json_object"}},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]},
        {"messages": [{"role": "user", "content": " "}]},
        {"messages": []},
        {"messages": "x"},
    ],
)
@each("stream", [True, False])
async def test_unsupported_requests_are_refused(client: Client, extra: Any, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client("all").chat.completions.create(**({"model": "dtrag", "messages": ASKED, "stream": stream} | extra))
    assert caught.value.type == "invalid_request_error"
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"].endswith(".")


async def test_failures_have_the_form_of_the_client(
    client: Client, built: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(openai.AuthenticationError) as unknown:
        await client("nobody").models.list()
    assert unknown.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError) as missing:
        await client("all").chat.completions.create(model="gpt-4o", messages=ASKED)
    assert missing.value.code == "model_not_found"
    created = await built.app.keys.create("slow", None, "reader", rate=1)
    slow = client("all").with_options(api_key=created.secret)
    await slow.models.list()
    with pytest.raises(openai.RateLimitError) as spent:
        await slow.models.list()
    assert int(spent.value.response.headers["retry-after"]) >= 1
    assert spent.value.type == "rate_limit_error"

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the secret passage")

    monkeypatch.setattr(built.app.pipeline, "execute", fail)
    with pytest.raises(openai.InternalServerError) as bug:
        await client("all").chat.completions.create(model="dtrag", messages=ASKED)
    assert "secret" not in str(bug.value)
    assert bug.value.type == "server_error"


async def test_every_failure_has_both_shapes(built: House) -> None:
    mine = built.clients["all"]
    for response in (
        await mine.get("/v1/nothing"),
        await mine.post("/v1/chat/completions", json={}),
        await mine.post("/v1/chat/completions", content=b"{", headers={"content-type": "application/json"}),
        await mine.post("/v1/chat/completions", content=b"x"),
        await mine.get("/v1/models", headers={"authorization": "Bearer x"}),
        await mine.get("/v1/models", headers={"host": "evil"}),
    ):
        body = assert_failure(response, 400, 401, 404, 415)
        assert body["error"]["message"] == body["detail"]
    assert "error" not in assert_failure(await mine.post("/chat/run", json={}), 422)


async def test_the_audit_log_lists_the_shown_documents(client: Client, built: House) -> None:
    done = await client("all").chat.completions.create(model="dtrag", messages=ASKED)
    stream = await client("all").chat.completions.create(model="dtrag", messages=ASKED, stream=True)
    async for _ in stream:
        pass
    extra: Any = done.choices[0].message.model_extra
    shown = list(dict.fromkeys(citation["document_id"] for citation in extra["citations"]))
    await built.app.audit.newest()
    lines = {line["action"]: line for line in await built.audited()}
    assert lines["POST /v1/chat/completions answered"]["subjects"][:-1] == shown
    assert shown in [
        line["subjects"][:-1] for line in await built.audited() if line["action"] == "POST /v1/chat/completions"
    ]
