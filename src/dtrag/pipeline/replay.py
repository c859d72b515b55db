"""Answers the question of a trace again, with what was recorded of then, and compares the answers.

A replay is kept nowhere but as a line of the audit log: it leaves no trace, no case, no turn, no experience, and it
runs no tools.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.audit_chain import AuditRow
from dtrag.core.access.filter_attacks import PATH_KEYS
from dtrag.core.access.scope import Access, Intersection, Scope, Viewer, scope_rows
from dtrag.core.answer_bundle import Bundle, BundleEvidence, payload_of
from dtrag.core.answer_record import AnswerRecord, content_hash
from dtrag.core.answers.replay import TEXT_ERASED, Present, Replay, aspects, is_same, reasons
from dtrag.core.statements import stated
from dtrag.core.trace import Trace
from dtrag.destinations import Outgoing
from dtrag.errors import Conflict, InvalidInput
from dtrag.pipeline.answer_record import recorded
from dtrag.pipeline.execution import Pipeline
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import PipelineRequest, PipelineResponse
from dtrag.pipeline.traces import Traces
from dtrag.ports import DocumentIndex, Recorder, valid_day
from dtrag.settings import FLAGS

AUDITED_WITHIN = datetime.timedelta(minutes=10)
"""Longest time between an answer and its line of the audit log."""
_WHOLE = 2**31 - 1
"""End of a span that is longer than any text."""
_KNOWN = frozenset(flag.name for flag in FLAGS)
_OF_DAY = frozenset({"texts_changed", "first_differs", "day_not_checked", "editions_missing"})
"""Reasons of an answer from the texts of an earlier day."""


class AuditLines(Protocol):
    """The newest lines of the audit log about an object, as `Audit.newest` returns them."""

    async def __call__(
        self, *, limit: int, since: datetime.datetime, until: datetime.datetime, subject: str
    ) -> list[AuditRow]:
        """The lines."""


@dataclass(frozen=True, slots=True)
class Replays:
    """Replays the answers of one app. `run` is what its questions are answered with now."""

    traces: Traces
    run: Callable[[], Run]
    index: DocumentIndex
    record: Recorder
    lines: AuditLines
    sign: Callable[[Mapping[str, Any]], Bundle]
    exportable: Callable[[], Awaitable[Outgoing]]
    mask: Callable[[str], str] = lambda text: text
    now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC)

    async def replay(
        self,
        trace_id: str | uuid.UUID,
        *,
        question: str | None = None,
        filters: Mapping[str, Any] | None = None,
        caller: Caller = LOCAL,
    ) -> Replay:
        """The answer of now, compared with the one of the trace.

        `question` and `filters` are needed where the trace has not kept them, and must be those of then. The search
        covers the categories of then that the caller may still see. Raises `NotFound`, `Conflict` for a trace without
        a record, and `InvalidInput`.
        """
        trace, then = await self._recorded(trace_id, caller)
        run = self.run()
        text, alone = self._question_of(trace, then, question, run)
        self._check_filters(then, filters, run)
        scope, narrowed = await self._scope_of(then, caller.access)
        response, now = await self._answered(run, then, text, filters, scope)
        await self._note("answers.replay", then, caller)
        present = replace(
            await self._present(then, caller.access),
            narrowed=narrowed,
            with_history=not then.earlier or alone,
            compared_with_today=scope.as_of is not None and not _OF_DAY.isdisjoint({*now.reasons} - {*then.reasons}),
        )
        compared = aspects(then, now)
        changed = reasons(then, now, present)
        return Replay(
            trace_id=str(trace.trace_id),
            answered_at=then.created_at,
            replayed_at=self.now(),
            same=is_same(compared),
            explained=is_same(compared) or bool(changed),
            aspects=compared,
            reasons=changed,
            titles=await self.traces.titles((*then.document_ids, *now.document_ids), caller=caller),
            notes=() if trace.answer else (TEXT_ERASED,),
            record=await self.confirmation(then),
            earlier_text=trace.answer,
            text=response.text,
            citations=response.citations,
        )

    async def bundle(
        self,
        trace_id: str | uuid.UUID,
        *,
        question: str | None = None,
        filters: Mapping[str, Any] | None = None,
        caller: Caller = LOCAL,
    ) -> Bundle:
        """The answer of the trace with its evidence, signed.

        Texts are left out that are not kept, not there any more, or above the grade of the limit `export:answers`;
        `left_out` in the payload names them. With a `question`, an answer whose text is not kept is given again, and is
        part of the bundle if it is the same.
        Raises as `replay`, and `MissingExtra`.
        """
        trace, then = await self._recorded(trace_id, caller)
        run, text, answer = self.run(), trace.question, trace.answer
        if question is not None:
            text, _ = self._question_of(trace, then, question, run)
            self._check_filters(then, filters, run)
            if not answer:
                scope, _ = await self._scope_of(then, caller.access)
                response, now = await self._answered(run, then, text, filters, scope)
                answer = response.text if now.text == then.text else ""
        evidence = await self._evidence(then, caller.access)
        line = await self.line_of(then) if caller.may("admin") and not caller.access.grants else None
        confirmed = line is not None and line.entry.details["record"] == then.digest()
        audit = {"number": line.number, "hash": line.hash.hex()} if line is not None and confirmed else None
        bundle = self.sign(payload_of(then, evidence, question=text, answer=answer, audit=audit, at=self.now()))
        await self._note("answers.export", then, caller)
        return bundle

    async def _recorded(self, trace_id: str | uuid.UUID, caller: Caller) -> tuple[Trace, AnswerRecord]:
        trace = await self.traces.get(trace_id, caller=caller)
        if trace.record is None:
            raise Conflict(
                stated(
                    "replay_unrecorded",
                    "This answer was given by an earlier version of dtrag, which recorded nothing to replay or export.",
                )
            )
        return trace, trace.record

    async def _evidence(self, then: AnswerRecord, access: Access) -> BundleEvidence:
        """What there is of the answer that the caller may see, and an export may have."""
        taxonomy = (await self.index.snapshot()).taxonomy
        scope = access.resolved(taxonomy).at(datetime.date.fromisoformat(then.day))
        used = {passage.chunk_id for passage in then.passages} | {quote.chunk_id for quote in then.quotes}
        fetched, outgoing = await self.index.fetch([*used], scope, taxonomy), await self.exportable()
        passages = {chunk_id: passage for chunk_id, passage in fetched.items() if outgoing.admits(passage)}
        quotes: dict[int, str | None] = {}
        hashes: dict[str, str] = {}
        for quote in then.quotes:
            passage = passages.get(quote.chunk_id)
            text = "" if passage is None else passage.text[quote.start - passage.start : quote.end - passage.start]
            quotes[quote.number] = text if content_hash(text) == quote.quote else None
        for used_then in then.passages:
            passage, document_id = passages.get(used_then.chunk_id), used_then.document_id
            if (
                passage is None
                or document_id in hashes
                or recorded(passage, taxonomy).indexed_at != used_then.indexed_at
            ):
                continue
            whole = await self.index.document_text(uuid.UUID(document_id), 0, _WHOLE, scope)
            hashes |= {} if whole is None else {document_id: content_hash(whole.text)}
        documents = {quote.number: hashes.get(quote.document_id) for quote in then.quotes}
        return BundleEvidence(quotes, documents, outgoing.everything or used <= passages.keys())

    async def _note(self, action: str, then: AnswerRecord, caller: Caller) -> None:
        await self.record(
            caller.name,
            action,
            scope=scope_rows(caller.access),
            subjects=(str(then.trace_id),),
            decision="done",
            details={},
        )

    async def confirmation(self, record: AnswerRecord) -> Literal["confirmed", "altered", "not_audited"]:
        """Whether the audit log has the digest of this record."""
        line = await self.line_of(record)
        if line is None:
            return "not_audited"
        return "confirmed" if line.entry.details["record"] == record.digest() else "altered"

    async def line_of(self, record: AnswerRecord) -> AuditRow | None:
        """The line of the audit log about the answer; None if there is none."""
        around = {"since": record.created_at - AUDITED_WITHIN, "until": record.created_at + AUDITED_WITHIN}
        lines = await self.lines(limit=1_000, subject=str(record.trace_id), **around)
        return next((line for line in reversed(lines) if "record" in line.entry.details), None)

    def _question_of(self, trace: Trace, then: AnswerRecord, question: str | None, run: Run) -> tuple[str, bool]:
        """The question to search, and whether it needs no conversation to be understood."""
        if question is None:
            searched = next((step.facts["search_query"] for step in trace.steps if "search_query" in step.facts), "")
            stored = searched or trace.question
            if not stored:
                raise InvalidInput(
                    stated(
                        "replay_question_missing",
                        "The text of the question is not kept with the trace: give it as it was asked.",
                    )
                )
            return stored, bool(searched)
        text = self.mask(question)
        key = run.text_key()
        if key is None or key.id != then.key_id:
            raise InvalidInput(
                stated(
                    "replay_question_unchecked",
                    "The question cannot be checked: this service has another key than the one that answered it. Set "
                    "answer_key, or copy the file answer-key of its data folder.",
                )
            )
        if key.hash(text) not in {then.question, then.standalone}:
            raise InvalidInput(
                stated(
                    "replay_question_differs", "This is not the question of the trace. Give it exactly as it was asked."
                )
            )
        return text, key.hash(text) == then.standalone

    def _check_filters(self, then: AnswerRecord, filters: Mapping[str, Any] | None, run: Run) -> None:
        if PATH_KEYS & (filters or {}).keys():
            raise InvalidInput(
                stated(
                    "replay_categories_known",
                    "The categories of the search are known: leave the filters by category out.",
                )
            )
        key = run.text_key()
        hashed = "" if key is None else key.hash_of_filters(filters or {})
        if hashed != then.filters and (filters or then.filters):
            raise InvalidInput(
                stated(
                    "replay_filters_missing",
                    "The question was searched with filters other than categories, which are not kept: give the "
                    "same ones in the body of POST /traces/ID/replay.",
                )
                if then.filters
                else stated("replay_filters_unknown", "The question was searched without such filters: leave them out.")
            )

    async def _scope_of(self, then: AnswerRecord, access: Access) -> tuple[Viewer, bool]:
        """The categories of then that the caller may see, on the day of then; and whether those are not all."""
        taxonomy = (await self.index.snapshot()).taxonomy
        allowed, nodes = access.resolved(taxonomy), then.scope_nodes()
        scope = Intersection(access, Scope(nodes))
        day = datetime.date.fromisoformat(then.day)
        everything = valid_day(Scope(None))
        narrowed = allowed.nodes is not None and (nodes is None or not nodes & taxonomy.nodes.keys() <= allowed.nodes)
        return scope if day == everything else scope.at(day), narrowed

    async def _answered(
        self, run: Run, then: AnswerRecord, question: str, filters: Mapping[str, Any] | None, scope: Viewer
    ) -> tuple[PipelineResponse, AnswerRecord]:
        """The answer of now with the options of then, and its record."""
        options = then.options
        has_model = then.settings.get("model") != "none"
        run = replace(
            run,
            policy=options["policy"],
            debates=options["debates"],
            reads=options["reads"],
            model=run.model if has_model else None,
            critic=run.critic if has_model else None,
            learning=None,
        )
        made: list[Trace] = []

        async def keep(trace: Trace) -> None:
            made.append(trace)

        response = await Pipeline(lambda: run, keep=keep, mask=self.mask).execute(
            PipelineRequest(query=question),
            scope=scope,
            filters=filters or {},
            flags=frozenset(options["flags"]) & _KNOWN,
            debate_allowed=options["debate_allowed"],
            memory=options["memory"],
            retrieved=options["retrieved"],
            candidates=tuple(options["candidates"]),
            tools_allowed=(),
        )
        record = made[0].record
        assert record is not None  # noqa: S101 - a run of now has one
        return response, record

    async def _present(self, then: AnswerRecord, access: Access) -> Present:
        """What is there now of the documents behind the answer, as the caller may see them."""
        taxonomy = (await self.index.snapshot()).taxonomy
        scope = access.resolved(taxonomy).at(datetime.date.fromisoformat(then.day))
        fetched = await self.index.fetch([passage.chunk_id for passage in then.passages], scope, taxonomy)
        passages = {chunk_id: recorded(passage, taxonomy) for chunk_id, passage in fetched.items()}
        documents = {passage.document_id: passage.superseded_from for passage in passages.values()}
        for document_id in {passage.document_id for passage in then.passages} - documents.keys():
            document = await self.index.document(uuid.UUID(document_id), scope, taxonomy)
            if document is not None:
                documents[document_id] = str(document[0].metadata.get("superseded_from", ""))
        return Present(passages, documents)
