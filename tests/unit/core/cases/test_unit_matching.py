"""The matching of content words, and typing errors."""

from __future__ import annotations

import pytest

from dtrag.core.cases.hangul import verb_table, verbs_of
from dtrag.core.cases.quantities import korean_numbers
from dtrag.core.cases.reading import Unit
from dtrag.core.cases.spelling_distance import allowed_errors, distance
from dtrag.core.cases.unit_matching import matched, without_joined


def unit(text: str) -> Unit:
    return Unit(text, text, frozenset({text}))


def test_the_matching_is_as_large_as_possible() -> None:
    similar = {("a", "x"), ("a", "y"), ("b", "x")}
    pairs = matched(
        [unit("a"), unit("b")], [unit("x"), unit("y")], lambda one, other: (one.text, other.text) in similar
    )
    assert pairs == [(0, 1), (1, 0)]


def test_words_written_together_are_one() -> None:
    left, right = [unit("휴학"), unit("신청")], [unit("휴학신청")]
    assert without_joined(left, right, [0, 1], [0]) == ([], [])
    assert without_joined(left, [unit("복학신청")], [0, 1], [0]) == ([0, 1], [0])


@pytest.mark.parametrize(
    ("left", "right", "errors"),
    [("letter", "lettre", 1), ("letter", "leter", 1), ("letter", "latter", 1), ("form", "from", 1)],
)
def test_an_exchange_is_one_error(left: str, right: str, errors: int) -> None:
    assert distance(left, right, 2) == errors
    assert distance(right, left, 2) == errors


def test_short_words_have_no_errors() -> None:
    assert allowed_errors("cat", "car") == 0


@pytest.mark.parametrize(
    ("written", "verb"),
    [
        ("빌려요", "빌리다"),
        ("빌린", "빌리다"),
        ("들으려면", "듣다"),
        ("골라야", "고르다"),
        ("써도", "쓰다"),
        ("사는", "살다"),
    ],
)
def test_verbs_are_recognised_in_their_forms(written: str, verb: str) -> None:
    assert verb in verbs_of(written, verb_table(frozenset({verb})))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("두 번", ["2회"]),
        ("2회", ["2회"]),
        ("제12조의2 제3항", ["12조의2", "3항"]),
        ("3년 이내", ["3년"]),
        ("3만원", ["30000원"]),
        ("이틀 동안", ["2일"]),
        ("첫 학기", ["1째"]),
        ("3분의 2", ["3분의2"]),
    ],
)
def test_korean_numbers_have_one_spelling(text: str, values: list[str]) -> None:
    assert korean_numbers(text)[1] == values
