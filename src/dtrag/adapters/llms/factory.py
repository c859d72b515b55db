"""The language models that the settings name. Nothing is imported or connected to before the first call."""

from __future__ import annotations

from dtrag.adapters.llms.langchain import LangChainModel
from dtrag.adapters.llms.prices import FREE, parse
from dtrag.adapters.llms.specs import resolve
from dtrag.errors import InvalidInput
from dtrag.settings import Settings


def choose(settings: Settings) -> tuple[LangChainModel | None, LangChainModel | None]:
    """The model that answers, and the one that criticises in a debate: the same one unless DTRAG_LLM_CRITIC names
    another. Both None without DTRAG_LLM.

    Raises `InvalidInput` for an invalid spec or price and for a missing key, `MissingExtra` where a library is missing.
    """
    prices = parse(settings.llm_prices)
    if _none(settings.llm):
        return None, None
    if settings.llm_max_tokens < 1:
        raise InvalidInput("DTRAG_LLM_MAX_TOKENS is 0, but must be at least 1: an answer has a length.")
    first = resolve(settings.llm or "", settings)
    model = LangChainModel(first, prices.get(first.id, FREE))
    if _none(settings.llm_critic):
        return model, model
    second = resolve(settings.llm_critic or "", settings, "DTRAG_LLM_CRITIC")
    return model, model if second.id == first.id else LangChainModel(second, prices.get(second.id, FREE))


def _none(spec: str | None) -> bool:
    return spec is None or spec.strip() in {"", "none"}
