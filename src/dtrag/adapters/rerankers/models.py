"""Cross-encoders on this machine: which are known, where they lie, whether they are whole; and fetching one.

A model lies in `<model folder>/<name>`. Their publishers give no wheel whose sums could be pinned here; what was
fetched is checked against the sums that the hub states, tried out, and its sums are kept beside it in `SHA256SUMS`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dtrag.adapters.embedders.models import ModelInfo, model_dir
from dtrag.adapters.hub_files import LONGEST_REASON, SUMS, fetch, install, verify
from dtrag.adapters.rerankers.cross_encoder import CONFIG, TOKENIZER, WEIGHTS, CrossEncoder, available
from dtrag.errors import ModelDamaged, ModelNotFound, ModelPullFailed
from dtrag.settings import Settings

_QUESTION = "How long does parental leave last?"
_ANSWER, _OTHER = "Parental leave lasts up to three years.", "The pump housing is made of cast brass."


@dataclass(frozen=True, slots=True)
class Published:
    """A cross-encoder and where its ONNX form is published. `size` in bytes is about what it takes."""

    name: str
    languages: frozenset[str]
    licence: str
    size: int
    repository: str
    weights: str


PUBLISHED: tuple[Published, ...] = (
    Published(
        name="cross-encoder/ms-marco-MiniLM-L-6-v2",
        languages=frozenset({"en"}),
        licence="Apache-2.0",
        size=80_000_000,
        repository="Xenova/ms-marco-MiniLM-L-6-v2",
        weights="onnx/model.onnx",
    ),
    Published(
        name="cross-encoder/ms-marco-MiniLM-L-12-v2",
        languages=frozenset({"en"}),
        licence="Apache-2.0",
        size=120_000_000,
        repository="Xenova/ms-marco-MiniLM-L-12-v2",
        weights="onnx/model.onnx",
    ),
    Published(
        name="BAAI/bge-reranker-v2-m3",
        languages=frozenset({"*"}),
        licence="Apache-2.0",
        size=570_000_000,
        repository="onnx-community/bge-reranker-v2-m3-ONNX",
        weights="onnx/model_int8.onnx",
    ),
)
"""The first that is on this machine is the one that `auto` takes. Only licences that allow any use."""


def published(name: str) -> Published | None:
    """The known model of this name."""
    return next((model for model in PUBLISHED if model.name == name), None)


def locate(name: str, settings: Settings) -> Path | None:
    """The folder with the model's files, or None. Looks at names only."""
    folder = model_dir(settings) / name
    return folder if available(folder) else None


def list_models(settings: Settings) -> list[ModelInfo]:
    """Every known cross-encoder, where it was found, and whether it is whole. Uses no network."""
    return [_inspect(model, settings) for model in PUBLISHED]


def _inspect(model: Published, settings: Settings) -> ModelInfo:
    folder = model_dir(settings) / model.name
    state: Literal["verified", "damaged", "absent", "unpinned"] = "absent"
    if available(folder) or (folder / SUMS).is_file():
        try:
            state = "verified" if verify(model.name, folder) else "unpinned"
        except ModelDamaged:
            state = "damaged"
    here = state != "absent"
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) if here else model.size
    return ModelInfo(
        name=model.name,
        languages=tuple(sorted(model.languages)),
        dim=None,
        licence=model.licence,
        size=size,
        source="model folder" if here else None,
        path=folder if here else None,
        state=state,
        kind="reranker",
    )


def pull(name: str, settings: Settings, progress: Callable[[str], None], endpoint: str | None = None) -> Path:
    """Download the model into the model folder and return its folder there. `progress` gets one line per step.

    `endpoint` is another hub than the one that huggingface_hub is set up for. Raises `ModelNotFound` (no such model),
    `ModelPullFailed` (no network, no room) or `ModelDamaged` (what came does not work); then nothing has changed.
    """
    model = published(name)
    if model is None:
        known = ", ".join(model.name for model in PUBLISHED)
        raise ModelNotFound(f"There is no reranker {name!r} that dtrag knows how to fetch. Known: {known}.")
    target = model_dir(settings) / model.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=model_dir(settings)) as staging:
            progress(f"Downloading {model.repository} (about {model.size / 1e6:.0f} MB)")
            published_as = {WEIGHTS: model.weights, TOKENIZER: TOKENIZER, CONFIG: CONFIG}
            sums = fetch(model.name, model.repository, published_as, Path(staging), endpoint)
            progress("Trying it out")
            _try_out(model, Path(staging))
            install(sums, Path(staging), target)
    except OSError as error:
        raise ModelPullFailed(name=model.name, reason=str(error)[:LONGEST_REASON]) from error
    progress(f"Ready in {target}")
    return target


def _try_out(model: Published, folder: Path) -> None:
    scores = CrossEncoder(folder, name=model.name).score(_QUESTION, [_ANSWER, _OTHER], time.monotonic() + 60)
    if scores is None or scores[0] <= scores[1]:
        raise ModelDamaged(
            f"The reranker {model.name!r} that was fetched does not tell an answer from another sentence; "
            "nothing was installed. Try again later, or do without: DTRAG_RERANKER=none"
        )
