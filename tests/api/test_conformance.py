"""Twenty questions through every interface: answers have the same text and citations, searches the same passages and
spans. docs/reference/interfaces.md lists the interfaces."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import TypeAdapter

from dtrag.app import App
from dtrag.core.documents import Citation
from dtrag.delivery.api.openai_reply import in_bold
from tests.api.confined import house, listening
from tests.cases import each
from tests.store import Databases

SAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = [json.loads(line)["question"] for line in (SAMPLES / "judged.jsonl").read_text("utf-8").splitlines()][:20]
AGENT_TOPK = 5
"""Passages that an agent retrieves unless it is set."""
_CITATIONS = TypeAdapter(tuple[Citation, ...])
Answered = tuple[str, Any]
"""The text, and the citations as JSON."""
Retrieved = list[tuple[str, int, int]]
"""Ids and spans of passages, best first."""


@dataclass
class Service:
    """One service, and a client for each protocol, all with the same key."""

    app: App
    http: httpx2.AsyncClient
    chat: openai.AsyncOpenAI
    agent_id: str
    address: str
    key: str
    answers: dict[str, Any] = field(default_factory=dict)

    async def post(self, path: str, **body: Any) -> Any:
        response = await self.http.post(path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def answer(self, question: str) -> Any:
        """That of `POST /ask`."""
        if question not in self.answers:
            self.answers[question] = await self.post("/ask", question=question)
        return self.answers[question]

    async def call(self, tool: str, **arguments: Any) -> Any:
        async with Client(streamable_http_client(f"{self.address}/mcp", http_client=self.http)) as client:
            called = await client.call_tool(tool, arguments)
        assert not called.is_error, called.content
        return called.structured_content


@pytest_asyncio.fixture(scope="module")
async def service(databases_of_module: Databases) -> AsyncIterator[Service]:
    async with AsyncExitStack() as exits:
        built = await exits.enter_async_context(house(databases_of_module.settings(regulations="auto")))
        report = await built.app.ingest([SAMPLES / "tarrowby-handbook", SAMPLES / "hanbit-university"], "Samples")
        assert report.failed == []
        agent = await built.app.agents.create("1.0.0", [["Samples"]], name="Samples")
        key = (await built.app.keys.create("service", None, "admin", rate=1_000_000)).secret
        address = await exits.enter_async_context(listening(built.api))
        headers = {"authorization": f"Bearer {key}"}
        http = await exits.enter_async_context(httpx2.AsyncClient(base_url=address, headers=headers, timeout=60))
        chat = await exits.enter_async_context(openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=key))
        yield Service(built.app, http, chat, str(agent.agent_id), address, key)


async def python(service: Service, question: str) -> Answered:
    answer = await service.app.ask(question)
    return answer.text, _CITATIONS.dump_python(answer.citations, mode="json")


async def run(service: Service, question: str) -> Answered:
    body = await service.post("/chat/run", message=question)
    return body["response"], _citations(body)


async def stream(service: Service, question: str) -> Answered:
    sent = await service.http.post("/chat/stream", json={"message": question})
    [done] = re.findall(r"^event: done\ndata: (.*)$", sent.text, re.MULTILINE)
    body = json.loads(done)
    return body["response"], _citations(body)


def _citations(body: Any) -> Any:
    """The sources of a chat: the citations with a shorter name for the address, and three fields more."""
    more = {"title", "date", "version"}
    return [
        {"source_url" if name == "url" else name: source[name] for name in source if name not in more}
        for source in body["sources"]
    ]


async def agent(service: Service, question: str) -> Answered:
    body = await service.post(f"/agents/{service.agent_id}/ask", question=question)
    return body["text"], body["citations"]


async def tool(service: Service, question: str) -> Answered:
    body = await service.call("ask", question=question)
    return body["text"], body["citations"]


async def completion(service: Service, question: str) -> Answered:
    done = await service.chat.chat.completions.create(model="dtrag", messages=[{"role": "user", "content": question}])
    message: Any = done.choices[0].message
    return message.content, message.model_extra["citations"]


async def completion_stream(service: Service, question: str) -> Answered:
    sent = await service.chat.chat.completions.create(
        model="dtrag", messages=[{"role": "user", "content": question}], stream=True
    )
    deltas: list[Any] = [chunk.choices[0].delta async for chunk in sent]
    return "".join(delta.content or "" for delta in deltas), deltas[-1].model_extra["citations"]


async def response(service: Service, question: str) -> Answered:
    output: Any = (await service.chat.responses.create(model="dtrag", input=question)).output[0]
    cited = {each.citation["number"]: each.citation for each in output.content[0].annotations}
    return output.content[0].text, list(cited.values())


async def response_stream(service: Service, question: str) -> Answered:
    events = [event async for event in await service.chat.responses.create(model="dtrag", input=question, stream=True)]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    marks: list[Any] = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    return text, list({mark.citation["number"]: mark.citation for mark in marks}.values())


@each("interface", [python, run, stream, agent, tool, completion, completion_stream, response, response_stream])
async def test_interfaces_that_answer_give_the_same_text_and_citations(
    service: Service, interface: Callable[[Service, str], Awaitable[Answered]]
) -> None:
    in_markdown = interface in {completion, completion_stream, response, response_stream}
    for question in QUESTIONS:
        body = await service.answer(question)
        text, citations = await interface(service, question)
        assert text == (in_bold(body["text"], body["marked"]) if in_markdown else body["text"]), question
        assert citations == body["citations"], question
    assert len(QUESTIONS) == 20


async def test_the_questions_have_answers(service: Service) -> None:
    answers = [await service.answer(question) for question in QUESTIONS]
    assert sum(bool(answer["citations"]) for answer in answers) > 15


async def batch(service: Service, question: str) -> Retrieved:
    return _spans((await service.post("/search/batch", searches=[{"query": question}]))["answers"][0])


async def external_knowledge(service: Service, question: str) -> Retrieved:
    body = await service.post("/retrieval", knowledge_id="all", query=question, retrieval_setting={"top_k": 10})
    found = [record["metadata"] for record in body["records"]]
    return [(metadata["chunk_id"], metadata["start"], metadata["end"]) for metadata in found]


async def agent_search(service: Service, question: str) -> Retrieved:
    return _spans(await service.post(f"/agents/{service.agent_id}/search", query=question))


async def python_search(service: Service, question: str) -> Retrieved:
    results, _ = await service.app.search(question)
    return [(found.chunk_id, found.start, found.end) for found in results]


async def langchain(service: Service, question: str) -> Retrieved:
    from dtrag.integrations.langchain import DtragRetriever

    found = await DtragRetriever(base_url=service.address, api_key=service.key).ainvoke(question)
    return [(str(each.id), each.metadata["start"], each.metadata["end"]) for each in found]


async def llama_index(service: Service, question: str) -> Retrieved:
    from dtrag.integrations.llama_index import DtragRetriever

    nodes: list[Any] = await DtragRetriever(base_url=service.address, api_key=service.key).aretrieve(question)
    return [(each.node.node_id, each.node.start_char_idx, each.node.end_char_idx) for each in nodes]


async def haystack(service: Service, question: str) -> Retrieved:
    from dtrag.integrations.haystack import DtragRetriever

    retriever: Any = DtragRetriever(base_url=service.address, api_key=service.key)
    found = (await retriever.run_async(query=question))["documents"]
    return [(each.id, each.meta["start"], each.meta["end"]) for each in found]


def _spans(body: Any) -> Retrieved:
    return [(found["chunk_id"], found["start"], found["end"]) for found in body["results"]]


@each("interface", [batch, external_knowledge, agent_search, python_search, langchain, llama_index, haystack])
async def test_interfaces_that_retrieve_give_the_same_passages_and_spans(
    service: Service, interface: Callable[[Service, str], Awaitable[Retrieved]]
) -> None:
    for question in QUESTIONS:
        expected = _spans(await service.post("/search", query=question))
        retrieved = await interface(service, question)
        most = AGENT_TOPK if interface is agent_search else len(expected)
        assert retrieved == expected[:most] != [], question


async def test_the_search_of_chat_programs_gives_the_same_passages(service: Service) -> None:
    for question in QUESTIONS:
        results = (await service.post("/search", query=question))["results"]
        found = (await service.call("search", query=question))["results"]
        assert [each["id"] for each in found] == [each["chunk_id"] for each in results], question
        fetched = await service.call("fetch", id=results[0]["chunk_id"])
        assert fetched["text"] == results[0]["text"]
