"""Which files of a folder an ingest leaves out: patterns as in .gitignore, of `.dtragignore` files and `--exclude`."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from dtrag.errors import InvalidInput

IGNORE_FILE = ".dtragignore"
OPTION = "--exclude"


@dataclass(frozen=True, slots=True)
class Excluded:
    """A file, or a folder with everything in it (its path ends with a slash), the pattern, and where that stands."""

    path: str
    pattern: str
    by: str


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns about the paths below a folder, from an ignore file or from `--exclude`."""

    folder: Path
    by: str
    lines: tuple[str, ...]
    spec: GitIgnoreSpec

    @classmethod
    def compiled(cls, folder: Path, by: str, lines: Sequence[str]) -> _Patterns:
        """Raises `InvalidInput` for a line that is not a pattern."""
        patterns = []
        for number, line in enumerate(lines, 1):
            try:
                patterns.append(GitIgnoreSpecPattern(unicodedata.normalize("NFC", line)))
            except GitIgnorePatternError:
                place = by if by == OPTION else f"line {number} of {by}"
                raise InvalidInput(
                    f"Nothing was read: {line!r} in {place} is not a pattern. Patterns are those of .gitignore, such "
                    "as *.tmp, drafts/ or !drafts/final.md."
                ) from None
        return cls(folder, by, tuple(lines), GitIgnoreSpec(patterns))

    def decide(self, path: Path, *, is_folder: bool) -> Excluded | bool:
        """What the last matching pattern decides: excluded, included again (True), or no pattern matches (False)."""
        below = unicodedata.normalize("NFC", path.relative_to(self.folder).as_posix()) + "/" * is_folder
        result = self.spec.check_file(below)
        if not result.include or result.index is None:
            return result.include is False
        return Excluded(f"{path}/" if is_folder else str(path), self.lines[result.index].strip(), self.by)


def walk(
    folder: Path,
    exclude: Sequence[str],
    excluded: list[Excluded],
    unreadable: list[OSError],
    *,
    hidden: bool = False,
) -> Iterator[Path]:
    """The files below a folder in a stable order, without hidden ones (unless `hidden`) and excluded ones.

    As in Git, a pattern of `exclude` takes precedence over an ignore file, and that of a folder over those above it;
    what is in an excluded folder cannot be included again. Raises `InvalidInput` for an ignore file that cannot be read
    or has an invalid line.
    """
    option = _Patterns.compiled(folder, OPTION, exclude)
    above: dict[str, tuple[_Patterns, ...]] = {}  # of the folders that are still to be visited, the nearest first
    for directory, folders, files in os.walk(folder, onerror=unreadable.append):
        place = Path(directory)
        patterns = above.pop(directory, ())
        if IGNORE_FILE in files:
            patterns = (_read(place / IGNORE_FILE), *patterns)
        rules = (option, *patterns)
        folders[:] = [
            name
            for name in sorted(folders)
            if (hidden or not name.startswith(".")) and not _left_out(rules, place / name, excluded, is_folder=True)
        ]
        above |= {str(place / name): patterns for name in folders}
        for name in sorted(files):
            if hidden or not name.startswith("."):
                path = place / name
                if not _left_out(rules, path, excluded, is_folder=False):
                    yield path


def _read(file: Path) -> _Patterns:
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(
            f"Nothing was read, because {file} says what not to read and cannot be read itself: {reason}."
        ) from error
    return _Patterns.compiled(file.parent, str(file), lines)


def _left_out(rules: Sequence[_Patterns], path: Path, excluded: list[Excluded], *, is_folder: bool) -> bool:
    for patterns in rules:
        decision = patterns.decide(path, is_folder=is_folder)
        if isinstance(decision, Excluded):
            excluded.append(decision)
            return True
        if decision:
            return False
    return False
