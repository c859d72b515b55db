"""Writes web/openapi.json from the routes of the service; `npm --prefix web run api` makes the types of the page's
client from it. Neither file is committed: `make lint-web` calls both, and an unchanged description is left as it is.

    .venv/bin/python scripts/write_openapi.py
"""

from __future__ import annotations

import json
from pathlib import Path

from dtrag.delivery.api.app import create_app
from dtrag.settings import Settings

FILE = Path(__file__).parents[1] / "web" / "openapi.json"


def description() -> str:
    """The OpenAPI description, in an order that does not depend on the order of the routes."""
    described = create_app(Settings.load(environ={}, embedder="none")).openapi()
    return json.dumps(described, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    described = description()
    if not FILE.is_file() or FILE.read_text(encoding="utf-8") != described:
        FILE.write_text(described, encoding="utf-8")
