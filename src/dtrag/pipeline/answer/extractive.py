"""Answers without a language model: exact quotations of the sentences of the passages that answer.

A sentence's score is the logarithm of how much likelier it is to hold the answer than another sentence of the same
passages: a weighted sum, fitted by conditional logistic regression (`WEIGHTS`; bench/README.md, "Extractive answers").
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dtrag import embedding_service
from dtrag.core.documents import PackFindings, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics, idf
from dtrag.core.text.analysis import language, normalise, term_id, terms
from dtrag.core.text.linguistics import asks_date, asks_number, counted_answer
from dtrag.core.text.questions import weighted_terms
from dtrag.core.text.sentences import NOTHING_BEFORE, AnalysedSentence, Preceding, sentences_after
from dtrag.pipeline.intent import is_greeting
from dtrag.ports import Embedder

Scores = np.ndarray[tuple[int], np.dtype[np.float64]]
MAX_SENTENCES = 5
MAX_CHARACTERS = 600
PASSAGES = 5
"""Passages that sentences are taken from; more add noise, not answers (oracle of the top 5: .96 / .99)."""
MOST_EMBEDDED = 12
"""Maximum of sentences compared by meaning: the best by words. Each takes 2 to 4 ms, most of the time of an answer.
Of 170 questions of squad2-dev .894 hold the gold answer with 12 and with all (27.8), .888 with 8, .876 with 4."""
EMBEDDED_WITHIN = 5.0
"""Sentences whose score by words lies further below the best one's are not compared. Of 391 answers to other questions
of squad2-dev .926 hold the gold answer with this (6.4 sentences), 6 (7.7), 8 (9.9) and all; .921 with 4 (4.8)."""
FLOOR = 6.0
"""A sentence whose score lies further below the best one's is not quoted beside it: it is e^6 = 400 times less likely
to hold the answer. Of squad2-dev with MiniLM and korquad1-dev .904 and .966 contain the gold answer then, in 3.1 and
4.3 sentences; without a floor .905 and .968 in 3.9 and 5.0, with 5 .900 and .965 in 2.7 and 3.9."""
PACK_PASSAGES = 3
PACK_SHARE = 0.93
"""Of passages that a pack ranked, those are quoted whose score is at least this share of the best one's, at most three.
Of 71 development questions .87 have a right article among them then (.63 of the quoted articles are right; .76 of the
first ones), of 60 others .55 (.34; .45); with .97 .82 (.70) and .48 (.38), with .9 .89 (.59) and .57 (.29)."""
PACK_FLOOR = 0.3
"""Floor within one passage that a pack ranked: its best sentence, and others that are nearly as likely. An answer has
1.9 sentences with it, 2.4 with .8 and 2.9 with 1.5; as many answers contain a right article."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What a signal of 1 adds to the score of a sentence.

    Shares of the question's idf weight: `coverage` that the sentence holds, `window` that it and its neighbours hold,
    `passage` that its passage holds, `local` that it holds of what the passage holds, words that few of the passage's
    sentences have weighing more. `relevance`: the passage's score as a share of the best passage's. `cosine` of the
    sentence to the question, `closest` that of the passage's closest sentence. `date`, `number`, `limit`, `person`:
    there is one, and the question asks for one; `counter`: a number with the counter asked for ("몇 권": 10권).
    """

    coverage: float = 0.8
    window: float = 3.5
    passage: float = 6.0
    local: float = 3.6
    relevance: float = 6.5
    cosine: float = 2.8
    closest: float = 6.0
    date: float = 2.4
    number: float = 1.9
    limit: float = 2.4
    person: float = 0.6
    counter: float = 3.0


WEIGHTS = Weights()
"""Fitted on the even questions of squad2-dev, with and without MiniLM, and korquad1-dev, rounded, and judged on the odd
ones. Set by hand: `limit`, because a question for one ("최대 몇 학기까지") is answered in other words ("2개 학기를
초과하지 못하며"), and `counter`. Of 316 questions of korquad1-dev with 몇, 며칠 or 얼마 .987 contain the gold answer in
4.1 sentences without `counter` (.835 in the best one), .997 in 3.3 with 2.4 (.892), .997 in 3.1 with 3.6 (.899)."""

_DATE = re.compile(
    r"\b1\d{3}\b|\b20\d\d\b|\d{1,4}\s?[년월]|centur|\b(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December)\b"
)
_FIGURE = re.compile(r"\d[\d,.]*")
_COUNTED = re.compile(r"[일이삼사오육칠팔구십백천두세네]+\s?(?:명|개|회|일|년|월|학기|학점|원|권|시간|차례|번)")
_LIMIT = re.compile(r"초과|이내|통산|한도|이하|까지|넘지|최대|at most|maximum|up to|no more than|limit|within", re.I)
_PERSON = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+|[가-힣]{2,4}(?:장|씨|교수|위원)")
_MARK = re.compile(r"[<〈(\[【][^<>〈〉()\[\]]*[>〉)\]】]|[①-⑳]|^\s*[0-9가-하]{1,2}[.)]")
_ASKS_PERSON = re.compile(r"\bwho(?:m|se)?\b|누구|누가|누군", re.I)
_ASKS_LIMIT = re.compile(r"최대|까지|한도|제한|limit|maximum|at most|up to", re.I)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a passage: `passage` counts from 0, `start` and `end` are offsets into the passage's text."""

    passage: int
    start: int
    end: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class _Sentence:
    passage: int
    start: int
    end: int
    terms: frozenset[int]


def extract(
    question: str,
    passages: Sequence[SearchResult],
    statistics: LexicalStatistics,
    embedder: Embedder | None = None,
    pack: PackFindings | None = None,
    *,
    preceding: Mapping[str, Preceding] = NOTHING_BEFORE,
) -> list[Quote]:
    """The sentences that answer, in reading order: at most 5 with 600 characters, without duplicates.

    `embedder` must speak the question's language, or be None; what it raises is passed on. With `pack`, official terms
    count like the question's own, and the pack's order decides which passages are quoted. `preceding`: see `Evidence`.
    Blocking and CPU-bound.
    """
    shares = dict(weighted_terms(question))
    for term, share in pack.terms if pack is not None else ():
        shares[term] = max(share, shares.get(term, 0.0))
    term_weights = {
        term: share * idf(statistics.document_frequency(term), max(1, statistics.chunks))
        for term, share in shares.items()
    }
    passages = passages[:PASSAGES] if pack is None else _leading(passages)
    candidates = [
        _Sentence(
            number, sentence.start, sentence.end, frozenset(map(term_id, sentence.terms + sentence.context_terms))
        )
        for number, passage in enumerate(passages)
        for sentence in sentences_after(preceding.get(passage.chunk_id), passage.text, passage.start)
        if sentence.quotable and sentence.end - sentence.start <= MAX_CHARACTERS and _has_words(sentence)
    ]
    if not candidates or not term_weights:
        return []
    scores = _by_words(passages, candidates, term_weights) + _by_kind(question, passages, candidates)
    if embedder is not None:
        best = np.argsort(-scores, kind="stable")[:MOST_EMBEDDED]
        best = np.sort(best[scores[best] >= scores.max() - EMBEDDED_WITHIN])
        candidates, scores = [candidates[int(place)] for place in best], scores[best]
        scores = scores + _by_meaning(question, passages, candidates, embedder)
    if pack is not None:
        candidates, scores = _best_of_each(candidates, scores)
    return _select(passages, candidates, scores)


def _leading(passages: Sequence[SearchResult]) -> list[SearchResult]:
    """The passages whose scores are nearly those of the first one."""
    least = PACK_SHARE * passages[0].hybrid_score if passages else 0.0
    return [passage for passage in passages[:PACK_PASSAGES] if passage.hybrid_score >= least]


def _best_of_each(candidates: Sequence[_Sentence], scores: Scores) -> tuple[list[_Sentence], Scores]:
    """The sentences that are nearly as likely as the best one of their passage, scored by their distance to it.

    Every passage keeps its best sentence: the pack has decided that all of them answer.
    """
    best: dict[int, float] = {}
    for sentence, score in zip(candidates, scores, strict=True):
        best[sentence.passage] = max(best.get(sentence.passage, -math.inf), float(score))
    distance = np.array(
        [float(score) - best[sentence.passage] for sentence, score in zip(candidates, scores, strict=True)]
    )
    near = np.flatnonzero(distance >= -PACK_FLOOR)
    return [candidates[int(place)] for place in near], distance[near]


def _has_words(sentence: AnalysedSentence) -> bool:
    """Whether it has words besides list marks and bracketed text."""
    unmarked = _MARK.sub(" ", sentence.text)
    return bool(sentence.terms if unmarked == sentence.text else terms(unmarked))


def _by_meaning(
    question: str, passages: Sequence[SearchResult], candidates: Sequence[_Sentence], embedder: Embedder
) -> Scores:
    """What semantic similarity adds to the score of each candidate."""
    texts = [passages[s.passage].text[s.start : s.end] for s in candidates]
    vectors = embedding_service.embed_passages(texts, embedder=embedder)
    cosines = np.asarray(vectors @ embedding_service.embed_question(question, embedder=embedder), np.float64)
    if not np.isfinite(cosines).all():
        raise ValueError("the embedder returned a vector with a number that is not finite")
    closest: dict[int, float] = {}
    for sentence, cosine in zip(candidates, cosines, strict=True):
        closest[sentence.passage] = max(closest.get(sentence.passage, -1.0), float(cosine))
    bonus: Scores = WEIGHTS.cosine * cosines + WEIGHTS.closest * np.array([closest[s.passage] for s in candidates])
    return bonus


def _by_words(
    passages: Sequence[SearchResult], candidates: Sequence[_Sentence], term_weights: Mapping[int, float]
) -> Scores:
    total = sum(term_weights.values())
    relevance = [max(passage.bm25_score, passage.vector_score) for passage in passages]
    best_passage = max(relevance, default=0.0) or 1.0
    scores = np.zeros(len(candidates))
    for number in {sentence.passage for sentence in candidates}:
        places = [place for place, sentence in enumerate(candidates) if sentence.passage == number]
        matched = [{term for term in term_weights if term in candidates[place].terms} for place in places]
        together = set().union(*matched)
        occurrences = Counter(term for sentence_terms in matched for term in sentence_terms)
        rarity = {t: term_weights[t] * math.log1p((len(matched) + 0.5) / (occurrences[t] + 0.5)) for t in together}
        rarest = sum(rarity.values()) or 1.0
        passage = sum(term_weights[term] for term in together) / total
        for order, place in enumerate(places):
            around = set().union(*matched[max(0, order - 1) : order + 2])
            scores[place] = (
                WEIGHTS.coverage * sum(term_weights[term] for term in matched[order]) / total
                + WEIGHTS.window * sum(term_weights[term] for term in around) / total
                + WEIGHTS.passage * passage
                + WEIGHTS.local * sum(rarity[term] for term in matched[order]) / rarest
                + WEIGHTS.relevance * relevance[number] / best_passage
            )
    return scores


def _by_kind(question: str, passages: Sequence[SearchResult], candidates: Sequence[_Sentence]) -> Scores:
    """A bonus for sentences with the kind of value that the question asks for: date, number, limit, person."""
    named = set(_FIGURE.findall(question))
    scores = np.zeros(len(candidates))
    counted = counted_answer(question)
    requested = [
        asks_date(question),
        asks_number(question),
        counted is not None,
        bool(_ASKS_LIMIT.search(question)),
        bool(_ASKS_PERSON.search(question)),
    ]
    if not any(requested):
        return scores
    for place, sentence in enumerate(candidates):
        text = passages[sentence.passage].text[sentence.start : sentence.end]
        number = any(figure not in named for figure in _FIGURE.findall(text)) or _COUNTED.search(text)
        with_counter = counted.search(text) if counted is not None else None
        fits = (_DATE.search(text), number, with_counter, _LIMIT.search(text), _PERSON.search(text))
        bonuses = (WEIGHTS.date, WEIGHTS.number, WEIGHTS.counter, WEIGHTS.limit, WEIGHTS.person)
        scores[place] = sum(
            bonus for is_requested, fit, bonus in zip(requested, fits, bonuses, strict=True) if is_requested and fit
        )
    return scores


def _select(passages: Sequence[SearchResult], candidates: Sequence[_Sentence], scores: Scores) -> list[Quote]:
    selected: list[Quote] = []
    seen: set[str] = set()
    used = 0
    for position in np.argsort(-scores, kind="stable"):
        sentence, score = candidates[int(position)], float(scores[position])
        text = passages[sentence.passage].text[sentence.start : sentence.end]
        key = normalise(text)
        if len(selected) == MAX_SENTENCES or score < float(scores.max()) - FLOOR:
            break
        if key in seen or used + len(text) > MAX_CHARACTERS:
            continue
        seen.add(key)
        used += len(text) + 1
        selected.append(Quote(sentence.passage, sentence.start, sentence.end, text, score))
    return sorted(selected, key=lambda quote: (quote.passage, quote.start))


_ABOUT = {
    "ko": "dtrag은 읽어 둔 문서에서 답을 찾아 출처와 함께 보여 줍니다. 문서에 있는 내용을 질문해 주세요.",
    "en": "dtrag answers questions from the documents it has read, and cites where each answer stands. "
    "Ask it about what they say.",
}


def nothing_found(question: str) -> str:
    """The answer when the documents do not answer, in the question's language; after a greeting, what dtrag does."""
    korean = language(question) == "ko"
    if is_greeting(question):
        return _ABOUT["ko" if korean else "en"]
    if korean:
        return "문서에서 이 질문에 대한 답을 찾지 못했습니다."
    return "The documents do not answer this question."
