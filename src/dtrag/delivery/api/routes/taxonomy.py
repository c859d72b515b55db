"""`/taxonomy`: versions of the category tree, what tells them apart, and which one is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from dtrag.core.access.scope import Access
from dtrag.core.access.visible_tree import pruned, seen_version
from dtrag.core.taxonomy.external_tree import Branch
from dtrag.core.taxonomy.tree import ROOT, Taxonomy
from dtrag.core.taxonomy.versions import parse_version
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.schemas.taxonomy import (
    BringInBody,
    DiffShape,
    NodeShape,
    PreviewShape,
    ProposeBody,
    TreeShape,
    VersionList,
    VersionShape,
)
from dtrag.errors import NotFound
from dtrag.governance.taxonomy import ACTIVE

router = APIRouter(tags=["taxonomy"])
posting = APIRouter(route_class=JsonRoute, tags=["taxonomy"])

READ = [Depends(needs("read"))]
WHOLE = [Depends(needs("read", whole_tree=True))]
ADMIN = [Depends(needs("admin", whole_tree=True))]
_READ = failures(403, 404, 422, 503)
_READ_ELSEWHERE = failures(403, 404, 422, 502, 503)
_CHANGE = failures(400, 403, 404, 409, 413, 415, 422, 503)
Version = Annotated[
    str, Path(max_length=100, description="A semantic version, or `active`; with a scope `active`, or as it was shown.")
]


@router.get("/taxonomy", responses=failures(403, 503), dependencies=WHOLE)
async def versions(request: Request) -> VersionList:
    """All versions of the category tree, the newest first, each with its operations."""
    found = await app_of(request).taxonomy.versions()
    return VersionList(versions=[VersionShape.model_validate(row.as_dict()) for row in found])


@router.get("/taxonomy/{version}/tree", responses=_READ, dependencies=READ)
async def tree(request: Request, version: Version) -> TreeShape:
    """The tree of a version, with documents counted where they hang now.

    With a scope it is your branches and the names above them, in the version in force: `active`.
    """
    taxonomy = app_of(request).taxonomy
    access = caller_of(request).access
    if access.grants:
        return _own_tree(await taxonomy.tree(), version, access, await taxonomy.counts())
    found = await taxonomy.tree(version)
    shown = frozenset(found.nodes)
    return TreeShape(version=found.version, tree=_below(found, ROOT, shown, await taxonomy.counts(), numbered=True))


@router.get("/api/taxonomy/tree/{version}", responses=_READ_ELSEWHERE, dependencies=READ)
async def tree_by_version(request: Request, version: Version) -> TreeShape:
    """The tree of a version, as the service that `TAXONOMY_BASE` names has it; without that setting as dtrag has it.

    With a scope it is your branches in the active version: the categories that dtrag's own tree has, too.
    """
    app = app_of(request)
    if app.taxonomy_service is None:
        return await tree(request, version)
    access = caller_of(request).access
    if not access.grants:
        if version != ACTIVE:
            parse_version(version)
        sent = await app.taxonomy_service.tree(version)
        return TreeShape(version=sent.version, tree=_sent(sent.branches, ()))
    active = await app.taxonomy.tree()
    own = _own_version(active, version, access)
    sent = await app.taxonomy_service.tree(ACTIVE)
    return TreeShape(version=own, tree=_sent(pruned(sent.branches, active, access.resolved(active)), ()))


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


def _own_tree(active: Taxonomy, version: str, access: Access, counts: Mapping[int, int]) -> TreeShape:
    """The branches of a caller with a scope, in the tree in force. Raises `NotFound` for every other version.

    Which versions there are tells how often the rest of the tree has changed. `counts` are those of all nodes.
    """
    own = _own_version(active, version, access)
    nodes = access.resolved(active).nodes or frozenset()
    seen = {node: number for node, number in counts.items() if node in nodes}
    return TreeShape(version=own, tree=_below(active, ROOT, active.with_above(nodes), seen, numbered=False))


def _own_version(active: Taxonomy, version: str, access: Access) -> str:
    """The active version as a caller with a scope sees it. Raises `NotFound` for every other version."""
    own = seen_version(active, access.resolved(active))
    if version not in {ACTIVE, own}:
        parse_version(version)
        raise NotFound("There is no such version of the category tree that you may see. Ask for active.")
    return own


def _sent(branches: Sequence[Branch], above: tuple[str, ...]) -> list[NodeShape]:
    """The categories that another service sent, with their paths."""
    return [
        NodeShape(
            node_id=branch.node_id,
            name=branch.name,
            path=[*above, branch.name],
            documents=branch.documents,
            children=_sent(branch.children, (*above, branch.name)),
        )
        for branch in sorted(branches, key=lambda branch: branch.name)
    ]


def _below(
    taxonomy: Taxonomy, parent: int, shown: frozenset[int], counts: Mapping[int, int], *, numbered: bool
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
