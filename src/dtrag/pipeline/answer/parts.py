"""Answers to questions that ask several things: the provision of each part, or that there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dtrag.core.answers.evidence import by_words
from dtrag.core.answers.passage_confidence import SETTING, Confidence, confidence_of
from dtrag.core.documents import PackFindings, SearchMetrics, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import Statement, stated
from dtrag.core.text.analysis import language
from dtrag.core.text.questions import weighted_terms
from dtrag.errors import DtragError
from dtrag.pipeline.answer.candidates import FURTHER, Quote
from dtrag.pipeline.answer.extractive import extract
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import Evidence, Part
from dtrag.ports import speaks


def not_found(part: str) -> Statement:
    """The statement that the documents do not answer a part of the question, in its language."""
    part = part.strip(" ?？.")
    shown = f"‘{part}’에 대한 조문은 찾지 못했습니다." if language(part) == "ko" else ""
    return stated("part_not_found", "No provision was found for “{part}”.", shown, part=part)


def answered(evidence: Evidence) -> tuple[list[Part], list[list[Quote]], list[SearchResult]]:
    """The parts that have an answer with its quotations, which count their places in the returned passages; the others.

    Parts that the same provision answers are one, with both questions.
    """
    absent = [part for part in evidence.parts if part.absent]
    by_provision: dict[object, list[Part]] = {}
    for part in evidence.parts:
        of_part = _quotes(part, evidence, len(evidence.parts)) if not part.absent else []
        if of_part:
            by_provision.setdefault(provision(_passages(part, evidence)[of_part[0].passage]), []).append(part)
        elif not part.absent:
            absent.append(replace(part, confidence=replace(part.confidence, decision="abstain")))
    groups = [_joined(group) for group in by_provision.values()]
    answers, passages, shown = len(groups) + len(absent), list[SearchResult](), list[list[Quote]]()
    for part in groups:
        first, *others = _quotes(part, evidence, answers)
        of_part = [replace(first, further=answers > 1), *others]  # each with its label
        shown.append([replace(quote, passage=quote.passage + len(passages)) for quote in of_part])
        passages += _passages(part, evidence)
    return [*groups, *absent], shown, passages


def _passages(part: Part, evidence: Evidence) -> list[SearchResult]:
    return [*part.passages[: 1 + FURTHER], *evidence.cited]


def _quotes(part: Part, evidence: Evidence, answers: int) -> list[Quote]:
    return extract(
        part.question,
        _passages(part, evidence),
        evidence.statistics,
        pack=part.pack,
        preceding=evidence.preceding,
        followed=evidence.followed,
        answers=answers,
    )


def provision(passage: SearchResult) -> object:
    """What is the same for all passages of a provision."""
    article = passage.metadata.get("article")
    return (passage.metadata.get("document_id"), article) if article else passage.chunk_id


def _joined(parts: Sequence[Part]) -> Part:
    """One part in place of several that the same provision answers: the passages are those of the first."""
    first = parts[0]
    if len(parts) == 1 or first.pack is None:
        return first
    terms = tuple(dict(term for part in parts if part.pack is not None for term in part.pack.terms).items())
    return replace(
        first,
        question=" ".join(part.question for part in parts),
        pack=PackFindings(first.pack.signals, terms),
        confidence=min((part.confidence for part in parts), key=lambda each: each.value),
    )


Search = Callable[[str], Awaitable[tuple[list[SearchResult], SearchMetrics]]]
UNKNOWN = Confidence(0.0, "abstain", ())
ABSENT = 0.34
"""Confidence below which no provision is shown for a part, which has fewer words than the questions that the confidence
is fitted on: of 29 absent parts 20 are named, of 74 questions 29 have both parts shown; with .28 16 and 30, with .36 20
and 26."""
CONTEXT = 0.6
"""Weight of a passage's score for the whole question beside that for a part after the first, which may leave out its
subject. Both parts were shown for 5 of 20 questions (3 without) and 21 of 36 others (18); chosen on these of 0, .3, .6
and 1."""
NOT_FOUND = 0.9
"""Score of a passage that the search for a part did not find, as a share of its last one."""


async def found_parts(
    passages: Sequence[SearchResult], metrics: SearchMetrics, search: Search, degraded: list[str]
) -> list[Part]:
    """The parts of the question that was searched, with the passages for each, not judged yet.

    `passages` are those for the whole question.

    None for a question that asks one thing, as of an earlier day, and where a search fails or is late (`parts`).
    """
    if metrics.pack is None or metrics.today is not None or not metrics.pack.parts:
        return []
    try:
        retrieved = await asyncio.gather(*map(search, metrics.pack.parts))
    except (TimeoutError, DtragError):
        retrieved = []
    if not retrieved or any({"lexical", "vector"}.intersection(of_part.degraded) for _, of_part in retrieved):
        degraded.append("parts")  # what was not searched is not absent
        return []
    parts, taken = list[Part](), set[object]()
    for question, (own, of_part) in zip(metrics.pack.parts, retrieved, strict=True):
        has_subject = not parts or (of_part.pack is not None and of_part.pack.governed)
        ordered = own if has_subject else _in_context(own, passages, taken - set(map(provision, own[:1])))
        taken.update(map(provision, ordered[:1]))
        parts.append(Part(question, tuple(ordered), of_part.pack, UNKNOWN))
    return parts


def _in_context(
    own: Sequence[SearchResult], whole: Sequence[SearchResult], taken: Collection[object]
) -> list[SearchResult]:
    """As many passages of a part, by their scores for it and for the whole question; no provision that is `taken`."""
    of_part = {passage.chunk_id: passage.hybrid_score for passage in own}
    of_whole = {passage.chunk_id: passage.hybrid_score for passage in whole}
    unknown = NOT_FOUND * min(of_part.values(), default=0.0)
    passages = {passage.chunk_id: passage for passage in (*whole, *own) if provision(passage) not in taken}
    scores = {key: of_part.get(key, unknown) + CONTEXT * of_whole.get(key, 0.0) for key in passages}
    return [passages[key] for key in sorted(passages, key=lambda key: (-scores[key], key))][: len(own)]


def first_passages(parts: Sequence[Part], passages: Sequence[SearchResult], count: int) -> list[SearchResult]:
    """The passages that may be quoted: the `count` first ones of each part, or of the question."""
    chosen = [passage for part in parts for passage in part.passages[:count]] or passages[:count]
    return list({passage.chunk_id: passage for passage in chosen}.values())


def with_best_of_parts(passages: Sequence[SearchResult], parts: Sequence[Part]) -> list[SearchResult]:
    """As many passages, those that are first for a part at the beginning."""
    first = {part.passages[0].chunk_id: part.passages[0] for part in parts if part.passages}
    others = [passage for passage in passages if passage.chunk_id not in first]
    return [*first.values(), *others][: len(passages)]


def terms_of(parts: Iterable[Part]) -> Iterator[tuple[int, float]]:
    """The terms whose frequencies decide the confidence in the parts."""
    for part in parts:
        yield from weighted_terms(part.question)
        yield from part.pack.terms if part.pack is not None else ()


def judged(
    whole: Confidence, parts: Sequence[Part], statistics: LexicalStatistics, settings: Mapping[str, Any], run: Run
) -> tuple[Confidence, list[Part]]:
    """The confidence in the answer, and the parts with theirs; without parts if none of them is answered.

    It is that of the weakest part; where one is not answered, the decision is at most `review`.
    """
    rated = [replace(part, confidence=_confidence(part, statistics, settings.get(SETTING), run)) for part in parts]
    present = [part.confidence for part in rated if not part.absent]
    if not present:
        return whole, []
    weakest = min(present, key=lambda each: each.value)
    least = min(part.confidence.value for part in rated)
    decision = weakest.decision if len(present) == len(rated) else "review"
    return replace(weakest, value=least, decision=decision), rated


def _confidence(part: Part, statistics: LexicalStatistics, stored: Mapping[str, Any] | None, run: Run) -> Confidence:
    decides = speaks(run.embedder, language(part.question), deciding=True)
    passages = part.passages if decides else by_words(part.passages)
    rated = confidence_of(part.question, passages, statistics, stored, part.pack, policy=run.policy)
    return replace(rated, decision="review") if rated.decision == "abstain" and rated.value >= ABSENT else rated
