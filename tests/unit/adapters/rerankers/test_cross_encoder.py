"""The cross-encoder on onnxruntime: the contract, exact scores, and models that cannot be used."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtrag.adapters.pair_model import available
from dtrag.adapters.rerankers.cross_encoder import CrossEncoder, score_pairs, sigmoid
from dtrag.errors import ModelDamaged
from dtrag.ports import Reranker
from tests.contract.reranker import QUERY, TEXTS, RerankerContract, scored
from tests.unit.adapters.rerankers.tiny import HIT, MISS, write_model


@pytest.fixture(scope="module", params=[(1, False), (2, False), (2, True)], ids="{0[0]} threads, classes {0[1]}".format)
def reranker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reranker:
    threads, classes = request.param
    return CrossEncoder(write_model(tmp_path_factory.mktemp("model"), classes=classes), name="tiny", threads=threads)


class TestCrossEncoder(RerankerContract):
    """The whole contract, with one thread and with two, with one output and with two classes."""


def _load(folder: Path) -> CrossEncoder:
    return CrossEncoder(folder, name="tiny")


def test_the_scores_are_the_sigmoid_of_the_outputs(tmp_path: Path) -> None:
    model = _load(write_model(tmp_path))
    shared = (0, 3, 1, 0)  # words of the query in each text: when, library, close
    expected = [1 / (1 + math.exp(-(MISS + HIT * words))) for words in shared]
    assert scored(model, QUERY, TEXTS) == pytest.approx(expected, abs=1e-6)
    assert (model.id, model.languages) == ("tiny", frozenset({"*"}))


@pytest.mark.parametrize(("labels", "turned"), [({}, False), ({"0": "relevant", "1": "irrelevant"}, True)])
def test_of_two_classes_the_relevant_one_counts(tmp_path: Path, labels: dict[str, str], turned: bool) -> None:
    folder = write_model(tmp_path, classes=True)
    (folder / "config.json").write_text(json.dumps({"id2label": labels}))
    one = scored(_load(write_model(tmp_path / "one")), QUERY, TEXTS)
    expected = [1 - score for score in one] if turned else one
    assert scored(_load(folder), QUERY, TEXTS) == pytest.approx(expected, abs=1e-6)


def test_the_query_survives_beside_a_passage_of_any_length(tmp_path: Path) -> None:
    model = _load(write_model(tmp_path))
    (score,) = scored(model, QUERY, ["library " + "nothing " * 3_000])
    assert score == pytest.approx(sigmoid(MISS + HIT, "tiny"), abs=1e-6)


@pytest.mark.parametrize(("positions", "shared"), [(512, 1), (16, 0), (100_000, 1)])
def test_a_pair_is_cut_at_what_the_model_takes_and_at_512_tokens(tmp_path: Path, positions: int, shared: int) -> None:
    model = _load(write_model(tmp_path, positions=positions))
    late, too_late = "x " * 490 + "library", "x " * 520 + "library"
    within, beyond = scored(model, "library", [late, too_late])
    assert within == pytest.approx(sigmoid(MISS + HIT * shared, "tiny"), abs=1e-6)
    assert beyond == pytest.approx(sigmoid(MISS, "tiny"), abs=1e-6)


def test_models_without_a_config_or_token_types_work(tmp_path: Path) -> None:
    folder = write_model(tmp_path, types=False)
    (folder / "config.json").unlink()
    assert available(folder)
    assert 0 < scored(_load(folder), QUERY, TEXTS)[0] < 1


def test_scores_stay_within_0_and_1_for_extreme_outputs(tmp_path: Path) -> None:
    for bias in (-1e30, -60.0, 60.0, 1e30):
        (score,) = scored(_load(write_model(tmp_path / str(bias), bias=bias)), QUERY, TEXTS[:1])
        assert 0 < score < 1
        assert (score > 0.5) is (bias > 0)


@pytest.mark.parametrize("bias", [math.nan, math.inf, -math.inf])
def test_an_output_that_is_not_a_number_is_an_error(tmp_path: Path, bias: float) -> None:
    model = _load(write_model(tmp_path, bias=bias))
    with pytest.raises(ModelDamaged, match=r"'tiny' gave a score that is not a number.*dtrag models pull tiny"):
        model.score(QUERY, TEXTS, math.inf)


def _damage(folder: Path, kind: str) -> None:
    weights, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
    if kind == "half of the weights":
        weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    elif kind == "an empty file":
        weights.write_bytes(b"")
    elif kind == "text for weights":
        weights.write_text("version https://example.org/spec/v1\noid sha256:0\nsize 90\n")
    elif kind == "no tokenizer":
        tokenizer.unlink()
    elif kind == "half of the tokenizer":
        tokenizer.write_bytes(tokenizer.read_bytes()[:100])
    elif kind == "a config that is none":
        (folder / "config.json").write_text("{")
    elif kind == "no weights":
        weights.unlink()


@pytest.mark.parametrize(
    "kind",
    [
        "half of the weights",
        "an empty file",
        "text for weights",
        "no weights",
        "no tokenizer",
        "half of the tokenizer",
        "a config that is none",
    ],
)
def test_an_incomplete_model_is_reported_with_advice(
    tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_model(tmp_path / "model")
    _damage(folder, kind)
    with pytest.raises(ModelDamaged, match=r"'tiny' in .*model cannot be used: .*dtrag models pull tiny") as caught:
        _load(folder)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_graph_that_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match="it gives 3 numbers a pair, and none of its labels"):
        _load(write_model(tmp_path / "classes", outputs=3))
    with pytest.raises(ModelDamaged, match="it takes input_ids, attention_mask, token_type_ids, pixels"):
        _load(write_model(tmp_path / "pictures", extra="pixels"))


def test_the_time_limit_is_checked_before_each_pair() -> None:
    read: list[str] = []

    def slow(text: str) -> float:
        read.append(text)
        time.sleep(0.02)
        return 0.0

    assert score_pairs(slow, ["a"] * 500, time.monotonic() + 0.1, threads=1, name="slow") is None
    assert 0 < len(read) < 10
    assert score_pairs(slow, ["a"] * 2, time.monotonic() + 60, threads=2, name="slow") == [0.5, 0.5]


def test_it_opens_no_socket_and_works_after_a_fork(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    program = f"""
import math, os, sys
from pathlib import Path
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event.startswith("socket.") else None)
from dtrag.adapters.rerankers.cross_encoder import CrossEncoder
model = CrossEncoder(Path({str(folder)!r}), name="tiny")
model.score("library", ["library", "pump"], math.inf)
child = os.fork()
if child == 0:
    model.score("library", ["library"], math.inf)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(sockets, sorted({{"torch", "huggingface_hub", "fastembed", "onnx"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[] []\n", "")
