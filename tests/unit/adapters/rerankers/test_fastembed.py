"""Models in fastembed's cache, with the real fastembed where it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dtrag.adapters.rerankers import cross_encoder as fastembed
from dtrag.adapters.rerankers.models import PUBLISHED, choose
from dtrag.errors import InvalidInput, ModelNotFound
from dtrag.ports import Reranker
from dtrag.settings import Settings
from tests.contract.reranker import QUERY, TEXTS, RerankerContract, scored
from tests.unit.adapters.rerankers.hub import COMMIT
from tests.unit.adapters.rerankers.tiny import SPECIAL, write_model

SMALL = PUBLISHED[0]

pytestmark = pytest.mark.skipif(not fastembed.installed(), reason="needs dtrag[fastembed]")


def _fill(cache: Path) -> None:
    """fastembed's cache with the tiny model under the name of a real one."""
    home = cache / f"models--{SMALL.repository.replace('/', '--')}"
    snapshot = write_model(home / "snapshots" / COMMIT)
    (snapshot / "onnx").mkdir()
    shutil.move(snapshot / "model.onnx", snapshot / SMALL.weights)
    tokens = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    (snapshot / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 512, **tokens}))
    (snapshot / "special_tokens_map.json").write_text(json.dumps(tokens))
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "fastembed"
    folder.mkdir()
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(folder))
    return folder


@pytest.fixture
def reranker(cache: Path, tmp_path: Path) -> Reranker:
    _fill(cache)
    found = choose(Settings(data_dir=tmp_path / "data", reranker=SMALL.name))
    assert isinstance(found, fastembed.FastembedReranker)
    return found


class TestFastembed(RerankerContract):
    """The whole contract."""


def test_it_resolves_the_name_of_the_model(reranker: Reranker, tmp_path: Path) -> None:
    assert reranker.id == SMALL.repository
    by_their_name = choose(Settings(data_dir=tmp_path / "data", reranker=SMALL.repository))
    assert by_their_name is not None
    assert scored(by_their_name, QUERY, TEXTS) == scored(reranker, QUERY, TEXTS)


def test_the_model_folder_comes_first(reranker: Reranker, tmp_path: Path) -> None:
    write_model(tmp_path / "data" / "models" / SMALL.name)
    found = choose(Settings(data_dir=tmp_path / "data", reranker=SMALL.name))
    assert not isinstance(found, fastembed.FastembedReranker)
    assert found is not None
    assert scored(found, QUERY, TEXTS) == pytest.approx(scored(reranker, QUERY, TEXTS), abs=1e-6)


def test_auto_does_not_look_into_the_cache(cache: Path, tmp_path: Path) -> None:
    _fill(cache)
    assert choose(Settings(data_dir=tmp_path / "data")) is None


def test_a_model_that_is_not_in_the_cache_is_not_fetched(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=f"dtrag models pull {SMALL.name}"):
        choose(Settings(data_dir=tmp_path, reranker=SMALL.name))
    with pytest.raises(ModelNotFound, match="FASTEMBED_CACHE_PATH"):
        choose(Settings(data_dir=tmp_path, reranker="jinaai/jina-reranker-v1-tiny-en"))


def test_non_commercial_models_are_refused(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"licensed cc-by-nc-4\.0, for non-commercial use only"):
        choose(Settings(data_dir=tmp_path, reranker="jinaai/jina-reranker-v2-base-multilingual"))


def test_an_unknown_name_is_refused(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no reranker 'cohere/rerank'") as caught:
        choose(Settings(data_dir=tmp_path, reranker="cohere/rerank"))
    assert "pip install" not in str(caught.value)


def test_it_opens_no_socket(cache: Path, tmp_path: Path) -> None:
    _fill(cache)
    program = f"""
import math, sys
from pathlib import Path
sockets, outward = [], ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: sockets.append(args) if event in outward else None)
from dtrag.adapters.rerankers.models import choose
from dtrag.settings import Settings
model = choose(Settings(data_dir=Path({str(tmp_path)!r}), reranker={SMALL.name!r}))
print(len(model.score("library", ["library", "pump"], math.inf)), sockets)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stdout == "2 []\n", done.stderr
