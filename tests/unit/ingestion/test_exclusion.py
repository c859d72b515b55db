"""Patterns leave the same files out as Git would with the same `.gitignore` files."""

from __future__ import annotations

import shutil
import subprocess
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dtrag.errors import InvalidInput
from dtrag.ingestion.exclusion import IGNORE_FILE, Excluded, walk

FILES = (
    "README.md",
    "notes.tmp",
    "a.md",
    "drafts/a.md",
    "drafts/final.md",
    "drafts/README.md",
    "deep/er/b.md",
    "휴학.md",
)
CASES: Mapping[str, tuple[Sequence[str], Mapping[str, str], Sequence[str]]] = {
    "nothing": ((), {}, ("README.md", "a.md", "deep/er/b.md", "drafts/README.md", "drafts/a.md", "drafts/final.md",
                         "notes.tmp", "휴학.md")),
    "an ignore file": ((), {"": "# about the folder\nREADME.md\n*.tmp\n\n"},
                       ("a.md", "deep/er/b.md", "drafts/a.md", "drafts/final.md", "휴학.md")),
    "only there": ((), {"": "/a.md\n/README.md"},
                   ("deep/er/b.md", "drafts/README.md", "drafts/a.md", "drafts/final.md", "notes.tmp", "휴학.md")),
    "a folder": ((), {"": "drafts/\n!drafts/final.md"}, ("README.md", "a.md", "deep/er/b.md", "notes.tmp", "휴학.md")),
    "what is in a folder": ((), {"": "drafts/*\n!drafts/final.md"},
                            ("README.md", "a.md", "deep/er/b.md", "drafts/final.md", "notes.tmp", "휴학.md")),
    "nested": ((), {"": "*.md", "deep": "!*.md", "drafts": "!README.md"},
               ("deep/er/b.md", "drafts/README.md", "notes.tmp")),
    "an option first": (("!README.md", "deep/er"), {"": "README.md\n휴학.md"},
                        ("README.md", "a.md", "drafts/README.md", "drafts/a.md", "drafts/final.md", "notes.tmp")),
    "any depth": (("**/b.md", "**/drafts/**"), {}, ("README.md", "a.md", "notes.tmp", "휴학.md")),
    "an escaped sign": ((), {"": "\\#a.md\n[!a]*.md\n"}, ("a.md", "drafts/a.md", "notes.tmp")),
}  # fmt: skip


def laid_out(folder: Path, ignored: Mapping[str, str]) -> Path:
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", "utf-8")
    for below, lines in ignored.items():
        (folder / below / IGNORE_FILE).write_text(lines, "utf-8")
    return folder


def files_read(folder: Path, exclude: Sequence[str] = (), excluded: list[Excluded] | None = None) -> list[str]:
    found = walk(folder, exclude, [] if excluded is None else excluded, [])
    return sorted(file.relative_to(folder).as_posix() for file in found)


@pytest.mark.parametrize("case", CASES)
def test_which_files_are_read(case: str, tmp_path: Path) -> None:
    exclude, ignored, expected = CASES[case]
    folder = laid_out(tmp_path / "docs", ignored)
    assert files_read(folder, exclude) == list(expected)
    if git := shutil.which("git"):
        subprocess.run([git, "init", "--quiet", folder], check=True)
        options = [f"--exclude-per-directory={IGNORE_FILE}", *(f"--exclude={pattern}" for pattern in exclude)]
        command = [git, "-c", "core.quotePath=off", "ls-files", "--others", *options]
        listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.split("\n")
        assert sorted(name for name in listed if name and IGNORE_FILE not in name) == list(expected)


def test_what_was_left_out_is_listed_with_its_pattern(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "docs", {"": "README.md \ndrafts/", "deep": "b.md"})
    excluded: list[Excluded] = []
    assert files_read(folder, ["*.tmp"], excluded) == ["a.md", "휴학.md"]
    assert sorted(excluded, key=lambda each: each.path) == [
        Excluded(str(folder / "README.md"), "README.md", str(folder / IGNORE_FILE)),
        Excluded(str(folder / "deep/er/b.md"), "b.md", str(folder / "deep" / IGNORE_FILE)),
        Excluded(f"{folder}/drafts/", "drafts/", str(folder / IGNORE_FILE)),
        Excluded(str(folder / "notes.tmp"), "*.tmp", "--exclude"),
    ]


def test_decomposed_names_and_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / unicodedata.normalize("NFD", "휴학.md")).write_text("x")
    (tmp_path / IGNORE_FILE).write_text("휴학.md\n", "utf-8-sig")
    assert files_read(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"ok\n!\n", r"'!' in line 2 of .*\.dtragignore is not a pattern"), (b"\xff\xfe\x00", "it is not UTF-8")],
)
def test_an_ignore_file_that_cannot_be_used_stops_everything(content: bytes, reason: str, tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "docs", {})
    (folder / "deep" / IGNORE_FILE).write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"Nothing was read.*{reason}"):
        files_read(folder)
    with pytest.raises(InvalidInput, match="'!' in --exclude is not a pattern"):
        files_read(folder, ["!"])
