"""Files of models from a hub: fetched at one revision, checked against stated sums, installed with their sums."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from dtrag.errors import ModelDamaged, ModelPullFailed

SUMS = "SHA256SUMS"
LONGEST_REASON = 300
_SHA256 = re.compile(r"[0-9a-f]{64}")


def fetch(
    model: str, repository: str, files: Mapping[str, str], staging: Path, endpoint: str | None = None
) -> dict[str, str]:
    """Download the files of one revision into `staging`: name here -> name in the repository. Returns name -> SHA-256.

    `endpoint` is another hub than the one that huggingface_hub is set up for. Raises `ModelPullFailed`, and
    `ModelDamaged` for a file that does not have the sum that the hub states.
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
    """One rename a file; the sums go first and come last, so that a half-moved model is never taken for a whole one."""
    target.mkdir(parents=True, exist_ok=True)
    (staging / SUMS).write_text("".join(f"{sha256}  {name}\n" for name, sha256 in sums.items()), encoding="utf-8")
    (target / SUMS).unlink(missing_ok=True)
    for name in (*sums, SUMS):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (staging / name).replace(target / name)


def stated_sums(folder: Path) -> dict[str, str]:
    """Name -> SHA-256 as they were when the model was installed; empty when they were not recorded."""
    if not (folder / SUMS).is_file():
        return {}
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    return {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}


def verify(name: str, folder: Path) -> bool:
    """Whether there are sums to check by. Raises `ModelDamaged` when a file is not, or no longer, what they say."""
    sums = stated_sums(folder)
    for file, expected in sums.items():
        path = folder / file
        if not path.is_file() or sha256_of(path) != expected:
            raise ModelDamaged(name=name, path=path)
    return bool(sums)


def sha256_of(path: Path) -> str:
    """In hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
