"""Makes `examples/hanbit-university/regulations.hwpx` from `regulations.md` beside it.

The result is the same byte for byte whenever it is made with the same zlib. Run: python scripts/make_sample_hwpx.py
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from sample_archive import write_archive
from sample_markup import Element, Heading, Item, Table, read_markup
from sample_owpml import DECLARATION, NAMESPACES, header, paragraph, section, table

SAMPLE = Path(__file__).resolve().parents[1] / "examples" / "hanbit-university"
MIMETYPE = "application/hwp+zip"
WRITTEN = "2024-09-01T00:00:00Z"
"""Date of the invented book's last amendment, for the metadata."""
_ARTICLE = re.compile(r"제\d+조(?:의\d+)?(?:\([^)]*\))?")
_HEADING_STYLES = (("제", "장", "장제목"), ("제", "절", "절제목"), ("부칙", "", "부칙"), ("[별표", "", "별표지표제"))


def paragraphs(elements: Iterable[Element]) -> Iterator[str]:
    """The book as OWPML paragraphs: contents with codes, then each regulation on a new page."""
    pending = ""
    identifiers = count(1)
    seen_table = False
    for element in elements:
        if isinstance(element, Heading) and element.level == 3 and _ARTICLE.match(element.text):
            if pending:
                yield paragraph("", "조문", head=pending)
            pending = element.text
            continue
        if isinstance(element, Table):
            # The first table of the book is its contents, which a printed book sets with dotted leaders.
            if seen_table:
                yield table(element.rows, next(identifiers))
            else:
                yield from (paragraph("\t".join(row), "차례") for row in element.rows[1:])
            seen_table = True
        elif isinstance(element, Heading):
            yield paragraph(element.text, _heading_style(element), new_page=element.level == 1 and seen_table)
        elif pending:
            yield paragraph(element.text, "조문", head=pending)
        else:
            yield paragraph(element.text, "호" if isinstance(element, Item) else "바탕글")
        pending = ""
    if pending:
        yield paragraph("", "조문", head=pending)


def _heading_style(heading: Heading) -> str:
    if heading.level == 1:
        return "규정명"
    for start, unit, style in _HEADING_STYLES:
        if heading.text.startswith(start) and unit in heading.text.split()[0]:
            return style
    raise ValueError(f"no style for the heading {heading.text!r}")


def package(title: str) -> str:
    """`Contents/content.hpf`: metadata, parts, reading order."""
    metas = "".join(
        f'<opf:meta name="{name}" content="text">{value}</opf:meta>'
        for name, value in (("creator", "dtrag"), ("CreatedDate", WRITTEN), ("ModifiedDate", WRITTEN))
    )
    parts = (("header", "Contents/header.xml"), ("section0", "Contents/section0.xml"), ("settings", "settings.xml"))
    items = "".join(f'<opf:item id="{name}" href="{path}" media-type="application/xml"/>' for name, path in parts)
    return (
        f'{DECLARATION}<opf:package{NAMESPACES} version="" unique-identifier="" id="">'
        f"<opf:metadata><opf:title>{title}</opf:title><opf:language>ko</opf:language>{metas}</opf:metadata>"
        f'<opf:manifest>{items}</opf:manifest><opf:spine><opf:itemref idref="header" linear="yes"/>'
        '<opf:itemref idref="section0" linear="yes"/></opf:spine></opf:package>'
    )


def entries(source: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the archive's parts, in the order that OCF asks for."""
    elements = list(read_markup(source))
    first = elements[0]
    if not isinstance(first, Heading):
        raise ValueError("the book begins with its title: # ...")
    names = [element.text for element in elements if isinstance(element, Heading) and element.level == 1]
    texts = {
        "mimetype": MIMETYPE,
        "version.xml": DECLARATION
        + '<hv:HCFVersion xmlns:hv="http://www.hancom.co.kr/hwpml/2011/version" tagetApplication="WORDPROCESSOR" '
        'major="5" minor="1" micro="1" buildNumber="0" os="10" xmlVersion="1.5" application="dtrag sample" '
        'appVersion="1.0"/>',
        "Contents/header.xml": header(),
        "Contents/section0.xml": section(list(paragraphs(elements))),
        "Preview/PrvText.txt": "\r\n".join(names),
        "settings.xml": DECLARATION + '<ha:HWPApplicationSetting xmlns:ha="http://www.hancom.co.kr/hwpml/2011/app">'
        '<ha:CaretPosition listIDRef="0" paraIDRef="0" pos="0"/></ha:HWPApplicationSetting>',
        "META-INF/container.rdf": _relations(),
        "Contents/content.hpf": package(first.text),
        "META-INF/container.xml": DECLARATION
        + '<ocf:container xmlns:ocf="urn:oasis:names:tc:opendocument:xmlns:container"><ocf:rootfiles>'
        '<ocf:rootfile full-path="Contents/content.hpf" media-type="application/hwpml-package+xml"/>'
        '<ocf:rootfile full-path="Preview/PrvText.txt" media-type="text/plain"/>'
        '<ocf:rootfile full-path="META-INF/container.rdf" media-type="application/rdf+xml"/>'
        "</ocf:rootfiles></ocf:container>",
        "META-INF/manifest.xml": DECLARATION
        + '<odf:manifest xmlns:odf="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
    }
    yield from ((name, text.encode()) for name, text in texts.items())


def _relations() -> str:
    kinds = "http://www.hancom.co.kr/hwpml/2016/meta/pkg#"
    rows = "".join(
        f'<rdf:Description rdf:about=""><pkg:hasPart rdf:resource="{part}"/></rdf:Description>'
        f'<rdf:Description rdf:about="{part}"><rdf:type rdf:resource="{kinds}{kind}"/></rdf:Description>'
        for part, kind in (("Contents/header.xml", "HeaderFile"), ("Contents/section0.xml", "SectionFile"))
    )
    return (
        f'{DECLARATION}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:pkg="{kinds}">{rows}'
        f'<rdf:Description rdf:about=""><rdf:type rdf:resource="{kinds}Document"/></rdf:Description></rdf:RDF>'
    )


def main() -> None:
    """Writes the file, by default in its place in `examples/`."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--output", type=Path, default=SAMPLE / "regulations.hwpx")
    output: Path = options.parse_args().output
    source = (SAMPLE / "regulations.md").read_text(encoding="utf-8")
    write_archive(output, entries(source), stored=frozenset({"mimetype", "version.xml"}))
    print(f"{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
