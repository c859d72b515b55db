"""LangChain's model of each provider, and the options of one call. Importing a provider's library takes 1-2 s."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from dtrag.adapters.llms.specs import Spec

_CHATTY = ("openai", "anthropic", "google_genai", "httpx", "httpx2", "httpcore", "httpcore2", "langsmith")
"""Loggers of libraries that log the content of requests at level DEBUG."""
_THINKS_UNLESS_TOLD = "gemini-2.5-flash"
"""Its thoughts count as output: they would use up the limit before the answer begins."""


@dataclass(frozen=True, slots=True)
class Built:
    """`chat` is LangChain's model; `http` its HTTP client, where the library accepts one."""

    chat: Any
    http: Any = None


def build(spec: Spec) -> Built:
    """Import the provider's library and make its model. Blocking, up to some seconds; connects to nothing."""
    from langchain.chat_models import init_chat_model

    from dtrag.adapters.llms.http_client import bounded_client

    for name in _CHATTY:
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)
    arguments: dict[str, Any] = {"api_key": spec.key, "base_url": spec.address, "cache": False}
    http = None
    if spec.provider.library == "openai":
        http = bounded_client(local=spec.local)
        # Missing arguments would be taken from environment variables of other programs.
        arguments |= {"http_async_client": http, "max_retries": 0, "stream_usage": True, "use_responses_api": False}
        arguments |= {"organization": "", "openai_proxy": ""}
    elif spec.provider.library == "google_genai":
        arguments |= {"max_retries": 1, "vertexai": False}  # 1 attempt, that is: 0 would be the library's own number
    else:
        arguments |= {"max_retries": 0}
    return Built(init_chat_model(spec.model, model_provider=spec.provider.library, **arguments), http)


def call_options(spec: Spec, max_tokens: int, *, temperature: bool) -> dict[str, object]:
    """Keyword arguments of one call. Temperature 0, so that the same passages give the same answer."""
    options: dict[str, object] = {"temperature": 0} if temperature else {}
    if spec.provider.library == "google_genai":
        thinking = {"thinking_budget": 0} if spec.model.startswith(_THINKS_UNLESS_TOLD) else {}
        return options | {"max_output_tokens": max_tokens} | thinking
    if spec.own_server:
        # Many servers know only the older of the protocol's two names for the limit, which LangChain renames.
        return options | {"extra_body": {"max_tokens": max_tokens}}
    return options | {"max_tokens": max_tokens}
