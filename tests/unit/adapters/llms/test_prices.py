"""Prices in won per million tokens."""

from __future__ import annotations

import pytest

from dtrag.adapters.llms.specs import FREE, Price, parse
from dtrag.errors import InvalidInput


def test_prices_by_spec() -> None:
    prices = parse(" openai:gpt-4o-mini=200/800 , google_genai:gemini-2.5-flash = 400.5/3500,,")
    assert prices == {"openai:gpt-4o-mini": Price(200, 800), "google_genai:gemini-2.5-flash": Price(400.5, 3500)}
    assert parse("") == {}
    assert parse("ollama:a=b=0/0") == {"ollama:a=b": Price(0, 0)}


@pytest.mark.parametrize(
    "text", ["x", "x=1", "x=1/2/3", "=1/2", "x=a/b", "x=-1/2", "x=1/-2", "x=inf/1", "x=nan/1", "x=1/nan", "x=/"]
)
def test_invalid_prices_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"DTRAG_LLM_PRICES holds .* won per million tokens, such as"):
        parse(text)


def test_the_cost_is_in_won() -> None:
    assert Price(200, 800).cost(1_000_000, 500_000) == 600
    assert Price(200, 800).cost(1_500, 100) == pytest.approx(0.38)
    assert FREE.cost(10**9, 10**9) == 0
