"""Measures answers to judged questions: what they quote, whether it is right, and which questions are declined."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dtrag.core.documents import Answer, SearchResult
from dtrag.core.evaluation_run import ANSWERS, RunRow, risk_coverage, shown
from dtrag.core.metrics.intervals import Ratio, estimates
from dtrag.core.response import plain
from dtrag.errors import InvalidInput
from dtrag.evaluation.judged_questions import (
    UNFINISHED,
    JudgedQuestion,
    JudgedSet,
    article_names,
    document_names,
    judged_name,
    missing_groups,
    read_set,
    shown_parts,
    spread,
    unfinished_line,
    within_limit,
)
from dtrag.evaluation.report import confidence_of

VERDICTS = (*ANSWERS, "abstain")
RATIOS = {
    "sufficient": "what must be said is shown",
    "sentences": "sentences an answer",
    "precision": "precision of quotations",
    "first_right": "first quotation right",
    "declined_wrongly": "declined wrongly",
    **{f"{verdict}.share": "" for verdict in VERDICTS},
    **{f"{verdict}.sufficient": "" for verdict in ANSWERS},
    **{f"{verdict}.right": "" for verdict in VERDICTS},
    **{f"{verdict}.wrong": "" for verdict in VERDICTS},
    "unanswerable.declined": "unanswerable, declined",
    "unanswerable.marked": "unanswerable, for review",
    "unanswerable.answered": "unanswerable, answered",
}
"""The measures of questions that were finished, with their names in the text output; a verdict has one line."""
NAMED_INEXACT = 5
"""Inexact quotations that are named in a note."""

Ask = Callable[[str], Awaitable[Answer]]
ReadText = Callable[[str], Awaitable[str]]
"""A document's text by its id."""
ReadPassages = Callable[[Sequence[str]], Awaitable[Mapping[str, SearchResult]]]
"""Chunk id -> passage, for the cited chunks."""
AnswerMeasures = dict[str, Any]
"""The result of `evaluate_answers`, as `dtrag eval answers --json` prints it; None: no question for the measure."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The questions of a set with known answers, relevant documents or articles, or known to be unanswerable."""

    name: str
    corpus: Path
    questions: tuple[JudgedQuestion, ...]

    @classmethod
    def of(cls, judged: JudgedSet, limit: int | None = None) -> AnswerSet:
        """At most `limit` questions, at equal distances. Raises `InvalidInput` when no question is judged."""
        questions = tuple(
            question
            for question in judged.questions
            if not question.answerable or question.expected or question.judgements
        )
        if not questions:
            raise InvalidInput(
                f'{judged.name}: no question has "must", "answers" or "relevant" to look for, or "answerable": false, '
                "and there is no qrels.tsv for them."
            )
        return cls(judged.name, judged.corpus, spread(questions, limit))


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A question and its answer; None when it was not finished in time.

    `right` says for each quotation, in order, whether it is of a relevant document or article; None where the set has
    no judgements for the question. `first` names the document or article of the first. `missing` are the groups of the
    expected words that the answer does not show. `judged`: the set says when the answer is right. `inexact` names
    quotations that, or whose context, are not the text of their document at their span.
    """

    question: JudgedQuestion
    answer: Answer | None
    right: tuple[bool, ...] | None = None
    first: str = ""
    missing: tuple[str, ...] = ()
    judged: bool = True
    inexact: tuple[str, ...] = ()

    @property
    def decision(self) -> str:
        """The verdict. An answer without quotations counts as declined, unless a language model wrote it."""
        if self.answer is None:
            return UNFINISHED
        return self.answer.decision if self.answer.citations or self.answer.model else "abstain"

    @property
    def answered(self) -> bool:
        """Whether it has an answer, perhaps one for review."""
        return self.decision in ANSWERS

    @property
    def sufficient(self) -> bool:
        """Whether it is answered with everything that is expected."""
        return self.answered and not self.missing

    def row(self) -> RunRow:
        """What it adds to the measures, and what a reader needs to judge the answer."""
        question, answer = self.question, self.answer
        details: dict[str, object] = {"answer": "", "decision": self.decision}
        if answer is not None:
            details |= {
                "answer": answer.text,
                "confidence": round(confidence_of(answer), 4),
                "first": self.first,
                "quotations": shown_parts(answer)[1:],
                "missing": list(self.missing),
            }
        details |= {"answerable": question.answerable, "must": [" | ".join(group) for group in question.expected]}
        return RunRow(question.id, question.text, _ratios(self), details)


def read_answer_set(
    source: Path, corpus: Path | None = None, limit: int | None = None, must: Path | None = None
) -> AnswerSet:
    """The judged questions of a set. Raises `InvalidInput` that names the invalid file and line."""
    return AnswerSet.of(read_set(source, corpus, must), limit)


async def evaluate_answers(
    ask: Ask,
    read_text: ReadText,
    read_passages: ReadPassages,
    dataset: AnswerSet,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    on_row: Callable[[RunRow], None] | None = None,
) -> tuple[AnswerMeasures, list[str]]:
    """Ask every question and measure the answers; and notes for the reader.

    `on_row` gets what each question adds to the measures.

    A question that takes longer than `QUESTION_S` counts as unfinished, and for no measure.
    """
    answered: list[JudgedAnswer] = []
    for number, question in enumerate(dataset.questions, start=1):
        answer = await within_limit(ask(question.text))
        if answer is None or answer.unfinished:
            answered.append(JudgedAnswer(question, None))
        else:
            answered.append(await _compared(question, answer, dataset, read_text, read_passages))
        if on_row is not None:
            on_row(answered[-1].row())
        if on_progress is not None:
            on_progress(number, len(dataset.questions))
    inexact = [name for row in answered for name in row.inexact]
    notes = []
    if inexact:
        named = ", ".join(inexact[:NAMED_INEXACT])
        notes.append(f"{len(inexact):,} quotations are not the text of their document at their span: {named}")
    return measures(answered), notes


async def _compared(
    question: JudgedQuestion, answer: Answer, dataset: AnswerSet, read_text: ReadText, read_passages: ReadPassages
) -> JudgedAnswer:
    expecting = [question] if question.answerable else dataset.questions
    row = JudgedAnswer(question, answer, judged=any(each.expected for each in expecting))
    if not row.answered:
        return row
    passages = await read_passages(list(dict.fromkeys(citation.chunk_id for citation in answer.citations)))
    cited = [passages.get(citation.chunk_id) for citation in answer.citations]
    right = None
    if question.judgements or (not question.answerable and any(each.judgements for each in dataset.questions)):
        right = tuple(passage is not None and is_relevant(passage, question.judgements) for passage in cited)
    return replace(
        row,
        right=right,
        first=judged_name(cited[0], question.judgements) if cited and cited[0] else "",
        missing=tuple(missing_groups(shown_parts(answer), question.expected)),
        inexact=tuple(await _inexact(answer, read_text)),
    )


async def _inexact(answer: Answer, read_text: ReadText) -> list[str]:
    texts: dict[str, str] = {}
    inexact = []
    for citation in answer.citations:
        if citation.document_id not in texts:
            texts[citation.document_id] = await read_text(citation.document_id)
        spans = [(citation.quote, citation.start, citation.end)]
        spans += [(part.text, part.start, part.end) for part in citation.context]
        if any(not quote or texts[citation.document_id][start:end] != quote for quote, start, end in spans):
            inexact.append(f"{citation.document_id} {citation.start}-{citation.end}")
    return inexact


def is_relevant(passage: SearchResult, relevant: Collection[str]) -> bool:
    """Whether the passage's article, or its document, is one of the relevant ones."""
    return any(name in relevant for name in (*article_names(passage), *document_names(passage)))


