"""When a debate is worth its price, for `debate=auto`."""

from __future__ import annotations

SURE = 0.9
"""Calibrated confidence from which on there is no debate: of such answers at most one in ten is wrong, so ten debates,
fifty calls of models, would be paid for at most one answer that could become better."""


def worth_a_debate(confidence: float, decision: str) -> bool:
    """Whether an answer with this calibrated confidence in [0, 1] lies in the grey band where a debate may change it.

    `review` always does. `abstain` never does: where the passages do not answer, two agents who read the same passages
    only argue each other into an answer. `answer` does below SURE.
    """
    if decision == "abstain":
        return False
    return decision == "review" or confidence < SURE
