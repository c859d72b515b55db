"""Answers without a language model: the sentences of the passages that answer, quoted to the letter.

The score of a sentence is the hand formula that measured best (bench/README.md): half its idf coverage of the question,
half its BM25 as a share of the question's maximum, .7 its passage's score, .3 the coverage of the sentences around it,
.1 for the kind of thing that the question asks for, and the cosine to the question where an embedder speaks the
language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dtrag.core.documents import SearchResult
from dtrag.core.query import weighted_terms
from dtrag.core.scoring import K1, LexicalStatistics, bm25_weight, idf
from dtrag.core.text import language, normalise, sentences, term_id, terms
from dtrag.ports import Embedder

MAX_SENTENCES = 5
MAX_CHARACTERS = 600
PASSAGES = 5
"""Passages that sentences are taken from; more bring noise, not answers (oracle of the top 5: .96 / .99)."""
SENTENCE_LENGTH = 24.0
"""Mean terms of a sentence, for BM25's length normalisation."""
FLOOR = 0.6
"""A sentence that scores below this share of the best one is not quoted beside it. On korquad1-dev and squad2-dev the
gold answer is contained as often as without a floor (.950, .854), in 4.2 and 3.1 sentences instead of 5.0 and 3.9; at
.7 it is lost in 1 % of the answers."""
LIMIT_BONUS = 0.3
"""Who asks for a limit ("최대 몇 학기까지") is answered in words that do not match ("2개 학기를 초과하지 못하며")."""

_NUMBER = re.compile(r"\d|[일이삼사오육칠팔구십백천]+\s?(?:명|개|회|일|년|월|학기|학점|원|권|시간)")
_PERSON = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+|[가-힣]{2,4}(?:장|씨|교수|위원)")
_LIMIT = re.compile(r"초과|이내|통산|한도|이하|까지|넘지|최대|at most|maximum|up to|no more than|limit|within", re.I)
_MARK = re.compile(r"[<〈(\[【][^<>〈〉()\[\]]*[>〉)\]】]|[①-⑳]|^\s*[0-9가-하]{1,2}[.)]")
_ASKS_LIMIT = re.compile(r"최대|까지|한도|제한|limit|maximum|at most|up to", re.I)
_ASKS_NUMBER = re.compile(
    r"how (?:many|much|long|old|far|often)|when |what year|몇|얼마|언제|며칠|기간|최대|최소", re.I
)
_ASKS_PERSON = re.compile(r"\bwho(?:m|se)?\b|누구|누가|누군", re.I)


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
    terms: Counter[int]


def extract(
    question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics, embedder: Embedder | None = None
) -> list[Quote]:
    """The sentences that answer, in reading order: at most 5 and 600 characters, no sentence twice.

    `embedder` must speak the question's language, or be None; what it raises is passed on. Blocking and CPU-bound.
    """
    wanted = {
        term: share * idf(statistics.document_frequency(term), max(1, statistics.chunks))
        for term, share in weighted_terms(question)
    }
    passages = passages[:PASSAGES]
    found = [
        _Sentence(number, start, end, Counter(_ids(passage.text[start:end])))
        for number, passage in enumerate(passages)
        for start, end in sentences(passage.text)
        if end - start <= MAX_CHARACTERS and terms(_MARK.sub(" ", passage.text[start:end]))
    ]
    if not found or not wanted:
        return []
    scores = _scores(question, passages, found, wanted)
    if embedder is not None:
        texts = [passages[s.passage].text[s.start : s.end] for s in found]
        query = embedder.embed_queries([question])[0]
        cosines = embedder.embed_documents(texts) @ query
        if not np.isfinite(cosines).all():
            raise ValueError("the embedder returned a vector with a number that is not finite")
        scores = scores + np.maximum(0.0, cosines)
    return _chosen(passages, found, scores)


def _ids(text: str) -> list[int]:
    return [term_id(term) for term in terms(text)]


def _scores(
    question: str, passages: Sequence[SearchResult], found: Sequence[_Sentence], wanted: dict[int, float]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    total = sum(wanted.values())
    relevance = [max(passage.bm25_score, passage.vector_score) for passage in passages]
    best_passage = max(relevance, default=0.0) or 1.0
    kinds = [
        (kind, bonus)
        for kind, asks, bonus in (
            (_NUMBER, _ASKS_NUMBER, 0.1),
            (_PERSON, _ASKS_PERSON, 0.1),
            (_LIMIT, _ASKS_LIMIT, LIMIT_BONUS),
        )
        if asks.search(question)
    ]
    scores = np.zeros(len(found))
    for position, sentence in enumerate(found):
        around: set[int] = set()
        for near in found[max(0, position - 1) : position + 2]:
            if near.passage == sentence.passage:
                around |= near.terms.keys()
        length = sum(sentence.terms.values())
        coverage = sum(weight for term, weight in wanted.items() if term in sentence.terms) / total
        bm25 = sum(
            weight * bm25_weight(sentence.terms[term], length, SENTENCE_LENGTH)
            for term, weight in wanted.items()
            if term in sentence.terms
        ) / (total * (K1 + 1.0))
        window = sum(weight for term, weight in wanted.items() if term in around) / total
        text = passages[sentence.passage].text[sentence.start : sentence.end]
        fitting = sum(bonus for kind, bonus in kinds if kind.search(text))
        scores[position] = (
            0.5 * coverage + 0.5 * bm25 + 0.7 * relevance[sentence.passage] / best_passage + 0.3 * window + fitting
        )
    return scores


def _chosen(
    passages: Sequence[SearchResult],
    found: Sequence[_Sentence],
    scores: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> list[Quote]:
    chosen: list[Quote] = []
    seen: set[str] = set()
    used = 0
    for position in np.argsort(-scores, kind="stable"):
        sentence, score = found[int(position)], float(scores[position])
        text = passages[sentence.passage].text[sentence.start : sentence.end]
        key = normalise(text)
        if len(chosen) == MAX_SENTENCES or score < FLOOR * float(scores.max()):
            break
        if key in seen or used + len(text) > MAX_CHARACTERS:
            continue
        seen.add(key)
        used += len(text) + 1
        chosen.append(Quote(sentence.passage, sentence.start, sentence.end, text, score))
    return sorted(chosen, key=lambda quote: (quote.passage, quote.start))


def nothing_found(question: str) -> str:
    """What an answer says when the documents do not answer, in the question's language."""
    if language(question) == "ko":
        return "문서에서 이 질문에 대한 답을 찾지 못했습니다."
    return "The documents do not answer this question."
