"""The judge without a model: what it supports, and the reasons that it names."""

from __future__ import annotations

import pytest

from dtrag.core.quality.features import NAMES, compare, missing_words, source_of
from dtrag.core.quality.lexical_judge import alteration, judge, misplaced_negation, regressions, without_marker

LEAVE = "Every full-time employee has 26 days of paid annual leave. Leave is requested from the manager in writing."
SENTENCE = LEAVE.partition(". ")[0] + "."
BOOK = "제12조(휴학기간) ① 휴학은 1회에 2개 학기까지 할 수 있으며, 통산 6학기를 초과할 수 없다."
OTHER = "The library opens at nine and closes at ten."


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("Full-time employees have 26 days of paid annual leave.", LEAVE),
        ("Every full-time employee has annual leave, which is requested in writing.", LEAVE),
        ("휴학은 통산 6학기를 초과할 수 없다.", BOOK),
        ("26 days", LEAVE),
        ("Two films are named Veeram.", "Veeram, a film by Siva. Veeram is also a film by Jayaraj, named so."),
        ("통산 6학기", BOOK),
    ],
)
def test_what_a_context_says_is_supported_by_it(claim: str, context: str) -> None:
    found = judge(claim, [OTHER, context])
    assert (found.supported, found.contexts, found.reason) == (True, (1,), "")
    assert found.score > judge(claim, [OTHER]).score


@pytest.mark.parametrize(
    ("claim", "context", "reason"),
    [
        ("Full-time employees have 28 days of paid annual leave.", LEAVE, "the number 28"),
        ("Full-time employees of Berlin have 26 days of paid annual leave.", LEAVE, "“Berlin”"),
        ("Full-time employees do not have 26 days of paid annual leave.", LEAVE, "it denies"),
        ("The cafeteria sells vegetarian sandwiches.", LEAVE, "“cafeteria”, “sell”, “vegetarian”, “sandwich” are not"),
        ("휴학은 통산 8학기를 초과할 수 없다.", BOOK, "8"),
        ("Leave lasts four weeks in the summer.", "Leave lasts three weeks in the summer.", "the number four"),
        ("Leave lasts four weeks in the summer.", "Leave is taken in the summer, and lasts.", "the number four"),
        ("휴학생은 기숙사를 무료로 이용한다.", BOOK, "“기숙사”"),
        ("28 days", LEAVE, "“28 days” is not in the contexts"),
    ],
)
def test_what_is_missing_is_named(claim: str, context: str, reason: str) -> None:
    found = judge(claim, [context])
    assert not found.supported and not found.contexts
    assert reason in found.reason


def test_several_contexts_support_a_claim_together() -> None:
    claim = "The laptop is replaced every 4 years and the phone every 3 years."
    contexts = ["Every laptop is replaced after 4 years.", "A phone is replaced every 3 years."]
    found = judge(claim, contexts)
    assert (found.supported, found.contexts) == (True, ())
    assert not judge(claim, contexts[:1]).supported


def test_a_bare_value_needs_a_context_about_the_question() -> None:
    query = "How many days of annual leave are there?"
    assert judge("26 days", [LEAVE], query).supported
    assert not judge("26 days", ["Invoices are paid within 26 days."], query).supported


@pytest.mark.parametrize(
    ("value", "context"),
    [
        ("5일", "휴가는 15일을 부여한다."),
        ("5일", "휴가는 2.5일을 부여한다."),
        ("3만 원", "수수료는 13만 원이다."),
        ("000원", "수수료는 1,000원이다."),
        ("네", "우리 동네에 있다."),
        ("3 days", "You get 13 days of leave."),
        ("3 days", "You get 3 daysy of leave."),
        ("26", "In 1926 it was founded."),
        ("26", "It costs 26,000 won."),
        ("26", "It costs 26.5 won."),
        ("no", "I know it."),
        ("5 days.", "You get 15 days of leave."),
        ("5일을 부여한다.", "휴가는 15일을 부여한다."),
    ],
)
def test_a_part_of_another_number_or_word_supports_no_value(value: str, context: str) -> None:
    assert not judge(value, [context]).supported


@pytest.mark.parametrize(
    ("value", "context"),
    [
        ("6학기", "휴학은 통산 6 학기까지 할 수 있다."),
        ("15 일", "휴가는 15일을 부여한다."),
        ("26일", "휴가는 ①26일이다."),
        ("26", "It was founded in 26, or later."),
        ("26세", "나이는 만26세이다."),
        ("5일", "15일이 아니라 5일이다."),
        ("$26", "It costs $26."),
        ("no", "The answer is: no."),
        ("東京", "首都は東京都である。"),
    ],
)
def test_a_whole_value_is_supported_however_it_is_spaced(value: str, context: str) -> None:
    assert judge(value, [context]).score == 1.0


def test_without_contexts_nothing_is_supported() -> None:
    assert judge("It is so.", []).reason == "there are no contexts"


def test_opposite_words_are_named() -> None:
    found = judge("Revenue decreased a lot in spring 2021.", ["Revenue increased a lot in spring 2020."])
    assert "it says “decreas” where the passage says “increas”" in found.reason


def test_the_weights_are_of_these_features() -> None:
    for code, regression in regressions().items():
        assert set(regression.weights) == set(NAMES), code
        assert 0 < regression.threshold < 1


def test_a_verbatim_sentence_has_the_features_of_one() -> None:
    compared = compare(SENTENCE, source_of(LEAVE))
    features = dict(zip(NAMES, compared.values, strict=True))
    assert features["window_share"] == features["subsequence"] == features["trigrams_window"] == 1.0
    assert features["numbers_missing"] == features["words_missing"] == features["opposite"] == 0.0
    assert missing_words(SENTENCE, source_of(LEAVE)) == []


@pytest.mark.parametrize("text", ["", " ", "?", "①", "\ud800", "a" * 20_000, "가" * 20_000])
def test_odd_texts_are_judged(text: str) -> None:
    found = judge(text, [text, LEAVE])
    assert 0.0 <= found.score <= 1.0


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
