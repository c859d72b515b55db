"""Regulations and their articles, found in texts of every layout. All texts here are invented."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.documents import Block, Chunk, ChunkedDocument, ParsedDocument
from dtrag.core.page_starts import page_at
from dtrag.regulations.korean.book import read_contents
from dtrag.regulations.korean.heads import DocumentLine
from dtrag.regulations.korean.structure import split

LEAVE = """휴학규정

제정 2001. 3. 1.
<규정 명칭 변경 2010. 9. 1.>

제1장 총 칙 <개정 2010. 9. 1.>
제1조 (목적) 이 규정은 학생의 휴학에 필요한 사항을 정한다.
제 2 조(정의) 이 규정에서 “휴학”이란 학기를 쉬는 것을 말한다.
제3조의 규정에 따라 허가한 것도 같다.
제2장 휴학
제1절 절차
제3조(휴학기간) ① 휴학은 통산 네 학기까지 할 수 있다. <개정 2020. 2. 1.>
② 창업휴학은 제1항에 더하여 두 학기로 한다.
제3조의2(연장) 질병으로 인한 휴학은 한 번 늘릴 수 있다.
제4조 <삭제 2015. 3. 1.>
제5조 내지 제6조 <삭제 2015. 3. 1.>
제7조 ① (복학) 휴학기간이 끝난 학생은 복학하여야 한다.
제8조(수수료) 다음 표와 같다.
구분 | 금액
일반 | 1만원

