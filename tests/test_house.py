"""The size and shape of the repository stay within the limits of `scripts/house.py`."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[1] / "scripts" / "house.py"
SPEC = spec_from_file_location("house", FILE)
assert SPEC is not None and SPEC.loader is not None
house: Any = module_from_spec(SPEC)
sys.modules["house"] = house
SPEC.loader.exec_module(house)

PYTHON = {
    "one.py": '''import re
from dtrag.two import Passage
LONG = re.compile(r"{long}")
class Quote:
    """A docstring."""
    text: str
    start: int
    end: int
    page: int
def read(found):
    # a comment
    return found
''',
    "two.py": """class Passage:
    text: str
    start: int
    end: int
    page: int
class Cited(Passage):
    number: int
def later():
    from dtrag.one import read
""",
    "three.py": "import dtrag.two\nclass Passage: ...\n",
}
PAGE = {
    "views/ask/Ask.tsx": 'import { t } from "../../text/t";\nimport { x } from "./x";\n',
    "views/ask/x.ts": 'import type { Ask } from "./Ask";\n',
    "text/t.ts": 'import { api } from "../api/client";\n',
    "api/client.ts": "",
}


@pytest.fixture(scope="module")
def this() -> Any:
    return house.Project()


@pytest.fixture
def built(tmp_path: Path) -> Any:
    for folder, files in (("src/dtrag", PYTHON), ("web/src", PAGE)):
        for name, text in files.items():
            file = tmp_path / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{long}", "a" * 81), "utf-8")
    return house.Project(tmp_path)


@pytest.mark.parametrize("figure", house.FIGURES, ids=lambda figure: figure.name)
def test_a_figure_is_within_its_limit(this: Any, figure: Any) -> None:
    [(_, value, items)] = house.above(this, [figure.name])
    # A pattern may have half of a character, which the report of a failure cannot.
    assert value <= figure.limit, ascii(items)


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("repeated-classes", ["dtrag.two.Passage (4) < dtrag.one.Quote (4)"]),
        ("doubled-names", ["Passage: dtrag.three, dtrag.two"]),
        ("regular-expressions", [f"src/dtrag/one.py:3 {'a' * 60}"]),
        ("long-patterns", [f"src/dtrag/one.py:3 {'a' * 60}"]),
        ("small-files-with-one-importer", ["dtrag.one (12)"]),
        ("python-circles", ["2 files: dtrag.one, dtrag.two"]),
        ("page-circles", ["2 files: views/ask/Ask.tsx, views/ask/x.ts"]),
        ("page-upward-imports", ["text/t.ts -> api/client.ts"]),
        ("banned-names", ["src/dtrag/one.py:10 found"]),
    ],
)
def test_what_is_counted(built: Any, name: str, items: list[str]) -> None:
    assert [counted for _, _, counted in house.above(built, [name])] == [items]


def test_lines_of_code_are_neither_comments_docstrings_imports_nor_blank(built: Any) -> None:
    measured = {figure.name: value for figure, value, _ in house.above(built)}
    assert (measured["python-files"], measured["python-lines"], measured["code-lines"]) == (3, 23, 17)
