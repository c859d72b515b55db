"""A cross-encoder in ONNX on onnxruntime, from a folder on this machine; no torch, no hub, nothing downloaded.

The folder holds `model.onnx` (one number a pair), `tokenizer.json` and, if the model takes fewer than 512 tokens, a
`config.json` with `max_position_embeddings`: the layout in which such models are published.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dtrag.adapters.rerankers.scoring import again, readable, score_pairs
from dtrag.errors import ModelDamaged

WEIGHTS, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
MAX_TOKENS = 512  # of query and passage together: what the models were trained with
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_TRIAL = ("how long is parental leave", "Parental leave lasts three years.")


def available(folder: Path) -> bool:
    """Whether the files of a cross-encoder are in the folder. Looks at names only."""
    return all((folder / name).is_file() for name in (WEIGHTS, TOKENIZER))


class CrossEncoder:
    """Blocking, CPU-bound, safe to call from several threads at once."""

    def __init__(
        self, folder: Path, *, name: str, languages: frozenset[str] = frozenset({"*"}), threads: int = 1
    ) -> None:
        self.id = name
        self.languages = languages
        self._threads = max(1, threads)
        try:
            self._tokenizer = _tokenizer(folder)
            self._session = _session(folder / WEIGHTS)
            self._inputs = [inputs.name for inputs in self._session.get_inputs()]
            if not {"input_ids"} <= set(self._inputs) <= _INPUTS:
                raise ValueError(f"it takes {', '.join(self._inputs)}")
            self._output(*_TRIAL)  # one pair, so that a graph which cannot be run is known now
        except Exception as error:  # the boundary: both libraries raise plain `Exception` for a bad file
            reason = " ".join(str(error).split())[:200]
            raise ModelDamaged(f"The reranker {name!r} in {folder} cannot be used: {reason}. {again(name)}") from error

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float] | None:
        """See `Reranker`."""
        readable_query = readable(query)
        return score_pairs(
            lambda text: self._output(readable_query, readable(text)),
            texts,
            deadline,
            threads=self._threads,
            name=self.id,
        )

    def _output(self, query: str, text: str) -> float:
        # `encode`, not `encode_batch`: the latter starts threads of its own and complains after a fork.
        pair = self._tokenizer.encode(query, text)
        known = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
        inputs = {name: np.array([known[name]], dtype=np.int64) for name in self._inputs}
        numbers = np.asarray(self._session.run(None, inputs)[0]).reshape(-1)
        if len(numbers) != 1:
            raise ValueError(f"it gives {len(numbers)} numbers a pair, not one")
        return float(numbers[0])


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    config: dict[str, int] = {}
    if (folder / CONFIG).is_file():
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    # The longer of the two is cut first: a short query stays whole beside a long passage.
    tokenizer.enable_truncation(min(MAX_TOKENS, int(config.get("max_position_embeddings", MAX_TOKENS))))
    tokenizer.no_padding()
    return tokenizer


def _session(path: Path) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # no thread pool inside, hence no spinning: the threads are over pairs
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 4  # what goes wrong is raised; onnxruntime need not print it as well
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
