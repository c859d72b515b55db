"""`GET /settings`, for administrators of the whole tree; `GET /statements/{language}`: sentences of the service."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, READ
from dtrag.delivery.api.routing import failures
from dtrag.delivery.texts import korean_settings, korean_statements
from dtrag.logs import redact
from dtrag.settings import FLAGS, flag

router = APIRouter()


class SettingShape(BaseModel):
    """A setting."""

    name: str = Field(description="Its name, as in Python.")
    environment: str = Field(description="Its environment variable.")
    value: str | int | float | None = Field(description="Its value; `(set)` for a secret that is set.")
    default: str | int | float | None = Field(description="Its default.")
    is_default: bool = Field(description="Whether it has its default value.")
    secret: bool = Field(description="Whether its value is never shown.")
    description: str = Field(description="What it means.")


class FlagShape(BaseModel):
    """A flag, which is read for every request."""

    name: str = Field(description="Its name; the variable is FEATURE_ and the name in upper case.")
    on: bool = Field(description="Whether it is on now.")
    description: str = Field(description="What it switches.")


class SettingsShape(BaseModel):
    """The settings of the service."""

    settings: list[SettingShape] = Field(description="All settings.")
    flags: list[FlagShape] = Field(description="All flags.")


@router.get("/settings", tags=["settings"], responses=failures(403, 503), dependencies=ADMIN_WHOLE_TREE)
async def settings(request: Request) -> SettingsShape:
    """The settings with which the service was started, and the flags as they are now. Secrets are not shown.

    An `Accept-Language` that begins with `ko` gives the descriptions in Korean.
    """
    korean = korean_settings() if request.headers.get("accept-language", "").lower().startswith("ko") else {}
    return SettingsShape(
        settings=[
            SettingShape(
                name=row["name"],
                environment=row["environment"],
                value=_shown(row["value"]),
                default=_shown(row["default"]),
                is_default=row["is_default"],
                secret=row["secret"],
                description=korean.get(row["name"], row["help"]),
            )
            for row in service_of(request).settings.rows()
        ],
        flags=[
            FlagShape(name=each.name, on=flag(each.name), description=korean.get(each.name, each.help))
            for each in FLAGS
        ],
    )


def _shown(value: str | int | float | None) -> str | int | float | None:
    """The value without passwords inside addresses."""
    return redact(value) if isinstance(value, str) else value


@router.get("/statements/{language}", tags=["statements"], responses=failures(403, 422), dependencies=READ)
async def statements(
    language: Annotated[Literal["ko"], Path(description="The language: ko. English is in the statements themselves.")],
) -> dict[str, str]:
    """The texts of statements by code; `{name}` in a text stands for the value of that name."""
    return korean_statements()
