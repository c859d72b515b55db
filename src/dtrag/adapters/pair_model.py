"""Models in ONNX that read two texts together, and claim checkers of that kind, from a folder on this machine.

The folder holds `model.onnx`, `tokenizer.json` and, if the model takes fewer than 512 tokens or names its outputs, a
`config.json` with `max_position_embeddings` and `id2label`: the layout in which such models are published.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dtrag.adapters.model_files import OnDemand, verify
from dtrag.errors import ModelDamaged, ModelNotFound

WEIGHTS, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
MAX_CHARACTERS = 20_000
"""512 tokens are about 2,500 characters: spares the tokenizer a whole book."""
MAX_TOKENS = 512  # of both texts together: what the models were trained with
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


def readable(text: str) -> str:
    """At most 20,000 characters, lone surrogates replaced by "?": the tokenizer takes only what UTF-8 can carry."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


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


POSITIVE = (
    "entailment", "entails", "supported", "support", "supports", "consistent", "faithful", "factual", "yes",
)  # fmt: skip
_TRIAL = ("Parental leave lasts three years.", "Parental leave lasts three years.")


class OnnxClaimChecker:
    """Blocking, CPU-bound, safe to call from several threads at once."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        self.id = folder.resolve().name
        self._folder, self._threads = folder, max(1, threads)
        verify(self.id, folder)
        try:
            self._model = PairModel(folder)
            self._positive = _positive(self._model)
            self._probability(*_TRIAL)  # one pair, so that a graph which cannot be run is known now
        except Exception as error:  # the boundary: both libraries raise plain `Exception` for a bad file
            reason = " ".join(str(error).split())[:200]
            raise ModelDamaged(
                f"The claim checker in {folder} cannot be used: {reason}. "
                "Set DTRAG_JUDGE to another folder, or to lexical."
            ) from error

    def check(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """See `ClaimChecker`. Raises `ModelDamaged` for outputs that are not numbers."""
        with ThreadPoolExecutor(min(self._threads, max(1, len(pairs))), thread_name_prefix="check-claim") as pool:
            probabilities = list(pool.map(lambda pair: self._probability(*pair), pairs))
        if not all(map(math.isfinite, probabilities)):
            raise ModelDamaged(
                f"The claim checker in {self._folder} gave a number that is not finite. Set DTRAG_JUDGE to another "
                "folder, or to lexical."
            )
        return probabilities

    def _probability(self, source: str, claim: str) -> float:
        outputs = self._model.outputs(readable(source), readable(claim))
        if self._positive is None:
            (logit,) = outputs
            return 1.0 / (1.0 + math.exp(-min(30.0, max(-30.0, logit)))) if math.isfinite(logit) else logit
        if len(outputs) <= self._positive:
            raise ValueError(f"it gives {len(outputs)} numbers a pair, and config.json names more labels")
        if not all(map(math.isfinite, outputs)):
            return math.nan
        top = max(outputs)
        powers = [math.exp(number - top) for number in outputs]
        return powers[self._positive] / sum(powers)


class ClaimCheckerOnDemand(OnDemand[OnnxClaimChecker]):
    """A claim checker that loads at its first use."""

    def __init__(self, folder: Path, threads: int) -> None:
        super().__init__(lambda: OnnxClaimChecker(folder, threads=threads))
        self.id = folder.resolve().name

    def check(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """See `ClaimChecker`."""
        return self.loaded().check(pairs)


def in_folder(folder: Path, threads: int) -> ClaimCheckerOnDemand:
    """The checker in a folder; it loads at its first use. Raises `ModelNotFound`."""
    if not available(folder):
        raise ModelNotFound(
            f"DTRAG_JUDGE is the folder {folder}, which has no {WEIGHTS} and {TOKENIZER}. Put both there, or set it to "
            "lexical or model."
        )
    return ClaimCheckerOnDemand(folder, threads)


def _positive(model: PairModel) -> int | None:
    """The number of the output that means support; None for a model with one output. Raises `ValueError`."""
    labels = model.config.get("id2label") or {}
    if len(labels) < 2 and len(model.outputs(*_TRIAL)) == 1:
        return None
    for number, label in labels.items():
        if str(label).casefold() in POSITIVE:
            return int(number)
    named = ", ".join(map(str, labels.values())) or "none"
    raise ValueError(f"it has several outputs, and none of its labels ({named}) in config.json means support")
