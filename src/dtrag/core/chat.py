"""Messages to and replies from language models, independent of the provider; untrusted text in them.

Such text is data, never instructions: it is fenced by random delimiter lines that it cannot contain.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from dtrag.core.text.hidden_characters import neutralised

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a model.

    `grade` is the highest grade of the texts in it (core/taxonomy/grades.py), None when that is unknown: then it counts
    as the highest one of the tree.
    """

    role: Role
    content: str
    grade: int | None = field(default=None, compare=False)


def highest_grade(messages: Iterable[Message]) -> int | None:
    """The highest grade of the messages; None when that of one is unknown."""
    grades = [message.grade for message in messages]
    known = [grade for grade in grades if grade is not None]
    return max(known, default=0) if len(known) == len(grades) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of model calls. `cost` in won; 0.0 for a model without a configured price."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply. `finished` is False when it was truncated (token limit, or a broken stream)."""

    text: str
    model: str
    usage: Usage
    finished: bool = True


BOUNDARY = re.compile("~~~[0-9a-f]{16}~~~")
"""What `boundary` makes."""


def boundary() -> str:
    """A random delimiter line for one prompt."""
    return f"~~~{secrets.token_hex(8)}~~~"


def fenced(name: str, text: str, fence: str) -> str:
    """The text under its name between two delimiters; without hidden characters and chat template tokens."""
    return f"{name}\n{fence}\n{neutralised(text)}\n{fence}"
