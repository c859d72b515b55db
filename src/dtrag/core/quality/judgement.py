"""What a judge says about a claim, and about an answer as a reply to its question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a claim is supported. `score` in [0, 1]; `reason` is "" when it is supported.

    `contexts` are the indices of the contexts that support it alone; it may be empty for a supported claim that only
    several of them support together.
    """

    claim: str
    supported: bool
    score: float
    contexts: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Relevance:
    """How well an answer replies to its question, in [0, 1], whether or not it is true; `reason` is "" when well."""

    score: float
    reason: str = ""
