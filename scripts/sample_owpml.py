"""The XML parts of a small HWPX file, by the names that Hangul gives them.

Lengths are in HWPUNIT, 1/7200 of an inch; heights of letters in 1/100 of a point. Layout caches (`linesegarray`) are
left out: a reader that lays out text makes its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes" ?>'
_HANCOM = "http://www.hancom.co.kr/hwpml"
_PREFIXES = {
    "ha": f"{_HANCOM}/2011/app",
    "hp": f"{_HANCOM}/2011/paragraph",
    "hp10": f"{_HANCOM}/2016/paragraph",
    "hs": f"{_HANCOM}/2011/section",
    "hc": f"{_HANCOM}/2011/core",
    "hh": f"{_HANCOM}/2011/head",
    "hhs": f"{_HANCOM}/2011/history",
    "hm": f"{_HANCOM}/2011/master-page",
    "hpf": "http://www.hancom.co.kr/schema/2011/hpf",
    "dc": "http://purl.org/dc/elements/1.1/",
    "opf": "http://www.idpf.org/2007/opf/",
    "ooxmlchart": f"{_HANCOM}/2016/ooxmlchart",
    "hwpunitchar": f"{_HANCOM}/2016/HwpUnitChar",
    "epub": "http://www.idpf.org/2007/ops",
    "config": "urn:oasis:names:tc:opendocument:xmlns:config:1.0",
}
NAMESPACES = "".join(f' xmlns:{prefix}="{name}"' for prefix, name in _PREFIXES.items())
"""Hangul declares all of them on every root, used or not, and some readers insist on it."""
_LANGUAGES = ("HANGUL", "LATIN", "HANJA", "JAPANESE", "OTHER", "SYMBOL", "USER")
_BY_LANGUAGE = ("hangul", "latin", "hanja", "japanese", "other", "symbol", "user")
_FONTS = ("함초롬돋움", "함초롬바탕")
TEXT_WIDTH = 42520
"""Width between the margins of an A4 page: 59528 - 2 * 8504."""
_ROW_HEIGHT = 1700


@dataclass(frozen=True, slots=True)
class Style:
    """A paragraph style; its position in `STYLES` is its id, and that of its paragraph and letter shapes."""

    name: str
    english: str = ""
    height: int = 1000
    bold: bool = False
    align: str = "JUSTIFY"
    indent: int = 0
    before: int = 0


STYLES = (
    Style("바탕글", "Normal"),
    Style("규정명", height=1600, bold=True, align="CENTER", before=2000),
    Style("장제목", height=1300, bold=True, align="CENTER", before=1200),
    Style("절제목", height=1100, bold=True, align="CENTER", before=800),
    Style("조문", before=400),
    Style("호", indent=1000),
    Style("부칙", height=1100, bold=True, align="CENTER", before=1200),
    Style("별표지표제", height=1100, bold=True, align="LEFT", before=1200),
    Style("도표내용", align="CENTER"),
    Style("차례", align="LEFT"),
)
STYLE_IDS = {style.name: number for number, style in enumerate(STYLES)}
BOLD = len(STYLES)
"""Id of the letter shape of an article's head: body size, bold."""


