"""Answers and passages as text and as HTML for notebooks: escaped, without scripts, links and remote resources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Half-transparent colours on the notebook's own ones are readable on dark and on light.
_MARK = '<mark style="background:rgba(255,190,0,.35);color:inherit">'
_QUOTE = '<div style="white-space:pre-wrap;border-left:3px solid rgba(128,128,128,.5);padding-left:.7em">'


class Quoted(NamedTuple):
    """A numbered source: its label, address and quotation, and the spans of the quotation to mark."""

    number: int
    label: str
    address: str
    quote: str
    marked: Sequence[tuple[int, int]]


def numbered_text(text: str, sources: Iterable[Quoted]) -> str:
    """The text, then a line for each source."""
    return "\n".join([text, *(f"\n[{source.number}] {source.label}\n    {source.address}" for source in sources)])


def notebook_html(text: str, marked: Sequence[tuple[int, int]], sources: Iterable[Quoted], footer: str) -> str:
    """The text with its spans marked, its sources with their quotations, and a last line."""
    items = "".join(
        f"<p><b>[{source.number:d}] {_escaped(source.label)}</b> <small>{_escaped(source.address)}</small></p>"
        f"{_QUOTE}{_with_marks(source.quote, source.marked)}</div>"
        for source in sources
    )
    shown = f'<p style="white-space:pre-wrap">{_with_marks(text, marked)}</p>' if text else ""
    return f'<div style="max-width:50em;line-height:1.5">{shown}{items}<p><small>{_escaped(footer)}</small></p></div>'


def _with_marks(text: str, marked: Sequence[tuple[int, int]]) -> str:
    """The text in HTML; what spans have outside the text or in common with earlier ones is left out."""
    parts, position = [], 0
    for start, end in sorted(marked):
        first, last = max(start, position), min(end, len(text))
        if first < last:
            parts += [_escaped(text[position:first]), _MARK, _escaped(text[first:last]), "</mark>"]
            position = last
    return f"<bdi>{''.join(parts)}{_escaped(text[position:])}</bdi>"  # its direction does not reach what follows


def _escaped(text: str) -> str:
    return escape(_CONTROLS.sub("", text))
