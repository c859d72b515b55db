"""Measures answers to judged questions: what they quote, whether it is right, and which questions are declined."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from dtrag.core.documents import Answer, SearchResult
from dtrag.core.evaluation_run import RunRow
from dtrag.core.metrics.bootstrap import Estimate, Ratio, estimates
from dtrag.core.text.analysis import normalise
from dtrag.errors import InvalidInput
from dtrag.evaluation.judged_questions import JudgedQuestion, JudgedSet, read_set, spread
from dtrag.evaluation.passage_names import article_names, document_names
from dtrag.evaluation.question_limit import UNFINISHED, unfinished_line, within_limit

RATIOS = (
    *("contained", "sentences", "precision", "any_right", "first_right", "wrong", "declined_wrongly", "declined"),
    *("marked", "answered"),
)
"""The measures of questions that were finished."""
NAMED_INEXACT = 5
"""Inexact quotations that are named in a note."""
_MARK = re.compile(r"\s?\[(?:\d+|\?)\]")

Ask = Callable[[str], Awaitable[Answer]]
ReadText = Callable[[str], Awaitable[str]]
"""A document's text by its id."""
ReadPassages = Callable[[Sequence[str]], Awaitable[Mapping[str, SearchResult]]]
"""Chunk id -> passage, for the cited chunks."""
Interval = tuple[float, float] | None


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
            question for question in judged.questions if not question.answerable or question.gold or question.judgements
        )
        if not questions:
            raise InvalidInput(
                f'{judged.name}: no question has "answers" or "relevant" to look for, or "answerable": false, and '
                "there is no qrels.tsv for them."
            )
        return cls(judged.name, judged.corpus, spread(questions, limit))


class UnanswerableShares(TypedDict):
    """Shares of the unanswerable questions: declined, answered for review, answered."""

    declined: float | None
    marked: float | None
    answered: float | None


class UnanswerableIntervals(TypedDict):
    """The intervals of `UnanswerableShares`."""

    declined: Interval
    marked: Interval
    answered: Interval


class AnswerIntervals(TypedDict):
    """The intervals of `AnswerMeasures`."""

    contained: Interval
    sentences: Interval
    precision: Interval
    any_right: Interval
    first_right: Interval
    wrong: Interval
    declined_wrongly: Interval
    unanswerable: UnanswerableIntervals


class AnswerCounts(TypedDict):
    """Numbers of questions and quotations; `by_model` are of `answered`.

    Each question is `answered`, `declined` or `unfinished`: the last count for no measure.
    """

    questions: int
    answerable: int
    unanswerable: int
    answered: int
    declined: int
    unfinished: int
    by_model: int
    quotations: int
    right_quotations: int
    exact_quotations: int


class AnswerMeasures(TypedDict):
    """The result of `evaluate_answers`, as `dtrag eval answers --json` prints it; None: no question for the measure."""

    contained: float | None
    sentences: float | None
    precision: float | None
    any_right: float | None
    first_right: float | None
    wrong: float | None
    declined_wrongly: float | None
    unanswerable: UnanswerableShares
    intervals: AnswerIntervals
    counts: AnswerCounts


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question and what became of it.

    `right` says for each quotation, in order, whether it is of a relevant document or article; None where the set has
    no judgements for the question. `inexact` names quotations that, or whose context, are not the text of
    their document at their span.
    """

    question: JudgedQuestion
    decision: str
    quotations: int = 0
    right: tuple[bool, ...] | None = None
    inexact: tuple[str, ...] = ()
    contained: bool = False
    by_model: bool = False

    @property
    def finished(self) -> bool:
        """Whether it was answered or declined in time."""
        return self.decision != UNFINISHED

    @property
    def answered(self) -> bool:
        """Whether it has an answer, perhaps one for review."""
        return self.decision not in {"abstain", UNFINISHED}


def read_answer_set(source: Path, corpus: Path | None = None, limit: int | None = None) -> AnswerSet:
    """The judged questions of a set. Raises `InvalidInput` that names the invalid file and line."""
    return AnswerSet.of(read_set(source, corpus), limit)


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

    An answer without quotations counts as declined, unless a language model wrote it. A question that takes longer than
    `QUESTION_S` counts as unfinished, and for no measure.
    """
    judged = any(question.judgements for question in dataset.questions)
    answered: list[AnsweredQuestion] = []
    for number, question in enumerate(dataset.questions, start=1):
        answer = await within_limit(ask(question.text))
        if answer is None or answer.unfinished:
            answered.append(AnsweredQuestion(question, UNFINISHED))
        else:
            answered.append(await _compared(question, answer, judged, read_text, read_passages))
        if on_row is not None:
            details = {"answer": answer.text if answer is not None else "", "decision": answered[-1].decision}
            on_row(RunRow(question.id, question.text, _ratios(answered[-1]), details))
        if on_progress is not None:
            on_progress(number, len(dataset.questions))
    inexact = [name for row in answered for name in row.inexact]
    notes = []
    if inexact:
        named = ", ".join(inexact[:NAMED_INEXACT])
        notes.append(f"{len(inexact):,} quotations are not the text of their document at their span: {named}")
    return measures(answered), notes


