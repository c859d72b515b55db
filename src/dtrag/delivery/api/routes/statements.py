"""`GET /statements/{language}`: the sentences of the service in another language than English, by their codes."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path

from dtrag.delivery.api.permissions import READ
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.texts import korean_statements

router = APIRouter(tags=["statements"], dependencies=READ)


@router.get("/statements/{language}", responses=failures(403, 422))
async def statements(
    language: Annotated[Literal["ko"], Path(description="The language: ko. English is in the statements themselves.")],
) -> dict[str, str]:
    """The texts of statements by code; `{name}` in a text stands for the value of that name."""
    return korean_statements()
