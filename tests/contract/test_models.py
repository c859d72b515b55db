"""The models of `dtrag.testing` keep the contracts of models."""

from __future__ import annotations

import pytest

from dtrag.core.chat import Message
from dtrag.errors import LanguageModelFailed
from dtrag.ports import ChatModel, Embedder, Reranker
from dtrag.testing import HashEmbedder, OverlapReranker, ScriptedModel
from tests.contract.chat_model import QUESTION, TEXT, ChatModelContract, call, modes
from tests.contract.embedder import EmbedderContract
from tests.contract.reranker import RerankerContract


class TestHashEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashEmbedder()


class TestOverlapReranker(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return OverlapReranker()


class TestScriptedModel(ChatModelContract):
    @pytest.fixture
    def model(self) -> ChatModel:
        return ScriptedModel([TEXT])

    @pytest.fixture
    def failing_model(self) -> ChatModel:
        return ScriptedModel([RuntimeError("it is off.")])

    @modes
    async def test_replies_come_in_their_order_and_the_last_stays(self, streaming: bool) -> None:
        failure = LanguageModelFailed(model="scripted:model", reason="it was busy.")
        model = ScriptedModel(["one", failure, "three"])
        assert (await call(model, streaming))[0].text == "one"
        with pytest.raises(LanguageModelFailed, match="it was busy"):
            await call(model, streaming)
        assert model.problem
        assert [(await call(model, streaming))[0].text for _ in range(2)] == ["three", "three"]
        assert model.problem == ""
        assert model.requests == [QUESTION] * 4

    async def test_a_function_writes_the_replies(self) -> None:
        model = ScriptedModel(lambda messages: messages[-1].content.upper())
        reply, _ = await call(model, False, (Message("user", "so"),))
        assert reply.text == "SO"

    async def test_a_long_reply_is_cut(self) -> None:
        reply, _ = await call(ScriptedModel(["one two three"]), False, max_tokens=2)
        assert (reply.text, reply.finished) == ("one two", False)