def header() -> str:
    """`Contents/header.xml`: fonts, borders, letter and paragraph shapes, styles."""
    letters = [_letter_shape(number, style.height, style.bold) for number, style in enumerate(STYLES)]
    letters.append(_letter_shape(BOLD, 1000, bold=True))
    paragraphs = [_paragraph_shape(number, style) for number, style in enumerate(STYLES)]
    styles = [
        f'<hh:style id="{number}" type="PARA" name={quoteattr(style.name)} engName="{style.english}" '
        f'paraPrIDRef="{number}" charPrIDRef="{number}" nextStyleIDRef="{number}" langID="1042" lockForm="0"/>'
        for number, style in enumerate(STYLES)
    ]
    return (
        f'{DECLARATION}<hh:head{NAMESPACES} version="1.5" secCnt="1">'
        '<hh:beginNum page="1" footnote="1" endnote="1" pic="1" tbl="1" equation="1"/><hh:refList>'
        + _list("fontfaces", [_fontface(language) for language in _LANGUAGES])
        + _list("borderFills", [_border(1, "NONE", "0.1 mm"), _border(2, "SOLID", "0.12 mm")])
        + _list("charProperties", letters)
        + _list("tabProperties", ['<hh:tabPr id="0" autoTabLeft="0" autoTabRight="0"/>', _contents_tab()])
        + _list("numberings", [_numbering()])
        + _list("paraProperties", paragraphs)
        + _list("styles", styles)
        + '</hh:refList><hh:compatibleDocument targetProgram="HWP201X"><hh:layoutCompatibility/>'
        '</hh:compatibleDocument><hh:docOption><hh:linkinfo path="" pageInherit="0" footnoteInherit="0"/>'
        '</hh:docOption><hh:trackchageConfig flags="56"/></hh:head>'
    )


def section(paragraphs: Sequence[str]) -> str:
    """`Contents/section0.xml` around the paragraphs made by `paragraph` and `table`."""
    first = (
        '<hp:p id="0" paraPrIDRef="0" styleIDRef="0" pageBreak="0" columnBreak="0" merged="0"><hp:run charPrIDRef="0">'
        + _page_layout()
        + '<hp:ctrl><hp:colPr id="" type="NEWSPAPER" layout="LEFT" colCount="1" sameSz="1" sameGap="0"/></hp:ctrl>'
        '</hp:run><hp:run charPrIDRef="0"><hp:t/></hp:run></hp:p>'
    )
    return f"{DECLARATION}<hs:sec{NAMESPACES}>{first}{''.join(paragraphs)}</hs:sec>"


def paragraph(text: str, style: str, *, head: str = "", new_page: bool = False) -> str:
    """One paragraph; `head` is set in bold before the text, a `\\t` becomes a tab with a dotted leader."""
    number = STYLE_IDS[style]
    runs = _run(head, BOLD) if head else ""
    runs += _run(f" {text}" if head and text else text, number) if text or not head else ""
    return _paragraph(runs, number, new_page=new_page)


def table(rows: Sequence[Sequence[str]], identifier: int) -> str:
    """A paragraph that holds a table with equal columns, its first row marked as header."""
    columns = len(rows[0])
    width = TEXT_WIDTH // columns
    body = "".join(
        f"<hp:tr>{''.join(_cell(text, row, column, width) for column, text in enumerate(cells))}</hp:tr>"
        for row, cells in enumerate(rows)
    )
    grid = (
        f'<hp:tbl id="{identifier}" zOrder="0" numberingType="TABLE" textWrap="TOP_AND_BOTTOM" textFlow="BOTH_SIDES" '
        'lock="0" dropcapstyle="None" pageBreak="CELL" repeatHeader="1" '
        f'rowCnt="{len(rows)}" colCnt="{columns}" cellSpacing="0" borderFillIDRef="2" noAdjust="0">'
        f'<hp:sz width="{width * columns}" widthRelTo="ABSOLUTE" height="{_ROW_HEIGHT * len(rows)}" '
        'heightRelTo="ABSOLUTE" protect="0"/><hp:pos treatAsChar="1" affectLSpacing="0" flowWithText="1" '
        'allowOverlap="0" holdAnchorAndSO="0" vertRelTo="PARA" horzRelTo="PARA" vertAlign="TOP" horzAlign="LEFT" '
        'vertOffset="0" horzOffset="0"/><hp:outMargin left="283" right="283" top="283" bottom="283"/>'
        f'<hp:inMargin left="510" right="510" top="141" bottom="141"/>{body}</hp:tbl>'
    )
    return _paragraph(f'<hp:run charPrIDRef="0">{grid}<hp:t/></hp:run>', 0)


