"""What `make setup` installs is pinned with hashes, and from wherever the machine takes its packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("requirements*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_requirement_has_a_version_and_hashes_and_no_address(path: Path) -> None:
    text = path.read_text("utf-8")
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"(?m)^\s*#.*\n?", "", text))
    for entry in filter(None, map(str.strip, entries)):
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z0-9,-]+\])?==[^\s;]+", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert "://" not in text
    assert not re.search(r"(?m)^\s*(-i|-f|--index-url|--extra-index-url|--find-links)\b", text)


def test_setup_installs_only_what_is_pinned() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipes = makefile[makefile.index("$(READY): ") : makefile.index("$(DEV_READY): ")]
    installs = [line for line in recipes.splitlines() if "_INSTALL)" in line]
    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or "--no-deps --no-build-isolation" in line, line
    assert {path.name for path in FILES} == set(re.findall(r"requirements[a-z-]*\.txt", makefile))
    assert "--compile-bytecode" in recipes
