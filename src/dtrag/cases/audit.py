"""The audit of the case memory: which cases cannot be traced to live sources, and which ones need a person."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypedDict

from dtrag.cases.maintenance import pages, require_maintainer
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import Case, CitedPassage, DecisionCounts, content_hash
from dtrag.core.cases.consolidation import aliases_of, duplicates
from dtrag.core.cases.evidence import standing_of
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.ports import AgentStore, CaseStore, Index, KeyStore

MADE_FROM_ANSWERS = frozenset({"answer", "answers", "case", "cases"})
"""Values of `metadata["kind"]` of documents that were made from answers or cases."""

Finding = Literal["stale", "duplicate", "self_referring", "voted_down", "never_used", "without_vote", "out_of_reach"]
FINDINGS: dict[Finding, str] = {
    "stale": "cite a passage that changed, or that is gone or outside the author's scope",
    "duplicate": "ask the same as another case and cite the same passages",
    "self_referring": "cite a document that was made from answers, or themselves",
    "voted_down": "are not reused because of an open thumbs-down",
    "never_used": "were never used",
    "without_vote": "have no vote of a person",
    "out_of_reach": "are in no category of an agent",
}
NEED_A_PERSON: frozenset[Finding] = frozenset({"stale", "duplicate", "self_referring", "voted_down"})
Cause = Literal["missing", "changed", "not valid", "outside the author's scope"]


Authors = Mapping[str, frozenset[tuple[str, ...]]]
"""Owner id -> the categories that the key may see now."""


class FindingRow(TypedDict):
    """A finding about a case; `passages` and `details` say which passages, and why."""

    case_id: str
    finding: Finding
    passages: list[str]
    details: str


@dataclass(frozen=True, slots=True)
class CaseAudit:
    """`reusable` cases are active, cite passages, and all of these are live; `without_sources` are only suggested."""

    examined: int
    archived: int
    reusable: int
    without_sources: int
    agents: int
    rows: tuple[FindingRow, ...]

    def count(self, finding: Finding) -> int:
        """Cases with this finding."""
        return sum(row["finding"] == finding for row in self.rows)

    @property
    def needs_a_person(self) -> bool:
        """Whether a finding is not just a figure."""
        return any(row["finding"] in NEED_A_PERSON for row in self.rows)

    def as_dict(self) -> dict[str, object]:
        """For display."""
        return {
            "examined": self.examined,
            "archived": self.archived,
            "reusable": self.reusable,
            "without_sources": self.without_sources,
            "agents": self.agents,
            "counts": {finding: self.count(finding) for finding in FINDINGS},
            "needs_a_person": self.needs_a_person,
            "findings": list(self.rows),
        }


class CaseAuditor:
    """Audits the cases of one store against the index, the keys of their authors and the agents."""

    def __init__(self, store: CaseStore, index: Index, keys: KeyStore, agents: AgentStore):
        self._store = store
        self._index = index
        self._keys = keys
        self._agents = agents

    async def audit(self, *, caller: Caller = LOCAL) -> CaseAudit:
        """The audit of all cases. Raises `FeatureOff` and `Forbidden`."""
        require_maintainer(caller)
        taxonomy = (await self._index.snapshot()).taxonomy
        authors = await self._authors(taxonomy)
        agents = await self._agents.every()
        reach = frozenset[int]().union(*(agent.grant.nodes(taxonomy) for agent in agents))
        active: list[Case] = []
        rows: list[FindingRow] = []
        archived, stale = 0, set[str]()
        async for page in pages(self._store):
            cases = [case for case in page if case.status == "active"]
            archived += len(page) - len(cases)
            active += cases
            for row in await self._source_findings(cases, authors, taxonomy):
                rows.append(row)
                if row["finding"] == "stale":
                    stale.add(row["case_id"])
            rows += await self._voted_down(cases)
        rows += _figures(active, reach if agents else None)
        rows += await asyncio.to_thread(_duplicates, active)
        order = list(FINDINGS)
        rows.sort(key=lambda row: (order.index(row["finding"]), row["case_id"]))
        cited = sum(bool(case.passages) for case in active)
        return CaseAudit(len(active), archived, cited - len(stale), len(active) - cited, len(agents), tuple(rows))

    async def _voted_down(self, cases: Sequence[Case]) -> list[FindingRow]:
        """Cases that are not reused, because the last vote of some caller is a thumbs-down."""
        suspected = [case for case in cases if case.passages and case.downvotes]
        if not suspected:
            return []
        votes = await self._store.votes([case.case_id for case in suspected], EVERYTHING)
        return [
            _row(
                case, "voted_down", details=f"{count:,} open: decide about its question in dtrag review, or archive it"
            )
            for case in suspected
            if (count := standing_of(case, votes.get(case.case_id, ()), DecisionCounts()).open_thumbs_down)
        ]

    async def _authors(self, taxonomy: Taxonomy) -> Authors:
        """The keys that are restricted to a part of the tree."""
        return {
            str(key.key_id): frozenset(taxonomy.path(node) for node in key.grant.nodes(taxonomy))
            for key in await self._keys.every()
            if key.grant is not None
        }

    async def _source_findings(self, cases: Sequence[Case], authors: Authors, taxonomy: Taxonomy) -> list[FindingRow]:
        by_day: dict[date | None, list[Case]] = defaultdict(list)
        for case in cases:
            if case.passages:
                by_day[case.as_of].append(case)
        rows: list[FindingRow] = []
        for day, of_day in by_day.items():
            keys = list(dict.fromkeys(passage.chunk_id for case in of_day for passage in case.passages))
            current = await self._index.fetch(keys, EVERYTHING.at(day), taxonomy)
            absent = {
                passage.document_id for case in of_day for passage in case.passages if passage.chunk_id not in current
            }
            existing = {key for document in absent for key in await self._index.chunk_ids(document, EVERYTHING)}
            for case in of_day:
                causes = {
                    passage.chunk_id: cause
                    for passage in case.passages
                    if (cause := _cause(passage, current, existing, authors.get(case.author)))
                }
                if causes:
                    rows.append(_row(case, "stale", causes, "; ".join(sorted(set(causes.values())))))
                if details := _self_reference(case, current):
                    rows.append(_row(case, "self_referring", (), details))
        return rows


def _cause(
    passage: CitedPassage,
    current: Mapping[str, SearchResult],
    existing: Iterable[str],
    author: frozenset[tuple[str, ...]] | None,
) -> Cause | None:
    """Why the passage does not support its case any more; None when it does."""
    live_passage = current.get(passage.chunk_id)
    if live_passage is None:
        return "not valid" if passage.chunk_id in existing else "missing"
    if author is not None and tuple(live_passage.taxonomy_path) not in author:
        return "outside the author's scope"
    return None if content_hash(live_passage.text) == passage.content_hash else "changed"


def _self_reference(case: Case, current: Mapping[str, SearchResult]) -> str:
    if case.case_id in {alias.case_id for alias in aliases_of(case)}:
        return "its aliases name the case itself"
    for passage in case.passages:
        live_passage = current.get(passage.chunk_id)
        if live_passage is None:
            continue
        if str(live_passage.metadata.get("kind", "")).casefold() in MADE_FROM_ANSWERS:
            return f"{passage.chunk_id} is of a document that was made from answers"
        if case.case_id in live_passage.text and _is_distinct(case.case_id):
            return f"{passage.chunk_id} quotes the id of the case"
    return ""


def _is_distinct(case_id: str) -> bool:
    """Whether the id is long enough not to be in a text by chance."""
    try:
        uuid.UUID(case_id.removeprefix("review-").removeprefix("answer-"))
    except ValueError:
        return False
    return True


def _figures(cases: Iterable[Case], reach: frozenset[int] | None) -> list[FindingRow]:
    rows: list[FindingRow] = []
    for case in cases:
        if not case.usage_count:
            rows.append(_row(case, "never_used"))
        if not case.upvotes and not case.downvotes and case.origin != "review":
            rows.append(_row(case, "without_vote"))
        if reach is not None and case.node_id not in reach:
            rows.append(_row(case, "out_of_reach", details="/".join(case.category_path)))
    return rows


def _duplicates(cases: Sequence[Case]) -> list[FindingRow]:
    return [
        _row(pair.case, "duplicate", details=f"of {pair.into.case_id}: dtrag cbr consolidate")
        for pair in duplicates(cases)
        if pair.into is not None
    ]


def _row(case: Case, finding: Finding, passages: Iterable[str] = (), details: str = "") -> FindingRow:
    return {"case_id": case.case_id, "finding": finding, "passages": list(passages), "details": details}
