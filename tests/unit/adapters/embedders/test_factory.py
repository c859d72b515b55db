"""Which embedder the settings name, and that it is loaded once, when it is first used."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dtrag.adapters.embedders import bert, models
from dtrag.adapters.embedders.bert import MiniLM
from dtrag.adapters.embedders.e5 import E5
from dtrag.adapters.embedders.factory import LOCAL, EmbedderOnDemand, choose
from dtrag.delivery.cli import checks
from dtrag.errors import InvalidInput, ModelNotFound
from dtrag.ports import Embedder, model_for, speaks
from dtrag.settings import Settings
from tests.toy import ToyEmbedder

here = pytest.mark.skipif(
    not all(model.available(Settings(data_dir=Path("nowhere"))) for model in (MiniLM, E5)),
    reason="the models are not installed",
)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bert, "locate", lambda model, settings: None)


def _settings(folder: Path, embedder: str) -> Settings:
    return Settings(data_dir=folder, embedder=embedder)


def test_none_means_no_model(tmp_path: Path) -> None:
    assert choose(_settings(tmp_path, "none")) is None


@pytest.mark.parametrize("name", ["", "MiniLM", "minilm ", "open", "../minilm"])
def test_an_unknown_embedder_is_refused_with_the_known_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="Known: auto, none, minilm, e5"):
        choose(_settings(tmp_path, name))


@pytest.mark.usefixtures("absent")
def test_without_weights_auto_means_no_embedder_and_a_named_one_is_an_error(tmp_path: Path) -> None:
    assert choose(_settings(tmp_path, "auto")) is None
    for name in LOCAL.keys() - {"auto"}:
        with pytest.raises(ModelNotFound, match=f"dtrag models pull {'minilm' if name == 'minilm' else 'e5'}"):
            choose(_settings(tmp_path, name))


@here
@pytest.mark.parametrize(("name", "declared"), [("minilm", MiniLM), ("e5", E5)])
def test_properties_are_declared_before_the_model_is_loaded(
    tmp_path: Path, name: str, declared: type[bert.BertEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def loading(settings: Settings) -> Embedder:
        raise AssertionError("loaded although nothing was embedded")

    monkeypatch.setattr(declared, "create", loading)
    embedder = choose(_settings(tmp_path, name))
    assert isinstance(embedder, Embedder)
    assert (embedder.id, embedder.dim, embedder.max_tokens) == (declared.id, declared.dim, declared.max_tokens)
    assert embedder.languages == declared.languages
    assert (embedder.floor, embedder.decides) == (declared.floor, declared.decides)
    with pytest.raises(AssertionError, match="loaded although"):
        embedder.embed_queries(["kettle"])


def test_it_is_loaded_once_whichever_threads_come_first() -> None:
    loads: list[str] = []

    def load() -> Embedder:
        loads.append(threading.current_thread().name)
        time.sleep(0.02)  # long enough for the other threads to arrive
        return ToyEmbedder()

    embedder = EmbedderOnDemand(MiniLM, load)
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

    embedder = EmbedderOnDemand(MiniLM, load)
    with pytest.raises(ModelNotFound):
        embedder.embed_queries(["kettle"])
    assert embedder.embed_queries(["kettle"]).shape == (1, 8)
    assert embedder.loaded() is second


@here
def test_by_language_routes_english_and_all_other_texts(tmp_path: Path) -> None:
    embedder = choose(_settings(tmp_path, "auto"))
    assert embedder is not None
    english, others = (model_for(embedder, code) for code in ("en", "und"))
    assert english is not None
    assert others is not None
    assert (english.id, others.id) == (MiniLM.id, E5.id)
    assert model_for(embedder, "ko") is others
    assert embedder.id == f"{MiniLM.id}+{E5.id}"


@here
@pytest.mark.parametrize(("missing", "used", "codes"), [(E5, MiniLM, {"en"}), (MiniLM, E5, {"en", "ko", "und"})])
def test_one_of_two_models_is_used_alone_where_the_other_is_missing(
    tmp_path: Path,
    missing: type[bert.BertEmbedder],
    used: type[bert.BertEmbedder],
    codes: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(missing, "available", lambda settings: False)
    embedder = choose(_settings(tmp_path, "auto"))
    assert embedder is not None
    assert embedder.id == used.id
    assert {code for code in ("en", "ko", "und") if speaks(embedder, code)} == codes


@here
def test_doctor_reports_each_model_that_the_setting_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data_dir=tmp_path, embedder="auto")
    folder = tmp_path / "models" / "e5"
    folder.mkdir(parents=True)
    (folder / "e5-small-q4.bin").write_bytes(b"half")
    minilm, e5 = (check for check in checks._models(settings) if check.name == "embedder")
    assert (minilm.state, e5.state, e5.advice) == ("ok", "fail", "dtrag models pull e5")
    assert "is damaged" in e5.detail
    assert [check.detail for check in checks._models(_settings(tmp_path, "minilm"))][1:] == [minilm.detail]
    (folder / "e5-small-q4.bin").unlink()
    folder.rmdir()
    monkeypatch.setattr(models, "REPACKED", "no_such_package_here")
    monkeypatch.setattr(models, "MODELS", (models.MINILM, replace(models.E5_SMALL, package="no_such_package_here")))
    minilm, e5 = (check for check in checks._models(settings) if check.name == "embedder")
    assert (minilm.state, e5.state) == ("ok", "warn")
    assert e5.detail == "e5 is not installed: minilm is used alone."
