"""`/taxonomy`: versions of the category tree, their differences, and activation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field, WithJsonSchema

from dtrag.core.access.scope import Access
from dtrag.core.access.taxonomy_impact import Preview, TreeVersion
from dtrag.core.access.visible_tree import Branch, pruned, seen_version
from dtrag.core.taxonomy.grades import TreeGrades
from dtrag.core.taxonomy.operations import MOST_OPERATIONS
from dtrag.core.taxonomy.tree import ROOT, Taxonomy
from dtrag.core.taxonomy.versions import Diff, parse_version
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, BROWSE, READ, READ_WHOLE_TREE, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.errors import NotFound
from dtrag.governance.taxonomy import ACTIVE

router = APIRouter(route_class=JsonRoute, tags=["taxonomy"])

_READ_ERRORS = failures(403, 404, 422, 503)
_UPSTREAM_ERRORS = failures(403, 404, 422, 502, 503)
_CHANGE_ERRORS = failures(400, 403, 404, 409, 413, 415, 422, 503)
Version = Annotated[
    str,
    Path(
        max_length=100, description="A semantic version or `active`; with a scope `active` or the version shown to you."
    ),
]


_OPERATION = {
    "type": "array",
    "maxItems": MOST_OPERATIONS,
    "items": {
        "type": "object",
        "required": ["op"],
        "properties": {"op": {"enum": ["add", "rename", "move", "merge", "split", "delete", "grade"]}},
    },
}


class VersionList(BaseModel):
    """All versions, the newest first."""

    versions: list[TreeVersion] = Field(description="The versions.")


class TreeShape(BaseModel):
    """The tree of a version."""

    version: str = Field(description="The version.")
    tree: tuple[Branch, ...] = Field(description="The top-level categories.")


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
    """Whether wider access and lower grades are accepted."""

    accept_widening: bool = Field(False, description="false: a version that widens anyone's access is refused.")
    accept_lowering: bool = Field(False, description="false: a version that lowers the grade of documents is refused.")


@router.get("/taxonomy", responses=failures(403, 503), dependencies=READ_WHOLE_TREE)
async def versions(request: Request) -> VersionList:
    """All versions of the category tree, the newest first, each with its operations."""
    stored = await app_of(request).taxonomy.versions()
    return VersionList(versions=stored)


@router.get("/taxonomy/{version}/tree", responses=_READ_ERRORS, dependencies=BROWSE)
async def tree(request: Request, version: Version) -> TreeShape:
    """The tree of a version, with the current number of documents in each category.

    With a scope: your branches and their ancestors in the active version.
    """
    taxonomy = app_of(request).taxonomy
    access = caller_of(request).access
    active = await taxonomy.tree()
    if access.resolved(active).nodes is not None:
        return _own_tree(taxonomy.grades.of(active), version, access, await taxonomy.counts())
    whole = await taxonomy.tree(version)
    grades, shown = taxonomy.grades.of(whole), frozenset(whole.nodes)
    return TreeShape(version=whole.version, tree=_below(grades, ROOT, shown, await taxonomy.counts(), with_ids=True))


@router.get("/api/taxonomy/tree/{version}", responses=_UPSTREAM_ERRORS, dependencies=READ)
async def tree_by_version(request: Request, version: Version) -> TreeShape:
    """The tree of a version from the service at `TAXONOMY_BASE`; without that setting dtrag's own tree.

    With a scope: your branches in the active version, as far as dtrag's own tree has them, too.
    """
    app = app_of(request)
    if app.taxonomy_service is None:
        return await tree(request, version)
    access = caller_of(request).access
    active = await app.taxonomy.tree()
    if access.resolved(active).nodes is None:
        if version != ACTIVE:
            parse_version(version)
        sent = await app.taxonomy_service.tree(version)
        return TreeShape(version=sent.version, tree=_by_name(sent.branches))
    own = _own_version(active, version, access)
    sent = await app.taxonomy_service.tree(ACTIVE)
    return TreeShape(version=own, tree=_by_name(pruned(sent.branches, active, access.resolved(active))))


@router.get("/taxonomy/{version}/diff/{base}", responses=_READ_ERRORS, dependencies=READ_WHOLE_TREE)
async def diff(request: Request, version: Version, base: Version) -> Diff:
    """The differences between a version and its base."""
    return await app_of(request).taxonomy.diff(version, base)


@router.get("/taxonomy/{version}/preview", responses=failures(403, 404, 409, 422, 503), dependencies=ADMIN_WHOLE_TREE)
async def preview(request: Request, version: Version) -> Preview:
    """Which documents would move, and which keys and agents would gain or lose access."""
    return await app_of(request).taxonomy.preview(version)


@router.post("/taxonomy", responses=_CHANGE_ERRORS, dependencies=ADMIN_WHOLE_TREE)
async def propose(request: Request, body: ProposeBody) -> TreeVersion:
    """Store a new version; it has no effect until it is activated."""
    proposed = await app_of(request).taxonomy.propose(
        body.operations, body.rationale, parent=body.parent, version=body.version, by=caller_of(request).name
    )
    request.state.subjects = [proposed.version]
    return proposed


@router.post("/taxonomy/{version}/activate", responses=_CHANGE_ERRORS, dependencies=ADMIN_WHOLE_TREE)
async def activate(request: Request, version: Version, body: BringInBody) -> Preview:
    """Activate a proposed version."""
    request.state.subjects = [version]
    return await app_of(request).taxonomy.activate(
        version,
        accept_widening=body.accept_widening,
        accept_lowering=body.accept_lowering,
        by=caller_of(request).name,
    )


@router.post("/taxonomy/{version}/rollback", responses=_CHANGE_ERRORS, dependencies=ADMIN_WHOLE_TREE)
async def rollback(request: Request, version: Version, body: BringInBody) -> Preview:
    """Return to an earlier active version."""
    request.state.subjects = [version]
    return await app_of(request).taxonomy.rollback(
        version,
        accept_widening=body.accept_widening,
        accept_lowering=body.accept_lowering,
        by=caller_of(request).name,
    )


def _own_tree(grades: TreeGrades, version: str, access: Access, counts: Mapping[int, int]) -> TreeShape:
    """The branches of a caller with a scope in the active tree. Raises `NotFound` for every other version.

    The list of versions would reveal changes in the rest of the tree. `counts` are those of all nodes.
    """
    active = grades.taxonomy
    own = _own_version(active, version, access)
    nodes = access.resolved(active).nodes or frozenset()
    visible = {node: number for node, number in counts.items() if node in nodes}
    return TreeShape(version=own, tree=_below(grades, ROOT, active.with_above(nodes), visible, with_ids=False))


def _own_version(active: Taxonomy, version: str, access: Access) -> str:
    """The active version as a caller with a scope sees it. Raises `NotFound` for every other version."""
    own = seen_version(active, access.resolved(active))
    if version not in {ACTIVE, own}:
        parse_version(version)
        raise NotFound("There is no such version of the category tree that you may see. Ask for active.")
    return own


def _by_name(branches: Sequence[Branch]) -> tuple[Branch, ...]:
    """The categories of an external tree in the order of their names."""
    ordered = sorted(branches, key=lambda branch: branch.name)
    return tuple(replace(branch, children=_by_name(branch.children)) for branch in ordered)


def _below(
    grades: TreeGrades, parent: int, shown: frozenset[int], counts: Mapping[int, int], *, with_ids: bool
) -> tuple[Branch, ...]:
    """The shown categories below the parent, optionally with their ids."""
    taxonomy = grades.taxonomy
    children = [taxonomy.nodes[node] for node in taxonomy.children.get(parent, {}).values() if node in shown]
    return tuple(
        Branch(
            node.node_id if with_ids else None,
            node.name,
            taxonomy.path(node.node_id),
            counts.get(node.node_id, 0),
            _below(grades, node.node_id, shown, counts, with_ids=with_ids),
            grades.name(node.node_id),
        )
        for node in sorted(children, key=lambda node: node.key)
    )
