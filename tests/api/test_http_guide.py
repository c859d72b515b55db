"""docs/reference/http.md says everything there is, and its examples work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

GUIDE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"localhost:8001(/\S+) -H 'Content-Type: application/json' \\\n\s+-d '([^']+)'")


def test_every_route_has_its_section(api: FastAPI) -> None:
    routes = {f"{method.upper()} {path}" for path, methods in api.openapi()["paths"].items() for method in methods}
    routes |= {"POST /mcp", "POST /mcp/agents/{agent_id}"}  # their protocol describes them, not OpenAPI
    assert set(re.findall(r"^## `([^`]+)`$", GUIDE, re.MULTILINE)) == routes


def test_every_field_is_explained(api: FastAPI) -> None:
    quoted = set(re.findall(r"`([^`\s]+)`", GUIDE))
    shapes = api.openapi()["components"]["schemas"]
    fields = {name for shape in shapes.values() for name in shape.get("properties", ())}
    assert fields - quoted == set()


def test_every_declared_status_is_explained(api: FastAPI) -> None:
    declared = {
        status
        for methods in api.openapi()["paths"].values()
        for operation in methods.values()
        for status in operation["responses"]
        if status >= "400"
    }
    explained = {status for row in re.findall(r"^\| ([\d, ]+) \|", GUIDE, re.MULTILINE) for status in row.split(", ")}
    assert declared <= explained


@pytest.mark.parametrize(("path", "body"), EXAMPLE.findall(GUIDE))
async def test_the_examples_work(client: httpx2.AsyncClient, path: str, body: str) -> None:
    response = await client.post(path, json=json.loads(body))
    assert response.status_code == 200


def test_there_are_examples() -> None:
    assert {path for path, _ in EXAMPLE.findall(GUIDE)} == {
        "/search",
        "/search/batch",
        "/ask",
        "/chat/run",
        "/regulations/search",
        "/regulations/verify",
    }
