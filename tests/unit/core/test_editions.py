"""Validity of editions against invented histories, whose truth is written down event by event."""

from __future__ import annotations

import uuid
from datetime import date

import pytest

from dtrag.core.documents import ChunkedDocument, ParsedDocument
from dtrag.core.editions import StoredEdition, parse_date, passage_label, validity
from dtrag.errors import InvalidInput
from dtrag.regulations.korean.structure import split
from tests.amendments import History, histories

AMENDMENTS = 300


def read(history: History) -> dict[uuid.UUID, ChunkedDocument]:
    """Document id -> edition, as an ingest reads it."""
    editions = {}
    for edition in history.editions:
        regulations = split(ParsedDocument(history.name, history.book(edition), "text/markdown"))
        assert regulations is not None
        [regulation] = regulations
        assert regulation.edition is not None and regulation.edition.effective_from == edition.day
        editions[uuid.uuid4()] = regulation
    return editions


def test_every_article_is_valid_in_the_right_text_on_every_day_around_300_amendments() -> None:
    made = histories(seed=13, works=110)
    assert sum(len(history.editions) - 1 for history in made) >= AMENDMENTS
    checked = 0
    for history in made:
        editions = read(history)
        stored = [
            StoredEdition(
                key,
                document.edition.effective_from,
                document.edition.article_dates,
                None,
                [passage_label(chunk.metadata["kind"], chunk.metadata["article"]) for chunk in document.chunks],
            )
            for key, document in editions.items()
            if document.edition is not None and document.edition.effective_from is not None
        ]
        valid = validity(stored, [history.repealed_on] if history.repealed_on else [])
        for day in history.days():
            shown = [
                chunk.text
                for key, document in editions.items()
                for chunk in document.chunks
                if (part := valid[key].of(chunk.ordinal)) is not None and part.admits(day)
            ]
            for number in history.numbers():
                markers = [marker for marker in history.markers(number) if any(f"{marker} " in text for text in shown)]
                expected = history.valid(number, day)
                assert markers == ([expected] if expected else []), (history.name, number, day)
                checked += 1
    assert checked > 10_000


def test_a_date_is_read_strictly() -> None:
    assert parse_date("as_of", "2024-03-01") == date(2024, 3, 1) == parse_date("as_of", date(2024, 3, 1))
    assert parse_date("as_of", None) is None
    for wrong in ("2024-3-1", "2024-02-30", "20240301", "2024-03-01T00:00", 20240301, ""):
        with pytest.raises(InvalidInput, match="as_of is a date such as 2024-03-01"):
            parse_date("as_of", wrong)
