"""The gate with the regulation lexicon."""

from __future__ import annotations

import pytest

from dtrag.memory.same_question_gate import LexiconSynonyms, gate
from dtrag.packs.regulation_ko.lexicon import Entry, Lexicon


def test_the_lexicon_explains_everyday_words() -> None:
    entry = Entry(("책 잃어버",), ("망실", "분실"), "library")
    synonyms = LexiconSynonyms(Lexicon.of([entry]))
    assert synonyms.official(["책을", "잃어버리면"]) == [((0, 1), frozenset({"망실"}))]
    assert synonyms.knows("망실") and not synonyms.knows("망살")
    assert synonyms.official(["a-b책", "x"]) == []


def test_two_official_words_stay_different() -> None:
    entries = [Entry(("학사",), ("박사",)), Entry(("배철러",), ("학사",))]
    assert LexiconSynonyms(Lexicon.of(entries)).official(["학사"]) == []
    assert LexiconSynonyms(Lexicon.of(entries)).official(["배철러"]) == [((0,), frozenset({"학사"}))]


@pytest.mark.parametrize(
    ("base", "other"),
    [("졸업논문 제출 기한", "졸업논분 제출 기한"), ("등록금 체납 시 제적되나요?", "등록금 채납 시 제적되나요?")],
)
def test_a_misspelt_word_of_the_lexicon_is_understood(base: str, other: str) -> None:
    assert gate()(base, other).same


def test_two_words_of_the_lexicon_are_not_misspelt() -> None:
    assert not gate()("연가 사용 절차", "연차료 사용 절차").same
    assert not gate()("학사과정 수업료", "박사과정 수업료").same
