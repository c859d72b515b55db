"""Markdown, HTML and plain text: what a reader sees, in blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtrag.adapters.parsers.markdown import split_front_matter
from dtrag.core.documents import ParsedDocument
from dtrag.errors import ParseFailed

Read = Callable[[str, bytes], list[ParsedDocument]]


def shape(document: ParsedDocument) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, document.text[block.start : block.end]) for block in document.blocks]


MARKDOWN = """---
title: "Handbook"
---
# Leave *and* absence

See [the rules](https://example.org/x) and ![a chart](c.png), use `code`
in one line.\\
New line.<br>Third.

Setext
------

- first
- second
  1. inner
  2. more

     paragraph
- last

| Grade | Days |
|-------|-----:|
| A     | **20** |

```python
if x:
    y()
```

> quoted ~~text~~

<div>block <b>markup</b><script>no()</script></div>
"""


def test_markdown_blocks_are_readable_text(read: Read) -> None:
    [document] = read("book.md", MARKDOWN.encode())
    assert document.title == "Handbook"
    assert shape(document) == [
        ("heading", 1, "Leave and absence"),
        ("paragraph", 0, "See the rules and a chart, use code in one line.\nNew line.\nThird."),
        ("heading", 2, "Setext"),
        ("list", 0, "- first\n- second\n  1. inner\n  2. more\n    paragraph\n- last"),
        ("table", 0, "Grade | Days\nA | 20"),
        ("code", 0, "if x:\n    y()"),
        ("paragraph", 0, "quoted text"),
        ("paragraph", 0, "block markup"),
    ]


def test_markdown_lists_hold_code_tables_and_markup(read: Read) -> None:
    source = "1. step\n\n   ```\n   run\n   ```\n2. table\n\n   | a | b |\n   |---|---|\n   | 1 | 2 |\n"
    source += "3. x\n\n   <p>raw</p>\n"
    [document] = read("a.markdown", source.encode())
    assert document.text == "1. step\n  run\n2. table\n  a | b\n  1 | 2\n3. x\n  raw"
    assert [block.kind for block in document.blocks] == ["list"]


def test_markdown_titles(read: Read) -> None:
    assert read("a.md", b"text\n\n## First heading\n")[0].title == "First heading"
    assert read("only text.md", b"text")[0].title == "only text"
    assert split_front_matter("---\nno colon here\n---\nx") == ("---\nno colon here\n---\nx", None)
    assert split_front_matter("---\nauthor: me\n---\nx") == ("x", None)


@pytest.mark.parametrize("source", [b"> " * 150 + b"deep", b"---\ntitle: only\n---\n", b"![](x.png)"])
def test_markdown_without_text_or_too_deep(source: bytes, read: Read) -> None:
    with pytest.raises(ParseFailed, match=r"no text|nested"):
        read("a.md", source)


HTML = """<!doctype html><html><head><title>Staff &amp; rules</title><style>p {color: red}</style></head><body>
<nav>menu</nav><h2>Leave</h2>loose text
<p>A <b>bold</b> word,<br>a new
line <img src="x" alt="(chart)"></p>
<div style="Display : none">hidden one</div><p hidden>hidden two</p><p>shown<span style="font-size: 0px">x</span>.</p>
<p style="font-size:0.9em">small</p>
<ul><li>one<ul><li>sub</li></ul></li><li><p>two</p><p>more</p></li></ul><ol start="3"><li>three</li></ol>
<table><caption>Days</caption><tr><th>Grade</th><th>Days</th></tr>
<tr><td>A</td><td><p>20</p><table><tr><td>inner</td></tr></table></td></tr></table>
<pre>if x:
    y()</pre>
<button>Send</button><script>alert(1)</script><!-- comment --></body></html>"""


def test_html_gives_the_visible_text(read: Read) -> None:
    [document] = read("page.html", HTML.encode())
    assert document.title == "Staff & rules"
    assert document.metadata == {"hidden_elements": 3}
    assert shape(document) == [
        ("heading", 2, "Leave"),
        ("paragraph", 0, "loose text"),
        ("paragraph", 0, "A bold word,\na new line (chart)"),
        ("paragraph", 0, "shown."),
        ("paragraph", 0, "small"),
        ("list", 0, "- one\n  - sub\n- two\n  more"),
        ("list", 0, "3. three"),
        ("table", 0, "Days\nGrade | Days\nA | 20 inner"),
        ("code", 0, "if x:\n    y()"),
    ]


def test_html_in_its_declared_encoding(read: Read) -> None:
    page = '<html><head><meta charset="euc-kr"><title>학칙</title></head><body><p>제1조</p></body></html>'
    [document] = read("a.htm", page.encode("euc-kr"))
    assert (document.title, document.text) == ("학칙", "제1조")


def test_xhtml_with_an_xml_declaration(read: Read) -> None:
    page = '<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><body><h1>H</h1></body></html>'
    assert read("a.xhtml", page.encode())[0].title == "H"


@pytest.mark.parametrize("page", [b"<!-- only this -->", b"   ", b"<p></p>", b"<script>x</script>"])
def test_html_without_text(page: bytes, read: Read) -> None:
    with pytest.raises(ParseFailed, match="no text"):
        read("a.html", page)


def test_html_text_beyond_ten_megabytes_is_not_lost(read: Read) -> None:
    [document] = read("a.html", b"<p>" + b"word " * 2_200_000 + b"</p><p>end</p>")
    assert document.text.endswith("end")
    assert len(document.text) > 10_900_000


def test_plain_text_has_paragraphs(read: Read) -> None:
    [document] = read("memo.txt", "# not a heading\r\nsecond line\r\n \r\n\r\n세 번째\x0c끝\r\n".encode())
    assert document.title == "memo"
    assert shape(document) == [("paragraph", 0, "# not a heading\nsecond line"), ("paragraph", 0, "세 번째\n끝")]


def test_tag_characters_are_reported(read: Read) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    for name in ("a.txt", "a.md", "a.html"):
        [document] = read(name, f"seen{hidden} text".encode())
        assert document.text == "seen text"
        assert document.metadata["stripped_tag_characters"] == 4
    with pytest.raises(ParseFailed, match="no text"):
        read("a.txt", hidden.encode())
