"""Passages are exact spans in reading order that lose nothing of the body and stay near the limit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.documents import Block, BlockKind, Chunk, ParsedDocument
from dtrag.core.page_starts import page_at
from dtrag.core.text.token_counts import passage_tokens
from dtrag.ingestion import chunking
from dtrag.ingestion.chunking import MAX_TOKENS, OVERLAP_TOKENS, paragraphs, split

LIMIT = 60
PROSE = st.lists(
    st.sampled_from(
        [
            *("The valve closes. ", "Boilers are inspected yearly! ", "e.g. this ", '"Go." ', "a" * 300),
            *("휴학은 통산 네 학기까지 할 수 있다. ", "① 첫째 ", "가" * 150, "\U0001f600" * 30),
            *("\n\n", "\n", "\t", "\n \n", " " * 900, "…) "),
        ]
    ),
    max_size=40,
).map("".join)


def _document(text: str, blocks: tuple[Block, ...] = ()) -> ParsedDocument:
    return ParsedDocument("Title", text, "text/plain", blocks)


def _built(*parts: tuple[BlockKind, int, str]) -> ParsedDocument:
    """A document of blocks given as (kind, level, text), a blank line between them."""
    text, blocks = "", []
    for kind, level, body in parts:
        text += "\n\n" if text else ""
        blocks.append(Block(len(text), len(text) + len(body), kind, level))
        text += body
    return _document(text, tuple(blocks))


def _shown(document: ParsedDocument, max_tokens: int = MAX_TOKENS) -> list[tuple[tuple[str, ...], str]]:
    return [(chunk.breadcrumb, chunk.text) for chunk in split(document, max_tokens=max_tokens).chunks]


def _check(document: ParsedDocument, chunks: tuple[Chunk, ...], limit: int, body: list[tuple[int, int]]) -> None:
    covered = [False] * len(document.text)
    for number, chunk in enumerate(chunks):
        assert chunk.ordinal == number
        assert chunk.text == document.text[chunk.start : chunk.end]
        assert chunk.text == chunk.text.strip() != ""
        assert passage_tokens(chunk.text) <= limit * 1.25  # each block or sentence is rounded for itself
        covered[chunk.start : chunk.end] = [True] * (chunk.end - chunk.start)
    for start, end in body:
        for place in range(start, end):
            assert covered[place] or document.text[place].isspace()
    for one, other in pairwise(chunks):
        assert one.start < other.start
        assert one.end < other.end
        shared = document.text[other.start : one.end]
        assert not shared or passage_tokens(shared) <= OVERLAP_TOKENS


@settings(max_examples=100)
@given(PROSE | st.text(max_size=400), st.integers(20, 120))
def test_a_text_without_blocks_is_covered_by_exact_spans(text: str, limit: int) -> None:
    document = _document(text)
    _check(document, split(document, max_tokens=limit).chunks, limit, [(0, len(text))])


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["paragraph", "heading", "list", "table"]),
            st.integers(1, 4),
            PROSE.map(lambda text: " ".join(text.split())[:700]).filter(bool),
        ),
        max_size=10,
    )
)
def test_the_body_of_a_structured_document_is_covered_within_its_sections(
    parts: list[tuple[BlockKind, int, str]],
) -> None:
    document = _built(*parts)
    chunks = split(document, max_tokens=LIMIT).chunks
    body = [(block.start, block.end) for block in document.blocks if block.kind != "heading"]
    longest = max((passage_tokens(text) for kind, _, text in parts if kind == "heading"), default=0)
    _check(document, chunks, max(LIMIT, longest), body)
    headings = [block for block in document.blocks if block.kind == "heading"]
    for chunk in chunks:
        inside = [heading.start for heading in headings if chunk.start <= heading.start < chunk.end]
        # No passage reaches from the text of one section over the heading of another.
        assert not any(chunk.start <= start < heading for heading in inside for start, _ in body)
    for heading in headings:
        title = " ".join(document.text[heading.start : heading.end].split())
        in_text = any(chunk.start <= heading.start and heading.end <= chunk.end for chunk in chunks)
        if passage_tokens(title) <= LIMIT:  # a longer one is cut
            assert in_text or any(title in chunk.breadcrumb for chunk in chunks)  # nothing of a heading is lost


def test_headings_are_breadcrumbs_and_siblings_replace_each_other() -> None:
    document = _built(
        ("heading", 1, "Leave"),
        ("paragraph", 0, "Everyone has leave."),
        ("heading", 2, "Parental\nleave"),
        ("paragraph", 0, "Ninety days."),
        ("list", 0, "- with pay"),
        ("heading", 2, "Sick leave"),
        ("paragraph", 0, "With a certificate."),
        ("heading", 1, "Travel"),
        ("paragraph", 0, "By train."),
    )
    assert _shown(document) == [
        (("Leave",), "Everyone has leave."),
        (("Leave", "Parental leave"), "Ninety days.\n\n- with pay"),
        (("Leave", "Sick leave"), "With a certificate."),
        (("Travel",), "By train."),
    ]


def test_a_heading_with_nothing_below_begins_the_next_passage() -> None:
    document = _built(
        ("heading", 1, "Annexes"), ("heading", 1, "Forms"), ("heading", 2, "Form A"), ("paragraph", 0, "Name:"),
        ("heading", 1, "Last"),
    )  # fmt: skip
    assert _shown(document) == [
        (("Forms", "Form A"), "Annexes\n\nForms\n\nForm A\n\nName:"),
        (("Last",), "Last"),
    ]


def test_text_before_the_first_heading_has_no_breadcrumb() -> None:
    assert _shown(_built(("paragraph", 0, "Foreword."), ("heading", 1, "One"), ("paragraph", 0, "Body."))) == [
        ((), "Foreword."),
        (("One",), "Body."),
    ]


def test_whole_blocks_stay_together_while_they_fit_and_are_not_repeated() -> None:
    paragraph: tuple[BlockKind, int, str] = ("paragraph", 0, "word " * 19 + "end.")
    shown = _shown(_built(*[paragraph] * 5), max_tokens=60)
    assert [text.count("end.") for _, text in shown] == [2, 2, 1]


def test_a_cut_inside_a_block_repeats_its_last_short_sentence() -> None:
    sentences = [f"Sentence number {number:02} tells of one valve." for number in range(12)]
    chunks = split(_document(" ".join(sentences)), max_tokens=40).chunks
    assert len(chunks) > 2
    for one, other in pairwise(chunks):
        assert one.text.endswith(other.text[: other.text.index(".") + 1])


def test_a_long_last_sentence_is_not_repeated() -> None:
    sentence = "The " + "very " * 40 + "long sentence ends."
    chunks = split(_document(" ".join([sentence] * 4)), max_tokens=60).chunks
    assert [chunk.text for chunk in chunks] == [sentence] * 4


@pytest.mark.parametrize("unit", ["a", "가", "word ", "낱말 "])
def test_a_huge_single_line_is_cut_everywhere_it_must(unit: str) -> None:
    text = unit * 60_000
    chunks = split(_document(text)).chunks
    assert all(passage_tokens(chunk.text) <= MAX_TOKENS for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks).replace(" ", "") == text.replace(" ", "")


def test_words_are_kept_whole_where_there_are_words() -> None:
    chunks = split(_document("lantern " * 2_000)).chunks
    assert {word for chunk in chunks for word in chunk.text.split()} == {"lantern"}


def test_long_white_space_is_in_no_passage() -> None:
    for desert in (" " * 50_000, "\n" * 50_000, " \n" * 50_000):
        texts = [chunk.text for chunk in split(_document(f"One valve.{desert}Two valves.")).chunks]
        assert texts == ["One valve.", "Two valves."]


def test_pages_travel_with_their_passages() -> None:
    text = "First page.\n\nSecond page."
    document = replace(_document(text), page_starts=((0, 1), (13, 2)))
    passages = split(document, max_tokens=5)
    assert [(chunk.text, chunk.metadata) for chunk in passages.chunks] == [
        ("First page.", {"page": 1}),
        ("Second page.", {"page": 2}),
    ]


def test_a_passage_over_a_page_break_has_the_page_of_its_first_character_and_the_break() -> None:
    text = "One pump runs and the other one waits for it. Two pumps run. Three pumps run at night, and all valves open."
    document = replace(_document(text), page_starts=((0, 7), (text.index("one waits"), 8), (text.index("all"), 11)))
    (whole,) = split(document).chunks
    assert whole.metadata == {"page": 7, "page_breaks": f"{text.index('one waits')}:8 {text.index('all')}:11"}
    passages = split(document, max_tokens=14).chunks
    assert len(passages) > 2
    for chunk in passages:
        shown = [page_at(chunk.metadata, offset) for offset in range(len(chunk.text))]
        assert shown == [
            max(number for start, number in document.page_starts if start <= position)
            for position in range(chunk.start, chunk.end)
        ]


@pytest.mark.parametrize("text", ["", " \n\t\n "])
def test_nothing_gives_no_passages(text: str) -> None:
    assert split(_document(text)).chunks == ()


def test_paragraphs_are_runs_between_blank_lines() -> None:
    text = "\n\nOne\ntwo\n \t\nthree\n\n\nfour  \n"
    assert [text[block.start : block.end].strip() for block in paragraphs(text)] == ["One\ntwo", "three", "four"]


def test_passage_tokens_counts_four_ascii_or_two_other_characters_as_one() -> None:
    assert [passage_tokens(text) for text in ("", "abcd" * 10, "가나" * 10, "abcd가나")] == [1, 11, 11, 3]
    assert passage_tokens("\ud800") >= 1


@pytest.mark.parametrize("word", ["valve ", "v", "밸브 ", "밸", "\U0001f600", "é"])
def test_one_long_line_is_cut_by_looking_at_each_part_of_it_a_few_times(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten times the text takes ten times the work, counted in characters that are looked at."""
    counted = 0

    def counting(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return passage_tokens(text)

    monkeypatch.setattr(chunking, "passage_tokens", counting)
    work = []
    for characters in (20_000, 200_000):
        counted = 0
        line = (word * characters)[:characters].strip()
        chunks = split(_document(line)).chunks
        assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(line.split())
        work.append(counted)
    assert work[1] < 15 * work[0]


def test_headings_without_text_share_passages() -> None:
    parts: list[tuple[BlockKind, int, str]] = [("heading", 1, "a")] * 6_000
    chunks = split(_built(*parts)).chunks
    assert len(chunks) < 40
    assert "".join(chunk.text for chunk in chunks).count("a") == 6_000
    # Below the headings of a chapter, those of its sections: only the last is above the text.
    chapter: list[tuple[BlockKind, int, str]] = [("heading", 1, "A"), ("heading", 2, "B"), ("heading", 2, "C")]
    nested = _built(*chapter, *chapter, ("paragraph", 0, "Text."))
    assert _shown(nested) == [(("A", "C"), "A\n\nB\n\nC\n\nA\n\nB\n\nC\n\nText.")]


def test_only_as_many_passages_as_requested_are_made() -> None:
    section: list[tuple[BlockKind, int, str]] = [("heading", 1, "A"), ("paragraph", 0, "Text.")]
    document = _built(*(section * 50))
    assert len(split(document).chunks) == 50
    assert split(document, most=7).chunks == split(document).chunks[:7]
