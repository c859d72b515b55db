"""Model files on this machine: the model folder, checksums, downloads from a hub, and models that load on demand.

Shared by embedders and rerankers. Only `pull` commands use the network.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from dtrag.errors import ModelDamaged, ModelPullFailed
from dtrag.settings import Settings

T = TypeVar("T")
State = Literal["verified", "damaged", "absent", "unpinned"]
"""`unpinned`: the files came without checksums to verify them by."""

SUMS = "SHA256SUMS"
LONGEST_REASON = 300
TRIAL_QUESTION = "How long does parental leave last?"
TRIAL_ANSWER, TRIAL_OTHER = "Parental leave lasts up to three years.", "The pump housing is made of cast brass."
"""A model that works rates the answer above the other sentence."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as `dtrag models list` shows it. `size` in bytes; `source` and `path` are None when it is absent.

    `dim` is None for a reranker, whose output is one number.
    """

    name: str
    languages: tuple[str, ...]
    dim: int | None
    licence: str
    size: int
    source: Literal["model folder", "package"] | None
    path: Path | None
    state: State
    kind: Literal["embedder", "reranker"] = "embedder"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """A model that a hub offers in ONNX. `weights` is a path in its repository; `size` its approximate bytes."""

    name: str
    languages: frozenset[str]
    licence: str
    size: int
    repository: str
    weights: str


class OnDemand(Generic[T]):
    """A model that loads at its first use, in the thread that needs it; the next use after a failure tries again."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._loaded: T | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """See `Loadable`."""
        self.loaded()

    def loaded(self) -> T:
        """The model itself. Raises `ModelDamaged`."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded


def model_dir(settings: Settings) -> Path:
    """The folder in which each model has a folder of its own name."""
    return settings.model_dir or settings.data_dir / "models"


@contextmanager
def staging(name: str, settings: Settings, progress: Callable[[str], None]) -> Iterator[tuple[Path, Path]]:
    """A temporary folder for downloads, and the folder of the model, which is ready when the block ends.

    Both are on one disk. Raises `ModelPullFailed` for what the operating system refuses.
    """
    target = model_dir(settings) / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=model_dir(settings)) as folder:
            yield Path(folder), target
    except OSError as error:
        raise ModelPullFailed(name=name, reason=str(error)[:LONGEST_REASON]) from error
    progress(f"Ready in {target}")


def pull_from_hub(
    model: PublishedModel,
    files: Mapping[str, str],
    settings: Settings,
    progress: Callable[[str], None],
    *,
    try_out: Callable[[Path], None],
    endpoint: str | None,
) -> Path:
    """Download the files (name here -> name in the repository), try the model and install it; returns its folder.

    `try_out` raises `ModelDamaged` for a model that does not work. Raises `ModelPullFailed` and `ModelDamaged`; then
    the model folder is unchanged.
    """
    with staging(model.name, settings, progress) as (folder, target):
        progress(f"Downloading {model.repository} (about {model.size / 1e6:.0f} MB)")
        sums = fetch(model.name, model.repository, files, folder, endpoint)
        progress("Trying it out")
        try_out(folder)
        install(sums, folder, target)
    return target


def fetch(
    model: str, repository: str, files: Mapping[str, str], staging: Path, endpoint: str | None = None
) -> dict[str, str]:
    """Download the files of one revision into `staging`: name here -> name in the repository. Returns name -> SHA-256.

    `endpoint` replaces the hub of huggingface_hub's configuration. Raises `ModelPullFailed`, and `ModelDamaged` for a
    file whose checksum differs from the hub's.
    """
    revision: str | None = None
    sums: dict[str, str] = {}
    for name, published_as in files.items():
        try:
            downloaded, stated, revision = _download(repository, published_as, revision, staging, endpoint)
        except Exception as error:  # the boundary: huggingface_hub raises what its HTTP library of the day does
            reason = " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
            raise ModelPullFailed(name=model, reason=reason) from error
        sums[name] = sha256_of(downloaded)
        if _SHA256.fullmatch(stated) and stated != sums[name]:
            raise ModelDamaged(name=model, path=f"{repository}/{published_as}")
        (staging / name).parent.mkdir(parents=True, exist_ok=True)
        downloaded.replace(staging / name)
    return sums


def install(sums: Mapping[str, str], staging: Path, target: Path) -> None:
    """Move the files into place, one rename each. `SHA256SUMS` is removed first and written last, so that a partly
    moved model is not taken for a complete one."""
    target.mkdir(parents=True, exist_ok=True)
    (staging / SUMS).write_text("".join(f"{sha256}  {name}\n" for name, sha256 in sums.items()), encoding="utf-8")
    (target / SUMS).unlink(missing_ok=True)
    for name in (*sums, SUMS):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (staging / name).replace(target / name)


def stated_sums(folder: Path) -> dict[str, str]:
    """Name -> SHA-256 as recorded when the model was installed; empty without a record."""
    if not (folder / SUMS).is_file():
        return {}
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    return {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}


def verify(name: str, folder: Path) -> bool:
    """Whether there are checksums to verify by. Raises `ModelDamaged` for a file that does not match its checksum."""
    sums = stated_sums(folder)
    for file, expected in sums.items():
        path = folder / file
        if not path.is_file() or sha256_of(path) != expected:
            raise ModelDamaged(name=name, path=path)
    return bool(sums)


def state_of(name: str, folder: Path) -> State:
    """The state of an installed model by its recorded checksums."""
    try:
        return "verified" if verify(name, folder) else "unpinned"
    except ModelDamaged:
        return "damaged"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Blocking, about half a second per gigabyte."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(
    repository: str, file: str, revision: str | None, staging: Path, endpoint: str | None
) -> tuple[Path, str, str | None]:
    """The downloaded file, its checksum as the hub states it, and its revision. Sends no stored token."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    url = hf_hub_url(repository, file, revision=revision, endpoint=endpoint)
    about = get_hf_file_metadata(url, token=False, endpoint=endpoint)
    path = hf_hub_download(
        repository, file, revision=about.commit_hash, local_dir=staging / "hub", token=False, endpoint=endpoint
    )
    return Path(str(path)), about.etag or "", about.commit_hash