부 칙 <2001. 3. 1.>
제1조(시행일) 이 규정은 2001년 3월 1일부터 시행한다.
제2조(경과조치) 종전의 휴학은 이 규정에 따른 것으로 본다.
부  칙
이 규정은 2020년 2월 1일부터 시행한다.
[별지 제1호 서식] <개정 2020. 2. 1.>
휴학원
이름 | 학번
"""


def document(text: str, blocks: tuple[Block, ...] = (), title: str = "파일") -> ParsedDocument:
    return ParsedDocument(title, text, "text/plain", blocks, category_path=("학사",), metadata={"source": "book"})


def regulations(text: str, **options: int) -> list[ChunkedDocument]:
    found = split(document(text), **options)
    assert found is not None
    return list(found)


def of_kind(chunks: Sequence[Chunk], kind: str) -> list[Chunk]:
    return [chunk for chunk in chunks if chunk.metadata["kind"] == kind]


def labels(chunks: Sequence[Chunk]) -> list[tuple[str, str]]:
    return [(str(c.metadata["article"]), str(c.metadata["article_title"])) for c in of_kind(chunks, "article")]


def body(chunks: Sequence[Chunk], article: str) -> str:
    return next(c.text for c in chunks if c.metadata["article"] == article and c.metadata["kind"] == "article")


class TestOneRegulation:
    def test_articles_with_their_titles(self) -> None:
        (leave,) = regulations(LEAVE)
        assert labels(leave.chunks) == [
            ("제1조", "목적"),
            ("제2조", "정의"),
            ("제3조", "휴학기간"),
            ("제3조의2", "연장"),
            ("제7조", "복학"),
            ("제8조", "수수료"),
        ]

    def test_the_body_has_no_heading_and_keeps_everything_else(self) -> None:
        (leave,) = regulations(LEAVE)
        assert body(leave.chunks, "제3조") == (
            "① 휴학은 통산 네 학기까지 할 수 있다. <개정 2020. 2. 1.>\n② 창업휴학은 제1항에 더하여 두 학기로 한다."
        )
        assert body(leave.chunks, "제7조") == "휴학기간이 끝난 학생은 복학하여야 한다."
        assert body(leave.chunks, "제8조") == "다음 표와 같다.\n구분 | 금액\n일반 | 1만원"

    def test_a_line_that_begins_with_a_citation_stays_in_its_article(self) -> None:
        (leave,) = regulations(LEAVE)
        assert body(leave.chunks, "제2조").endswith("제3조의 규정에 따라 허가한 것도 같다.")

    def test_the_document_is_the_regulation(self) -> None:
        (leave,) = regulations("머리말\n\n" + LEAVE)
        assert leave.document.title == "휴학규정"
        assert leave.document.part == "휴학규정"
        assert leave.document.text.startswith("휴학규정\n\n제정 2001. 3. 1.")
        assert leave.document.category_path == ("학사",)
        assert leave.document.metadata["source"] == "book"

    def test_the_breadcrumb_names_regulation_divisions_and_article(self) -> None:
        (leave,) = regulations(LEAVE)
        by_article = {c.metadata["article"]: c.breadcrumb for c in of_kind(leave.chunks, "article")}
        assert by_article["제1조"] == ("휴학규정", "제1장 총 칙", "제1조(목적)")
        assert by_article["제3조의2"] == ("휴학규정", "제2장 휴학", "제1절 절차", "제3조의2(연장)")

    def test_addenda_keep_their_own_articles(self) -> None:
        (leave,) = regulations(LEAVE)
        first, second = of_kind(leave.chunks, "addendum")
        assert (first.metadata["article"], first.metadata["article_title"]) == ("부칙", "2001. 3. 1.")
        assert first.text.startswith("제1조(시행일)")
        assert first.text.endswith("본다.")
        assert second.metadata["occurrence"] == 2
        assert second.text == "이 규정은 2020년 2월 1일부터 시행한다."

    def test_an_appendix_is_titled_by_the_line_below_its_mark(self) -> None:
        (leave,) = regulations(LEAVE)
        (form,) = of_kind(leave.chunks, "appendix")
        assert (form.metadata["article"], form.metadata["article_title"]) == ("별지 제1호 서식", "휴학원")
        assert "이름 | 학번" in form.text

    def test_the_history_is_in_the_text_but_not_found(self) -> None:
        (leave,) = regulations(LEAVE)
        assert "규정 명칭 변경" in leave.document.text
        assert not any("규정 명칭 변경" in chunk.text for chunk in leave.chunks)

    def test_a_preamble_in_prose_is_found(self) -> None:
        prose = (
            "우리는 진리를 찾고 정의를 지키며 이웃과 더불어 살아가는 사람을 기르기 위하여 이 헌장을 정하고 지킨다. " * 2
        )
        (charter,) = regulations(
            f"대학헌장\n{prose}\n제1조(뜻) 학문은 자유롭다.\n제2조(길) 배움은 함께한다.\n제3조(몫) 앎은 나눈다.\n"
        )
        assert [c.metadata["kind"] for c in charter.chunks] == ["preamble", "article", "article", "article"]

    @pytest.mark.parametrize(
        ("head", "expected"),
        [
            ("제4조(학과(전공)의 설치) 둔다.", ("제4조", "학과(전공)의 설치")),
            ("제4조[운영] 둔다.", ("제4조", "운영")),
            ("제4조 【운영】 둔다.", ("제4조", "운영")),
            ("제4조 (개정 2010. 3. 1.) (운영) 둔다.", ("제4조", "운영")),
            ("제4조(운영)①총장이 둔다.", ("제4조", "운영")),
            ("제4조 위원은 총장이 위촉한다.", ("제4조", "")),
            ("제4조 이 규정에 없는 것은 따로 정한다.", ("제4조", "")),
            ("제 4 조 의 2 (운영) 둔다.", ("제4조의2", "운영")),
            ("### 제4조(운영)\n둔다.", ("제4조", "운영")),
            ("**제4조(운영)** 둔다.", ("제4조", "운영")),
        ],
    )
    def test_heads_are_written_in_many_ways(self, head: str, expected: tuple[str, str]) -> None:
        text = f"회의규정\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n제3조(범위) 따른다.\n{head}\n"
        (found,) = regulations(text)
        assert labels(found.chunks)[3:] == [expected]
        assert "운영" not in found.chunks[3].text

    @pytest.mark.parametrize(
        "line",
        [
            "제4조에 따라 위원을 둔다.",
            "제4조 및 제5조에 따라 둔다.",
            "제4조제2항의 위원을 둔다.",
            "제4조(운영)에 따른 위원은 따로 둔다.",
            "제99조(운영) 규정은 쓰지 않는다.",
        ],
    )
    def test_wrapped_citations_are_not_heads(self, line: str) -> None:
        above = "제3조(위원) 위원의 임기와 자격에 관한 자세한 사항은 이 규정의"
        (found,) = regulations(f"회의규정\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n{above}\n{line}\n")
        assert [label for label, _ in labels(found.chunks)] == ["제1조", "제2조", "제3조"]
        assert body(found.chunks, "제3조").endswith(line)

    @pytest.mark.parametrize(
        "line",
        [
            "제3조 삭제 <2010.1.1.>",
            "제3조(범위) <삭제 2010. 1. 1.>",
            "제3조 (삭제)",
            "제3조 <삭제 2022. 6. 15> [제2조에서 이동]",
        ],
    )
    def test_deleted_articles_are_dropped(self, line: str) -> None:
        (found,) = regulations(f"회의규정\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n{line}\n제4조(기타) 따른다.\n")
        assert [label for label, _ in labels(found.chunks)] == ["제1조", "제2조", "제4조"]

    def test_a_number_that_is_there_twice_is_kept_twice(self) -> None:
        (found,) = regulations(
            "회의규정\n제1조(목적) 정한다.\n제2조(사업) 한다.\n제2조(업무) 맡는다.\n제3조(기타) 따른다.\n"
        )
        assert labels(found.chunks)[1:3] == [("제2조", "사업"), ("제2조", "업무")]
        assert [c.metadata.get("occurrence", 1) for c in found.chunks] == [1, 1, 2, 1]


class TestBook:
    CONTENTS = "차례\n휴학규정\t3-1-1\n복학규정【폐지】 3-1-2   등록규정 3-1-3\n복학규정 4-0-7\n"
    BODY = (
        "휴학규정\n제1조(목적) 휴학을 정한다.\n제2조(기간) 두 해로 한다.\n부칙\n이 규정은 2001년부터 시행한다.\n"
        "복학규정\n2015년 3월 1일자 폐지 → 학적팀으로 업무 이관\n"
        "등록규정\n제1조(목적) 등록을 정한다.\n제2조(기간) 열흘로 한다.\n부칙\n제1조(시행일) 바로 시행한다.\n"
        "제2편 학사\n제1장 일반\n복 학 규 정\n제1조(목적) 복학을 정한다.\n제2조(기간) 한 달로 한다.\n"
    )

    def test_names_and_codes(self) -> None:
        found = regulations(self.CONTENTS + self.BODY)
        assert [(one.document.title, one.document.part) for one in found] == [
            ("휴학규정", "3-1-1"),
            ("등록규정", "3-1-3"),
            ("복 학 규 정", "4-0-7"),
        ]
        assert found[0].chunks[0].metadata["code"] == "3-1-1"

    def test_the_headings_of_the_book_above_a_regulation(self) -> None:
        cover = "제 2 편  행 정\n제 1 장 일반 행정\n제2장 학사\n제 1 장 일반 행정\n"
        further = "제2장 학사\n등록규정\n제1장 총칙\n제1조(목적) 등록을 정한다.\n제2조(기간) 열흘로 한다.\n"
        body = self.BODY.split("복학규정\n2015년")[0]
        found = regulations(f"{body}{cover}{body}{further}제3편 위원회\n{body}")
        assert [each.document.metadata.get("book_headings") for each in found] == [
            None,
            "제2편 행정 › 제1장 일반 행정",
            "제2편 행정 › 제2장 학사",
            "제3편 위원회",
        ]

    def test_a_stub_and_the_cover_of_the_next_part_belong_to_no_regulation(self) -> None:
        leave, fees, _ = regulations(self.CONTENTS + self.BODY)
        assert leave.document.text.endswith("시행한다.")
        assert fees.document.text.endswith("제1조(시행일) 바로 시행한다.")

    @pytest.mark.parametrize(
        "mark", ["폐지 2015. 3. 1.", "2015년 3월 1일자 폐지", "제정 2001. 3. 1.\n2015. 3. 1. 폐지"]
    )
    def test_an_abolished_regulation_whose_text_is_there_is_a_regulation(self, mark: str) -> None:
        articles = "제1장 총칙\n제1조(목적) 복학을 정한다.\n제2조(때) 봄에 한다."
        stub = "복학규정\n2015년 3월 1일자 폐지 → 학적팀으로 업무 이관"
        found = regulations(self.BODY.replace(stub, f"복학규정\n{mark}\n{articles}"))
        assert [one.document.title for one in found] == ["휴학규정", "복학규정", "등록규정"]
        assert labels(found[1].chunks) == [("제1조", "목적"), ("제2조", "때")]

    def test_a_contents_table_in_the_middle_ends_a_regulation(self) -> None:
        first, second = (
            self.BODY.split("복학규정\n2015년")[0],
            "등록규정\n제1조(목적) 등록을 정한다.\n제2조(뜻) 같다.\n",
        )
        middle = "제3편 행정\n휴학규정 3-1-1\n등록규정 3-1-3\n복학규정 3-1-4\n"
        leave, fees = regulations(first + middle + second)
        assert leave.document.text.endswith("2001년부터 시행한다.")
        assert fees.document.part == "3-1-3"

    def test_parts_are_unique_where_a_name_is_there_twice(self) -> None:
        twice = "회의규정\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n"
        assert [one.document.part for one in regulations(twice + twice)] == ["회의규정", "회의규정#2"]

    def test_a_form_with_articles_in_an_appendix_is_no_regulation(self) -> None:
        contract = "[별지 제2호 서식]\n계약서\n제1조(목적) 갑과 을은 정한다.\n제2조(기간) 한 해로 한다.\n"
        (found,) = regulations(LEAVE + contract)
        assert [c.metadata["article"] for c in of_kind(found.chunks, "appendix")] == [
            "별지 제1호 서식",
            "별지 제2호 서식",
        ]
        assert len(of_kind(found.chunks, "article")) == 6

    def test_style_and_heading_level_are_evidence_for_a_name_without_the_usual_ending(self) -> None:
        text = "도서관 이용 안내\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n제3조(때) 정한다.\n"
        text += "기숙사 살림\n제1조(목적) 정한다.\n제2조(뜻) 같다.\n"
        second = text.index("기숙사")
        blocks = (Block(0, 9, "heading", 1, "규정명"), Block(second, second + 6, "heading", 1, "규정명"))
        found = split(document(text, blocks))
        assert found is not None
        assert [one.document.title for one in found] == ["도서관 이용 안내", "기숙사 살림"]
        assert [one.document.title for one in regulations(text)] == ["도서관 이용 안내"]

    def test_rows_of_a_table_are_no_heads(self) -> None:
        head = "회의규정\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n"
        text = head + "제3조(표)\n제4조(딴것) | 제5조(딴것)\n제4조(기타) 따른다.\n"
        row = text.index("제4조(딴것)")
        found = split(document(text, (Block(row, text.index("\n", row), "table"),)))
        assert found is not None
        (one,) = found
        assert [label for label, _ in labels(one.chunks)] == ["제1조", "제2조", "제3조", "제4조"]

    @pytest.mark.parametrize(
        ("head", "expected"),
        [
            ("■ 휴학규정 [별지 제2호서식] <개정 2020. 1. 1.>", None),
            ("■ [별지 제2호서식] <개정 2020. 1. 1.>", ("별지 제2호서식", "휴학원")),
            ("【 별지 서식 제2호 】", ("별지 서식 제2호", "휴학원")),
            ("[별표2] 휴학의 종류 <개정 2020. 1. 1.>", ("별표2", "휴학의 종류")),
        ],
    )
    def test_heads_of_appendices(self, head: str, expected: tuple[str, str] | None) -> None:
        (found,) = regulations(LEAVE + f"{head}\n휴학원\n학번 | 이름\n")
        appendices = [(c.metadata["article"], c.metadata["article_title"]) for c in of_kind(found.chunks, "appendix")]
        assert appendices[1:] == ([expected] if expected else [])

    def test_an_appendix_without_text_is_its_heading(self) -> None:
        (found,) = regulations(LEAVE + "[별표 2] 배치도 <개정 2020. 1. 1.>\n[별표 3] <삭제 2020. 1. 1.>\n")
        assert of_kind(found.chunks, "appendix")[-1].text == "[별표 2] 배치도 <개정 2020. 1. 1.>"

    def test_a_row_of_one_cell_may_be_the_head_of_an_appendix(self) -> None:
        head = "회의규정\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n제3조(표) 별표 1과 같다.\n"
        text = head + "[별표 1] |  |\n구분 | 금액\n일반 | 1만원\n"
        row = text.index("[별표 1]")
        found = split(document(text, (Block(row, len(text) - 1, "table"),)))
        assert found is not None
        (appendix,) = of_kind(next(found).chunks, "appendix")
        assert (appendix.metadata["article"], appendix.text) == ("별표 1", "구분 | 금액\n일반 | 1만원")

    def test_blocks_move_with_their_regulation(self) -> None:
        text = self.BODY
        at = text.index("등록규정")
        found = split(document(text, (Block(0, 4, "heading", 1, "규정명"), Block(at, at + 4, "heading", 1, "규정명"))))
        assert found is not None
        fees = list(found)[1].document
        assert [fees.text[b.start : b.end] for b in fees.blocks] == ["등록규정"]

    @pytest.mark.parametrize(
        "title", ["휴학규정 {}", "휴학규정 ({})", "{} 휴학규정", "# {} 휴학규정", "휴학규정[{}]", "**휴학규정** {}"]
    )
    def test_the_code_may_stand_in_the_title_line(self, title: str) -> None:
        rest = "제1조(목적) 정한다.\n제2조(뜻) 말한다.\n부칙\n바로 시행한다.\n"
        other = "등록규정 3-1-2\n제1장 총칙\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n"
        leave, fees = regulations(f"{title.format('3-1-1')}\n{rest}{other}")
        assert leave.document.part == "3-1-1"
        assert leave.document.title.strip("*") == "휴학규정"
        assert fees.document.part == "3-1-2"

    def test_a_contents_table_with_page_numbers(self) -> None:
        contents = "차례\n휴학 안내 ········ 3\n등록 안내 ........ 12\n복학 안내 … … … … … 20\n"
        rest = "제1조(목적) 정한다.\n제2조(뜻) 말한다.\n부칙\n바로 시행한다.\n"
        found = regulations(f"{contents}휴학 안내\n{rest}등록 안내\n{rest}")
        assert [(one.document.title, one.document.part) for one in found] == [("휴학 안내",) * 2, ("등록 안내",) * 2]

    def test_a_contents_table_of_articles_gives_no_articles(self) -> None:
        contents = "회의규정\n차례\n제1장 총칙 ······ 1\n제1조(목적) ······ 1\n제2조(뜻) ······ 1\n제2장 일 ····· 2\n"
        text = contents + "제1장 총칙\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n제2장 일\n제3조(일) 한다.\n"
        (found,) = regulations(text)
        assert labels(found.chunks) == [("제1조", "목적"), ("제2조", "뜻"), ("제3조", "일")]
        assert found.chunks[2].breadcrumb == ("회의규정", "제2장 일", "제3조(일)")
        assert "occurrence" not in found.chunks[0].metadata

    def test_a_contents_table_in_a_table_block(self) -> None:
        contents = "번호 | 규정\n휴학규정 | 3-1-1 | 등록규정 | 3-1-2\n복학규정 【폐지】 | 3-1-3\n"
        text = contents + "휴학규정\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n"
        found = split(document(text, (Block(0, len(contents) - 1, "table"),)))
        assert found is not None
        assert [one.document.part for one in found] == ["3-1-1"]


class TestOtherDocuments:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "An English page without any article.",
            "회의록\n\n오늘은 학칙 제3조를 어떻게 고칠지 이야기했다.\n제3조에 따라 정한다.\n제4조도 살폈다.\n",
            "안내\n\n제1조(목적)에 따라 신청한다.\n\n자세한 것은 학적팀에 묻는다.\n",
            "질문\n제1조(목적) 이 규정은 휴학을 정한다.\n" + "이 조문의 뜻을 묻는 학생이 많아서 글을 남긴다.\n" * 30,
            "보고서\n"
            + "사업의 경과와 성과를 적는다.\n" * 60
            + "제1조(목적) 정한다.\n제2조(뜻) 말한다.\n제3조(때) 쓴다.\n",
            "보고서\n제1조(목적) 정한다.\n제2조(뜻) 말한다.\n제3조(때) 쓴다.\n"
            + "사업의 경과와 성과를 길게 적는다.\n" * 60,
        ],
    )
    def test_a_text_that_mentions_articles_is_no_regulation(self, text: str) -> None:
        assert split(document(text)) is None


class TestLongArticles:
    LONG = "".join(f"{mark} 위원회는 다음 일을 한다. " + "그 밖의 일도 살핀다. " * 12 + "\n" for mark in "①②③④⑤⑥⑦⑧⑨⑩")

    def test_pieces_begin_at_paragraphs_and_share_the_metadata(self) -> None:
        (found,) = regulations(f"회의규정\n제1조(목적) 정한다.\n제2조(일) {self.LONG}제3조(기타) 따른다.\n")
        pieces = [chunk for chunk in found.chunks if chunk.metadata["article"] == "제2조"]
        assert len(pieces) > 1
        assert [piece.metadata["piece"] for piece in pieces] == list(range(1, len(pieces) + 1))
        assert all(piece.text[0] in "①②③④⑤⑥⑦⑧⑨⑩" and len(piece.text) <= 800 for piece in pieces)
        assert {piece.metadata["article_title"] for piece in pieces} == {"일"}
        assert "piece" not in found.chunks[0].metadata

    def test_the_size_is_the_caller_s(self) -> None:
        text = f"회의규정\n제1조(목적) 정한다.\n제2조(일) {self.LONG}제3조(기타) 따른다.\n"
        (found,) = regulations(text, max_tokens=30)
        assert max(len(chunk.text) for chunk in found.chunks) <= 60


words = st.text(alphabet="가나다라마바 .①②1|<>()[]제조칙\n", min_size=1, max_size=60)
articles = st.lists(st.tuples(st.text(alphabet="가나다라마바", min_size=1, max_size=6), words), min_size=3, max_size=8)


@given(st.lists(articles, min_size=1, max_size=3), st.integers(min_value=4, max_value=400))
def test_spans_slice_back_in_order_without_overlap(book: list[list[tuple[str, str]]], max_tokens: int) -> None:
    text = ""
    for number, one in enumerate(book):
        text += f"제도{'가나다'[number]}규정\n"
        text += "".join(f"제{n}조({title}) {content}\n" for n, (title, content) in enumerate(one, start=1))
    for found in split(document(text), max_tokens=max_tokens) or ():
        assert found.document.text in text
        end = 0
        for ordinal, chunk in enumerate(found.chunks):
            assert chunk.ordinal == ordinal
            assert chunk.start >= end
            assert found.document.text[chunk.start : chunk.end] == chunk.text
            assert chunk.text == chunk.text.strip()
            assert 0 < len(chunk.text) <= max_tokens * 2
            end = chunk.end


sentences = st.lists(st.text(alphabet="가나다라마바 ②③", min_size=1, max_size=90), min_size=1, max_size=12)


@given(st.lists(sentences, min_size=3, max_size=6), st.integers(min_value=4, max_value=60))
def test_every_character_of_an_article_is_in_its_pieces(bodies: list[list[str]], max_tokens: int) -> None:
    contents = [f"① 가 {'. '.join(lines)}." for lines in bodies]
    text = "회의규정\n" + "".join(f"제{n}조(이름) {content}\n" for n, content in enumerate(contents, start=1))
    (one,) = regulations(text + "부칙\n바로 시행한다.\n", max_tokens=max_tokens)
    for number, content in enumerate(contents, start=1):
        pieces = [chunk.text for chunk in one.chunks if chunk.metadata["article"] == f"제{number}조"]
        assert "".join("".join(pieces).split()) == "".join(content.split())


def test_articles_of_a_pdf_have_their_pages() -> None:
    second, third = LEAVE.index("제3조(휴학기간)"), LEAVE.index("② 창업휴학은")
    (regulation,) = list(split(replace(document(LEAVE), page_starts=((0, 8), (second, 9), (third, 10)))) or ())
    pages = {chunk.metadata["article"]: chunk for chunk in of_kind(regulation.chunks, "article")}
    assert [pages[label].metadata["page"] for label in ("제1조", "제3조", "제3조의2")] == [8, 9, 10]
    broken = pages["제3조"]
    assert page_at(broken.metadata, broken.text.index("창업휴학")) == 10
    assert page_at(broken.metadata, broken.text.index("네 학기")) == 9


def test_pages_count_from_the_beginning_of_each_regulation_of_a_book() -> None:
    text = LEAVE + "\n" + LEAVE.replace("휴학규정", "복학규정")
    book = split(replace(document(text), page_starts=((0, 1), (len(LEAVE) // 2, 2), (text.index("복학규정"), 3))))
    first, last = list(book or ())
    assert [first.chunks[0].metadata["page"], last.chunks[0].metadata["page"]] == [1, 3]
    assert {chunk.metadata["page"] for chunk in last.chunks} == {3}


@pytest.mark.parametrize(
    ("row", "entries"),
    [
        ("가 규정 1-1-1", {"가 규정": "1-1-1"}),
        ("| 가 규정 1-1-1 | 마 규정 [폐지] 1-1-2 |", {"가 규정": "1-1-1", "마 규정": "1-1-2"}),
        ("가 규정 ..... 1-1-1 마 규정 1-2", {"가 규정": "1-1-1", "마 규정": "1-2"}),
        ("가 규정 1-1-1 외 3", {}),
        ("가 규정 1-1-1 | 마 규정 1-1-2 | 3", {}),
        ("\t가 규정 1-1-1", {}),
        ("가 규정1-1-1", {}),
        (" | | ", {}),
    ],
)
def test_a_row_of_the_contents_has_nothing_but_entries(row: str, entries: dict[str, str]) -> None:
    texts = (row, "나 규정 2-1-1", "다 규정 2-1-2", "라 규정 2-1-3")
    contents = read_contents([DocumentLine(0, len(text), text) for text in texts])
    assert contents.rows == frozenset(range(0 if entries else 1, len(texts)))
    assert {name: contents.code(name, 0) for name in ("가 규정", "마 규정") if contents.knows(name)} == entries
