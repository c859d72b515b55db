"""The meaning of `provider:model`: the server, its key, and the package that it needs; its price."""

from __future__ import annotations

import importlib.util
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from dtrag.errors import InvalidInput, MissingExtra
from dtrag.settings import Settings, usual_key, usual_key_variables

EXAMPLE = "openai:gpt-4o-mini, google_genai:gemini-2.5-flash, anthropic:claude-haiku-4-5 or ollama:qwen3:8b"


@dataclass(frozen=True, slots=True)
class Provider:
    """Whose protocol is spoken. `library` is LangChain's name of it, `package` what must be importable, and `extra` the
    optional part that brings it, "" where the default installation does.

    The address is always given to the library: it would take another one from variables of its own.
    """

    library: str
    package: str
    extra: str
    address: str
    needs_key: bool = True


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("openai", "langchain_openai", "", "https://api.openai.com/v1"),
    "google_genai": Provider(
        "google_genai", "langchain_google_genai", "google", "https://generativelanguage.googleapis.com"
    ),
    "anthropic": Provider("anthropic", "langchain_anthropic", "anthropic", "https://api.anthropic.com"),
    "ollama": Provider("openai", "langchain_openai", "", "http://127.0.0.1:11434/v1", needs_key=False),
}
NO_KEY = "no-key"
"""The OpenAI protocol wants some key; servers without keys ignore it."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A model that can be called. `own_server`: an address of the user's, not the one of the provider."""

    id: str
    provider: Provider
    model: str
    address: str
    own_server: bool
    key: str = field(repr=False)

    @property
    def local(self) -> bool:
        """Whether the server is on this machine: it is reached without a proxy."""
        host = urlsplit(self.address).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def resolve(text: str, settings: Settings, variable: str = "DTRAG_LLM") -> Spec:
    """The model that `text` names. Raises `InvalidInput` and `MissingExtra`; connects to nothing."""
    name, _, model = text.strip().partition(":")
    provider = PROVIDERS.get(name)
    if provider is None or not model.strip():
        raise InvalidInput(
            f"{variable} is {text[:80]!r}, but must be none, or provider:model, such as {EXAMPLE}. "
            f"Providers: {', '.join(PROVIDERS)}."
        )
    if provider.extra and importlib.util.find_spec(provider.package) is None:
        raise MissingExtra(feature=f"The language model {text.strip()!r}", extra=provider.extra)
    own = provider.library == "openai" and bool(settings.llm_base_url)
    address = _address(settings.llm_base_url or "") if own else provider.address
    key = _key(name, own, settings)
    if key is None and provider.needs_key and not own:
        raise InvalidInput(
            f"{variable} is {text.strip()!r}, which needs a key: set DTRAG_LLM_API_KEY or "
            f"{' or '.join(usual_key_variables(name))}."
        )
    return Spec(text.strip(), provider, model.strip(), address, own or name == "ollama", key or NO_KEY)


def _key(name: str, own: bool, settings: Settings) -> str | None:
    """DTRAG_LLM_API_KEY belongs to the provider of DTRAG_LLM, and to the server of DTRAG_LLM_BASE_URL.

    The provider's usual variable is for the provider's own server: it is not sent to another one.
    """
    of_model = (settings.llm or "").partition(":")[0].strip()
    if settings.llm_api_key and (own or name == of_model or not of_model):
        return settings.llm_api_key
    return None if own else usual_key(name)


def _address(url: str) -> str:
    parts = urlsplit(url.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput(
            "DTRAG_LLM_BASE_URL must be the address of a server that speaks the OpenAI protocol, "
            "such as http://127.0.0.1:11434/v1."
        )
    if parts.username or parts.password:
        raise InvalidInput("DTRAG_LLM_BASE_URL holds a name or a password. Put the key into DTRAG_LLM_API_KEY instead.")
    return url.strip().rstrip("/")


_UNIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Won per million tokens."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Won."""
        return (input_tokens * self.input + output_tokens * self.output) / _UNIT


FREE = Price(0.0, 0.0)
"""Of models without a configured price; one's own server has none."""


def parse(text: str) -> Mapping[str, Price]:
    """Prices by spec from `openai:gpt-4o-mini=200/800,…`. Raises `InvalidInput`."""
    prices = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        spec, _, amounts = entry.rpartition("=")
        try:
            input_price, output_price = (float(amount) for amount in amounts.split("/"))
        except ValueError:
            raise _refusal(entry) from None
        if not (spec.strip() and 0 <= input_price < float("inf") and 0 <= output_price < float("inf")):
            raise _refusal(entry)
        prices[spec.strip()] = Price(input_price, output_price)
    return prices


def _refusal(entry: str) -> InvalidInput:
    return InvalidInput(
        f"DTRAG_LLM_PRICES holds {entry[:80]!r}, but must be provider:model=input/output in won per million tokens, "
        "such as openai:gpt-4o-mini=200/800, with commas between models."
    )
