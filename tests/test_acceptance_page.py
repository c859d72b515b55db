"""docs/reference/acceptance.md is complete and true: each id of the texts has a row, each path and test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "acceptance.md"
IDS = (
    *(f"AC-ORCH-{number:03}" for number in range(1, 11)),
    *(f"AC-{number:03}" for number in range(1, 11)),
    *(f"U-REQ-{number:03}" for number in range(1, 8)),
    "E-REQ-001",
    "E-REQ-008",
    "S-REQ-007",
    *(f"DEBATE Scenario {number}" for number in range(1, 6)),
    *(f"DEBATE Edge Case {number}" for number in range(1, 6)),
    "@SPEC:DEBATE-001",
    *(f"@IMPL:0.{number}" for number in range(1, 5)),
    *(f"@TEST:0.{number}" for number in range(1, 5)),
    *(f"TOOLS Scenario {number}" for number in range(1, 11)),
    "SPEC-FOUNDATION-001",
    "SPEC-PLANNER-001",
    "SPEC-TOOLS-001",
    *(f"TAG-{number:03}" for number in range(1, 6)),
    *(f"REG Scenario {number}" for number in range(1, 4)),
    "SPEC-RAG-SEARCH-001",
)
"""The ids of the five acceptance documents; those of scenarios have the name of their document before them."""
GATES = (
    "AC-ORCH-010 C",
    "ORCH gate: pipeline",
    "ORCH gate: agent factory",
    "ORCH gate: filter",
    "ORCH gate: case memory",
    "ORCH alerts",
    "SEARCH performance",
    "SEARCH gate: quality",
    "SEARCH monitoring",
    "SEARCH Sentry",
    "DEBATE gates",
    "DEBATE rollback",
    "DEBATE success metrics",
    "TOOLS gates",
    "REG latency",
    "REG characterization",
)
COMMANDS = (
    "pytest tests/unit/test_debate_engine.py",
    "pytest tests/integration/test_debate_integration.py",
    "test_debate_integration.py::test_debate_e2e",
    "pytest tests/integration/test_pipeline_steps.py",
    "test_debate_integration.py::test_feature_flag_off",
    "test_debate_integration.py::test_timeout_fallback",
    "test_debate_engine.py::test_llm_call_count",
    "pytest tests/unit/test_tool_registry.py",
    "pytest tests/unit/test_tool_executor.py",
    "pytest tests/unit/test_builtin_tools.py",
    "pytest tests/integration/test_step4_tools.py",
    "pytest tests/integration/test_tool_execution.py",
    "bandit",
    "ruff check",
    "mypy",
    "pytest-cov",
    "tests/unit/test_entity_recognizer.py",
    "tests/unit/test_query_expander_v2.py",
    "tests/unit/test_adaptive_top_k.py",
    "tests/unit/test_multi_hop_retriever.py",
    "tests/integration/test_enhanced_search.py",
)


def rows() -> list[tuple[str, str, str, str]]:
    found = []
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "Id":
            identifier, what, code, tests = cells
            found.append((identifier.strip("`"), what, code, tests))
    return found


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_id_and_command_has_one_row() -> None:
    assert sorted(identifier for identifier, *_ in rows()) == sorted([*IDS, *GATES, *COMMANDS])


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_paths_and_tests_of_a_row_exist(row: tuple[str, str, str, str]) -> None:
    identifier, _, code, tests = row
    named = re.findall(r"`([^`]+)`", f"{code} {tests}")
    assert named, identifier
    for name in named:
        path, _, function = name.partition("::")
        assert (ROOT / path).is_file(), name
        assert not function or function in functions(ROOT / path), name
    assert identifier in COMMANDS or any(name.startswith("tests/") for name in named), identifier


@pytest.mark.parametrize("page", ["README.md", "README.ko.md", "docs/explanation/architecture.md"])
def test_the_page_is_linked(page: str) -> None:
    assert re.search(r"\]\([\w/.]*acceptance\.md\)", (ROOT / page).read_text("utf-8"))
