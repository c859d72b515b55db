"""What `import dtrag` offers: every public name, loaded when it is used and not before."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import dtrag
from dtrag.errors import InvalidInput
from tests.cases import each


@each("name", [*dtrag.__all__, "open"])
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(dtrag, name)
    assert value is not None
    if name[0].isupper() and not name.isupper():  # constants have no name of their own
        assert value.__name__ == name


def test_the_page_of_public_names_has_one_line_for_each() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text("utf-8")
    lines = re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", page, re.MULTILINE)
    assert sorted(name for name, _ in lines) == sorted([*dtrag.__all__, "open"])
    assert all(line.endswith(".") for _, line in lines)
    sections = page.split("\n## ")[1:]
    assert all(re.search(r"\]\([^)]+\.md[^)]*\)", section) for section in sections)


def test_importing_all_names_leaves_those_of_python() -> None:
    names: dict[str, object] = {}
    exec("from dtrag import *", names)
    assert names.keys() & vars(builtins).keys() == set()
    assert "open_sync" in names


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        dtrag.Nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "numpy psycopg onnxruntime fastapi tokenizers lxml Stemmer langgraph langchain_core mcp jsonschema"
    check = f"import sys, dtrag; print([n for n in '{heavy}'.split() if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_open_checks_its_settings_at_once_and_starts_nothing(tmp_path: Path) -> None:
    opening = dtrag.open(data_dir=tmp_path / "data", embedder="none")
    assert isinstance(opening, AbstractAsyncContextManager)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInput, match="There is no setting 'colour'"):
        dtrag.open(data_dir=tmp_path, colour="red")
