"""Body and response of `/chat/feedback`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from dtrag.core.answer_feedback import MAX_REASON
from dtrag.delivery.api.schemas.search import RequestBody, Text


class FeedbackRequest(RequestBody):
    """Feedback on an answer: `rating` or `thumbs`; limits are checked when it is stored."""

    trace_id: Text = Field(description="The trace_id of the answer.", examples=["8f14e45f-ceea-467f-a8d4-3f1b2c6d7e80"])
    rating: Annotated[
        int | None,
        Field(json_schema_extra={"minimum": 1, "maximum": 5}, description="4 and 5 are up, 1 and 2 down, 3 neither."),
    ] = None
    thumbs: Annotated[
        Text | None,
        Field(json_schema_extra={"enum": ["up", "down", None]}, description="Instead of rating: up or down."),
    ] = None
    reason: Annotated[
        Text | None, Field(json_schema_extra={"maxLength": MAX_REASON}, description="Why, for administrators.")
    ] = None


class FeedbackResponse(BaseModel):
    """What the feedback did."""

    trace_id: str = Field(description="The answer's trace.")
    feedback: str = Field(description="thumbs_up, thumbs_down or ignored.")
    changed: bool = Field(description="Whether it differs from your earlier feedback on this answer.")
    effect: str = Field(description="recorded, case_made or case_voted.")
    case_id: str | None = Field(description="The case that was made or voted on; null if none.")
    note: str = Field(description="Why there is no case; empty if there is one.")
