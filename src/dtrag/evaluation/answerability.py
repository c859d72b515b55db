"""Cases for fitting and measuring the confidence: judged questions, with and without the passages that answer them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.answers.confidence import judged_signals, model_name
from dtrag.core.answers.evidence import READ, by_words
from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.core.text.analysis import Analyzer, language, normalise
from dtrag.core.text.questions import content_terms, weighted_terms
from dtrag.evaluation.hidden_passages import HidingIndex, hiding_engine
from dtrag.evaluation.passage_names import document_names
from dtrag.ports import Embedder, Index, speaks
from dtrag.retrieval.request import CANDIDATES

PASSAGES = 10
HIDDEN_OF = 50
"""Number of retrieved passages among which the answering ones are hidden."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, whether the documents answer it, and which `documents` (ids, titles or addresses) or `answers` do.

    Without both, `answerable` is trusted. Questions of one `group`, such as those about one article, are used either
    for fitting or for measuring, never for both.
    """

    question: str
    answerable: bool
    documents: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    group: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredQuestion:
    """A question with the signals of its results. `kind`: answerable, hidden (its answers were removed), absent.

    `label` is 1 if one of the first `READ` passages answers. `model` is the name of the confidence model for it.
    """

    question: str
    group: str
    kind: str
    label: float
    signals: dict[str, float]
    model: str


async def cases(
    judged: Iterable[Judged],
    index: Index,
    embedder: Embedder | None,
    analyzer: Analyzer,
    regulations: str = "off",
) -> AsyncIterator[list[MeasuredQuestion]]:
    """For each question its case; if its known answer was retrieved, also the case without it.

    `regulations` is the mode of the regulation pack, whose signals decide where it ranks the passages.
    """
    hiding = HidingIndex(index, analyzer)
    engine = hiding_engine(hiding, embedder, analyzer, regulations)

    async def retrieve(question: str, top_k: int, mode: str = "hybrid") -> tuple[list[SearchResult], SearchMetrics]:
        return await engine.search(
            question, top_k, None, CANDIDATES, CANDIDATES, scope=EVERYTHING, highlight=False, mode=mode
        )

    async def case(
        row: Judged, kind: str, found: tuple[list[SearchResult], SearchMetrics], label: float
    ) -> MeasuredQuestion:
        passages, metrics = found
        terms = {*content_terms(row.question), *(term for term, _ in weighted_terms(row.question))}
        statistics = await hiding.statistics(terms, EVERYTHING)
        decides = speaks(embedder, language(row.question), deciding=True)
        decided_by = passages[:PASSAGES] if decides else by_words(passages[:PASSAGES])
        values = judged_signals(row.question, decided_by, statistics, metrics.pack)
        return MeasuredQuestion(
            row.question, row.group or row.question, kind, label, values, model_name(row.question, values)
        )

    for row in judged:
        found = await retrieve(row.question, HIDDEN_OF)
        if not row.answerable:
            yield [await case(row, "absent", found, 0.0)]
            continue
        passages, metrics = found
        known = bool(row.documents or row.answers)
        gold = [passage for passage in passages if answers(passage, row)]
        read = not known or any(passage in gold for passage in passages[:READ])
        row_cases = [await case(row, "answerable", found, float(read))]
        if gold:
            if metrics.pack is not None:  # the pack returns one piece of an article: hide the others, too
                pieces, _ = await retrieve(row.question, HIDDEN_OF, "lexical")
                gold += [piece for piece in pieces if answers(piece, row)]
            with hiding.without(gold):
                row_cases.append(await case(row, "hidden", await retrieve(row.question, PASSAGES), 0.0))
        yield row_cases


def answers(passage: SearchResult, row: Judged) -> bool:
    """Whether the passage is from one of the documents, or contains one of the answers, ignoring white space."""
    if not row.documents.isdisjoint(document_names(passage)):
        return True
    return _contains_any(passage.text, row.answers)


def _contains_any(text: str, answers: Collection[str]) -> bool:
    if not answers:
        return False
    compact = normalise(text).replace(" ", "")
    return any(normalise(answer).replace(" ", "") in compact for answer in answers)
