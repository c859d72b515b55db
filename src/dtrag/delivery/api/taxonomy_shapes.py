"""What `/taxonomy` takes and gives."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.operations import MOST_OPERATIONS

_OPERATION = {
    "type": "array",
    "maxItems": MOST_OPERATIONS,
    "items": {
        "type": "object",
        "required": ["op"],
        "properties": {"op": {"enum": ["add", "rename", "move", "merge", "split", "delete"]}},
    },
}


class VersionShape(BaseModel):
    """One version of the category tree."""

    version: str
    parent: str | None = Field(description="The version that the operations change; null for the first.")
    rationale: str
    active: bool = Field(description="Whether it is in force.")
    operations: list[dict[str, Any]]
    created_by: str
    created_at: str
    activated_at: str | None = Field(description="When it last came into force; null: never.")


class VersionList(BaseModel):
    """All versions, the newest first."""

    versions: list[VersionShape]


class NodeShape(BaseModel):
    """A category with those below it, as far as the caller may see."""

    node_id: int
    name: str
    path: list[str]
    documents: int = Field(description="Documents on the category itself; 0 outside the caller's branches.")
    children: list[NodeShape]


class TreeShape(BaseModel):
    """The tree of a version."""

    version: str
    tree: list[NodeShape]


class PairShape(BaseModel):
    """A category before and after."""

    model_config = ConfigDict(populate_by_name=True)

    before: list[str] = Field(alias="from")
    to: list[str]


class DiffShape(BaseModel):
    """What a version has and its base has not, and the other way round."""

    base: str
    version: str
    added: list[list[str]]
    removed: list[list[str]]
    moved: list[PairShape]
    renamed: list[PairShape]
    merged: list[PairShape]


class ProposeBody(BaseModel):
    """A change of the tree."""

    model_config = ConfigDict(extra="forbid", strict=True)

    operations: Annotated[list[Any], WithJsonSchema(_OPERATION)] = Field(
        max_length=MOST_OPERATIONS, description="In order; docs/taxonomy.md describes each."
    )
    rationale: str = Field("", max_length=2_000, description="Why.")
    parent: str | None = Field(None, max_length=100, description="The version to change; null: the one in force.")
    version: str | None = Field(None, max_length=100, description="Its number; null: the next by what is done.")


class BringInBody(BaseModel):
    """Whether it is accepted that somebody comes to see more."""

    model_config = ConfigDict(extra="forbid", strict=True)

    accept_widening: bool = False


class MovedShape(PairShape):
    """Documents that go from one category to another; an empty path is no category."""

    documents: int
    titles: list[str]


class ExampleShape(BaseModel):
    """A document, and where it will hang."""

    title: str
    path: list[str]


class ReachShape(BaseModel):
    """What a key or an agent comes to see, and sees no more."""

    kind: str
    name: str
    gained: int
    lost: int
    gains: list[ExampleShape]
    losses: list[ExampleShape]


class PreviewShape(BaseModel):
    """What bringing a version into force does."""

    version: str
    active: str = Field(description="The version in force before.")
    documents: int = Field(description="Documents that go elsewhere.")
    moved: list[MovedShape]
    access: list[ReachShape]
