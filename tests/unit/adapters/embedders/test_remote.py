"""Embeddings over the OpenAI protocol, by a local server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dtrag.adapters.embedders.factory import choose
from dtrag.adapters.embedders.remote import BATCH, MAX_TOKENS, OpenAIEmbedder
from dtrag.errors import EmbedderFailed, InvalidInput
from dtrag.ports import Embedder
from dtrag.settings import Settings
from tests.contract.embedder import SemanticEmbedderContract
from tests.model_server import ModelServer


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as serving:
        yield serving


def _settings(server: ModelServer, **more: Any) -> Settings:
    return Settings.load(environ={}, **({"embedder": "openai", "embed_base_url": server.url} | more))


@pytest.fixture(scope="module")
def embedder(server: ModelServer) -> Embedder:
    chosen = choose(_settings(server))
    assert chosen is not None
    return chosen


class TestContract(SemanticEmbedderContract):
    """Over HTTP."""


def test_the_model_of_the_acceptance_text_is_the_default(embedder: Embedder) -> None:
    assert embedder.id.startswith("openai-text-embedding-3-small@")
    assert (embedder.dim, embedder.languages) == (1536, frozenset({"*"}))


def test_texts_are_sent_in_batches_with_the_key_of_that_server(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    chosen = choose(_settings(server, embed_api_key="of-this-server"))
    assert chosen is not None
    server.requests.clear()
    server.headers.clear()
    texts = [f"text {number}" for number in range(BATCH + 1)]
    vectors = chosen.embed_documents(texts)
    assert [len(request["input"]) for request in server.requests] == [BATCH, 1]
    assert {headers["authorization"] for headers in server.headers} == {"Bearer of-this-server"}
    np.testing.assert_array_equal(vectors[-1], chosen.embed_queries([texts[-1]])[0])
    without = choose(_settings(server))
    assert without is not None
    without.embed_queries(["text"])
    assert "sk-of-openai" not in server.headers[-1]["authorization"]
    assert max(len(text.encode()) for text in server.requests[-1]["input"]) <= MAX_TOKENS


@pytest.mark.parametrize("fault", ["500", "401"])
def test_errors_do_not_contain_the_key(fault: Any) -> None:
    with ModelServer(fault=fault) as server:
        failing = OpenAIEmbedder("text-embedding-3-small", address=server.url, key="secret-key")
        with pytest.raises(EmbedderFailed, match=f"answered {fault}") as error:
            failing.embed_queries(["text"])
    assert "secret-key" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"embedder": "openai:unknown"}, "Models of openai: text-embedding-3-small"),
        ({"embed_base_url": "file:///etc/passwd"}, "must be an address"),
    ],
)
def test_unknown_models_are_refused(server: ModelServer, more: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        choose(_settings(server, **more))


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InvalidInput, match="DTRAG_EMBED_API_KEY or OPENAI_API_KEY"):
        choose(Settings.load(environ={}, embedder="openai"))
