"""A model in ONNX that reads two texts together, from a folder on this machine; no torch, no hub, nothing downloaded.

The folder holds `model.onnx`, `tokenizer.json` and, if the model takes fewer than 512 tokens or names its outputs, a
`config.json` with `max_position_embeddings` and `id2label`: the layout in which such models are published.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

WEIGHTS, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
MAX_TOKENS = 512  # of both texts together: what the models were trained with
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


def available(folder: Path) -> bool:
    """Whether the files of such a model are in the folder. Looks at names only."""
    return all((folder / name).is_file() for name in (WEIGHTS, TOKENIZER))


class PairModel:
    """Blocking, CPU-bound, safe to call from several threads at once. Raises whatever the libraries raise."""

    def __init__(self, folder: Path) -> None:
        self.config = _config(folder)
        self._tokenizer = _tokenizer(folder, self.config)
        self._session = _session(folder / WEIGHTS)
        self._inputs = [inputs.name for inputs in self._session.get_inputs()]
        if not {"input_ids"} <= set(self._inputs) <= _INPUTS:
            raise ValueError(f"it takes {', '.join(self._inputs)}")

    def outputs(self, first: str, second: str) -> list[float]:
        """The model's numbers for one pair."""
        # `encode`, not `encode_batch`: the latter starts threads of its own and complains after a fork.
        pair = self._tokenizer.encode(first, second)
        known = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
        inputs = {name: np.array([known[name]], dtype=np.int64) for name in self._inputs}
        return [float(number) for number in np.asarray(self._session.run(None, inputs)[0]).reshape(-1)]


def _config(folder: Path) -> dict[str, Any]:
    if not (folder / CONFIG).is_file():
        return {}
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    return config


def _tokenizer(folder: Path, config: dict[str, Any]) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    # The longer of the two is cut first: a short query or claim stays whole beside a long passage.
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
