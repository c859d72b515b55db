"""How passages are cited, and that a citation points at exactly what it quotes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dtrag.core.answers.citation_labels import label
from dtrag.core.documents import SearchResult, UncertainFigure
from dtrag.pipeline.answer.candidates import Quote
from dtrag.pipeline.answer.citations import cite, quoted_passage
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.steps import check_recognised

ARTICLE = {"regulation": "학칙", "article": "제15조", "article_title": "휴학"}


@pytest.mark.parametrize(
    ("metadata", "breadcrumb", "expected"),
    [
        (ARTICLE, ("제3장",), "학칙 제15조(휴학)"),
        ({**ARTICLE, "article_title": None}, (), "학칙 제15조"),
        ({"article": "제15조의2", "article_title": "복학"}, (), "Handbook 제15조의2(복학)"),
        ({}, ("Leave", "Parental leave"), "Handbook, Leave › Parental leave"),
        ({}, ("Handbook", "Leave"), "Handbook, Leave"),
        ({}, ("Handbook",), "Handbook"),
        ({"page": 7}, (), "Handbook, p. 7"),
        ({"page": 7}, ("Leave",), "Handbook, Leave"),
        ({}, (), "Handbook"),
    ],
)
def test_a_passage_is_cited_by_its_usual_name(
    metadata: Mapping[str, Any], breadcrumb: tuple[str, ...], expected: str
) -> None:
    assert label(SearchResult("c", "", title="Handbook", metadata=metadata, breadcrumb=breadcrumb)) == expected


def test_a_quotation_is_cited_with_the_page_on_which_it_begins() -> None:
    text = "Pumps run on this page and valves close. Doors open on the next page."
    passage = SearchResult("c", text, "Handbook", metadata={"page": 3, "page_breaks": f"{text.index('valves')}:4"})
    sentences = [(0, text.index(" Doors")), (text.index("Doors"), len(text))]
    _, citations, _ = cite([Quote(0, start, end, text[start:end], 1.0) for start, end in sentences], [passage])
    assert [(citation.page, citation.label) for citation in citations] == [(3, "Handbook, p. 3"), (4, "Handbook, p. 4")]
    _, (before,), _ = cite([Quote(0, *sentences[1], "Doors", 1.0)], [replace(passage, metadata={"page": 3})])
    assert before.page == 3, "a document that was ingested without page breaks"
    _, (other,), _ = cite([Quote(0, *sentences[1], "Doors", 1.0)], [replace(passage, metadata={})])
    assert other.page is None


def test_numbers_follow_the_quotes_and_spans_point_into_the_document() -> None:
    document = "Preface.  휴학은 네 학기까지. The valve closes. Ends."
    first = SearchResult("c0", document[10:38], "A", "file:///a", start=10, metadata={"document_id": "d1"})
    second = SearchResult("c1", document[22:], "B", "file:///b", start=22)
    quotes = [Quote(0, 0, 11, "휴학은 네 학기까지.", 2.0), Quote(1, 0, 17, "The valve closes.", 1.0)]
    quotes[1] = Quote(1, document[22:].index("Ends."), len(document[22:]), "Ends.", 1.0)
    text, citations, _ = cite(quotes, [first, second])
    assert text == "휴학은 네 학기까지. [1]\nEnds. [2]"
    assert [citation.number for citation in citations] == [1, 2]
    for citation in citations:
        assert document[citation.start : citation.end] == citation.quote
    assert [(c.chunk_id, c.document_id, c.source_url, c.label) for c in citations] == [
        ("c0", "d1", "file:///a", "A"),
        ("c1", "", "file:///b", "B"),
    ]


def test_the_passage_of_an_answer_has_its_sentences_marked_and_numbered() -> None:
    text = "Leave is 26 days. It grows\nwith time [7].\n\nDays expire. They are not paid out."
    passage = SearchResult("c0", text, "Handbook", start=40)
    spans = [(0, 17), (text.index("Days"), text.index(" They"))]
    answer, citations, _ = cite([Quote(0, start, end, text[start:end], 1.0) for start, end in spans], [passage])
    whole = quoted_passage(answer, citations, [SearchResult("c1", "Other."), passage])
    assert whole is not None
    shown, marked = whole
    assert shown == "Leave is 26 days. [1] It grows with time (7).\nDays expire. [2] They are not paid out."
    assert [shown[start:end] for start, end in marked] == ["Leave is 26 days.", "Days expire."]

    elsewhere = replace(citations[1], chunk_id="c1")
    assert quoted_passage(answer, [citations[0], elsewhere], [passage]) is None, "two passages"
    assert quoted_passage(f"1 + 1 = 2\n{answer}", citations, [passage]) is None, "it says more"
    assert quoted_passage(answer, citations, []) is None
    answer, citations, _ = cite([Quote(0, 0, len(text), text, 1.0)], [passage])
    assert quoted_passage(answer, citations, [passage]) is None, "the answer is all of it"


def test_marks_of_a_passage_are_not_citations_and_the_quote_stays_exact() -> None:
    text = "Leave takes 90 days [7]. Sources: [1] evil.example."
    shown, (citation,), _ = cite([Quote(0, 0, len(text), text, 1.0)], [SearchResult("c", text)])
    assert shown == "Leave takes 90 days (7). Sources: (1) evil.example. [1]"
    assert citation.quote == text


def test_nothing_quoted_nothing_cited() -> None:
    assert cite([], []) == ("", (), ())


async def test_an_uncertain_figure_is_named_and_the_answer_is_not_sure() -> None:
    text = "하루 30,000원을 넘을 수 없다. 시행은 2024년 3월이다."
    passage = SearchResult("c", text, "여비규정", start=100, metadata={"page": 2, "ocr_confidence": 91})
    unsure = replace(passage, metadata={**passage.metadata, "ocr_uncertain": "3:8:62"})
    [first, second] = [(0, text.index(" 시행")), (text.index("시행"), len(text))]
    quotes = [Quote(0, start, end, text[start:end], 1.0) for start, end in (first, second)]
    _, citations, _ = cite(quotes, [unsure])
    figure = UncertainFigure("30,000원을", 103, 111, 62)
    assert [citation.uncertain_figures for citation in citations] == [(figure,), ()]
    assert [citation.ocr_confidence for citation in citations] == [91, 91]
    for sources, decision, confidence, notes in (
        (citations, "review", 0.5, 1),
        (citations[1:], "answer", 0.9, 0),
        (cite(quotes, [replace(passage, metadata={})])[1], "answer", 0.9, 0),
    ):
        state = PipelineState(query="하루 한도는?", sources=list(sources), decision="answer", confidence=0.9)
        state.answer_confidence = 0.8
        check_recognised(state)
        assert (state.decision, state.confidence, len(state.notes)) == (decision, confidence, notes)
        assert state.answer_confidence == min(0.8, confidence)
        assert not notes or "30,000원을 in [1] was read by OCR (text recognition) with a confidence of 62%" in str(
            state.notes[0]
        )
