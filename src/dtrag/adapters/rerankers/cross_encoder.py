"""A cross-encoder in ONNX on onnxruntime: one number for a pair of query and passage (adapters/pair_model.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dtrag.adapters.pair_model import PairModel
from dtrag.adapters.rerankers.scoring import again, readable, score_pairs
from dtrag.errors import ModelDamaged

_TRIAL = ("how long is parental leave", "Parental leave lasts three years.")


class CrossEncoder:
    """Blocking, CPU-bound, safe to call from several threads at once."""

    def __init__(
        self, folder: Path, *, name: str, languages: frozenset[str] = frozenset({"*"}), threads: int = 1
    ) -> None:
        self.id = name
        self.languages = languages
        self._threads = max(1, threads)
        try:
            self._model = PairModel(folder)
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
        numbers = self._model.outputs(query, text)
        if len(numbers) != 1:
            raise ValueError(f"it gives {len(numbers)} numbers a pair, not one")
        return numbers[0]
