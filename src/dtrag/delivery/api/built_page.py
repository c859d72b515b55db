"""The built web page: its files in memory, each as it is sent. `make web` builds it; a wheel always contains it."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from pathlib import Path

from dtrag.delivery.api.presentation import Presentation

FOLDER = Path(__file__).parent.parent / "page"
INDEX = "index.html"
WIDGET = "widget.js"
_ASSETS = "assets"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
"""Files of other types are not served: source maps, notes."""
_COMPRESSED = frozenset({".css", ".html", ".js", ".json", ".svg"})
_TITLE = b"<title>dtrag</title>"
_SMALLEST_COMPRESSED = 1_000
"""Bytes below which a compressed file saves nothing."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page. `gzipped` is empty when it is not worth it."""

    media_type: str
    content: bytes = field(repr=False)
    gzipped: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """The page: its first file, its assets by name, and the widget for other sites, if it was built."""

    index: PageFile
    assets: Mapping[str, PageFile]
    widget: PageFile | None

    def presented(self, presentation: Presentation) -> BuiltPage:
        """The page with the name and colour of the service in its first file, where the settings have them: the script
        shows both before anybody has signed in."""
        name, colour = presentation.name, presentation.colour
        title = f"<title>{escape(name)}</title>".encode() if name else _TITLE
        theme = f'<meta name="theme-color" content="{colour}" />'.encode() if colour else b""
        content = self.index.content.replace(_TITLE, title + theme, 1)
        return replace(self, index=_sent(self.index.media_type, content, compressed=True))


@cache
def built_page(folder: Path = FOLDER) -> BuiltPage | None:
    """The page in the folder; None when it was not built. Read once: a page that is built later needs a new start."""
    index = _file(folder / INDEX)
    if index is None:
        return None
    assets = folder / _ASSETS
    names = sorted(path.name for path in assets.iterdir()) if assets.is_dir() else []
    files = {name: file for name in names if (file := _file(assets / name)) is not None}
    return BuiltPage(index, files, _file(folder / WIDGET))


def _file(path: Path) -> PageFile | None:
    media_type = _MEDIA_TYPES.get(path.suffix)
    if media_type is None or not path.is_file():
        return None
    return _sent(media_type, path.read_bytes(), compressed=path.suffix in _COMPRESSED)


def _sent(media_type: str, content: bytes, *, compressed: bool) -> PageFile:
    worth = compressed and len(content) >= _SMALLEST_COMPRESSED
    return PageFile(media_type, content, gzip.compress(content, mtime=0) if worth else b"")