def _cell(text: str, row: int, column: int, width: int) -> str:
    number = STYLE_IDS["도표내용"]
    return (
        f'<hp:tc name="" header="{int(row == 0)}" hasMargin="0" protect="0" editable="0" dirty="0" borderFillIDRef="2">'
        '<hp:subList id="" textDirection="HORIZONTAL" lineWrap="BREAK" vertAlign="CENTER" linkListIDRef="0" '
        'linkListNextIDRef="0" textWidth="0" textHeight="0" hasTextRef="0" hasNumRef="0">'
        f"{_paragraph(_run(text, BOLD if row == 0 else number), number)}</hp:subList>"
        f'<hp:cellAddr colAddr="{column}" rowAddr="{row}"/><hp:cellSpan colSpan="1" rowSpan="1"/>'
        f'<hp:cellSz width="{width}" height="{_ROW_HEIGHT}"/>'
        '<hp:cellMargin left="510" right="510" top="141" bottom="141"/></hp:tc>'
    )


def _paragraph(runs: str, style: int, *, new_page: bool = False) -> str:
    return (
        f'<hp:p id="2147483648" paraPrIDRef="{style}" styleIDRef="{style}" pageBreak="{int(new_page)}" '
        f'columnBreak="0" merged="0">{runs}</hp:p>'
    )


def _run(text: str, letters: int) -> str:
    tab = '<hp:tab width="4000" leader="3" type="2"/>'
    return f'<hp:run charPrIDRef="{letters}"><hp:t>{escape(text).replace(chr(9), tab)}</hp:t></hp:run>'


def _list(name: str, entries: Sequence[str]) -> str:
    return f'<hh:{name} itemCnt="{len(entries)}">{"".join(entries)}</hh:{name}>'


def _fontface(language: str) -> str:
    fonts = "".join(
        f'<hh:font id="{number}" face="{face}" type="TTF" isEmbedded="0"/>' for number, face in enumerate(_FONTS)
    )
    return f'<hh:fontface lang="{language}" fontCnt="{len(_FONTS)}">{fonts}</hh:fontface>'


def _border(number: int, line: str, width: str) -> str:
    sides = "".join(
        f'<hh:{side}Border type="{line}" width="{width}" color="#000000"/>'
        for side in ("left", "right", "top", "bottom")
    )
    return (
        f'<hh:borderFill id="{number}" threeD="0" shadow="0" centerLine="NONE" breakCellSeparateLine="0">'
        '<hh:slash type="NONE" Crooked="0" isCounter="0"/><hh:backSlash type="NONE" Crooked="0" isCounter="0"/>'
        f'{sides}<hh:diagonal type="SOLID" width="0.1 mm" color="#000000"/></hh:borderFill>'
    )


def _letter_shape(number: int, height: int, bold: bool) -> str:
    def each(name: str, value: int) -> str:
        values = " ".join(f'{language}="{value}"' for language in _BY_LANGUAGE)
        return f"<hh:{name} {values}/>"

    return (
        f'<hh:charPr id="{number}" height="{height}" textColor="#000000" shadeColor="none" useFontSpace="0" '
        'useKerning="0" symMark="NONE" borderFillIDRef="1">'
        + each("fontRef", 0 if bold else 1)
        + each("ratio", 100)
        + each("spacing", 0)
        + each("relSz", 100)
        + each("offset", 0)
        + ("<hh:bold/>" if bold else "")
        + '<hh:underline type="NONE" shape="SOLID" color="#000000"/><hh:strikeout shape="NONE" color="#000000"/>'
        '<hh:outline type="NONE"/><hh:shadow type="NONE" color="#B2B2B2" offsetX="10" offsetY="10"/></hh:charPr>'
    )


