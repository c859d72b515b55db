"""The embedder with a cache: the same vectors, computed once, within its memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dtrag.adapters.embedders.bert import MiniLM
from dtrag.adapters.embedders.factory import CachedEmbedder
from dtrag.core.documents import Vector
from dtrag.ports import Embedder
from dtrag.settings import Settings
from tests.contract.embedder import SemanticEmbedderContract
from tests.toy import ToyEmbedder


class Counting(ToyEmbedder):
    """Counts the texts that it embeds; documents and queries differ."""

    texts: tuple[str, ...] = ()

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        object.__setattr__(self, "texts", (*self.texts, *texts))
        return super().embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        return self.embed_documents([f"query {text}" for text in texts])


class Slow(Counting):
    """Takes as long as a model."""

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        time.sleep(0.05)
        return super().embed_documents(texts)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return CachedEmbedder(MiniLM.create(Settings(data_dir=tmp_path_factory.mktemp("data"))))


class TestCachedEmbedder(SemanticEmbedderContract):
    """The whole contract."""


def test_a_text_is_embedded_once_and_has_the_same_vector() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting)
    first = cached.embed_documents(["valve", "boiler", "valve"])
    again = cached.embed_documents(["boiler", "kettle", "valve"])
    assert counting.texts == ("valve", "boiler", "kettle")
    np.testing.assert_array_equal(first, ToyEmbedder().embed_documents(["valve", "boiler", "valve"]))
    np.testing.assert_array_equal(again, ToyEmbedder().embed_documents(["boiler", "kettle", "valve"]))


def test_a_question_of_several_threads_is_embedded_once() -> None:
    """The search and the case memory ask for it side by side."""
    counting = Slow()
    cached = CachedEmbedder(counting)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(cached.embed_queries, [["valve"]] * 4))
    assert counting.texts == ("query valve",)


def test_queries_and_documents_are_cached_separately() -> None:
    cached = CachedEmbedder(Counting())
    [as_document] = cached.embed_documents(["valve"])
    [as_query] = cached.embed_queries(["valve"])
    assert not np.array_equal(as_document, as_query)


def test_the_oldest_vectors_are_evicted_first() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting, cache_bytes=2 * (4 * counting.dim + 16))
    for text in ("valve", "boiler", "valve", "kettle", "valve", "boiler"):
        cached.embed_documents([text])
    assert counting.texts == ("valve", "boiler", "kettle", "boiler")


def test_vectors_that_are_not_finite_are_not_cached() -> None:
    class Failing(Counting):
        def embed_documents(self, texts: Sequence[str]) -> Vector:
            return super().embed_documents(texts) * (np.nan if len(self.texts) < 2 else 1.0)

    cached = CachedEmbedder(Failing())
    assert np.isnan(cached.embed_documents(["valve"])).all()
    assert np.isfinite(cached.embed_documents(["valve"])).all()
