"""Quotations of named provisions, and the answers to references that mean none or several."""

from __future__ import annotations

from dtrag.core.documents import SearchResult
from dtrag.pipeline.answer.quoted_provisions import MAX_CHOICES, quoted_whole, unanswered
from dtrag.ports import NamedPassages
from tests.cases import each

PIECES = (
    "① 처음 항이다.\n1. 호\n② 둘째 항은 제1항에 따른다.\n가. 목",
    "나. 목\n③ 셋째 항이다. <개정 2020. 1. 1.> ④ 넷째 항은 ⑤호선과 다르다.",
)


def passages() -> list[SearchResult]:
    return [
        SearchResult(chunk_id=f"a:{number}", text=text, title="규정", source_url="", end=len(text))
        for number, text in enumerate((*PIECES, "다른 조"))
    ]


def named(paragraph: int | None = None) -> NamedPassages:
    return NamedPassages("규정 제1조", ("규정 제1조",), ("a:0", "a:1"), paragraph, asks_only=True)


@each(
    "paragraph, texts",
    [
        (None, PIECES),
        (1, ("① 처음 항이다.\n1. 호",)),
        (2, ("② 둘째 항은 제1항에 따른다.\n가. 목", "나. 목")),
        (3, ("③ 셋째 항이다. <개정 2020. 1. 1.>",)),
        (4, ("④ 넷째 항은 ⑤호선과 다르다.",)),
        (9, PIECES),
    ],
)
def test_the_whole_text_or_a_paragraph_is_quoted(paragraph: int | None, texts: tuple[str, ...]) -> None:
    quotes = quoted_whole(named(paragraph), passages())
    assert tuple(quote.text for quote in quotes) == texts
    assert all(passages()[quote.passage].text[quote.start : quote.end] == quote.text for quote in quotes)


def test_several_choices_are_listed() -> None:
    choices = tuple(f"규정{number} 제15조" for number in range(30))
    text, reason = unanswered("제15조 알려줘", NamedPassages("제15조 알려줘", choices=choices)) or ("", "")
    assert text.count("\n- ") == MAX_CHOICES and "외 20개" in text and "30" in str(reason)
    english, _ = unanswered("What is article 제15조?", NamedPassages("", choices=choices[:2])) or ("", "")
    assert english.endswith("- 규정1 제15조")


def test_an_absent_provision_is_stated_with_those_that_exist() -> None:
    missing = NamedPassages("", absent="학칙 제99조", existing="제1조 to 제7조, 부칙")
    text, reason = unanswered("학칙 제99조", missing) or ("", "")
    assert "제1조~제7조, 부칙" in text and "학칙 제99조" in str(reason)
    deleted = NamedPassages("", absent="학칙 제8조", deleted=True, deleted_on="2022-09-01")
    text, _ = unanswered("학칙 제8조", deleted) or ("", "")
    assert text == "학칙 제8조: 삭제된 조항입니다 (2022-09-01)."
    assert unanswered("학칙 제1조", named()) is None
