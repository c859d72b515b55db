"""Cross-encoders on this machine: known models, where they are installed, `dtrag models pull`, the configured one.

A model is installed in `<model folder>/<name>`. Their publishers offer no wheel whose checksums could be pinned here: a
download is checked against the checksums of the hub, tried out, and its checksums are kept in `SHA256SUMS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dtrag.adapters.model_files import (
    SUMS,
    TRIAL_ANSWER,
    TRIAL_OTHER,
    TRIAL_QUESTION,
    ModelInfo,
    OnDemand,
    PublishedModel,
    model_dir,
    pull_from_hub,
    state_of,
    verify,
)
from dtrag.adapters.onnx_model import CONFIG, DIR, TOKENIZER, WEIGHTS, ModelFolder
from dtrag.adapters.pair_model import available
from dtrag.adapters.rerankers import cross_encoder as fastembed
from dtrag.adapters.rerankers.cross_encoder import CrossEncoder
from dtrag.errors import DtragError, InvalidInput, ModelDamaged, ModelNotFound
from dtrag.ports import Reranker
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


_ANY = frozenset({"*"})


def choose(settings: Settings) -> Reranker | None:
    """`auto`: the first known cross-encoder in the model folder, else None. A name, a folder or `dir:PATH`: that one.

    Checks file names only; the model loads at its first use. Raises `InvalidInput` for an unknown name and a licence
    that forbids commercial use, `ModelNotFound` for a model that is not on this machine.
    """
    name = settings.reranker
    if name == "none":
        return None
    if name == "auto":
        here = (_local(model.name, settings) for model in PUBLISHED)
        return next((model for model in here if model is not None), None)
    folder = Path(name.removeprefix(DIR)).expanduser()
    named = name.startswith(DIR)
    reranker: Reranker | None = None if named or folder.is_absolute() else _local(name, settings)
    if reranker is None and (named or (name and folder.is_dir())):
        reranker = _in_folder(folder, settings, DIR if named else "")
    if reranker is None:
        reranker = _cached(name, settings)
    if reranker is None:
        raise _refusal(name)
    return reranker


def _in_folder(folder: Path, settings: Settings, prefix: str) -> RerankerOnDemand:
    try:
        files = ModelFolder.at(folder)
    except ValueError as error:
        raise ModelNotFound(
            f"DTRAG_RERANKER is the folder {folder}, which cannot be used: {error}. It needs {WEIGHTS} and "
            f"{TOKENIZER}; or name a model: {', '.join(model.name for model in PUBLISHED)}."
        ) from error
    name = f"{prefix}{files.folder.resolve().name}"
    return RerankerOnDemand(name, _ANY, lambda: CrossEncoder(folder, name=name, threads=settings.embed_threads))


def _local(name: str, settings: Settings) -> RerankerOnDemand | None:
    folder, known = locate(name, settings), published(name)
    if folder is None:
        return None
    languages = known.languages if known is not None else _ANY

    def load() -> Reranker:
        verify(name, folder)
        return CrossEncoder(folder, name=name, languages=languages, threads=settings.embed_threads)

    return RerankerOnDemand(name, languages, load)


def _cached(name: str, settings: Settings) -> Reranker | None:
    """A model in fastembed's cache, by our name or fastembed's. Loaded at once, which shows that it is usable."""
    if not fastembed.installed():
        return None
    known = published(name)
    theirs = known.repository if known is not None else name
    if not fastembed.supported(theirs):
        return None
    try:
        languages = known.languages if known is not None else _ANY
        return fastembed.FastembedReranker(theirs, languages=languages, threads=settings.embed_threads)
    except ModelNotFound as error:
        if known is not None:
            raise ModelNotFound(name=name) from error
        raise


def _refusal(name: str) -> DtragError:
    if published(name) is not None:
        return ModelNotFound(name=name)
    more = "" if fastembed.installed() else " Models in fastembed's cache need: pip install 'dtrag[fastembed]'."
    return InvalidInput(
        f"There is no reranker {name[:80]!r}. Known: auto, none, {', '.join(model.name for model in PUBLISHED)}, "
        f"or a folder that holds {WEIGHTS} and {TOKENIZER}.{more}"
    )


class RerankerOnDemand(OnDemand[Reranker]):
    """A reranker that loads at its first use."""

    def __init__(self, name: str, languages: frozenset[str], load: Callable[[], Reranker]) -> None:
        super().__init__(load)
        self.id = name
        self.languages = languages

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        """See `Reranker`."""
        return self.loaded().score(query, texts, deadline)
