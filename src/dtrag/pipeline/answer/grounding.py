"""Checks a language model's answer against the passages: which sentences they support, and with which citations.

Support is lexical, with reasons, and semantic where there is an embedder. It catches changed numbers, changed names and
an inserted "not" (bench/README.md), but not subtler errors.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrag import embedding_service
from dtrag.core.answers.citation_labels import label
from dtrag.core.answers.grounding import (
    STRONG,
    SUPPORTED,
    Claim,
    PassageSentence,
    Support,
    claim_of,
    combined_support,
    passage_sentences,
    support_of,
)
from dtrag.core.answers.sentence_vectors import NOTHING_STORED, SentenceVectors
from dtrag.core.documents import Citation, SearchResult
from dtrag.core.statements import Statements, stated
from dtrag.core.text.analysis import language, normalise
from dtrag.core.text.sentences import NOTHING_BEFORE, Preceding
from dtrag.destinations import embeds
from dtrag.pipeline.answer.citation_marks import UNSUPPORTED, MarkedSentence, read_marks, urls
from dtrag.pipeline.answer.citations import citation_of
from dtrag.pipeline.answer.compose import quote, tool_lines
from dtrag.pipeline.answer.extractive import PASSAGES, vectors_of
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.timeouts import EMBEDDING_THREADS, budget_of
from dtrag.ports import Embedder, model_for

CLOSE = 0.75
"""Cosine from which on a sentence and a passage's sentence have the same meaning in other words."""
MEANING = 0.2
"""Share of its words that such a sentence must still have in common with the passage."""
RELATED = 0.3
"""A citation is dropped if its passage has less than this share of the sentence's words."""
MOST_SENTENCES = 100
"""Sentences of an answer that are checked; the rest counts as unsupported. Answers have one to five."""
MOST_EMBEDDED = 40
"""Sentences of passages that are embedded for one answer: about 4 ms each."""
LONGEST_HEADING = 4
"""Content words of a heading that is not checked as a sentence, if one passage has them all."""
_HEADING = ("#", ":", "：")
_LABEL = re.compile(r"제\s?\d+\s?[편장절관조항]|\b(?:article|section|chapter|part)\s\d|§", re.I)
"""The number of a provision. Other headings may be an answer: a name, a place."""
_WORD = re.compile(r"\w+")
_LOG = logging.getLogger(__name__)

_SEMANTIC_SHARE = 0.6
"""Share of the step's budget for the check with the embedder; the lexical check takes about 10 ms."""
NO_SENTENCE_SUPPORTED = stated(
    "nothing_supported", "The language model's answer was not supported by the passages and is not shown."
)


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of the checked answer: `CheckedAnswer.text[start:end] == text`, without the marks that follow it.

    `numbers` are its citations after the check; `score` in [0, 1] is the share of its content that the passages have;
    `reason` says why it is not supported, or what was corrected, and is "" otherwise.
    """

    text: str
    start: int
    end: int
    numbers: tuple[int, ...]
    supported: bool
    score: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer with checked citations, numbered 1..k in the order of their first use.

    Short headings in a passage's own words and lines without words are not sentences. `notes` are for the reader.
    `dropped` unsupported sentences were left out.
    """

    text: str
    sentences: tuple[CheckedSentence, ...]
    citations: tuple[Citation, ...]
    notes: Statements
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class _Verdict:
    """`cited`: (index of a passage, its support of the sentence)."""

    supported: bool
    score: float
    reason: str
    cited: tuple[tuple[int, Support], ...] = ()


@dataclass(frozen=True, slots=True)
class _AnswerSentence:
    text: str
    claim: Claim
    numbers: tuple[int, ...]
    verdict: _Verdict


PassageSentences = Sequence[Sequence[PassageSentence]]
"""The sentences of each passage."""


