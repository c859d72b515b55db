"""Sentence vectors of BERT models (MiniLM) in int8 on onnxruntime; no torch, no hub, nothing downloaded.

A graph beside this file is the computation without weights (made by scripts/build_graphs.py). The weights come from
the pinned file, are quantised while loading, so that nothing is cached on disk, and are passed to the session under the
names that the graph uses.

One text is one run. Activations are quantised by their range, and a batch would share that range: a text's vector
would depend on its neighbours (cosine down to .994) and on the padding. Alone, a text always has the same vector, and
threads over texts scale better than threads inside an operator, which would also spin on the second core.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.embedders.models import MINILM, Model, locate, verify
from dtrag.adapters.onnx_model import in_order, open_session, open_tokenizer, readable, unknown_tokens
from dtrag.core.documents import Vector
from dtrag.errors import ModelDamaged, ModelNotFound
from dtrag.settings import Settings

Floats = NDArray[np.float32]
Initializers = dict[str, NDArray[Any]]

MAX_TOKENS = 256
"""What MiniLM was published with. e5 takes 512, but finds no more with them: cranfield .371 with 256, .361 with 512."""
BLOCK = 128
"""Inputs that share a scale where blocks have scales of their own; 384 and 1536 are multiples of it."""


@dataclass(frozen=True, slots=True)
class Graph:
    """What a model's graph depends on. `word_rows` is the length of its table of words; None: their rows are its input.

    `qkv_by_block`: queries, keys and values are quantised by blocks, too.
    """

    file: str
    layers: int
    word_rows: int | None
    qkv_by_block: bool


class BertEmbedder(ABC):
    """Blocking, CPU-bound, safe to call from several threads at once."""

    model: ClassVar[Model]
    graph: ClassVar[Graph]
    id: ClassVar[str]
    dim: ClassVar[int]
    languages: ClassVar[frozenset[str]]
    floor: ClassVar[float]
    decides: ClassVar[bool]
    max_tokens: ClassVar[int] = MAX_TOKENS

    def __init__(self, folder: Path, threads: int) -> None:
        self._folder = folder
        self._threads = max(1, threads)
        self.check()
        try:
            weights = self._read(folder)
        except (KeyError, ValueError) as error:
            raise ModelDamaged(name=self.model.name, path=folder / self.model.files[0].name) from error
        self._session = open_session(files(__package__).joinpath(self.graph.file).read_bytes(), weights)

    @classmethod
    def available(cls, settings: Settings) -> bool:
        """Whether the model's files are on this machine. Looks at names only; `create` verifies them."""
        return locate(cls.model, settings) is not None

    @classmethod
    def create(cls, settings: Settings) -> Self:
        """The embedder, loaded. Raises `ModelNotFound` or `ModelDamaged`."""
        folder = locate(cls.model, settings)
        if folder is None:
            raise ModelNotFound(name=cls.model.name)
        return cls(folder, threads=settings.embed_threads)

    def check(self) -> None:
        """Raise `ModelDamaged` when the files are not, or no longer, the pinned ones. Never downloads."""
        verify(self.model, self._folder)

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), 384), float32, unit length, in the order of the texts; an empty text has a vector too."""
        return self._embed(texts, self._of_document)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """As `embed_documents`, of questions."""
        return self._embed(texts, self._of_query)

    @abstractmethod
    def _read(self, folder: Path) -> Initializers:
        """Open the files and return the graph's weights. Raises `KeyError` and `ValueError`."""

    @abstractmethod
    def _of_document(self, text: str) -> NDArray[Any]:
        """The graph's input for a passage, one row for each token."""

    def _of_query(self, text: str) -> NDArray[Any]:
        """The graph's input for a question."""
        return self._of_document(text)

    @abstractmethod
    def unknown_tokens(self, texts: Sequence[str]) -> tuple[int, int]:
        """See `Tokenizing`."""

    def _embed(self, texts: Sequence[str], tokens_of: Callable[[str], NDArray[Any]]) -> Vector:
        def vector_of(text: str) -> Vector:
            vector: Vector = self._session.run(None, {"tokens": tokens_of(text)[np.newaxis]})[0][0]
            return vector

        vectors = in_order(vector_of, texts, self._threads, "embed")
        return np.stack(vectors) if vectors else np.empty((0, self.dim), np.float32)


