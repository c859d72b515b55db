"""`BatchWriter`: order, batches, retries, and what stays queued."""

from __future__ import annotations

import asyncio
import logging

import pytest

from dtrag.batch_writer import BatchWriter
from dtrag.errors import DatabaseUnavailable

LOG = logging.getLogger("dtrag.batch")


class Store:
    """Stores batches, unless it is down."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.down = False
        self.stored = asyncio.Event()
        self.tried_twice = asyncio.Event()
        self._tries = 0

    async def write(self, batch: list[int]) -> None:
        self._tries += 1
        if self._tries == 2:
            self.tried_twice.set()
        if self.down:
            raise DatabaseUnavailable(reason="it is down.")
        await asyncio.sleep(0)
        self.batches.append(batch)
        self.stored.set()


def writer_of(store: Store, delay: float = 60.0) -> BatchWriter[int]:
    return BatchWriter("numbers", store.write, batch_size=2, delay=delay, log=LOG)


async def test_items_are_written_in_order_and_in_batches() -> None:
    store = Store()
    writer = writer_of(store)
    for number in range(5):
        writer.add(number)
    assert len(writer) == 5
    await writer.flush()
    assert store.batches == [[0, 1], [2, 3], [4]]
    assert len(writer) == 0
    await writer.stop()


async def test_an_urgent_item_does_not_wait_for_the_delay() -> None:
    store = Store()
    writer = writer_of(store)
    writer.add(1)
    writer.add(2, urgent=True)
    await asyncio.wait_for(store.stored.wait(), 5)
    assert store.batches == [[1, 2]]
    await writer.stop()


async def test_a_failed_batch_stays_queued_and_is_retried_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.down = True
    writer = writer_of(store, delay=0.01)
    writer.add(1)
    await asyncio.wait_for(store.tried_twice.wait(), 5)
    writer.add(2)
    store.down = False
    await asyncio.wait_for(store.stored.wait(), 5)
    assert store.batches == [[1, 2]]
    assert [record.getMessage() for record in caplog.records] == ["numbers cannot be written; trying again"]
    await writer.stop()


async def test_on_failure_decides_what_stays_queued() -> None:
    store = Store()
    store.down = True
    writer: BatchWriter[int] = BatchWriter(
        "numbers",
        store.write,
        batch_size=2,
        delay=60.0,
        log=LOG,
        on_failure=lambda items, error: [item for item in items if item % 2],
    )
    for number in range(5):
        writer.add(number)
    with pytest.raises(DatabaseUnavailable):
        await writer.flush()
    store.down = False
    await writer.flush()
    assert store.batches == [[1, 3]]
    await writer.stop()


async def test_a_cancelled_flush_loses_nothing() -> None:
    store = Store()
    writer = writer_of(store)
    for number in range(3):
        writer.add(number)
    async with writer.writing:
        flush = asyncio.create_task(writer.flush())
        await asyncio.sleep(0)
        flush.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flush
    assert len(writer) == 3
    await writer.flush()
    assert store.batches == [[0, 1], [2]]
    await writer.stop()


async def test_with_retry_after_it_flushes_again_though_nothing_is_queued() -> None:
    flushes: list[int] = []
    third = asyncio.Event()

    async def prepare() -> None:
        flushes.append(len(flushes))
        if len(flushes) == 3:
            writer.retry_after = None
            third.set()

    store = Store()
    writer: BatchWriter[int] = BatchWriter("numbers", store.write, batch_size=2, delay=0.01, log=LOG, prepare=prepare)
    writer.retry_after = 0.01
    writer.add(1)
    await asyncio.wait_for(third.wait(), 5)
    assert store.batches == [[1]]
    await writer.stop()


async def test_queued_items_are_written_together_with_something_else() -> None:
    store = Store()
    writer = writer_of(store)
    for number in range(3):
        writer.add(number)
    await writer.with_queued(lambda items: store.write(list(items)))
    assert (store.batches, len(writer)) == ([[0, 1]], 1)
    store.down = True
    with pytest.raises(DatabaseUnavailable):
        await writer.with_queued(lambda items: store.write(list(items)))
    store.down = False
    writer.add(3)
    async with writer.writing:  # a flush has the items
        await writer.with_queued(lambda items: store.write(list(items)))
    await writer.flush()
    assert store.batches == [[0, 1], [], [2, 3]]
    await writer.stop()
