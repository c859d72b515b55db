"""The wheels in an empty environment, as an ordinary user without Node.js: the questions of the demo, and the page."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytestmark = pytest.mark.long_fault

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
BUILT_FROM = (
    "src", "examples", "weights", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE", ".gitignore",
    "requirements.txt",
)  # fmt: skip
PAGE = Path("src/dtrag/delivery/page")
SCRIPT = "document.title = 'dtrag';\n"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that the system user of the database may enter, too."""
    made = Path(tempfile.mkdtemp(prefix="test-wheel-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)


def built_wheels(folder: Path) -> list[Path]:
    """The wheels of this source and of the weights, with the page that is built here, or a small one where none is."""
    project = folder / "project"
    project.mkdir()
    (project / "web").mkdir()
    shutil.copy(ROOT / "web/package-lock.json", project / "web")
    for name in BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, project / name)
    if not (project / PAGE / "index.html").is_file():
        (project / PAGE / "assets").mkdir(parents=True)
        (project / PAGE / "index.html").write_text(
            "<!doctype html><title>dtrag</title><script type=module src=/assets/main-1a2b3c4d.js></script>", "utf-8"
        )
        (project / PAGE / "assets/main-1a2b3c4d.js").write_text(SCRIPT, "utf-8")
        (project / PAGE / "widget.js").write_text("", "utf-8")
    for built_from in (project, project / "weights"):
        command = (sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={folder / 'dist'}")
        built = run(*command, cwd=built_from)
        assert built.returncode == 0, built.stderr
    wheels = sorted((folder / "dist").glob("*.whl"))
    assert [wheel.name.partition("-")[0] for wheel in wheels] == ["dtrag", "dtrag_weights"]
    return wheels


def installed(folder: Path, wheels: list[Path]) -> Path:
    """The `dtrag` command of a new environment with the wheels and the pinned packages."""
    environment = folder / "environment"
    made = run(UV, "venv", "--quiet", "--python", sys.executable, environment, cwd=folder)
    assert made.returncode == 0, made.stderr
    install = (UV, "pip", "install", "--quiet", "--python", environment / "bin/python", "--no-deps")
    pinned = (*install, "--require-hashes", "-r", ROOT / "requirements.txt")
    if run(*pinned, "--offline", cwd=folder).returncode:  # the cache of `make setup` has them, unless it was emptied
        fetched = run(*pinned, cwd=folder)
        if fetched.returncode:
            pytest.skip(f"the packages can neither be found in the cache nor fetched: {fetched.stderr[-300:]}")
    added = run(*install, "--offline", *wheels, cwd=folder)
    assert added.returncode == 0, added.stderr
    return environment / "bin/dtrag"


def as_ordinary_user() -> list[str]:
    """What a command begins with that is not to run as root; nothing where that is so, or forbidden."""
    namespace = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if os.geteuid() or not (program := shutil.which("unshare")):
        return []
    namespace[0] = program
    return namespace if subprocess.run([*namespace, sys.executable, "-c", ""], check=False).returncode == 0 else []


@pytest.fixture(scope="module")
def dtrag(folder: Path) -> list[str]:
    return [*as_ordinary_user(), str(installed(folder, built_wheels(folder)))]


@pytest.fixture
def variables(folder: Path, tmp_path: Path) -> dict[str, str]:
    """An environment in which no program is found, Node.js least of all."""
    return {"PATH": str(tmp_path), "HOME": str(folder), "DTRAG_DATA_DIR": str(folder / "data")}


def test_the_installed_wheels_answer_the_questions_of_the_demo(
    dtrag: list[str], variables: dict[str, str], folder: Path
) -> None:
    def printed(*arguments: str) -> Any:
        command = [*dtrag, *arguments, "--json"]
        ran = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    leave, holidays = printed("demo")["answers"]
    assert "통산 6학기" in leave["text"]
    assert "26 days" in holidays["text"]
    assert [answer["decision"] for answer in (leave, holidays)] == ["answer", "answer"]
    found = printed("search", "days off work")
    assert found["mode"] == "hybrid"
    assert found["results"][0]["vector_score"] > 0


@pytest.fixture
def address(dtrag: list[str], variables: dict[str, str], folder: Path) -> Iterator[str]:
    """The address of a service that was installed from the wheels."""
    command = [*dtrag, "up", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    try:
        for line in process.stderr:
            lines.append(line)
            if line.startswith("dtrag is listening on "):
                yield line.split()[4]
                break
        else:
            pytest.fail("".join(lines))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_the_installed_wheel_serves_the_page(address: str) -> None:
    with httpx2.Client(base_url=address, timeout=30) as client:
        index = client.get("/")
        assert index.status_code == 200
        assert "trusted-types" in index.headers["content-security-policy"]
        assets = re.findall(r"/assets/[\w.-]+", index.text)
        assert any(name.endswith(".js") for name in assets)
        for name in assets:
            assert client.get(name).status_code == 200
        assert client.get("/session").json()["name"] == "local"