def _paragraph_shape(number: int, style: Style) -> str:
    margins = (("intent", 0), ("left", style.indent), ("right", 0), ("prev", style.before), ("next", 0))
    return (
        f'<hh:paraPr id="{number}" tabPrIDRef="{int(style.name == "차례")}" condense="0" fontLineHeight="0" '
        f'snapToGrid="1" suppressLineNumbers="0" checked="0"><hh:align horizontal="{style.align}" '
        'vertical="BASELINE"/><hh:heading type="NONE" idRef="0" level="0"/><hh:breakSetting breakLatinWord="KEEP_WORD" '
        'breakNonLatinWord="KEEP_WORD" widowOrphan="0" keepWithNext="0" keepLines="0" pageBreakBefore="0" '
        'lineWrap="BREAK"/><hh:autoSpacing eAsianEng="0" eAsianNum="0"/><hh:margin>'
        + "".join(f'<hc:{name} value="{value}" unit="HWPUNIT"/>' for name, value in margins)
        + '</hh:margin><hh:lineSpacing type="PERCENT" value="160" unit="HWPUNIT"/><hh:border borderFillIDRef="1" '
        'offsetLeft="0" offsetRight="0" offsetTop="0" offsetBottom="0" connect="0" ignoreMargin="0"/></hh:paraPr>'
    )


def _contents_tab() -> str:
    stop = f'<hh:tabItem pos="{TEXT_WIDTH}" type="RIGHT" leader="DOT"/>'
    return f'<hh:tabPr id="1" autoTabLeft="0" autoTabRight="0">{stop}</hh:tabPr>'


def _numbering() -> str:
    heads = "".join(
        f'<hh:paraHead start="1" level="{level}" align="LEFT" useInstWidth="1" autoIndent="1" widthAdjust="0" '
        'textOffsetType="PERCENT" textOffset="50" numFormat="DIGIT" charPrIDRef="4294967295" checkable="0"/>'
        for level in range(1, 11)
    )
    return f'<hh:numbering id="1" start="0">{heads}</hh:numbering>'


def _page_layout() -> str:
    return (
        '<hp:secPr id="" textDirection="HORIZONTAL" spaceColumns="1134" tabStop="8000" tabStopVal="4000" '
        'tabStopUnit="HWPUNIT" outlineShapeIDRef="1" memoShapeIDRef="0" textVerticalWidthHead="0" masterPageCnt="0">'
        '<hp:grid lineGrid="0" charGrid="0" wonggojiFormat="0"/>'
        '<hp:startNum pageStartsOn="BOTH" page="0" pic="0" tbl="0" equation="0"/>'
        '<hp:visibility hideFirstHeader="0" hideFirstFooter="0" hideFirstMasterPage="0" border="SHOW_ALL" '
        'fill="SHOW_ALL" hideFirstPageNum="0" hideFirstEmptyLine="0" showLineNumber="0"/>'
        '<hp:lineNumberShape restartType="0" countBy="0" distance="0" startNumber="0"/>'
        '<hp:pagePr landscape="WIDELY" width="59528" height="84188" gutterType="LEFT_ONLY"><hp:margin header="4252" '
        'footer="4252" gutter="0" left="8504" right="8504" top="5668" bottom="4252"/></hp:pagePr>'
        + "".join(_notes())
        + "".join(
            f'<hp:pageBorderFill type="{pages}" borderFillIDRef="1" textBorder="PAPER" headerInside="0" '
            'footerInside="0" fillArea="PAPER"><hp:offset left="1417" right="1417" top="1417" bottom="1417"/>'
            "</hp:pageBorderFill>"
            for pages in ("BOTH", "EVEN", "ODD")
        )
        + "</hp:secPr>"
    )


def _notes() -> Iterator[str]:
    for kind, place, line in (("foot", "EACH_COLUMN", -1), ("end", "END_OF_DOCUMENT", 0)):
        yield (
            f'<hp:{kind}NotePr><hp:autoNumFormat type="DIGIT" userChar="" prefixChar="" suffixChar=")" supscript="0"/>'
            f'<hp:noteLine length="{line}" type="SOLID" width="0.12 mm" color="#000000"/>'
            '<hp:noteSpacing betweenNotes="283" belowLine="567" aboveLine="850"/>'
            f'<hp:numbering type="CONTINUOUS" newNum="1"/><hp:placement place="{place}" beneathText="0"/>'
            f"</hp:{kind}NotePr>"
        )
