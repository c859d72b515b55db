"""Liveness, readiness and health of the service."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dtrag.core.statements import statements_of
from dtrag.delivery.api.schemas.base import ReasonStatements

_RESPONSE = ConfigDict(from_attributes=True)


class Alive(BaseModel):
    """The process responds."""

    status: Literal["alive"] = Field(description="Always alive.")


class Ready(BaseModel):
    """The service can process requests."""

    status: Literal["ready"] = Field(description="Always ready; otherwise the status is 503.")


class Check(BaseModel):
    """One part of the service."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="Its state.")
    reason: str = Field(description="The reason for the state, or a detail.")
    reason_statements: ReasonStatements

    @classmethod
    def of(cls, status: Literal["healthy", "degraded", "unhealthy"], reason: str) -> Check:
        """The state with its reason."""
        return cls(status=status, reason=reason, reason_statements=statements_of(reason))


class Status(BaseModel):
    """The state of the service, for callers without a key."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="The worst state of the essential parts.")
    features: dict[str, str] = Field(description="The implemented features by work item.")


class Health(BaseModel):
    """The state of the service and its parts. The HTTP status is always 200."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="The worst state of the essential parts.")
    service: str = Field(description="dtrag.")
    version: str = Field(description="Its version.")
    features: dict[str, str] = Field(description="The implemented features by work item.")
    performance: dict[str, str] = Field(description="The performance targets of the service.")
    checks: dict[str, Check] = Field(
        description="database, index, filter, embedder; language model where one is configured; vectors while some are "
        "being made."
    )
