"""Freshness of cases: whether the passages that they cite still have the text that they had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date

from dtrag.core.access.scope import Scope
from dtrag.core.cases.case import Case, CitedPassage, content_hash
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.errors import InvalidInput
from dtrag.memory import case_input
from dtrag.ports import Index


async def passages_today(
    index: Index, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy
) -> dict[str, CitedPassage]:
    """Chunk id -> passage with the hash of its current text; absent when it does not exist or is out of scope."""
    current = await index.fetch(chunk_ids, scope, taxonomy)
    return {key: CitedPassage(key, content_hash(result.text)) for key, result in current.items()}


async def stale_passages(
    cases: Iterable[Case], index: Index, scope: Scope, taxonomy: Taxonomy
) -> dict[str, tuple[str, ...]]:
    """Case id -> the passages that it cites and whose text changed, that are gone, or are not valid on its day.

    Cases whose passages are all unchanged are absent. One statement per day that the cases name, usually one.
    """
    by_day: dict[date | None, list[Case]] = defaultdict(list)
    for case in cases:
        if case.passages:
            by_day[case.as_of].append(case)
    stale: dict[str, tuple[str, ...]] = {}
    for day, of_day in by_day.items():
        cited = list(dict.fromkeys(passage.chunk_id for case in of_day for passage in case.passages))
        current = await passages_today(index, cited, scope.at(day), taxonomy)
        for case in of_day:
            changed = tuple(p.chunk_id for p in case.passages if current.get(p.chunk_id) != p)
            if changed:
                stale[case.case_id] = changed
    return stale


async def cited_passages(
    index: Index, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy
) -> tuple[CitedPassage, ...]:
    """The passages with the hashes of their texts. Raises `InvalidInput` for one that cannot be seen."""
    ids = case_input.chunk_ids(chunk_ids)
    if not ids:
        return ()
    current = await passages_today(index, ids, scope, taxonomy)
    for chunk_id in ids:
        if chunk_id not in current:
            raise InvalidInput(
                f"There is no passage {chunk_id[:60]!r} that you may see and that is valid on the day of the case. "
                "Use the chunk_id of a search result."
            )
    return tuple(current[chunk_id] for chunk_id in ids)
