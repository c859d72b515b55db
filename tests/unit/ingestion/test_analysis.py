"""From passages to what is written: field weights, caps, vectors only for spoken languages, fingerprints."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dtrag.core.documents import Chunk, ChunkedDocument, Draft, ParsedDocument, Vector
from dtrag.core.ranking.segments import FREQUENCY_UNIT
from dtrag.core.text.analysis import Analyzer, term_id, terms
from dtrag.ingestion import analysis
from dtrag.ingestion.analysis import MOST_TERMS, analyse, analyse_documents, cleaned, embedded_text, fingerprint
from dtrag.ingestion.chunking import split
from tests.toy import ToyEmbedder

DOCUMENT = ParsedDocument(
    "Valves", "The valve closes. The valve opens.", "text/plain", category_path=("HR",), metadata={"a": 1, "b": "x"}
)


@dataclass(frozen=True)
class Listening(ToyEmbedder):
    """Remembers what it was given."""

    heard: list[str] = field(default_factory=list)

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        self.heard.extend(texts)
        return super().embed_documents(texts)


def _chunk(text: str, *breadcrumb: str) -> Chunk:
    return Chunk(0, 0, len(text), text, breadcrumb)


def _draft(document: ParsedDocument, *chunks: Chunk) -> Draft:
    return Draft(
        uuid.uuid4(), ChunkedDocument(document, chunks), uuid.uuid4(), "file:///x", 7, b"f" * 32, replaces=True
    )


def test_terms_of_title_and_headings_count_with_those_of_the_body() -> None:
    chunk = analyse(DOCUMENT, _chunk("The valve closes. A valve opens.", "Boilers", "Valves"))
    counts = dict(zip(chunk.term_ids.tolist(), (chunk.frequencies * FREQUENCY_UNIT).tolist(), strict=True))
    expected = Counter(terms("valve closes valve opens") + 2 * terms("Valves") + terms("Boilers Valves"))
    assert counts == {term_id(term): float(count) for term, count in expected.items()}
    assert chunk.length == sum(expected.values())
    assert chunk.language == "en"


def test_term_ids_ascend_in_the_types_of_the_index() -> None:
    chunk = analyse(DOCUMENT, _chunk("kettle boiler valve ticket 휴학 등록금 BM25"))
    assert chunk.term_ids.dtype == np.int32
    assert chunk.frequencies.dtype == np.uint8
    assert (np.diff(chunk.term_ids) > 0).all()


def test_a_passage_without_words_can_be_indexed() -> None:
    chunk = analyse(replace(DOCUMENT, title=""), _chunk("⚠ !"))
    assert (len(chunk.term_ids), chunk.length) == (0, 1)


def test_of_too_many_terms_the_most_frequent_are_kept() -> None:
    words = [f"w{number}" for number in range(MOST_TERMS + 500)]
    text = " ".join([*words, *words[-100:]])
    chunk = analyse(replace(DOCUMENT, title=""), _chunk(text))
    assert len(chunk.term_ids) == len(chunk.frequencies) == MOST_TERMS
    assert {term_id(word) for word in words[-100:]} <= set(chunk.term_ids.tolist())
    assert chunk.length == len(words) + 100
    assert chunk.term_ids.tolist() == analyse(replace(DOCUMENT, title=""), _chunk(text)).term_ids.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Valve"},
        {"text": "The valve closes. The valve opens!"},
        {"content_type": "text/markdown"},
        {"category_path": ("HR", "Leave")},
        {"category_path": None},
        {"metadata": {"a": 1, "b": "y"}},
        {"metadata": {"a": 1}},
        {"metadata": {"a": "1", "b": "x"}},
    ],
)
def test_a_fingerprint_changes_with_what_is_written(change: dict[str, Any]) -> None:
    assert fingerprint(replace(DOCUMENT, **change)) != fingerprint(DOCUMENT)


def test_a_fingerprint_does_not_change_with_what_is_not_written() -> None:
    same = replace(DOCUMENT, metadata={"b": "x", "a": 1}, category_path=("HR",))
    assert fingerprint(same) == fingerprint(DOCUMENT)
    assert len(fingerprint(DOCUMENT)) == 32


@pytest.mark.parametrize("constant", ["CHUNKER", "TITLE_WEIGHT", "BREADCRUMB_WEIGHT"])
def test_a_fingerprint_depends_on_the_index_format(constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(DOCUMENT)
    monkeypatch.setattr(analysis, constant, "another")
    assert fingerprint(DOCUMENT) != before


def test_only_pdfs_are_written_again_for_their_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pdf = replace(DOCUMENT, content_type="application/pdf")
    before = [fingerprint(document) for document in (DOCUMENT, pdf)]
    monkeypatch.setattr(analysis, "PDF_CHUNKER", "another")
    after = [fingerprint(document) for document in (DOCUMENT, pdf)]
    assert [same == other for same, other in zip(before, after, strict=True)] == [True, False]


def test_a_fingerprint_depends_on_the_analyzer() -> None:
    assert fingerprint(DOCUMENT, Analyzer(id="another")) != fingerprint(DOCUMENT)


def test_terms_of_an_optional_part_are_indexed_with_the_others() -> None:
    more = Analyzer(id="more", more=lambda text: ["extra"])
    chunk = analyse(DOCUMENT, _chunk("The valve closes."), more)
    plain = analyse(DOCUMENT, _chunk("The valve closes."))
    assert set(chunk.term_ids.tolist()) == {*plain.term_ids.tolist(), term_id("extra")}


async def test_a_long_analysis_lets_other_tasks_run() -> None:
    turns: list[str] = []

    async def other() -> None:
        turns.append("other")

    waiting = asyncio.create_task(other())
    (written,) = await analyse_documents([_draft(DOCUMENT, *[_chunk("The valve closes.")] * 20)])
    assert turns == ["other"]
    assert len(written.chunks) == 20
    await waiting


def test_what_is_embedded_has_title_and_last_heading_once() -> None:
    assert embedded_text("Valves", ("Boilers", "Closing"), "It closes.") == "Valves\nClosing\nIt closes."
    assert embedded_text("Valves", ("Valves",), "It opens.") == "Valves\nIt opens."
    assert embedded_text("Valves", ("Opening",), "Valves open.") == "Opening\nValves open."


async def test_a_draft_keeps_its_place_and_identity() -> None:
    draft = _draft(DOCUMENT, *split(DOCUMENT).chunks)
    (written,) = await analyse_documents([draft])
    assert (written.document_id, written.source_id, written.source_uri) == (
        draft.document_id,
        draft.source_id,
        draft.source_uri,
    )
    assert (written.node_id, written.fingerprint, written.replaces) == (7, b"f" * 32, True)
    assert written.document is DOCUMENT


def test_what_a_database_cannot_hold_is_cleaned() -> None:
    assert cleaned(DOCUMENT) == DOCUMENT
    assert cleaned(replace(DOCUMENT, metadata={"by": "a\x00b\ud800", "n": 3})).metadata == {"by": "ab", "n": 3}
    assert cleaned(replace(DOCUMENT, title="a\x00b\ud800" + "c" * 600)).title == "ab" + "c" * 498
