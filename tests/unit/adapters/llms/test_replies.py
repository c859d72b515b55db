"""What providers' messages say, each in its own way."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from dtrag.adapters.llms.http_client import Unusable
from dtrag.adapters.llms.replies import ReplyReader, usage
from dtrag.adapters.llms.specs import Price
from dtrag.core.chat import Message, Usage


def counted(asked: int, reading: int) -> Any:
    return {"input_tokens": asked, "output_tokens": reading, "total_tokens": asked + reading}


def test_text_parts_are_read_and_thoughts_are_ignored() -> None:
    reading = ReplyReader(100)
    parts: list[Any] = [
        {"type": "thinking", "thinking": "Hmm."},
        {"type": "text", "text": "Twenty-six"},
        " days.",
        {"type": "text"},
        {"type": "image", "text": "no"},
    ]
    assert reading.add(AIMessage(parts)) == "Twenty-six days."


@pytest.mark.parametrize(
    ("metadata", "finished"),
    [
        ({"finish_reason": "stop"}, True),
        ({"finish_reason": "STOP"}, True),
        ({"stop_reason": "end_turn"}, True),
        ({"stop_reason": "max_tokens"}, False),
        ({"finish_reason": "MAX_TOKENS"}, False),
        ({"finish_reason": "content_filter"}, False),
        ({}, False),
    ],
)
def test_whether_a_reply_is_complete(metadata: dict[str, str], finished: bool) -> None:
    reading = ReplyReader(100)
    reading.add(AIMessage("text", response_metadata=metadata))
    reading.check()
    assert reading.finished is finished


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("SAFETY", "filter withheld"),
        ("content_filter", "filter withheld"),
        ("length", "limit of tokens was used up"),
        ("tool_use", "asked for a tool"),
        ("stop", "held no text"),
        ("", "held no text"),
    ],
)
def test_why_there_is_no_text(reason: str, words: str) -> None:
    reading = ReplyReader(100)
    reading.add(AIMessage(" \n", response_metadata={"finish_reason": reason}))
    with pytest.raises(Unusable, match=words):
        reading.check()


def test_pieces_add_up() -> None:
    reading = ReplyReader(100)
    assert reading.add(AIMessageChunk(content="Twenty", usage_metadata=counted(7, 1))) == "Twenty"
    assert reading.add(AIMessageChunk(content="-six", usage_metadata=counted(0, 2))) == "-six"
    reading.add(AIMessageChunk(content="", response_metadata={"stop_reason": "end_turn"}))
    assert (reading.text, reading.finished) == ("Twenty-six", True)
    assert usage((), reading, Price(1_000_000, 2_000_000)) == Usage(1, 7, 3, 13.0)


def test_tokens_of_an_interrupted_reply_are_estimated() -> None:
    reading = ReplyReader(100)
    reading.add(AIMessageChunk(content="Twenty-six days.", usage_metadata=counted(7, 1)))
    assert usage((Message("user", "x" * 40),), reading, Price(0, 0)) == Usage(1, 10, 4, 0.0)


def test_a_reply_is_limited_to_sixteen_characters_per_token() -> None:
    reading = ReplyReader(2)
    assert reading.add(AIMessageChunk(content="a" * 20)) == "a" * 20
    assert not reading.cut
    assert reading.add(AIMessageChunk(content="b" * 20, response_metadata={"finish_reason": "stop"})) == "b" * 12
    assert (reading.cut, reading.finished, len(reading.text)) == (True, False, 32)
    assert reading.add(AIMessageChunk(content="more")) == ""
