"""The sample book of the invented university: the same regulations and articles from HWPX and from Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtrag.adapters.parsers.formats import format_of
from dtrag.packs.regulation_ko.structure import split

FOLDER = Path(__file__).parents[2] / "examples" / "hanbit-university"
Provision = tuple[str, str, tuple[str, ...], dict[str, object], str]

pytestmark = pytest.mark.skipif(not (FOLDER / "regulations.hwpx").exists(), reason="make the samples first")


def provisions(name: str) -> list[Provision]:
    """Code, name, breadcrumb, metadata and the text without white space, which differs between the formats."""
    found: list[Provision] = []
    for document in format_of(name).load()(FOLDER / name, name):
        for one in split(document) or ():
            for chunk in one.chunks:
                text = "".join(chunk.text.split())
                found.append((one.document.part, one.document.title, chunk.breadcrumb, dict(chunk.metadata), text))
    return found


def test_both_formats_give_the_same() -> None:
    from_hwpx, from_markdown = provisions("regulations.hwpx"), provisions("regulations.md")
    assert from_hwpx == from_markdown
    articles = [row for row in from_hwpx if row[3]["kind"] == "article"]
    assert len(articles) >= 40
    assert len({row[0] for row in articles}) >= 5
