"""Answers that are given again: the same, or different with a reason that was checked."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dtrag.app import App, open_app
from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import Access, Grant
from dtrag.core.answers.replay import Replay
from dtrag.core.documents import Answer
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.trace import Trace
from dtrag.errors import Conflict, InvalidInput, NotFound
from tests.rounds import seeds
from tests.store import Databases, Store

THINGS = ("kettle", "ladder", "lantern", "barrel")
CATEGORIES = ("Home/Kitchen", "Home/Garden", "Office")
CARS = "cars"
"""What a regulation is about, of which there will be a new edition."""


def question_on(thing: str) -> str:
    return f"What does the {thing} have?"


def text_on(thing: str, part: str) -> str:
    return f"# The {thing}\n\nThe {thing} has a {part}. It stands in the hall."


def regulation(day: str, text: str) -> str:
    return (
        f"# 차량관리규정\n\n## 제1조(목적)\n\n이 규정은 차량의 운행을 정한다.\n\n## 제2조(배차)\n\n{text}\n\n"
        f"## 부칙\n\n이 규정은 {day}부터 시행한다.\n"
    )


ON_CARS = "차량 배차는 사용하기 며칠 전까지 신청하나요?"


def before(days: int) -> str:
    return f"차량의 배차는 사용하기 {days}일 전까지 차량 배차 신청서로 신청한다."


async def edition(app: App, folder: Path, name: str, day: str, text: str) -> None:
    (folder / name).write_text(regulation(day, text), "utf-8")
    assert not (await app.ingest(folder / name, "Rules")).failed


@pytest.fixture(scope="module")
async def library(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with a document on each thing and a regulation, for copies."""
    folder = tmp_path_factory.mktemp("library")

    async def fill(app: App) -> None:
        for number, thing in enumerate(THINGS):
            await write(app, folder, thing, "valve", CATEGORIES[number % len(CATEGORIES)])
        await edition(app, folder, "2020.md", "2020. 3. 1.", before(3))

    return await databases_of_module.filled(fill)


async def write(app: App, folder: Path, thing: str, part: str, category: str | None = None) -> str:
    file = folder / f"{thing}.md"
    file.write_text(text_on(thing, part), "utf-8")
    report = await app.ingest([file], category)
    assert not report.failed
    return next((key for key in report.document_ids), "")


@asynccontextmanager
async def opened(databases: Databases, library: str, **settings: str) -> AsyncIterator[App]:
    async with open_app(databases.settings(of=library, **settings)) as app:
        yield app


async def asked(app: App, question: str, **options: object) -> Answer:
    """The answer, with its line of the audit log as a service writes it."""
    answer = await app.ask(question, **options)  # type: ignore[arg-type]
    await app.audit.note(
        "kim", "ask", scope=None, subjects=answer.audited_ids, decision="allowed", details=answer.audited_details
    )
    return answer


def codes(replayed: Replay) -> set[str]:
    return {reason.code for reason in replayed.reasons}


async def of(app: App, thing: str) -> str:
    return next(each.document_id for each in await app.documents() if each.title == f"The {thing}")


Change = Callable[[App, Path, str], Awaitable[None]]


async def _nothing(app: App, folder: Path, thing: str) -> None:
    """Nothing happens."""


async def _same_again(app: App, folder: Path, thing: str) -> None:
    await app.reindex()


async def _deleted(app: App, folder: Path, thing: str) -> None:
    await app.delete_document(await of(app, thing))


async def _other_text(app: App, folder: Path, thing: str) -> None:
    original = next(each for each in await app.documents() if each.title == f"The {thing}")
    file = Path(original.source_url.removeprefix("file://"))
    await write(app, file.parent, thing, "wheel", "/".join(original.taxonomy_path))
    await asyncio.to_thread(file.write_text, text_on(thing, "valve"), "utf-8")  # for the next copy of the database


async def _more(app: App, folder: Path, thing: str) -> None:
    (folder / f"more-{thing}.md").write_text(f"# More on the {thing}\n\nThe {thing} has a crank.", "utf-8")
    await app.ingest([folder / f"more-{thing}.md"], "Office")


async def _activate(app: App, *operations: dict[str, object]) -> None:
    version = await app.taxonomy.propose(list(operations))
    await app.taxonomy.activate(version.version, accept_widening=True)


async def _renamed(app: App, folder: Path, thing: str) -> None:
    await _activate(app, {"op": "rename", "path": "Home/Garden", "name": "Yard"})


async def _moved(app: App, folder: Path, thing: str) -> None:
    own = next("/".join(each.taxonomy_path) for each in await app.documents() if each.title == f"The {thing}")
    await _activate(app, {"op": "merge", "paths": [own], "into": next(other for other in CATEGORIES if other != own)})


async def _other_policy(app: App, folder: Path, thing: str) -> None:
    app.run = replace(app.run, policy="careful", identity={**app.run.identity, "reranker": "another"})


async def _new_edition(app: App, folder: Path, thing: str) -> None:
    await edition(app, folder, "2024.md", "2024. 3. 1.", before(7))


