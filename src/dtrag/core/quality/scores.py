"""The quality of one answer: what its judged claims add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dtrag.core.answers.grounding import claim_of
from dtrag.core.text.analysis import sentences


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


Refusal = Literal["none", "right", "wrong", "missing", "unknown"]
"""none: it answers. missing: it answers a question that nothing answers. Of answers that decline, right: nothing
answers the question, or the contexts do not; wrong: the contexts do; unknown: that is not known."""
ACCEPTED = 0.5
"""Share of the expected claims that an accepted answer states; without expected claims, its least relevancy."""
MOST_CLAIMS = 100
"""Claims of a text that are judged; answers have one to ten."""


@dataclass(frozen=True, slots=True)
class QualityResult:
    """The quality of an answer, each measure in [0, 1]; None where it is not known.

    `contextual_recall`: the expected claims that the contexts support. `contextual_precision`: how far in front the
    contexts are that support one of them (of the answer's own claims, without a ground truth). `faithfulness`: the mean
    score of the answer's claims; 1.0 for an answer without any. `answer_relevancy`: how well it replies to the query.
    `correctness`: the expected claims that the answer states. `refusal` is an axis of its own: the other measures say
    nothing about an answer that declines, and summaries leave it out of them.

    `claims` are the answer's, `expected` those of the ground truth. `degraded`: the configured judge failed, and the
    lexical one decided.
    """

    contextual_recall: float | None
    contextual_precision: float | None
    faithfulness: float
    answer_relevancy: float
    correctness: float | None
    refusal: Refusal
    accepted: bool
    judge: str
    claims: tuple[Judgement, ...] = ()
    expected: tuple[Judgement, ...] = ()
    reasons: tuple[str, ...] = ()
    degraded: str = ""

    @property
    def refused(self) -> bool:
        """Whether the answer declines."""
        return self.refusal in {"right", "wrong", "unknown"}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def claims_of(text: str) -> list[str]:
    """The sentences of a text that have content; the whole text if it is one value."""
    claims = [text[start:end] for start, end in sentences(text)]
    return [claim for claim in claims if claim_of(claim).words or any(map(str.isalnum, claim))][:MOST_CLAIMS]


def recall(expected: Sequence[Judgement]) -> float | None:
    """The share of the expected claims that the contexts support."""
    return sum(each.supported for each in expected) / len(expected) if expected else None


def precision(claims: Sequence[Judgement], contexts: int) -> float | None:
    """The average precision of the ranking of contexts, those that support a claim being relevant; 0.0 for none."""
    if not contexts or not claims:
        return None
    relevant = {index for each in claims if each.supported for index in each.contexts}
    total = count = 0.0
    for index in range(contexts):
        if index in relevant:
            count += 1
            total += count / (index + 1)
    return total / count if count else 0.0


def faithfulness(claims: Sequence[Judgement]) -> float:
    """The mean score of the claims; 1.0 without claims, because nothing is claimed."""
    return sum(each.score for each in claims) / len(claims) if claims else 1.0


def refusal_of(refused: bool, ground_truth: str | None, recalled: float | None) -> Refusal:
    """Whether declining was right. An empty `ground_truth` says that nothing answers the question."""
    unanswerable = ground_truth is not None and not ground_truth.strip()
    if not refused:
        return "missing" if unanswerable else "none"
    if unanswerable:
        return "right"
    if recalled is None:
        return "unknown"
    return "wrong" if recalled >= ACCEPTED else "right"


def is_accepted(
    refusal: Refusal,
    correctness: float | None,
    relevance: Relevance,
    claims: Sequence[Judgement],
    recalled: float | None,
) -> bool:
    """Whether the answer counts as right.

    It states what is expected, or else replies to the question. Where the contexts have what is expected, they must
    support half of its claims: an answer that differs from them is wrong even if it repeats most of what is expected.
    """
    if refusal != "none":
        return refusal == "right"
    supported = sum(each.supported for each in claims) / len(claims) if claims else 1.0
    if recalled is not None and recalled >= ACCEPTED and supported < ACCEPTED:
        return False
    return correctness >= ACCEPTED if correctness is not None else relevance.score >= ACCEPTED
