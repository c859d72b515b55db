"""The lexicon: its form, how it matches, and that it was not written from the questions it is judged by."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.analysis import normalise
from dtrag.regulations.korean import lexicon as lexicon_package
from dtrag.regulations.korean.lexicon import (
    SYNONYMS_FILE,
    Entry,
    Lexicon,
    built_in,
    lists_by_json,
    lists_by_toml,
    read_entries,
    read_synonyms,
    words_of,
)
from dtrag.regulations.korean.spelling import begins, within_one

QUESTIONS = Path(__file__).parents[5] / "shared/data/korean-regulations/questions.dev.jsonl"
FILES = sorted(
    (
        file
        for file in resources.files(lexicon_package).iterdir()
        if file.name.endswith(".toml") and file.name != SYNONYMS_FILE
    ),
    key=lambda file: file.name,
)

SMALL = Lexicon.of(
    [
        Entry(("학교 쉬", "한 학기 쉬"), ("휴학", "일반휴학")),
        Entry(("책 잃어버", "책 분실"), ("변상",)),
        Entry(("기숙사",), ("생활관",)),
        Entry(("계절학기",), ("계절수업",)),
        Entry(("leave of absence",), ("휴학",)),
        Entry(("방",), ("호실",)),
        Entry(("과를 바꾸",), ("전과",)),
        Entry(("fix equipment",), ("보수",)),
    ],
    [("바꾸", "옮기", "변경"), ("과", "학과"), ("equipment", "device"), ("기숙사", "긱사")],
)


def official(question: str) -> set[str]:
    return {word for match in SMALL.matches(question) for word in match.entry.official}


def test_every_file_has_the_form_of_a_lexicon() -> None:
    problems = []
    for file in FILES:
        read = tomllib.loads(file.read_text("utf-8"))
        if read.keys() != {"field", "entries"}:
            problems.append(f"{file.name}: {sorted(read)}")
        for entry in read["entries"]:
            is_well_formed = (
                entry.keys() == {"spoken", "official"}
                and 1 <= len(entry["official"]) <= 4
                and 1 <= len(entry["spoken"]) <= 8
                and all(words_of(form) for form in entry["spoken"])
            )
            if not is_well_formed:
                problems.append(f"{file.name}: {entry}")
    assert not problems


def test_it_is_large_and_most_entries_have_several_forms() -> None:
    entries = built_in().entries
    assert len(entries) >= 1_500
    assert sum(len(entry.spoken) >= 3 for entry in entries) >= 0.9 * len(entries)
    assert len({entry.field for entry in entries}) >= 12


def test_no_entry_only_repeats_its_official_word() -> None:
    assert not [entry for entry in built_in().entries if set(entry.spoken) <= set(entry.official)]


@pytest.mark.skipif(not QUESTIONS.exists(), reason="the development questions are not here")
def test_no_form_shares_four_words_with_a_development_question() -> None:
    questions = [json.loads(line)["question"] for line in QUESTIONS.read_text("utf-8").splitlines()]
    runs = {
        tuple(words[start : start + 4])
        for words in (re.findall(r"[\w가-힣]+", question) for question in questions)
        for start in range(len(words) - 3)
    }
    shared = [
        form
        for entry in built_in().entries
        for form in entry.spoken
        for words in [form.split()]
        for start in range(len(words) - 3)
        if tuple(words[start : start + 4]) in runs
    ]
    assert not shared


@pytest.mark.parametrize(
    "question",
    [
        "학교를 한 학기 쉬고 싶어요",
        "학교 좀 쉬어도 되나요",
        "학교쉬고싶어",
        "Can I take a leave of absence?",
    ],
)
def test_forms_match_beginnings_in_order_with_gaps_and_written_as_one(question: str) -> None:
    assert "휴학" in official(question)


def test_words_may_be_split_inside_compounds_or_misspelt() -> None:
    assert "생활관" in official("기숙 사비가 얼마예요")
    assert "생활관" in official("기숙싸 언제 들어가요")
    assert "계절수업" in official("하계계절학기 신청")
    assert "변상" in official("도서관책을잃어버렸는데")


def test_one_syllable_matches_a_whole_word_only() -> None:
    assert "호실" in official("방을 바꾸고 싶어요")
    assert "호실" not in official("방학에 뭐 하나요")


def test_words_in_the_wrong_order_or_too_far_apart_do_not_match() -> None:
    assert "변상" not in official("잃어버린 우산과 도서관의 책")
    assert "휴학" not in official("학교 근처 식당 메뉴 가격이 올라서 쉬었어요")


@pytest.mark.parametrize("question", ["과를 바꿔도 되나요", "과 바꿀 수 있나요", "과 바꾸는 방법", "과를 바꿨어요"])
def test_a_verb_matches_in_all_its_forms(question: str) -> None:
    assert [match.by for match in SMALL.matches(question) if match.entry.official == ("전과",)] == ["words"]


@pytest.mark.parametrize("question", ["과를 옮길래요", "학과 변경은 언제 하나요", "과 옮겨도 돼요?"])
def test_synonyms_match_inside_forms_of_several_words(question: str) -> None:
    assert [match.by for match in SMALL.matches(question) if match.entry.official == ("전과",)] == ["synonym"]


def test_synonyms_do_not_match_alone_and_single_syllables_only_as_words() -> None:
    assert "생활관" not in official("긱사 언제 들어가요")
    assert "전과" not in official("과제를 바꾸고 싶어요")


def test_the_words_of_an_english_form_match_in_any_order() -> None:
    assert "보수" in official("our device is broken, who can fix it?")
    assert "보수" in official("can you fix the equipment of our laboratory")


@pytest.mark.parametrize(
    ("token", "word", "same"),
    [
        ("옮기", "옮겨서", True),
        ("미루", "미뤘는데", True),
        ("빌리", "빌린", True),
        ("다녀오", "다녀와서", True),
        ("쓰이", "썼다", False),
        ("기숙", "기술", False),
        ("휴학", "휴가", False),
        ("a1", "a2", False),
        ("내", "냈다", False),
    ],
)
def test_forms_of_a_verb_are_distinguished_from_other_words(token: str, word: str, same: bool) -> None:
    assert begins(token, word) is same


@given(st.text("가각간갈감갑값갓강갔개객거결고과구궈규그기", min_size=2, max_size=4), st.text("가각간갈", max_size=3))
def test_every_word_begins_itself_whatever_follows(token: str, ending: str) -> None:
    assert begins(token, token + ending)


def test_synonyms_are_classes_of_single_words() -> None:
    with pytest.raises(ValueError, match="each one word"):
        read_synonyms('classes = [["바꾸", "옮겨 가"]]')
    with pytest.raises(ValueError, match="two words"):
        read_synonyms('classes = [["바꾸"]]')
    assert len(built_in().synonyms) > 500


def test_a_correct_word_is_not_corrected() -> None:
    assert not SMALL.matches("기숙자", known={"기숙자"})


@given(st.text(max_size=80))
def test_any_text_is_matched_within_its_words(text: str) -> None:
    words = words_of(text)
    for match in built_in().matches(text):
        assert match.words and set(match.words) <= set(range(len(words)))


@given(st.text("ㄱㄴㄷㅏㅑ", max_size=6), st.text("ㄱㄴㄷㅏㅑ", max_size=6))
def test_one_edit_agrees_with_a_table_of_edits(left: str, right: str) -> None:
    assert within_one(left, right) == (_distance(left, right) <= 1)


def _distance(left: str, right: str) -> int:
    """Edits with exchanged neighbours (Damerau 1964, restricted), by the textbook table."""
    table = {(i, 0): i for i in range(len(left) + 1)} | {(0, j): j for j in range(len(right) + 1)}
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            cost = left[i - 1] != right[j - 1]
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(left), len(right)]


@pytest.mark.parametrize(
    "text", ['[[entries]]\nspoken = []\nofficial = ["휴학"]', '[[entries]]\nspoken = ["쉬"]\nofficial = [" "]']
)
def test_an_empty_entry_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="no spoken form or no official word"):
        read_entries(text, "test")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_json_reads_the_files_as_tomllib_does(file: Path) -> None:
    text = file.read_text("utf-8")
    usual = lists_by_json(text)
    assert usual is not None, "tomllib takes ten times as long: one key with its value on each line, no escapes"
    assert usual == lists_by_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        '[[entries]]\nspoken = ["쉬\\u0020"]\nofficial = ["휴학"]',
        "[[entries]]\nspoken = ['쉬']\nofficial = [\"휴학\"]",
        '[[entries]]\nspoken = ["쉬", # later\n "놀"]\nofficial = ["휴학"]',
        '[[entries]]\nofficial = ["휴학"]\nspoken = ["쉬"] # []',
        'field = 3\n[[entries]]\nspoken = ["쉬"]\nofficial = ["휴학"]',
        '[[entries]]\nspoken = ["쉬"]\nofficial = ["휴학"]\nmore = []',
    ],
)
def test_tomllib_reads_every_other_text(text: str) -> None:
    assert lists_by_json(text) is None
    assert read_entries(text, "test")[0].official == ("휴학",)


@pytest.mark.parametrize(
    "text",
    [
        '[[entries]]\nspoken = ["쉬"], ["놀"]\nofficial = ["휴학"]',
        '[[entries]]\nspoken = ["쉬"]\nspoken = ["놀"]\nofficial = ["휴학"]',
        '[[entries]]\nspoken = ["쉬"]\nofficial = [null]',
        'field = "a"\nfield = "b"\n[[entries]]\nspoken = ["쉬"]\nofficial = ["휴학"]',
        '[[entries]]\nspoken = ["쉬"]\n[[entries]]\nofficial = ["휴학"]',
    ],
)
def test_what_is_no_lexicon_file_is_rejected(text: str) -> None:
    assert lists_by_json(text) is None
    with pytest.raises((ValueError, KeyError)):
        read_entries(text, "test")


@pytest.mark.parametrize("words", [[], ["  책을 \t 잃어버 "], ["ＡＢＣ", "İd"], ["a\0b", "c"]])
def test_forms_are_normalised(words: list[str]) -> None:
    entry = '[[entries]]\nspoken = {}\nofficial = ["y"]\n'
    text = entry.format('["x"]') + entry.format(json.dumps(["x", *words], ensure_ascii=False))
    assert read_entries(text)[1].spoken == ("x", *map(normalise, words))


@pytest.mark.parametrize(
    ("spoken", "question"),
    [
        ("4대보험 들", "4대보험을 들었나요"),
        ("- 쉬", "쉬"),
        ("!! 책 잃어버", "책을 잃어버렸어요"),
        ("책 (!)", "책이 있나요"),
        ("책\t잃어버", "책을 잃어버렸어요"),
    ],
)
def test_a_form_is_found_by_its_first_word(spoken: str, question: str) -> None:
    lexicon = Lexicon.of([Entry((spoken,), ("변상",)), Entry(("?!",), ("없음",))])
    assert [match.entry.official for match in lexicon.matches(question)] == [("변상",)]


def test_fields_are_counted() -> None:
    counted = Counter(entry.field for entry in built_in().entries)
    assert min(counted.values()) >= 20
