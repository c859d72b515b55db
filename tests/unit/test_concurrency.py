"""Limiters refuse what exceeds their queue and say when to retry; threads end with the process."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from dtrag.concurrency import MAX_RETRY_S, Admission, DaemonThreads, Limiter, limit_clock
from dtrag.errors import Overloaded
from dtrag.settings import Settings
from tests.clock import Clock


async def hold(limiter: Limiter, entered: list[int], number: int, until: asyncio.Event) -> None:
    async with limiter.slot():
        entered.append(number)
        await until.wait()


async def test_a_limiter_admits_its_number_of_tasks_in_order() -> None:
    entered: list[int] = []
    limiter, until = Limiter(2, 10, 5.0), asyncio.Event()
    tasks = [asyncio.create_task(hold(limiter, entered, number, until)) for number in range(5)]
    await asyncio.sleep(0)
    assert entered == [0, 1]
    assert (limiter.load.working, limiter.load.waiting) == (2, 3)
    until.set()
    await asyncio.gather(*tasks)
    assert entered == [0, 1, 2, 3, 4]
    assert (limiter.load.working, limiter.load.waiting, limiter.load.refused) == (0, 0, 0)


async def test_a_full_queue_refuses_at_once_with_a_retry_time() -> None:
    limiter, until = Limiter(1, 1, 60.0), asyncio.Event()
    tasks = [asyncio.create_task(hold(limiter, [], number, until)) for number in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        with pytest.raises(Overloaded) as caught:
            async with limiter.slot():
                raise AssertionError
    seconds = caught.value.fields["seconds"]
    assert isinstance(seconds, int)
    assert 1 <= seconds <= MAX_RETRY_S
    assert str(seconds) in str(caught.value)
    assert limiter.load.refused == 1
    until.set()
    await asyncio.gather(*tasks)


async def test_retry_times_are_spread() -> None:
    limiter, until = Limiter(1, 0, 60.0), asyncio.Event()
    task = asyncio.create_task(hold(limiter, [], 0, until))
    await asyncio.sleep(0)
    retry_times = set()
    for _ in range(100):
        with pytest.raises(Overloaded) as caught:
            async with limiter.slot():
                raise AssertionError
        retry_times.add(caught.value.fields["seconds"])
    assert retry_times == set(range(1, MAX_RETRY_S + 1))
    until.set()
    await task


async def test_a_wait_beyond_the_patience_is_refused_and_frees_the_queue(clock: Clock) -> None:
    limiter, until = Limiter(1, 5, 30.0), asyncio.Event()
    task = asyncio.create_task(hold(limiter, [], 0, until))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(hold(limiter, [], 1, until))
    await clock.sleep(29.0)
    assert (limiter.load.waiting, waiting.done()) == (1, False)
    await clock.sleep(1.1)
    with pytest.raises(Overloaded):
        await waiting
    assert limiter.load.waiting == 0
    until.set()
    await task
    async with limiter.slot():
        assert limiter.load.working == 1


async def test_slots_of_failed_and_cancelled_tasks_are_released() -> None:
    limiter, until = Limiter(1, 5, 5.0), asyncio.Event()
    with pytest.raises(ValueError, match="lost"):
        async with limiter.slot():
            raise ValueError("lost")
    holder = asyncio.create_task(hold(limiter, [], 0, until))
    waiter = asyncio.create_task(hold(limiter, [], 1, until))
    await asyncio.sleep(0)
    for task in (waiter, holder):
        task.cancel()
    await asyncio.gather(holder, waiter, return_exceptions=True)
    assert (limiter.load.working, limiter.load.waiting) == (0, 0)
    async with asyncio.timeout(1), limiter.slot():
        pass


async def test_no_slot_is_lost_among_many_tasks() -> None:
    limiter, most = Limiter(3, 1_000, 5.0), 0

    async def visit(number: int) -> None:
        nonlocal most
        async with limiter.slot():
            most = max(most, limiter.load.working)
            await asyncio.sleep(0.0001 * (number % 3))

    tasks = [asyncio.create_task(visit(number)) for number in range(300)]
    await asyncio.sleep(0.002)
    for task in tasks[::7]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 3
    assert (limiter.load.working, limiter.load.waiting) == (0, 0)


async def test_model_calls_and_cpu_work_are_limited_separately() -> None:
    admission = Admission(runs=2, cpu=1, models=1, queue=0, patience=0.05)
    async with admission.run(), admission.model(), asyncio.timeout(1), admission.cpu():
        loads = admission.loads()
    working = {limiter: load.working for limiter, load in loads.items()}
    assert working == {"run": 1, "cpu": 1, "model": 1, "search": 0, "case": 0, "upload": 0}
    async with admission.run(), admission.run():
        with pytest.raises(Overloaded):
            async with admission.run():
                raise AssertionError


async def test_settings_configure_the_limits() -> None:
    admission = Admission.of(Settings.load(environ={}, answers_at_once=1, answers_waiting=0, wait_ms=10))
    async with admission.run():
        with pytest.raises(Overloaded):
            async with admission.run():
                raise AssertionError


async def test_limits_are_measured_by_the_clock_of_the_event_loop(clock: Clock) -> None:
    started = limit_clock()
    clock.advance(3_600)
    assert limit_clock() - started >= 3_600


# -- threads ----------------------------------------------------------------------------------------------------------


async def test_threads_are_started_as_needed_up_to_the_maximum() -> None:
    threads, free = DaemonThreads(3, "few"), threading.Event()
    names: set[str] = set()

    def call(number: int) -> int:
        names.add(threading.current_thread().name)
        assert free.wait(10)
        return number

    loop = asyncio.get_running_loop()
    calls = [loop.run_in_executor(threads, call, number) for number in range(9)]
    calls[8].cancel()
    await asyncio.sleep(0.05)
    free.set()
    assert await asyncio.gather(*calls[:8]) == list(range(8))
    assert names <= {"few-1", "few-2", "few-3"}

    def fail() -> None:
        raise ValueError("what it says")

    with pytest.raises(ValueError, match="what it says"):
        await loop.run_in_executor(threads, fail)


async def test_threads_without_a_queue_refuse_calls_until_one_is_free() -> None:
    threads, release = DaemonThreads(2, "few", queue=0), threading.Event()
    calls = [asyncio.create_task(threads.run(release.wait, 60)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await threads.run(release.wait)
    calls[0].cancel()
    await asyncio.gather(calls[0], return_exceptions=True)
    with pytest.raises(Overloaded):  # an abandoned call counts until it has ended
        await threads.run(release.wait)
    release.set()
    assert await calls[1]
    await _until_it_runs(threads)


async def _until_it_runs(threads: DaemonThreads) -> None:
    """Wait until a call is accepted again: a thread counts its call as ended just after the result is there."""
    for _ in range(1_000):
        try:
            assert await threads.run(lambda: 7) == 7
        except Overloaded:
            await asyncio.sleep(0.01)
        else:
            return
    raise AssertionError("no thread became free")


async def test_a_thread_that_cannot_start_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = DaemonThreads(2, "few", queue=0)

    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", Refused)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="can't start"):
                await threads.run(lambda: 1)
    assert await threads.run(lambda: 2) == 2


async def test_a_call_in_a_thread_sees_the_context_of_its_caller() -> None:
    variable = contextvars.ContextVar("variable", default="outside")
    variable.set("inside")
    assert await DaemonThreads(1, "one").run(variable.get) == "inside"


def test_a_call_that_outlives_its_loop_ends_quietly() -> None:
    threads = DaemonThreads(1, "one")
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        release.wait(60)
        ended.set()

    async def leave() -> None:
        call = asyncio.create_task(threads.run(work))
        assert await asyncio.to_thread(started.wait, 10)
        call.cancel()

    asyncio.run(leave())
    release.set()
    assert ended.wait(10)
