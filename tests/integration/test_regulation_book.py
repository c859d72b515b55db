"""The real regulation book, compared with what an independent parser read from it."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT.parent / "shared" / "data" / "korean-regulations"

pytestmark = pytest.mark.skipif(not (FOLDER / "regulations.hwpx").exists(), reason="the regulation book is not here")


@pytest.fixture(scope="module")
def comparison() -> Any:
    compare: Callable[[Path], Any] = runpy.run_path(str(ROOT / "scripts" / "check_regulation_book.py"))["compare"]
    return compare(FOLDER)


def test_regulations_and_articles_are_all_found(comparison: Any) -> None:
    assert abs(comparison.regulations - 371) <= 2
    assert abs(comparison.articles - 5039) <= 50
    assert comparison.matched >= 0.99 * comparison.expected_articles


def test_names_titles_and_texts_agree(comparison: Any) -> None:
    assert comparison.same_names >= 0.98
    assert comparison.same_title >= 0.98
    assert comparison.same_text >= 0.98


def test_addenda_and_appendices_are_separate(comparison: Any) -> None:
    assert abs(comparison.addenda - 372) <= 4
    assert comparison.appendices >= 300
