"""`CaseMemory`: the case memory of one app, as the command line, the HTTP service and programs use it.

A caller sees the cases whose category and whose cited documents are all in its scope, and whose question was not asked
in a wider one; everything else is answered as if it did not exist. Nothing works while the flag `cbr_enabled` is off,
which is read at every call.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from dtrag.cases import case_input
from dtrag.cases.maintenance import LogExpiry, cast, vote_target
from dtrag.cases.reuse import cited_passages, stale_passages
from dtrag.cases.suggesting import Suggester
from dtrag.cases.views import CaseExport, CasePage, ListedCase, Suggestions, shown, shown_statistics
from dtrag.core.access import confinement
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import EVERYTHING, PUBLISHED, Scope, scope_rows
from dtrag.core.cases.case import (
    DEFAULT_QUALITY,
    Case,
    CaseChange,
    CaseLog,
    CaseQuery,
    FeedbackType,
    SimilarityMethod,
    Status,
    Vote,
)
from dtrag.core.cases.index import question_hash
from dtrag.core.cases.requests import MAX_K, question
from dtrag.core.cases.statistics import CaseStatistics
from dtrag.core.editions import parse_date
from dtrag.core.response import extended
from dtrag.core.statements import stated
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.analysis import clean
from dtrag.destinations import Outgoing
from dtrag.errors import Conflict, FeatureOff, IncompleteRequest, InvalidInput, NotFound, StorageFull
from dtrag.ports import Index, Recorder, unrecorded
from dtrag.ports.cases import CaseStore
from dtrag.settings import flag

FLAG = "cbr_enabled"
MAX_LIMIT = 1_000
MAX_EXPORTED = 100_000
PAGE = 500
MOST_EXAMINED = 5_000
"""Cases that one page of a filtered list examines; the next page continues after them."""
CHANGEABLE = ("query", "category_path", "content", "quality_score", "metadata", "passages", "status")
NO_LOG = stated("case_not_logged", "The disk is full: the interaction was not stored, and takes no feedback.")


class CaseMemory:
    """The case memory of one app. `on_suggestion` gets the seconds of every suggestion, `on_feedback` every vote."""

    def __init__(
        self,
        store: CaseStore,
        index: Index,
        suggester: Suggester | None = None,
        *,
        exportable: Callable[[], Awaitable[Outgoing]],
        keeps_text: bool = True,
        expiry: LogExpiry | None = None,
        record: Recorder = unrecorded,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ):
        self._exportable = exportable
        self._store = store
        self._index = index
        self._suggester = suggester or Suggester(store)
        self._vectors = self._suggester.vectors
        self._keeps_text = keeps_text
        self._expiry = expiry or LogExpiry(store, days=0)
        self._record = record
        self._now = now
        self.on_suggestion: Callable[[float], None] = lambda seconds: None
        self.on_feedback: Callable[[FeedbackType], None] = lambda feedback: None

    @property
    def enabled(self) -> bool:
        """Whether the flag is on now."""
        return flag(FLAG)

    async def add(
        self,
        query: str,
        category_path: Sequence[str] | str,
        content: str,
        *,
        quality_score: float = DEFAULT_QUALITY,
        metadata: Mapping[str, Any] | None = None,
        case_id: str | None = None,
        passages: Sequence[str] = (),
        as_of: date | str | None = None,
        caller: Caller = LOCAL,
    ) -> Case:
        """Store a case. `passages` are ids of passages that it cites, in the caller's scope and valid on `as_of`.

        Raises `InvalidInput`, `Forbidden` for a category outside of the scope, `Conflict` for an id that is in use.
        """
        taxonomy, scope = await self._scope(caller)
        if case_id is not None and scope.nodes is not None:
            raise InvalidInput(
                "A key that is restricted to a part of the tree cannot choose case ids. Leave case_id out, and use the "
                "id in the response."
            )
        path, node_id = case_input.category(category_path, taxonomy, scope)
        text, day, now = case_input.question(query), parse_date("as_of", as_of), self._now()
        case = Case(
            case_id=str(uuid.uuid4()) if case_id is None else case_input.new_case_id(case_id),
            query=text,
            query_hash=question_hash(text),
            vector=await self._vectors.of(text),
            category_path=path,
            node_id=node_id,
            content=case_input.content(content),
            quality_score=case_input.quality(quality_score),
            metadata=case_input.metadata(metadata or {}),
            passages=await cited_passages(self._index, passages, scope.at(day), taxonomy),
            as_of=day,
            author=caller.owner,
            asked_in=PUBLISHED,
            created_at=now,
            updated_at=now,
        )
        if not await self._store.add(case):
            raise Conflict(f"There is a case {case.case_id!r} already. Change it, or choose another case_id.")
        await self._changed(caller, "cases.add", case.case_id)
        return case

    async def get(self, case_id: str, *, caller: Caller = LOCAL) -> Case:
        """A case, archived or not. Raises `NotFound`, also when the caller may not see it."""
        taxonomy, scope = await self._scope(caller)
        key = case_input.identifier(case_id)
        return shown(_existing(await self._store.get(key, scope), key), taxonomy)

    async def page(
        self,
        limit: int = 100,
        after: str | None = None,
        *,
        status: Status | None = None,
        stale: bool | None = None,
        caller: Caller = LOCAL,
    ) -> CasePage:
        """A page of the cases by id, after the id `after`.

        `status` and `stale` filter; a filtered page may have fewer than `limit` cases although a next one exists.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be from 1 to {MAX_LIMIT:,}.")
        taxonomy, scope = await self._scope(caller)
        after = None if after is None else clean(after)
        listed: list[ListedCase] = []
        examined, size = 0, limit + 1 if status is None and stale is None else PAGE
        while examined < MOST_EXAMINED:
            batch = await self._store.page(scope, size, after)
            changed = await stale_passages(batch, self._index, scope, taxonomy)
            for case in batch:
                if len(listed) == limit:
                    return CasePage(tuple(listed), limit, after)
                after, examined = case.case_id, examined + 1
                passages = changed.get(case.case_id, ())
                if status in (None, case.status) and stale in (None, bool(passages)):
                    row = shown(case, taxonomy)
                    listed.append(extended(ListedCase, row, stale=bool(passages), stale_passages=passages))
            if len(batch) < size:
                return CasePage(tuple(listed), limit, None)
        return CasePage(tuple(listed), limit, after)

    async def suggest(
        self,
        query: str,
        category_path: Sequence[str] | str | None = None,
        k: int = 5,
        *,
        method: SimilarityMethod = SimilarityMethod.SEMANTIC,
        min_quality: float = 0.0,
        prefix: bool = False,
        caller: Caller = LOCAL,
    ) -> Suggestions:
        """The `k` most similar cases, best first, without those of similarity 0; the interaction is stored, so that
        feedback can name it.

        `category_path` restricts to one category, or with `prefix` to its branch. SEMANTIC is combined with the
        similarity of words. Suggesting does not count as use.
        """
        started = time.perf_counter()
        taxonomy, scope = await self._scope(caller)
        if not 1 <= k <= MAX_K:
            raise InvalidInput(f"k must be from 1 to {MAX_K}.")
        category = CategoryPath.parse(category_path) if category_path else None
        node_id = taxonomy.find(category) if category else None
        case_query = CaseQuery(
            text=question(query),
            limit=k,
            method=method,
            category_path=category.names if category else None,
            nodes=_nodes(node_id, taxonomy, prefix=prefix) if category else None,
            prefix=prefix,
            min_quality=case_input.quality(min_quality),
        )
        nearest = await self._suggester.nearest(case_query, scope)
        nearest = replace(nearest, cases=[(case, score) for case, score in nearest.cases if score > 0])
        seconds = time.perf_counter() - started
        log = CaseLog(
            log_id=str(uuid.uuid4()),
            timestamp=self._now(),
            query=case_query.text if self._keeps_text else "",
            query_hash=question_hash(case_query.text),
            category_path=category.names if category else (),
            node_id=node_id,
            suggested_case_ids=tuple(case.case_id for case, _ in nearest.cases),
            execution_time_ms=round(seconds * 1_000, 3),
            similarity_method=nearest.method.value,
            user_id=caller.owner,
            asked_in=scope.branches(taxonomy),
        )
        notes, log_id = nearest.notes, await self._logged(log)
        self.on_suggestion(seconds)
        if log_id is None:
            notes = (*notes, NO_LOG)
        cases = [(shown(case, taxonomy), score) for case, score in nearest.cases]
        return Suggestions(log_id, cases, nearest.method, log.execution_time_ms, notes)

    async def change(
        self,
        case_id: str,
        *,
        query: str | None = None,
        category_path: Sequence[str] | str | None = None,
        content: str | None = None,
        quality_score: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        passages: Sequence[str] | None = None,
        status: Status | None = None,
        caller: Caller = LOCAL,
    ) -> tuple[Case, Case]:
        """Replace fields; None leaves a field unchanged. Returns the case before and after.

        With another question or other passages, the case counts as chosen by the caller, and what confirmed it until
        now is forgotten.

        Raises `IncompleteRequest` for blank values and without any change, `Forbidden` for a category outside of the
        scope, `NotFound`.
        """
        taxonomy, scope = await self._scope(caller)
        key = case_input.identifier(case_id)
        before = _existing(await self._store.get(key, scope), key)
        change = CaseChange(
            content=None if content is None else case_input.content(content),
            quality_score=None if quality_score is None else case_input.quality(quality_score),
            metadata=None if metadata is None else case_input.metadata(metadata),
            passages=None
            if passages is None
            else await cited_passages(self._index, passages, scope.at(before.as_of), taxonomy),
            status=status,
        )
        if query is not None:
            text = case_input.question(query)
            vector = await self._vectors.of(text)
            change = replace(change, query=text, query_hash=question_hash(text), vector=vector)
        if category_path is not None:
            path, node_id = case_input.category(category_path, taxonomy, scope)
            change = replace(change, category_path=path, node_id=node_id)
        if change == CaseChange():
            raise IncompleteRequest("There is nothing to change. Give at least one field a value.")
        changed = await self._store.change(key, replace(change, author=caller.owner), self._now(), scope)
        if changed is None:
            raise _not_found(key)
        await self._changed(
            caller, "cases.change", key, fields=[name for name in CHANGEABLE if getattr(change, name) is not None]
        )
        return changed

    async def delete(self, case_id: str, *, caller: Caller = LOCAL) -> None:
        """Delete a case with its votes and the interactions that name only it. Raises `NotFound`."""
        _, scope = await self._scope(caller)
        key = case_input.identifier(case_id)
        if not await self._store.delete(key, scope):
            raise _not_found(key)
        await self._changed(caller, "cases.delete", key)

    async def feedback(
        self,
        log_id: str,
        case_id: str,
        feedback: FeedbackType,
        *,
        success: bool | None = None,
        caller: Caller = LOCAL,
    ) -> Case:
        """A vote on a case of an own interaction; the case after it. The same vote again changes nothing.

        `success` is whether the case helped; by default everything but a thumbs_down is a success. On a case that was
        shown with an answer, the vote replaces what /chat/feedback said of it.

        Raises `NotFound` when no interaction of this caller with this id names the case.
        """
        _, scope = await self._scope(caller)
        log_key, key = case_input.identifier(log_id), case_input.identifier(case_id)
        log = await self._store.log(log_key, caller.owner)
        named = (*log.suggested_case_ids, *log.picked_case_ids, log.shown_case_id) if log is not None else ()
        voted, case = None, await self._store.get(key, scope) if key in named else None
        if case is not None and log is not None:
            target = await vote_target(self._store, case, log_key, feedback, scope=scope, at=self._now())
            vote = Vote(
                log_id=target.log_id,
                case_id=target.case.case_id,
                feedback=feedback,
                success=feedback is not FeedbackType.THUMBS_DOWN if success is None else success,
                voter=caller.owner,
                at=self._now(),
            )
            voted = await cast(self._store, vote, log, scope, reused=(log.shown_case_id,))
        if voted is None:
            raise NotFound(
                f"There is no interaction {log_key[:60]!r} of yours with the case {key[:60]!r}. Use the log_id of the "
                "response that suggested the case."
            )
        self.on_feedback(feedback)
        return voted

    async def logs(self, limit: int = 100, *, success_only: bool = False, caller: Caller = LOCAL) -> Sequence[CaseLog]:
        """The newest interactions whose category, cases and question are all in the caller's scope, newest first."""
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be from 1 to {MAX_LIMIT:,}.")
        taxonomy, scope = await self._scope(caller)
        return [shown(log, taxonomy) for log in await self._store.logs(scope, limit, success_only=success_only)]

    async def statistics(self, *, caller: Caller = LOCAL) -> CaseStatistics:
        """Figures over the cases and interactions in the caller's scope."""
        taxonomy, scope = await self._scope(caller)
        return shown_statistics(await self._store.statistics(scope), taxonomy)

    async def statistics_of_all(self) -> CaseStatistics:
        """Figures over everything, for metrics. Raises `FeatureOff` and `DatabaseUnavailable`."""
        self._require_enabled()
        return await self._store.statistics(EVERYTHING)

    async def ping(self) -> None:
        """Raises `DatabaseUnavailable` unless the store can be read."""
        await self._store.page(EVERYTHING, 1)

    async def export(self, limit: int = 10_000, *, caller: Caller = LOCAL) -> CaseExport:
        """Up to `limit` cases, and as many of the newest interactions, of the caller's scope; audited.

        What is above the grade of the limit `export:cases` is left out.
        """
        if not 1 <= limit <= MAX_EXPORTED:
            raise InvalidInput(f"limit must be from 1 to {MAX_EXPORTED:,}.")
        taxonomy, scope = await self._scope(caller)
        scope = (await self._exportable()).narrowed(scope)
        cases: list[Case] = []
        while len(cases) <= limit:
            after = cases[-1].case_id if cases else None
            batch = await self._store.page(scope, min(PAGE, limit + 1 - len(cases)), after)
            if not batch:
                break
            cases += batch
        interactions = await self._store.logs(scope, limit + 1)
        statistics = shown_statistics(await self._store.statistics(scope), taxonomy)
        await self._changed(caller, "cases.export", cases=min(len(cases), limit))
        shown_cases = [shown(case, taxonomy) for case in cases]
        shown_logs = [shown(log, taxonomy) for log in interactions]
        return await asyncio.to_thread(CaseExport.of, shown_cases, shown_logs, limit, statistics)

    def _require_enabled(self) -> None:
        if not self.enabled:
            raise FeatureOff(feature="CBR system", variable="CBR_ENABLED")

    async def _scope(self, caller: Caller) -> tuple[Taxonomy, Scope]:
        """The active tree and what the caller may see in it. Raises `FeatureOff`."""
        self._require_enabled()
        taxonomy = (await self._index.snapshot()).taxonomy
        return taxonomy, confinement.bounded(caller.access).resolved(taxonomy)

    async def _logged(self, log: CaseLog) -> str | None:
        """Store the interaction, and delete expired ones; its id, or None when the disk is full."""
        try:
            await self._store.add_log(log)
        except StorageFull:
            return None
        await self._expiry.tidy()
        return log.log_id

    async def _changed(self, caller: Caller, action: str, *case_ids: str, **details: object) -> None:
        await self._record(
            caller.name,
            action,
            scope=scope_rows(caller.access),
            subjects=case_ids,
            decision="done",
            details=details,
        )


def _nodes(node_id: int | None, taxonomy: Taxonomy, *, prefix: bool) -> frozenset[int]:
    """The node of a category, with its branch if wanted; empty when the path is not in the tree."""
    if node_id is None:
        return frozenset()
    return taxonomy.subtree(node_id) if prefix else frozenset({node_id})


def _existing(case: Case | None, case_id: str) -> Case:
    if case is None:
        raise _not_found(case_id)
    return case


def _not_found(case_id: str) -> NotFound:
    return NotFound(f"There is no case {case_id[:60]!r} that you may see. `dtrag cbr list` shows what there is.")
