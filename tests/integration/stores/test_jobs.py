"""The queue of jobs: who may take which, and what is refused to a process that has lost its job."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from pathlib import Path

import pytest

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.stores.jobs import PART_BYTES, PostgresJobs
from dtrag.core.job import NewJob
from dtrag.errors import DatabaseUnavailable, LeaseLost
from dtrag.ports import JobStore, Stores

NOW = timedelta()


def new(kind: str = "ingest", *keys: str, priority: int = 0, maker: uuid.UUID | None = None) -> NewJob:
    return NewJob(kind=kind, input={"files": []}, maker=maker, maker_name="ann", lock_keys=keys, priority=priority)


async def lose(database: Database) -> None:
    """All leases run out."""
    async with database.connection("owner") as connection:
        await connection.execute("update jobs set lease_until = now() - interval '1 second' where state = 'running'")


@pytest.fixture
def jobs(stores: Stores) -> JobStore:
    return stores.jobs


async def test_the_first_and_most_urgent_is_taken_once(jobs: JobStore) -> None:
    late, first, urgent = [await jobs.add(new(priority=priority)) for priority in (1, 0, -1)]
    taken = [await jobs.take(["ingest"], "w") for _ in range(4)]
    assert [job and job.job_id for job in taken] == [urgent.job_id, first.job_id, late.job_id, None]
    assert await jobs.take(["vectors"], "w") is None


async def test_many_takers_take_each_job_once(jobs: JobStore) -> None:
    added = {(await jobs.add(new("ingest", f"key {number % 3}"))).job_id for number in range(9)}
    taken: list[uuid.UUID] = []

    async def work(name: str) -> None:
        while len(taken) < len(added):
            if (job := await jobs.take(["ingest"], name)) is not None:
                assert await jobs.finish(job.lease, "done", "", None, (0, 0))
                taken.append(job.job_id)

    await asyncio.gather(*(work(str(number)) for number in range(4)))
    assert sorted(taken) == sorted(added)


async def test_jobs_of_one_key_run_in_order_one_at_a_time(jobs: JobStore) -> None:
    first = await jobs.add(new("ingest", "a", "b"))
    second = await jobs.add(new("ingest", "b", "c"))
    other = await jobs.add(new("ingest", "d"))
    one = await jobs.take(["ingest"], "w")
    two = await jobs.take(["ingest"], "w")
    assert one is not None and two is not None
    assert (one.job_id, two.job_id) == (first.job_id, other.job_id)
    assert await jobs.take(["ingest"], "w") is None
    assert await jobs.release(one.lease, timedelta(hours=1), "The disk is full.")
    assert await jobs.take(["ingest"], "w") is None, "the second waits for the next attempt of the first"
    assert await jobs.retry(first.job_id, ())
    again = await jobs.take(["ingest"], "w")
    assert again is not None and again.reason == "The disk is full." and again.attempts == 1
    assert await jobs.finish(again.lease, "done", "", {"counts": {}}, (1, 1))
    three = await jobs.take(["ingest"], "w")
    assert three is not None and three.job_id == second.job_id


async def test_a_failed_job_that_is_tried_again_waits_for_a_later_one(jobs: JobStore) -> None:
    first, second = await jobs.add(new("ingest", "a")), await jobs.add(new("ingest", "a"))
    one = await jobs.take(["ingest"], "w")
    assert one is not None
    await jobs.finish(one.lease, "failed", "No.", None, (0, 0))
    two = await jobs.take(["ingest"], "w")
    assert two is not None and two.job_id == second.job_id
    assert await jobs.retry(first.job_id, ())
    assert await jobs.take(["ingest"], "w") is None
    await jobs.finish(two.lease, "done", "", None, (0, 0))
    again = await jobs.take(["ingest"], "w")
    assert again is not None and again.job_id == first.job_id


async def test_a_lost_job_is_taken_by_another_and_the_first_writes_nothing(jobs: JobStore, emptied: Database) -> None:
    await jobs.add(new())
    first = await jobs.take(["ingest"], "first")
    assert first is not None and await jobs.beat(first.lease, 1, 5)
    await lose(emptied)
    assert await jobs.expire(5, "Lost.") == 1
    second = await jobs.take(["ingest"], "second")
    assert second is not None and second.fence == first.fence + 1 and (second.done, second.total) == (1, 5)
    assert not await jobs.beat(first.lease, 2, 5)
    assert not await jobs.release(first.lease, NOW, "")
    assert not await jobs.finish(first.lease, "done", "", None, (5, 5))
    with pytest.raises(LeaseLost):
        async with emptied.fenced(first.lease).connection("owner") as connection:
            await connection.execute("insert into index_settings values ('stalled', '1')")
    async with emptied.fenced(second.lease).connection("owner") as connection:
        await connection.execute("insert into index_settings values ('second', '1')")
    async with emptied.connection("owner") as connection:
        rows = await (await connection.execute("select name from index_settings")).fetchall()
    assert {"second"} == {row["name"] for row in rows} & {"second", "stalled"}


@pytest.mark.parametrize("pipelined", [False, True])
async def test_a_transaction_of_the_holder_ends_before_another_takes(
    jobs: JobStore, emptied: Database, pipelined: bool
) -> None:
    """Between the check and the commit nobody takes or cancels the job: the check holds it."""
    await jobs.add(new())
    held = await jobs.take(["ingest"], "first")
    assert held is not None
    async with emptied.fenced(held.lease).connection("owner") as connection:
        if pipelined:
            async with connection.pipeline():
                await connection.begin()
                await connection.execute("insert into index_settings values ('early', '1')")
        else:
            await connection.begin()
            await connection.execute("insert into index_settings values ('early', '1')")
        await lose(emptied)
        assert await jobs.expire(5, "") == 0
        cancelling = asyncio.create_task(jobs.cancel(held.job_id, "Cancelled."))
        await asyncio.sleep(0.1)
        assert not cancelling.done()
        assert await jobs.beat(held.lease, 1, 1), "extending the lease does not wait"
        await connection.execute("commit")
        assert await cancelling
        with pytest.raises(LeaseLost):
            async with emptied.fenced(held.lease).connection("owner") as late, late.transaction():
                await late.execute("insert into index_settings values ('late', '1')")
    async with emptied.connection("owner") as connection:
        rows = await (await connection.execute("select name from index_settings")).fetchall()
    assert {"early"} == {row["name"] for row in rows} & {"early", "late"}


async def test_a_pipeline_of_transactions_is_refused_as_a_whole(jobs: JobStore, emptied: Database) -> None:
    await jobs.add(new())
    held = await jobs.take(["ingest"], "first")
    assert held is not None
    await jobs.cancel(held.job_id, "")
    with pytest.raises(LeaseLost):
        async with emptied.fenced(held.lease).connection("owner") as connection, connection.pipeline():
            for number in range(3):
                await connection.begin()
                await connection.execute("insert into index_settings values (%s, '1')", [f"piped {number}"])
                await connection.execute("commit")
    async with emptied.connection("owner") as connection:
        found = await (await connection.execute("select from index_settings where name like 'piped%'")).fetchall()
    assert found == []


async def test_a_silent_session_of_a_job_is_ended(
    jobs: JobStore, emptied: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped holds no lock for longer than its lease."""
    monkeypatch.setattr("dtrag.adapters.postgres.pool.LEASE", timedelta(seconds=0.2))
    await jobs.add(new())
    held = await jobs.take(["ingest"], "first")
    assert held is not None
    with pytest.raises(DatabaseUnavailable):
        async with emptied.fenced(held.lease).connection("owner") as connection:
            await connection.begin()
            assert await jobs.cancel(held.job_id, ""), "it waits until the server has ended the session"
            await connection.execute("commit")


