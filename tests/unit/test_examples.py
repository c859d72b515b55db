"""The samples are what their scripts make, are sound files of their formats, and hold the facts that demos ask for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest
from lxml import etree
from pypdf import PdfReader

from dtrag.adapters.parsers import hwpx, markdown
from dtrag.evaluation.judged_questions import letters_and_digits
from dtrag.regulations.korean.structure import split

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BOOK = EXAMPLES / "hanbit-university"
HANDBOOK = EXAMPLES / "tarrowby-handbook"
TEXTS = ROOT / "scripts" / "sample_handbook"
HEADINGS = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
CITED = r"제(\d+)조(?:의(\d+))?"
Sections = dict[str, str]


def run_script(name: str, output: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / name, "--output", output], check=True, capture_output=True)


def members(path: Path) -> list[tuple[str, int, tuple[int, ...], bytes]]:
    """Everything about an archive but the compressed bytes, which depend on the machine's zlib."""
    with zipfile.ZipFile(path) as archive:
        return [(e.filename, e.compress_type, e.date_time, archive.read(e)) for e in archive.infolist()]


def sections(text: str) -> Sections:
    """Heading to the text below it, up to the next heading."""
    parts = HEADINGS.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def regulations(file: str = "regulations.md") -> dict[str, Sections]:
    """Name of a regulation to its articles ("제12조의2" to text), read from the Markdown without the product's code."""
    book: dict[str, Sections] = {}
    for part in re.split(r"^# ", (BOOK / file).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, body = part.split("\n", 1)
        if name == "한빛대학교 규정집":
            continue
        articles = {}
        for heading, text in sections(body).items():
            if number := re.match(CITED, heading):
                articles[number.group()] = text.strip()
        book[name] = articles
    return book


def handbook_sections(name: str) -> Sections:
    if name.endswith(".html"):
        html = (HANDBOOK / name).read_text(encoding="utf-8").replace("&euro;", "€")
        return sections(re.sub(r"<h[1-3]>(.+?)</h[1-3]>", r"\n## \1\n", html))
    source = HANDBOOK / name if name.endswith(".md") else TEXTS / Path(name).with_suffix(".md").name
    return sections(source.read_text(encoding="utf-8"))


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def plain(text: str) -> str:
    return " ".join(text.split())


def test_the_hwpx_is_what_its_script_makes_of_the_markdown(tmp_path: Path) -> None:
    first, second = tmp_path / "first.hwpx", tmp_path / "second.hwpx"
    run_script("make_sample_hwpx.py", first)
    run_script("make_sample_hwpx.py", second)
    assert first.read_bytes() == second.read_bytes()
    assert members(first) == members(BOOK / "regulations.hwpx")


def test_the_pdf_and_the_docx_are_what_their_script_makes(tmp_path: Path) -> None:
    run_script("make_sample_handbook.py", tmp_path)
    pdf, word = "information-security.pdf", "equipment-and-remote-work.docx"
    assert (tmp_path / pdf).read_bytes() == (HANDBOOK / pdf).read_bytes()
    assert members(tmp_path / word) == members(HANDBOOK / word)


def test_the_samples_are_small() -> None:
    assert sum(path.stat().st_size for path in EXAMPLES.rglob("*") if path.is_file()) < 400_000


def test_the_book_is_a_book() -> None:
    book = regulations()
    alive = {
        name: [text for text in articles.values() if not text.startswith("삭제")] for name, articles in book.items()
    }
    assert len(alive) == 7
    assert sum(map(len, alive.values())) == 93
    assert all(len(articles) >= 9 for articles in alive.values())
    assert book["학칙"]["제8조"] == "삭제 <2022. 9. 1.>"
    assert all(text for articles in book.values() for text in articles.values())


def test_the_earlier_edition_differs_where_the_present_one_says_that_it_was_amended() -> None:
    present, earlier = regulations()["학칙"], regulations("regulations-2023.md")["학칙(1-1-1)"]
    assert present.keys() == earlier.keys()
    amended = {number for number, text in present.items() if "2024. 3. 1." in text}
    assert {number for number, text in present.items() if text != earlier[number]} == amended == {"제11조", "제12조"}
    assert "통산 4학기를 넘을 수 없다" in earlier["제12조"]
    assert "2024" not in (BOOK / "regulations-2023.md").read_text("utf-8")


def test_every_citation_in_the_book_leads_to_an_article_in_force() -> None:
    book = regulations()
    names = "|".join(book)
    inside = across = 0
    for name, articles in book.items():
        for number, text in articles.items():
            cited = name
            for mark in re.finditer(rf"「?({names})」? (?={CITED})|{CITED}|(?<=[다.])\s", text):
                if mark[0].isspace():
                    cited = name  # a sentence ends, and with it what "제N조" without a name refers to
                elif mark[1]:
                    cited = mark[1]
                else:
                    target = book[cited].get(mark[0])
                    assert target is not None, f"{name} {number} cites {cited} {mark[0]}"
                    assert not target.startswith("삭제"), f"{name} {number} cites the deleted {cited} {mark[0]}"
                    inside, across = inside + (cited == name), across + (cited != name)
    assert inside >= 15
    assert across >= 15


def test_the_hwpx_has_the_parts_that_readers_ask_for() -> None:
    with zipfile.ZipFile(BOOK / "regulations.hwpx") as archive:
        assert archive.testzip() is None
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.read("mimetype") == b"application/hwp+zip"
        names = set(archive.namelist())
        trees = {
            name: etree.fromstring(archive.read(name)) for name in names if name.endswith((".xml", ".hpf", ".rdf"))
        }
    assert set(trees) == {
        "version.xml",
        "settings.xml",
        "META-INF/container.xml",
        "META-INF/manifest.xml",
        "META-INF/container.rdf",
        "Contents/content.hpf",
        "Contents/header.xml",
        "Contents/section0.xml",
    }
    roots = {root.get("full-path") for root in trees["META-INF/container.xml"].iter("{*}rootfile")}
    parts = {item.get("href") for item in trees["Contents/content.hpf"].iter("{*}item")}
    assert "Contents/content.hpf" in roots
    assert "Contents/section0.xml" in parts
    assert roots | parts <= names


@pytest.mark.parametrize(
    ("attribute", "shape"),
    [("styleIDRef", "style"), ("paraPrIDRef", "paraPr"), ("charPrIDRef", "charPr"), ("borderFillIDRef", "borderFill")],
)
def test_every_shape_that_the_hwpx_refers_to_is_in_its_header(attribute: str, shape: str) -> None:
    with zipfile.ZipFile(BOOK / "regulations.hwpx") as archive:
        header = etree.fromstring(archive.read("Contents/header.xml"))
        section = etree.fromstring(archive.read("Contents/section0.xml"))
    known = {element.get("id") for element in header.iter(f"{{*}}{shape}")}
    used = {element.get(attribute) for element in section.iter() if element.get(attribute) is not None}
    assert used
    assert used <= known
    for group in header.iter():
        if count := group.get("itemCnt"):
            assert int(count) == len(group)


def test_the_appendix_of_the_hwpx_is_a_table() -> None:
    with zipfile.ZipFile(BOOK / "regulations.hwpx") as archive:
        section = etree.fromstring(archive.read("Contents/section0.xml"))
    tables = list(section.iter("{*}tbl"))
    rows = [
        ["".join(t.text or "" for t in cell.iter("{*}t")) for cell in row.iter("{*}tc")]
        for row in tables[0].iter("{*}tr")
    ]
    assert len(tables) == 1
    assert (tables[0].get("rowCnt"), tables[0].get("colCnt")) == (str(len(rows)), "3")
    assert ["성적장학금 우수", "학과 석차 상위 5% 이내", "등록금의 50%"] in rows


def articles_of(parser: Any, name: str) -> list[tuple[str, str, object, object, str]]:
    """Regulation, code, number, title and text (without white space) of every passage."""
    (document,) = parser.parse(BOOK / name, name)
    found = split(document)
    assert found is not None
    return [
        (
            passages.document.title,
            passages.document.part,
            chunk.metadata.get("article"),
            chunk.metadata.get("article_title"),
            re.sub(r"\s", "", chunk.text),
        )
        for passages in found
        for chunk in passages.chunks
    ]


def test_the_hwpx_and_the_markdown_give_the_same_articles() -> None:
    from_hwpx = articles_of(hwpx, "regulations.hwpx")
    assert from_hwpx == articles_of(markdown, "regulations.md")
    expected = {
        (name, number)
        for name, articles in regulations().items()
        for number, text in articles.items()
        if not text.startswith("삭제")
    }
    assert {(row[0], row[2]) for row in from_hwpx if str(row[2]).startswith("제")} == expected


def test_the_text_of_the_pdf_comes_back_with_its_words_and_lines() -> None:
    reader = PdfReader(HANDBOOK / "information-security.pdf", strict=True)
    pages = [page.extract_text() for page in reader.pages]
    text = plain(" ".join(pages))
    source = (TEXTS / "information-security.md").read_text(encoding="utf-8")
    paragraphs = [block for block in source.split("\n\n") if not block.startswith(("#", "|"))]
    assert len(pages) == 2
    assert reader.metadata is not None
    assert reader.metadata.title == "Information Security"
    assert [block for block in paragraphs if plain(block) not in text] == []
    lines = {line.strip() for page in pages for line in page.splitlines()}
    assert [heading for heading in HEADINGS.findall(source) if heading not in lines] == []


def test_the_docx_has_headings_lists_and_a_table() -> None:
    document = docx.Document(str(HANDBOOK / "equipment-and-remote-work.docx"))
    styles = [paragraph.style.name for paragraph in document.paragraphs]
    source = (TEXTS / "equipment-and-remote-work.md").read_text(encoding="utf-8")
    headings = [p.text for p in document.paragraphs if p.style.name.startswith("Heading")]
    assert headings == HEADINGS.findall(source)
    assert styles.count("List Number") == 5
    assert styles.count("List Bullet") == 4
    assert [cell.text for cell in document.tables[0].rows[2].cells] == [
        "Engineering",
        "16-inch, 64 GB",
        "two, 27-inch",
        "on request",
    ]


def test_every_question_has_its_answer_where_it_says() -> None:
    book = regulations()
    answerable = [question for question in questions() if question["expect"]]
    assert len(answerable) >= 12
    for question in answerable:
        expect = question["expect"]
        where = book[expect["document"]] if "article" in expect else handbook_sections(expect["document"])
        text = plain(where[expect.get("article") or expect["heading"]])
        assert expect["answer_contains"] in text, question["question"]


def test_the_words_that_answers_have_to_show_are_in_the_documents_and_not_in_the_question() -> None:
    texts = [text for articles in regulations().values() for text in articles.values()]
    for file in HANDBOOK.iterdir():
        texts += handbook_sections(file.name).values()
    documents = letters_and_digits("\n".join(texts))
    judged = [json.loads(line) for line in (EXAMPLES / "judged.jsonl").read_text("utf-8").splitlines()]
    for question in (*questions(), *judged):
        words = [text for group in question.get("must", []) for text in group]
        assert bool(words) is (question.get("answerable", True))
        for text in map(letters_and_digits, words):
            assert text in documents
            assert text not in letters_and_digits(question["question"])


def test_some_questions_have_no_answer_and_both_languages_are_asked() -> None:
    asked = questions()
    assert [question["language"] for question in asked if question["expect"] is None] == ["ko", "ko", "en"]
    for language in ("ko", "en"):
        assert sum(question["language"] == language and bool(question["expect"]) for question in asked) >= 6
    assert "휴학은 최대 몇 학기까지 할 수 있나요?" in {question["question"] for question in asked}


def test_the_readme_shows_questions_of_the_list_only() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| ([^|]+\?) \|", readme, re.MULTILINE)
    assert len(shown) == 12
    assert set(shown) <= {question["question"] for question in questions()}
