"""Build hook: a wheel contains the built web page, or is not built. An editable installation needs no page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/dtrag/delivery/page/index.html"


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Checks before anything is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """End the build with a message when the page is missing."""
        if version != "editable" and not (Path(self.root) / PAGE).is_file():
            raise SystemExit(
                f"The web page is missing ({PAGE}), and a wheel must contain it. Build it with `make web` (it needs "
                "Node.js 20 and npm), then build the wheel again."
            )
