"""Terms of an article and where they are, compared with the terms of its parts one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.analysis import sentences, term_id, terms
from dtrag.regulations.korean.term_coverage import MAX_SENTENCES, ArticleTerms, NumberedTerms, article_terms

PARTS = ["제", "15", "조", "의", "2", "①", "②", "3", " ", "\n", "다.", "a", "-", "휴학한다", ".", "１", "BM25", "학기"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


def ids(text: str) -> set[int]:
    return set(map(term_id, terms(text)))


@given(TEXTS, TEXTS, TEXTS)
def test_the_coverage_equals_that_of_each_part(title: str, regulation: str, text: str) -> None:
    spans = list(sentences(text))[:MAX_SENTENCES]
    question = NumberedTerms(
        {term for part in (title, regulation, text, *(text[start:end] for start, end in spans)) for term in ids(part)}
    )
    coverage = ArticleTerms.of(title, (regulation, ""), text).coverage(question)
    assert coverage.title == question.mask(ids(title))
    assert coverage.whole == question.mask(ids(title) | ids(regulation) | ids(text))
    masks = {question.mask(ids(text[start:end])) for start, end in spans}
    assert coverage.sentences == masks - {0}


@pytest.mark.parametrize("text", ["제\n15조", "제15조의\n2", "3①", "제15\n조의 2"])
def test_a_term_that_spans_two_sentences_counts_for_the_whole_text(text: str) -> None:
    assert len(list(sentences(text))) == 2
    question = NumberedTerms(ids(text))
    assert ArticleTerms.of("", (), text).coverage(question).whole == question.mask(ids(text))


def test_sentences_beyond_the_limit_count_for_the_whole_text_only() -> None:
    text = "\n".join(["휴학한다."] * MAX_SENTENCES + ["복학한다."])
    question = NumberedTerms(ids("복학"))
    coverage = ArticleTerms.of("", (), text).coverage(question)
    assert (coverage.whole, coverage.sentences) == (1, frozenset())


def test_an_article_with_another_text_has_its_own_entry_in_the_cache() -> None:
    first = article_terms("학칙", "휴학", "", "휴학은 네 학기까지 한다.")
    assert article_terms("학칙", "휴학", "", "휴학은 네 학기까지 한다.") is first
    assert article_terms("학칙", "휴학", "", "휴학은 두 학기까지 한다.") is not first


def test_a_question_without_terms_is_covered_by_nothing() -> None:
    coverage = ArticleTerms.of("휴학", (), "휴학한다.").coverage(NumberedTerms(()))
    assert (coverage.whole, coverage.title, coverage.sentences) == (0, 0, frozenset())
