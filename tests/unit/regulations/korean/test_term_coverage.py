"""Terms of an article and where they are, compared with the terms of its parts one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.analysis import sentences, term_id, terms
from dtrag.regulations.korean.term_coverage import MAX_SENTENCES, NumberedTerms, coverage, piece_terms

PARTS = ["제", "15", "조", "의", "2", "①", "②", "3", " ", "\n", "다.", "a", "-", "휴학한다", ".", "１", "BM25", "학기"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


def ids(text: str) -> set[int]:
    return set(map(term_id, terms(text)))


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=4))
def test_the_coverage_equals_that_of_each_part(title: str, regulation: str, pieces: list[str]) -> None:
    text = "\n".join(pieces)
    spans = list(sentences(text))[:MAX_SENTENCES]
    question = NumberedTerms(
        {term for part in (title, regulation, text, *(text[start:end] for start, end in spans)) for term in ids(part)}
    )
    covered = coverage(question, title, (regulation, ""), pieces)
    assert covered.title == question.mask(ids(title))
    assert covered.whole == question.mask(ids(title) | ids(regulation) | ids(text))
    masks = {question.mask(ids(text[start:end])) for start, end in spans}
    assert covered.sentences == masks - {0}


@pytest.mark.parametrize("text", ["제\n15조", "제15조의\n2", "3①", "제15\n조의 2"])
def test_a_term_that_spans_two_sentences_counts_for_the_whole_text(text: str) -> None:
    assert len(list(sentences(text))) == 2
    question = NumberedTerms(ids(text))
    for pieces in ([text], text.split("\n")):
        assert coverage(question, "", (), pieces).whole == question.mask(ids(text))


@pytest.mark.parametrize("split", [0, 1, MAX_SENTENCES - 1, MAX_SENTENCES])
def test_sentences_beyond_the_limit_count_for_the_whole_text_only(split: int) -> None:
    for before, masks in ((MAX_SENTENCES, frozenset()), (MAX_SENTENCES - 1, frozenset({1}))):
        lines = ["휴학한다."] * before + ["복학한다."]
        pieces = ["\n".join(part) for part in (lines[:split], lines[split:])]
        covered = coverage(NumberedTerms(ids("복학")), "", (), pieces)
        assert (covered.whole, covered.sentences) == (1, masks)


def test_a_piece_is_analysed_once_whatever_it_is_searched_with() -> None:
    question = NumberedTerms(ids("휴학 복학"))
    before = piece_terms.cache_info().misses
    assert coverage(question, "", (), ["휴학은 네 학기까지 한다.", "복학은 이렇게 한다."]).whole == 3
    assert coverage(question, "휴학", ("학칙",), ["복학은 이렇게 한다."]).whole == 3
    assert piece_terms.cache_info().misses == before + 2


def test_a_question_without_terms_is_covered_by_nothing() -> None:
    covered = coverage(NumberedTerms(()), "휴학", (), ["휴학한다."])
    assert (covered.whole, covered.title, covered.sentences) == (0, 0, frozenset())
