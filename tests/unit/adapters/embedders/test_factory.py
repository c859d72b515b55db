"""Which embedder the settings name, and that it is loaded once, when it is first used."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dtrag.adapters.embedders import minilm
from dtrag.adapters.embedders.factory import EMBEDDERS, EmbedderOnDemand, choose
from dtrag.errors import InvalidInput, ModelNotFound
from dtrag.ports import Embedder
from dtrag.settings import Settings
from tests.toy import ToyEmbedder

here = pytest.mark.skipif(not minilm.available(Settings(data_dir=Path("nowhere"))), reason="no model is installed")


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "locate", lambda model, settings: None)


def _settings(folder: Path, embedder: str) -> Settings:
    return Settings(data_dir=folder, embedder=embedder)


def test_none_means_no_model(tmp_path: Path) -> None:
    assert choose(_settings(tmp_path, "none")) is None


@pytest.mark.parametrize("name", ["", "MiniLM", "minilm ", "open", "../minilm"])
def test_an_unknown_embedder_is_refused_with_the_known_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="Known: auto, none, minilm"):
        choose(_settings(tmp_path, name))


@pytest.mark.usefixtures("absent")
def test_without_weights_auto_means_no_embedder_and_a_named_one_is_an_error(tmp_path: Path) -> None:
    assert choose(_settings(tmp_path, "auto")) is None
    for name in EMBEDDERS:
        with pytest.raises(ModelNotFound, match=f"dtrag models pull {name}"):
            choose(_settings(tmp_path, name))


@here
@pytest.mark.parametrize("name", ["auto", "minilm"])
def test_properties_are_declared_before_the_model_is_loaded(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loading(settings: Settings) -> Embedder:
        raise AssertionError("loaded although nothing was embedded")

    monkeypatch.setattr(minilm, "create", loading)
    embedder = choose(_settings(tmp_path, name))
    assert isinstance(embedder, Embedder)
    declared = minilm.MiniLM
    assert (embedder.id, embedder.dim, embedder.max_tokens) == (declared.id, declared.dim, declared.max_tokens)
    assert embedder.languages == declared.languages
    with pytest.raises(AssertionError, match="loaded although"):
        embedder.embed_queries(["kettle"])


def test_it_is_loaded_once_whichever_threads_come_first() -> None:
    loads: list[str] = []

    def load() -> Embedder:
        loads.append(threading.current_thread().name)
        time.sleep(0.02)  # long enough for the other threads to arrive
        return ToyEmbedder()

    embedder = EmbedderOnDemand(minilm.MiniLM, load)
    assert loads == []
    with ThreadPoolExecutor(4) as pool:
        vectors = list(pool.map(embedder.embed_queries, [["kettle"]] * 8))
    assert len(loads) == 1
    expected = ToyEmbedder().embed_documents(["kettle"])
    for vector in [*vectors, embedder.embed_documents(["kettle"])]:
        np.testing.assert_array_equal(vector, expected)


def test_a_failed_load_is_repeated() -> None:
    second = ToyEmbedder()
    failures = [ModelNotFound(name="minilm")]

    def load() -> Embedder:
        if failures:
            raise failures.pop()
        return second

    embedder = EmbedderOnDemand(minilm.MiniLM, load)
    with pytest.raises(ModelNotFound):
        embedder.embed_queries(["kettle"])
    assert embedder.embed_queries(["kettle"]).shape == (1, 8)
    assert embedder.loaded() is second
