"""Build hook: a wheel contains the built web page, or is not built. An editable installation needs no page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/dtrag/delivery/page/index.html"


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Checks before anything is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """End the build with a message when the page, or a file that it loads, is missing."""
        if version == "editable":
            return
        page = Path(self.root) / PAGE
        missing = PAGE if not page.is_file() else first_missing(page)
        if missing:
            raise SystemExit(
                f"The web page is missing or incomplete ({missing}), and a wheel must contain it. Build it with "
                "`make web` (it needs Node.js 20.19 or later and npm), then build the wheel again."
            )


def first_missing(page: Path) -> str | None:
    """The first file that the page names and that does not exist beside it; None when it is complete."""
    for name in re.findall(r"""\b(?:src|href)=["']([^"':?#]+)""", page.read_text("utf-8")):
        if not (page.parent / name.lstrip("/")).is_file():
            return str(name)
    return None
