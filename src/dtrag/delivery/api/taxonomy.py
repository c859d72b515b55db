"""`/taxonomy`: versions of the category tree, what tells them apart, and which one is in force."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from dtrag.core.scope import Scope
from dtrag.core.taxonomy import ROOT, Taxonomy
from dtrag.delivery.api.body import JsonRoute
from dtrag.delivery.api.callers import caller_of, needs
from dtrag.delivery.api.failures import failures
from dtrag.delivery.api.state import app_of
from dtrag.delivery.api.taxonomy_shapes import (
    BringInBody,
    DiffShape,
    NodeShape,
    PreviewShape,
    ProposeBody,
    TreeShape,
    VersionList,
    VersionShape,
)

router = APIRouter(tags=["taxonomy"])
posting = APIRouter(route_class=JsonRoute, tags=["taxonomy"])

READ = [Depends(needs("read"))]
WHOLE = [Depends(needs("read", whole_tree=True))]
ADMIN = [Depends(needs("admin", whole_tree=True))]
_READ = failures(403, 404, 422, 503)
_CHANGE = failures(400, 403, 404, 409, 413, 415, 422, 503)
Version = Annotated[str, Path(max_length=100, description="A semantic version, or `active`.")]


@router.get("/taxonomy", responses=failures(403, 503), dependencies=WHOLE)
async def versions(request: Request) -> VersionList:
    """All versions of the category tree, the newest first, each with its operations."""
    found = await app_of(request).taxonomy.versions()
    return VersionList(versions=[VersionShape.model_validate(row.as_dict()) for row in found])


@router.get("/taxonomy/{version}/tree", responses=_READ, dependencies=READ)
async def tree(request: Request, version: Version) -> TreeShape:
    """The tree of a version: your branches, and the names above them. Documents are counted where they hang now."""
    taxonomy = app_of(request).taxonomy
    found = await taxonomy.tree(version)
    scope = caller_of(request).access.resolved(found)
    # What may be counted is what may be seen now, whatever the version that is looked at.
    now = caller_of(request).access.resolved(await taxonomy.tree())
    counts = {node: number for node, number in (await taxonomy.counts()).items() if _holds(now, node)}
    return TreeShape(version=found.version, tree=_below(found, ROOT, _shown(found, scope), counts))


router.add_api_route(
    "/api/taxonomy/tree/{version}", tree, methods=["GET"], responses=_READ, dependencies=READ, name="tree_by_version"
)


@router.get("/taxonomy/{version}/diff/{base}", responses=_READ, dependencies=WHOLE)
async def diff(request: Request, version: Version, base: Version) -> DiffShape:
    """What a version has and its base has not, and the other way round."""
    return DiffShape.model_validate((await app_of(request).taxonomy.diff(version, base)).as_dict())


@router.get("/taxonomy/{version}/preview", responses=failures(403, 404, 409, 422, 503), dependencies=ADMIN)
async def preview(request: Request, version: Version) -> PreviewShape:
    """Which documents would move, and which keys and agents would see more or less."""
    return PreviewShape.model_validate((await app_of(request).taxonomy.preview(version)).as_dict())


@posting.post("/taxonomy", responses=_CHANGE, dependencies=ADMIN)
async def propose(request: Request, body: ProposeBody) -> VersionShape:
    """Keep a new version; it is not in force until it is activated."""
    found = await app_of(request).taxonomy.propose(
        body.operations, body.rationale, parent=body.parent, version=body.version, by=caller_of(request).name
    )
    request.state.subjects = [found.version]
    return VersionShape.model_validate(found.as_dict())


@posting.post("/taxonomy/{version}/activate", responses=_CHANGE, dependencies=ADMIN)
async def activate(request: Request, version: Version, body: BringInBody) -> PreviewShape:
    """Bring a proposed version into force."""
    request.state.subjects = [version]
    done = await app_of(request).taxonomy.activate(
        version, accept_widening=body.accept_widening, by=caller_of(request).name
    )
    return PreviewShape.model_validate(done.as_dict())


@posting.post("/taxonomy/{version}/rollback", responses=_CHANGE, dependencies=ADMIN)
async def rollback(request: Request, version: Version, body: BringInBody) -> PreviewShape:
    """Go back to a version that was in force."""
    request.state.subjects = [version]
    done = await app_of(request).taxonomy.rollback(
        version, accept_widening=body.accept_widening, by=caller_of(request).name
    )
    return PreviewShape.model_validate(done.as_dict())


def _holds(scope: Scope, node: int) -> bool:
    return scope.nodes is None or node in scope.nodes


def _shown(taxonomy: Taxonomy, scope: Scope) -> frozenset[int]:
    """The nodes in scope, and those above them."""
    if scope.nodes is None:
        return frozenset(taxonomy.nodes)
    shown: set[int] = set()
    for node in scope.nodes:
        current = node
        while current in taxonomy.nodes and current not in shown:
            shown.add(current)
            current = taxonomy.nodes[current].parent_id
    return frozenset(shown)


def _below(
    taxonomy: Taxonomy, parent: int, shown: frozenset[int], counts: dict[int, int], *, numbered: bool
) -> list[NodeShape]:
    """The shown categories below the parent; `numbered`: with their ids."""
    children = [taxonomy.nodes[node] for node in taxonomy.children.get(parent, {}).values() if node in shown]
    return [
        NodeShape(
            node_id=node.node_id if numbered else None,
            name=node.name,
            path=list(taxonomy.path(node.node_id)),
            documents=counts.get(node.node_id, 0),
            children=_below(taxonomy, node.node_id, shown, counts, numbered=numbered),
        )
        for node in sorted(children, key=lambda node: node.key)
    ]


router.include_router(posting)
