"""What bodies and query parameters of several routes share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict


def _isoformat(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


TimeText = Annotated[str, BeforeValidator(_isoformat)]
"""A time in ISO 8601; `datetime` attributes of core values are converted."""
MAX_OFFSET = 1_000_000_000
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Number of entries to skip.")]


class StrictBody(BaseModel):
    """A request body without unknown fields and type conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)
