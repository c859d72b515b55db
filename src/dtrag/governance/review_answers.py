"""Answers in the review queue: what is stored of them, and the passages that a reviewer sees and chooses."""

from __future__ import annotations

import hashlib
import itertools
import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dtrag.core.access.scope import Access, Grant, Scope, Viewer
from dtrag.core.answers.citation_labels import label
from dtrag.core.cases.case import content_hash
from dtrag.core.documents import SearchResult
from dtrag.core.editions import parse_date
from dtrag.core.response import plain
from dtrag.core.taxonomy.review import ChosenRow, OfferedAnswer, PassageView, ReviewItem
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.core.text.analysis import clean, normalise
from dtrag.errors import Advice, Conflict, InvalidInput
from dtrag.ports import Index

MAX_PASSAGES = 20
"""Passages of an item, and passages that a reviewer may choose."""
DatedKey = tuple[str, str]
"""Day of a question ("" for today) and id of a passage."""
FETCHED = 1_000
"""Passages that one statement reads."""
MAX_CHUNK_ID = 100
"""Characters of the id of a passage."""
HASH_PATTERN = r"^[0-9a-f]{12,64}$"
"""A content hash, or its beginning: 12 digits are enough to notice a changed text."""


def answer_item(offered: OfferedAnswer, grant: Grant | None, agent_id: uuid.UUID | None) -> ReviewItem:
    """The item for an answer. `grant`: its readers may see these branches; None: only readers of the whole tree."""
    question = clean(offered.question)
    passages = list(dict.fromkeys((*offered.cited, *offered.retrieved)))[:MAX_PASSAGES]
    proposal: dict[str, Any] = {
        "question": question,
        "question_hash": hashlib.blake2b(normalise(question).encode("utf-8"), digest_size=16).hexdigest(),
        "text": clean(offered.text),
        "decision": offered.decision,
        "document_ids": list(dict.fromkeys(chunk_id.rpartition(":")[0] for chunk_id in offered.cited)),
        "passages": passages,
        "cited": list(dict.fromkeys(offered.cited)),
        "reasons": [clean(str(reason)) for reason in offered.reasons],
        "reason_statements": plain(offered.reasons),
        "as_of": offered.as_of,
        "caused_by": offered.caused_by,
        "trace_id": offered.trace_id,
        "grant": grant.as_json() if grant is not None else None,
    }
    confidence = min(1.0, max(0.0, offered.confidence))
    return ReviewItem(
        item_id=uuid.uuid4(),
        kind="answer",
        node_id=UNCLASSIFIED,
        agent_id=agent_id,
        confidence=confidence,
        proposal=proposal,
        created_at=datetime.now(UTC),
    )


def is_user_of_a_source(viewer: Viewer | None, taxonomy: Taxonomy) -> bool:
    """Whether others with the same branches may see less: then only those with the whole tree review the answers."""
    return isinstance(viewer, Access) and bool(viewer.principals and taxonomy.sources)


def readers_of(viewer: Viewer | None, taxonomy: Taxonomy) -> Grant | None:
    """The branches that a reviewer has to see to read what was answered to this viewer; None: the whole tree."""
    if not isinstance(viewer, Access) or not viewer.grants:
        return None
    # Each grant holds at least what the viewer sees: the smallest one leaves most reviewers.
    return min(viewer.grants, key=lambda grant: len(grant.nodes(taxonomy)))


async def current_passages(
    chunk_ids: Sequence[str], item: ReviewItem, index: Index, scope: Scope, taxonomy: Taxonomy
) -> dict[str, SearchResult]:
    """Those of the passages that the scope holds on the day of the item's question, with their present texts."""
    if not chunk_ids:
        return {}
    day = parse_date("as_of", item.proposal.get("as_of") or None)
    return await index.fetch(list(chunk_ids), scope.at(day), taxonomy)


def chosen_keys(item: ReviewItem) -> list[DatedKey]:
    """The chosen passages with the day of the question."""
    day = str(item.proposal.get("as_of", ""))
    return [(day, row["chunk_id"]) for row in item.proposal.get("chosen", ())]


async def current_by_day(
    items: Sequence[ReviewItem], index: Index, scope: Scope, taxonomy: Taxonomy
) -> dict[DatedKey, SearchResult]:
    """The chosen passages of all the items that the scope holds, in few statements."""
    by_day: dict[str, dict[str, None]] = defaultdict(dict)
    for item in items:
        for day, key in chosen_keys(item):
            by_day[day][key] = None
    current: dict[DatedKey, SearchResult] = {}
    for day, keys in by_day.items():
        within = scope.at(parse_date("as_of", day or None))
        for batch in batched(keys, FETCHED):
            passages = await index.fetch(batch, within, taxonomy)
            current |= {(day, key): passage for key, passage in passages.items()}
    return current


