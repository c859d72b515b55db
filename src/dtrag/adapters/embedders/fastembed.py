"""Multilingual embeddings by fastembed from local files; needs `dtrag[fastembed]`, downloads nothing by itself.

A model is installed in `<model folder>/<name>` with the files that fastembed reads; `SHA256SUMS` has their checksums.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dtrag.adapters.model_files import (
    TRIAL_ANSWER,
    TRIAL_OTHER,
    TRIAL_QUESTION,
    ModelInfo,
    OnDemand,
    PublishedModel,
    model_dir,
    pull_from_hub,
    sha256_of,
    state_of,
    stated_sums,
    verify,
)
from dtrag.adapters.onnx_model import readable
from dtrag.core.documents import Vector
from dtrag.errors import EmbedderFailed, InvalidInput, MissingExtra, ModelDamaged, ModelNotFound
from dtrag.settings import Settings

KEY = "fastembed"


class FastembedEmbedder(OnDemand[Any]):
    """Blocking, CPU-bound, safe to call from several threads; loads at its first use.

    One text is one run of the model: the vector of a quantised model would otherwise depend on its neighbours.
    """

    floor = 0.0
    decides = True

    def __init__(self, model: Published, folder: Path, *, threads: int = 1) -> None:
        super().__init__(self._read)
        slug = re.sub(r"[^a-z0-9._-]+", "-", model.name.rpartition("/")[2].lower())
        self.id = f"{KEY}-{slug}@{digest_of(model, folder)[:8]}"
        self.dim = model.dim
        self.languages = model.languages
        self.max_tokens = context_of(folder)
        self._published, self._folder, self._threads = model, folder, max(1, threads)

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`. Raises `ModelDamaged` and `EmbedderFailed`."""
        return self._embed(texts, self._published.document_prefix)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`. Raises `ModelDamaged` and `EmbedderFailed`."""
        return self._embed(texts, self._published.query_prefix)

    def _embed(self, texts: Sequence[str], prefix: str) -> Vector:
        if not texts:
            return np.empty((0, self.dim), np.float32)
        prefixed = [prefix + readable(text, self.max_tokens) for text in texts]
        vectors = np.asarray(list(self.loaded().embed(prefixed, batch_size=1)), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True) if vectors.ndim == 2 else np.zeros((1, 1))
        if vectors.shape != (len(texts), self.dim) or not np.isfinite(vectors).all() or not lengths.all():
            raise EmbedderFailed(name=self.id, reason=f"it gave no {len(texts)} vectors of {self.dim} numbers.")
        return np.asarray(vectors / lengths, np.float32)

    def _read(self) -> Any:
        verify(self._published.name, self._folder)
        try:
            return text_embedding()(
                self._published.name,
                threads=self._threads,
                specific_model_path=str(self._folder),
                local_files_only=True,
            )
        except Exception as error:  # the boundary: fastembed and onnxruntime raise plain errors for a bad file
            reason = " ".join(str(error).split())[:200]
            raise ModelDamaged(
                f"The embedder {self._published.name!r} in {self._folder} cannot be used: {reason}. Fetch it again "
                f"with: dtrag models pull {self._published.name}"
            ) from error


def create(name: str, settings: Settings) -> FastembedEmbedder:
    """The embedder that `fastembed` or `fastembed:MODEL` names, not loaded yet.

    Raises `MissingExtra`, `InvalidInput` for a model that cannot be used, and `ModelNotFound` for one that is not on
    this machine.
    """
    if not installed():
        raise MissingExtra(feature=f"The embedder {name[:80]!r}", extra="fastembed")
    model = described(name.partition(":")[2] or PUBLISHED[0].name, settings.embed_languages)
    folder = locate(model, settings)
    if folder is None:
        raise ModelNotFound(name=model.name)
    return FastembedEmbedder(model, folder, threads=settings.embed_threads)


def try_out(model: Published, folder: Path) -> None:
    """Raises `ModelDamaged` when a model does not tell an answer from another sentence."""
    embedder = FastembedEmbedder(model, folder)
    try:
        [question] = embedder.embed_queries([TRIAL_QUESTION])
        answer, other = embedder.embed_documents([TRIAL_ANSWER, TRIAL_OTHER]) @ question
    except EmbedderFailed as error:
        raise ModelDamaged(f"The embedder {model.name!r} that was fetched does not work: {error}") from error
    if answer <= other:
        raise ModelDamaged(
            f"The embedder {model.name!r} that was fetched does not tell an answer from another sentence; nothing was "
            "installed. Try again later, or use another one: DTRAG_EMBEDDER=minilm"
        )


TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
_ALWAYS_READ = (TOKENIZER, TOKENIZER_CONFIG, "config.json", "special_tokens_map.json")
_SHORTEST_CONTEXT = 512
_PARAPHRASE = frozenset(
    "ar bg ca cs da de el en es et fa fi fr gl gu he hi hr hu hy id it ja ka ko ku lt lv mk mn mr ms my nb nl pl pt ro "
    "ru sk sl sq sr sv th tr uk ur vi zh".split()
)
"""Languages that the paraphrase-multilingual models were trained on, as their authors list them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published(PublishedModel):
    """A model by fastembed's name. `weights` and `more_files` are paths in the repository and in the folder.

    The prefixes are put before each text.
    """

    dim: int
    more_files: tuple[str, ...] = ()
    query_prefix: str = ""
    document_prefix: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """All files to download."""
        return (self.weights, *self.more_files, *_ALWAYS_READ)


PUBLISHED: tuple[Published, ...] = (
    Published(
        name="sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        languages=_PARAPHRASE,
        dim=384,
        licence="Apache-2.0",
        size=240_000_000,
        repository="Qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q",
        weights="model_optimized.onnx",
    ),
    Published(
        name="sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        languages=_PARAPHRASE,
        dim=768,
        licence="Apache-2.0",
        size=1_100_000_000,
        repository="Xenova/paraphrase-multilingual-mpnet-base-v2",
        weights="onnx/model.onnx",
    ),
    Published(
        name="intfloat/multilingual-e5-large",
        languages=frozenset({"*"}),
        dim=1024,
        licence="MIT",
        size=2_260_000_000,
        repository="Qdrant/multilingual-e5-large-onnx",
        weights="model.onnx",
        more_files=("model.onnx_data",),
        query_prefix="query: ",
        document_prefix="passage: ",
    ),
)
"""The first is the default. Only licences that allow any use: jina-embeddings-v3 (CC-BY-NC-4.0) is not among them."""


def installed() -> bool:
    """Whether the extra is installed. Imports nothing."""
    return find_spec("fastembed") is not None


def text_embedding() -> Any:
    """fastembed's class `TextEmbedding`. Blocking: the import takes about half a second."""
    return import_module("fastembed").TextEmbedding


def published(name: str) -> Published | None:
    """The known model of this name."""
    return next((model for model in PUBLISHED if model.name == name), None)


def described(name: str, languages: str) -> Published:
    """The model of this name: from the table, or as fastembed describes it, for these languages (`ko,en` or `*`).

    Raises `InvalidInput` for a name that fastembed does not know, for a licence that forbids use at work, and when the
    languages of a model that is not in the table are not given.
    """
    known = published(name)
    if known is not None:
        return known
    supported = next((row for row in text_embedding().list_supported_models() if row["model"] == name), None)
    if supported is None:
        names = ", ".join(model.name for model in PUBLISHED)
        raise InvalidInput(f"fastembed has no model {name[:80]!r}. Known: {names}, and what fastembed supports.")
    if "-nc" in supported["license"].lower():
        raise InvalidInput(
            f"The embedder {name!r} is licensed {supported['license']}, for non-commercial use only; dtrag does not "
            f"load such models. Choose another one, such as fastembed:{PUBLISHED[0].name}."
        )
    codes = frozenset(code.strip().lower() for code in languages.split(",") if code.strip())
    if not codes or not all(code == "*" or (len(code) == 2 and code.isascii() and code.isalpha()) for code in codes):
        raise InvalidInput(
            f"The languages of the embedder {name!r} are not known here: set DTRAG_EMBED_LANGUAGES to those that it "
            "was trained on, as two-letter codes with commas, such as ko,en, or to * for all."
        )
    return Published(
        name=supported["model"],
        languages=codes,
        dim=supported["dim"],
        licence=supported["license"],
        size=int(supported["size_in_GB"] * 1e9),
        repository=str(supported["sources"]["hf"]),
        weights=supported["model_file"],
        more_files=tuple(supported["additional_files"]),
    )


def locate(model: Published, settings: Settings) -> Path | None:
    """The folder with the model's files, or None. Checks file names only."""
    folder = model_dir(settings) / model.name
    here = all((folder / name).is_file() for name in (model.weights, TOKENIZER, TOKENIZER_CONFIG))
    return folder if here else None


def digest_of(model: Published, folder: Path) -> str:
    """The SHA-256 of the weights: as recorded when they were installed, else of the file (half a second a gigabyte)."""
    return stated_sums(folder).get(model.weights) or sha256_of(folder / model.weights)


def context_of(folder: Path) -> int:
    """The tokens that a model in a folder takes. Raises `ModelDamaged`."""
    path = folder / TOKENIZER_CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        limits = [config.get(name) for name in ("model_max_length", "max_length")]
    except (OSError, ValueError, AttributeError) as error:
        raise ModelDamaged(name=folder.name, path=path) from error
    sensible = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 1_000_000]
    return min(sensible, default=_SHORTEST_CONTEXT)


def list_models(settings: Settings) -> list[ModelInfo]:
    """Every known model, its location and its state. Uses no network, and needs no extra."""
    return [_inspect(model, settings) for model in PUBLISHED]


def _inspect(model: Published, settings: Settings) -> ModelInfo:
    folder = locate(model, settings)
    return ModelInfo(
        name=model.name,
        languages=tuple(sorted(model.languages)),
        dim=model.dim,
        licence=model.licence,
        size=model.size,
        source="model folder" if folder is not None else None,
        path=folder,
        state=state_of(model.name, folder) if folder is not None else "absent",
    )


def pull(
    name: str,
    settings: Settings,
    progress: Callable[[str], None],
    try_out: Callable[[Published, Path], None],
    endpoint: str | None = None,
) -> Path:
    """Download a known model into the model folder and return its folder there. `progress` gets one line per step.

    `try_out` raises `ModelDamaged` for a model that does not work; `endpoint` is another hub than the usual one. Raises
    `MissingExtra`, `ModelNotFound`, `ModelPullFailed` and `ModelDamaged`; then nothing has changed.
    """
    model = published(name)
    if model is None:
        known = ", ".join(model.name for model in PUBLISHED)
        raise ModelNotFound(f"There is no embedder {name!r} that dtrag knows how to fetch. Known: {known}.")
    if not installed():
        raise MissingExtra(feature=f"The embedder {name!r}", extra="fastembed")
    files = {file: file for file in model.files}
    try_model = partial(try_out, model)
    return pull_from_hub(model, files, settings, progress, try_out=try_model, endpoint=endpoint)
