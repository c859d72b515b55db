"""Cross-encoders on this machine: known models, where they are installed, their state, and `dtrag models pull`.

A model is installed in `<model folder>/<name>`. Their publishers offer no wheel whose checksums could be pinned here: a
download is checked against the checksums of the hub, tried out, and its checksums are kept in `SHA256SUMS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dtrag.adapters.model_files import (
    SUMS,
    TRIAL_ANSWER,
    TRIAL_OTHER,
    TRIAL_QUESTION,
    ModelInfo,
    PublishedModel,
    model_dir,
    pull_from_hub,
    state_of,
)
from dtrag.adapters.pair_model import CONFIG, TOKENIZER, WEIGHTS, available
from dtrag.adapters.rerankers.cross_encoder import CrossEncoder
from dtrag.errors import ModelDamaged, ModelNotFound
from dtrag.settings import Settings

PUBLISHED: tuple[PublishedModel, ...] = (
    PublishedModel(
        name="cross-encoder/ms-marco-MiniLM-L-6-v2",
        languages=frozenset({"en"}),
        licence="Apache-2.0",
        size=80_000_000,
        repository="Xenova/ms-marco-MiniLM-L-6-v2",
        weights="onnx/model.onnx",
    ),
    PublishedModel(
        name="cross-encoder/ms-marco-MiniLM-L-12-v2",
        languages=frozenset({"en"}),
        licence="Apache-2.0",
        size=120_000_000,
        repository="Xenova/ms-marco-MiniLM-L-12-v2",
        weights="onnx/model.onnx",
    ),
    PublishedModel(
        name="BAAI/bge-reranker-v2-m3",
        languages=frozenset({"*"}),
        licence="Apache-2.0",
        size=570_000_000,
        repository="onnx-community/bge-reranker-v2-m3-ONNX",
        weights="onnx/model_int8.onnx",
    ),
)
"""The first that is on this machine is the one that `auto` takes. Only licences that allow any use."""


def published(name: str) -> PublishedModel | None:
    """The known model of this name."""
    return next((model for model in PUBLISHED if model.name == name), None)


def locate(name: str, settings: Settings) -> Path | None:
    """The folder with the model's files, or None. Checks file names only."""
    folder = model_dir(settings) / name
    return folder if available(folder) else None


def list_models(settings: Settings) -> list[ModelInfo]:
    """Every known cross-encoder, its location and its state. Uses no network."""
    return [_inspect(model, settings) for model in PUBLISHED]


def _inspect(model: PublishedModel, settings: Settings) -> ModelInfo:
    folder = model_dir(settings) / model.name
    present = available(folder) or (folder / SUMS).is_file()
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) if present else model.size
    return ModelInfo(
        name=model.name,
        languages=tuple(sorted(model.languages)),
        dim=None,
        licence=model.licence,
        size=size,
        source="model folder" if present else None,
        path=folder if present else None,
        state=state_of(model.name, folder) if present else "absent",
        kind="reranker",
    )


def pull(name: str, settings: Settings, progress: Callable[[str], None], endpoint: str | None = None) -> Path:
    """Download the model into the model folder and return its folder there. `progress` gets one line per step.

    `endpoint` is another hub than the one that huggingface_hub is set up for. Raises `ModelNotFound` (no such model),
    `ModelPullFailed` (no network, disk full) or `ModelDamaged` (the download does not work); then nothing has changed.
    """
    model = published(name)
    if model is None:
        known = ", ".join(model.name for model in PUBLISHED)
        raise ModelNotFound(f"There is no reranker {name!r} that dtrag knows how to fetch. Known: {known}.")
    files = {WEIGHTS: model.weights, TOKENIZER: TOKENIZER, CONFIG: CONFIG}
    try_model = partial(_try_out, model)
    return pull_from_hub(model, files, settings, progress, try_out=try_model, endpoint=endpoint)


def _try_out(model: PublishedModel, folder: Path) -> None:
    scores = CrossEncoder(folder, name=model.name).score(
        TRIAL_QUESTION, [TRIAL_ANSWER, TRIAL_OTHER], time.monotonic() + 60
    )
    if scores is None or scores[0] <= scores[1]:
        raise ModelDamaged(
            f"The reranker {model.name!r} that was fetched does not tell an answer from another sentence; "
            "nothing was installed. Try again later, or do without: DTRAG_RERANKER=none"
        )
