"""What `dtrag doctor` says of language models: it asks each for one word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dtrag.adapters.llms.specs import PROVIDERS
from dtrag.app import App
from dtrag.delivery.cli import checks
from dtrag.delivery.cli.checks import CheckResult, examine
from dtrag.settings import Settings
from tests.model_server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer("yes") as running:
        yield running


async def checked(settings: Settings, **changes: str) -> list[CheckResult]:
    report = await examine(replace(settings, **changes))  # type: ignore[arg-type]
    return [check for check in report.checks if check.name in {"language model", "critic"}]


async def test_none_is_fine(settings: Settings) -> None:
    (check,) = await checked(settings)
    assert (check.state, "DTRAG_LLM" in check.detail) == ("ok", True)


async def test_each_model_is_asked_for_a_word(settings: Settings, server: ModelServer) -> None:
    found = await checked(settings, llm="openai:a", llm_critic="openai:b", llm_base_url=server.url)
    assert found == [
        CheckResult("language model", "ok", "openai:a responds"),
        CheckResult("critic", "ok", "openai:b responds"),
    ]
    assert [(request["model"], request["max_tokens"]) for request in server.requests] == [("a", 16), ("b", 16)]
    assert server.wait_until_idle()


async def test_one_that_is_both_is_asked_once(settings: Settings, server: ModelServer) -> None:
    (check,) = await checked(settings, llm="openai:a", llm_base_url=server.url)
    assert check.state == "ok"
    assert len(server.requests) == 1


async def test_one_that_fails_is_a_warning_because_answers_can_be_quotations(
    settings: Settings, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "LLM_SECONDS", 0.3)
    for fault, reason in (("401", "its server replied with 401"), ("hang", "did not answer within 0.3 s")):
        server.fault = fault  # type: ignore[assignment]
        (check,) = await checked(settings, llm="openai:a", llm_base_url=server.url, llm_api_key="hunter2")
        assert check.state == "warn"
        assert reason in check.detail
        assert check.advice
        assert "hunter2" not in f"{check}"


@pytest.mark.parametrize("spec", ["nonsense", "openai:"])
async def test_a_bad_spec_is_a_failure_with_an_example(settings: Settings, spec: str) -> None:
    (check,) = await checked(settings, llm=spec)
    assert check.state == "fail"
    assert "openai:gpt-4o-mini" in check.detail


async def test_a_missing_library_is_not_a_failed_database(settings: Settings, app: App) -> None:
    """At 7e57849 the database was marked as failed for it."""
    for changes, part in (
        ({"llm": "anthropic:x", "llm_api_key": "key"}, "language model"),
        ({"morphemes": "other"}, "kiwi"),
        ({"mcp_servers": settings.data_dir / "absent.toml"}, "tool servers"),
        ({"filter_keys": "a b,;"}, "settings"),
    ):
        report = await examine(replace(settings, **changes))
        failed = {check.name for check in report.checks if check.state == "fail"}
        assert failed == {part}, changes
        if part != "settings":
            assert {"database", "schema"} <= {check.name for check in report.checks if check.state == "ok"}


def test_the_default_installation_speaks_the_openai_protocol() -> None:
    requirements = (Path(__file__).parents[2] / "requirements.txt").read_text("utf-8")
    packages = {provider.package for provider in PROVIDERS.values() if not provider.extra}
    assert {name for name, provider in PROVIDERS.items() if not provider.extra} == {"openai", "ollama"}
    for package in packages | {"langchain"}:
        assert re.search(rf"^{package.replace('_', '-')}==", requirements, re.M), package
