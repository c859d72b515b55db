"""Text recognition: ruled lines, words with their confidence, pictures and scanned pages, and what is missing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader, PdfWriter
from tests.pdf_writer import Placed, write_pdf
from tests.scans import drawn, needs_tesseract, saved
from tests.unit.adapters.parsers.conftest import Read

from dtrag.adapters.parsers import ocr, pdf
from dtrag.adapters.parsers.process import ParserProcess
from dtrag.core.documents import ParsedDocument
from dtrag.core.page_starts import page_ranges
from dtrag.core.recognised_text import ocr_metadata, uncertain_figures, words_within
from dtrag.errors import ParseFailed
from dtrag.regulations.korean import structure

ARTICLES = [
    "제1조(목적) 이 규정은 한빛대학교 교직원의 여비 지급에 관한 사항을 정함을 목적으로 한다.",
    "제2조(적용범위) 여비는 국내 출장과 국외 출장에 지급한다.",
    "제3조(일비) 국내 출장의 일비는 하루 30,000원을 넘을 수 없다.",
    "제4조(시행) 이 규정은 2024년 3월 1일부터 시행한다.",
]
TABLE = [["구분", "기간", "비율"], ["총장", "38일", "13%"], ["교수", "46일", "65%"], ["직원", "26일", "86%"]]
TEXT_PAGE = [Placed(72, 700 - 20 * row, "Leave is granted for at most fifteen days a year.") for row in range(4)]
OUTPUT = "\n".join(
    (
        "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext",
        "4\t1\t1\t1\t1\t0\t10\t20\t200\t30\t-1\t",
        "5\t1\t1\t1\t1\t1\t10\t20\t30\t30\t93.6\t국",
        "5\t1\t1\t1\t1\t2\t40\t20\t30\t30\t71.2\t내",
        "5\t1\t1\t1\t1\t3\t90\t20\t60\t30\t64.9\t30,000",
        "5\t1\t1\t1\t1\t4\t150\t20\t20\t30\t92.0\t원",
        "4\t1\t1\t1\t2\t0\t10\t60\t200\t30\t-1\t",
        "5\t1\t1\t1\t2\t1\t10\t60\t200\t30\t95.0\t ",
        "국내 30,000원",
        "",
    )
)


def test_ruled_lines_are_removed_and_letters_that_cross_them_stay() -> None:
    page = np.full((300, 400), 255, np.uint8)
    page[100:103, 20:380] = page[20:280, 200:203] = 30
    page[99, 20:380] = page[103, 20:380] = 160  # the blurred edges
    page[90:120, 60:66] = 30  # a stroke across the line
    page[200:230, 40:70] = 30  # a filled box
    cleaned = ocr.without_rules(page, 150)
    assert (cleaned[95:108, 80:190] == 255).all() and (cleaned[120:280, 190:215] == 255).all()
    assert (cleaned[90:120, 60:66] == 30).all() and (cleaned[200:230, 40:70] == 30).all()
    plain = np.full((50, 50), 255, np.uint8)
    assert ocr.without_rules(plain, 150) is plain


def test_a_line_that_is_not_quite_level_is_removed() -> None:
    page = np.full((200, 800), 255, np.uint8)
    for column in range(20, 780):
        top = 100 + round(column * 0.007)
        page[top : top + 3, column] = 20
    assert (ocr.without_rules(page, 150) < 128).sum() < 0.01 * (page < 128).sum()


def test_syllables_become_words_with_the_lowest_confidence() -> None:
    [line] = ocr._lines(OUTPUT)
    assert [(word.text, word.confidence) for word in line.words] == [("국내", 71), ("30,000원", 64)]
    assert (line.words[0].left, line.words[0].right, line.top, line.bottom) == (10, 70, 20, 50)


def test_a_passage_has_its_mean_confidence_and_its_uncertain_figures() -> None:
    text = "머리말\n\n하루 30,000원 | 25.000원 7일"
    words = ocr.ocr_words(text, [(0, 1), (5, 2)], {2: {"하루": 90, "30,000": 70, "원": 95, "25.000원": 92, "7일": 96}})
    assert [text[start:end] for start, end, _ in words] == ["하루", "30,000원", "25.000원", "7일"]
    assert [confidence for _, _, confidence in words] == [90, 70, 92, 96]
    assert ocr_metadata((), text, 0, 9) == {} == ocr_metadata(words, text, 0, 4)
    metadata = ocr_metadata(words, text, 5, len(text))
    assert metadata == {"ocr_confidence": 87, "ocr_uncertain": "3:7:70 13:7:92"}
    assert list(uncertain_figures(metadata, 0, 12)) == [(3, 10, 70)]
    assert list(uncertain_figures({}, 0, 12)) == []
    assert words_within(words, 5, 10) == ((0, 2, 90), (3, 10, 70))


def test_pages_are_listed_in_ranges() -> None:
    assert page_ranges([1, 2, 3, 7]) == "1-3, 7"
    assert page_ranges(range(1, 60, 2)).endswith("19, …")


def scanned_page() -> bytes:
    return saved([Image.new("L", (600, 800), 200)], "PDF", 72)


def joined(*files: bytes) -> bytes:
    writer, buffer = PdfWriter(), io.BytesIO()
    for file in files:
        writer.append(PdfReader(io.BytesIO(file)))
    writer.write(buffer)
    return buffer.getvalue()


@pytest.fixture
def without_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "installed_languages", lambda: ())


@pytest.mark.usefixtures("without_tesseract")
def test_what_only_recognition_reads_fails_with_what_to_install(read: Read, tmp_path: Path) -> None:
    for name, data in (("a.png", saved([Image.new("L", (9, 9))], "PNG")), ("a.pdf", scanned_page())):
        with pytest.raises(ParseFailed, match=r"no text on page 1, .*tesseract-ocr tesseract-ocr-kor.*dtrag\[ocr\]"):
            read(name, data)
    (tmp_path / "b.pdf").write_bytes(joined(write_pdf([TEXT_PAGE]), scanned_page(), scanned_page()))
    documents: list[ParsedDocument] = []
    with pytest.raises(ParseFailed, match="no text on page 2-3, "):
        documents.extend(pdf.parse(tmp_path / "b.pdf", "b.pdf"))
    [document] = documents
    assert document.metadata == {"pages": 3, "unread_pages": "2-3"} and "fifteen days" in document.text


def test_recognition_that_is_off_leaves_scanned_pages_out(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "_languages", "off")
    with pytest.raises(ParseFailed, match="OCR is off"):
        read("a.jpg", saved([Image.new("L", (9, 9))], "JPEG"))
    [document] = read("b.pdf", joined(write_pdf([TEXT_PAGE]), scanned_page()))
    assert document.metadata["unread_pages"] == "2"
    monkeypatch.undo()
    assert not ParserProcess(ocr="off").knows("a.png")


@pytest.mark.usefixtures("without_tesseract")
def test_pictures_of_folders_are_skipped_where_they_cannot_be_read() -> None:
    assert not ParserProcess().knows("a.png")
    assert ParserProcess().knows("a.pdf")


def test_a_page_with_letters_is_never_recognised(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "recognise", lambda *_: pytest.fail("recognised"))
    [document] = read("a.pdf", write_pdf([TEXT_PAGE, []]))
    assert document.metadata == {"pages": 2} and document.ocr_words == ()


def like(text: str, expected: Sequence[str]) -> float:
    return SequenceMatcher(None, "".join(text.split()), "".join("".join(expected).split()), autojunk=False).ratio()


@needs_tesseract
def test_a_ruled_table_is_read_in_rows_and_vanishes_with_its_lines(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved([drawn(ARTICLES[1:2], TABLE)], "PNG")
    [document] = read("a.png", data)
    assert [document.text[block.start : block.end] for block in document.blocks if block.kind == "table"] == [
        "\n".join(" | ".join(row) for row in TABLE)
    ]
    monkeypatch.setattr(ocr, "without_rules", lambda grey, _: grey)
    [with_lines] = read("a.png", data)
    cells = [cell for row in TABLE[1:] for cell in row]
    assert sum(cell in with_lines.text.split() for cell in cells) < len(cells) / 2


@needs_tesseract
def test_pages_of_a_scan_in_korean_and_english(read: Read) -> None:
    english = ["The travel allowance of staff is 30,000 won per day,", "and claims are filed within 14 days."]
    for name, kind in (("a.tiff", "TIFF"), ("a.pdf", "PDF")):
        [document] = read(name, saved([drawn(ARTICLES), drawn(english)], kind))
        assert [page for _, page in document.page_starts] == [1, 2]
        assert document.metadata["ocr_pages"] == "1-2" and document.metadata["ocr_languages"] == "kor+eng"
        assert like(document.text, [*ARTICLES, *english]) > 0.95
        assert all(document.text[start:end].strip() for start, end, _ in document.ocr_words)


@needs_tesseract
async def test_scanned_pages_of_a_pdf_in_the_parser_process(tmp_path: Path) -> None:
    regulation = saved([drawn(["여비규정", *ARTICLES])], "PDF")
    (tmp_path / "a.pdf").write_bytes(regulation)
    (tmp_path / "b.pdf").write_bytes(joined(write_pdf([TEXT_PAGE]), regulation))
    parser = ParserProcess()
    try:
        [scanned] = [document async for document in parser.parse(tmp_path / "a.pdf", "여비규정.pdf")]
        pid = parser.pid
        [mixed] = [document async for document in parser.parse(tmp_path / "b.pdf", "b.pdf")]
        assert parser.pid == pid is not None, "the process is used again"
    finally:
        await parser.close()
    [passages] = structure.split(scanned) or []
    articles = [chunk for chunk in passages.chunks if chunk.metadata["article"]]
    assert [chunk.metadata["article"] for chunk in articles] == ["제1조", "제2조", "제3조", "제4조"]
    for chunk, article in zip(articles, ARTICLES, strict=True):
        assert like(chunk.text, [article.partition(")")[2]]) > 0.95
        assert int(str(chunk.metadata["ocr_confidence"])) > 70 and chunk.metadata["page"] == 1
    assert mixed.metadata["ocr_pages"] == "2" and mixed.page_starts[1][1] == 2
    assert all(start >= mixed.page_starts[1][0] for start, _, _ in mixed.ocr_words)