async def test_files_are_stored_in_pieces_until_the_job_has_ended(
    jobs: JobStore, emptied: Database, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(bytes(range(256)) * (PART_BYTES // 200))
    (tmp_path / "b").write_bytes(b"")

    async def parts() -> int:
        async with emptied.connection("owner") as connection:
            row = await (await connection.execute("select count(*) as parts from job_files")).fetchone()
        return int(row["parts"]) if row else -1

    files = [tmp_path / "a", tmp_path / "b"]
    failing, ending, cancelled = [await jobs.add(new(), files) for _ in range(3)]
    assert await parts() == 6
    for number, path in enumerate(files):
        await jobs.fetch_file(failing.job_id, number, tmp_path / f"{number}.copy")
        assert (tmp_path / f"{number}.copy").read_bytes() == path.read_bytes()
    for job, state in ((failing, "failed"), (ending, "done")):
        taken = await jobs.take(["ingest"], "w", job.job_id)
        assert taken is not None
        await jobs.finish(taken.lease, "failed" if state == "failed" else "done", "", None, (0, 0))
    await jobs.cancel(cancelled.job_id, "")
    assert await parts() == 2, "a failed job may be tried again"
    assert await jobs.forget(NOW) == 3
    assert await parts() == 0


async def test_a_job_that_ends_its_processes_has_failed(jobs: JobStore, emptied: Database) -> None:
    added = await jobs.add(new("ingest", "key"))
    for _ in range(3):
        assert await jobs.take(["ingest"], "w") is not None
        await lose(emptied)
        await jobs.expire(3, "Its process ended.")
    job = await jobs.get(added.job_id)
    assert job is not None and (job.state, job.reason, job.attempts) == ("failed", "Its process ended.", 3)
    assert await jobs.add(new("ingest", "key")) and await jobs.take(["ingest"], "w") is not None


async def test_the_only_job_of_a_kind_waits_again_when_it_has_ended(jobs: JobStore) -> None:
    key = uuid.uuid4()
    for _ in range(2):
        await jobs.ensure(key, "vectors", 0, ["done"])
    held = await jobs.take(["vectors"], "w")
    assert held is not None
    await jobs.ensure(key, "vectors", 0, ["done"])
    assert await jobs.take(["vectors"], "w") is None
    await jobs.finish(held.lease, "done", "", None, (0, 0))
    await jobs.ensure(key, "vectors", 0, ["done"])
    again = await jobs.take(["vectors"], "w")
    assert again is not None and again.fence == 2 and again.attempts == 1


async def test_callers_are_shown_their_own(jobs: JobStore) -> None:
    ann = uuid.uuid4()
    own, other = await jobs.add(new(maker=ann)), await jobs.add(new(maker=uuid.uuid4()))
    await jobs.add(new("vectors"))
    assert [job.job_id for job in (await jobs.every(ann, 10, 0))[0]] == [own.job_id]
    page, total = await jobs.every(ann, 2, 0, everything=True)
    assert (len(page), total) == (2, 3)
    assert (await jobs.every(None, 10, 0, everything=True, kind="vectors", states=["done"])) == ([], 0)
    assert await jobs.waiting_of(ann) == 1
    await jobs.cancel(own.job_id, "Cancelled by ann.")
    assert await jobs.waiting_of(ann) == 0
    assert not await jobs.cancel(own.job_id, "")
    assert not await jobs.retry(own.job_id, ())
    counts = {(count.kind, count.state): count.jobs for count in await jobs.counts()}
    assert counts == {("ingest", "waiting"): 1, ("vectors", "waiting"): 1}
    assert other.state == "waiting"


async def test_who_takes_jobs_is_known(jobs: JobStore) -> None:
    assert not await jobs.served()
    await jobs.announce("w", ["ingest"])
    assert await jobs.served() and await jobs.served("ingest") and not await jobs.served("vectors")
    await jobs.leave("w")
    assert not await jobs.served()


def test_the_store_is_that_of_the_protocol(emptied: Database) -> None:
    store: JobStore = PostgresJobs(emptied)
    assert store
