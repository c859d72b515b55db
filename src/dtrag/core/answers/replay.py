"""Compares an answer with the one that the same question gets now, and states what has changed in between.

Every reason is a fact that was compared, from a fixed list (`REASONS`); none is inferred from the answers' difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from dtrag.core.answer_record import AnswerRecord, RecordedPassage
from dtrag.core.documents import Citation
from dtrag.core.response import Moment, plain, response
from dtrag.core.statements import Statement, Statements, stated

CONFIDENCE_DIGITS = 4
MOST_NAMED = 5
"""Ids that a reason names."""
REASONS: Mapping[str, str] = {
    "replay_document_deleted": "Documents behind the earlier answer were deleted: {documents}.",
    "replay_text_changed": "Passages behind the earlier answer have another text now: {documents}.",
    "replay_edition_superseded": "Newer editions have replaced what the earlier answer used: {documents}.",
    "replay_document_moved": "Documents behind the earlier answer are in another category now: {documents}.",
    "replay_passages_added": "Passages that were indexed since are used now: {documents}.",
    "replay_words_changed": "The searched documents have changed: {then} passages then, {now} now, or the words of the "
    "question occur in others of them.",
    "replay_tree_changed": "The category tree has changed: version {then} then, {now} now.",
    "replay_setting_changed": "The setting {name} has changed: {then} then, {now} now.",
    "replay_model_gone": "The language model of the earlier answer, {then}, is not configured any more.",
    "replay_model_changed": "Another language model is configured: {then} then, {now} now.",
    "replay_model_reply": "The language model was asked the same, and replied otherwise.",
    "replay_history_missing": "The question followed {messages} messages of a conversation, which are not kept with "
    "the trace: it was answered alone.",
    "replay_scope_smaller": "You may not see all categories that were searched then.",
    "replay_later_day": "The texts of {day} were searched, and what has changed since was compared with them.",
    "replay_parts_left_out": "Parts were left out: {then} then, {now} now.",
    "replay_out_of_time": "A time limit was reached: {then} then, {now} now.",
    "replay_vectors_pending": "Passages waited for their vectors: {then} then, {now} now.",
    "replay_tools_not_run": "The earlier answer used tools, which a replay does not run: {tools}.",
    "replay_cases_changed": "The case memory holds other cases on the question than then.",
    "replay_weights_chosen": "The weights of the search were chosen for the question then, and are the usual ones now.",
}
"""Code of each reason -> its sentence."""
TEXT_ERASED = stated(
    "replay_text_erased",
    "The text of the earlier answer is not kept, or was erased: it is compared by its hash.",
)
AspectName = Literal["text", "citations", "decision", "confidence", "passages"]


@dataclass(frozen=True, slots=True)
class Aspect:
    """A part of the answer, then and now."""

    __pydantic_config__ = response("ReplayAspect")

    name: AspectName
    """text, citations, decision, confidence, or passages: those that the answer used, in their order."""
    same: bool
    """Whether it is the same."""
    then: str
    """Of the earlier answer: its value, for text and passages a hash or their number."""
    now: str
    """The same of the answer of now."""


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer compared with the one that the same question gets now."""

    __pydantic_config__ = response("ReplayResponse")

    trace_id: str
    """The trace of the earlier answer."""
    answered_at: Moment
    """When that was given."""
    replayed_at: Moment
    """When it was compared."""
    same: bool
    """Whether text, citations, decision and confidence are the same."""
    explained: bool
    """Whether they are the same, or something that was checked has changed since."""
    aspects: tuple[Aspect, ...]
    """What was compared."""
    reasons: Statements
    """What has changed since, as far as it was checked; also where the answer is the same."""
    titles: Mapping[str, str]
    """Id -> title of the documents behind both answers; without those that were deleted or that you may not see."""
    notes: Statements
    """What limits the comparison, such as an erased text."""
    record: Literal["confirmed", "altered", "not_audited"]
    """Whether the audit log confirms what was recorded of the earlier answer; not_audited: it has no line about it."""
    earlier_text: str
    """The earlier answer; empty when its text is not kept."""
    text: str
    """The answer of now."""
    citations: tuple[Citation, ...]
    """The citations of the answer of now."""


@dataclass(frozen=True, slots=True)
class Present:
    """What is there now of the documents behind an earlier answer, as its reader may see them.

    `passages` are those of its passages that are valid on its day, `documents` those of its documents, with the day
    from which a newer edition replaces each ("" for none). `narrowed`: not all of the searched categories are visible
    any more. `with_history`: the question was understood as then. `compared_with_today`: what has changed since its
    day decides the answer of now.
    """

    passages: Mapping[str, RecordedPassage] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)
    narrowed: bool = False
    with_history: bool = True
    compared_with_today: bool = False


def aspects(then: AnswerRecord, now: AnswerRecord) -> tuple[Aspect, ...]:
    """The parts of both answers."""
    rows: Sequence[tuple[AspectName, object, object, object, object]] = (
        ("text", then.text, now.text, then.text[:16], now.text[:16]),
        ("citations", then.quotes, now.quotes, len(then.quotes), len(now.quotes)),
        ("decision", then.decision, now.decision, then.decision, now.decision),
        ("confidence", _confidence(then), _confidence(now), _shown(then), _shown(now)),
        ("passages", _texts(then), _texts(now), len(then.passages), len(now.passages)),
    )
    return tuple(Aspect(name, first == second, str(shown), str(other)) for name, first, second, shown, other in rows)