def measures(rows: Sequence[JudgedAnswer]) -> AnswerMeasures:
    """The measures over answered questions, with 95 % intervals."""
    run_rows = [row.row() for row in rows]
    measured = {name: shown(each) for name, each in estimates([row.ratios for row in run_rows]).items()}
    chosen = {name: measured[name] for name in RATIOS}
    curve = risk_coverage(run_rows)
    lengths = [len(row.answer.text) for row in rows if row.answer is not None and row.answered]
    return {
        **_nested({name: each and each.value for name, each in chosen.items()}),
        "characters": {
            "median": round(float(np.median(lengths))) if lengths else None,
            "p90": round(float(np.quantile(lengths, 0.9))) if lengths else None,
        },
        "risk_coverage": {
            "area": curve.area,
            "points": plain(curve.points),
        },
        "intervals": _nested({name: each and (each.low, each.high) for name, each in chosen.items()}),
        "counts": _counts(rows),
    }


def _nested(values: Mapping[str, T]) -> dict[str, Any]:
    """The values, those of `a.b` in an object `a`."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        group, _, last = name.rpartition(".")
        (nested.setdefault(group, {}) if group else nested)[last] = value
    return nested


def _ratios(row: JudgedAnswer) -> dict[str, Ratio]:
    """What one question adds to each measure."""
    if row.answer is None:
        return dict.fromkeys(RATIOS, (0.0, 0.0)) | {"unfinished": (1.0, 1.0)}
    answerable, sufficient = row.question.answerable, row.sufficient
    relevant = float(answerable and bool(row.question.judgements))
    expected, unanswerable = float(answerable and row.judged), float(not answerable)
    right = row.right or ()
    ratios = {
        "sufficient": (expected * sufficient, expected),
        "sentences": (len(row.answer.citations) * row.answered, float(row.answered)),
        "precision": (sum(right), len(right)),
        "first_right": (relevant * any(right[:1]), relevant),
        "declined_wrongly": (float(answerable and not row.answered), float(answerable)),
        "unanswerable.declined": (unanswerable * (not row.answered), unanswerable),
        "unanswerable.marked": (unanswerable * (row.decision == "review"), unanswerable),
        "unanswerable.answered": (unanswerable * (row.decision == "answer"), unanswerable),
        "unfinished": (0.0, 1.0),
    }
    for verdict in VERDICTS:
        has_verdict = float(row.decision == verdict)
        judged = has_verdict * row.judged
        is_right = sufficient and answerable if verdict in ANSWERS else not answerable
        is_wrong = not is_right and not (answerable and any(right[:1])) and (answerable or verdict == "answer")
        ratios |= {
            f"{verdict}.share": (has_verdict, 1.0),
            f"{verdict}.right": (judged * is_right, judged),
            f"{verdict}.wrong": (judged * is_wrong, judged),
        }
        if verdict in ANSWERS:
            ratios[f"{verdict}.sufficient"] = (has_verdict * expected * sufficient, has_verdict * expected)
    return ratios


def _counts(rows: Sequence[JudgedAnswer]) -> dict[str, int]:
    """Numbers of questions and quotations. Each question is `answered`, `declined` or `unfinished`."""
    answers = [row.answer for row in rows if row.answer is not None and row.answered]
    quotations = sum(len(answer.citations) for answer in answers)
    return {
        "questions": len(rows),
        "answerable": sum(row.question.answerable for row in rows),
        "unanswerable": sum(not row.question.answerable for row in rows),
        "judged": sum(row.question.answerable and bool(row.question.expected) for row in rows),
        "answered": len(answers),
        "declined": sum(row.decision == "abstain" for row in rows),
        "unfinished": sum(row.answer is None for row in rows),
        "by_model": sum(answer.model is not None for answer in answers),
        "quotations": quotations,
        "right_quotations": sum(sum(row.right or ()) for row in rows),
        "exact_quotations": quotations - sum(len(row.inexact) for row in rows),
    }


def rows_of(name: str, measured: AnswerMeasures) -> list[tuple[str, str]]:
    """Names and values for the text output."""
    counts, characters, curve = measured["counts"], measured["characters"], measured["risk_coverage"]
    rows = [
        ("dataset", name),
        ("questions", f"{counts['questions']:,}, {counts['unanswerable']:,} of them unanswerable"),
        ("answered", f"{counts['answered']:,}, {counts['by_model']:,} by a language model"),
        *unfinished_line(counts["unfinished"]),
    ]
    for ratio, label in RATIOS.items():
        group, _, last = ratio.rpartition(".")
        values, bounds = ((of[group] if group else of)[last] for of in (measured, measured["intervals"]))
        if label and (group != "unanswerable" or counts["unanswerable"]):
            rows.append((label, _shown(values, bounds)))
    rows += [(f"verdict {verdict}", _verdict_line(measured[verdict])) for verdict in VERDICTS]
    if curve["points"]:
        rows.append(("risk over coverage, area", f"{curve['area']:.3f}"))
    if characters["median"] is not None:
        rows.append(("characters, median and 90 %", f"{characters['median']:,} and {characters['p90']:,}"))
    return [*rows, ("quotations exact", f"{counts['exact_quotations']:,} of {counts['quotations']:,}")]


def _verdict_line(values: Mapping[str, float | None]) -> str:
    parts = [f"{name} {value:.3f}" for name in ("right", "wrong") if (value := values[name]) is not None]
    return ", ".join([f"{values['share'] or 0.0:.3f} of the questions", *parts])


def _shown(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None or interval is None:
        return "not judged in this set"
    return f"{value:.3f}  [{interval[0]:.3f}, {interval[1]:.3f}]"
