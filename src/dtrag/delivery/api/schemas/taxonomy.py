"""What `/taxonomy` takes and gives."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.taxonomy.operations import MOST_OPERATIONS

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

    version: str = Field(description="Its semantic version.")
    parent: str | None = Field(description="The version that the operations change; null for the first.")
    rationale: str = Field(description="Why it was made.")
    active: bool = Field(description="Whether it is in force.")
    operations: list[dict[str, Any]] = Field(description="What it makes of its parent, in order.")
    created_by: str = Field(description="Who proposed it.")
    created_at: str = Field(description="When, in ISO 8601.")
    activated_at: str | None = Field(description="When it last came into force; null: never.")


class VersionList(BaseModel):
    """All versions, the newest first."""

    versions: list[VersionShape] = Field(description="The versions.")


class NodeShape(BaseModel):
    """A category with those below it, as far as the caller may see."""

    node_id: int | None = Field(
        description="Stays the same in every version; null for a caller with a scope: ids are numbered over the whole "
        "tree, and would tell how many categories there are."
    )
    name: str = Field(description="As people read it.")
    path: list[str] = Field(description="Names from the top.")
    documents: int = Field(description="Documents on the category itself; 0 outside the caller's branches.")
    children: list[NodeShape] = Field(description="The categories below it.")


class TreeShape(BaseModel):
    """The tree of a version."""

    version: str = Field(description="Which version it is.")
    tree: list[NodeShape] = Field(description="The categories at the top.")


class PairShape(BaseModel):
    """A category before and after."""

    model_config = ConfigDict(populate_by_name=True)

    before: list[str] = Field(alias="from", description="The path before.")
    to: list[str] = Field(description="The path after.")


class DiffShape(BaseModel):
    """What a version has and its base has not, and the other way round."""

    base: str = Field(description="What it is compared with.")
    version: str = Field(description="What is compared.")
    added: list[list[str]] = Field(description="Categories that the base has not.")
    removed: list[list[str]] = Field(description="Categories that only the base has.")
    moved: list[PairShape] = Field(description="Categories below another one.")
    renamed: list[PairShape] = Field(description="Categories with another name.")
    merged: list[PairShape] = Field(description="Categories whose documents went into another one.")


class ProposeBody(BaseModel):
    """A change of the tree."""

    model_config = ConfigDict(extra="forbid", strict=True)

    operations: Annotated[list[Any], WithJsonSchema(_OPERATION)] = Field(
        max_length=MOST_OPERATIONS, description="In order; docs/how-to/taxonomy.md describes each."
    )
    rationale: str = Field("", max_length=2_000, description="Why.")
    parent: str | None = Field(None, max_length=100, description="The version to change; null: the one in force.")
    version: str | None = Field(None, max_length=100, description="Its number; null: the next by what is done.")


class BringInBody(BaseModel):
    """Whether it is accepted that somebody comes to see more."""

    model_config = ConfigDict(extra="forbid", strict=True)

    accept_widening: bool = Field(False, description="Without it a version by which somebody gains access is refused.")


class MovedShape(PairShape):
    """Documents that go from one category to another; an empty path is no category."""

    documents: int = Field(description="How many.")
    titles: list[str] = Field(description="Some of them.")


class ExampleShape(BaseModel):
    """A document, and where it will hang."""

    title: str = Field(description="Its title.")
    path: list[str] = Field(description="Where it will hang; empty for no category.")


class ReachShape(BaseModel):
    """What a key or an agent comes to see, and sees no more."""

    kind: str = Field(description="key or agent.")
    name: str = Field(description="Its name.")
    gained: int = Field(description="Documents that it comes to see.")
    lost: int = Field(description="Documents that it sees no more.")
    gains: list[ExampleShape] = Field(description="Some of the gained.")
    losses: list[ExampleShape] = Field(description="Some of the lost.")


class PreviewShape(BaseModel):
    """What bringing a version into force does."""

    version: str = Field(description="The version that comes into force.")
    active: str = Field(description="The version in force before.")
    documents: int = Field(description="Documents that go elsewhere.")
    moved: list[MovedShape] = Field(description="Where documents go, by category.")
    access: list[ReachShape] = Field(description="Who comes to see more or less.")
