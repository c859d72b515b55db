"""Words that contradict each other, and words that say how many."""

from __future__ import annotations

import pytest

from dtrag.core.quality.features import contradicting_words, quantifiers


@pytest.mark.parametrize(
    ("claim", "nearest", "pair"),
    [
        ("He came.", "She came.", ("he", "she")),
        ("The team won.", "The team lost.", ("won", "lost")),
        ("Sales are increasing.", "Sales decreased.", ("increas", "decreas")),
        ("Dogs are banned.", "Dogs are permitted.", ("banned", "permit")),
        ("신청자가 적다.", "신청자가 많다.", ("적다", "많")),
        ("신청이 늘었다.", "신청이 줄었다.", ("늘었", "줄")),
        ("모든 학생이 낸다.", "일부 학생이 낸다.", ("모든", "일부")),
    ],
)
def test_opposites(claim: str, nearest: str, pair: tuple[str, str]) -> None:
    assert pair in contradicting_words(claim, nearest)


@pytest.mark.parametrize(
    ("claim", "nearest"),
    [
        ("A head teacher came.", "A sheet fell."),
        ("The heat came.", "A sheet was left."),
        ("The bank has a window.", "They lost, and permit it."),
        ("Endless starlight.", "The party starts."),
        ("이 규정을 적용한다.", "신청자가 많다."),
        ("다음 달에 낸다.", "일부 학생이 낸다."),
    ],
)
def test_beginnings_of_other_words_are_no_opposites(claim: str, nearest: str) -> None:
    assert contradicting_words(claim, nearest) == []


def test_quantifiers_are_whole_words() -> None:
    assert quantifiers("늘 모든 학생에게 준다.") == {"늘", "모든"}
    assert quantifiers("늘어난 단체에 준다.") == frozenset()
