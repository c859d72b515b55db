"""An answer that a language model wrote, held against the passages: what it cites, and what nothing supports.

Lexical support with reasons, and closeness of meaning where there is an embedder: it catches changed numbers, changed
names and an inserted "not" (bench/README.md), and is no judge of finer points.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrag import embedding_service
from dtrag.core.answers.citation_labels import cited_label
from dtrag.core.answers.grounding import (
    STRONG,
    SUPPORTED,
    Claim,
    PassageSentence,
    Support,
    backing,
    claim_of,
    said_in,
    united,
)
from dtrag.core.documents import Citation, SearchResult
from dtrag.core.text.analysis import language
from dtrag.core.text.hidden_characters import visible
from dtrag.pipeline.answer.citation_marks import UNSUPPORTED, Part, read, urls
from dtrag.pipeline.answer.citations import passages_of
from dtrag.pipeline.answer.compose import quote, tool_lines
from dtrag.pipeline.answer.extractive import PASSAGES
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.timeouts import EMBEDDING_THREADS, budget_of
from dtrag.ports import Embedder, speaks

CLOSE = 0.75
"""Cosine of a sentence to one of a passage from which on they say the same in other words."""
MEANING = 0.2
"""Share of its words that such a sentence must have in common with the passage all the same."""
RELATED = 0.3
"""A number that is cited although the passage holds less of the sentence than this is dropped."""
MOST_SENTENCES = 100
"""Sentences of an answer that are checked; the rest counts as unsupported. Answers have one to five."""
MOST_EMBEDDED = 40
"""Sentences of passages that are embedded for one answer: about 4 ms each."""
LONGEST_HEADING = 4
"""Content words of a heading that is no sentence, when one passage has them all."""
_HEADING = ("#", ":", "：")
_LOG = logging.getLogger(__name__)

_QUICK = 0.6
"""Share of the step's budget that looking by meaning may take, too; by words alone takes some 10 ms."""
NO_SENTENCE_SUPPORTED = "The language model's answer was not supported by the passages and is not shown."


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the checked answer: `Checked.text[start:end] == text`, without the marks that follow it.

    `numbers` are its citations after checking; `score` in [0, 1] is the share of what it says that the passages hold;
    `reason` says why it is not supported, or what was put right, and is "" otherwise.
    """

    text: str
    start: int
    end: int
    numbers: tuple[int, ...]
    supported: bool
    score: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer with checked citations, numbered 1..k in the order in which they are first used.

    Short headings in a passage's own words and lines without words are no sentences. `notes` say in words what a
    reader should know.
    """

    text: str
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """`cited`: (index of a passage, what in it backs the sentence)."""

    supported: bool
    score: float
    reason: str
    cited: tuple[tuple[int, Support], ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    text: str
    claim: Claim
    numbers: tuple[int, ...]
    verdict: _Verdict


def check(answer: str, passages: Sequence[SearchResult], *, embedder: Embedder | None = None) -> Checked:
    """Hold every sentence of `answer` against the passages that it cites by `[n]`, n counting from 1.

    Numbers of no passage are dropped, and so is a list of sources; a sentence that cites nothing, or the wrong passage,
    gets the number of the one that clearly says it. An unsupported sentence stays, with ` [?]` behind it.

    `embedder` must speak the answer's language; what it raises is passed on. Blocking and CPU-bound.
    """
    marked = read(answer, [passage.text for passage in passages])
    said = [said_in(passage.text, " ".join((passage.title, *passage.breadcrumb))) for passage in passages]
    parts = [part for part in marked.parts if claim_of(marked.text[part.start : part.end]).words]
    texts = [marked.text[part.start : part.end] for part in parts]
    asked = [
        _Asked(text, claim := claim_of(text), part.numbers, _verdict(claim, part.numbers, said))
        for text, part in zip(texts[:MOST_SENTENCES], parts, strict=False)
    ]
    parts = [part for place, part in enumerate(parts) if place >= len(asked) or not _heads(asked[place])]
    asked = [one for one in asked if not _heads(one)]
    verdicts = [one.verdict for one in asked]
    if embedder is not None:
        verdicts = _by_meaning(asked, passages, said, embedder)
    verdicts = [_without_links(one.text, found, passages) for one, found in zip(asked, verdicts, strict=True)]
    verdicts += [_Verdict(False, 0.0, "the answer is too long to be checked")] * (len(parts) - len(verdicts))
    text, found, citations = _written(marked.text, parts, verdicts, passages)
    return Checked(text, found, citations, _notes(found, marked.invented, marked.listed))


def _heads(one: _Asked) -> bool:
    """Whether it is a heading that claims nothing of its own."""
    bare = one.text.strip("*_ ")
    plain = not one.claim.numbers and not one.numbers and len(one.claim.words) <= LONGEST_HEADING
    backed = one.verdict.supported and one.verdict.score >= 1.0
    return plain and backed and (bare.startswith(_HEADING) or bare.endswith(_HEADING))


def _without_links(text: str, verdict: _Verdict, passages: Sequence[SearchResult]) -> _Verdict:
    """An address that no passage holds is made up, or leads to where somebody wants the reader."""
    if all(any(url in passage.text for passage in passages) for url in urls(text)):
        return verdict
    return replace(verdict, supported=False, reason="it has a web address that is not in the passages")


def _verdict(claim: Claim, numbers: Sequence[int], said: Sequence[Sequence[PassageSentence]]) -> _Verdict:
    """By the passages that are cited; by any other where they do not support it."""
    cited = [(number - 1, backing(claim, said[number - 1])) for number in numbers]
    supporting = [one for one in cited if _backs(one[1])]
    if supporting:
        also = [one for one in cited if one not in supporting and one[1].share >= RELATED and not one[1].reason]
        return _Verdict(
            True, max(one[1].share for one in supporting), "", tuple(one for one in cited if one in supporting + also)
        )
    if len(cited) > 1 and (together := _together(claim, cited, said)) is not None:
        return together
    others = [(index, backing(claim, one)) for index, one in enumerate(said) if index + 1 not in numbers]
    best = max(others, key=lambda one: (_backs(one[1]), one[1].share), default=None)
    if best is not None and _backs(best[1]) and best[1].share >= STRONG:
        reason = f"it cited {_listed(numbers)}, and another passage says it" if numbers else "it cited nothing"
        return _Verdict(True, best[1].share, reason, (best,))
    related = [one for one in cited if one[1].share >= RELATED]
    top = max((*cited, *others), key=lambda one: one[1].share, default=None)
    score = top[1].share if top is not None else 0.0
    return _Verdict(False, score, _why(cited, best), tuple(related))


def _backs(found: Support) -> bool:
    return found.share >= SUPPORTED and not found.reason


def _together(
    claim: Claim, cited: Sequence[tuple[int, Support]], said: Sequence[Sequence[PassageSentence]]
) -> _Verdict | None:
    """A sentence may draw on several passages: what backs it in each, side by side."""
    drawn: list[PassageSentence] = []
    for index, found in cited:
        if found.share >= RELATED:
            drawn += [one for one in said[index] if found.start <= one.start and one.end <= found.end]
    found = united(claim, drawn)
    if not _backs(found):
        return None
    return _Verdict(True, found.share, "", tuple(one for one in cited if one[1].share >= RELATED))


def _why(cited: Sequence[tuple[int, Support]], best: tuple[int, Support] | None) -> str:
    if cited:
        found = max((one[1] for one in cited), key=lambda one: one.share)
        if found.share >= MEANING and found.reason:
            return found.reason
        return f"the passage that it cites holds {found.share:.0%} of its words"
    if best is None:
        return "there are no passages"
    if best[1].share >= MEANING and best[1].reason:
        return f"it cites nothing, and in the closest passage, {best[1].reason}"
    return f"it cites nothing, and the closest passage holds {best[1].share:.0%} of its words"


def _by_meaning(
    asked: Sequence[_Asked],
    passages: Sequence[SearchResult],
    said: Sequence[Sequence[PassageSentence]],
    embedder: Embedder,
) -> list[_Verdict]:
    """Sentences that lack only words are supported by a sentence that means nearly the same."""
    verdicts = [one.verdict for one in asked]
    unsure = [place for place, found in enumerate(verdicts) if not found.supported and found.score >= MEANING]
    wanted = {number - 1 for place in unsure for number in asked[place].numbers} or set(range(len(said)))
    spans = [(index, one) for index in sorted(wanted) for one in said[index]][:MOST_EMBEDDED]
    if not unsure or not spans:
        return verdicts
    theirs = embedding_service.embed_passages(
        [passages[index].text[one.start : one.end] for index, one in spans], embedder=embedder
    )
    ours = embedding_service.embed_passages([asked[place].text for place in unsure], embedder=embedder)
    if not (np.isfinite(theirs).all() and np.isfinite(ours).all()):
        raise ValueError("the embedder returned a vector with a number that is not finite")
    for place, cosines in zip(unsure, ours @ theirs.T, strict=True):
        for position in np.argsort(-cosines, kind="stable"):
            closeness = min(1.0, float(cosines[position]))
            index, one = spans[int(position)]
            if closeness < CLOSE:
                break
            whole = backing(asked[place].claim, said[index])
            if (not asked[place].numbers or index + 1 in asked[place].numbers) and not whole.reason:
                near = backing(asked[place].claim, (one,))
                verdicts[place] = _Verdict(True, closeness, "by meaning", ((index, near),))
                break
    return verdicts


def _written(
    text: str, parts: Sequence[Part], verdicts: Sequence[_Verdict], passages: Sequence[SearchResult]
) -> tuple[str, tuple[Sentence, ...], tuple[Citation, ...]]:
    """The answer with its marks, its sentences, and the citations: one number for each span that is cited."""
    numbers: dict[tuple[int, int, int], int] = {}
    pieces: list[str] = []
    found: list[Sentence] = []
    length = last = 0
    for part, verdict in zip(parts, verdicts, strict=True):
        keys = [(index, one.start, one.end) for index, one in verdict.cited]
        own = tuple(dict.fromkeys(numbers.setdefault(key, len(numbers) + 1) for key in keys))
        marks = "".join(f"[{number}]" for number in own)
        tail = "".join(f" {mark}" for mark in (marks, "" if verdict.supported else UNSUPPORTED) if mark)
        pieces += [text[last : part.end], tail]
        start = length + part.start - last
        body = text[part.start : part.end]
        found.append(
            Sentence(body, start, start + len(body), own, verdict.supported, round(verdict.score, 3), verdict.reason)
        )
        length += part.end - last + len(tail)
        last = part.end
    citations = tuple(_citation(number, passages[key[0]], key[1], key[2]) for key, number in numbers.items())
    return "".join([*pieces, text[last:]]), tuple(found), citations


def _citation(number: int, passage: SearchResult, start: int, end: int) -> Citation:
    quote = passage.text[start:end]
    shown = visible(quote)
    return Citation(
        number=number,
        label=cited_label(passage),
        chunk_id=passage.chunk_id,
        document_id=str(passage.metadata.get("document_id", "")),
        source_url=passage.source_url,
        quote=quote,
        start=passage.start + start,
        end=passage.start + end,
        display=shown if shown != quote else "",
    )


def _notes(found: Sequence[Sentence], invented: Sequence[int], listed: bool) -> tuple[str, ...]:
    notes = []
    for sentence in found:
        if not sentence.supported:
            shown = sentence.text if len(sentence.text) <= 60 else sentence.text[:59] + "…"
            notes.append(f"Not supported by the passages, marked {UNSUPPORTED}: “{shown}”: {sentence.reason}.")
    if invented:
        notes.append(f"Citations of passages that do not exist were removed: {_listed(invented)}.")
    if listed:
        notes.append("A list of sources that the language model wrote was removed.")
    return tuple(notes)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")


async def verified(state: PipelineState, run: Run) -> PipelineState:
    """The checked answer with its citations; quotations where no sentence of the answer is supported."""
    passages = passages_of(state)[:PASSAGES]
    assert state.answer is not None  # noqa: S101 - the caller has looked
    checked = await asyncio.to_thread(check, state.answer, passages)
    if not all(sentence.supported for sentence in checked.sentences):
        checked = await _checked_by_meaning(state, run) or checked
    kept = [sentence for sentence in checked.sentences if sentence.supported]
    run.recording.facts |= {"sentences": len(checked.sentences), "supported": len(kept)}
    if not kept and not tool_lines(state.tool_results):
        state.notes.append(NO_SENTENCE_SUPPORTED)
        state.model = None
        state = await quote(state, run)
        state.decision = "review" if state.citations else "abstain"
        return state
    if len(kept) < len(checked.sentences):
        state.decision = "review"
        state.reason = f"{len(checked.sentences) - len(kept)} of {len(checked.sentences)} sentences have no support."
    if checked.text != state.answer:
        run.emit("replace", {"text": checked.text})
    state.answer, state.citations = checked.text, checked.citations
    state.notes += checked.notes
    return state


async def _checked_by_meaning(state: PipelineState, run: Run) -> Checked | None:
    """The check with the embedder's help; None where there is none, it takes too long, or fails (the named seam)."""
    answer = state.answer or ""
    if run.embedder is None or not speaks(run.embedder, language(answer)) or "vector" in state.degraded:
        return None
    passages = passages_of(state)[:PASSAGES]
    try:
        async with asyncio.timeout(_QUICK * budget_of("check")):
            return await EMBEDDING_THREADS.run(check, answer, passages, embedder=run.embedder)
    except TimeoutError:
        return None
    except Exception:  # noqa: BLE001 - the seam: words alone decide then
        _LOG.warning("the embedder failed while an answer was checked", exc_info=True)
        return None
