"""Files of a given size that cost a parser, the cutting into passages or the index as much as their kind can.

`GROWING` holds, by a name, the name of a file and what makes its bytes from a number of repetitions.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping

import docx

from tests.pdf_writer import Placed, write_pdf

Make = Callable[[int], bytes]
_SECTION = (
    '<?xml version="1.0" encoding="UTF-8"?><hs:sec xmlns:hs="http://www.hancom.co.kr/hwpml/2011/section" '
    'xmlns:hp="http://www.hancom.co.kr/hwpml/2011/paragraph">{}</hs:sec>'
)
_HEADER = (
    '<?xml version="1.0" encoding="UTF-8"?><hh:head xmlns:hh="http://www.hancom.co.kr/hwpml/2011/head"><hh:refList>'
    '<hh:styles><hh:style id="1" name="개요 1"/></hh:styles></hh:refList></hh:head>'
)
_DOCUMENT = (
    '<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/'
    'main"><w:body>{}</w:body></w:document>'
)


def _text(make: Callable[[int], str]) -> Make:
    return lambda count: make(count).encode()


def _hwpx(sections: list[str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/hwp+zip")
        archive.writestr("Contents/header.xml", _HEADER)
        for number, section in enumerate(sections):
            archive.writestr(f"Contents/section{number}.xml", _SECTION.format(section))
    return buffer.getvalue()


def _word(body: str) -> bytes:
    source, target = io.BytesIO(), io.BytesIO()
    docx.Document().save(source)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            new.writestr(entry, _DOCUMENT.format(body) if entry == "word/document.xml" else old.read(entry))
    return target.getvalue()


def _paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def _han(text: str, style: int = 0) -> str:
    return f'<hp:p styleIDRef="{style}"><hp:run><hp:t>{text}</hp:t></hp:run></hp:p>'


def _lines(row: Callable[[int], object]) -> Make:
    return lambda count: "".join(json.dumps(row(number)) + "\n" for number in range(count)).encode()


def _nested_table(depth: int) -> str:
    inner = _paragraph("a")
    for _ in range(depth):
        inner = f"<w:tbl><w:tr><w:tc>{inner}<w:p/></w:tc></w:tr></w:tbl>"
    return inner


def _pages(count: int, each: Callable[[int], list[Placed]]) -> bytes:
    return write_pdf([each(number) for number in range(count)])


_CELL = f"<w:tc>{_paragraph('a')}</w:tc>"
_NOTE = f"<hp:ctrl><hp:footNote><hp:subList>{_han('가')}</hp:subList></hp:footNote></hp:ctrl>"
_RULES = "학칙\n\n제1조(가) 나\n\n제2조(다) 라\n\n"

GROWING: Mapping[str, tuple[str, Make]] = {
    # Markdown
    "headings without text": ("a.md", _text(lambda n: "# a\n" * n)),
    "headings with a word": ("a.md", _text(lambda n: "# a\n\nb\n\n" * n)),
    "headings of all levels": ("a.md", _text(lambda n: "".join(f"{'#' * (k % 6 + 1)} a\n" for k in range(n)))),
    "one long heading": ("a.md", _text(lambda n: f"# {'word ' * n}\n\n" + f"{'text ' * 300}\n\n" * (n // 100))),
    "paragraphs": ("a.md", _text(lambda n: "a\n\n" * n)),
    "links": ("a.md", _text(lambda n: "[" * n)),
    "closed links": ("a.md", _text(lambda n: "[a](" * n)),
    "emphasis": ("a.md", _text(lambda n: "*a **b " * n)),
    "back quotes": ("a.md", _text(lambda n: "".join("`" * (k * 37 % 300 + 1) + "a" for k in range(n // 50)))),
    "definitions": ("a.md", _text(lambda n: "".join(f"[{k}]: /u\n" for k in range(n)) + "[1]" * n)),
    "HTML blocks": ("a.md", _text(lambda n: "<div>\na\n</div>\n\n" * n)),
    "open comments": ("a.md", _text(lambda n: "a <!-- " * n)),
    "items": ("a.md", _text(lambda n: "- a\n" * n)),
    "items in items": ("a.md", _text(lambda n: ("- " * 45 + "a\n") * (n // 20))),
    "table rows": ("a.md", _text(lambda n: "|a|b|\n|-|-|\n" + "|c|d|\n" * n)),
    "missing cells": ("a.md", _text(lambda n: "|a" * (n // 50) + "|\n" + "|-" * (n // 50) + "|\n" + "|b|\n" * n)),
    # Text and regulations
    "short lines": ("a.txt", _text(lambda n: "a\n\n" * n)),
    "one word": ("a.txt", _text(lambda n: "a" * n * 4)),
    "first articles": ("a.txt", _text(lambda n: "제1조\n" * n)),
    "first articles with titles": ("a.txt", _text(lambda n: "제1조(목적) 가\n" * n)),
    "articles": ("a.md", _text(lambda n: "# 학칙\n\n" + "".join(f"## 제{k % 9000}조(나)\n\n가\n\n" for k in range(n)))),
    "regulations": (
        "a.md",
        _text(lambda n: "".join(f"# 제{k}규정\n\n제1조(목적) 가\n\n제2조(나) 다\n\n" for k in range(n // 4))),
    ),
    "appendices": ("a.txt", _text(lambda n: _RULES + "[별표 1]\n\n가\n\n" * n)),
    "one long label": (
        "a.txt",
        _text(lambda n: _RULES + f"[별표 1{'-1' * n}]\n\n" + f"{'가나다 ' * 250}\n\n" * (n // 100)),
    ),
    "paragraph marks": ("a.txt", _text(lambda n: _RULES + "①" * n)),
    "addenda": ("a.txt", _text(lambda n: _RULES + "부칙\n제1조의 개정규정은 2024년 1월 1일부터 시행한다.\n" * n)),
    "contents": (
        "a.txt",
        _text(lambda n: "".join(f"제{k}규정 ..... 1-1-{k % 9000}\n" for k in range(n)) + "제1조(가) 나\n" * n),
    ),
    # HTML
    "HTML headings": ("a.html", _text(lambda n: "<h1>a</h1>" * n)),
    "one long HTML heading": (
        "a.html",
        _text(lambda n: f"<h1>{'word ' * n}</h1>" + f"<p>{'text ' * 300}</p>" * (n // 100)),
    ),
    "nested divisions": ("a.html", _text(lambda n: ("<div>" * 200 + "a" + "</div>" * 200) * (n // 200))),
    "unclosed tags": ("a.html", _text(lambda n: "<p><b>a" * n)),
    "nested lists": ("a.html", _text(lambda n: "<ul>" * 240 + "<li>a" * n)),
    "lists of long items": ("a.html", _text(lambda n: "<ul>" * 240 + "<li>" + "a<br>" * n)),
    "spans": ("a.html", _text(lambda n: "<table>" + f"<tr>{'<td rowspan=999>a' * 50}</tr><tr><td>b" * (n // 50))),
    "wide spans": (
        "a.html",
        _text(lambda n: "<table><tr><td rowspan=999 colspan=1000>a<td rowspan=999>b" + "<tr><td>c" * n),
    ),
    "nested tables": ("a.html", _text(lambda n: "<table><tr><td>" * 50 + "a" + "<table><tr><td>a</table>" * n)),
    "attributes": ("a.html", _text(lambda n: "<p " + " ".join(f"a{k}=1" for k in range(n)) + ">a")),
    # Tables and records
    "rows": ("a.csv", _text(lambda n: "name,value\n" + "a,1\n" * n)),
    "one long column name": ("a.csv", _text(lambda n: f"{'name' * n},b\n" + "a,1\n" * n)),
    "long column names": (
        "a.csv",
        _text(
            lambda n: ",".join(f"{'n' * (n // 20)}{k}" for k in range(100)) + "\n" + f"{'1,' * 99}1\n" * (n // 100)
        ),
    ),
    "quotes": ("a.csv", _text(lambda n: "a,b\n" + '"' * n * 3)),
    "records": ("a.jsonl", _lines(lambda k: {"text": "a"})),
    "categories": ("a.jsonl", _lines(lambda k: {"text": "a", "category_path": ["c", str(k)]})),
    "fields": ("a.jsonl", lambda n: json.dumps({"text": "a " * n, "metadata": {str(k): k for k in range(n)}}).encode()),
    "one long identifier": ("a.jsonl", lambda n: json.dumps({"id": "i" * n * 4, "text": "a"}).encode()),
    "one long category": ("a.jsonl", lambda n: json.dumps({"category_path": ["c" * n * 4], "text": "a"}).encode()),
    # DOCX
    "Word headings": ("a.docx", lambda n: _word(_paragraph("a", "Heading1") * n)),
    "Word headings with a word": ("a.docx", lambda n: _word((_paragraph("a", "Heading1") + _paragraph("b")) * n)),
    "one long Word heading": (
        "a.docx",
        lambda n: _word(_paragraph("word " * n, "Heading1") + _paragraph("text " * 300) * (n // 100)),
    ),
    "Word runs": ("a.docx", lambda n: _word("<w:p>" + "<w:r><w:t>a</w:t></w:r>" * n + "</w:p>")),
    "Word tables": ("a.docx", lambda n: _word("<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>" * n + _paragraph("a"))),
    "nested Word tables": ("a.docx", lambda n: _word(_nested_table(60) * (n // 200))),
    "cells of a Word row": ("a.docx", lambda n: _word(f"<w:tbl><w:tr>{_CELL * n}</w:tr></w:tbl>")),
    # HWPX
    "HWPX headings": ("a.hwpx", lambda n: _hwpx([_han("가", 1) * n])),
    "HWPX headings with a word": ("a.hwpx", lambda n: _hwpx([(_han("가", 1) + _han("나")) * n])),
    "HWPX sections": ("a.hwpx", lambda n: _hwpx([_han("가")] * (n // 10))),
    "HWPX paragraphs": ("a.hwpx", lambda n: _hwpx([_han("가") * n])),
    "HWPX notes": ("a.hwpx", lambda n: _hwpx([f"<hp:p><hp:run>{_NOTE * n}</hp:run></hp:p>"])),
    # PDF
    "PDF pages": ("a.pdf", lambda n: _pages(n // 100, lambda k: [Placed(72, 720, f"{chr(97 + k % 26) * 9} page")])),
    "texts of a PDF page": (
        "a.pdf",
        lambda n: _pages(1, lambda _: [Placed(10 + k * 7 % 500, 800 - k // 70 % 700, "a") for k in range(n // 4)]),
    ),
    "PDF headings": (
        "a.pdf",
        lambda n: _pages(n // 100, lambda k: [Placed(72, 800 - 14 * i, "a", 20 if i % 2 else 10) for i in range(50)]),
    ),
    "a grid on a PDF page": (
        "a.pdf",
        lambda n: _pages(1, lambda _: [Placed(20 + 15 * (k % 35), 800 - 8 * (k // 35), "1") for k in range(n // 10)]),
    ),
}  # fmt: skip
