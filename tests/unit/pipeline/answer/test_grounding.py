"""What a model wrote: marks read, numbers checked, sentences held against the passages, quotations exact."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dtrag.core.answers.sentence_vectors import SentenceVectors
from dtrag.core.documents import SearchResult
from dtrag.core.text.analysis import normalise
from dtrag.pipeline.answer.citation_marks import UNSUPPORTED, read_marks, rounded, urls, without_sources
from dtrag.pipeline.answer.grounding import MOST_SENTENCES, CheckedAnswer, check
from tests.growth import grows_linearly
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import Broken

RULES = SearchResult(
    "r",
    "The boiler is inspected once a year by Kim Lee. The valve closes at nine o'clock. "
    "It must not be opened by students. Repairs above 1,500 dollars need the director's consent.",
    title="Boiler rules",
    metadata={"document_id": "d1"},
    start=100,
)
LEAVE = SearchResult(
    "l",
    "휴학은 통산 네 학기를 초과할 수 없다. 휴학 기간은 1년 이내로 한다. "
    "등록금은 2,500,000원이다. 학과장이 휴학원을 승인한다.",
    title="학칙",
    metadata={"article": "제12조", "regulation": "학칙", "article_title": "휴학"},
)
PASSAGES = [RULES, LEAVE]


def _exact(checked: CheckedAnswer, passages: Sequence[SearchResult]) -> None:
    """What holds of every checked answer."""
    for sentence in checked.sentences:
        assert checked.text[sentence.start : sentence.end] == sentence.text
        assert 0.0 <= sentence.score <= 1.0 + 1e-9
        assert sentence.supported or sentence.reason
        assert all(1 <= number <= len(checked.citations) for number in sentence.numbers)
    used = [number for sentence in checked.sentences for number in sentence.numbers]
    assert list(dict.fromkeys(used)) == [citation.number for citation in checked.citations]
    assert [citation.number for citation in checked.citations] == list(range(1, len(checked.citations) + 1))
    by_id = {passage.chunk_id: passage for passage in passages}
    for citation in checked.citations:
        passage = by_id[citation.chunk_id]
        assert passage.text[citation.start - passage.start : citation.end - passage.start] == citation.quote != ""


ANSWERS = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            ["The valve closes at nine", "휴학은 4학기까지", ". ", "\n", "[1]", "[2, 1]", "［１］", "[1-3]", "[99]",
             "[0]",
             "[²]", "[?]", "Sources:\n", "출처: ", "- ", "1. ", "① ", "not ", "않는다. ", "250만", "1억 ",
             "9" * 40, "[", "]", "[1", "**", "# "]
        ),
    ),
    max_size=12,
).map("".join)  # fmt: skip


@settings(max_examples=250)
@given(ANSWERS, st.lists(ANSWERS, max_size=4), st.booleans())
def test_any_text_is_checked_and_quoted_exactly(answer: str, texts: list[str], with_embedder: bool) -> None:
    passages = [SearchResult(f"c{n}", text, title="Ⅳ 4", start=n * 7) for n, text in enumerate(texts)]
    checked = check(answer, passages, embedder=ToyEmbedder() if with_embedder else None)
    _exact(checked, passages)
    assert all(citation.number <= len(checked.citations) for citation in checked.citations)


@settings(max_examples=100)
@given(ANSWERS, st.integers(0, 4))
def test_numbers_that_are_read_are_numbers_of_passages(answer: str, passages: int) -> None:
    found = read_marks(answer, [""] * passages)
    assert all(1 <= number <= passages for part in found.sentences for number in part.numbers)
    assert all(not 1 <= number <= passages for number in found.invented)
    assert all(0 <= part.start < part.end <= len(found.text) for part in found.sentences)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("A b [1]. C d [2].", [(1,), (2,)]),
        ("A b. [1] C d. [2]", [(1,), (2,)]),
        ("A b.[1] C d.[2]", [(1,), (2,)]),
        ("A b [1][2]. C d", [(1, 2), ()]),
        ("A b [1, 2]; c [1-3].", [(1, 2, 3)]),
        ("가 나［１］ 다 【2】.", [(1, 2)]),
        ("[1] A b.\n[2] C d.", [(1,), (2,)]),
        ("A b [passage 2]. C d [출처: 3].", [(2,), (3,)]),
        ("- A b [1]\n- C d [3]", [(1,), (3,)]),
        ("A b [4]. C d [0][99].", [(), ()]),
        ("A b [1](http://x). C d [9](http://x).", [(1,), ()]),
        ("A b [2024]. A [b].", [(), ()]),
    ],
)
def test_marks_belong_to_the_sentence_before_them(answer: str, numbers: list[tuple[int, ...]]) -> None:
    assert [part.numbers for part in read_marks(answer, ["", "", ""]).sentences] == numbers


def test_marks_are_removed_from_the_text() -> None:
    found = read_marks("The valve [1] closes. [2] It opens [9].\n[1] Boilers hum.", ["", ""])
    assert found.text == "The valve closes. It opens.\nBoilers hum."
    assert found.invented == (9,)


def test_a_mark_copied_from_a_passage_cites_nothing() -> None:
    source = "Cats were kept by sailors for centuries [1]. Dogs were not [2]."
    answer = "Cats were kept by sailors for centuries [1]."
    assert [part.numbers for part in read_marks(answer, ["other", source]).sentences] == [()]
    checked = check(answer, [SearchResult("a", "Boilers hum."), SearchResult("b", source)])
    assert [citation.chunk_id for citation in checked.citations] == ["b"]


@pytest.mark.parametrize(
    "block",
    ["Sources:\n[1] Boiler rules\n[2] The web", "**References:**\n- https://x.example", "출처: [1], [2]",
     "## 참고 문헌\n1. 학칙", "Sources: [7]"],
)  # fmt: skip
def test_a_list_of_sources_is_removed(block: str) -> None:
    answer = f"The valve closes at nine [1].\n\n{block}"
    assert without_sources(answer) == "The valve closes at nine [1]."
    checked = check(answer, PASSAGES)
    assert checked.text == "The valve closes at nine. [1]"
    assert any("list of sources" in str(note) for note in checked.notes)


def test_prose_about_sources_stays() -> None:
    for answer in (
        "Sources of heat are many.",
        "Sources:\nThe boiler is the source of heat for all.",
        "출처는 학칙이다.",
    ):
        assert without_sources(answer) == answer


@pytest.mark.parametrize(
    "honest",
    [
        "The valve closes at nine [1].",
        "The valve closes at 9 o'clock [1].",
        "The boiler is inspected by Kim Lee every year [1].",
        "Students must not open the valve [1].",
        "Repairs above 1500 dollars need consent of the director [1].",
        "휴학은 총 4학기를 초과할 수 없습니다 [2].",
        "휴학 기간은 1년 이내입니다 [2].",
        "등록금은 250만원입니다 [2].",
        "학과장이 휴학원을 승인합니다 [2].",
    ],
)
def test_an_honest_paraphrase_is_supported(honest: str) -> None:
    checked = check(honest, PASSAGES)
    assert [sentence.supported for sentence in checked.sentences] == [True]
    assert UNSUPPORTED not in checked.text
    assert checked.notes == ()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("The valve closes at ten [1].", "ten is not in the passage"),
        ("The valve closes at 8 o'clock [1].", "8 is not in the passage"),
        ("The boiler is inspected once a year by Bob Stone [1].", "“Bob” is not in the passage"),
        ("The boiler is not inspected once a year [1].", "denies what the passage says"),
        ("Students may open it [1].", "says what the passage denies"),
        ("Repairs above 2,500 dollars need the director's consent [1].", "2,500 is not"),
        ("Lanterns light the garden in winter [1].", "0% of its words"),
        ("휴학은 5학기를 초과할 수 없습니다 [2].", "5 is not in the passage"),
        ("휴학 기간은 1년 이내로 하지 않는다 [2].", "denies what the passage says"),
        ("등록금은 260만원입니다 [2].", "260만 is not in the passage"),
        ("총장이 휴학원을 승인한다 [2].", "“총장” is not in the passage"),
        ("Boilers hum.", "cites nothing"),
    ],
)
def test_a_changed_sentence_is_marked_and_stays(changed: str, reason: str) -> None:
    checked = check(changed, PASSAGES)
    (sentence,) = checked.sentences
    assert not sentence.supported
    assert reason in sentence.reason
    assert checked.text.endswith(f" {UNSUPPORTED}")
    assert sentence.text == changed.replace(" [1]", "").replace(" [2]", "")
    assert reason in str(checked.notes[0])
    _exact(checked, PASSAGES)


def test_an_unsupported_sentence_is_left_out_when_the_short_answer_is_supported() -> None:
    answer = (
        "The valve closes at nine o'clock [1]. The garden opens at dawn for the bakers [1]. "
        "It must not be opened by students [1]."
    )
    checked = check(answer, PASSAGES, drop=True)
    _exact(checked, PASSAGES)
    assert checked.text == "The valve closes at nine o'clock. [1] It must not be opened by students. [2]"
    assert checked.dropped == 1
    assert any("left out: “The garden opens" in str(note) for note in checked.notes)
    assert UNSUPPORTED not in checked.text


def test_unsupported_sentences_stay_marked_when_the_short_answer_is_not_supported() -> None:
    answer = "The garden opens at dawn for the bakers [1]. The valve closes at nine o'clock [1]."
    checked = check(answer, PASSAGES, drop=True)
    assert (checked.dropped, checked.text.count(UNSUPPORTED)) == (0, 1)
    assert checked.text == check(answer, PASSAGES).text


@settings(max_examples=60)
@given(ANSWERS)
def test_dropping_leaves_exact_sentences_and_citations(answer: str) -> None:
    checked = check(answer, PASSAGES, drop=True)
    _exact(checked, PASSAGES)
    if checked.dropped:
        assert all(sentence.supported for sentence in checked.sentences)


def test_invented_numbers_are_removed_and_noted() -> None:
    checked = check("The valve closes at nine [1][7][12].", PASSAGES)
    assert checked.text == "The valve closes at nine. [1]"
    assert tuple(map(str, checked.notes)) == ("Citations of passages that do not exist were removed: 7, 12.",)


def test_numbers_count_from_one_in_the_order_of_use_and_quote_the_place() -> None:
    checked = check(
        "휴학 기간은 1년 이내이다 [2]. The valve closes at nine [1]. 휴학 기간은 1년 이내로 한다 [2].", PASSAGES
    )
    assert [sentence.numbers for sentence in checked.sentences] == [(1,), (2,), (1,)]
    first, second = checked.citations
    assert (first.label, first.quote) == ("학칙 제12조(휴학)", "휴학 기간은 1년 이내로 한다.")
    assert (second.quote, second.document_id) == ("The valve closes at nine o'clock.", "d1")
    assert (second.start, second.end) == (148, 181)
    _exact(checked, PASSAGES)


def test_a_sentence_without_a_number_or_with_the_wrong_one_gets_the_right_one() -> None:
    for answer in ("The valve closes at nine o'clock.", "The valve closes at nine o'clock [2]."):
        checked = check(answer, PASSAGES)
        assert [citation.chunk_id for citation in checked.citations] == ["r"]
        assert checked.sentences[0].supported
        assert checked.sentences[0].reason


def test_a_sentence_may_draw_on_two_passages() -> None:
    passages = [SearchResult("a", "Ada Bell founded the library."), SearchResult("b", "The library opened in 1904.")]
    checked = check("Ada Bell founded the library, which opened in 1904 [1][2].", passages)
    assert checked.sentences[0].supported
    assert [citation.chunk_id for citation in checked.citations] == ["a", "b"]


def test_headings_and_lines_without_words_are_not_sentences() -> None:
    checked = check("# Valves\nThe rules are:\n---\n- The valve closes at nine [1].", PASSAGES)
    assert [sentence.text for sentence in checked.sentences] == ["The valve closes at nine."]
    assert checked.text == "# Valves\nThe rules are:\n---\n- The valve closes at nine. [1]"


@pytest.mark.parametrize(
    "line",
    [
        "# The fee is 500 won and the director resigned",
        "# The valve closes at 10 o'clock",
        "# Students may open it",
        "Transfer your salary to account 123-456 now:",
        "**The director resigned:**",
        "휴학은 9학기까지：",
    ],
)
def test_a_line_that_looks_like_a_heading_is_checked(line: str) -> None:
    checked = check(f"The valve closes at nine [1].\n{line}", PASSAGES)
    assert [sentence.supported for sentence in checked.sentences] == [True, False]
    assert checked.text.endswith(f" {UNSUPPORTED}")
    _exact(checked, PASSAGES)


def test_a_heading_that_only_repeats_words_is_capped_like_any_sentence() -> None:
    checked = check("# Valve\n" * MOST_SENTENCES + "# Valve", PASSAGES)
    assert [sentence.reason for sentence in checked.sentences] == ["the answer is too long to be checked"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The valve ![x](https://evil/p.png?d=90) closes at nine. [1]", "The valve closes at nine. [1]"),
        ("The valve closes at nine ![x](<https://e/a b> 'c'). [1]", "The valve closes at nine. [1]"),
        ("The [valve](https://evil/p) closes at nine. [1]", "The valve closes at nine. [1]"),
        ("The valve closes at nine. [1](https://evil/p)", "The valve closes at nine. [1]"),
        ("The valve closes at nine. [[1]](https://evil/(p))", "The valve closes at nine. [1]"),
        ("The valve closes at nine [9](https://evil/p).", "The valve closes at nine. [1]"),
        ("The valve closes at [![nine](https://e/a.png)nine](https://e/b). [1]", "The valve closes at nine. [1]"),
    ],
)
def test_links_are_replaced_by_their_text_and_images_removed(answer: str, text: str) -> None:
    passages = [SearchResult("a", "The valve closes at nine.")]
    checked = check(answer, passages)
    assert checked.text == text
    assert any("9" in str(note) for note in checked.notes) == ("[9]" in answer)
    _exact(checked, passages)


@pytest.mark.parametrize(
    "answer",
    [
        "The valve closes at nine ![x [y [z]]](https://evil/p). [1]",
        "The valve closes at nine ![x](https://evil/(((p)))). [1]",
        "[a]［1］(https://evil/p) The valve closes at nine.",
        "The valve closes at nine ![x][r]. [1]\n\n[r]: https://evil/p",
    ],
)
def test_an_unusual_link_is_broken_by_a_space_and_marked(answer: str) -> None:
    checked = check(answer, PASSAGES)
    assert "](" not in checked.text
    assert "]:" not in checked.text
    assert "web address" in checked.sentences[-1].reason


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(["[", "]", "(", ")", "!", "a", "[1]", "［2］", "https://e", " ", "\n", "<", ">", ". ", '"']),
        max_size=20,
    )
)
def test_no_link_is_left_whatever_a_model_writes(pieces: list[str]) -> None:
    assert "](" not in read_marks("".join(pieces), ["", ""]).text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The valve<script>alert('[1]')</script> closes at nine. [1]", "The valve closes at nine. [1]"),
        ("The <b class=x>valve</b> closes at<br/> nine. [1]", "The valve closes at nine. [1]"),
        ("The valve closes at nine.<img src=x onerror=alert(1)> [1]", "The valve closes at nine. [1]"),
        ("The valve closes at nine<!-- to do -->. [1]", "The valve closes at nine. [1]"),
        ("The valve closes at nine. [1]<thing onclick='alert(1)'>", "The valve closes at nine. [1]"),
        ("The valve closes at nine javascript:alert(1). [1]", "The valve closes at nine [1]"),
        ("The [valve](javascript:alert(1)) closes at nine. [1]", "The valve closes at nine. [1]"),
        ("The <style>p {x: url(//e)}</style>valve closes at nine. [1]", "The valve closes at nine. [1]"),
        (
            "The valve closes at nine. [1]<[](http://e)script src=//e>",
            "The valve closes at nine. [1]",
        ),
    ],
)
def test_scripts_are_removed_and_html_is_replaced_by_its_text(answer: str, text: str) -> None:
    checked = check(answer, [SearchResult("a", "The valve closes at nine.")])
    assert checked.text == text


@settings(max_examples=200)
@example(["<", "[1]", "[1]", "img", " ", "src", "=", "x", ">"])
@example(["<scr", "[1]", "ipt", ">"])
@example(["<!", "[1]", "--"])
@given(
    st.lists(
        st.sampled_from(
            ["<", ">", "</", "script", "img", "x", " ", "=", "/", "<!--", "-->", "javascript:", "a", "\n", "[1]"]
        ),
        max_size=20,
    )
)
def test_no_element_of_html_is_left_whatever_a_model_writes(pieces: list[str]) -> None:
    text = read_marks("".join(pieces), [""]).text.lower()
    assert not re.search(r"<(/?(script|img|a)(?![\w-])|!--|[a-z][^<>=]*=)", text)


@pytest.mark.parametrize(
    "text",
    ["<개정 2020. 3. 1.> 5 < 6이다.", "Run checkout <branch> when a < b > c.", "data: 5, javascript: a language"],
)
def test_prose_in_angle_brackets_is_not_html(text: str) -> None:
    assert read_marks(text, []).text == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Great question! {}", "The valve closes at nine. [1]"),
        ("That's a very good question. Hello there! {}", "The valve closes at nine. [1]"),
        ("Sure, here is the answer based on the passages:\n\n{}", "The valve closes at nine. [1]"),
        ("Certainly — {} I hope this helps! 😊", "The valve closes at nine. [1]"),
        ("{}\n\nIf you have any further questions, feel free to ask!", "The valve closes at nine. [1]"),
        ("안녕하세요! 좋은 질문입니다. {}", "The valve closes at nine. [1]"),
        ("질문해 주셔서 감사합니다.\n문의하신 밸브에 대해 안내해 드리겠습니다.\n{}", "The valve closes at nine. [1]"),
        (
            "{} 도움이 되었기를 바랍니다. 추가로 궁금한 점이 있으면 언제든지 물어보세요.",
            "The valve closes at nine. [1]",
        ),
    ],
)
def test_pleasantries_are_dropped(said: str, text: str) -> None:
    for drop in (False, True):
        checked = check(
            said.format("The valve closes at nine. [1]"), [SearchResult("a", "The valve closes at nine.")], drop=drop
        )
        assert (checked.text, checked.notes, checked.dropped) == (text, (), 0)
        assert [sentence.supported for sentence in checked.sentences] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "Sure things close at nine.",
        "Certainly not.",
        "The director lets me know. Here are the opening hours: nine to five.",
        "네, 휴학할 수 있습니다.",
        "추가 문의는 학사팀으로 문의해 주시기 바랍니다.",
        "합격자에게 개별적으로 안내해 드리겠습니다.",
    ],
)
def test_what_only_resembles_a_pleasantry_is_kept(text: str) -> None:
    assert read_marks(text, []).text == text


@pytest.mark.parametrize(
    ("heading", "passage"),
    [
        (
            "제15조(근무시간)",
            SearchResult("a", "제15조(근무시간) ① 근무시간은 9시부터 18시까지로 한다.", title="취업규칙"),
        ),
        (
            "**취업규칙 제15조(근무시간)**",
            SearchResult(
                "a", "근무시간은 9시부터 18시까지로 한다.", title="취업규칙", breadcrumb=("제15조(근무시간)",)
            ),
        ),
        ("Article 15 (Working hours)", SearchResult("a", "Nine to six.", breadcrumb=("Article 15 (Working hours)",))),
    ],
)
def test_the_heading_of_a_provision_answers_nothing(heading: str, passage: SearchResult) -> None:
    assert check(f"{heading} [1]", [passage]).sentences == ()
    checked = check(f"{heading} [1]\n{passage.text[passage.text.find(')') + 1 :].strip()} [1]", [passage])
    assert [sentence.supported for sentence in checked.sentences] == [True]
    assert checked.text.startswith(heading + "\n")
    answering = check("제15조에 따라 근무시간은 9시부터 18시까지이다 [1].", [passage])
    assert len(answering.sentences) == 1


def test_a_heading_that_names_the_answer_is_a_sentence() -> None:
    passage = SearchResult("a", "Head of the boilers since 2019.", title="Staff", breadcrumb=("Kim Lee",))
    assert [sentence.supported for sentence in check("Kim Lee [1].", [passage]).sentences] == [True]


def test_an_article_in_brackets_is_not_a_link() -> None:
    assert read_marks("[별표 1](제3조)에 따른다.", []).text == "[별표 1] (제3조)에 따른다."


def test_only_addresses_of_the_passages_are_supported() -> None:
    passages = [SearchResult("a", "Forms for leave are at https://snu.ac.kr/leave.")]
    for honest in ("Forms for leave are at https://snu.ac.kr/leave. [1]", "Leave: https://snu.ac.kr/leave에서 [1]"):
        assert check(honest, passages).sentences[0].supported
    for foreign in ("https://snu.ac.kr/leave?d=26", "https://snu.ac.kr。evil.com/", "www.evil.com", "HTTPS://evil"):
        for embedder in (None, ToyEmbedder()):
            checked = check(f"Forms for leave are at {foreign} [1]", passages, embedder=embedder)
            assert [sentence.supported for sentence in checked.sentences] == [False]
            assert "web address" in str(checked.notes[0])


def test_addresses_end_before_punctuation() -> None:
    assert urls("See https://a.kr/b?c=d., (www.e.kr) and <ftp://f>에서 https://g.kr에서") == [
        "https://a.kr/b?c=d", "www.e.kr", "ftp://f", "https://g.kr",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "hostile", "after"),
    [
        ("", " ", "x"),
        ("", "\u3000", "["),
        ("", "![", ""),
        ("", "[[a]", ""),
        ("", "[a](", ""),
        ("[a](", " ", "x"),
        ("", "<script>", ""),
        ("", "<a ", "="),
        ("<a", "=", ""),
        ("", "<!--", ""),
        ("", "Hi! ", ""),
        ("", "hi, ", ""),
        ("", "질문", ""),
    ],
)
def test_marks_and_links_are_read_in_linear_time(before: str, hostile: str, after: str) -> None:
    def work(characters: int) -> None:
        read_marks(f"A b. [1]{before}{hostile * (characters // len(hostile))}{after}", ["A b."])

    assert grows_linearly(work, 25_000)


def test_addresses_are_read_in_linear_time() -> None:
    def work(characters: int) -> None:
        assert len(urls("https://a" + "." * characters + "b")) == 1
        assert len(urls("www." * (characters // 4))) == 1

    assert grows_linearly(work, 25_000)


def test_marks_of_documents_are_shown_in_round_brackets() -> None:
    assert rounded("A [7]. Sources: [1, 2] ［3］ 【4】 [출처: 5] [?] [a] [2024]") == (
        "A (7). Sources: (1, 2) (3) (4) (출처: 5) (?) [a] [2024]"
    )


def test_no_answer_and_no_passages() -> None:
    assert check("", PASSAGES) == CheckedAnswer("", (), (), ())
    checked = check("The valve closes at nine [1].", [])
    assert (checked.text, checked.citations) == (f"The valve closes at nine. {UNSUPPORTED}", ())
    assert not checked.sentences[0].supported


def test_only_the_first_sentences_of_a_very_long_answer_are_checked() -> None:
    checked = check("The valve closes at nine [1]. " * (MOST_SENTENCES + 5), PASSAGES)
    assert [sentence.supported for sentence in checked.sentences[-6:]] == [True] + [False] * 5
    assert "too long" in checked.sentences[-1].reason


class Synonyms(ToyEmbedder):
    """Knows that to shut is to close."""

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return super().embed_documents([normalise(text).replace("shuts", "closes") for text in texts])


def test_other_words_of_the_same_meaning_are_support() -> None:
    passages = [SearchResult("a", "The valve closes. Boilers hum.")]
    answer = "The valve shuts closely, closes [1]."
    plain = check("The big valve shuts nightly [1].", passages)
    assert not plain.sentences[0].supported
    near = check("The valve shuts shuts shuts [1].", passages, embedder=Synonyms())
    assert near.sentences[0].supported, near
    assert [citation.quote for citation in near.citations] == ["The valve closes."]
    assert check(answer, passages).sentences[0].numbers == (1,)


def test_stored_vectors_are_those_that_a_sentence_is_compared_with() -> None:
    passages, answer = [SearchResult("a", "The valve closes. Boilers hum.")], "The big valve shuts nightly."
    [same] = ToyEmbedder().embed_documents([answer])
    for vector, supported in ((same, True), (-same, False)):
        stored = SentenceVectors(ToyEmbedder.id, {"a": {(0, 17): vector, (18, 30): -same}})
        checked = check(f"{answer} [1]", passages, embedder=ToyEmbedder(), stored=stored)
        assert checked.sentences[0].supported == supported


@pytest.mark.parametrize("embedder", [Broken(ConnectionError("down")), Broken(value=math.nan)])
def test_errors_of_the_embedder_are_passed_on(embedder: Broken) -> None:
    with pytest.raises((ConnectionError, ValueError)):
        check("The old valve shuts nightly [1].", [SearchResult("a", "The valve closes.")], embedder=embedder)