def check(
    answer: str,
    passages: Sequence[SearchResult],
    *,
    embedder: Embedder | None = None,
    preceding: Mapping[str, Preceding] = NOTHING_BEFORE,
    stored: SentenceVectors = NOTHING_STORED,
    drop: bool = False,
) -> CheckedAnswer:
    """Check every sentence of `answer` against the passages that it cites by `[n]`, n counting from 1.

    Numbers of unknown passages and a list of sources are removed. A sentence that cites nothing, or the wrong passage,
    gets the number of the passage that clearly supports it. An unsupported sentence stays, followed by ` [?]`; with
    `drop` it is left out when the rest still answers: the first sentence, which is the short answer, is supported.

    `embedder` must support the answer's language; what it raises is passed on. `preceding` and `stored` (vectors of
    sentences): see `Evidence`. Blocking and CPU-bound.
    """
    marked = read_marks(answer, [passage.text for passage in passages])
    contents = [_sentences_of(passage, preceding.get(passage.chunk_id)) for passage in passages]
    spans = [span for span in marked.sentences if claim_of(marked.text[span.start : span.end]).words]
    sentences = [
        _AnswerSentence(text, claim := claim_of(text), span.numbers, _verdict(claim, span.numbers, contents))
        for span in spans[:MOST_SENTENCES]
        for text in (marked.text[span.start : span.end],)
    ]
    headings = [_words_of_headings(passage, content) for passage, content in zip(passages, contents, strict=True)]
    claiming = [not _is_heading(sentence, headings) for sentence in sentences]
    spans = [span for place, span in enumerate(spans) if place >= len(sentences) or claiming[place]]
    sentences = [sentence for sentence, claims in zip(sentences, claiming, strict=True) if claims]
    verdicts = [sentence.verdict for sentence in sentences]
    if embedder is not None:
        verdicts = _by_meaning(sentences, passages, contents, embedder, stored)
    verdicts = [
        _without_links(sentence.text, verdict, passages) for sentence, verdict in zip(sentences, verdicts, strict=True)
    ]
    verdicts += [_Verdict(False, 0.0, "the answer is too long to be checked")] * (len(spans) - len(verdicts))
    dropped: list[tuple[str, str]] = []
    text = marked.text
    if drop and verdicts and verdicts[0].supported:
        dropped = [
            (text[span.start : span.end], verdict.reason)
            for span, verdict in zip(spans, verdicts, strict=True)
            if not verdict.supported
        ]
        text, spans, verdicts = _supported_only(text, spans, verdicts)
    text, checked, citations = _assemble(text, spans, verdicts, passages, preceding)
    notes = _notes(checked, marked.invented, marked.listed, dropped)
    return CheckedAnswer(text, checked, citations, notes, len(dropped))


def _supported_only(
    text: str, spans: Sequence[MarkedSentence], verdicts: Sequence[_Verdict]
) -> tuple[str, list[MarkedSentence], list[_Verdict]]:
    """Text, spans and verdicts without the unsupported sentences and the white space after them."""
    pieces: list[str] = []
    remaining: list[MarkedSentence] = []
    length = last = 0
    for span, verdict in zip(spans, verdicts, strict=True):
        if verdict.supported:
            piece = text[last : span.end]
            remaining.append(replace(span, start=length + span.start - last, end=length + span.end - last))
            last = span.end
        else:
            piece = text[last : span.start]
            last = span.end + len(text[span.end :]) - len(text[span.end :].lstrip())
        pieces.append(piece)
        length += len(piece)
    whole = "".join([*pieces, text[last:]]).rstrip()
    return whole, remaining, [verdict for verdict in verdicts if verdict.supported]


def _sentences_of(passage: SearchResult, preceding: Preceding | None) -> Sequence[PassageSentence]:
    around = " ".join((passage.title, *passage.breadcrumb))
    return passage_sentences(passage.text, around, preceding, passage.start if preceding is not None else 0)


def _words_of_headings(passage: SearchResult, content: Sequence[PassageSentence]) -> frozenset[str]:
    """The words of a passage's label, of the headings above it, and of those in it."""
    within = (passage.text[part.start : part.end] for part in content if not part.quotable)
    return frozenset(_WORD.findall(normalise(" ".join((label(passage), *passage.breadcrumb, *within)))))


def _is_heading(sentence: _AnswerSentence, headings: Sequence[frozenset[str]]) -> bool:
    """Whether it is a heading that claims nothing of its own: short, or that of a provision."""
    if _LABEL.search(sentence.text):
        written = frozenset(_WORD.findall(normalise(sentence.text)))
        if any(written <= words for words in headings):
            return True
    bare = sentence.text.strip("*_ ")
    plain = not sentence.claim.numbers and not sentence.numbers and len(sentence.claim.words) <= LONGEST_HEADING
    supported = sentence.verdict.supported and sentence.verdict.score >= 1.0
    return plain and supported and (bare.startswith(_HEADING) or bare.endswith(_HEADING))


def _without_links(text: str, verdict: _Verdict, passages: Sequence[SearchResult]) -> _Verdict:
    """Unsupported for a sentence with a web address that no passage has: it is invented or injected."""
    if all(any(url in passage.text for passage in passages) for url in urls(text)):
        return verdict
    return replace(verdict, supported=False, reason="it has a web address that is not in the passages")


