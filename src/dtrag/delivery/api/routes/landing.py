"""The landing page at `/` while the web page is not built, in English or Korean, with links to the API."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import HTMLResponse

from dtrag.delivery.api.routes.docs import POLICY, STYLE

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
    """The page, in the language that the browser prefers."""
    language = preferred(request.headers.get("accept-language", ""))
    title, text = TEXTS[language]
    page = (
        f"<!doctype html><html lang={language}><meta charset=utf-8><title>dtrag</title><style>{STYLE}</style>"
        f"<h1>dtrag</h1><p>{title}</p><p>{text}</p>"
    )
    headers = {"Content-Security-Policy": POLICY, "Vary": "Accept-Language", "Content-Language": language}
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
