"""Categories of a request that refer to another version of the tree than the active one."""

from __future__ import annotations

from dtrag.core.access.visible_tree import seen_version
from dtrag.core.statements import stated
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.taxonomy.versions import active_paths, parse_version
from dtrag.errors import Advice, NotFound
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import PipelineState

ACTIVE = "active"
"""The name of the active version."""


async def paths_in_active_tree(state: PipelineState, run: Run) -> list[list[str]] | None:
    """The filter's paths translated to the active tree (None without a filter), with a note about the translation.

    Raises `InvalidInput` for an invalid version, and `NotFound` for an unknown one.
    """
    paths = state.canonical_filter
    if run.taxonomy_version in {None, ACTIVE}:
        return paths
    version = await _inactive(str(run.taxonomy_version), run)
    if version is None or paths is None:
        return paths
    active = (await run.index.snapshot()).taxonomy
    translated, missing = [], []
    for path in map(CategoryPath.parse, paths):
        active_ones = active_paths(path, version, active)
        translated += active_ones
        missing += [] if active_ones else [str(path)]
    state.notes.append(
        stated(
            "earlier_tree",
            "The categories are those of version {version} of the tree, with the documents that they have now, in "
            "version {active}.",
            version=version.version,
            active=active.version,
        )
    )
    if missing:
        gone = "Of these categories the active tree has none: {categories}."
        state.notes.append(stated("categories_gone", gone, categories=", ".join(missing)))
    return translated


async def _inactive(requested: str, run: Run) -> Taxonomy | None:
    """The tree of the requested version; None for the active one.

    To a caller with a scope only the active version is known: others would reveal changes in the rest of the tree.
    """
    parse_version(requested)
    active = (await run.index.snapshot()).taxonomy
    scope = run.scope.resolved(active)
    if requested == seen_version(active, scope):
        return None
    if scope.nodes is not None:
        raise NotFound("There is no such version of the category tree that you may see. Ask for active.")
    tree = await run.tree_of(requested)
    if tree is None:
        raise NotFound(f"There is no version {requested!r} of the category tree.", Advice.LIST_VERSIONS)
    return tree
