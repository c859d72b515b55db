"""A wheel contains the built web page, or is not built; and a bill of materials that is complete."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from unittest.mock import patch

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import get_spdx_licensing

import dtrag

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What a build reads, with two modules instead of all, in a Git repository with the ignored files of ours."""
    (tmp_path / "web").mkdir()
    for name in (
        "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE", ".gitignore", "requirements.txt",
        "web/package-lock.json",
    ):  # fmt: skip
        shutil.copy(ROOT / name, tmp_path / name)
    package = tmp_path / "src/dtrag"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/one.md").write_text("# One", "utf-8")
    (tmp_path / "examples/.dtragignore").write_text("README.md", "utf-8")
    return tmp_path


def build(project: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", *(f"--target={target}" for target in targets)]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_a_wheel_without_the_page_is_not_built(project: Path) -> None:
    built = build(project, "wheel")
    assert built.returncode != 0
    assert "make web" in built.stderr
    assert not list(project.glob("dist/*.whl"))


def write_page(project: Path, *without: str) -> Path:
    """A page that names one script, with the widget."""
    page = project / "src/dtrag/delivery/page"
    files = {
        "index.html": '<!doctype html><script src="/assets/main-1a2b3c4d.js"></script>',
        "assets/main-1a2b3c4d.js": "1",
        "widget.js": "2",
    }
    (page / "assets").mkdir(parents=True)
    for name in files.keys() - set(without):
        (page / name).write_text(files[name], "utf-8")
    return page


@pytest.mark.parametrize("missing", ["assets/main-1a2b3c4d.js", "widget.js"])
def test_a_wheel_with_a_part_of_the_page_is_not_built(project: Path, missing: str) -> None:
    write_page(project, missing)
    built = build(project, "wheel")
    assert built.returncode != 0
    assert missing in built.stderr
    assert not list(project.glob("dist/*.whl"))


def test_a_page_of_other_sources_is_noticed_whatever_the_times_of_the_files(project: Path) -> None:
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))
    page, web = write_page(project), project / "web"
    (web / "src/test").mkdir(parents=True)
    for name in hook["FILES"]:
        (web / name).write_text("{}", "utf-8")
    source = web / "src/main.ts"
    source.write_text("1", "utf-8")
    assert "other sources" in hook["problem_of"](project)
    (page / "sources.sha256").write_text(hook["digest_of"](web) + "\n", "ascii")
    (web / "src/test/setup.ts").write_text("1", "utf-8")
    (web / "src/main.test.ts").write_text("1", "utf-8")
    os.utime(source)
    assert hook["problem_of"](project) is None
    source.write_text("2", "utf-8")
    assert "other sources" in hook["problem_of"](project)
    built = build(project, "wheel")
    assert built.returncode != 0
    assert "make web" in built.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_build_of_the_page_computes_the_digest_of_the_hook() -> None:
    script = ROOT / "web/scripts/sources.mjs"
    printed = subprocess.run(["node", script, "--print"], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == runpy.run_path(str(ROOT / "hatch_build.py"))["digest_of"](ROOT / "web")


def test_a_wheel_contains_the_page_though_git_ignores_it(project: Path) -> None:
    write_page(project)
    built = build(project, "sdist", "wheel")
    assert built.returncode == 0, built.stderr
    [wheel] = project.glob("dist/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = ("index.html", "assets/main-1a2b3c4d.js", "widget.js")
    assert {f"dtrag/delivery/page/{name}" for name in files} <= names
    assert {"dtrag/samples/one.md", "dtrag/samples/.dtragignore"} <= names


def test_the_source_archive_builds_the_wheel_without_node(project: Path, tmp_path: Path) -> None:
    write_page(project)
    assert build(project, "sdist").returncode == 0
    [archive] = project.glob("dist/*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    with patch.dict(os.environ, PATH=str(tmp_path)):
        built = build(unpacked, "wheel")
    assert built.returncode == 0, built.stderr
    [wheel] = unpacked.glob("dist/*.whl")
    with zipfile.ZipFile(wheel) as files:
        assert "dtrag/delivery/page/assets/main-1a2b3c4d.js" in files.namelist()


def test_the_bill_of_materials_names_all_that_is_pinned_and_all_that_the_page_contains(project: Path) -> None:
    write_page(project)
    built = build(project, "wheel")
    assert built.returncode == 0, built.stderr
    [wheel] = project.glob("dist/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        folder = next(name for name in archive.namelist() if name.endswith("METADATA")).removesuffix("METADATA")
        text = archive.read(f"{folder}sboms/dtrag-{dtrag.__version__}.cdx.json").decode()
        assert archive.read(f"{folder}licenses/NOTICE") == (ROOT / "NOTICE").read_bytes()
        assert "License-File: NOTICE" in archive.read(f"{folder}METADATA").decode()
    assert text == (project / f"dist/dtrag-{dtrag.__version__}.cdx.json").read_text("utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    pinned = set(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE))
    page = {"preact", "@preact/signals", "@preact/signals-core"}
    named = {(part["name"], part["version"]) for part in bill["components"]}
    assert {pair for pair in named if pair[0] not in page} == pinned
    assert page <= {name for name, _ in named}
    expressions = {licence["expression"] for part in bill["components"] for licence in part["licenses"]}
    assert [text for text in expressions if get_spdx_licensing().validate(text).errors] == []
    edges = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    reached, waiting = set(), [bill["metadata"]["component"]["bom-ref"]]
    while waiting:
        reference = waiting.pop()
        if reference not in reached:
            reached.add(reference)
            waiting += edges.get(reference, [])
    assert {part["bom-ref"] for part in bill["components"]} <= reached


@pytest.mark.parametrize("target", ["demo", "wheel"])
def test_the_target_exists_and_the_demo_runs_nothing_of_node(target: str) -> None:
    command = ["make", "--dry-run", "--always-make", target]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert planned.returncode == 0, planned.stderr
    assert ("npm" in planned.stdout) is (target == "wheel")
