"""Web search as a tool: one query to the configured search service, and its results as plain text."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Annotated, TypedDict

from dtrag.errors import FetchFailed
from dtrag.ports import Fetcher
from dtrag.tools.builtin.providers import SearchService
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

    return tool_of(search, name="web_search", timeout=SECONDS)


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
