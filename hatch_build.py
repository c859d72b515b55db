"""Build hook: a wheel contains the web page, complete and built from the present sources, or is not built.

An editable installation needs no page. Without `web/`, as in the tests of the package, there are no sources to compare.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/dtrag/delivery/page/index.html"
WIDGET = "widget.js"
SOURCES = "sources.sha256"
"""Beside the page: the digest of what it was built from, written by web/scripts/sources.mjs."""
FILES = ("index.html", "package-lock.json", "tsconfig.json", "vite.config.ts", "vite.widget.config.ts")


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Checks before anything is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """End the build with a message when the page, or a file of it, is missing or older than its sources."""
        if version == "editable":
            return
        problem = problem_of(Path(self.root))
        if problem:
            raise SystemExit(
                f"The web page {problem}, and a wheel must contain it. Build it with `make web` (it needs Node.js "
                "20.19 or later and npm), then build the wheel again."
            )


def problem_of(root: Path) -> str | None:
    """What is wrong with the built page, to follow "The web page"; None when nothing is."""
    page = root / PAGE
    missing = PAGE if not page.is_file() else first_missing(page)
    if missing:
        return f"is missing or incomplete ({missing})"
    web, built_from = root / "web", page.parent / SOURCES
    if not (web / "src").is_dir():
        return None
    if not built_from.is_file() or built_from.read_text("ascii").strip() != digest_of(web):
        return "was built from other sources than those in web/"
    return None


def first_missing(page: Path) -> str | None:
    """The first file that the page names, or the widget, that does not exist beside it; None when it is complete."""
    named = re.findall(r"""\b(?:src|href)=["']([^"':?#]+)""", page.read_text("utf-8"))
    return next((name for name in (*named, WIDGET) if not (page.parent / name.lstrip("/")).is_file()), None)


def digest_of(web: Path) -> str:
    """The digest of the page's sources: file contents, because a checkout has no meaningful times."""
    sources = [path.relative_to(web).as_posix() for path in (web / "src").rglob("*") if path.is_file()]
    used = [path for path in sources if not re.search(r"\.test\.tsx?$|^src/test/", path)]
    lines = (f"{path} {hashlib.sha256((web / path).read_bytes()).hexdigest()}\n" for path in sorted([*FILES, *used]))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