CHANGES: dict[str, tuple[Change, str]] = {
    "nothing": (_nothing, ""),
    "indexed again": (_same_again, ""),
    "deleted": (_deleted, "replay_document_deleted"),
    "other text": (_other_text, "replay_text_changed"),
    "another document": (_more, "replay_words_changed"),
    "renamed": (_renamed, "replay_tree_changed"),
    "merged": (_moved, "replay_document_moved"),
    "other settings": (_other_policy, "replay_setting_changed"),
    "new edition": (_new_edition, "replay_edition_superseded"),
}


@pytest.mark.parametrize("seed", seeds(13))
async def test_every_answer_is_the_same_or_explained(
    seed: int, databases: Databases, library: str, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    kinds = chance.sample(sorted(CHANGES), 4)
    for kind in kinds:
        change, expected = CHANGES[kind]
        async with opened(databases, library) as app:
            things = [*THINGS]
            chance.shuffle(things)
            questions = {thing: question_on(thing) for thing in things} | {CARS: ON_CARS}
            answers = {thing: await asked(app, question) for thing, question in questions.items()}
            assert all(f"The {thing} has a valve." in answers[thing].text for thing in things)
            assert "3일" in answers[CARS].text
            changed = CARS if kind == "new edition" else things[0]
            await change(app, tmp_path, changed)
            for thing, answer in answers.items():
                replayed = await app.replays.replay(answer.trace_id, question=questions[thing])
                assert replayed.explained, (kind, replayed)
                assert replayed.record == "confirmed"
                if not expected:
                    assert (replayed.same, codes(replayed)) == (True, set()), (kind, replayed)
            replayed = await app.replays.replay(answers[changed].trace_id, question=questions[changed])
            assert expected in codes(replayed) | {""}, (kind, replayed)
            others = {"deleted", "other text", "another document", "new edition"}
            assert replayed.same == (kind not in others), (kind, replayed)


async def test_a_newer_edition_is_named_and_the_texts_of_the_day_are_found_again(app: App, tmp_path: Path) -> None:
    await edition(app, tmp_path, "2020.md", "2020. 3. 1.", before(3))
    now, then = await asked(app, ON_CARS), await asked(app, ON_CARS, as_of="2021-01-01")
    assert "3일" in now.text
    assert "3일" in then.text
    await edition(app, tmp_path, "2024.md", "2024. 3. 1.", before(7))
    replayed = await app.replays.replay(now.trace_id, question=ON_CARS)
    assert "7일" in replayed.text
    assert not replayed.same
    assert {"replay_edition_superseded", "replay_passages_added"} <= codes(replayed)
    replayed = await app.replays.replay(then.trace_id, question=ON_CARS)
    assert replayed.text == then.text
    assert "replay_edition_superseded" in codes(replayed)
    assert replayed.explained


async def test_the_question_must_be_that_of_the_trace(databases: Databases, library: str) -> None:
    async with opened(databases, library) as app:
        answer = await asked(app, question_on("kettle"))
        with pytest.raises(InvalidInput, match="give it as it was asked"):
            await app.replays.replay(answer.trace_id)
        with pytest.raises(InvalidInput, match="not the question of the trace"):
            await app.replays.replay(answer.trace_id, question=question_on("ladder"))
        with pytest.raises(InvalidInput, match="without such filters"):
            await app.replays.replay(
                answer.trace_id, question=question_on("kettle"), filters={"content_types": ["text/plain"]}
            )
        spaced = question_on("kettle").replace(" ", "  ")
        assert (await app.replays.replay(answer.trace_id, question=spaced)).same
        app.run = replace(app.run, text_key=lambda: None)
        with pytest.raises(InvalidInput, match="another key"):
            await app.replays.replay(answer.trace_id, question=question_on("kettle"))
        with pytest.raises(NotFound):
            await app.replays.replay(uuid.uuid4(), question=question_on("kettle"))


async def test_filters_are_given_again_and_categories_are_known(databases: Databases, library: str) -> None:
    filters = {"content_types": ["text/markdown"]}
    async with opened(databases, library) as app:
        answer = await asked(app, question_on("kettle"), filters={**filters, "taxonomy_paths": ["Home"]})
        with pytest.raises(InvalidInput, match="other than categories"):
            await app.replays.replay(answer.trace_id, question=question_on("kettle"))
        with pytest.raises(InvalidInput, match="leave the filters by category out"):
            await app.replays.replay(
                answer.trace_id, question=question_on("kettle"), filters={**filters, "taxonomy_paths": ["Home"]}
            )
        await _renamed(app, Path(), "kettle")
        replayed = await app.replays.replay(answer.trace_id, question=question_on("kettle"), filters=filters)
        assert replayed.same
        outside = await asked(app, question_on("lantern"), filters={"taxonomy_paths": ["Home"]})
        assert outside.decision == "abstain"
        replayed = await app.replays.replay(outside.trace_id, question=question_on("lantern"))
        assert replayed.same


async def test_a_kept_question_needs_no_argument_and_an_erased_answer_is_noted(
    databases: Databases, library: str
) -> None:
    async with opened(databases, library, trace_text="on") as app:
        answer = await asked(app, question_on("barrel"))
        replayed = await app.replays.replay(answer.trace_id)
        assert (replayed.same, replayed.earlier_text, replayed.notes) == (True, answer.text, ())
        barrel = await of(app, "barrel")
        assert replayed.titles[barrel] == "The barrel"
        await app.delete_document(barrel)
        replayed = await app.replays.replay(answer.trace_id)
        assert barrel not in replayed.titles
        assert [note.code for note in replayed.notes] == ["replay_text_erased"]
        assert (replayed.earlier_text, replayed.same) == ("", False)


async def test_a_replay_covers_no_more_than_its_caller_and_the_asker_may_see(
    databases: Databases, library: str
) -> None:
    async with opened(databases, library) as app:
        taxonomy = (await app.index.snapshot()).taxonomy

        def of_branch(path: str, key: uuid.UUID) -> Caller:
            return Caller("kim", "reader", Access((Grant.of([CategoryPath.parse(path)], taxonomy),)), key)

        kim = of_branch("Home", uuid.uuid4())
        answer = await asked(app, question_on("lantern"), scope=kim.access, owner=kim.owner)
        assert answer.decision == "abstain", "the lantern is in the office"
        for caller in (kim, Caller("boss", "admin", Access(), uuid.uuid4())):
            assert (await app.replays.replay(answer.trace_id, question=question_on("lantern"), caller=caller)).same
        assert kim.key_id is not None
        with pytest.raises(NotFound):
            await app.replays.replay(
                answer.trace_id, question=question_on("lantern"), caller=of_branch("Home", uuid.uuid4())
            )
        found = await asked(app, question_on("kettle"), scope=kim.access, owner=kim.owner)
        narrower = of_branch("Home/Kitchen", kim.key_id)
        replayed = await app.replays.replay(found.trace_id, question=question_on("kettle"), caller=narrower)
        assert "replay_scope_smaller" in codes(replayed)
        with pytest.raises(NotFound):  # a document behind the answer is not visible any more
            await app.replays.replay(
                found.trace_id, question=question_on("kettle"), caller=of_branch("Home/Garden", kim.key_id)
            )


async def test_a_replay_leaves_nothing_but_a_line_of_the_audit_log(databases: Databases, library: str) -> None:
    async with opened(databases, library) as app:
        answer = await asked(app, question_on("kettle"))
        store = databases.store(app.settings)
        before = await counts(app, store)
        await app.replays.replay(answer.trace_id, question=question_on("kettle"))
        after = await counts(app, store)
        assert after == before | {"audit_log": before["audit_log"] + 1}
        [line] = await app.audit.newest(limit=1)
        assert (line.entry.action, line.entry.subjects) == ("answers.replay", [answer.trace_id])
        assert (await app.audit.verify()).ok


TABLES = ("traces", "conversations", "conversation_turns", "cases", "case_logs", "experiences", "audit_log")


async def counts(app: App, store: Store) -> dict[str, int]:
    await app.traces.newest()
    await app.audit.newest()
    names = {name for (name,) in store.rows("select tablename from pg_tables where schemaname = 'dtrag'")}
    return {name: store.value(f"select count(*) from {name}") for name in TABLES if name in names}


async def test_no_text_is_recorded(databases: Databases, library: str) -> None:
    async with opened(databases, library) as app:
        answer = await asked(app, question_on("kettle"), filters={"content_types": ["text/markdown"]})
        await app.traces.newest()
        await app.audit.newest()
        store = databases.store(app.settings)
        written = str(store.value("select trace from traces")) + str(store.value("select details from audit_log"))
        for word in ("kettle", "valve", "Kitchen", "markdown"):
            assert word not in written
        assert (await app.traces.get(answer.trace_id)).record is not None


async def test_an_altered_record_is_recognised_and_an_old_trace_refused(databases: Databases, library: str) -> None:
    async with opened(databases, library) as app:
        answer, unaudited = await asked(app, question_on("kettle")), await app.ask(question_on("ladder"))
        trace = await app.traces.get(answer.trace_id)
        assert trace.record is not None
        assert Trace.from_dict(trace.as_dict()) == trace
        assert trace.record.digest() == answer.record_digest
        replayed = await app.replays.replay(unaudited.trace_id, question=question_on("ladder"))
        assert replayed.record == "not_audited"
        store = databases.store(app.settings)
        with store.connect() as connection:
            connection.execute(
                "update dtrag.traces set trace = jsonb_set(trace, '{record,confidence}', '0.5') where trace_id = %s",
                [answer.trace_id],
            )
            connection.execute(
                "update dtrag.traces set trace = trace - 'record' where trace_id = %s", [unaudited.trace_id]
            )
        replayed = await app.replays.replay(answer.trace_id, question=question_on("kettle"))
        assert (replayed.record, replayed.same) == ("altered", False)
        with pytest.raises(Conflict, match="earlier version"):
            await app.replays.replay(unaudited.trace_id, question=question_on("ladder"))
