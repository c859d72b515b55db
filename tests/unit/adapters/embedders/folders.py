"""Folders in the layout of sentence-transformers, made from the weights that are installed, and tiny ones."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from dtrag.adapters.embedders import bert
from dtrag.adapters.embedders.bert import BertEmbedder, MiniLM
from dtrag.adapters.embedders.e5 import _VALUES, E5, E5File
from dtrag.adapters.embedders.models import locate
from dtrag.settings import Settings

BLOCKS = 384 // _VALUES
DEFAULT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_configuration(
    folder: Path, *, dim: int, pooling: str = "mean_tokens", most: int = 256, prompts: dict[str, str] | None = None
) -> Path:
    """The files of a folder beside graph and tokenizer, as sentence-transformers writes them."""
    write(folder / "config.json", {"hidden_size": dim, "model_type": "bert", "max_position_embeddings": 512})
    write(folder / "tokenizer_config.json", {"model_max_length": 512})
    write(folder / "sentence_bert_config.json", {"max_seq_length": most, "do_lower_case": False})
    write(folder / "config_sentence_transformers.json", {"prompts": prompts or {}, "default_prompt_name": None})
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    write(folder / "modules.json", modules)
    names = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    ways = {f"pooling_mode_{name}": name == pooling for name in names}
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dim, **ways, "include_prompt": True})
    return folder


def write(path: Path, value: Any) -> Path:
    """A JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def write_minilm(folder: Path, settings: Settings) -> Path:
    """MiniLM as a folder: weights inside of `onnx/model.onnx`, mean pooling, no prompts."""
    source = locate(MiniLM.model, settings)
    assert source is not None
    weights = MiniLM._read(MiniLM.create(settings), source)
    _write_graph(folder / "onnx" / "model.onnx", MiniLM, weights, external=False)
    (folder / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
    return write_configuration(folder, dim=384)


def write_e5(folder: Path, settings: Settings) -> Path:
    """multilingual-e5-small as a folder: weights in `model.onnx_data`, prompts in the configuration."""
    source = locate(E5.model, settings)
    assert source is not None
    weights = E5._read(E5.create(settings), source)
    file = E5File(source / E5.model.files[0].name)
    scales = np.ascontiguousarray(file._table[..., :2]).view(np.float16)[..., 0]
    nibbles = np.concatenate([file._table[..., 2:] & 15, file._table[..., 2:] >> 4], axis=-1)
    weights |= {"words": (nibbles.astype(np.int8) - 8).reshape(len(scales), -1), "words.scale": scales}
    _write_graph(folder / "model.onnx", E5, weights, external=True)
    _write_unigram(folder / "tokenizer.json", file)
    prompts = {"query": "query: ", "document": "passage: "}
    write_configuration(folder, dim=384, prompts=prompts)
    return folder


def _write_graph(path: Path, model: type[BertEmbedder], weights: dict[str, NDArray[Any]], *, external: bool) -> None:
    """The shipped graph with its weights; its inputs and its output have the usual names, pooling is cut off."""
    graph = onnx.load(str(Path(bert.__file__).with_name(model.graph.file)), load_external_data=False)
    body = graph.graph
    last = f"encoder.layer.{model.graph.layers - 1}.output.LayerNorm.out"
    nodes = [node for node in body.node if node.name not in {"mean", "vectors"}]
    for node in nodes:
        node.input[:] = ["input_ids" if name == "tokens" and "words" not in weights else name for name in node.input]
        node.output[:] = ["last_hidden_state" if name == last else name for name in node.output]
    if "words" in weights:  # rows of words are made from 4-bit values
        nodes = [
            helper.make_node("Gather", ["words", "input_ids"], ["row"]),
            helper.make_node("Cast", ["row"], ["row.float"], to=TensorProto.FLOAT),
            helper.make_node("Gather", ["words.scale", "input_ids"], ["scale"]),
            helper.make_node("Cast", ["scale"], ["scale.float"], to=TensorProto.FLOAT),
            helper.make_node("Reshape", ["row.float", "in.blocks"], ["blocks"]),
            helper.make_node("Unsqueeze", ["scale.float", "last.axis"], ["block.scale"]),
            helper.make_node("Mul", ["blocks", "block.scale"], ["values"]),
            helper.make_node("Reshape", ["values", "in.rows"], ["tokens"]),
            *nodes,
        ]
        weights = weights | {
            "in.blocks": np.array([1, -1, BLOCKS, _VALUES], np.int64),
            "last.axis": np.array([3], np.int64),
            "in.rows": np.array([1, -1, 384], np.int64),
        }
    constants = [tensor for tensor in body.initializer if not tensor.external_data]
    stored = [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in weights.items()]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "length"]) for name in DEFAULT_INPUTS]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, "length", 384])]
    made = helper.make_graph(nodes, path.name, inputs, outputs, [*constants, *stored])
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save_model(
        helper.make_model(made, opset_imports=graph.opset_import, ir_version=9),
        str(path),
        save_as_external_data=external,
        location=f"{path.name}_data",
    )


def _write_unigram(path: Path, file: E5File) -> None:
    text, offsets = file._pieces.tobytes(), file._offsets.tolist()
    pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, file._scores.tolist(), strict=True)), file.unknown, False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    marks = [(pieces[number], number) for number in (file.begin, file.end)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{marks[0][0]} $A {marks[1][0]}", special_tokens=marks
    )
    tokenizer.save(str(path))


def write_tiny(
    folder: Path,
    *,
    output: str = "last_hidden_state",
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    seed: int = 0,
    name: str = "model.onnx",
    kind: int = TensorProto.INT64,
    rank: int = 3,
    **configuration: Any,
) -> Path:
    """A table of words as a graph, 8 numbers a word, that adds its other inputs; with `rank` 2 it gives their mean."""
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *_words()])}
    table = np.random.default_rng(seed).normal(size=(len(vocabulary), 8)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["sum0"])]
    for number, other in enumerate(inputs[1:]):
        nodes += [
            helper.make_node("Cast", [other], [f"{other}.float"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", [f"{other}.float", "axis"], [f"{other}.column"]),
            helper.make_node("Add", [f"sum{number}", f"{other}.column"], [f"sum{number + 1}"]),
        ]
    last = f"sum{len(inputs) - 1}"
    nodes.append(
        helper.make_node("Identity", [last], [output])
        if rank == 3
        else helper.make_node("ReduceMean", [last, "tokens.axis"], [output], keepdims=0)
    )
    constants = {"table": table, "axis": np.array([2], np.int64), "tokens.axis": np.array([1], np.int64)}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(each, kind, [1, "length"]) for each in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, each) for each, value in constants.items()],
    )
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    onnx.save_model(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(folder / name)
    )
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return write_configuration(folder, dim=8, **configuration)


def tiny_table(seed: int = 0) -> NDArray[np.float32]:
    """The vectors of the tokens of `write_tiny`, before other inputs are added."""
    return np.random.default_rng(seed).normal(size=(4 + len(_words()), 8)).astype(np.float32)


def _words() -> list[str]:
    return "the library opens at nine refunds are paid within ten working days pump valve query passage : ?".split()
