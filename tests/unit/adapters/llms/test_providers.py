"""What LangChain is given for each provider: never an address or a number of retries of its own choice."""

from __future__ import annotations

import logging
from typing import Any

import langchain.chat_models
import pytest

from dtrag.adapters.llms.langchain import build, call_options
from dtrag.adapters.llms.specs import PROVIDERS, Spec

KEY = "of the test"


def spec(provider: str, model: str) -> Spec:
    known = PROVIDERS[provider]
    return Spec(f"{provider}:{model}", known, model, known.address, own_server=False, key=KEY)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(
        langchain.chat_models, "init_chat_model", lambda model, **options: calls.append({"model": model} | options)
    )
    return calls


@pytest.mark.parametrize(("provider", "retries"), [("openai", 0), ("ollama", 0), ("anthropic", 0), ("google_genai", 1)])
async def test_address_key_and_retries_are_set_by_dtrag(
    given: list[dict[str, Any]], provider: str, retries: int
) -> None:
    built = build(spec(provider, "a:b"))
    (options,) = given
    assert (options["model"], options["model_provider"]) == ("a:b", PROVIDERS[provider].library)
    assert (options["api_key"], options["base_url"]) == (KEY, PROVIDERS[provider].address)
    assert (options["max_retries"], options["cache"]) == (retries, False)
    assert (built.http is not None) == (PROVIDERS[provider].library == "openai")
    if built.http is not None:
        assert options["http_async_client"] is built.http
        await built.http.aclose()


def test_gemini_does_not_use_google_cloud_projects(given: list[dict[str, Any]]) -> None:
    build(spec("google_genai", "gemini-2.5-flash"))
    assert given[0]["vertexai"] is False


@pytest.mark.parametrize(
    ("provider", "model", "options"),
    [
        ("openai", "gpt-4o-mini", {"max_tokens": 50}),
        ("anthropic", "claude-haiku-4-5", {"max_tokens": 50}),
        ("google_genai", "gemini-2.5-flash-lite", {"max_output_tokens": 50, "thinking_budget": 0}),
        ("google_genai", "gemini-2.5-pro", {"max_output_tokens": 50}),
    ],
)
def test_each_has_its_own_name_for_the_limit(provider: str, model: str, options: dict[str, Any]) -> None:
    assert call_options(spec(provider, model), 50, temperature=False) == options
    assert call_options(spec(provider, model), 50, temperature=True) == options | {"temperature": 0}


async def test_libraries_that_log_requests_are_silenced_by_default(
    given: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("openai"), "level", logging.NOTSET)
    monkeypatch.setattr(logging.getLogger("httpx2"), "level", logging.DEBUG)
    built = build(spec("openai", "x"))
    assert logging.getLogger("openai").level == logging.WARNING
    assert logging.getLogger("httpx2").level == logging.DEBUG
    await built.http.aclose()
