"""The web page names the same kinds of files as the service reads."""

from __future__ import annotations

import re
from pathlib import Path

from dtrag.adapters.parsers.formats import FORMATS, SAVE_AS

TABLE = Path(__file__).parents[3] / "web/src/parts/file-kinds.ts"
ROW = re.compile(r'"([\w./+-]+)":\s*\{\s*name: "[^"]+",\s*suffixes: \[([^\]]*)\]')


def test_the_page_knows_the_suffixes_of_every_format() -> None:
    source = TABLE.read_text(encoding="utf-8")
    rows = {kind: tuple(re.findall(r'"([^"]+)"', suffixes)) for kind, suffixes in ROW.findall(source)}
    formats: dict[str, tuple[str, ...]] = {}
    for row in FORMATS:
        formats[row.content_type] = formats.get(row.content_type, ()) + row.suffixes
    assert rows == formats
    advised = re.search(r"ADVISED_SUFFIXES = \[([^\]]*)\]", source)
    assert advised is not None
    assert set(re.findall(r'"([^"]+)"', advised[1])) == set(SAVE_AS)
