"""An embedding model of a few hundred kilobytes in the files that fastembed reads: a vector a word, pooled by mean."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from dtrag.adapters.embedders.fastembed import Published
from tests.contract.embedder import TEXTS

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SAME = {"money": "refunds", "back": "paid", "close": "closes", "휴학": "leave", "출산": "parental", "last": "lasts"}
"""Words that have the vector of another word: what a multilingual model learns."""
QUIET = set("the does when how long until i get my to a is are at and of in".split())
MORE = "parental leave lasts up to three years pump housing made cast brass how long does"
WORDS = sorted({*re.findall(r"\w+", " ".join([*TEXTS, MORE, *SAME]).lower())} | QUIET)
CONTEXT = 128


def write_model(folder: Path, model: Published, *, weights: bytes | None = None) -> Path:
    """The model under the file names of `model`; `weights` in place of its graph."""
    path = folder / model.weights
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_graph(model.dim).SerializeToString() if weights is None else weights)
    for name in model.more_files:
        (folder / name).write_bytes(b"")
    _tokenizer().save(str(folder / "tokenizer.json"))
    tokens = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": CONTEXT, **tokens}))
    (folder / "special_tokens_map.json").write_text(json.dumps(tokens))
    return folder


def _graph(dim: int) -> onnx.ModelProto:
    names = [*SPECIAL, *WORDS]
    table = np.random.default_rng(7).standard_normal((len(names), dim)).astype(np.float32)
    for row, name in enumerate(names):
        if name in SAME:
            table[row] = table[names.index(SAME[name])]
        elif name in QUIET or name in SPECIAL:
            table[row] *= 0.05
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", dim])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["last_hidden_state"]),
    ]
    constants = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([2], np.int64), "last")]
    graph = helper.make_graph(nodes, "tiny", inputs, [output], constants)
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
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer
