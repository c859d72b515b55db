"""An embedder from a folder: the contract, the shipped models as folders, pooling, graphs, and files that are wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from tokenizers import Tokenizer

from dtrag.adapters.embedders.bert import BertEmbedder, MiniLM
from dtrag.adapters.embedders.e5 import E5
from dtrag.adapters.embedders.factory import CachedEmbedder, choose
from dtrag.adapters.embedders.folder import FolderEmbedder
from dtrag.errors import InvalidInput, ModelDamaged
from dtrag.ports import Embedder, Tokenizing
from dtrag.settings import Settings
from tests.contract.embedder import ODD, TEXTS, EmbedderContract, SemanticEmbedderContract
from tests.unit.adapters.embedders.folders import tiny_table, write, write_e5, write_minilm, write_tiny

KOREAN = ("휴학은 최대 몇 학기까지 할 수 있나요?", "제12조(휴학기간) ① 휴학기간은 1회에 1학기 또는 1년으로 한다.")
TEXT = "the library opens at nine"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("data"), embed_threads=2)


@pytest.fixture(scope="module")
def minilm(settings: Settings) -> Path:
    return write_minilm(settings.data_dir / "minilm", settings)


@pytest.fixture(scope="module")
def loaded(minilm: Path) -> Embedder:
    return FolderEmbedder(f"dir:{minilm}", threads=2)


class TestMiniLMInAFolder(SemanticEmbedderContract):
    @pytest.fixture
    def embedder(self, loaded: Embedder) -> Embedder:
        return loaded


class TestTinyFolder(EmbedderContract):
    @pytest.fixture
    def embedder(self, tmp_path: Path) -> Embedder:
        return FolderEmbedder(str(write_tiny(tmp_path, pooling="weightedmean_tokens")))


def _same(folder: Path, model: type[BertEmbedder], settings: Settings, floor: float) -> None:
    """One folder, one shipped model: equal vectors of questions and passages."""
    embedder, own = FolderEmbedder(f"dir:{folder}"), model.create(settings)
    texts = [*TEXTS, *KOREAN, ODD["a long text"]]
    for ours, theirs in (
        (embedder.embed_documents(texts), own.embed_documents(texts)),
        (embedder.embed_queries(texts), own.embed_queries(texts)),
    ):
        assert np.abs(ours - theirs).max() <= 1e-4
    assert isinstance(embedder, Tokenizing)
    assert embedder.unknown_tokens(KOREAN)[0] == own.unknown_tokens(KOREAN)[0]
    assert embedder.floor == pytest.approx(floor, abs=0.05)
    assert (embedder.dim, embedder.max_tokens, embedder.languages, embedder.decides) == (
        384,
        256,
        frozenset("*"),
        False,
    )


def test_the_shipped_models_as_folders_give_the_same_vectors(settings: Settings, minilm: Path) -> None:
    _same(minilm, MiniLM, settings, MiniLM.floor)
    e5 = write_e5(settings.data_dir / "e5", settings)  # with prompts, and its weights in a second file
    _same(e5, E5, settings, E5.floor)
    (e5 / "model.onnx_data").unlink()
    with pytest.raises(ModelDamaged, match=r"model\.onnx_data is missing.*copy it beside"):
        FolderEmbedder(str(e5))
    shutil.rmtree(e5)


def test_a_vector_is_that_of_its_text_alone(minilm: Path) -> None:
    embedder = FolderEmbedder(str(minilm), threads=2)
    crowd = embedder.embed_documents([*TEXTS, *ODD.values()])
    np.testing.assert_array_equal(crowd[: len(TEXTS)], np.concatenate([embedder.embed_queries([t]) for t in TEXTS]))


@pytest.mark.parametrize(
    "pooling", ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
)
def test_pooling_is_that_of_the_files(tmp_path: Path, pooling: str) -> None:
    folder = write_tiny(tmp_path, pooling=pooling)
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids
    tokens = tiny_table()[ids] + 1  # the graph adds the attention mask
    count = len(ids)
    expected = {
        "cls_token": tokens[0],
        "mean_tokens": tokens.sum(axis=0) / count,
        "max_tokens": np.array([max(column) for column in tokens.T]),
        "mean_sqrt_len_tokens": tokens.sum(axis=0) / count**0.5,
        "weightedmean_tokens": sum((place + 1) * token for place, token in enumerate(tokens)) / sum(range(count + 1)),
        "lasttoken": tokens[count - 1],
    }[pooling]
    (vector,) = FolderEmbedder(str(folder)).embed_documents([TEXT])
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


def test_what_a_graph_takes_is_what_it_is_fed(tmp_path: Path) -> None:
    every = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    folder = write_tiny(tmp_path / "all", inputs=every, kind=TensorProto.INT32, pooling="lasttoken")
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids
    expected = tiny_table()[ids[-1]] + 1 + 0 + len(ids) - 1
    (vector,) = FolderEmbedder(str(folder)).embed_documents([TEXT])
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)
    folder = write_tiny(tmp_path / "more", inputs=("input_ids", "past_key_values"))
    with pytest.raises(ModelDamaged, match=r"it takes input_ids, past_key_values.*export the model without"):
        FolderEmbedder(str(folder)).load()


@pytest.mark.parametrize(("output", "rank"), [("token_embeddings", 3), ("sentence_embedding", 2), ("anything", 3)])
def test_outputs_are_known_by_their_names(tmp_path: Path, output: str, rank: int) -> None:
    usual = FolderEmbedder(str(write_tiny(tmp_path / "usual"))).embed_documents([TEXT])
    folder = write_tiny(tmp_path / "other", output=output, rank=rank)
    if rank == 2:  # what pools is the graph: the folder need not say how
        shutil.rmtree(folder / "1_Pooling")
    np.testing.assert_allclose(FolderEmbedder(str(folder)).embed_documents([TEXT]), usual, atol=1e-6)


def test_prompts_are_those_of_the_files(tmp_path: Path) -> None:
    plain = FolderEmbedder(str(write_tiny(tmp_path / "plain")))
    prompted = write_tiny(tmp_path / "prompts", prompts={"query": "query : ", "passage": "passage : "})
    embedder = FolderEmbedder(str(prompted))
    np.testing.assert_array_equal(embedder.embed_queries([TEXT]), plain.embed_queries([f"query : {TEXT}"]))
    np.testing.assert_array_equal(embedder.embed_documents([TEXT]), plain.embed_documents([f"passage : {TEXT}"]))
    write(prompted / "config_sentence_transformers.json", {"prompts": {"any": "valve "}, "default_prompt_name": "any"})
    write(prompted / "sentence_bert_config.json", {"do_lower_case": True, "max_seq_length": 4})
    embedder = FolderEmbedder(str(prompted))
    np.testing.assert_array_equal(embedder.embed_queries(["PUMP"]), plain.embed_queries(["valve pump"]))
    assert embedder.max_tokens == 4


def test_a_prompt_does_not_push_a_long_text_past_the_limit(tmp_path: Path) -> None:
    write(write_tiny(tmp_path) / "config.json", {"hidden_size": 8, "model_type": "xlm-roberta", "pad_token_id": 1,
                                                 "max_position_embeddings": 18})  # fmt: skip
    embedder = FolderEmbedder(str(tmp_path))
    assert embedder.max_tokens == 16
    head = "pump " * 20
    np.testing.assert_array_equal(*embedder.embed_documents([head + "valve", head + "nine"]))


def test_the_identity_is_that_of_the_contents(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "first")
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    identity = FolderEmbedder(str(folder)).id
    (moved / "README.md").write_text("about the model")
    assert FolderEmbedder(f"dir:{moved}").id == identity
    changed: dict[str, dict[str, Any]] = {
        "other weights": {"seed": 1},
        "another pooling": {"pooling": "cls_token"},
        "a prompt": {"prompts": {"query": "query : "}},
        "another limit": {"most": 100},
    }
    others = {FolderEmbedder(str(write_tiny(tmp_path / name, **change))).id for name, change in changed.items()}
    assert len(others | {identity}) == 5
    embedder = FolderEmbedder(str(folder))
    write_tiny(folder, seed=2)
    with pytest.raises(ModelDamaged, match="files have changed since this program started"):
        embedder.embed_queries([TEXT])


def test_the_graph_is_the_usual_one_or_the_largest_or_the_named_one(tmp_path: Path) -> None:
    write_tiny(tmp_path, name="onnx/model_quantized.onnx", seed=1)
    write_tiny(tmp_path, name="onnx/model_int8.onnx", seed=2)
    large = tmp_path / "onnx" / "model_int8.onnx"
    model = onnx.load(str(large))
    model.doc_string = "more bytes" * 100
    onnx.save(model, str(large))

    def weights_of(place: Path) -> int:
        return FolderEmbedder(str(place))._files.weights.name.count("int8")

    assert weights_of(tmp_path) == 1
    assert weights_of(tmp_path / "onnx" / "model_quantized.onnx") == 0
    write_tiny(tmp_path, name="onnx/model.onnx")
    assert FolderEmbedder(str(tmp_path))._files.weights.name == "model.onnx"


def _without(folder: Path, name: str) -> None:
    (folder / name).unlink()


USUAL = "1_Pooling/config.json"
WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no graph": (lambda f: _without(f, "model.onnx"), r"no model\.onnx in it.*export the model to ONNX"),
    "no tokenizer": (lambda f: _without(f, "tokenizer.json"), r"tokenizer\.json is missing: save it"),
    "no pooling": (lambda f: _without(f, "1_Pooling/config.json"), r"1_Pooling/config\.json is missing.*add it with"),
    "no dimensions": (
        lambda f: [write(f / name, {"pooling_mode_mean_tokens": True}) for name in ("config.json", USUAL)],
        r"config\.json has no hidden_size.*add one",
    ),
    "two ways of pooling": (
        lambda f: write(f / "1_Pooling/config.json", {"pooling_mode_lasttoken": True, "pooling_mode_cls_token": True}),
        r"1_Pooling/config\.json names lasttoken, cls_token of pooling: it must name one",
    ),
    "other dimensions": (
        lambda f: write(f / "1_Pooling/config.json", {"word_embedding_dimension": 9, "pooling_mode": "mean"}),
        r"its files state vectors of 9 numbers, but the graph gives \(8,\)",
    ),
    "a prompt left out": (
        lambda f: write(f / "1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}),
        "include_prompt",
    ),
    "a dense layer": (
        lambda f: write(f / "modules.json", [{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]),
        r"modules\.json names Dense.*no output sentence_embedding",
    ),
    "broken JSON": (lambda f: (f / "modules.json").write_text("{"), r"modules\.json is no valid JSON"),
    "half a graph": (
        lambda f: (f / "model.onnx").write_bytes((f / "model.onnx").read_bytes()[:400]),
        "cannot be used",
    ),
    "weights elsewhere": (
        lambda f: (f / "model.onnx").write_bytes(b"\x0a\x08location\x12\x09../secret"),
        r"keeps weights outside of its folder, in \.\./secret",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_files_are_named_with_advice(tmp_path: Path, kind: str) -> None:
    damage, message = WRONG[kind]
    folder = write_tiny(tmp_path)
    damage(folder)
    with pytest.raises(ModelDamaged, match=message) as caught:
        FolderEmbedder(f"dir:{folder}").load()
    assert str(folder) in str(caught.value)


def test_the_setting_chooses_it(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "my model")
    settings = Settings(data_dir=tmp_path, embedder=f"dir:{folder}")
    embedder = choose(settings)
    assert embedder is not None and embedder.languages == {"*"}
    cached = CachedEmbedder(embedder)
    assert cached.floor == embedder.floor
    np.testing.assert_array_equal(cached.embed_queries([TEXT]), embedder.embed_queries([TEXT]))
    limited = choose(dataclasses.replace(settings, embed_languages="ko, en"))
    assert limited is not None and limited.languages == {"ko", "en"}
    with pytest.raises(InvalidInput, match="DTRAG_EMBED_LANGUAGES"):
        choose(dataclasses.replace(settings, embed_languages="Korean"))
    with pytest.raises(ModelDamaged, match="there is no model"):
        choose(dataclasses.replace(settings, embedder=f"dir:{tmp_path}"))


def test_neither_model_can_open_a_socket(tmp_path: Path) -> None:
    """With a filter of the kernel (seccomp): a process that creates a socket gets an error, in C too."""
    from tests.unit.adapters.rerankers.tiny import write_model

    program = f"""
import ctypes, math, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
SOCKET = {{"x86_64": (41, 0xC000003E), "aarch64": (198, 0xC00000B7)}}[__import__("platform").machine()]
def step(code, yes, no, k):
    return struct.pack("HBBI", code, yes, no, k)
steps = step(0x20, 0, 0, 0), step(0x15, 0, 1, SOCKET[0]), step(0x06, 0, 0, 0x00050001), step(0x06, 0, 0, 0x7FFF0000)
program = b"".join(steps)
buffer = ctypes.create_string_buffer(program)
rule = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
holder = ctypes.create_string_buffer(rule)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, holder, 0, 0) == 0
try:
    socket.socket()
    raise SystemExit("sockets are open")
except PermissionError:
    pass
from dtrag.adapters.embedders.folder import FolderEmbedder
from dtrag.adapters.rerankers.cross_encoder import CrossEncoder
assert FolderEmbedder("dir:{write_tiny(tmp_path / "embedder")}").embed_queries(["pump"]).shape == (1, 8)
assert CrossEncoder("dir:{write_model(tmp_path / "reranker")}", name="tiny").score("library", ["library"], math.inf)
print(sorted({{"torch", "huggingface_hub", "fastembed", "onnx"}} & set(sys.modules)))
"""
    if sys.platform != "linux" or os.uname().machine not in {"x86_64", "aarch64"}:
        pytest.skip("seccomp is Linux's")
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_files_of_a_hub_are_valid_json_for_the_reader(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path)
    config = json.loads((folder / "tokenizer_config.json").read_text()) | {"model_max_length": 10**30}
    write(folder / "tokenizer_config.json", config)
    write(folder / "sentence_bert_config.json", {})
    assert FolderEmbedder(str(folder)).max_tokens == 512