async def _compared(
    question: JudgedQuestion, answer: Answer, judged: bool, read_text: ReadText, read_passages: ReadPassages
) -> AnsweredQuestion:
    if answer.decision == "abstain" or (answer.model is None and not answer.citations):
        return AnsweredQuestion(question, "abstain")
    passages = await read_passages(list(dict.fromkeys(citation.chunk_id for citation in answer.citations)))
    right = None
    if question.judgements or (judged and not question.answerable):
        right = tuple(
            citation.chunk_id in passages and is_relevant(passages[citation.chunk_id], question.judgements)
            for citation in answer.citations
        )
    text = _without_spaces(_MARK.sub("", answer.text))
    return AnsweredQuestion(
        question,
        answer.decision,
        quotations=len(answer.citations),
        right=right,
        inexact=tuple(await _inexact(answer, read_text)),
        contained=any(_without_spaces(gold) in text for gold in question.gold),
        by_model=answer.model is not None,
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


def measures(rows: Sequence[AnsweredQuestion]) -> AnswerMeasures:
    """The measures over answered questions, with 95 % intervals."""
    measured = estimates([_ratios(row) for row in rows])

    def value(name: str) -> float | None:
        exact = measured[name].value
        return None if exact is None else round(exact, 4)

    return {
        "contained": value("contained"),
        "sentences": value("sentences"),
        "precision": value("precision"),
        "any_right": value("any_right"),
        "first_right": value("first_right"),
        "wrong": value("wrong"),
        "declined_wrongly": value("declined_wrongly"),
        "unanswerable": {"declined": value("declined"), "marked": value("marked"), "answered": value("answered")},
        "intervals": _intervals(measured),
        "counts": _counts(rows),
    }


def _ratios(row: AnsweredQuestion) -> dict[str, Ratio]:
    """What one question adds to each measure. The three of unanswerable questions are `declined` to `answered`."""
    if not row.finished:
        return dict.fromkeys(RATIOS, (0.0, 0.0)) | {"unfinished": (1.0, 1.0)}
    answerable = row.question.answerable
    judged = float(answerable and bool(row.question.judgements))
    has_gold = float(answerable and bool(row.question.gold))
    unanswerable = float(not answerable)
    right = row.right or ()
    return {
        "contained": (has_gold * row.contained, has_gold),
        "sentences": (row.quotations, float(row.answered)),
        "precision": (sum(right), len(right)),
        "any_right": (judged * any(right), judged),
        "first_right": (judged * any(right[:1]), judged),
        "wrong": (judged * (row.answered and not any(right)), judged),
        "declined_wrongly": (float(answerable and not row.answered), float(answerable)),
        "declined": (unanswerable * (not row.answered), unanswerable),
        "marked": (unanswerable * (row.decision == "review"), unanswerable),
        "answered": (unanswerable * (row.answered and row.decision != "review"), unanswerable),
        "unfinished": (0.0, 1.0),
    }


def _intervals(measured: Mapping[str, Estimate]) -> AnswerIntervals:
    def interval(name: str) -> Interval:
        exact = measured[name].interval
        return None if exact is None else (round(exact[0], 4), round(exact[1], 4))

    return {
        "contained": interval("contained"),
        "sentences": interval("sentences"),
        "precision": interval("precision"),
        "any_right": interval("any_right"),
        "first_right": interval("first_right"),
        "wrong": interval("wrong"),
        "declined_wrongly": interval("declined_wrongly"),
        "unanswerable": {
            "declined": interval("declined"),
            "marked": interval("marked"),
            "answered": interval("answered"),
        },
    }


def _counts(rows: Iterable[AnsweredQuestion]) -> AnswerCounts:
    counts: Counter[str] = Counter()
    for row in rows:
        counts["questions"] += 1
        counts["answerable" if row.question.answerable else "unanswerable"] += 1
        counts["answered" if row.answered else "declined" if row.finished else "unfinished"] += 1
        counts["by_model"] += row.by_model
        counts["quotations"] += row.quotations
        counts["right"] += sum(row.right or ())
        counts["exact"] += row.quotations - len(row.inexact)
    return {
        "questions": counts["questions"],
        "answerable": counts["answerable"],
        "unanswerable": counts["unanswerable"],
        "answered": counts["answered"],
        "declined": counts["declined"],
        "unfinished": counts["unfinished"],
        "by_model": counts["by_model"],
        "quotations": counts["quotations"],
        "right_quotations": counts["right"],
        "exact_quotations": counts["exact"],
    }


def _without_spaces(text: str) -> str:
    return normalise(text).replace(" ", "")


def rows_of(name: str, measured: AnswerMeasures) -> list[tuple[str, str]]:
    """Names and values for the text output."""
    counts, intervals = measured["counts"], measured["intervals"]
    rows = [
        ("dataset", name),
        ("questions", f"{counts['questions']:,}, {counts['unanswerable']:,} of them unanswerable"),
        ("answered", f"{counts['answered']:,}, {counts['by_model']:,} by a language model"),
        *unfinished_line(counts["unfinished"]),
        ("gold answer contained", _shown(measured["contained"], intervals["contained"])),
        ("sentences an answer", _shown(measured["sentences"], intervals["sentences"], 2)),
        ("precision of quotations", _shown(measured["precision"], intervals["precision"])),
        ("any quotation right", _shown(measured["any_right"], intervals["any_right"])),
        ("first quotation right", _shown(measured["first_right"], intervals["first_right"])),
        ("no quotation right", _shown(measured["wrong"], intervals["wrong"])),
        ("declined wrongly", _shown(measured["declined_wrongly"], intervals["declined_wrongly"])),
        ("quotations exact", f"{counts['exact_quotations']:,} of {counts['quotations']:,}"),
    ]
    if counts["unanswerable"]:
        shares, bounds = measured["unanswerable"], intervals["unanswerable"]
        rows += [
            ("unanswerable, declined", _shown(shares["declined"], bounds["declined"])),
            ("unanswerable, for review", _shown(shares["marked"], bounds["marked"])),
            ("unanswerable, answered", _shown(shares["answered"], bounds["answered"])),
        ]
    return rows


def _shown(value: float | None, interval: Interval, digits: int = 3) -> str:
    if value is None or interval is None:
        return "not judged in this set"
    return f"{value:.{digits}f}  [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
