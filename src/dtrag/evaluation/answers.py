"""Measures answers on questions with gold answers: whether the text contains one, and whether quotations are exact."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from dtrag.core.documents import Answer
from dtrag.core.text.analysis import normalise, terms
from dtrag.errors import InvalidInput

KINDS = (
    ("when", re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|month|day|century)|언제|몇 ?년|년도|연도|며칠", re.I)),
    ("number", re.compile(r"\bhow (?:many|much|long|old|far|often|large|big|tall|high)|몇|얼마", re.I)),
    ("who", re.compile(r"\bwho(?:m|se)?\b|누구|누가|사람은|인물은", re.I)),
    ("where", re.compile(r"\bwhere\b|\b(?:what|which) (?:city|country|state|place)|어디|곳은|나라는|장소는", re.I)),
    ("why, how", re.compile(r"\bwhy\b|\bhow\b|왜|이유|어떻게|방법", re.I)),
    ("what", re.compile(r"\bwhat\b|\bwhich\b|무엇|무슨|어떤|이름", re.I)),
)
"""Kinds of questions, the first that matches; all others are "other"."""
_MARK = re.compile(r"\s?\[(?:\d+|\?)\]")

Ask = Callable[[str], Awaitable[Answer]]
Read = Callable[[str], Awaitable[str]]
"""A document's text by its id."""


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with its correct answers, each of which suffices."""

    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """A corpus and questions that it answers."""

    name: str
    corpus: Path
    questions: tuple[GoldQuestion, ...]


class Shares(TypedDict):
    """Measures over a group of questions."""

    questions: int
    contained: float
    contained_of_answered: float
    abstained: int
    sentences: float
    characters: float


class QuoteMeasures(TypedDict):
    """Quotations in all, exact ones, and the first wrong ones."""

    total: int
    exact: int
    wrong: list[str]


class ModelMeasures(TypedDict):
    """Answers written by a language model; None without any."""

    answers: int
    contained: float | None
    f1: float | None


class AnswerMeasures(Shares):
    """The result of `evaluate_answers`, as `dtrag eval answers --json` prints it."""

    dataset: str
    quotes: QuoteMeasures
    kinds: dict[str, Shares]
    model: ModelMeasures


@dataclass
class _Sums:
    questions: int = 0
    contained: int = 0
    abstained: int = 0
    sentences: int = 0
    characters: int = 0
    overlap: float = 0.0

    def shares(self) -> Shares:
        answered = self.questions - self.abstained
        return {
            "questions": self.questions,
            "contained": round(self.contained / self.questions, 4) if self.questions else 0.0,
            "contained_of_answered": round(self.contained / answered, 4) if answered else 0.0,
            "abstained": self.abstained,
            "sentences": round(self.sentences / answered, 2) if answered else 0.0,
            "characters": round(self.characters / answered, 1) if answered else 0.0,
        }


@dataclass
class _Quotes:
    total: int = 0
    exact: int = 0
    wrong: list[str] = field(default_factory=list)


def read_answers(folder: Path, limit: int | None = None) -> AnswerSet:
    """The set in `folder`: `corpus.jsonl`, and `queries.jsonl` with {"text", "answers": [...], "answerable"}.

    Questions without an answer, or with `"answerable": false`, are left out. With a `limit` every n-th one is used.
    Raises `InvalidInput` that names the invalid file and line.
    """
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    for file in (corpus, queries):
        if not file.is_file():
            raise InvalidInput(f"{folder} is not a set of questions with answers: there is no {file.name} in it.")
    questions: list[GoldQuestion] = []
    for number, line in enumerate(queries.read_text("utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            gold = row.get("answers") or []
            if not isinstance(gold, list) or not all(isinstance(answer, str) for answer in gold):
                raise TypeError
            question = GoldQuestion(str(row["text"]), tuple(answer for answer in gold if _without_spaces(answer)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                f'{queries}, line {number}: expected {{"text": "...", "answers": ["...", ...]}}.'
            ) from error
        if question.gold and row.get("answerable", True) and question.text.strip():
            questions.append(question)
    if not questions:
        raise InvalidInput(f'{folder}: no question in {queries.name} has "answers" to look for.')
    if limit is not None and limit < len(questions):
        questions = [questions[position * len(questions) // limit] for position in range(limit)]
    return AnswerSet(folder.resolve().name, corpus, tuple(questions))


async def evaluate_answers(
    ask: Ask, read: Read, dataset: AnswerSet, on_progress: Callable[[int, int], None] | None = None
) -> AnswerMeasures:
    """Ask every question and measure the answers.

    `contained`: a gold answer is in the answer, ignoring white space and case; an abstention contains none.
    `quotes`: whether each quotation is exactly the text of its document at its span. `model`: how
    many answers a language model wrote, and of these the containment and the best F1 of index terms with a gold answer.
    """
    overall, model, quotes = _Sums(), _Sums(), _Quotes()
    kinds: dict[str, _Sums] = {}
    for number, question in enumerate(dataset.questions, start=1):
        answer = await ask(question.text)
        sums = [overall, kinds.setdefault(kind_of(question.text), _Sums())]
        if answer.model is not None:
            sums.append(model)
        for group in sums:
            _count(group, answer, question.gold)
        await _compare_quotes(quotes, answer, read)
        if on_progress is not None:
            on_progress(number, len(dataset.questions))
    written = model.questions
    return {
        "dataset": dataset.name,
        **overall.shares(),
        "quotes": {"total": quotes.total, "exact": quotes.exact, "wrong": quotes.wrong[:10]},
        "kinds": {name: kinds[name].shares() for name, _ in (*KINDS, ("other", None)) if name in kinds},
        "model": {
            "answers": written,
            "contained": round(model.contained / written, 4) if written else None,
            "f1": round(model.overlap / written, 4) if written else None,
        },
    }


def kind_of(question: str) -> str:
    """The kind of a question, a name in `KINDS` or "other"."""
    return next((name for name, pattern in KINDS if pattern.search(question)), "other")


def _count(sums: _Sums, answer: Answer, gold: Sequence[str]) -> None:
    sums.questions += 1
    if answer.decision == "abstain" or (answer.model is None and not answer.citations):
        sums.abstained += 1
        return
    plain = _MARK.sub("", answer.text)
    text = _without_spaces(plain)
    sums.contained += any(_without_spaces(expected) in text for expected in gold)
    sums.sentences += len(answer.citations)
    sums.characters += len(plain)
    sums.overlap += max(f1(plain, expected) for expected in gold)


async def _compare_quotes(quotes: _Quotes, answer: Answer, read: Read) -> None:
    texts: dict[str, str] = {}
    for citation in answer.citations:
        quotes.total += 1
        if citation.document_id not in texts:
            texts[citation.document_id] = await read(citation.document_id)
        if citation.quote and texts[citation.document_id][citation.start : citation.end] == citation.quote:
            quotes.exact += 1
        else:
            quotes.wrong.append(f"{citation.document_id} {citation.start}-{citation.end}")


def f1(answer: str, gold: str) -> float:
    """Harmonic mean of precision and recall of index terms (words in English, pairs of syllables in Korean)."""
    answer_terms, gold_terms = Counter(terms(answer)), Counter(terms(gold))
    common = (answer_terms & gold_terms).total()
    return 2 * common / (answer_terms.total() + gold_terms.total()) if common else 0.0


def _without_spaces(text: str) -> str:
    return normalise(text).replace(" ", "")


def rows_of(measured: AnswerMeasures) -> list[tuple[str, str]]:
    """Names and values for the text output."""
    quotes, model = measured["quotes"], measured["model"]
    rows = [
        ("dataset", str(measured["dataset"])),
        ("questions", f"{measured['questions']:,}"),
        ("gold answer contained", f"{measured['contained']:.3f}"),
        ("of those answered", f"{measured['contained_of_answered']:.3f} ({measured['abstained']:,} abstentions)"),
        ("citations, characters", f"{measured['sentences']:.1f}, {measured['characters']:.0f}"),
        ("quotations exact", f"{quotes['exact']:,} of {quotes['total']:,}"),
    ]
    for name, sums in measured["kinds"].items():
        rows.append((f"  {name}", f"{sums['contained']:.3f} of {sums['questions']:,}"))
    if model["answers"]:
        rows.append(("by the language model", f"{model['answers']:,}: {model['contained']:.3f}, F1 {model['f1']:.3f}"))
    return rows
