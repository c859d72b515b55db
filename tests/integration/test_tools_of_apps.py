"""Tools of an open app: the default registry is its own, and they have what its settings name."""

from __future__ import annotations

import pytest

from dtrag import current_app
from dtrag.app import App, open_app
from dtrag.errors import InvalidInput
from dtrag.tools import execute_tool, get_tool_registry, list_tools
from tests.store import Databases
from tests.unit.tools.test_registry import made
from tests.web_server import always, answer, web_server


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no open app but those that the test opens."""
    monkeypatch.setattr(current_app, "_opened", [])


async def test_the_default_registry_is_that_of_the_open_app(app: App) -> None:
    assert get_tool_registry() is app.tools
    app.tools.register(made("nothing"))
    assert (await execute_tool("nothing", {})).success
    assert [tool["name"] for tool in list_tools()] == ["calculator", "doc_parser", "web_search", "nothing"]


async def test_the_tools_of_an_app_have_what_its_settings_name(databases: Databases) -> None:
    found = b'{"results": [{"title": "Leave", "url": "https://one.example/", "content": "Two terms."}]}'
    async with web_server(always(answer(body=found))) as server:
        settings = databases.settings(
            web_search_url=server.address, egress_allow=f"127.0.0.1:{server.port}", parse_seconds=20
        )
        async with open_app(settings):
            searched = await execute_tool("web_search", {"query": "leave"})
            read = await execute_tool("doc_parser", {"content": "# Leave\n\nTwo terms.", "format": "md"})
    assert searched.result["results"][0]["snippet"] == "Two terms."
    assert read.result["documents"][0]["title"] == "Leave"


async def test_an_app_with_invalid_settings_is_not_opened(databases: Databases) -> None:
    with pytest.raises(InvalidInput, match="DTRAG_WEB_SEARCH_KEY"):
        async with open_app(databases.settings(web_search_provider="brave")):
            pass
