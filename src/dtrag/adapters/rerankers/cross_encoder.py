"""Cross-encoders: the relevance of a passage to a query, by onnxruntime (adapters/pair_model.py) or fastembed.

Fastembed needs `dtrag[fastembed]` and downloads nothing: for machines that share its cache with other programs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dtrag.adapters.onnx_model import DIR, in_order, readable
from dtrag.adapters.pair_model import PairModel, share_of
from dtrag.errors import InvalidInput, ModelDamaged, ModelNotFound

RELEVANT = ("relevant", "relevance", "label_1", "true", "yes", "positive", "entailment", "1")
"""Labels of the output that counts, of a model with two classes; without such a label it is the second one."""


class CrossEncoder:
    """Blocking, CPU-bound, safe to call from several threads at once."""

    def __init__(
        self, place: str | Path, *, name: str, languages: frozenset[str] = frozenset({"*"}), threads: int = 1
    ) -> None:
        self.id = name
        self.languages = languages
        self._threads = max(1, threads)
        try:
            self._model = PairModel(place, RELEVANT, second=True)
        except Exception as error:  # the boundary: both libraries raise plain `Exception` for a bad file
            reason = " ".join(str(error).split())[:200]
            raise ModelDamaged(f"The reranker {name!r} in {place} cannot be used: {reason}. {again(name)}") from error

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float] | None:
        """See `Reranker`."""
        return score_pairs(
            lambda text: self._model.logit(query, text), texts, deadline, threads=self._threads, name=self.id
        )


_FARTHEST = 20.0
"""Outputs beyond are taken for this: the sigmoid stays strictly inside (0, 1), and models end near ±12."""


def score_pairs(
    output: Callable[[str], float], texts: Sequence[str], deadline: float, *, threads: int, name: str
) -> list[float] | None:
    """The sigmoid of `output(text)` for each text, in order; None when that was not done by `deadline`.

    One pair is one run of the model: no padding, a score that does not depend on the neighbours, and a look at the
    clock before each. Raises `ModelDamaged` for an output that is not a number.
    """

    def score(text: str) -> float | None:
        return sigmoid(output(text), name) if time.monotonic() < deadline else None

    done = [value for value in in_order(score, texts, threads, "rerank-pair") if value is not None]
    return done if len(done) == len(texts) and time.monotonic() < deadline else None


def sigmoid(output: float, name: str) -> float:
    """1 / (1 + exp(-output)), strictly inside (0, 1). Raises `ModelDamaged` for NaN and infinities."""
    share = share_of(output, _FARTHEST)
    if math.isnan(share):
        raise ModelDamaged(f"The reranker {name!r} gave a score that is not a number. {again(name)}")
    return share


def again(name: str) -> str:
    """What to do about a model that does not work."""
    if name.startswith(DIR):
        return "Correct the folder, or do without: DTRAG_RERANKER=none"
    return f"Fetch it again with: dtrag models pull {name}, or do without: DTRAG_RERANKER=none"


def installed() -> bool:
    """Whether the extra is installed. Imports nothing."""
    return find_spec("fastembed") is not None


def supported(name: str) -> bool:
    """Whether fastembed knows a cross-encoder of this name. Raises `InvalidInput` for a non-commercial licence."""
    for model in _text_cross_encoder().list_supported_models():
        if model["model"].lower() == name.lower():
            if "-nc" in model["license"].lower():
                raise InvalidInput(
                    f"The reranker {name!r} is licensed {model['license']}, for non-commercial use only; dtrag does "
                    "not load such models. Choose another one, or DTRAG_RERANKER=none"
                )
            return True
    return False


class FastembedReranker:
    """Blocking, CPU-bound."""

    def __init__(self, name: str, *, languages: frozenset[str] = frozenset({"*"}), threads: int = 1) -> None:
        self.id = name
        self.languages = languages
        try:
            self._model = _text_cross_encoder()(name, threads=max(1, threads), local_files_only=True)
        except ValueError as error:  # what fastembed raises for a model that is not in its cache
            raise ModelNotFound(
                f"The reranker {name!r} is not in fastembed's cache. Fetch it there with fastembed (the folder is "
                "FASTEMBED_CACHE_PATH), or set DTRAG_RERANKER to a folder that holds model.onnx and tokenizer.json."
            ) from error

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float] | None:
        """See `Reranker`. The model uses its threads inside a pair."""
        readable_query = readable(query)

        def output(text: str) -> float:
            (value,) = self._model.rerank(readable_query, [readable(text)], batch_size=1)
            return float(value)

        return score_pairs(output, texts, deadline, threads=1, name=self.id)


def _text_cross_encoder() -> Any:
    return import_module("fastembed.rerank.cross_encoder").TextCrossEncoder
