"""What calls cost, in won, by the prices that the settings give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dtrag.errors import InvalidInput

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
