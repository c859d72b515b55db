"""From a model's raw outputs to scores: one pair at a time, over threads, with an eye on the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from dtrag.errors import ModelDamaged

_FARTHEST = 20.0
"""Outputs beyond are taken for this: the sigmoid stays strictly inside (0, 1), and models end near ±12."""

_MAX_CHARS = 20_000
"""512 tokens are about 2,500 characters: spares the tokenizer a whole book."""


def score_pairs(
    output: Callable[[str], float], texts: Sequence[str], deadline: float, *, threads: int, name: str
) -> list[float] | None:
    """The sigmoid of `output(text)` for each text, in order; None when that was not done by `deadline`.

    One pair is one run of the model: no padding, a score that does not depend on the neighbours, and a look at the
    clock before each. Raises `ModelDamaged` for an output that is not a number.
    """

    def score(text: str) -> float | None:
        return sigmoid(output(text), name) if time.monotonic() < deadline else None

    workers = min(threads, len(texts))
    if workers > 1:
        with ThreadPoolExecutor(workers, thread_name_prefix="rerank-pair") as pool:
            scores = list(pool.map(score, texts))
    else:
        scores = [score(text) for text in texts]
    done = [value for value in scores if value is not None]
    return done if len(done) == len(texts) and time.monotonic() < deadline else None


def sigmoid(output: float, name: str) -> float:
    """1 / (1 + exp(-output)), strictly inside (0, 1). Raises `ModelDamaged` for NaN and infinities."""
    if not math.isfinite(output):
        raise ModelDamaged(f"The reranker {name!r} gave a score that is not a number. {again(name)}")
    return 1.0 / (1.0 + math.exp(-min(_FARTHEST, max(-_FARTHEST, output))))


def again(name: str) -> str:
    """What to do about a model that does not work."""
    return f"Fetch it again with: dtrag models pull {name}, or do without: DTRAG_RERANKER=none"


def readable(text: str) -> str:
    """At most 20,000 characters, lone surrogates replaced by "?": the tokenizer takes only what UTF-8 can carry."""
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
