"""Feedback on answers: ratings as the feedback types of the case memory."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dtrag.core.cases.case import FeedbackType
from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput

MAX_REASON = 1_000
_UP, _DOWN, _NEITHER = FeedbackType.THUMBS_UP, FeedbackType.THUMBS_DOWN, FeedbackType.IGNORED
_RATINGS: Mapping[int | None, FeedbackType] = {1: _DOWN, 2: _DOWN, 3: _NEITHER, 4: _UP, 5: _UP}
RATING_OF_THUMBS: Mapping[FeedbackType, int] = {_UP: 5, _NEITHER: 3, _DOWN: 1}
_THUMBS = {"up": _UP, "down": _DOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFeedback:
    """What one person said about one answer; a second one by the same person replaces the first.

    `voter` is the owner id of the caller, "" without keys. `reason` is text of that person.
    """

    trace_id: uuid.UUID
    voter: str
    feedback: FeedbackType
    given_at: datetime
    reason: str = ""


def feedback_type(rating: int | None, thumbs: str | None) -> FeedbackType:
    """A rating or a thumb as feedback: 4 and 5 are a thumbs-up, 1 and 2 a thumbs-down, 3 neither.

    Raises `InvalidInput` unless exactly one of them is given, and for other values.
    """
    if (rating is None) == (thumbs is None):
        raise InvalidInput("Send exactly one of rating (1 to 5) and thumbs (up or down).")
    if thumbs is not None:
        if thumbs not in _THUMBS:
            raise InvalidInput(f"thumbs is up or down, not {thumbs[:20]!r}.")
        return _THUMBS[thumbs]
    if rating not in _RATINGS:
        raise InvalidInput("rating is a whole number from 1 to 5.")
    return _RATINGS[rating]


def reason_text(reason: str | None) -> str:
    """The reason without control characters. Raises `InvalidInput` when it is too long."""
    text = clean(reason or "").strip()
    if len(text) > MAX_REASON:
        raise InvalidInput(f"The reason has {len(text):,} characters; {MAX_REASON:,} are allowed.")
    return text
