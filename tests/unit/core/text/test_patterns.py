"""Regular expressions with examples: each finds and refuses what they say, and no long one beside them lacks them."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import dtrag
from dtrag.core.text.patterns import EXPLAINED, LONGEST_WITHOUT_EXAMPLES, ExplainedPattern
from tests.cases import each

SOURCES = Path(dtrag.__file__).parent
MODULES = [
    importlib.import_module(".".join(("dtrag", *file.relative_to(SOURCES).with_suffix("").parts)))
    for file in sorted(SOURCES.rglob("*.py"))
    if "import explained\n" in file.read_text(encoding="utf-8")
]
"""The modules with patterns that have examples."""


@each("row", EXPLAINED)
def test_a_pattern_finds_and_refuses_its_examples(row: ExplainedPattern) -> None:
    assert row.finds
    assert row.refuses or row.pattern.match(""), "a pattern that cannot be empty refuses something"
    assert all(row.pattern.search(text) for text in row.finds), row
    assert not any(row.pattern.search(text) for text in row.refuses), row


def _characters(node: ast.AST) -> int:
    """Characters of the constant strings in an expression."""
    strings = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return sum(len(value) for value in strings if isinstance(value, str))


@each("module", MODULES)
def test_long_patterns_have_examples(module: object) -> None:
    calls = (
        node
        for node in ast.walk(ast.parse(inspect.getsource(module)))  # type: ignore[arg-type]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    )
    long = [ast.unparse(call) for call in calls if _characters(call.args[0]) > LONGEST_WITHOUT_EXAMPLES]
    assert not long, "write them with `explained`"
