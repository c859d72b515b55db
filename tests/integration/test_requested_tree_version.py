"""`PipelineRequest.taxonomy_version`: in which tree the categories of a question are meant (real database)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtrag.app import App
from dtrag.core.access.scope import Access, Grant
from dtrag.core.access.visible_tree import seen_version
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput, NotFound
from dtrag.pipeline.state import PipelineRequest, PipelineResponse

QUESTION = "How many days of parental leave are there?"
TEXTS = {
    "HR/Leave": "Parental leave of the office takes at most 90 days.",
    "HR/Travel": "Parental leave during travel takes at most 30 days.",
    "Plant": "Parental leave of the plant takes at most 60 days.",
}


async def _filled(app: App, folder: Path) -> App:
    for category, text in TEXTS.items():
        file = folder / f"{category.replace('/', '-')}.md"
        file.write_text(f"# {category.rpartition('/')[2]}\n\n{text}\n", "utf-8")
        assert not (await app.ingest(file, category)).failed
    return app


async def _asked(app: App, path: str | None, version: str | None, scope: Access | None = None) -> PipelineResponse:
    categories = None if path is None else [path.split("/")]
    request = PipelineRequest(query=QUESTION, taxonomy_version=version, canonical_filter=categories)
    return await app.pipeline.execute(request, scope=scope)


def _found(response: PipelineResponse) -> set[str]:
    return {"/".join(chunk.taxonomy_path) for chunk in response.retrieved_chunks}


async def test_categories_are_read_in_the_tree_of_the_requested_version(app: App, tmp_path: Path) -> None:
    await _filled(app, tmp_path)
    first = (await app.taxonomy.tree()).version
    changes = [
        {"op": "move", "path": "HR/Travel", "to": "Plant"},
        {"op": "rename", "path": "HR/Leave", "name": "Absence"},
        {"op": "rename", "path": "HR", "name": "People"},
    ]
    second = (await app.taxonomy.propose(changes)).version
    await app.taxonomy.activate(second, accept_widening=True)

    old = await _asked(app, "HR", first)
    assert _found(old) == {"People/Absence", "Plant/Travel"}
    assert old.decision != "abstain"
    assert old.taxonomy_version == second
    assert any(f"version {first}" in note and f"version {second}" in note for note in old.notes)

    for version in (second, "active", None):
        assert _found(await _asked(app, "HR", version)) == set()
        now = await _asked(app, "Plant", version)
        assert _found(now) == {"Plant", "Plant/Travel"}
        assert not any("version" in note for note in now.notes)

    without_filter = await _asked(app, None, first)
    assert len(_found(without_filter)) == 3
    assert not any("version" in note for note in without_filter.notes)


async def test_a_deleted_category_is_empty_and_a_note_reports_it(app: App, tmp_path: Path) -> None:
    await _filled(app, tmp_path)
    first = (await app.taxonomy.tree()).version
    version = (await app.taxonomy.propose([{"op": "delete", "path": "Plant"}])).version
    await app.taxonomy.activate(version, accept_widening=True)
    for path in ("Plant", "Nowhere"):
        response = await _asked(app, path, first)
        assert _found(response) == set()
        assert response.decision == "abstain"
        assert any(path in note for note in response.notes)


async def test_an_unknown_version_is_refused(app: App, tmp_path: Path) -> None:
    await _filled(app, tmp_path)
    for path in ("HR", None):
        with pytest.raises(NotFound, match=r"no version '9\.9\.9' of the category tree"):
            await _asked(app, path, "9.9.9")
    with pytest.raises(InvalidInput, match="Invalid version format"):
        await _asked(app, "HR", "newest")


async def test_with_a_scope_no_number_of_a_version_is_confirmed(app: App, tmp_path: Path) -> None:
    await _filled(app, tmp_path)
    tree = await app.taxonomy.tree()
    scope = Access((Grant.of([CategoryPath.parse("HR")], tree),))
    for version in ("active", None, seen_version(tree, scope.resolved(tree))):
        assert _found(await _asked(app, "HR", version, scope)) == {"HR/Leave", "HR/Travel"}
    refusals = set()
    for version in (tree.version, "1.0.0", "9.9.9"):
        with pytest.raises(NotFound) as caught:
            await _asked(app, "HR", version, scope)
        refusals.add(str(caught.value))
    assert len(refusals) == 1
