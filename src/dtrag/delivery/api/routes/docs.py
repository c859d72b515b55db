"""`GET /docs` and `GET /openapi.json`: the routes as one self-contained page without scripts, and as OpenAPI."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

from dtrag.delivery.api.permissions import READ

Schema = dict[str, Any]
"""A part of an OpenAPI description."""
router = APIRouter(include_in_schema=False, dependencies=READ)

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#8882;padding:.1em .3em;border-radius:.2em}h2{margin-top:2rem}li{margin:.2rem 0}"
    ":root{color-scheme:light dark}"
)


@router.get("/docs", response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    """The page."""
    return HTMLResponse(render(request.app.openapi()), headers={"Content-Security-Policy": POLICY})


@router.get("/openapi.json", response_class=JSONResponse)
async def openapi(request: Request) -> JSONResponse:
    """The OpenAPI description."""
    return JSONResponse(request.app.openapi())


def render(schema: Schema) -> str:
    """HTML of an OpenAPI description: each operation with its inputs and responses."""
    operations = [
        _operation(method, path, operation, schema)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    info = schema["info"]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])}</title>"
        f"<style>{STYLE}</style><h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info['description'])}</p><p>For programs: <a href=/openapi.json>/openapi.json</a></p>"
        + "".join(operations)
    )


def _operation(method: str, path: str, operation: Schema, schema: Schema) -> str:
    inputs = [*operation.get("parameters", []), *_fields(operation.get("requestBody", {}), schema)]
    listed = "".join(
        f"<li><code>{escape(field['name'])}</code> {escape(field.get('description') or '')}</li>" for field in inputs
    )
    responses = "".join(
        f"<li><code>{escape(status)}</code> {escape(response['description'])}</li>"
        for status, response in operation["responses"].items()
    )
    return (
        f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
        f"<p>{escape(operation.get('description', ''))}</p>"
        + (f"<h3>Takes</h3><ul>{listed}</ul>" if listed else "")
        + f"<h3>Answers</h3><ul>{responses}</ul>"
    )


def _fields(body: Schema, schema: Schema) -> list[Schema]:
    fields: list[Schema] = []
    for content in body.get("content", {}).values():
        declared = content["schema"]
        if "$ref" in declared:
            declared = schema["components"]["schemas"][declared["$ref"].rsplit("/", 1)[1]]
        fields.extend({"name": name, **field} for name, field in declared.get("properties", {}).items())
    return fields
