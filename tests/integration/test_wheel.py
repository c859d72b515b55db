"""A wheel contains the built web page, or is not built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What a build reads, with two modules instead of all, in a Git repository with the ignored files of ours."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    package = tmp_path / "src/dtrag"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/one.md").write_text("# One", "utf-8")
    return tmp_path


def build(project: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", *(f"--target={target}" for target in targets)]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_a_wheel_without_the_page_is_not_built(project: Path) -> None:
    built = build(project, "wheel")
    assert built.returncode != 0
    assert "make web" in built.stderr
    assert not list(project.glob("dist/*.whl"))


def test_a_wheel_with_a_part_of_the_page_is_not_built(project: Path) -> None:
    page = project / "src/dtrag/delivery/page"
    page.mkdir(parents=True)
    (page / "index.html").write_text('<script type="module" src="/assets/main-1a2b3c4d.js"></script>', "utf-8")
    built = build(project, "wheel")
    assert built.returncode != 0
    assert "assets/main-1a2b3c4d.js" in built.stderr
    assert not list(project.glob("dist/*.whl"))


def test_a_wheel_contains_the_page_though_git_ignores_it(project: Path) -> None:
    page = project / "src/dtrag/delivery/page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text('<!doctype html><script src="/assets/main-1a2b3c4d.js"></script>', "utf-8")
    (page / "assets/main-1a2b3c4d.js").write_text("1", "utf-8")
    built = build(project, "sdist", "wheel")
    assert built.returncode == 0, built.stderr
    [wheel] = project.glob("dist/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"dtrag/delivery/page/index.html", "dtrag/delivery/page/assets/main-1a2b3c4d.js"} <= names
    assert "dtrag/samples/one.md" in names
