"""A claim checker in ONNX from a folder: the probability that a source supports a claim (adapters/pair_model.py).

One output is the logit of "supported". Several outputs are those of a classifier, one of which `id2label` in
config.json names as support: entailment, entails, supported, support, supports, consistent, faithful, factual or yes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dtrag.adapters.model_files import OnDemand, verify
from dtrag.adapters.pair_model import TOKENIZER, WEIGHTS, PairModel, available
from dtrag.errors import ModelDamaged, ModelNotFound

POSITIVE = (
    "entailment", "entails", "supported", "support", "supports", "consistent", "faithful", "factual", "yes",
)  # fmt: skip
MAX_CHARACTERS = 20_000
"""512 tokens are about 2,500 characters: spares the tokenizer a whole book."""
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
        outputs = self._model.outputs(_readable(source), _readable(claim))
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


def _readable(text: str) -> str:
    """Lone surrogates replaced by "?": the tokenizer takes only what UTF-8 can carry."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
