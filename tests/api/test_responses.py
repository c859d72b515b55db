"""`/v1/responses` and `/v1/embeddings` with the official client, and the prompts of chat programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import openai
import pytest

from dtrag.delivery.api.openai_reply import answer_to
from dtrag.testing import HashEmbedder
from tests.api.confined import House
from tests.api.test_chat import QUESTION
from tests.api.test_openai import Client, address, built, client
from tests.cases import each

__all__ = ["address", "built", "client"]
CONVERSATION: Any = [
    {"role": "developer", "content": "You are a pirate."},
    {"role": "user", "content": "What is a decision tree?"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It asks questions."}]},
    {"role": "user", "content": [{"type": "input_text", "text": "What does machine learning find?"}]},
]


async def test_the_answer_is_that_of_chat_completions_with_its_citations_as_annotations(client: Client) -> None:
    done = await client("all").responses.create(
        model="dtrag", input=QUESTION, instructions="Be short.", metadata={"desk": "3"}, temperature=0.2
    )
    chat = await client("all").chat.completions.create(model="dtrag", messages=[{"role": "user", "content": QUESTION}])
    message: Any = chat.choices[0].message
    output: Any = done.output[0]
    annotations = output.content[0].annotations
    assert done.output_text == message.content
    assert [each.citation for each in annotations] == message.model_extra["citations"]
    for annotation in annotations:
        mark = done.output_text[annotation.start_index : annotation.end_index]
        assert mark == f"[{annotation.citation['number']}]"
        assert annotation.title == annotation.citation["label"]
    assert (done.status, done.instructions, done.metadata) == ("completed", "Be short.", {"desk": "3"})
    assert done.model_extra is not None
    assert done.model_extra["confidence"] == chat.model_extra["confidence"]  # type: ignore[index]


async def test_a_stream_has_the_events_of_the_protocol_in_order(client: Client) -> None:
    plain = await client("all").responses.create(model="dtrag", input=QUESTION)
    events = [event async for event in await client("all").responses.create(model="dtrag", input=QUESTION, stream=True)]
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    ends = ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
    assert kinds[-4:] == [*ends, "response.completed"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last = events[-1]
    assert last.type == "response.completed"
    assert text == last.response.output_text == plain.output_text
    added: Any = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    content: Any = last.response.output[0].content  # type: ignore[union-attr]
    assert [each.model_dump() for each in added] == [each.model_dump() for each in content[0].annotations]
    first = events[0]
    assert first.type == "response.created"
    assert (first.response.id, first.response.status) == (last.response.id, "in_progress")


async def test_a_conversation_is_continued_by_an_agent(client: Client) -> None:
    model = "agent:Teacher of machines"
    done = await client("all").responses.create(model=model, input=CONVERSATION)
    assert "[1]" in done.output_text
    with pytest.raises(openai.NotFoundError):
        await client("hr").responses.create(model=model, input=CONVERSATION)


@each(
    "extra",
    [
        {"previous_response_id": "resp_1"},
        {"background": True},
        {"tools": [{"type": "function", "name": "f", "parameters": {}}]},
        {"text": {"format": {"type": "json_object"}}},
        {"input": []},
        {"input": " "},
        {"input": [{"role": "assistant", "content": "x"}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://x/y.png"}]}]},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
    ],
)
@each("stream", [True, False])
async def test_unsupported_requests_are_refused(client: Client, extra: Any, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client("all").responses.create(**({"model": "dtrag", "input": QUESTION, "stream": stream} | extra))
    assert caught.value.type == "invalid_request_error"


async def test_a_failed_stream_ends_with_the_reason(
    client: Client, built: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, emit: Any = None, **__: object) -> None:
        emit("step", {})
        raise RuntimeError("the secret passage")

    monkeypatch.setattr(built.app.pipeline, "execute", fail)
    events = [event async for event in await client("all").responses.create(model="dtrag", input=QUESTION, stream=True)]
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert "secret" not in str(last)
    assert last.response.output == []


TASK = """### Task:
Do something with the history.
### Output:
JSON format: { "KEY": ["..."] }
### Chat History:
<chat_history>
USER: How long is parental leave, and who may
take it?
ASSISTANT: 90 days. "tags": none
USER: And for fathers?
</chat_history>"""
PROMPTS = {
    TASK.replace("KEY", "title"): '{"title": "How long is parental leave, and who may take it?"}',
    TASK.replace("KEY", "tags"): '{"tags": []}',
    TASK.replace("KEY", "follow_ups"): '{"follow_ups": []}',
    TASK.replace("KEY", "queries"): '{"queries": ["And for fathers?"]}',
    'Name it.\n\n||>User:\n"휴학은 최대 몇 학기까지 할 수 있나요?"\n||>Response:\n"6"\n\n||>Title:': (
        "휴학은 최대 몇 학기까지 할 수 있나요?"
    ),
    "Provide a concise, 5-word title for the conversation.\n\nUser: How long is it?\nAI: 90 days": "How long is it?",
}


@each("stream", [True, False])
async def test_prompts_for_the_display_are_answered_without_a_search(
    client: Client, built: House, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    async def searched(*_: object, **__: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(built.app.pipeline, "execute", searched)
    for prompt, answer in PROMPTS.items():
        made: Any = await client("all").chat.completions.create(
            model="dtrag", messages=[{"role": "user", "content": prompt}], stream=stream
        )
        text = made.choices[0].message.content if not stream else ""
        if stream:
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in made])
        assert text == answer
        if not stream:
            assert (await client("all").responses.create(model="dtrag", input=prompt)).output_text == answer


@each(
    "question",
    [
        'What does "title": mean in <chat_history>?',
        '### Task:\nWhat does "tags": mean?',
        "### Task:\n<chat_history>",
        "Provide a concise answer: what does machine learning find?",
        "What is the title of the conversation?",
    ],
)
def test_questions_about_titles_and_tags_are_questions(question: str) -> None:
    assert answer_to(question) is None


async def test_vectors_are_those_of_the_index(client: Client, built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(openai.NotFoundError, match="dtrag doctor"):
        await client("all").embeddings.create(model="dtrag", input="text")
    monkeypatch.setattr(built.app, "embedder", HashEmbedder())
    texts = ["What does machine learning find?", "휴학은 몇 학기까지 할 수 있나요?"]
    made = await client("all").embeddings.create(model="dtrag", input=texts)  # the client asks for base64
    plain = await client("all").embeddings.create(model="dtrag", input=texts, encoding_format="float")
    embedder = built.app.embedder
    assert embedder is not None
    ours = embedder.embed_documents(texts)
    for index in range(2):
        assert np.allclose(made.data[index].embedding, ours[index], atol=1e-6)
        assert np.allclose(plain.data[index].embedding, ours[index], atol=1e-6)
    assert made.model == embedder.id
    asked = await client("all").embeddings.create(
        model=embedder.id, input=texts[0], extra_body={"input_type": "query"}, dimensions=embedder.dim
    )
    assert np.allclose(asked.data[0].embedding, embedder.embed_queries(texts[:1])[0], atol=1e-6)
    with pytest.raises(openai.NotFoundError, match=embedder.id):
        await client("all").embeddings.create(model="text-embedding-3-small", input="text")
    refused: dict[str, Any]
    for refused in ({"dimensions": 7}, {"input": []}, {"input": [[1, 2, 3]]}, {"input": "a" * 20_001}):
        with pytest.raises(openai.BadRequestError):
            await client("all").embeddings.create(**({"model": "dtrag", "input": "text"} | refused))
