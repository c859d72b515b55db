"""Search services of the web: how each is asked, and what its answer says. A row of the table each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from dtrag.core.access.egress import Allowed, target
from dtrag.errors import InvalidInput
from dtrag.ports import WebRequest

Found = list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Service:
    """A kind of search service. `base` is empty where everybody runs their own."""

    base: str
    needs_key: bool
    ask: Callable[[str, str, str, int], WebRequest]
    """Address, key, query and number of results wanted -> what to send."""
    results: Callable[[Mapping[str, Any]], Any]
    text: str
    """The field of a result that holds an excerpt of the page."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The service that is asked, with its address and key."""

    name: str
    base: str
    key: str = field(default="", repr=False)

    def request(self, query: str, wanted: int) -> WebRequest:
        """What to send for a query."""
        return SERVICES[self.name].ask(self.base, self.key, query, wanted)

    def read(self, answer: object) -> Iterable[tuple[str, str, str]]:
        """Title, URL and excerpt of each result in the service's answer; what makes no sense is passed over."""
        service = SERVICES[self.name]
        rows = service.results(answer) if isinstance(answer, Mapping) else None
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, Mapping):
                yield str(row.get("title") or ""), str(row.get("url") or ""), str(row.get(service.text) or "")


def choose(name: str, url: str | None, key: str | None, allowed: Allowed) -> Provider | None:
    """The provider of the settings; None for none. Raises `InvalidInput` where settings are missing or do not fit."""
    if name == "auto":
        name = "searxng" if url else "none"
    if name == "none":
        return None
    if name not in SERVICES:
        raise InvalidInput(
            f"There is no search service {name[:40]!r}. DTRAG_WEB_SEARCH_PROVIDER is auto, none, {', '.join(SERVICES)}."
        )
    service = SERVICES[name]
    base = (url or service.base).rstrip("/")
    if not base:
        raise InvalidInput(f"{name} needs its address: set DTRAG_WEB_SEARCH_URL.")
    if service.needs_key and not key:
        raise InvalidInput(f"{name} needs a key: set DTRAG_WEB_SEARCH_KEY.")
    wanted = target(base, allowed)
    if key and wanted.scheme != "https" and not wanted.excepted:
        raise InvalidInput("A key is sent by https only. Change DTRAG_WEB_SEARCH_URL.")
    return Provider(name, base, key or "")


def _searxng(base: str, key: str, query: str, wanted: int) -> WebRequest:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return WebRequest(f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", headers=headers)


def _tavily(base: str, key: str, query: str, wanted: int) -> WebRequest:
    body = json.dumps({"query": query, "max_results": wanted}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return WebRequest(f"{base}/search", method="POST", headers=headers, body=body)


def _brave(base: str, key: str, query: str, wanted: int) -> WebRequest:
    parameters = urlencode({"q": query, "count": wanted})
    return WebRequest(f"{base}/res/v1/web/search?{parameters}", headers={"X-Subscription-Token": key})


def _web_results(answer: Mapping[str, Any]) -> Any:
    web = answer.get("web")
    return web.get("results") if isinstance(web, Mapping) else None


SERVICES: Mapping[str, Service] = {
    "searxng": Service("", False, _searxng, lambda answer: answer.get("results"), "content"),
    "tavily": Service("https://api.tavily.com", True, _tavily, lambda answer: answer.get("results"), "content"),
    "brave": Service("https://api.search.brave.com", True, _brave, _web_results, "description"),
}
