"""The cache of contents holds the passages that were used last, up to a number of bytes."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from cachetools import LRUCache

from dtrag.adapters.postgres.passage_cache import PassageCache, PassageContent

ROW = {
    "processed_at": datetime(2026, 1, 1, tzinfo=UTC),
    "fingerprint": b"x",
    "title": "",
    "source_uri": "",
    "source_path": "",
    "content_type": "text/plain",
    "language": "en",
    "breadcrumb": [],
    "start_offset": 0,
    "end_offset": 0,
    "metadata": {},
    "document_metadata": {},
}


def content(number: int, characters: int) -> PassageContent:
    return PassageContent.of(f"{number}:0", {**ROW, "text": "x" * characters})


def test_the_least_recently_used_are_dropped_first() -> None:
    """As by cachetools, of which one access takes longer than all else that is done with a passage."""
    cache, chance = PassageCache(50_000), random.Random(1)
    reference: LRUCache[int, PassageContent] = LRUCache(50_000, getsizeof=lambda value: 2 * len(value.text) + 2_000)
    for _ in range(2_000):
        number = chance.randrange(40)
        if chance.random() < 0.5:
            known = cache.known([f"{number}:0"])
            assert list(known.values()) == ([reference[number]] if number in reference else [])
        else:
            added = content(number, chance.choice([0, 100, 1_000, 5_000]))
            cache.add(added)
            reference[number] = added
    assert {f"{number}:0" for number in reference} == set(cache.known(f"{number}:0" for number in range(40)))


def test_a_content_larger_than_the_cache_replaces_no_other() -> None:
    cache = PassageCache(10_000)
    cache.add(content(1, 100))
    cache.add(content(2, 100))
    cache.add(content(2, 100_000))
    assert list(cache.known(["1:0", "2:0"])) == ["1:0"]
