"""all-MiniLM-L6-v2: English, 384 dimensions. See `bert`."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.embedders.bert import MAX_CHARS, MAX_TOKENS, BertEmbedder, Graph, Initializers, initializers
from dtrag.adapters.embedders.models import MINILM

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
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER.name))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        tensors = read_float32(folder / _WEIGHTS.name)
        return {_WORDS: tensors[_WORDS].astype(np.float16), **initializers(tensors.__getitem__, self.graph)}

    def _of_document(self, text: str) -> NDArray[Any]:
        # `encode`, not `encode_batch`: the latter starts threads of its own and complains after a fork.
        return np.array(self._tokenizer.encode(_encodable(text[:MAX_CHARS])).ids, dtype=np.int64)


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced by "?": the tokenizer takes only what UTF-8 can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
