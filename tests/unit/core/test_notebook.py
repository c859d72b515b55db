"""Answers and passages in notebooks: what is cited is marked, and no text becomes a tag or an attribute."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.documents import Answer, Citation, SearchResult
from dtrag.core.notebook import notebook_html

HOSTILE = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            (
                *(
                    "<",
                    ">",
                    '"',
                    "'",
                    "&",
                    "&lt;",
                    "</mark>",
                    "<script>alert(1)</script>",
                    "<img src=x onerror=y>",
                    "\x00",
                ),
                *(
                    "javascript:",
                    "<!--",
                    "-->",
                    "]]>",
                    "style=",
                    " onclick=",
                    "\u202e",
                    "연차",
                    "</bdi></div>",
                    "<svg/o=",
                ),
            )
        )
    ).map("".join),
)
SPANS = st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)), max_size=5).map(tuple)
CITATION = Citation(1, "Handbook, Leave", "c:0", "c", "file:///leave.md", "Ten days. Or more.", 100, 118)
ANSWER = Answer("How many?", "Ten days. [1]", (CITATION,), 0.9, "answer", {}, marked=((0, 9),))


class Tags(HTMLParser):
    """The tags with their attributes, the text, and the marked text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.open: list[str] = []
        self.text = ""
        self.marked: list[str] = []
        self.other: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "mark" in self.open:
            self.marked.append(data)

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    handle_pi = unknown_decl = handle_comment


PLAIN = Tags(ANSWER._repr_html_() + SearchResult("c:0", "Ten days", highlights=((0, 3),))._repr_html_())


def test_what_is_cited_and_what_answers_is_marked() -> None:
    exact = replace(CITATION, highlights=((100, 103), (113, 117)))
    assert Tags(replace(ANSWER, citations=(exact,))._repr_html_()).marked == ["Ten days.", "Ten", "more"]
    assert Tags(ANSWER._repr_html_()).marked == ["Ten days.", "Ten days. Or more."]
    assert Tags(SearchResult("c:0", "휴가는 15일", highlights=((4, 7),))._repr_html_()).marked == ["15일"]


def test_an_answer_is_its_text_with_numbered_sources() -> None:
    assert str(ANSWER) == "Ten days. [1]\n\n[1] Handbook, Leave\n    file:///leave.md"
    assert "[1] Handbook, Leave" in Tags(ANSWER._repr_html_()).text
    assert not {"script", "link", "img", "a", "iframe", "style"} & {tag for tag, _ in PLAIN.tags}


@given(HOSTILE, HOSTILE, HOSTILE, SPANS)
def test_no_text_becomes_a_tag_or_an_attribute(
    first: str, second: str, third: str, spans: tuple[tuple[int, int], ...]
) -> None:
    citation = replace(CITATION, label=first, source_url=second, quote=third, highlights=spans, document_id=first)
    answer = replace(ANSWER, text=first, citations=(citation,), decision=second, marked=spans)
    passage = SearchResult(
        "c:0", third, second, first, [second, third], metadata={"article": third}, breadcrumb=(first,), highlights=spans
    )
    for page, texts in ((answer._repr_html_(), (first, second, third)), (passage._repr_html_(), (first, third))):
        read = Tags(page)
        assert set(read.tags) <= set(PLAIN.tags)
        assert (read.open, read.other) == ([], [])
        assert all(_without_controls(text) in read.text for text in texts)


def test_spans_outside_the_text_and_common_ones_are_marked_once() -> None:
    read = Tags(notebook_html("0123456789", ((8, 20), (2, 5), (3, 6), (-4, 1), (7, 7)), (), ""))
    assert (read.text, read.marked) == ("0123456789", ["0", "234", "5", "89"])


def _without_controls(text: str) -> str:
    return "".join(
        character
        for character in text
        if character in "\t\n" or not (ord(character) < 32 or 127 <= ord(character) < 160)
    )
