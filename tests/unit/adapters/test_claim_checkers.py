"""Claim checkers from a folder: one output, labelled outputs, and models that cannot be used."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from dtrag.adapters.pair_model import OnnxClaimChecker, in_folder
from dtrag.assembly import choose_judge
from dtrag.errors import InvalidInput, ModelDamaged, ModelNotFound
from dtrag.evaluation.judges import WINDOW, CheckerJudge, LexicalJudge, windows
from dtrag.settings import Settings
from dtrag.testing.models import ScriptedModel
from tests.unit.adapters.rerankers.tiny import HIT, MISS, write_model

SOURCE, OTHER = "parental leave lasts three years", "the kettle valve"
CLAIM = "Parental leave lasts up to three years."


def labelled(folder: Path, *labels: str) -> Path:
    """A classifier whose outputs have these labels."""
    write_model(folder, outputs=len(labels))
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {str(number): label for number, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_one_output_is_the_logit_of_support(tmp_path: Path) -> None:
    checker = OnnxClaimChecker(write_model(tmp_path / "checker"), threads=2)
    supported, other = checker.check([(SOURCE, CLAIM), (OTHER, CLAIM)])
    assert supported == pytest.approx(1 / (1 + math.exp(-(MISS + 5 * HIT))))
    assert other == pytest.approx(1 / (1 + math.exp(-MISS)))
    assert (checker.id, checker.check([])) == ("checker", [])


@pytest.mark.parametrize("labels", [("entailment", "neutral", "contradiction"), ("not_supported", "SUPPORTED")])
def test_labelled_outputs_share_the_probability(tmp_path: Path, labels: tuple[str, ...]) -> None:
    (probability,) = OnnxClaimChecker(labelled(tmp_path, *labels)).check([(SOURCE, CLAIM)])
    assert probability == pytest.approx(1 / len(labels)), "all outputs of the tiny model are equal"


def test_models_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match=r"labels \(left, right\) in config.json means support"):
        OnnxClaimChecker(labelled(tmp_path / "labels", "left", "right"))
    with pytest.raises(ModelDamaged, match=r"it takes .*pixels"):
        OnnxClaimChecker(write_model(tmp_path / "inputs", extra="pixels"))
    folder = write_model(tmp_path / "half")
    weights = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelDamaged, match="DTRAG_JUDGE"):
        OnnxClaimChecker(folder)
    with pytest.raises(ModelDamaged, match="not finite"):
        OnnxClaimChecker(write_model(tmp_path / "nan", bias=math.nan)).check([(SOURCE, CLAIM)])
    with pytest.raises(ModelNotFound, match=r"model\.onnx and tokenizer\.json"):
        in_folder(tmp_path, 1)


async def test_the_judge_reads_long_contexts_in_windows(tmp_path: Path) -> None:
    judge = CheckerJudge(in_folder(write_model(tmp_path), 1))
    long = "The pump is made of brass. " * 100 + SOURCE + "."
    assert len(windows(long)) > 2 and all(len(part) <= WINDOW for part in windows(long))
    supported, not_supported = await judge.support([CLAIM, "The boiler is down."], [OTHER, long], "")
    assert (supported.supported, supported.contexts, supported.reason) == (True, (1,), "")
    assert not not_supported.supported and "finds it in no context" in not_supported.reason
    assert (await judge.relevance("How long does parental leave last?", "three years")).score > 0.5


def test_the_settings_choose_the_judge(tmp_path: Path) -> None:
    def settings(name: str) -> Settings:
        return Settings.load(environ={}, data_dir=tmp_path, judge=name)

    assert isinstance(choose_judge(settings("lexical"), None), LexicalJudge)
    assert choose_judge(settings("model"), ScriptedModel()).id == "scripted:model"
    assert choose_judge(settings(str(write_model(tmp_path / "mine"))), None).id == "mine"
    with pytest.raises(InvalidInput, match="DTRAG_LLM"):
        choose_judge(settings("model"), None)
    with pytest.raises(InvalidInput, match="lexical, model, or the folder"):
        choose_judge(settings("best"), None)
