"""Syncing a source: what it holds, and who may read it there. No right is wider at any moment than before or after."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from dtrag.app import App, open_app
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.confinement import OWNER
from dtrag.core.job import Job
from dtrag.core.source_rights import Rights, RightsEntry, everyone, shown, user
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import Conflict, InvalidInput, SourceUnavailable
from dtrag.ingestion.sources import Source
from dtrag.settings import Settings
from tests.rounds import seeds
from tests.shelf import GROUPS, SITE, STRANGER, USERS, Shelf, change, random_gate

BRANCH = CategoryPath.parse("Shared drive")
ALL = everyone(SITE)
ANN, BO = USERS[:2]
NAMES = ("boiler", "garden", "stairs")


def text_of(name: str) -> str:
    return f"# About the {name}\n\nThe {name} is looked after on Monday by the caretaker.\n"


def only(*who: str) -> Rights:
    return Rights.of([[RightsEntry(each, True) for each in who]])


@pytest.fixture
def shelf() -> Shelf:
    files = {f"{name}.md": text_of(name) for name in NAMES}
    return Shelf(files, {name: only(ALL) for name in files}, {ALL: set(USERS)})


async def callers_of(app: App) -> dict[str, Caller]:
    """A caller for each user, and `admin` with the whole tree."""
    await app.keys.create("admin", role="admin")
    callers = {}
    for who in (*USERS, STRANGER):
        callers[who] = (await app.keys.create(who.replace("/", "-"), principals=[shown(who)])).key.caller()
    return callers


async def read_by(app: App, caller: Caller) -> set[str]:
    """Names of the files whose documents the caller sees in lists."""
    return {summary.source_url.rpartition("/")[2] for summary in await app.documents(scope=caller.access)}


async def found_by(app: App, caller: Caller) -> set[str]:
    """Names of the files that a search gives the caller."""
    results, _ = await app.search("who looks after it on Monday", 10, mode="lexical", scope=caller.access)
    return {result.source_url.rpartition("/")[2] for result in results}


async def sync(app: App, shelf: Shelf, **options: Any) -> Any:
    return await app.sync(shelf, BRANCH, **options)


async def test_a_sync_reads_what_is_new_and_changed_and_nothing_else(app: App, shelf: Shelf) -> None:
    shelf.site = ""
    first = await sync(app, shelf)
    assert (first.documents, first.files) == (3, 3)
    shelf.fetched.clear()
    assert (await sync(app, shelf)).documents == 0
    assert shelf.fetched == []
    shelf.files["boiler.md"] += "\nAnd on Tuesday.\n"
    shelf.files["kettle.md"] = text_of("kettle")
    report = await sync(app, shelf)
    assert sorted(shelf.fetched) == ["boiler.md", "kettle.md"]
    assert report.documents == 2
    assert report.unchanged == 2
    urls = {summary.source_url for summary in await app.documents()}
    assert urls == {f"shelf://one/{name}" for name in shelf.files}


async def test_a_deleted_file_is_gone_after_one_sync_and_a_renamed_one_keeps_its_vectors(
    app: App, shelf: Shelf
) -> None:
    shelf.site = ""
    await sync(app, shelf)
    shelf.files["cellar.md"] = shelf.files.pop("stairs.md")
    del shelf.files["garden.md"]
    report = await sync(app, shelf)
    assert report.renamed == [("shelf://one/stairs.md", "shelf://one/cellar.md")]
    assert report.pruned == ["shelf://one/garden.md"]
    assert await found_by(app, LOCAL) == {"boiler.md", "cellar.md"}


async def test_a_lost_source_and_one_without_most_of_its_files_change_nothing(app: App, shelf: Shelf) -> None:
    shelf.site = ""
    await sync(app, shelf)
    shelf.lost = True
    with pytest.raises(SourceUnavailable, match="it is away"):
        await sync(app, shelf)
    shelf.lost = False
    del shelf.files["garden.md"], shelf.files["stairs.md"]
    with pytest.raises(InvalidInput, match="--force"):
        await sync(app, shelf)
    assert await found_by(app, LOCAL) == {f"{name}.md" for name in NAMES}
    await sync(app, shelf, force=True)
    assert await found_by(app, LOCAL) == {"boiler.md"}


async def test_a_plan_changes_nothing_and_says_what_a_sync_does(app: App, shelf: Shelf) -> None:
    shelf.site = ""
    await sync(app, shelf)
    shelf.files |= {"kettle.md": text_of("kettle"), "boiler.md": "# Other\n\nText.\n", "photo.xyz": "?"}
    del shelf.files["garden.md"]
    plan = await app.plan_sync(shelf)
    assert plan.added == ["shelf://one/kettle.md"]
    assert plan.changed == ["shelf://one/boiler.md"]
    assert plan.removed == ["shelf://one/garden.md"]
    assert [path for path, _ in plan.skipped] == ["shelf://one/photo.xyz"]
    assert await found_by(app, LOCAL) == {f"{name}.md" for name in NAMES}


async def test_a_file_that_cannot_be_fetched_is_reported_and_tried_again(app: App, shelf: Shelf) -> None:
    shelf.site = ""
    shelf.unreadable = {"garden.md"}
    report = await sync(app, shelf)
    assert [path for path, _ in report.failed] == ["shelf://one/garden.md"]
    assert report.documents == 2
    shelf.unreadable = set()
    assert (await sync(app, shelf)).documents == 1


async def test_an_interrupted_sync_continues_and_forgets_no_deletion(
    app: App, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.site = ""
    note = app._source_sync._note
    calls = 0

    async def ends(*values: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:  # the documents are there, their marks are not
            raise asyncio.CancelledError
        await note(*values)

    monkeypatch.setattr(app._source_sync, "_note", ends)
    with pytest.raises(asyncio.CancelledError):
        await sync(app, shelf)
    monkeypatch.undo()
    assert len(await found_by(app, LOCAL)) == 3
    del shelf.files["garden.md"]
    assert (await sync(app, shelf)).pruned == ["shelf://one/garden.md"]
    assert await found_by(app, LOCAL) == {"boiler.md", "stairs.md"}


async def test_two_syncs_of_one_source_exclude_each_other(app: App, shelf: Shelf) -> None:
    async with app._stores.sources.alone(shelf.address):
        with pytest.raises(Conflict, match="already"):
            await sync(app, shelf)
    await sync(app, replace(shelf, site=""))


async def test_a_source_with_rights_needs_keys_and_a_category_of_its_own(
    app: App, shelf: Shelf, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="without keys everybody"):
        await sync(app, shelf)
    await app.keys.create("admin", role="admin")
    other = tmp_path / "other.md"
    other.write_text("# Other\n\nOf somebody else.\n")
    await app.ingest([other], "Shared drive/Other")
    with pytest.raises(InvalidInput, match="1 documents that are not from"):
        await sync(app, shelf)
    await app.delete_document(str((await app.documents())[0].document_id))
    await sync(app, shelf)
    with pytest.raises(InvalidInput, match="Shared drive belongs to shelf:one"):
        await sync(app, replace(shelf, address="shelf:two"))


async def test_everybody_reads_what_the_source_lets_them_read(app: App, shelf: Shelf) -> None:
    callers = await callers_of(app)
    shelf.rights = {"boiler.md": only(ANN), "garden.md": only(GROUPS[0]), "stairs.md": Rights()}
    shelf.direct[GROUPS[0]] = {GROUPS[1], ANN}
    shelf.direct[GROUPS[1]] = {BO}
    await sync(app, shelf)
    assert await read_by(app, callers[ANN]) == {"boiler.md", "garden.md"}
    assert await found_by(app, callers[BO]) == {"garden.md"}
    assert await found_by(app, callers[STRANGER]) == set()
    editor = (await app.keys.create("whole tree", role="editor")).key.caller()
    assert await found_by(app, editor) == set()
    branch = (await app.keys.create("branch", ["Shared drive"], role="admin")).key.caller()
    assert await read_by(app, branch) == set()
    outside = (await app.keys.create("outside", ["Elsewhere"], principals=[shown(ANN)])).key.caller()
    assert await read_by(app, outside) == set()
    assert len(await app.documents(scope=OWNER)) == 3


async def test_what_a_document_says_of_its_category_does_not_open_it(app: App, shelf: Shelf) -> None:
    callers = await callers_of(app)
    open_to_all = (await app.keys.create("open", ["Open"])).key.caller()
    shelf.files = {"secret.md": "---\ncategory_path: [Open]\n---\n# Secret\n\nLooked after on Monday.\n"}
    shelf.rights = {"secret.md": only(ANN)}
    report = await sync(app, shelf)
    assert report.failed == []
    assert await read_by(app, open_to_all) == set()
    assert await read_by(app, callers[ANN]) == {"secret.md"}


async def test_documents_that_were_read_before_get_the_rights_of_the_source(
    app: App, shelf: Shelf, tmp_path: Path
) -> None:
    callers = await callers_of(app)
    copy = tmp_path / "boiler.md"
    copy.write_text(text_of("boiler"))
    await app.ingest_sources([Source(copy, "boiler.md", "shelf://one/boiler.md")], "Open")
    everybody = (await app.keys.create("open", ["Open"])).key.caller()
    assert await read_by(app, everybody) == {"boiler.md"}
    shelf.rights["boiler.md"] = only(ANN)
    await sync(app, shelf)
    assert await read_by(app, everybody) == set()
    assert await found_by(app, callers[ANN]) == {f"{name}.md" for name in NAMES}


async def test_a_revoked_right_is_gone_within_one_sync_also_from_cached_results(app: App, shelf: Shelf) -> None:
    callers = await callers_of(app)
    shelf.rights["garden.md"] = only(GROUPS[0])
    shelf.direct[GROUPS[0]] = {ANN, BO}
    await sync(app, shelf)
    for who in (ANN, BO):
        assert "garden.md" in await found_by(app, callers[who])
    shelf.direct[GROUPS[0]] = {BO}
    shelf.unreadable = {"boiler.md", "garden.md", "stairs.md"}
    await sync(app, shelf)
    assert "garden.md" not in await found_by(app, callers[ANN])
    assert "garden.md" in await found_by(app, callers[BO])
    shelf.rights["garden.md"] = only(ANN)
    await sync(app, shelf)
    assert "garden.md" in await found_by(app, callers[ANN])
    assert "garden.md" not in await found_by(app, callers[BO])


async def test_a_key_that_is_created_later_reads_as_its_user(app: App, shelf: Shelf) -> None:
    await app.keys.create("admin", role="admin")
    shelf.rights = dict.fromkeys(shelf.files, only(GROUPS[0]))
    shelf.direct[GROUPS[0]] = {ANN}
    await sync(app, shelf)
    ann = (await app.keys.create("ann", principals=[shown(ANN)])).key.caller()
    assert len(await found_by(app, ann)) == 3
    agent = await app.agents.create("1.0.0", [["Shared drive"]], name="Desk")
    with pytest.raises(InvalidInput, match="public key"):
        await app.keys.create("page", role="public", agent=agent, principals=[shown(ANN)])


class Watched:
    """A store that compares what everybody sees with what they may, after each of its changes."""

    def __init__(self, store: Any, compare: Any) -> None:
        self._store = store
        self._compare = compare

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("move", "restrict", "set_groups"):
            return found

        async def changed(*values: Any) -> Any:
            result = await found(*values)
            await self._compare(name)
            return result

        return changed


@asynccontextmanager
async def watching(
    app: App, allowed: Mapping[str, set[str]], callers: Mapping[str, Caller]
) -> AsyncIterator[list[Any]]:
    """Collects what a user sees while a sync runs and may not see."""
    widened: list[Any] = []

    async def compare(when: str) -> None:
        for who, caller in callers.items():
            if wider := await read_by(app, caller) - allowed[who]:
                widened.append((when, who, wider))

    sync_of_app = app._source_sync
    plain, sync_of_app._store = sync_of_app._store, Watched(sync_of_app._store, compare)
    try:
        yield widened
    finally:
        sync_of_app._store = plain
        await compare("at the end")


async def test_no_right_is_wider_at_any_moment_of_random_syncs(app: App, shelf: Shelf) -> None:
    """With renames of files and groups, deletions, nesting, groups that cannot be read, and a source that is lost."""
    callers = await callers_of(app)
    chance = random.Random(5)
    for name in ("attic", "bridge", "canal"):
        shelf.files[f"{name}.md"], shelf.rights[f"{name}.md"] = text_of(name), only(ALL)
    await sync(app, shelf)
    before = {who: set(shelf.files) for who in USERS} | {STRANGER: set()}
    seen = 0
    for number in seeds(40):
        change(shelf, chance, list(shelf.files))
        old = new = chance.choice(list(shelf.files))
        if chance.random() < 0.3:
            new = f"renamed{number}.md"
            shelf.files[new], shelf.rights[new] = shelf.files.pop(old), shelf.rights.pop(old)
            before = {who: names | ({new} if old in names else set()) for who, names in before.items()}
        elif chance.random() < 0.5:
            shelf.files[old] += f"\nAnd on day {number}.\n"
        if chance.random() < 0.5 and len(shelf.files) > 4:
            gone = chance.choice([name for name in shelf.files if name != new])
            del shelf.files[gone], shelf.rights[gone]
            added = f"added{number}.md"
            shelf.files[added], shelf.rights[added] = text_of(added), Rights.of([random_gate(chance)])
        shelf.lost = chance.random() < 0.1
        now = {who: {name for name in shelf.files if shelf.may_read(who, name)} for who in callers}
        allowed = {who: before[who] | now[who] | ({old} if new in now[who] else set()) for who in callers}
        async with watching(app, allowed, callers) as widened:
            if shelf.lost:
                with pytest.raises(SourceUnavailable):
                    await sync(app, shelf)
            else:
                await sync(app, shelf)
        assert widened == [], number
        if shelf.lost:
            shelf.lost = False
            before = allowed
            continue
        for who, caller in callers.items():
            visible = await read_by(app, caller)
            assert visible <= now[who], (number, who)
            assert shelf.broken or visible == now[who], (number, who)
            seen += len(visible)
        before = now
    assert seen > len(seeds(40))


async def test_the_same_user_name_at_another_site_is_somebody_else(app: App, shelf: Shelf) -> None:
    await callers_of(app)
    await sync(app, shelf)
    other = (await app.keys.create("other", principals=[shown(user("elsewhere", "ann"))])).key.caller()
    assert await read_by(app, other) == set()


async def ended(app: App, job_id: UUID) -> Job:
    while True:
        stored = await app._stores.jobs.get(job_id)
        if stored is not None and stored.state not in ("waiting", "running"):
            return stored
        await asyncio.sleep(0.05)


async def test_a_job_syncs_the_sources_of_the_setting(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "drive"
    folder.mkdir()
    (folder / "boiler.md").write_text(text_of("boiler"))
    async with open_app(replace(settings, sources=f"posix:{folder}=Drive")) as app:
        await app.keys.create("admin", role="admin")
        with pytest.raises(InvalidInput, match="Known: Drive"):
            await app.queue_sync("Other")
        job = await app.queue_sync()
        serving = asyncio.create_task(app.jobs.serve(tmp_path))
        async with asyncio.timeout(60):
            stored = await ended(app, job.job_id)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        assert (stored.state, stored.reason) == ("done", "")
        assert stored.result == {"counts": {"documents": 1, "removed": 0, "unchanged": 0}, "failed": []}
        assert (stored.done, stored.total) == (1, 1)
