"""A cross-encoder from the cache of fastembed; needs `dtrag[fastembed]`, downloads nothing.

For machines that share fastembed's cache with other programs. What `dtrag models pull` fetches does not need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dtrag.adapters.rerankers.scoring import readable, score_pairs
from dtrag.errors import InvalidInput, ModelNotFound


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
