"""Which model the settings name, where it is asked and with which key; what is wrong is said at the start."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from dtrag.adapters.llms.langchain import choose
from dtrag.adapters.llms.specs import Spec, resolve
from dtrag.errors import InvalidInput, MissingExtra
from dtrag.settings import Settings, usual_key

OWN = "http://models.example:8000/v1/"


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)


def specs(**settings: Any) -> tuple[Spec, Spec]:
    model, critic = choose(Settings.load(environ={}, **settings))
    assert model is not None
    assert critic is not None
    return model._spec, critic._spec


@pytest.mark.parametrize("nothing", [None, "", "none", " none "])
def test_without_a_model_there_is_none(nothing: str | None) -> None:
    assert choose(Settings(llm=nothing, llm_critic="openai:test")) == (None, None)


@pytest.mark.parametrize("spec", ["gpt-4o-mini", "openai:", "azure:gpt", ":x", "openai", "Openai:gpt", "openai: "])
@pytest.mark.parametrize("variable", ["DTRAG_LLM", "DTRAG_LLM_CRITIC"])
def test_an_invalid_spec_is_explained_with_an_example(spec: str, variable: str) -> None:
    given = {"llm": "ollama:qwen3:8b", variable.removeprefix("DTRAG_").lower(): spec}
    expected = rf"{variable} is '{spec}', but must be none, or provider:model, such as openai:gpt-4o-mini, .*ollama"
    with pytest.raises(InvalidInput, match=expected):
        choose(Settings.load(environ={}, **given))


def test_the_critic_is_the_model_unless_another_is_named() -> None:
    model, critic = choose(Settings(llm="ollama:qwen3:8b"))
    assert model is critic
    model, critic = choose(Settings(llm="ollama:qwen3:8b", llm_critic="ollama:qwen3:8b"))
    assert model is critic
    first, second = specs(llm="ollama:qwen3:8b", llm_critic="ollama:gemma3")
    assert (first.model, second.model) == ("qwen3:8b", "gemma3")


def test_ollama_defaults_to_this_machine_without_a_key() -> None:
    here, _ = specs(llm="ollama:qwen3:8b")
    assert (here.address, here.key, here.local, here.own_server) == ("http://127.0.0.1:11434/v1", "no-key", True, True)
    there, _ = specs(llm="ollama:qwen3:8b", llm_base_url=OWN, llm_api_key="k")
    assert (there.address, there.key, there.local) == ("http://models.example:8000/v1", "k", False)


@pytest.mark.usefixtures("everything_installed")
@pytest.mark.parametrize(
    ("spec", "variable", "address"),
    [
        ("openai:gpt-4o-mini", "OPENAI_API_KEY", "https://api.openai.com/v1"),
        ("google_genai:gemini-2.5-flash", "GOOGLE_API_KEY", "https://generativelanguage.googleapis.com"),
        ("google_genai:gemini-2.5-flash", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
    ],
)
def test_a_provider_needs_a_key_and_reads_its_own_variables(
    spec: str, variable: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match=rf"needs a key: set DTRAG_LLM_API_KEY or .*{variable}"):
        specs(llm=spec)
    monkeypatch.setenv(variable, "usual")
    assert specs(llm=spec)[0].key == "usual"
    given, _ = specs(llm=spec, llm_api_key="given")
    assert (given.key, given.address, given.local, given.own_server) == ("given", address, False, False)
    assert "given" not in repr(given)


@pytest.mark.usefixtures("everything_installed")
def test_a_key_is_sent_only_to_its_own_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-anthropic")
    assert specs(llm="openai:test", llm_base_url=OWN)[0].key == "no-key"
    first, second = specs(llm="anthropic:a", llm_critic="openai:b", llm_api_key="given")
    assert (first.key, second.key) == ("given", "of-openai")
    first, second = specs(llm="anthropic:a", llm_critic="openai:b", llm_base_url=OWN, llm_api_key="given")
    assert (first.key, second.key) == ("given", "given")
    first, second = specs(llm="openai:b", llm_critic="anthropic:a", llm_base_url=OWN)
    assert (first.key, second.key, second.address) == ("no-key", "of-anthropic", "https://api.anthropic.com")
    assert usual_key("ollama") is None


@pytest.mark.parametrize(
    ("spec", "extra"),
    [("google_genai:gemini-2.5-flash", "google"), ("anthropic:claude-haiku-4-5", "anthropic")],
)
def test_a_missing_library_is_reported_at_the_start(spec: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=rf"pip install 'dtrag\[{extra}\]'"):
        resolve(spec, Settings(llm=spec, llm_api_key="key"))


@pytest.mark.parametrize("url", ["127.0.0.1:11434", "ftp://host/v1", "http://", "models.example/v1", "x"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"DTRAG_LLM_BASE_URL must be .* such as http://127\.0\.0\.1:11434/v1"):
        choose(Settings(llm="ollama:x", llm_base_url=url))


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInput, match="DTRAG_LLM_API_KEY") as caught:
        choose(Settings(llm="ollama:x", llm_base_url="https://me:hunter2@models.example/v1"))
    assert "hunter2" not in str(caught.value)


def test_the_key_is_not_shown_with_the_settings() -> None:
    loaded = Settings.load(environ={"DTRAG_LLM_API_KEY": "hunter2"})
    assert loaded.llm_api_key == "hunter2"
    assert "hunter2" not in f"{loaded!r} {loaded.rows()}"


def test_an_answer_has_a_length() -> None:
    with pytest.raises(InvalidInput, match="DTRAG_LLM_MAX_TOKENS"):
        choose(Settings(llm="ollama:x", llm_max_tokens=0))


def test_bad_prices_are_noticed_at_the_start() -> None:
    with pytest.raises(InvalidInput, match=r"DTRAG_LLM_PRICES holds 'cheap'"):
        choose(Settings(llm_prices="cheap"))
