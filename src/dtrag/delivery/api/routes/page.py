"""The built web page, or a landing page in English or Korean; the description of the routes as page and OpenAPI."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from dtrag.delivery.api.built_page import BuiltPage, PageFile
from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.permissions import ASSETS, READ, WIDGET

Schema = dict[str, Any]
"""A part of an OpenAPI description."""
docs_router = APIRouter(include_in_schema=False, dependencies=READ)

DOCS_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#8882;padding:.1em .3em;border-radius:.2em}h2{margin-top:2rem}li{margin:.2rem 0}"
    ":root{color-scheme:light dark}"
)


@docs_router.get("/docs", response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    """The routes as one self-contained page without scripts."""
    return HTMLResponse(render(request.app.openapi()), headers={"Content-Security-Policy": DOCS_POLICY})


@docs_router.get("/openapi.json", response_class=JSONResponse)
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


router = APIRouter(include_in_schema=False)

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Nothing from elsewhere, no inline script or style, and no text that becomes HTML or code."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_IMMUTABLE = "public, max-age=31536000, immutable"
_WIDGET_CACHE = "public, max-age=3600"


@router.get("/")
async def index(request: Request) -> Response:
    """The page, or the landing page. It needs no key; of this installation it reveals its name and colour."""
    page = service_of(request).page
    if page is None:
        return landing(request)
    return _response(
        request, page.presented(service_of(request).presentation).index, {**_HEADERS, "Cache-Control": "no-cache"}
    )


@router.get(ASSETS)
async def asset(request: Request, name: str) -> Response:
    """A script, style sheet or image of the page. Its name changes with its content, so browsers keep it."""
    file = _built(request).assets.get(name)
    if file is None:
        raise HTTPException(404)
    return _response(request, file, {**_HEADERS, "Cache-Control": _IMMUTABLE})


@router.get(WIDGET)
async def widget(request: Request) -> Response:
    """The script that other sites include to ask a public agent."""
    file = _built(request).widget
    if file is None:
        raise HTTPException(404)
    headers = {"Cache-Control": _WIDGET_CACHE, "Cross-Origin-Resource-Policy": "cross-origin"}
    return _response(request, file, headers)


def _built(request: Request) -> BuiltPage:
    """The page. Raises `HTTPException` when it is not built."""
    page = service_of(request).page
    if page is None:
        raise HTTPException(404)
    return page


def _response(request: Request, file: PageFile, headers: dict[str, str]) -> Response:
    zipped = bool(file.gzipped) and _accepts_gzip(request.headers)
    sent = {**headers, "Vary": "Accept-Encoding", "Content-Type": file.media_type}
    if zipped:
        sent["Content-Encoding"] = "gzip"
    return Response(file.gzipped if zipped else file.content, headers=sent)


def _accepts_gzip(headers: Headers) -> bool:
    for part in headers.get("accept-encoding", "").split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() == "gzip":
            return weight.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


TEXTS = {
    "en": (
        "The dtrag service is running.",
        "The routes of its API are on <a href=/docs>/docs</a>, "
        "for programs in <a href=/openapi.json>/openapi.json</a>. When keys are in use, send one with every request: "
        "<code>Authorization: Bearer …</code>; a browser asks for it as the password. The web page itself is not built "
        "here: run <code>make web</code> (it needs Node.js 20), then start the service again.",
    ),
    "ko": (
        "dtrag 서비스가 실행 중입니다.",
        "API 경로는 <a href=/docs>/docs</a>에, 프로그램용 설명은 <a href=/openapi.json>/openapi.json</a>에 있습니다. "
        "키를 쓰는 경우 모든 요청에 <code>Authorization: Bearer …</code>로 키를 보내세요. 브라우저에서는 암호 칸에 "
        "키를 넣습니다. 웹 화면은 아직 만들어지지 않았습니다. <code>make web</code>을 실행하고(Node.js 20 필요) "
        "서비스를 다시 시작하세요.",
    ),
}


def landing(request: Request) -> HTMLResponse:
    """The landing page with links to the API, in the language that the browser prefers."""
    language = preferred(request.headers.get("accept-language", ""))
    title, text = TEXTS[language]
    page = (
        f"<!doctype html><html lang={language}><meta charset=utf-8><title>dtrag</title><style>{STYLE}</style>"
        f"<h1>dtrag</h1><p>{title}</p><p>{text}</p>"
    )
    headers = {"Content-Security-Policy": DOCS_POLICY, "Vary": "Accept-Language", "Content-Language": language}
    return HTMLResponse(page, headers=headers)


def preferred(accepted: str) -> str:
    """The language of `TEXTS` that an Accept-Language header prefers (RFC 9110, 12.5.4); English by default."""
    ranks = {"en": 0.0, "ko": 0.0}
    for part in accepted.split(","):
        name, _, weight = part.partition(";")
        language = name.strip().lower().partition("-")[0]
        if language in ranks:
            ranks[language] = max(ranks[language], _weight(weight))
    return max(ranks, key=lambda language: ranks[language])


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if not name:
        return 1.0
    try:
        return min(1.0, max(0.0, float(value)))
    except ValueError:
        return 0.0
