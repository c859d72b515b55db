"""The secret of an installation by which questions are hashed: that of the settings, or a file of the data folder."""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

from dtrag.core.answer_record import TextKey
from dtrag.errors import InvalidInput
from dtrag.settings import Settings

FILE = "answer-key"
BYTES = 32
_LOG = logging.getLogger(__name__)


def answer_seed(settings: Settings) -> bytes:
    """The secret, 32 bytes; the file is made when it is missing. Raises `InvalidInput`."""
    if settings.answer_key:
        return _parsed(settings.answer_key, "DTRAG_ANSWER_KEY")
    path = settings.data_dir / FILE
    try:
        if not path.exists():
            _make(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="ascii") as file:
            if os.fstat(descriptor).st_mode & 0o077:
                raise InvalidInput(f"Others can read the secret in {path}. Take that right away: chmod 600 {path}")
            return _parsed(file.read(1_000), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"The secret of this installation, {path}, cannot be read or made: {error}. Check the folder, or set "
            "DTRAG_ANSWER_KEY."
        ) from error


def text_key(settings: Settings) -> TextKey | None:
    """The key for questions; None, which is logged, if there is none: an answer is given without it."""
    try:
        return TextKey.derived(answer_seed(settings))
    except InvalidInput as error:
        _LOG.warning("questions are not recorded, so that replays cannot check them: %s", error)
        return None


def _parsed(text: str, place: str) -> bytes:
    with suppress(ValueError):
        if len(seed := bytes.fromhex(text.strip())) == BYTES:
            return seed
    raise InvalidInput(f"{place} is not a secret of 64 hexadecimal digits. Make one with: openssl rand -hex 32")


def _make(path: Path) -> None:
    """Write a new secret, whole or not at all; that of a process which was faster stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(BYTES) + "\n")
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(partial, path)
    finally:
        partial.unlink(missing_ok=True)
