"""Web search as a tool: one query to the service that the settings name, and its results as plain text."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from dtrag.errors import FetchFailed
from dtrag.ports import Fetcher
from dtrag.tools.builtin.providers import Provider
from dtrag.tools.registry import Tool
from dtrag.tools.schema import tool

QUERY_CHARACTERS = 400
"""The longest query that all of the services take."""
MOST_RESULTS = 10
ANSWER_BYTES = 2 << 20
"""Of a service's answer; a page of results is some 100 KB."""
SECONDS = 10.0
TITLE, EXCERPT, ADDRESS = 200, 600, 2_000
"""Characters of each that are kept."""
NO_QUERY = "No query was given, so nothing was searched for."
NO_SERVICE = "No search service is configured: set DTRAG_WEB_SEARCH_URL, or DTRAG_WEB_SEARCH_PROVIDER and its key."
_TAG = re.compile(r"<[^<>]{0,200}>")


def web_search(fetcher: Fetcher | None, provider: Provider | None) -> Tool:
    """The tool on a search service. Without one it finds nothing and says why, so that a plan does not fail by it."""

    @tool(name="web_search", timeout=SECONDS)
    async def search(
        query: Annotated[str, "What to look for", {"maxLength": QUERY_CHARACTERS}] = "",
        count: Annotated[int, "Number of results", {"minimum": 1, "maximum": MOST_RESULTS}] = 5,
    ) -> dict[str, Any]:
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
            answer = json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            raise FetchFailed(host=provider.name, reason="its answer is not JSON.") from error
        results = [row for row, _ in zip(_rows(provider.read(answer)), range(count), strict=False)]
        return {"results": results, "note": "" if results else "Nothing was found."}

    return search


def _rows(found: Iterable[tuple[str, str, str]]) -> Iterator[dict[str, str]]:
    """Results whose address is one that people can open; others, such as `javascript:`, are passed over."""
    for title, url, excerpt in found:
        if re.match(r"https?://[^\s<>\"]+\Z", url[: ADDRESS + 1]) and len(url) <= ADDRESS:
            yield {"title": _text(title, TITLE), "url": url, "snippet": _text(excerpt, EXCERPT)}


def _text(markup: str, most: int) -> str:
    """The words of it in one line: no tags, no control or invisible characters, at most so many characters."""
    words = html.unescape(_TAG.sub("", markup[: 4 * most]))
    kept = "".join(" " if c.isspace() else c for c in words if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join(kept.split())[:most]
