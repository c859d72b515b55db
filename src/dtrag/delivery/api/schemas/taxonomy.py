"""Bodies and responses of `/taxonomy`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.taxonomy.operations import MOST_OPERATIONS
from dtrag.delivery.api.schemas.base import StrictBody

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
    parent: str | None = Field(description="The version to which the operations apply; null for the first.")
    rationale: str = Field(description="Why it was proposed.")
    active: bool = Field(description="Whether it is the active version.")
    operations: list[dict[str, object]] = Field(description="The operations on its parent, in order.")
    created_by: str = Field(description="Who proposed it.")
    created_at: str = Field(description="When, in ISO 8601.")
    activated_at: str | None = Field(description="When it was last activated; null if never.")


class VersionList(BaseModel):
    """All versions, the newest first."""

    versions: list[VersionShape] = Field(description="The versions.")


class NodeShape(BaseModel):
    """A category with its subcategories, as far as visible to the caller."""

    node_id: int | None = Field(
        description="The same in every version; null for a caller with a scope: ids are numbered over the whole "
        "tree and would reveal the number of categories."
    )
    name: str = Field(description="Its display name.")
    path: list[str] = Field(description="Names, outermost first.")
    documents: int = Field(description="Documents in the category itself; 0 outside the caller's branches.")
    children: list[NodeShape] = Field(description="Its subcategories.")


class TreeShape(BaseModel):
    """The tree of a version."""

    version: str = Field(description="The version.")
    tree: list[NodeShape] = Field(description="The top-level categories.")


class PairShape(BaseModel):
    """A category before and after."""

    model_config = ConfigDict(populate_by_name=True)

    before: list[str] = Field(alias="from", description="The path before.")
    to: list[str] = Field(description="The path after.")


class DiffShape(BaseModel):
    """The differences between a version and its base."""

    base: str = Field(description="The base version.")
    version: str = Field(description="The compared version.")
    added: list[list[str]] = Field(description="Categories that are not in the base.")
    removed: list[list[str]] = Field(description="Categories that are only in the base.")
    moved: list[PairShape] = Field(description="Categories with another parent.")
    renamed: list[PairShape] = Field(description="Categories with another name.")
    merged: list[PairShape] = Field(description="Categories whose documents were merged into another one.")


class ProposeBody(StrictBody):
    """A change of the tree."""

    operations: Annotated[list[Any], WithJsonSchema(_OPERATION)] = Field(
        max_length=MOST_OPERATIONS, description="In order; docs/how-to/taxonomy.md describes them."
    )
    rationale: str = Field("", max_length=2_000, description="Why.")
    parent: str | None = Field(None, max_length=100, description="The version to change; null: the active one.")
    version: str | None = Field(
        None, max_length=100, description="Its number; null: the next one, depending on the operations."
    )


class BringInBody(StrictBody):
    """Whether wider access is accepted."""

    accept_widening: bool = Field(False, description="false: a version that widens anyone's access is refused.")


class MovedShape(PairShape):
    """Documents that move from one category to another; an empty path means no category."""

    documents: int = Field(description="Number of documents.")
    titles: list[str] = Field(description="Examples.")


class ExampleShape(BaseModel):
    """A document and its future category."""

    title: str = Field(description="Its title.")
    path: list[str] = Field(description="Its future category; empty for none.")


class ReachShape(BaseModel):
    """The documents that a key or an agent gains and loses."""

    kind: str = Field(description="key or agent.")
    name: str = Field(description="Its name.")
    gained: int = Field(description="Documents that become visible to it.")
    lost: int = Field(description="Documents that become invisible to it.")
    gains: list[ExampleShape] = Field(description="Examples of gained documents.")
    losses: list[ExampleShape] = Field(description="Examples of lost documents.")


class PreviewShape(BaseModel):
    """The effects of activating a version."""

    version: str = Field(description="The version to activate.")
    active: str = Field(description="The active version.")
    documents: int = Field(description="Documents that move.")
    moved: list[MovedShape] = Field(description="Moved documents by category.")
    access: list[ReachShape] = Field(description="Keys and agents whose access changes.")
