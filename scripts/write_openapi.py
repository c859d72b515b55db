"""Writes web/openapi.json, from which the client of the web page is generated, from the routes of the service.

    .venv/bin/python scripts/write_openapi.py

A test compares the file with the output of this script. Then `npm --prefix web run api` writes the types of the client.
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
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(description(), encoding="utf-8")
