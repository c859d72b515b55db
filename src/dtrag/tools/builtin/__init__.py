"""The tools that come with dtrag: a calculator, a document reader, web search."""

from __future__ import annotations

from collections.abc import Callable

from dtrag.core.access.egress import Allowed, allowed_hosts
from dtrag.ports import Fetcher, Parser
from dtrag.settings import Settings
from dtrag.tools.builtin.calculator import calculator
from dtrag.tools.builtin.doc_parser import doc_parser
from dtrag.tools.builtin.web_search import SearchService, choose, web_search
from dtrag.tools.registry import Tool, ToolRegistry


def builtin_tools(
    *, parser: Parser | None = None, fetcher: Fetcher | None = None, provider: SearchService | None = None
) -> tuple[Tool, ...]:
    """The three tools; without a parser or a search service, the tool that needs it reports that."""
    return calculator, doc_parser(parser), web_search(fetcher, provider)


def registry_of(settings: Settings, parser: Parser, fetcher: Callable[[Allowed], Fetcher]) -> ToolRegistry:
    """A registry with the three tools as configured. Raises `InvalidInput` for invalid settings."""
    allowed = allowed_hosts(settings.egress_allow or "")
    provider = choose(settings.web_search_provider, settings.web_search_url, settings.web_search_key, allowed)
    registry = ToolRegistry()
    for tool in builtin_tools(parser=parser, fetcher=fetcher(allowed), provider=provider):
        registry.register(tool)
    return registry
