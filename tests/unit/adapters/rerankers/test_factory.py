"""Which reranker the settings name, and that it is loaded once, when it is first used."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dtrag.adapters.model_files import SUMS
from dtrag.adapters.rerankers import cross_encoder as fastembed
from dtrag.adapters.rerankers.models import PUBLISHED, RerankerOnDemand, choose
from dtrag.errors import InvalidInput, ModelDamaged, ModelNotFound
from dtrag.ports import Reranker
from dtrag.settings import Settings
from tests.contract.reranker import QUERY, TEXTS, RerankerContract, scored
from tests.unit.adapters.rerankers.tiny import write_model

SMALL, ANY_LANGUAGE = PUBLISHED[0], PUBLISHED[-1]


@pytest.fixture(autouse=True)
def without_fastembed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastembed, "installed", lambda: False)


def _settings(folder: Path, reranker: str = "auto") -> Settings:
    return Settings(data_dir=folder, reranker=reranker)


@pytest.fixture
def reranker(tmp_path: Path) -> Reranker:
    write_model(tmp_path / "models" / SMALL.name)
    chosen = choose(_settings(tmp_path))
    assert chosen is not None
    return chosen


class TestOnDemand(RerankerContract):
    """The whole contract for the model that `auto` finds."""


def test_none_means_no_reranker_even_with_a_model(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / SMALL.name)
    assert choose(_settings(tmp_path, "none")) is None


def test_auto_uses_the_first_available_model(tmp_path: Path) -> None:
    assert choose(_settings(tmp_path)) is None
    write_model(tmp_path / "models" / ANY_LANGUAGE.name)
    found = choose(_settings(tmp_path))
    assert isinstance(found, RerankerOnDemand)
    assert (found.id, found.languages) == (ANY_LANGUAGE.name, frozenset({"*"}))
    write_model(tmp_path / "models" / SMALL.name)
    found = choose(_settings(tmp_path))
    assert isinstance(found, RerankerOnDemand)
    assert (found.id, found.languages) == (SMALL.name, frozenset({"en"}))


def test_auto_ignores_embedders_and_incomplete_models(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "some-embedder")
    (write_model(tmp_path / "models" / SMALL.name) / "tokenizer.json").unlink()
    assert choose(_settings(tmp_path)) is None


def test_the_model_folder_is_searched(tmp_path: Path) -> None:
    write_model(tmp_path / "elsewhere" / SMALL.name)
    found = choose(Settings(data_dir=tmp_path / "data", model_dir=tmp_path / "elsewhere"))
    assert found is not None
    assert found.id == SMALL.name


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_a_known_model_without_files_explains_how_to_download_it(tmp_path: Path, model: object) -> None:
    name = getattr(model, "name")  # noqa: B009 - a parameter of any kind
    with pytest.raises(ModelNotFound, match=f"dtrag models pull {name}"):
        choose(_settings(tmp_path, name))


@pytest.mark.parametrize("name", ["", "Auto", "ms-marco", "cohere/rerank", "../nothing"])
def test_an_unknown_name_is_refused_with_the_alternatives(tmp_path: Path, name: str) -> None:
    (tmp_path / "models").mkdir()
    known = rf"Known: auto, none, {SMALL.name}, .*model\.onnx and tokenizer\.json.*pip install 'dtrag\[fastembed\]'"
    with pytest.raises(InvalidInput, match=known):
        choose(_settings(tmp_path, name))


def test_a_custom_name_is_a_folder_in_the_model_folder(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "our" / "reranker")
    found = choose(_settings(tmp_path, "our/reranker"))
    assert isinstance(found, RerankerOnDemand)
    assert (found.id, found.languages) == ("our/reranker", frozenset({"*"}))
    assert scored(found, QUERY, TEXTS)[1] > 0.9


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "somewhere" / "tuned")
    found = choose(_settings(tmp_path / "data", str(folder)))
    assert found is not None
    assert found.id == "tuned"
    assert scored(found, QUERY, TEXTS)[1] > 0.9


def test_a_folder_after_dir_needs_no_usual_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_model(tmp_path / "tuned")
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    for name in ("dir:tuned", f"dir:{folder}", f"dir:{folder}/onnx/model_quantized.onnx"):
        chosen = choose(_settings(tmp_path / "data", name))
        assert chosen is not None
        assert (chosen.id, chosen.languages) == ("dir:tuned", frozenset({"*"}))
        assert scored(chosen, QUERY, TEXTS)[1] > 0.9
    with pytest.raises(ModelNotFound, match="there is no"):
        choose(_settings(tmp_path / "data", "dir:nothing"))


def test_a_relative_folder_comes_after_the_model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / SMALL.name)
    found = choose(_settings(tmp_path / "data", SMALL.name))
    assert found is not None
    assert found.id == "ms-marco-MiniLM-L-6-v2"
    write_model(tmp_path / "data" / "models" / SMALL.name)
    found = choose(_settings(tmp_path / "data", SMALL.name))
    assert found is not None
    assert found.id == SMALL.name


def test_a_folder_without_a_model_explains_the_expected_files(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"there is no model\.onnx in it.*with its tokenizer\.json"):
        choose(_settings(tmp_path, str(tmp_path)))


def test_choosing_opens_no_file_and_a_damaged_model_is_noticed_at_its_first_use(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "models" / SMALL.name)
    (folder / SUMS).write_text(f"{'0' * 64}  model.onnx\n")
    found = choose(_settings(tmp_path))
    assert found is not None
    for _ in range(2):
        with pytest.raises(ModelDamaged, match=rf"model\.onnx.*dtrag models pull {SMALL.name}"):
            found.score(QUERY, TEXTS, math.inf)
    (folder / SUMS).unlink()
    assert scored(found, QUERY, TEXTS)[1] > 0.9


def test_it_is_loaded_once_whichever_threads_come_first(tmp_path: Path, reranker: Reranker) -> None:
    loads: list[str] = []

    def load() -> Reranker:
        loads.append(threading.current_thread().name)
        time.sleep(0.02)  # long enough for the other threads to arrive
        return reranker

    shared = RerankerOnDemand("tiny", frozenset({"*"}), load)
    assert loads == []
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda _: scored(shared, QUERY, TEXTS), range(8)))
    assert len(loads) == 1
    assert scores == [scored(reranker, QUERY, TEXTS)] * 8
