"""Measures answers on questions with gold answers: is one of them in the text, is every quotation where it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
"""Kinds of question, the first that fits; the rest is "other"."""
_MARK = re.compile(r"\s?\[(?:\d+|\?)\]")

Ask = Callable[[str], Awaitable[Answer]]
Read = Callable[[str], Awaitable[str]]
"""A document's text by its id."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the answers that are right, any one of them."""

    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """Questions that the corpus answers."""

    name: str
    corpus: Path
    questions: tuple[Asked, ...]


@dataclass
class _Sums:
    asked: int = 0
    contained: int = 0
    abstained: int = 0
    sentences: int = 0
    characters: int = 0
    overlap: float = 0.0

    def shares(self) -> dict[str, Any]:
        answered = self.asked - self.abstained
        return {
            "questions": self.asked,
            "contained": round(self.contained / self.asked, 4) if self.asked else 0.0,
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

    Questions without an answer, or with `"answerable": false`, are left out. With a `limit` every n-th is taken, so
    that they are from all over the file. Raises `InvalidInput` naming the file and line that is wrong.
    """
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    for file in (corpus, queries):
        if not file.is_file():
            raise InvalidInput(f"{folder} is not a set of questions with answers: there is no {file.name} in it.")
    found: list[Asked] = []
    for number, line in enumerate(queries.read_text("utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            gold = row.get("answers") or []
            if not isinstance(gold, list) or not all(isinstance(one, str) for one in gold):
                raise TypeError
            asked = Asked(str(row["text"]), tuple(one for one in gold if _bare(one)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                f'{queries}, line {number}: expected {{"text": "...", "answers": ["...", ...]}}.'
            ) from error
        if asked.gold and row.get("answerable", True) and asked.text.strip():
            found.append(asked)
    if not found:
        raise InvalidInput(f'{folder}: no question in {queries.name} has "answers" to look for.')
    if limit is not None and limit < len(found):
        found = [found[place * len(found) // limit] for place in range(limit)]
    return AnswerSet(folder.resolve().name, corpus, tuple(found))


async def evaluate_answers(
    ask: Ask, read: Read, dataset: AnswerSet, on_progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Ask every question and count.

    `contained`: a gold answer is in the answer, white space and letter case aside; an abstention does not contain it.
    `quotes`: whether each citation's quotation is, to the letter, what its document holds at its span. `model`: how
    many answers a language model wrote, and of these the containment and the best F1 of index terms with a gold answer.
    """
    overall, model, quotes = _Sums(), _Sums(), _Quotes()
    kinds: dict[str, _Sums] = {}
    for number, question in enumerate(dataset.questions, start=1):
        answer = await ask(question.text)
        sums = [overall, kinds.setdefault(kind_of(question.text), _Sums())]
        if answer.model is not None:
            sums.append(model)
        for each in sums:
            _count(each, answer, question.gold)
        await _verify(quotes, answer, read)
        if on_progress is not None:
            on_progress(number, len(dataset.questions))
    written = model.asked
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
    """What kind of thing is asked for."""
    return next((name for name, pattern in KINDS if pattern.search(question)), "other")


def _count(sums: _Sums, answer: Answer, gold: Sequence[str]) -> None:
    sums.asked += 1
    if answer.decision == "abstain" or (answer.model is None and not answer.citations):
        sums.abstained += 1
        return
    plain = _MARK.sub("", answer.text)
    text = _bare(plain)
    sums.contained += any(_bare(one) in text for one in gold)
    sums.sentences += len(answer.citations)
    sums.characters += len(plain)
    sums.overlap += max(f1(plain, one) for one in gold)


async def _verify(quotes: _Quotes, answer: Answer, read: Read) -> None:
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
    said, wanted = Counter(terms(answer)), Counter(terms(gold))
    common = sum((said & wanted).values())
    return 2 * common / (said.total() + wanted.total()) if common else 0.0


def _bare(text: str) -> str:
    return normalise(text).replace(" ", "")


def rows_of(measured: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What people read of it: name and figure."""
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