def is_same(compared: Iterable[Aspect]) -> bool:
    """Whether the answer is the same: the passages behind it may differ."""
    return all(aspect.same for aspect in compared if aspect.name != "passages")


def reasons(then: AnswerRecord, now: AnswerRecord, present: Present) -> Statements:
    """What has changed between the answers, in the order of `REASONS`."""
    facts = [*_of_documents(then, now, present), *_of_settings(then, now), *_of_runs(then, now, present)]
    order = list(REASONS)
    return tuple(sorted(facts, key=lambda fact: order.index(fact.code)))


def _confidence(record: AnswerRecord) -> tuple[float | None, ...]:
    values = (record.confidence, record.answer_confidence)
    return tuple(None if value is None else round(value, CONFIDENCE_DIGITS) for value in values)


def _shown(record: AnswerRecord) -> str:
    return " / ".join(f"{value:.{CONFIDENCE_DIGITS}f}" for value in _confidence(record) if value is not None)


def _texts(record: AnswerRecord) -> list[tuple[str, str]]:
    return [(passage.chunk_id, passage.text) for passage in record.passages]


def _of_documents(then: AnswerRecord, now: AnswerRecord, present: Present) -> Iterable[Statement]:
    passages = [passage for passage in then.passages if passage.document_id in present.documents]
    known = [(each, present.passages[each.chunk_id]) for each in passages if each.chunk_id in present.passages]
    earlier = {passage.chunk_id for passage in then.passages}
    superseded = [each for each in passages if present.documents[each.document_id] != each.superseded_from]
    changed = [each for each in passages if each.chunk_id not in present.passages and each not in superseded]
    changed += [before for before, after in known if after.text != before.text]
    by_code = {
        "replay_document_deleted": [each for each in then.passages if each.document_id not in present.documents],
        "replay_text_changed": changed,
        "replay_edition_superseded": superseded,
        "replay_document_moved": [before for before, after in known if after.node_id != before.node_id],
        "replay_passages_added": [
            each
            for each in now.passages
            if each.chunk_id not in earlier and _is_later(each.indexed_at, then.created_at)
        ],
    }
    for code, affected in by_code.items():
        if documents := dict.fromkeys(passage.document_id for passage in affected):
            more = f" and {len(documents) - MOST_NAMED} more" if len(documents) > MOST_NAMED else ""
            yield _reason(code, documents=", ".join(list(documents)[:MOST_NAMED]) + more)
    if (then.searched, then.words) != (now.searched, now.words):
        yield _reason("replay_words_changed", then=then.searched, now=now.searched)
    if then.tree != now.tree:
        yield _reason("replay_tree_changed", then=then.tree, now=now.tree)


def _is_later(indexed_at: str, moment: datetime) -> bool:
    return bool(indexed_at) and datetime.fromisoformat(indexed_at) > moment


def _of_settings(then: AnswerRecord, now: AnswerRecord) -> Iterable[Statement]:
    before, after = then.settings.get("model", "none"), now.settings.get("model", "none")
    if before != after:
        code = "replay_model_gone" if after == "none" else "replay_model_changed"
        yield _reason(code, then=before, now=after)
    for values, others in ((then.settings, now.settings), (then.options, now.options)):
        for name in sorted({*values, *others} - {"model"}):
            first, second = _written(values.get(name)), _written(others.get(name))
            if first != second:
                yield _reason("replay_setting_changed", name=name, then=first, now=second)


def _written(value: Any) -> str:
    value = plain(value)
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else "none" if value is None else str(value)


def _of_runs(then: AnswerRecord, now: AnswerRecord, present: Present) -> Iterable[Statement]:
    if then.calls and then.calls == now.calls and then.text != now.text:
        yield _reason("replay_model_reply")
    if not present.with_history:
        yield _reason("replay_history_missing", messages=then.earlier)
    if present.narrowed:
        yield _reason("replay_scope_smaller")
    if present.compared_with_today:
        yield _reason("replay_later_day", day=then.day)
    if then.degraded != now.degraded:
        yield _reason("replay_parts_left_out", then=_written(list(then.degraded)), now=_written(list(now.degraded)))
    for code, before, after in (
        ("replay_out_of_time", then.unfinished, now.unfinished),
        ("replay_vectors_pending", then.vectors_pending, now.vectors_pending),
    ):
        if before != after:
            yield _reason(code, then="yes" if before else "no", now="yes" if after else "no")
    if then.tools != now.tools:
        yield _reason("replay_tools_not_run", tools=", ".join(then.tools))
    if sorted(then.cases) != sorted(now.cases):
        yield _reason("replay_cases_changed")
    if then.weighted != now.weighted:
        yield _reason("replay_weights_chosen")


def _reason(code: str, **values: object) -> Statement:
    return stated(code, REASONS[code], **values)
