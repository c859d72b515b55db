"""The version of the category tree in which a request means its categories."""

from __future__ import annotations

from dtrag.core.access.visible_tree import seen_version
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.taxonomy.versions import active_paths, parse_version
from dtrag.errors import NotFound
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import PipelineState

ACTIVE = "active"
"""In the place of a version: the active one."""


async def paths_in_active_tree(state: PipelineState, run: Run) -> list[list[str]] | None:
    """The paths of the state's filter as they are in the active tree, None without a filter; adds a note.

    Raises `InvalidInput` for what is not a version, and `NotFound` for a version that there is not.
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
        found = active_paths(path, version, active)
        translated += found
        missing += [] if found else [str(path)]
    state.notes.append(
        f"The categories are those of version {version.version} of the tree, with the documents that they have now, in "
        f"version {active.version}."
    )
    if missing:
        state.notes.append(f"Of these categories the active tree has none: {', '.join(missing)}.")
    return translated


async def _inactive(requested: str, run: Run) -> Taxonomy | None:
    """The tree of the requested version; None for the active one.

    With a scope all versions but the active one are unknown: they tell how often the rest of the tree has changed.
    """
    parse_version(requested)
    active = (await run.index.snapshot()).taxonomy
    scope = run.scope.resolved(active)
    if requested == seen_version(active, scope):
        return None
    if scope.nodes is not None:
        raise NotFound("There is no such version of the category tree that you may see. Ask for active.")
    found = await run.tree_of(requested)
    if found is None:
        raise NotFound(f"There is no version {requested!r} of the category tree. List them with: dtrag taxonomy list")
    return found
