"""Web search as a tool: one query to the configured search service, and its results as plain text."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict
from urllib.parse import urlencode

from dtrag.core.access.egress import Allowed, target
from dtrag.core.access.grade_limits import Recipient
from dtrag.errors import FetchFailed, InvalidInput
from dtrag.ports import Fetcher, WebRequest
from dtrag.tools.registry import Tool
from dtrag.tools.schema import tool_of

QUERY_CHARACTERS = 400
"""The longest query that all services accept."""
MOST_RESULTS = 10
ANSWER_BYTES = 2 << 20
"""Maximum size of a service's response; a page of results is about 100 KB."""
SECONDS = 10.0
TITLE, EXCERPT, ADDRESS = 200, 600, 2_000
"""Maximum characters of each in a result."""
NO_QUERY = "No query was given, so nothing was searched for."
NO_SERVICE = "No search service is configured: set DTRAG_WEB_SEARCH_URL, or DTRAG_WEB_SEARCH_PROVIDER and its key."
_TAG = re.compile(r"<[^<>]{0,200}>")


class WebResult(TypedDict):
    """One result."""

    title: str
    url: str
    snippet: str


class SearchOutput(TypedDict):
    """The output of the tool; `note` says why there are no results."""

    results: list[WebResult]
    note: str


def web_search(fetcher: Fetcher | None, provider: SearchService | None) -> Tool:
    """The tool with a search service; without one it returns no results and a note, so that plans do not fail."""

    async def search(
        query: Annotated[str, "What to look for", {"maxLength": QUERY_CHARACTERS}] = "",
        count: Annotated[int, "Number of results", {"minimum": 1, "maximum": MOST_RESULTS}] = 5,
    ) -> SearchOutput:
        """Searches the web. Gives `results`, each with title, url and snippet, and a `note` where there are none."""
        if not query.strip():
            return {"results": [], "note": NO_QUERY}
        if fetcher is None or provider is None:
            return {"results": [], "note": NO_SERVICE}
        reply = await fetcher.fetch(
            provider.request(query, count), seconds=SECONDS, most=ANSWER_BYTES, types=("application/json",)
        )
        if reply.status != 200:
            raise FetchFailed(host=provider.name, reason=f"it answered with status {reply.status}.")
        try:
            response = json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            raise FetchFailed(host=provider.name, reason="its answer is not JSON.") from error
        results = [row for row, _ in zip(_rows(provider.results(response)), range(count), strict=False)]
        return {"results": results, "note": "" if results else "Nothing was found."}

    destination = None if provider is None else Recipient("web_search", provider.name, provider.base)
    return tool_of(search, name="web_search", timeout=SECONDS, destination=destination)


def _rows(results: Iterable[tuple[str, str, str]]) -> Iterator[WebResult]:
    """The results with an http or https address; others, such as `javascript:`, are skipped."""
    for title, url, excerpt in results:
        if re.match(r"https?://[^\s<>\"]+\Z", url[: ADDRESS + 1]) and len(url) <= ADDRESS:
            yield {"title": plain_text(title, TITLE), "url": url, "snippet": plain_text(excerpt, EXCERPT)}


def plain_text(markup: str, limit: int) -> str:
    """The text on one line, at most `limit` characters, without tags, control and invisible characters."""
    text = html.unescape(_TAG.sub("", markup[: 4 * limit]))
    visible = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join(visible.split())[:limit]


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
