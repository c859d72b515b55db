"""Traces in the database: written in the background, seen by their owners, and not beyond what these may see."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.postgres.stores.records import PostgresDocumentVisibility, PostgresTraces
from dtrag.app import App, open_app
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import Access, Grant
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.trace import CallTrace, StepTrace, Trace
from dtrag.errors import DatabaseUnavailable, InvalidInput, NotFound
from dtrag.pipeline import traces as module
from dtrag.pipeline.traces import Traces
from dtrag.settings import Settings
from tests.store import Databases, Store

KIM = Caller("kim", "reader", Access(), uuid.uuid4())
LEE = Caller("lee", "editor", Access(), uuid.uuid4())
BOSS = Caller("boss", "admin", Access(), uuid.uuid4())
NOON = datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC)


def trace(**values: Any) -> Trace:
    """A run with every kind of thing in it."""
    given = Trace(
        trace_id=uuid.uuid4(),
        created_at=datetime.datetime.now(datetime.UTC),
        owner=KIM.owner,
        question="what does the kettle have?",
        answer="A valve. [1]",
        decision="answer",
        confidence=0.91,
        taxonomy_version="1.0.0",
        seconds=0.4,
        degraded=(),
        document_ids=(),
        steps=(StepTrace("retrieve", 0.02, 2.0, "done", {"lexical_candidates": 50, "passages": 10}),),
        calls=(CallTrace("compose", "m", 0.3, 900, 40, 0.2, prompt="the prompt", reply="the reply"),),
        debate={"rounds": 2, "final_answer": "A valve.", "calls_by_phase": {"round_1": 2}},
    )
    return replace(given, **values)


def kept(app: App, **options: Any) -> Traces:
    return Traces(PostgresTraces(app.database), PostgresDocumentVisibility(app.database), app.index, **options)


async def branch(app: App, key: Caller, path: str) -> Caller:
    taxonomy = (await app.index.snapshot()).taxonomy
    return Caller(key.name, key.role, Access((Grant.of([CategoryPath.parse(path)], taxonomy),)), key.key_id)


async def document(app: App, folder: Path, name: str, category: str) -> str:
    file = folder / f"{name}.md"
    file.write_text(f"# {name}\n\nThe {name} has a valve.", "utf-8")
    await app.ingest([file], category)
    return next(d.document_id for d in await app.documents() if d.title == name)


async def test_a_trace_that_cannot_be_stored_does_not_block_what_is_stored_with_it(app: App) -> None:
    traces = kept(app)
    await traces.keep(trace())
    attempts: list[int] = []

    async def write(queued: Sequence[Trace]) -> int:
        attempts.append(len(queued))
        if queued:
            raise RuntimeError("odd")
        return 7

    assert await traces.with_queued(write) == 7
    assert attempts == [1, 0]
    assert len(await traces.newest(caller=KIM)) == 1, "it is still written in the background"
    await traces.close()


async def test_a_trace_can_be_read_at_once_and_is_unchanged(app: App) -> None:
    traces = kept(app, text=True)
    given = trace()
    await traces.keep(given)
    assert await traces.get(given.trace_id, caller=KIM) == given
    await traces.keep(given)  # the same once more changes nothing
    assert await traces.newest(caller=KIM) == [given]
    await traces.close()


async def test_no_text_is_stored_unless_it_is_enabled(app: App, store: Store) -> None:
    given = trace()
    await app.traces.keep(given)
    found = await app.traces.get(str(given.trace_id))
    assert found == given.without_text()
    assert (found.debate, found.calls[0].input_tokens) == ({"rounds": 2, "calls_by_phase": {"round_1": 2}}, 900)
    written = str(store.value("select trace from traces"))
    for text in (given.question, given.answer, "the prompt", "the reply"):
        assert text not in written
    assert not app.traces.recording().keeps_text


async def test_traces_are_written_by_themselves_and_on_closing(settings: Settings, store: Store) -> None:
    async with open_app(settings) as app:
        await app.traces.keep(trace())
        for _ in range(200):
            if store.value("select count(*) from traces"):
                break
            await asyncio.sleep(0.05)
        assert store.value("select count(*) from traces") == 1
        for _ in range(250):
            await app.traces.keep(trace())
    assert store.value("select count(*) from traces") == 251


async def test_concurrent_traces_are_written_once_each(app: App, store: Store) -> None:
    async def keep_and_look() -> None:
        given = trace()
        await app.traces.keep(given)
        assert (await app.traces.get(given.trace_id, caller=KIM)).trace_id == given.trace_id

    await asyncio.gather(*(keep_and_look() for _ in range(200)))
    assert store.value("select count(*) from traces") == 200


async def test_each_sees_their_own_and_administrators_of_the_whole_tree_all(app: App) -> None:
    his, hers = trace(), trace(owner=LEE.owner)
    for given in (his, hers):
        await app.traces.keep(given)
    for who, seen in ((KIM, [his]), (LEE, [hers]), (BOSS, [his, hers]), (LOCAL, [his, hers])):
        assert {found.trace_id for found in await app.traces.newest(caller=who)} == {one.trace_id for one in seen}
    with pytest.raises(NotFound) as foreign:
        await app.traces.get(hers.trace_id, caller=KIM)
    with pytest.raises(NotFound) as unknown:
        await app.traces.get(uuid.uuid4(), caller=KIM)
    assert len({str(error.value).count(" ") for error in (foreign, unknown)}) == 1
    for odd in ("", "x", "1", "a" * 300):
        with pytest.raises(NotFound):
            await app.traces.get(odd, caller=KIM)


async def test_an_administrator_of_a_branch_sees_only_his_own(app: App, tmp_path: Path) -> None:
    await document(app, tmp_path, "kettle", "AI")
    given = trace()
    await app.traces.keep(given)
    confined = await branch(app, BOSS, "AI")
    assert await app.traces.newest(caller=confined) == []
    with pytest.raises(NotFound):
        await app.traces.get(given.trace_id, caller=confined)


async def test_callers_who_lost_access_to_a_document_cannot_see_the_trace(app: App, tmp_path: Path) -> None:
    both = (await document(app, tmp_path, "kettle", "AI"), await document(app, tmp_path, "salary", "HR"))
    traces = kept(app, text=True)
    other, given = trace(document_ids=both[:1]), trace(document_ids=both)
    for one in (other, given):
        await traces.keep(one)
    assert (await traces.get(given.trace_id, caller=KIM)).answer == given.answer
    narrowed = await branch(app, KIM, "AI")
    with pytest.raises(NotFound):
        await traces.get(given.trace_id, caller=narrowed)
    assert [found.trace_id for found in await traces.newest(caller=narrowed)] == [other.trace_id]
    await app.delete_document(both[1])
    found = await traces.get(given.trace_id, caller=LOCAL)
    assert (found.answer, found.calls[0].prompt, found.question) == ("", "", given.question)
    await traces.close()


async def test_the_list_is_full_although_some_are_not_shown(app: App, tmp_path: Path) -> None:
    closed = await document(app, tmp_path, "salary", "HR")
    await document(app, tmp_path, "kettle", "AI")
    narrowed = await branch(app, KIM, "AI")
    for number in range(40):
        at = NOON + datetime.timedelta(seconds=number)
        await app.traces.keep(trace(created_at=at, seconds=number, document_ids=(closed,) if number % 4 else ()))
    shown = await app.traces.newest(6, caller=narrowed)
    assert [found.seconds for found in shown] == [36, 32, 28, 24, 20, 16]
    with pytest.raises(InvalidInput):
        await app.traces.newest(0)


async def test_a_short_list_behind_many_that_are_not_shown_takes_few_reads(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = await document(app, tmp_path, "salary", "HR")
    await document(app, tmp_path, "kettle", "AI")
    narrowed = await branch(app, KIM, "AI")
    for number in range(253):
        at = NOON + datetime.timedelta(seconds=number)
        await app.traces.keep(trace(created_at=at, seconds=number, document_ids=(closed,) if number > 2 else ()))
    read: list[int] = []
    newest = PostgresTraces.newest

    async def counted(self: PostgresTraces, wanted: int, *rest: Any) -> list[Trace]:
        read.append(wanted)
        return await newest(self, wanted, *rest)

    monkeypatch.setattr(PostgresTraces, "newest", counted)
    assert [found.seconds for found in await app.traces.newest(1, caller=narrowed)] == [2]
    assert read == [100, 100, 100]
    assert [found.seconds for found in await app.traces.newest(3, caller=narrowed)] == [2, 1, 0]


async def test_old_traces_are_not_shown_and_then_deleted(app: App, store: Store) -> None:
    now = [NOON]

    def passed() -> float:
        return now[0].timestamp()

    traces = kept(app, days=lambda: 30, now=lambda: now[0], monotonic=passed)
    old = trace(created_at=NOON)
    await traces.keep(old)
    assert len(await traces.newest(caller=KIM)) == 1
    now[0] = NOON + datetime.timedelta(days=31)
    await traces.keep(trace(created_at=now[0]))
    assert len(await traces.newest(caller=KIM)) == 1
    with pytest.raises(NotFound):
        await traces.get(old.trace_id, caller=KIM)
    assert store.value("select count(*) from traces") == 1
    now[0] = NOON + datetime.timedelta(days=10_000)
    assert len(await kept(app, days=lambda: 0, now=lambda: now[0]).newest(caller=KIM)) == 1
    await traces.close()


async def test_a_clock_that_jumps_by_years_deletes_no_traces(app: App, store: Store) -> None:
    now = [NOON]
    traces = kept(app, days=lambda: 30, now=lambda: now[0])
    await traces.keep(trace(created_at=NOON))
    assert len(await traces.newest(caller=KIM)) == 1
    for years in (10, -10):
        now[0] = NOON + datetime.timedelta(days=365 * years)
        await traces.keep(trace(created_at=now[0]))
        await traces.newest(caller=KIM)
    now[0] = NOON
    assert store.value("select count(*) from traces") == 3
    assert NOON in {found.created_at for found in await traces.newest(caller=KIM)}
    await traces.close()


@pytest.mark.parametrize(("level", "count"), [("all", 5), ("errors", 4), ("off", 0)])
async def test_levels(app: App, store: Store, level: str, count: int) -> None:
    traces = kept(app, level=level)
    slow = StepTrace("compose", 3.5, 3.5, "timeout")
    failed = CallTrace("compose", "m", 1, 0, 0, 0, error="refused")
    broken = StepTrace("retrieve", 0.1, 2.0, "failed")
    fine = trace()
    for given in (
        fine,
        trace(steps=(slow,)),
        trace(calls=(failed,)),
        trace(degraded=("vector",)),
        trace(steps=(*fine.steps, broken)),
    ):
        await traces.keep(given)
    await traces.close()
    assert store.value("select count(*) from traces") == count


async def test_settings(databases: Databases) -> None:
    settings = databases.settings(traces="errors", trace_text="on", trace_days=3)
    async with open_app(settings) as app:
        assert (app.traces.level, app.traces.recording().keeps_text) == ("errors", True)
    for wrong in (databases.settings(traces="some"), databases.settings(trace_text="perhaps")):
        with pytest.raises(InvalidInput):
            async with open_app(wrong):
                pass


class Away:
    """A store that is away as long as it is told to be."""

    def __init__(self) -> None:
        self.away = True
        self.kept: list[Trace] = []

    async def add(self, traces: Sequence[Trace]) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise DatabaseUnavailable(reason="it is away.")
        if any(not found.taxonomy_version for found in traces):
            raise ValueError("not to be stored")
        self.kept += traces

    async def get(self, trace_id: uuid.UUID, since: datetime.datetime) -> Trace | None:
        return next((found for found in self.kept if found.trace_id == trace_id), None)

    async def newest(
        self, wanted: int, owner: str | None, since: datetime.datetime, after: Trace | None
    ) -> list[Trace]:
        return self.kept[-wanted:]

    async def forget(self, before: datetime.datetime) -> int:
        return 0

    async def put_feedback(self, feedback: AnswerFeedback) -> None:
        raise DatabaseUnavailable(reason="it is away.")

    async def feedback_by(self, voter: str, trace_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, AnswerFeedback]:
        return {}


async def test_without_the_database_traces_are_queued_and_the_oldest_dropped(
    app: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 10)
    store = Away()
    traces = Traces(store, PostgresDocumentVisibility(app.database), app.index)
    given = [trace() for _ in range(15)]
    for one in given:
        await traces.keep(one)
    assert await traces.newest() == []
    assert "5 traces came faster" in caplog.text
    store.away = False
    assert [found.trace_id for found in await traces.newest()] == [one.trace_id for one in given[5:]]
    await traces.close()


async def test_a_batch_that_cannot_be_stored_does_not_keep_the_others_waiting(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    store = Away()
    store.away = False
    traces = Traces(store, PostgresDocumentVisibility(app.database), app.index)
    await traces.keep(trace(taxonomy_version=""))
    assert await traces.newest() == []
    await traces.keep(trace())
    assert len(await traces.newest()) == 1
    assert "could not be stored" in caplog.text
    await traces.close()


async def test_traces_that_cannot_be_written_on_closing_are_reported(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    traces = Traces(Away(), PostgresDocumentVisibility(app.database), app.index)
    await traces.keep(trace())
    await traces.close()
    assert "1 traces could not be written" in caplog.text
