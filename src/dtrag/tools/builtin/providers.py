"""Web search services: the request and the response of each, one row of `SERVICES` per service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from dtrag.core.access.egress import Allowed, target
from dtrag.errors import InvalidInput
from dtrag.ports import WebRequest


@dataclass(frozen=True, slots=True)
class SearchServiceKind:
    """A kind of search service. `base` is its address, empty for one that is self-hosted."""

    base: str
    needs_key: bool
    request: Callable[[str, str, str, int], WebRequest]
    """(address, key, query, maximum number of results) -> request."""
    rows: Callable[[Mapping[str, Any]], Any]
    """The list of results in a response."""
    text: str
    """The field of a result that holds an excerpt of the page."""


@dataclass(frozen=True, slots=True)
class SearchService:
    """A configured search service: its kind, address and key."""

    name: str
    base: str
    key: str = field(default="", repr=False)

    def request(self, query: str, count: int) -> WebRequest:
        """The request for `count` results of a query."""
        return SERVICES[self.name].request(self.base, self.key, query, count)

    def results(self, response: object) -> Iterable[tuple[str, str, str]]:
        """Title, URL and excerpt of each result in the service's response; rows of another shape are skipped."""
        service = SERVICES[self.name]
        rows = service.rows(response) if isinstance(response, Mapping) else None
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, Mapping):
                yield str(row.get("title") or ""), str(row.get("url") or ""), str(row.get(service.text) or "")


def choose(name: str, url: str | None, key: str | None, allowed: Allowed) -> SearchService | None:
    """The configured provider, or None. Raises `InvalidInput` for missing or invalid settings."""
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
    address = target(base, allowed)
    if key and address.scheme != "https" and not address.excepted:
        raise InvalidInput("A key is sent by https only. Change DTRAG_WEB_SEARCH_URL.")
    return SearchService(name, base, key or "")


def _searxng(base: str, key: str, query: str, count: int) -> WebRequest:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return WebRequest(f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", headers=headers)


def _tavily(base: str, key: str, query: str, count: int) -> WebRequest:
    body = json.dumps({"query": query, "max_results": count}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return WebRequest(f"{base}/search", method="POST", headers=headers, body=body)


def _brave(base: str, key: str, query: str, count: int) -> WebRequest:
    parameters = urlencode({"q": query, "count": count})
    return WebRequest(f"{base}/res/v1/web/search?{parameters}", headers={"X-Subscription-Token": key})


def _brave_rows(response: Mapping[str, Any]) -> Any:
    web = response.get("web")
    return web.get("results") if isinstance(web, Mapping) else None


SERVICES: Mapping[str, SearchServiceKind] = {
    "searxng": SearchServiceKind("", False, _searxng, lambda response: response.get("results"), "content"),
    "tavily": SearchServiceKind(
        "https://api.tavily.com", True, _tavily, lambda response: response.get("results"), "content"
    ),
    "brave": SearchServiceKind("https://api.search.brave.com", True, _brave, _brave_rows, "description"),
}
