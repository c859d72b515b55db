"""What the memory keeps of answered questions: interactions, replays, and the cases that are made from them.

Everything is written after the answer, in the background; feedback is written before it is acknowledged.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from dtrag.batch_writer import BatchWriter
from dtrag.cases.case_input import shared_category
from dtrag.cases.maintenance import LogExpiry, cast, vote_target
from dtrag.cases.reuse import Reuse
from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import Scope
from dtrag.core.answers.citation_labels import label
from dtrag.core.cases.case import Case, CaseLog, CitedPassage, FeedbackType, ReuseDecision, Vote, content_hash
from dtrag.core.cases.index import question_hash
from dtrag.core.cases.reuse_verdict import is_author
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.analysis import clean
from dtrag.errors import DatabaseUnavailable, InvalidInput, StorageFull
from dtrag.ports import CaseStore, Index
from dtrag.ports.cases import AnsweredQuestion, CaseEffect
from dtrag.settings import Settings

Retain = Literal["never", "thumbs_up", "always"]
RETAIN: tuple[Retain, ...] = ("never", "thumbs_up", "always")
MAX_QUERY = 10_000
MOST_REPLAYS = 20
"""Replays recorded of one case, correct and wrong ones each: a question that is asked all day must not outweigh the
collection."""
WRITE_S = 0.2
"""Longest time between an answer and its interaction in the store, in seconds, while the store keeps up."""
MOST_WAITING = 2_000
"""Maximum of queued interactions; beyond it the oldest are dropped."""
BATCH = 50
_NAMESPACE = uuid.UUID("3c1f6f0e-5a0b-5d2e-9a4f-6f1d0c7e2b11")
_LOG = logging.getLogger(__name__)

_NOTES: dict[str, str] = {
    "declined": "An answer without citations makes no case.",
    "unfinished": "An answer that was not finished in time makes no case.",
    "follow_up": "A question that is understood only with those before it makes no case.",
    "filtered": "An answer from a filtered part of the documents makes no case.",
    "never": "No cases are made from answers (CBR_RETAIN is never).",
    "changed": "The cited passages have changed since: no case was made.",
    "elsewhere": "The case of this answer is out of your scope now.",
    "other_passages": "The case of this answer cites other passages now: the feedback does not count for it.",
}


class Retention:
    """Writes what happened with answers to the case store of one app.

    `retain`: which answers become cases: never, thumbs_up or always. Without `keeps_text` questions are stored as
    hashes only.
    """

    def __init__(
        self,
        store: CaseStore,
        index: Index,
        reuse: Reuse,
        *,
        retain: Retain = "thumbs_up",
        keeps_text: bool = True,
        expiry: LogExpiry | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._index = index
        self._reuse = reuse
        self._retain = retain
        self._keeps_text = keeps_text
        self._expiry = expiry or LogExpiry(store, days=0)
        self._now = now
        self._dropped = 0
        self._writer: BatchWriter[AnsweredQuestion] = BatchWriter(
            "cases", self._write_batch, batch_size=BATCH, delay=WRITE_S, log=_LOG, prepare=self._report_dropped
        )

    @classmethod
    def of(cls, settings: Settings, store: CaseStore, index: Index, reuse: Reuse) -> Retention:
        """The retention as configured. Raises `InvalidInput` for an invalid setting."""
        for retain in RETAIN:
            if settings.cbr_retain == retain:
                expiry = LogExpiry(store, settings.cbr_log_days)
                return cls(store, index, reuse, retain=retain, keeps_text=keeps_text(settings), expiry=expiry)
        raise InvalidInput(f"CBR_RETAIN is {settings.cbr_retain[:20]!r}, but must be never, thumbs_up or always.")

    def remember(self, answered: AnsweredQuestion) -> None:
        """Queue the interaction; returns at once."""
        if len(self._writer) >= MOST_WAITING:
            self._writer.drop_oldest()
            self._dropped += 1
        self._writer.add(answered)

    async def flush(self) -> None:
        """Write everything that is queued. Raises `DatabaseUnavailable`."""
        await self._writer.flush()

    async def close(self) -> None:
        """Write the queued interactions. Those that cannot be written are lost, which is logged."""
        await self._writer.stop()
        try:
            await self._writer.flush()
        except DatabaseUnavailable as error:
            _LOG.error("%d interactions could not be written", len(self._writer), exc_info=error)

    async def interaction(self, trace_id: str, caller: Caller) -> CaseLog | None:
        """The interaction of an own answer; None for an unknown one. Raises `DatabaseUnavailable`."""
        await self.flush()
        log = await self._store.log(trace_id, caller.owner)
        return log if log is not None and log.kind == "answer" else None

    async def feedback(self, log: CaseLog, kind: FeedbackType, caller: Caller) -> CaseEffect:
        """What the caller's feedback on an own answer does to the memory.

        A vote on the case that was shown with the answer, or on the case that was made of it; the first thumbs-up makes
        that case. Durable when this returns. Raises `DatabaseUnavailable`.
        """
        taxonomy = (await self._index.snapshot()).taxonomy
        scope = caller.access.at(log.as_of).resolved(taxonomy)
        voted = await self._cases_of(log, kind, scope)
        case = voted[0] if voted else None
        if case is None and kind is FeedbackType.THUMBS_UP:
            return await self._made_by_vote(log, caller, scope, taxonomy)
        if case is None:
            return CaseEffect(note=await self._why_not(log, scope))
        targets = [
            await vote_target(self._store, each, log.log_id, kind, scope=scope, at=self._now()) for each in voted
        ]
        for target in targets:
            await self._vote(replace(log, log_id=target.log_id), target.case, kind, caller, scope)
        return CaseEffect("case_voted", targets[0].case.case_id, targets[0].note)

    async def _cases_of(self, log: CaseLog, kind: FeedbackType, scope: Scope) -> list[Case]:
        """What the feedback is a vote on: the case shown with the answer, the earlier voted one, or the one made of it.

        A thumbs-down also concerns the case whose passages were raised without being cited.
        """
        candidates = [*filter(None, (log.shown_case_id,)), *sorted(log.case_ids), case_id_of(log)]
        raised = str(log.details.get("verified_case_id", ""))
        cases = await self._store.of([*candidates, raised], scope)
        seen = {case_id for case_id, case in cases.items() if _is_as_seen(case, log)}
        voted = [case_id for case_id in candidates if case_id in seen][:1]
        if kind is FeedbackType.THUMBS_DOWN and raised in seen and raised not in voted:
            voted.append(raised)
        return [cases[case_id] for case_id in voted]

    async def _why_not(self, log: CaseLog, scope: Scope) -> str:
        """Why the feedback is no vote on the case that was shown with the answer; "" when there was none."""
        if not log.case_ids:
            return ""
        return _NOTES["other_passages" if await self._store.of(log.case_ids, scope) else "elsewhere"]

    async def _made_by_vote(self, log: CaseLog, caller: Caller, scope: Scope, taxonomy: Taxonomy) -> CaseEffect:
        reason = "never" if self._retain == "never" else str(log.details.get("not_retained", ""))
        if reason:
            return CaseEffect(note=_NOTES.get(reason, ""))
        passages = await self._index.fetch([passage.chunk_id for passage in log.passages], scope, taxonomy)
        current = [passages[cited.chunk_id] for cited in log.passages if cited.chunk_id in passages]
        if _cited(current) != log.passages:
            return CaseEffect(note=_NOTES["changed"])
        made = await self._case_from(log, current, taxonomy, scope)
        case, is_new = await self._stored(made, scope, log.log_id)
        await self._vote(log, case, FeedbackType.THUMBS_UP, caller, scope)
        return CaseEffect("case_made" if is_new else "case_voted", case.case_id)

    async def _vote(self, log: CaseLog, case: Case, kind: FeedbackType, caller: Caller, scope: Scope) -> None:
        vote = Vote(
            log_id=log.log_id,
            case_id=case.case_id,
            feedback=kind,
            success=kind is FeedbackType.THUMBS_UP,
            voter=caller.owner,
            at=self._now(),
        )
        reused = (log.shown_case_id, log.details.get("verified_case_id"))
        await cast(self._store, vote, log, scope, reused=reused)

    async def _write_batch(self, batch: list[AnsweredQuestion]) -> None:
        for answered in batch:
            try:
                await self._write(answered)
            except DatabaseUnavailable:
                raise
            except StorageFull as error:
                _LOG.warning("interactions are not kept while the disk is full", exc_info=error)
            except Exception:  # noqa: BLE001 - boundary: one that cannot be stored must not block the others
                _LOG.error("an interaction could not be stored and is dropped", exc_info=True)

    async def _write(self, answered: AnsweredQuestion) -> None:
        taxonomy = (await self._index.snapshot()).taxonomy
        scope = answered.viewer.resolved(taxonomy)
        log = self._log_of(answered, taxonomy, scope)
        await self._store.add_log(log)
        await self._expiry.tidy()
        await self._replay(answered, scope, log.asked_in)
        if self._retain == "always" and not answered.not_retained and answered.shown_case_id is None:
            await self._stored(await self._case_from(log, answered.cited, taxonomy, scope), scope, log.log_id)

    def _log_of(self, answered: AnsweredQuestion, taxonomy: Taxonomy, scope: Scope) -> CaseLog:
        path, node_id = shared_category(answered.cited, taxonomy)
        question = clean(answered.question[:MAX_QUERY])
        return CaseLog(
            log_id=answered.trace_id,
            timestamp=answered.answered_at,
            query=question if self._keeps_text else "",
            query_hash=question_hash(question),
            category_path=path,
            node_id=node_id,
            execution_time_ms=round(answered.seconds * 1_000, 3),
            user_id=answered.owner,
            kind="answer",
            passages=_cited(answered.cited),
            shown_case_id=answered.shown_case_id,
            as_of=answered.as_of,
            asked_in=scope.branches(taxonomy),
            details={
                "decision": answered.decision,
                "confidence": round(answered.confidence, 6),
                "not_retained": answered.not_retained,
                "answered_in": None if scope.nodes is None else sorted(scope.nodes),
                **_verified(answered),
            },
        )

    async def _replay(self, answered: AnsweredQuestion, scope: Scope, asked_in: frozenset[int] | None) -> None:
        """Judge cases with the same question by an answer from the same scope, over all of its documents.

        Silent cases by an answer that was given without them; the verified one only when the answer does not cite it.
        Authors do not confirm their own cases.
        """
        recalled = answered.recalled
        if recalled is None or answered.not_retained or not answered.cited or answered.shown_case_id is not None:
            return
        cited = {passage.chunk_id for passage in answered.cited}
        for case in recalled.same if recalled.case is None else (recalled.case,):
            correct = any(passage.chunk_id in cited for passage in case.passages)
            if scope.nodes != case.answered_in:
                continue
            if correct and (recalled.case is not None or is_author(case, answered.owner)):
                continue
            counts = await self._store.decisions(case.case_id)
            if (counts.correct if correct else counts.wrong) >= MOST_REPLAYS:
                continue
            decision = ReuseDecision(
                case_id=case.case_id,
                log_id=answered.trace_id,
                kind="replay",
                correct=correct,
                at=answered.answered_at,
                asker=answered.owner,
                asked_in=asked_in,
            )
            await self._store.add_decision(decision)

    async def _case_from(self, log: CaseLog, cited: Sequence[SearchResult], taxonomy: Taxonomy, scope: Scope) -> Case:
        """The case of an interaction: its content are the labels of the citations, no text of a document."""
        path, node_id = shared_category(cited, taxonomy)
        return Case(
            case_id=case_id_of(log),
            query=log.query,
            query_hash=log.query_hash,
            category_path=path,
            node_id=node_id,
            content="\n".join(dict.fromkeys(label(passage) for passage in cited)),
            created_at=log.timestamp,
            updated_at=log.timestamp,
            passages=log.passages,
            origin="answer",
            author=log.user_id,
            as_of=log.as_of,
            answered_in=_nodes(log.details.get("answered_in", scope.nodes)),
            asked_in=log.asked_in,
            vector=await self._reuse.suggester.vectors.of(log.query) if log.query else None,
        )

    async def _stored(self, case: Case, scope: Scope, log_id: str) -> tuple[Case, bool]:
        """The case after storing it, and True; or one that asks the same and cites the same passages, and False.

        When its id belongs to a case that cites other passages by now, it gets one of its own.
        """
        cited = frozenset(case.passages)
        for other in await self._asking_the_same(case, scope):
            if frozenset(other.passages) == cited and other.answers_for(case.answered_in):
                return other, False
        if await self._store.add(case):
            return case, True
        known = await self._store.get(case.case_id, scope)
        if known is not None and frozenset(known.passages) == cited:
            return known, False
        case = replace(case, case_id=f"answer-{uuid.uuid5(_NAMESPACE, f'{case.case_id} {log_id}')}")
        return case, await self._store.add(case)

    async def _asking_the_same(self, case: Case, scope: Scope) -> Sequence[Case]:
        if not case.query:
            return ()
        try:
            return await self._reuse.with_same_question(case.query, replace(scope, as_of=case.as_of))
        except TimeoutError:
            return ()

    async def _report_dropped(self) -> None:
        if self._dropped:
            _LOG.warning("%d interactions came faster than they could be written and were dropped", self._dropped)
            self._dropped = 0


def keeps_text(settings: Settings) -> bool:
    """Whether questions are stored with their text. Raises `InvalidInput` for an invalid setting."""
    if settings.cbr_text not in {"on", "off"}:
        raise InvalidInput(f"DTRAG_CBR_TEXT is {settings.cbr_text[:20]!r}, but must be on or off.")
    return settings.cbr_text == "on"


def case_id_of(log: CaseLog) -> str:
    """The id of the case made of an interaction: the same for the same question, day, scope and passages."""
    parts = [log.query_hash.hex(), str(log.as_of or ""), *map(str, log.details.get("answered_in") or ())]
    parts += sorted(f"{passage.chunk_id} {passage.content_hash.hex()}" for passage in log.passages)
    return f"answer-{uuid.uuid5(_NAMESPACE, chr(10).join(parts))}"


def _verified(answered: AnsweredQuestion) -> dict[str, str]:
    """The case that was shown or whose passages were raised, as it was then."""
    recalled = answered.recalled
    if recalled is None or recalled.case is None or not (recalled.raises or answered.shown_case_id):
        return {}
    return {"verified_case_id": recalled.case.case_id, "verified_as": recalled.case.fingerprint}


def _is_as_seen(case: Case, log: CaseLog) -> bool:
    """Whether the case still cites what it did for this answer: a vote counts for what the voter saw."""
    if log.details.get("verified_case_id") == case.case_id:
        return log.details.get("verified_as") == case.fingerprint
    return frozenset(case.passages) == frozenset(log.passages)


def _nodes(nodes: Iterable[int] | None) -> frozenset[int] | None:
    return None if nodes is None else frozenset(nodes)


def _cited(passages: Sequence[SearchResult]) -> tuple[CitedPassage, ...]:
    return tuple(CitedPassage(passage.chunk_id, content_hash(passage.text)) for passage in passages)
