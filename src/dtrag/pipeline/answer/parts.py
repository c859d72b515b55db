"""Answers to questions that ask several things: the provision of each part, or that there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dtrag.core.documents import PackFindings, SearchResult
from dtrag.core.statements import CodedText, shown_as, stated
from dtrag.core.text.analysis import language
from dtrag.pipeline.answer.candidates import FURTHER
from dtrag.pipeline.answer.extractive import extract
from dtrag.pipeline.answer.quotes import Quote
from dtrag.pipeline.state import Evidence, Part


def not_found(part: str) -> CodedText:
    """The statement that the documents do not answer a part of the question, in its language."""
    part = part.strip(" ?？.")
    statement = stated("part_not_found", "No provision was found for “{part}”.", part=part)
    return shown_as(f"‘{part}’에 대한 조문은 찾지 못했습니다.", statement) if language(part) == "ko" else statement


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
