"""Judged questions put to an index, once as it is and once without the passages that answer: what confidence is
fitted on and measured with.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.answers.confidence import model_name
from dtrag.core.answers.evidence import READ, signals
from dtrag.core.documents import SearchResult
from dtrag.core.text.analysis import Analyzer, normalise
from dtrag.core.text.questions import content_terms, weighted_terms
from dtrag.evaluation.hidden_passages import HidingIndex, hiding_engine
from dtrag.ports import Embedder, Index
from dtrag.retrieval.request import CANDIDATES

PASSAGES = 10
HIDDEN_OF = 50
"""Passages among which those that answer are looked for, to be hidden."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, and what is known of it: whether the documents answer it, and by which of `documents` or `answers`.

    `documents` are ids, titles or addresses. Without both it is taken at its word. `group` keeps questions together
    that must not be fitted on and measured with apart, such as those about one article.
    """

    question: str
    answerable: bool
    documents: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the signals of what was found. `kind`: answerable, hidden (the answer was taken away), absent.

    `label` is 1 when one of the first `READ` passages answers. `model` is the one that speaks for it.
    """

    question: str
    group: str
    kind: str
    label: float
    signals: dict[str, float]
    model: str


async def cases(
    judged: Iterable[Judged], index: Index, embedder: Embedder | None, analyzer: Analyzer
) -> AsyncIterator[list[Case]]:
    """For each question its case; for one with a known answer that was found, also the case without it."""
    hiding = HidingIndex(index, analyzer)
    engine = hiding_engine(hiding, embedder, analyzer)

    async def found(question: str, wanted: int) -> list[SearchResult]:
        passages, _ = await engine.search(
            question, wanted, None, CANDIDATES, CANDIDATES, scope=EVERYTHING, highlight=False
        )
        return passages

    async def case(row: Judged, kind: str, passages: Sequence[SearchResult], label: float) -> Case:
        asked = {*content_terms(row.question), *(term for term, _ in weighted_terms(row.question))}
        held = signals(row.question, passages[:PASSAGES], await hiding.statistics(asked, EVERYTHING))
        return Case(row.question, row.group or row.question, kind, label, held, model_name(row.question, held))

    for row in judged:
        passages = await found(row.question, HIDDEN_OF)
        if not row.answerable:
            yield [await case(row, "absent", passages, 0.0)]
            continue
        known = bool(row.documents or row.answers)
        gold = [passage for passage in passages if answers(passage, row)]
        read = not known or any(passage in gold for passage in passages[:READ])
        made = [await case(row, "answerable", passages, float(read))]
        if gold:
            with hiding.without(gold):
                made.append(await case(row, "hidden", await found(row.question, PASSAGES), 0.0))
        yield made


def answers(passage: SearchResult, row: Judged) -> bool:
    """Whether the passage is of one of the documents, or holds one of the answers (white space aside)."""
    names = (str(passage.metadata.get("id", "")), str(passage.metadata.get("document_id", "")), passage.title)
    if not row.documents.isdisjoint({*names, passage.source_url, passage.source_url.rsplit("/", 1)[-1]}):
        return True
    return _holds(passage.text, row.answers)


def _holds(text: str, wanted: Collection[str]) -> bool:
    if not wanted:
        return False
    bare = normalise(text).replace(" ", "")
    return any(normalise(answer).replace(" ", "") in bare for answer in wanted)