def _verdict(claim: Claim, numbers: Sequence[int], contents: PassageSentences) -> _Verdict:
    """By the cited passages; by any other passage if they do not support the claim."""
    cited = [(number - 1, support_of(claim, contents[number - 1])) for number in numbers]
    supporting = [(index, support) for index, support in cited if _is_supported(support)]
    if supporting:
        related = [pair for pair in cited if pair not in supporting and pair[1].share >= RELATED and not pair[1].reason]
        best_share = max(support.share for _, support in supporting)
        return _Verdict(True, best_share, "", tuple(pair for pair in cited if pair in supporting + related))
    if len(cited) > 1 and (together := _together(claim, cited, contents)) is not None:
        return together
    others = [(index, support_of(claim, content)) for index, content in enumerate(contents) if index + 1 not in numbers]
    best = max(others, key=lambda pair: (_is_supported(pair[1]), pair[1].share), default=None)
    if best is not None and _is_supported(best[1]) and best[1].share >= STRONG:
        reason = f"it cited {_listed(numbers)}, and another passage says it" if numbers else "it cited nothing"
        return _Verdict(True, best[1].share, reason, (best,))
    score = max((support.share for _, support in (*cited, *others)), default=0.0)
    return _Verdict(False, score, _why(cited, best), tuple(pair for pair in cited if pair[1].share >= RELATED))


def _is_supported(support: Support) -> bool:
    return support.share >= SUPPORTED and not support.reason


def _together(claim: Claim, cited: Sequence[tuple[int, Support]], contents: PassageSentences) -> _Verdict | None:
    """The verdict by all cited passages combined, or None if these do not support the claim either."""
    combined: list[PassageSentence] = []
    for index, support in cited:
        if support.share >= RELATED:
            combined += [part for part in contents[index] if support.start <= part.start and part.end <= support.end]
    support = combined_support(claim, combined)
    if not _is_supported(support):
        return None
    return _Verdict(True, support.share, "", tuple(pair for pair in cited if pair[1].share >= RELATED))


def _why(cited: Sequence[tuple[int, Support]], best: tuple[int, Support] | None) -> str:
    """Why neither the cited passages nor the best of the others support a sentence."""
    if cited:
        closest = max((support for _, support in cited), key=lambda support: support.share)
        if closest.share >= MEANING and closest.reason:
            return closest.reason
        return f"the passage that it cites holds {closest.share:.0%} of its words"
    if best is None:
        return "there are no passages"
    if best[1].share >= MEANING and best[1].reason:
        return f"it cites nothing, and in the closest passage, {best[1].reason}"
    return f"it cites nothing, and the closest passage holds {best[1].share:.0%} of its words"


def _by_meaning(
    sentences: Sequence[_AnswerSentence],
    passages: Sequence[SearchResult],
    contents: PassageSentences,
    embedder: Embedder,
    stored: SentenceVectors,
) -> list[_Verdict]:
    """The verdicts, where a sentence that lacks only words is supported by one of nearly the same meaning."""
    verdicts = [sentence.verdict for sentence in sentences]
    unsure = [place for place, verdict in enumerate(verdicts) if not verdict.supported and verdict.score >= MEANING]
    candidates = {number - 1 for place in unsure for number in sentences[place].numbers} or set(range(len(contents)))
    spans = [(index, part) for index in sorted(candidates) for part in contents[index]][:MOST_EMBEDDED]
    if not unsure or not spans:
        return verdicts
    span_vectors = vectors_of([(passages[index], part.start, part.end) for index, part in spans], embedder, stored)
    vectors = embedding_service.embed_passages([sentences[place].text for place in unsure], embedder=embedder)
    if not (np.isfinite(span_vectors).all() and np.isfinite(vectors).all()):
        raise ValueError("the embedder returned a vector with a number that is not finite")
    for place, cosines in zip(unsure, vectors @ span_vectors.T, strict=True):
        sentence = sentences[place]
        for position in np.argsort(-cosines, kind="stable"):
            closeness = min(1.0, float(cosines[position]))
            index, part = spans[int(position)]
            if closeness < CLOSE:
                break
            whole = support_of(sentence.claim, contents[index])
            if (not sentence.numbers or index + 1 in sentence.numbers) and not whole.reason:
                verdicts[place] = _Verdict(
                    True, closeness, "by meaning", ((index, support_of(sentence.claim, (part,))),)
                )
                break
    return verdicts


