"""Settings in TOML files: where they are, which are trusted, what they contain. `settings.py` decides which one wins.

A file decides where data goes and which key is sent where, so it is read only if no one but its reader and root could
have written it. A project file comes with a folder, perhaps with a clone of a repository that others wrote: it can set
neither secrets nor addresses to which they are sent.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import stat
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtrag.errors import InvalidInput

PROJECT = "dtrag.toml"
"""A file of its own, not a table of pyproject.toml: most folders of documents are no Python project, and what is
shared in such a file must not be mixed with what only its owner may write."""
SYSTEM = Path("/etc/dtrag/config.toml")
MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SettingFile:
    """A file of settings; `values` has the text of each value by name, `lines` its line, `note` why there are none."""

    kind: str
    path: Path
    values: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """The names of the settings, which of them are secrets, and which a project file may not set."""

    names: Collection[str]
    secrets: Collection[str]
    not_in_project: Collection[str]


def user_file() -> Path:
    """The file of the user, in the platform's folder for settings."""
    import platformdirs

    return Path(platformdirs.user_config_dir("dtrag", appauthor=False), "config.toml")


def setting_files(known: Known, chosen: str = "") -> Iterator[SettingFile]:
    """The files, the one that takes precedence first; of `chosen`, only that one, and none for `none`.

    Raises `InvalidInput` for a file that is not trusted, is not TOML, or has an unknown name.
    """
    if chosen == "none":
        return
    if chosen:
        path = Path(chosen).expanduser().absolute()
        if not path.exists():
            raise InvalidInput(f"{path} does not exist: DTRAG_CONFIG is an existing TOML file, or none.")
        yield _read("DTRAG_CONFIG", path, known)
        return
    with contextlib.suppress(FileNotFoundError):  # the working directory was deleted
        yield _read("project", Path.cwd() / PROJECT, known)
    yield _read("user", user_file(), known)
    yield _read("system", SYSTEM, known)


def _read(kind: str, path: Path, known: Known) -> SettingFile:
    try:
        table, text, readable = trusted_table(path)
    except FileNotFoundError:
        return SettingFile(kind, path, note=" (no such file)")
    except PermissionError as error:
        if kind == "system":  # for the service alone, because it has secrets; other users have files of their own
            return SettingFile(kind, path, note=" (not readable)")
        raise InvalidInput(f"{path} cannot be read: make it readable, or set DTRAG_CONFIG=none.") from error
    lines = {name: _line(text, name) for name in table}
    for name, value in table.items():
        _check(f"{path}:{lines[name]}", kind, name, value, known)
    if readable and (secret := known.secrets & table.keys()):
        raise InvalidInput(
            f"{path}:{lines[min(secret)]}: every user of this machine can read the secret {min(secret)}. "
            f"Type: chmod o-rwx {path}"
        )
    return SettingFile(kind, path, {name: str(value) for name, value in table.items()}, lines)


def trusted_table(path: Path) -> tuple[dict[str, Any], str, bool]:
    """A TOML file that no other user can have written, its text, and whether every user of the machine can read it.

    Raises `FileNotFoundError`, `PermissionError`, and `InvalidInput` for everything else that is wrong with it.
    """
    try:
        with os.fdopen(
            os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb"
        ) as file:  # a pipe must not block
            opened = os.fstat(file.fileno())
            if not stat.S_ISREG(opened.st_mode) or opened.st_size > MOST_BYTES:
                raise InvalidInput(f"{path} is not a file of settings: give a regular file of at most 1 MiB.")
            _check_writers(path, opened)
            text = file.read(MOST_BYTES + 1).decode("utf-8-sig")
    except NotADirectoryError as error:
        raise FileNotFoundError(path) from error
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as UTF-8 text: {error}.") from error
    try:
        return tomllib.loads(text), text, os.name == "posix" and bool(opened.st_mode & stat.S_IROTH)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}.") from error


def _check_writers(path: Path, opened: os.stat_result) -> None:
    """Raise `InvalidInput` unless only the user of this process and root can have written the file or replaced it."""
    if sys.platform == "win32":
        return
    advice = "Take over the file, work in another folder, or set DTRAG_CONFIG=none."
    folder = path.parent.stat()
    # The link itself and the folder count too: their owner could choose another file of this user.
    for named, status in ((path, opened), (path, path.lstat()), (path.parent, folder)):
        if status.st_uid not in {os.geteuid(), 0}:
            raise InvalidInput(f"{path} is not read: {named} belongs to another user. {advice}")
    if opened.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidInput(f"{path} is not read: other users can write it. Type: chmod go-w {path}")
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        raise InvalidInput(f"{path} is not read: every user can write its folder. Type: chmod o-w {path.parent}")


def _line(text: str, name: str) -> int:
    written = rf"""^\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]"""
    return next((number for number, line in enumerate(text.splitlines(), 1) if re.match(written, line)), 1)


def _check(place: str, kind: str, name: str, value: object, known: Known) -> None:
    if name not in known.names:
        raise InvalidInput(f"{place}: {no_setting(name, known.names)}")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(f'{place}: {name} must be a string or a number, such as {name} = "on".')
    if kind == "project" and name in known.not_in_project:
        raise InvalidInput(
            f"{place}: the file of a folder may not set {name}: it is a secret, or decides where they are sent or what "
            f"is reachable. Write it to {user_file()}, or set DTRAG_{name.upper()}."
        )


def no_setting(name: str, names: Collection[str]) -> str:
    """The message for a name that no setting has, with the nearest one that exists."""
    close = difflib.get_close_matches(name.lower().removeprefix("dtrag_"), names, 1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    return f"There is no setting {name[:60]!r}.{meant} `dtrag settings` lists them."
