"""What the tests of the parsers share: reading one file of given bytes, and the contract that every document keeps."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from dtrag.adapters.parsers.formats import check_content, format_of
from dtrag.core.documents import ParsedDocument

Read = Callable[[str, bytes], list[ParsedDocument]]


def assert_contract(document: ParsedDocument) -> None:
    """Blocks in order, apart, inside the text, with nothing but white space between; clean NFC text."""
    position = 0
    for block in document.blocks:
        assert position <= block.start < block.end <= len(document.text)
        assert not document.text[position : block.start].strip()
        assert document.text[block.start : block.end].strip()
        assert (1 <= block.level <= 6) if block.kind == "heading" else block.level == 0
        position = block.end
    assert not document.text[position:].strip()
    assert document.title
    assert document.text.strip()
    assert not set(document.text) & {"\x00", "\r", "\x0c", "\x1b"}
    assert unicodedata.is_normalized("NFC", document.text + "\n" + document.title)
    (document.text + document.title).encode("utf-8")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Parse bytes under a name, in this process, and check the contract on every document."""

    def parse(name: str, data: bytes) -> list[ParsedDocument]:
        path = tmp_path / "input"
        path.write_bytes(data)
        chosen = format_of(name)
        check_content(path, chosen)
        documents = []
        for document in chosen.load()(path, name):
            assert_contract(document)
            assert document.content_type == chosen.content_type
            documents.append(document)
        return documents

    return parse