def initializers(tensor: Callable[[str], Floats], graph: Graph) -> Initializers:
    """The graph's weights by the graph's names, but for the table of words, from the tensors of a BERT model.

    Matrices in int8 with float32 scales, biases and norms as they are (but copied, so that a mapped file can go). All
    texts are of token type 0, so that row is added to the positions here.
    """
    positions = tensor("embeddings.position_embeddings.weight")[:MAX_TOKENS]
    weights: Initializers = {"positions": positions + tensor("embeddings.token_type_embeddings.weight")[0]}
    for name in ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"):
        weights[name] = np.array(tensor(name))
    for layer in range(graph.layers):
        here = f"encoder.layer.{layer}."
        parts = [f"{here}attention.self.{part}." for part in ("query", "key", "value")]
        qkv = np.concatenate([tensor(part + "weight") for part in parts])
        weights |= (by_block if graph.qkv_by_block else by_column)(f"{here}attention.self.qkv.weight", qkv)
        weights[f"{here}attention.self.qkv.bias"] = np.concatenate([tensor(part + "bias") for part in parts])
        for dense in ("attention.output.dense", "intermediate.dense"):
            weights |= by_column(f"{here}{dense}.weight", tensor(f"{here}{dense}.weight"))
        weights |= by_block(f"{here}output.dense.weight", tensor(f"{here}output.dense.weight"))
        for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
            weights[f"{here}{name}.bias"] = np.array(tensor(f"{here}{name}.bias"))
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            for name in (f"{here}{norm}.weight", f"{here}{norm}.bias"):
                weights[name] = np.array(tensor(name))
    return weights


def by_column(name: str, weight: Floats) -> Initializers:
    """int8 with one scale per output, transposed to (inputs, outputs) as DynamicQuantizeMatMul wants it.

    Seven bits are used: on a CPU without VNNI onnxruntime adds two products in 16 bits, and 2 * 255 * 63 still fits.
    """
    scale = np.abs(weight).max(axis=1) / 63
    return {name: np.ascontiguousarray(_steps(weight, scale[:, None]).astype(np.int8).T), f"{name}.scale": scale}


def by_block(name: str, weight: Floats) -> Initializers:
    """uint8 around 128 with one scale per output and block of inputs: (outputs, blocks, BLOCK), as MatMulNBits wants
    it. For the matrix whose input (after GELU) has outliers, and where cosines lie close together."""
    blocks = weight.reshape(len(weight), -1, BLOCK)
    scale = np.abs(blocks).max(axis=2) / 127
    return {name: (_steps(blocks, scale[:, :, None]) + 128).astype(np.uint8), f"{name}.scale": scale.reshape(-1)}


def _steps(weight: Floats, scale: Floats) -> Floats:
    return np.rint(weight / np.maximum(scale, np.finfo(np.float32).tiny))


_WEIGHTS, _TOKENIZER = MINILM.files
_WORDS = "embeddings.word_embeddings.weight"


class MiniLM(BertEmbedder):
    """66 MB resident beside Python and onnxruntime. It was trained without prefixes for passages and questions."""

    model = MINILM
    graph = Graph("minilm.onnx", layers=6, word_rows=30_522, qkv_by_block=False)
    id = f"minilm-int8@{_WEIGHTS.sha256[:8]}"
    dim = MINILM.dim
    languages = MINILM.languages
    floor = 0.0
    decides = True

    def _read(self, folder: Path) -> Initializers:
        self._tokenizer = open_tokenizer(folder / _TOKENIZER.name, MAX_TOKENS)
        tensors = read_float32(folder / _WEIGHTS.name)
        return {_WORDS: tensors[_WORDS].astype(np.float16), **initializers(tensors.__getitem__, self.graph)}

    def _of_document(self, text: str) -> NDArray[Any]:
        # `encode`, not `encode_batch`: the latter starts threads of its own and complains after a fork.
        return np.array(self._tokenizer.encode(readable(text)).ids, dtype=np.int64)

    def unknown_tokens(self, texts: Sequence[str]) -> tuple[int, int]:
        """See `Tokenizing`."""
        return unknown_tokens(self._tokenizer, texts)


Tensors = dict[str, NDArray[np.float32]]

_LENGTH_BYTES = 8
_MAX_HEADER = 1_000_000  # the header of a model of six layers has 11 kB


def read_float32(path: Path) -> Tensors:
    """The float32 tensors by name, mapped into memory (pages are read when touched). Other types are left out.

    Raises `ValueError` when the header is not one or points outside of the file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        start = _LENGTH_BYTES + length
        if not 0 < length <= min(_MAX_HEADER, size - _LENGTH_BYTES):
            raise ValueError(f"the header of {path.name} would have {length} bytes")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError(f"the header of {path.name} is not an object")
    if start == size:
        return {}
    data: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r", offset=start)
    return {
        name: _tensor(data, name, entry)
        for name, entry in header.items()
        if isinstance(entry, dict) and entry.get("dtype") == "F32"
    }


def _tensor(data: NDArray[np.uint8], name: str, entry: dict[str, object]) -> NDArray[np.float32]:
    shape, offsets = _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if shape is None or offsets is None or len(offsets) != 2:
        raise ValueError(f"the tensor {name!r} has no shape or no offsets")
    begin, end = offsets
    if not begin <= end <= len(data) or end - begin != 4 * prod(shape):
        raise ValueError(f"the tensor {name!r} does not fit into the file")
    return data[begin:end].view(np.float32).reshape(shape)


def _counts(value: object) -> list[int] | None:
    if isinstance(value, list) and all(type(item) is int and item >= 0 for item in value):
        return value
    return None
