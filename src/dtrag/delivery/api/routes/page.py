"""`GET /` and the files of the built web page. Where it is not built, `/` is the landing page."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from dtrag.delivery.api.built_page import BuiltPage, PageFile
from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.open_routes import ASSETS, WIDGET
from dtrag.delivery.api.routes.landing import landing

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
    """The page, or the landing page. It needs no key and reveals nothing about this installation."""
    page = service_of(request).page
    if page is None:
        return landing(request)
    return _response(request, page.index, {**_HEADERS, "Cache-Control": "no-cache"})


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
