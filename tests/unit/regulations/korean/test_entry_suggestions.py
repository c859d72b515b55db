"""Own lexicon entries that corrected questions suggest."""

from __future__ import annotations

from dtrag.regulations.korean.lexicon import OWN_FIELD, Entry, Lexicon, built_in
from dtrag.regulations.korean.lexicon_entries import CorrectedQuestion, as_toml, from_toml, suggestions

PARKING = ("정기주차권의 발급",), ("정기주차권은 총무처에서 발급한다.",)
EMPTY = Lexicon(())


def corrected(*questions: str, passage: tuple[tuple[str, ...], tuple[str, ...]] = PARKING) -> list[CorrectedQuestion]:
    return [CorrectedQuestion(question, *passage) for question in questions]


def test_words_of_several_questions_are_suggested() -> None:
    questions = corrected("차댈곳 신청은 어디서 하나요?", "차댈곳은 얼마예요?", "차댈곳이 없어요")
    [best, *_] = suggestions(questions, EMPTY, 2)
    assert (best.spoken, best.support) == ("차댈곳", 3)
    assert set(best.official) == {"정기주차권", "발급"}
    assert "신청" not in {each.spoken for each in suggestions(questions, EMPTY, 2)}
    assert "신청" in {each.spoken for each in suggestions(questions, EMPTY, 1)}


def test_the_same_question_counts_once() -> None:
    assert suggestions(corrected("차댈곳은 얼마예요?", "차댈곳은 얼마예요?"), EMPTY, 2) == []


def test_forms_of_a_verb_become_their_beginning() -> None:
    questions = corrected("자동차를 세워두려면 어떻게 해요?", "자동차 세워놓아도 되나요?")
    assert "세워" in {each.spoken for each in suggestions(questions, EMPTY, 2)}


def test_words_of_the_passages_and_of_the_question_are_left_out() -> None:
    found = suggestions(corrected("총무처에서 차댈곳 발급하나요?", "총무처 차댈곳 발급 문의"), EMPTY, 2)
    assert [(each.spoken, each.official) for each in found] == [("차댈곳", ("정기주차권",))]


def test_an_official_word_needs_half_of_the_questions_with_the_form() -> None:
    other = ("강의실의 사용",), ("강의실은 교무처의 허가를 받아 사용한다.",)
    questions = [
        *corrected("차댈곳 하나", "차댈곳 둘"),
        *corrected("차댈곳 셋", "차댈곳 넷", "차댈곳 다섯", passage=other),
    ]
    found = {each.spoken: each.official for each in suggestions(questions, EMPTY, 2)}
    assert set(found["차댈곳"]) == {"강의실", "사용"}


def test_what_the_lexicon_knows_is_not_suggested() -> None:
    known = built_in().with_entries([Entry(("차댈곳",), ("정기주차권", "발급"), OWN_FIELD)])
    assert suggestions(corrected("차댈곳은 얼마예요?", "차댈곳이 없어요"), known, 2) == []


def test_english_words_and_headings() -> None:
    passage = ("Bereavement leave",), ("Employees get five days of bereavement leave.",)
    questions = corrected(
        "How long may I stay home for a funeral?", "Is a funeral a reason for days off?", passage=passage
    )
    [best, *_] = suggestions(questions, EMPTY, 2)
    assert (best.spoken, set(best.official)) == ("funeral", {"bereavement", "leave"})


def test_the_file_can_be_added() -> None:
    found = suggestions(corrected("차댈곳은 얼마예요?", 'A "#"\n차댈곳\u202e이 없어요'), EMPTY, 1)
    entries = from_toml(as_toml(found))
    assert entries == [((each.spoken,), each.official) for each in found]
    assert "# Questions: 2" in as_toml(found)
