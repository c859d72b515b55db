"""Two answers become one without a model: nothing of the first is lost, nothing is said twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.token_counts import answer_tokens
from dtrag.pipeline.debate.agent import merged, same

SENTENCES = st.lists(
    st.sampled_from(
        [
            "Leave lasts two semesters. [1]",
            "Leave lasts at most two semesters. [1]",
            "Military service is counted apart. [2]",
            "병역 휴학은 통산하지 않는다. [3]",
            "The passages are about something else.",
        ]
    ),
    min_size=1,
    max_size=5,
).map(" ".join)


def test_new_sentences_with_a_source_are_added() -> None:
    first = "Leave lasts two semesters. [1]"
    second = "Leave lasts at most two semesters. [1] Military service is counted apart. [2] The question is vague."

    assert merged(first, second, 800) == f"{first}\nMilitary service is counted apart. [2]"


@given(SENTENCES, SENTENCES)
def test_a_merge_keeps_the_first_answer_within_the_limit(first: str, second: str) -> None:
    answer = merged(first, second, 800)

    assert answer.startswith(first)
    assert answer_tokens(answer) <= answer_tokens(first) + answer_tokens(second)
    assert merged(first, first, 800) == first
    assert len(merged(first, second, 3).split()) <= 3


def test_answers_are_the_same_but_for_spelling() -> None:
    assert same("It is  SO. [1]", "it is so. [1].")
    assert not same("It is so. [1]", "It is so. [2]")
