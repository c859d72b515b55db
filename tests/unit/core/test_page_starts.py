"""Pages of a text: of its parts, of passages, and of positions in passages."""

from __future__ import annotations

import pytest

from dtrag.core.page_starts import page_at, page_metadata, page_starts_within

STARTS = ((0, 1), (10, 2), (20, 4))


@pytest.mark.parametrize(
    ("start", "end", "pages"),
    [
        (0, 10, ((0, 1),)),
        (0, 11, ((0, 1), (10, 2))),
        (10, 20, ((0, 2),)),
        (15, 30, ((0, 2), (5, 4))),
        (25, 30, ((0, 4),)),
    ],
)
def test_a_part_begins_on_the_page_of_its_first_character(
    start: int, end: int, pages: tuple[tuple[int, int], ...]
) -> None:
    assert page_starts_within(STARTS, start, end) == pages


def test_a_position_is_on_the_last_page_that_begins_before_it() -> None:
    metadata = page_metadata(STARTS, 5, 30)
    assert metadata == {"page": 1, "page_breaks": "5:2 15:4"}
    assert [page_at(metadata, offset) for offset in (0, 4, 5, 14, 15, 24)] == [1, 1, 2, 2, 4, 4]


def test_a_passage_without_breaks_has_one_page() -> None:
    assert page_metadata(STARTS, 11, 19) == {"page": 2}
    assert page_at({"page": 2}, 500) == 2


def test_a_text_without_pages_has_none() -> None:
    assert page_metadata((), 0, 10) == {}
    assert page_at({}) is None


@pytest.mark.parametrize("breaks", [None, 7, "x", "1:", ":1", "-1:2", "9" * 50 + ":2", ["0:9"], {"a": 1}])
def test_metadata_that_a_file_states_itself_never_fails(breaks: object) -> None:
    assert page_at({"page": 3, "page_breaks": breaks}, 0) in {3, 9}
    assert page_at({"page": "iv", "page_breaks": breaks}, 0) is None
