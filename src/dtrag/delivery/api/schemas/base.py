"""What bodies and query parameters of several routes share."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.statements import Statement

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


MAX_OFFSET = 1_000_000_000
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Number of entries to skip.")]
ReasonStatements = Annotated[tuple[Statement, ...], Field(description="The sentences of reason with codes.")]
NoteStatements = Annotated[tuple[Statement, ...], Field(description="The notes with codes.")]


def extended(kind: type[T], value: DataclassInstance, **more: object) -> T:
    """A value of a subclass of the value's class, with `more` fields."""
    values = {each.name: getattr(value, each.name) for each in fields(kind) if each.init and each.name not in more}
    return kind(**values, **more)


class StrictBody(BaseModel):
    """A request body without unknown fields and type conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)
