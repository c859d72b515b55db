"""A cross-encoder of a few kilobytes: its output grows with the words that query and passage share.

The graph reads what a real one reads (ids, mask, token types) and looks words up in an embedding: one dimension a word,
zeros for special and unknown tokens, so that each side becomes the set of its words.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.contract.reranker import QUERY, TEXTS

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
TOPICS = "within how many days are refunds paid parental leave long last years up three lasts is kettle valve boiler"
WORDS = sorted({*re.findall(r"[a-z]+", " ".join([QUERY, *TEXTS, TOPICS]).lower())} - {"the", "does", "a", "in", "is"})
HIT, MISS = 2.0, -3.0
"""Output of a pair: MISS plus HIT for each word that both sides hold."""


def write_model(
    folder: Path,
    *,
    bias: float = MISS,
    outputs: int = 1,
    types: bool = True,
    extra: str = "",
    positions: int = 512,
    classes: bool = False,
) -> Path:
    """The model in a folder, with `classes` irrelevant and relevant; the keywords make it useless in one way each."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_graph(bias, outputs, types, extra, classes).SerializeToString())
    _tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0, "max_position_embeddings": positions}))
    return folder


def _graph(bias: float, outputs: int, types: bool, extra: str, classes: bool) -> onnx.ModelProto:
    outputs = 2 if classes else outputs
    size = len(SPECIAL) + len(WORDS)
    table = np.zeros((size, len(WORDS)), np.float32)
    table[len(SPECIAL) :] = np.eye(len(WORDS), dtype=np.float32)
    constants = {
        "table": table,
        "one": np.array(1, np.float32),
        "words_axis": np.array([1], np.int64),
        "weights": np.full((len(WORDS), outputs), HIT, np.float32),
        "bias": np.array([bias], np.float32),
    }
    if classes:  # the first output is that of the other class: always 0
        constants["weights"] = np.array([[0, HIT]] * len(WORDS), np.float32)
        constants["bias"] = np.array([0, bias], np.float32)
    constants |= {}
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else []), *([extra] if extra else [])]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("Cast", ["token_type_ids" if types else "attention_mask"], ["type"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["type", "mask"], ["second"]),
        helper.make_node("Sub", ["mask", "second"], ["first"]),
    ]
    for side in ("first", "second"):
        nodes += [
            helper.make_node("Unsqueeze", [side, "last"], [f"{side}_column"]),
            helper.make_node("Mul", ["embedded", f"{side}_column"], [f"{side}_words"]),
            helper.make_node("ReduceMax", [f"{side}_words", "words_axis"], [f"{side}_set"], keepdims=0),
        ]
    nodes += [
        helper.make_node("Mul", ["first_set", "second_set"], ["shared"]),
        helper.make_node("MatMul", ["shared", "weights"], ["sum"]),
        helper.make_node("Add", ["sum", "bias"], ["logits"]),
    ]
    constants["last"] = np.array([2], np.int64)
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", outputs])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def _tokenizer() -> Tokenizer:
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer
