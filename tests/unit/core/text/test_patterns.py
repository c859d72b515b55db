"""Regular expressions with examples: each finds and refuses what they say, and no long one of a subject lacks them."""

from __future__ import annotations

import ast
import importlib
import inspect

from dtrag.core.text.patterns import EXPLAINED, LONGEST_WITHOUT_EXAMPLES, ExplainedPattern
from tests.cases import each

CITATIONS = [
    f"dtrag.packs.regulation_ko.{name}"
    for name in (
        "catalog citation_grammar citation_names citation_patterns citation_reader citations "
        "collection deletions question_entities "
        "verification.check verification.contents verification.judge verification.quotations verification.written_text"
    ).split()
]
MODULES = [importlib.import_module(name) for name in (*CITATIONS, "dtrag.core.cases.normal_form")]
"""The modules whose long patterns all have examples; further subjects are added here."""


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