def _assemble(
    text: str,
    spans: Sequence[MarkedSentence],
    verdicts: Sequence[_Verdict],
    passages: Sequence[SearchResult],
    preceding: Mapping[str, Preceding],
) -> tuple[str, tuple[CheckedSentence, ...], tuple[Citation, ...]]:
    """The answer with its marks, its sentences, and the citations: one number for each cited span."""
    numbers: dict[tuple[int, int, int], int] = {}
    pieces: list[str] = []
    checked: list[CheckedSentence] = []
    length = last = 0
    for span, verdict in zip(spans, verdicts, strict=True):
        keys = [(index, support.start, support.end) for index, support in verdict.cited]
        own = tuple(dict.fromkeys(numbers.setdefault(key, len(numbers) + 1) for key in keys))
        marks = "".join(f"[{number}]" for number in own)
        tail = "".join(f" {mark}" for mark in (marks, "" if verdict.supported else UNSUPPORTED) if mark)
        pieces += [text[last : span.end], tail]
        start = length + span.start - last
        body = text[span.start : span.end]
        score = round(verdict.score, 3)
        checked.append(CheckedSentence(body, start, start + len(body), own, verdict.supported, score, verdict.reason))
        length += span.end - last + len(tail)
        last = span.end
    citations = tuple(
        citation_of(number, passage, start, end, preceding.get(passage.chunk_id))
        for (index, start, end), number in numbers.items()
        for passage in (passages[index],)
    )
    return "".join([*pieces, text[last:]]), tuple(checked), citations


def _notes(
    sentences: Sequence[CheckedSentence], invented: Sequence[int], listed: bool, dropped: Sequence[tuple[str, str]]
) -> Statements:
    notes = [
        stated(
            "sentence_marked",
            "Not supported by the passages, marked {mark}: “{sentence}”: {reason}.",
            mark=UNSUPPORTED,
            sentence=_short(sentence.text),
            reason=sentence.reason,
        )
        for sentence in sentences
        if not sentence.supported
    ]
    left_out = "Not supported by the passages, left out: “{sentence}”: {reason}."
    notes += [stated("sentence_left_out", left_out, sentence=_short(text), reason=reason) for text, reason in dropped]
    if invented:
        removed = "Citations of passages that do not exist were removed: {numbers}."
        notes.append(stated("citations_removed", removed, numbers=_listed(invented)))
    if listed:
        notes.append(stated("source_list_removed", "A list of sources that the language model wrote was removed."))
    return tuple(notes)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")


async def verify(state: PipelineState, run: Run) -> PipelineState:
    """The state with the checked answer and its citations, or with quotations if no sentence is supported."""
    passages = state.passages[:PASSAGES]
    assert state.answer is not None  # noqa: S101 - the caller has checked
    preceding = state.evidence.preceding if state.evidence is not None else {}
    checked = await asyncio.to_thread(check, state.answer, passages, preceding=preceding, drop=True)
    if checked.dropped or not all(sentence.supported for sentence in checked.sentences):
        checked = await _check_by_meaning(state, run) or checked
    supported = sum(sentence.supported for sentence in checked.sentences)
    run.recording.facts |= {"sentences": len(checked.sentences) + checked.dropped, "supported": supported}
    if not supported and not (checked.text and tool_lines(state.tool_results)):
        state.notes.append(NO_SENTENCE_SUPPORTED)
        state.model = None
        state = await quote(state, run)
        state.decision = "review" if state.sources else "abstain"
        return state
    if supported < len(checked.sentences):
        state.decision = "review"
        unsupported = stated(
            "sentences_unsupported",
            "{unsupported} of {sentences} sentences have no support.",
            unsupported=len(checked.sentences) - supported,
            sentences=len(checked.sentences),
        )
        state.reason = (unsupported,)
    if checked.text != state.answer:
        run.emit("replace", {"text": checked.text})
    state.answer, state.sources = checked.text, checked.citations
    state.notes += checked.notes
    return state


async def _check_by_meaning(state: PipelineState, run: Run) -> CheckedAnswer | None:
    """The check with the embedder; None without one, or when it takes too long or fails."""
    answer = state.answer or ""
    model = model_for(run.embedder, language(answer))
    passages = state.passages[:PASSAGES]
    grade = (await run.outgoing(None)).grade(passages) or 0
    if model is None or not model.decides or not embeds(model, grade) or "vector" in state.degraded:
        return None
    preceding = state.evidence.preceding if state.evidence is not None else {}
    stored = state.evidence.sentence_vectors if state.evidence is not None else NOTHING_STORED
    try:
        async with asyncio.timeout(_SEMANTIC_SHARE * budget_of("check")):
            return await EMBEDDING_THREADS.run(
                check, answer, passages, embedder=model, preceding=preceding, stored=stored, drop=True
            )
    except TimeoutError:
        return None
    except Exception:  # noqa: BLE001 - a boundary with an alternative: the lexical check decides then
        _LOG.warning("the embedder failed while an answer was checked", exc_info=True)
        return None
