"""all-MiniLM-L6-v2: English, 384 dimensions. See `bert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.embedders.bert import MAX_CHARS, MAX_TOKENS, BertEmbedder, Graph, Initializers, initializers
from dtrag.adapters.embedders.models import MINILM
from dtrag.adapters.embedders.safetensors import read_float32

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
