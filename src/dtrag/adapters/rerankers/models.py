"""Cross-encoders on this machine: which are known, where they lie, whether they are whole; and fetching one.

A model lies in `<model folder>/<name>`. Their publishers give no wheel whose sums could be pinned here; what was
fetched is checked against the sums that the hub states, tried out, and its sums are kept beside it in `SHA256SUMS`.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dtrag.adapters.embedders.models import ModelInfo, model_dir
from dtrag.adapters.rerankers.cross_encoder import CONFIG, TOKENIZER, WEIGHTS, CrossEncoder, available
from dtrag.errors import ModelDamaged, ModelNotFound, ModelPullFailed
from dtrag.settings import Settings

SUMS = "SHA256SUMS"
_LAST_WORDS = 300
_SHA256 = re.compile(r"[0-9a-f]{64}")
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


def verify(name: str, folder: Path) -> bool:
    """Whether there are sums to check by. Raises `ModelDamaged` when a file is not, or no longer, what they say."""
    if not (folder / SUMS).is_file():
        return False
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        expected, _, file = line.partition("  ")
        path = folder / Path(file).name
        if not path.is_file() or _sha256(path) != expected:
            raise ModelDamaged(name=name, path=path)
    return True


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
            files = _fetch(model, Path(staging), endpoint)
            progress("Trying it out")
            _try_out(model, Path(staging))
            _move(files, Path(staging), target)
    except OSError as error:
        raise ModelPullFailed(name=model.name, reason=str(error)[:_LAST_WORDS]) from error
    progress(f"Ready in {target}")
    return target


def _fetch(model: Published, staging: Path, endpoint: str | None) -> dict[str, str]:
    """The files of one revision, by their names here, with their sums."""
    revision: str | None = None
    sums: dict[str, str] = {}
    for name, published_as in ((WEIGHTS, model.weights), (TOKENIZER, TOKENIZER), (CONFIG, CONFIG)):
        try:
            downloaded, stated, revision = _download(model.repository, published_as, revision, staging, endpoint)
        except Exception as error:  # the seam: huggingface_hub raises what its HTTP library of the day does
            reason = " ".join(str(error).split())[:_LAST_WORDS] or type(error).__name__
            raise ModelPullFailed(name=model.name, reason=reason) from error
        sums[name] = _sha256(downloaded)
        if _SHA256.fullmatch(stated) and stated != sums[name]:
            raise ModelDamaged(name=model.name, path=f"{model.repository}/{published_as}")
        downloaded.replace(staging / name)
    return sums


def _download(
    repository: str, file: str, revision: str | None, staging: Path, endpoint: str | None
) -> tuple[Path, str, str | None]:
    """Where the file lies now, its sum as the hub states it, and its revision. Sends no token, whatever is stored."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    url = hf_hub_url(repository, file, revision=revision, endpoint=endpoint)
    about = get_hf_file_metadata(url, token=False, endpoint=endpoint)
    path = hf_hub_download(
        repository, file, revision=about.commit_hash, local_dir=staging / "hub", token=False, endpoint=endpoint
    )
    return Path(str(path)), about.etag or "", about.commit_hash


def _try_out(model: Published, folder: Path) -> None:
    scores = CrossEncoder(folder, name=model.name).score(_QUESTION, [_ANSWER, _OTHER], time.monotonic() + 60)
    if scores is None or scores[0] <= scores[1]:
        raise ModelDamaged(
            f"The reranker {model.name!r} that was fetched does not tell an answer from another sentence; "
            "nothing was installed. Try again later, or do without: DTRAG_RERANKER=none"
        )


def _move(sums: dict[str, str], staging: Path, target: Path) -> None:
    """One rename a file; the sums go first and come last, so that a half-moved model is never taken for a whole one."""
    target.mkdir(exist_ok=True)
    (staging / SUMS).write_text("".join(f"{sha256}  {name}\n" for name, sha256 in sums.items()), encoding="utf-8")
    (target / SUMS).unlink(missing_ok=True)
    for name in (*sums, SUMS):
        (staging / name).replace(target / name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
