"""The examples of docs/how-to/testing.md work as they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dtrag.testing import contracts

PAGE = (Path(__file__).parents[3] / "docs/how-to/testing.md").read_text("utf-8")
EXAMPLES = [code for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S) if "async def test_" in code]


@pytest.mark.parametrize("code", EXAMPLES, ids=[re.findall(r"def (test_\w+)", code)[0] for code in EXAMPLES])
async def test_an_example_passes(code: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/testing.md", "exec"), names)
    (example,) = [value for name, value in names.items() if name.startswith("test_")]
    await example()


def test_the_page_lists_every_suite() -> None:
    folder = Path(contracts.__file__).parent
    suites = {
        name
        for file in folder.glob("*.py")
        for name in re.findall(r"^class (\w+Contract)\b", file.read_text("utf-8"), re.M)
    }
    assert len(EXAMPLES) == 3
    assert suites == set(re.findall(r"`(\w+Contract)`", PAGE))
