"""Models in ONNX that read two texts together, and claim checkers of that kind, from a folder on this machine.

See `ModelFolder` for its layout. `id2label` in `config.json` names the outputs of a model that has several.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

from dtrag.adapters.model_files import OnDemand, verify
from dtrag.adapters.onnx_model import CONFIG, SHORTEST_CONTEXT, TOKENIZER, WEIGHTS, ModelFolder, OnnxModel, in_order
from dtrag.errors import ModelDamaged, ModelNotFound

_TRIAL = ("Parental leave lasts three years.", "Parental leave lasts three years.")


def available(folder: Path) -> bool:
    """Whether the files of a model are in the folder. Looks at names only."""
    try:
        return bool(ModelFolder.at(folder))
    except ValueError:
        return False


class PairModel:
    """Blocking, CPU-bound, safe to call from several threads at once. Raises whatever the libraries raise.

    `positive` are labels of the output that counts, in lower case; `second`: else that is the second one of two.
    """

    def __init__(self, place: str | Path, positive: Collection[str], *, second: bool = False) -> None:
        files = ModelFolder.at(place)
        # Of both texts together 512 at most: what these models were trained with.
        self._model = OnnxModel(files, files.max_tokens(SHORTEST_CONTEXT))
        labels = files.json(CONFIG).get("id2label") or {}
        count = self._model.run(*_TRIAL).size  # also shows that the graph can be run
        self._positive = _positive(labels, count, positive, second=second)

    def logit(self, first: str, second: str) -> float:
        """The logarithm of the odds that the positive label is right; not finite where an output is not."""
        outputs = [float(number) for number in self._model.run(first, second).reshape(-1)]
        if self._positive is None or not all(map(math.isfinite, outputs)):
            return outputs[0] if self._positive is None else math.nan
        positive = outputs.pop(self._positive)
        top = max(outputs)
        return positive - top - math.log(sum(math.exp(number - top) for number in outputs))


def _positive(labels: dict[str, object], count: int, positive: Collection[str], *, second: bool) -> int | None:
    """The number of the output that counts; None for a model with one output. Raises `ValueError`."""
    if count == 1 and (second or len(labels) < 2):
        return None
    numbers = [int(number) for number, label in labels.items() if str(label).casefold() in positive]
    if not numbers and second and count == 2:
        return 1
    if not numbers:
        named, meaning = ", ".join(map(str, labels.values())) or "none", "relevance" if second else "support"
        raise ValueError(
            f"it gives {count} numbers a pair, and none of its labels ({named}) in {CONFIG} means {meaning}: name "
            f"the output in id2label"
        )
    if numbers[0] >= count or len(labels) > count:
        raise ValueError(f"it gives {count} numbers a pair, and {CONFIG} names more labels")
    return numbers[0]


def share_of(logit: float, farthest: float = 30.0) -> float:
    """1 / (1 + exp(-logit)), strictly inside (0, 1): logits beyond `farthest` are taken for it; nan for one that is not
    finite."""
    return 1.0 / (1.0 + math.exp(-min(farthest, max(-farthest, logit)))) if math.isfinite(logit) else math.nan


POSITIVE = (
    "entailment", "entails", "supported", "support", "supports", "consistent", "faithful", "factual", "yes",
)  # fmt: skip


class OnnxClaimChecker:
    """Blocking, CPU-bound, safe to call from several threads at once."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        self.id = folder.resolve().name
        self._folder, self._threads = folder, max(1, threads)
        verify(self.id, folder)
        try:
            self._model = PairModel(folder, POSITIVE)
        except Exception as error:  # the boundary: both libraries raise plain `Exception` for a bad file
            reason = " ".join(str(error).split())[:200]
            raise ModelDamaged(
                f"The claim checker in {folder} cannot be used: {reason}. "
                "Set DTRAG_JUDGE to another folder, or to lexical."
            ) from error

    def check(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """See `ClaimChecker`. Raises `ModelDamaged` for outputs that are not numbers."""

        def probability(pair: tuple[str, str]) -> float:
            return share_of(self._model.logit(*pair))

        probabilities = in_order(probability, pairs, self._threads, "check-claim")
        if not all(map(math.isfinite, probabilities)):
            raise ModelDamaged(
                f"The claim checker in {self._folder} gave a number that is not finite. Set DTRAG_JUDGE to another "
                "folder, or to lexical."
            )
        return probabilities


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
