"""Changes in a sentence that is otherwise copied."""

from __future__ import annotations

import pytest

from dtrag.core.quality.alterations import alteration, misplaced_negation, without_marker

EN = "The board met in Vienna in 1998 and approved the new budget of 40 million euros."
KO = "위원회는 학생처장을 위원장으로 하고, 9명의 위원으로 2019년에 구성되었다."


@pytest.mark.parametrize(
    ("claim", "source", "named"),
    [
        (EN.replace("1998", "1996"), EN, "1996"),
        (EN.replace("Vienna", "Geneva"), EN, "Geneva"),
        (EN.replace("approved", "not approved"), EN, "not"),
        (EN.replace("40", "48"), f"There were 48 guests. {EN}", "48"),
        (KO.replace("9명", "7명"), KO, "7명"),
        (KO.replace("학생처장", "교무처장"), KO, "교무처장"),
        (KO.replace("구성되었다", "구성되지 않았다"), KO, "않았다"),
    ],
)
def test_what_was_changed_is_named(claim: str, source: str, named: str) -> None:
    assert named in alteration(claim, source)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (EN, EN),
        (EN.replace("met in Vienna in 1998 and ", ""), EN),
        (EN.replace("met", "gathered"), EN),
        ("In 1998, the board approved a budget of 40 million euros in Vienna.", EN),
        (KO.replace("구성되었다", "구성됐다"), KO),
        (
            "평점평균이 1.75에 미치지 못하면 학사경고를 한다.",
            "평점평균이 1.75에 미치지 못하는 학생에게는 학사경고를 한다.",
        ),
        ("", EN),
        (EN, ""),
    ],
)
def test_copies_and_other_words_are_left_alone(claim: str, source: str) -> None:
    assert alteration(claim, source) == ""


def test_a_negation_belongs_to_the_word_after_it() -> None:
    sentence = "He did not stop at the line, and the referee allowed the goal."
    assert misplaced_negation("The referee did not allow the goal.", sentence) == "allow"
    assert misplaced_negation("He didn't stop.", sentence) == ""
    assert misplaced_negation("Nothing is said about rain.", sentence) == ""


def test_markers_of_lists_are_no_part_of_a_claim() -> None:
    assert without_marker("2. Two films are named.") == "Two films are named."
    assert without_marker("- Two films are named.") == "Two films are named."
    assert without_marker("3.45 miles long") == "3.45 miles long"