def batched(keys: Iterable[str], size: int) -> Iterator[list[str]]:
    """The keys in lists of at most this size."""
    remaining = iter(keys)
    while batch := list(itertools.islice(remaining, size)):
        yield batch


async def shown_passages(
    item: ReviewItem, index: Index, scope: Scope, taxonomy: Taxonomy, further: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """`passages` (with `further` ones) and `chosen` of the item as the scope may see them: others are left out."""
    if len(further) > MAX_PASSAGES:
        raise InvalidInput(f"At most {MAX_PASSAGES} further passages are shown with an item.")
    chosen = [row["chunk_id"] for row in item.proposal.get("chosen", ())]
    offered = list(item.proposal.get("passages", ()))
    cited = frozenset(item.proposal.get("cited", ()))
    keys = list(dict.fromkeys((*offered, *chosen, *_well_formed(further))))
    current = await current_passages(keys, item, index, scope, taxonomy)
    views: list[PassageView] = [
        {
            "chunk_id": key,
            "label": label(current[key]),
            "text": current[key].text,
            "cited": key in cited,
            "content_hash": content_hash(current[key].text).hex(),
        }
        for key in keys
        if key in current
    ]
    return {"passages": views, "chosen": [key for key in chosen if key in current]}


async def chosen_passages(
    chunk_ids: Sequence[str],
    item: ReviewItem,
    index: Index,
    scope: Scope,
    taxonomy: Taxonomy,
    *,
    content_hashes: Mapping[str, str] | None = None,
) -> list[ChosenRow]:
    """The reviewer's choice with the hashes of today's texts.

    Raises `InvalidInput` without passages, for too many of them, and for one that is not visible in the scope;
    `Conflict` for one whose text is not that of `content_hashes`.
    """
    keys = list(dict.fromkeys(chunk_ids))
    if not 1 <= len(keys) <= MAX_PASSAGES:
        raise InvalidInput(
            f"An answer is corrected by 1 to {MAX_PASSAGES} passages that answer its question.", Advice.FIND_PASSAGES
        )
    current = await current_passages(_well_formed(keys), item, index, scope, taxonomy)
    _check_unchanged(keys, current, content_hashes)
    for key in keys:
        if key not in current:
            raise InvalidInput(f"There is no passage {key[:60]!r} that you may see.", Advice.PASSAGE_IDS)
    return rows_of([current[key] for key in keys])


async def cited_passages(
    item: ReviewItem, index: Index, scope: Scope, taxonomy: Taxonomy, content_hashes: Mapping[str, str] | None = None
) -> list[ChosenRow]:
    """The passages that the answer cites, as far as they exist: what an approval confirms.

    Raises `Conflict` for one whose text is not that of `content_hashes`.
    """
    cited = list(item.proposal.get("cited", ()))
    current = await current_passages(cited, item, index, scope, taxonomy)
    existing = [key for key in cited if key in current]
    _check_unchanged([*existing, *(content_hashes or ())], current, content_hashes)
    return rows_of([current[key] for key in existing])


def _check_unchanged(
    keys: Iterable[str], current: Mapping[str, SearchResult], content_hashes: Mapping[str, str] | None
) -> None:
    """Raises `Conflict` unless each of the passages has the text that the reviewer read; None: it is not known."""
    if content_hashes is None:
        return
    if not all(re.match(HASH_PATTERN, sent) for sent in content_hashes.values()):
        raise InvalidInput("A content hash has 12 to 64 hexadecimal digits.", Advice.PASSAGE_HASHES)
    for key in keys:
        prefix, passage = content_hashes.get(key), current.get(key)
        if prefix is None:
            raise Conflict(
                f"The decision would store the passage {key[:60]!r}, whose content hash you did not send: nothing was "
                "stored. Read the item again, then decide with the hashes of all its passages."
            )
        if passage is None or not content_hash(passage.text).hex().startswith(prefix):
            raise Conflict(
                f"The passage {key[:60]!r} has another text than the one that you read, or is gone: nothing was "
                "stored. Read the item again, then decide about the present text."
            )


def _well_formed(chunk_ids: Iterable[str]) -> list[str]:
    return [key for key in chunk_ids if len(key) <= MAX_CHUNK_ID and _is_chunk_id(key)]


def rows_of(passages: Sequence[SearchResult]) -> list[ChosenRow]:
    """The passages as they are stored with a decision."""
    return [{"chunk_id": passage.chunk_id, "content_hash": content_hash(passage.text).hex()} for passage in passages]


def _is_chunk_id(text: str) -> bool:
    document, _, ordinal = text.rpartition(":")
    try:
        uuid.UUID(document)
    except ValueError:
        return False
    return ordinal.isascii() and ordinal.isdecimal() and len(ordinal) < 10
