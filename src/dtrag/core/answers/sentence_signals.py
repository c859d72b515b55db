"""Signals of how likely a sentence of the passages holds the answer to a question, and the weights of their sum.

The weights are those of a conditional logistic regression (softmax over the sentences of the passages of a question;
`scripts/fit_sentence_weights.py`), so a difference of two scores is the logarithm of how much likelier one sentence is.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtrag.core.answers.answer_words import MONTH
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics, idf
from dtrag.core.text.analysis import language, term_ids
from dtrag.core.text.patterns import FIGURE, explained
from dtrag.core.text.question_words import asks, count, counted_answer
from dtrag.core.text.questions import content, weighted_terms

Scores = NDArray[np.float64]

SENTENCE_SIGNALS: Mapping[str, str] = {
    "coverage": "the part of the question's words, by idf, that the sentence holds",
    "window": "the part that the sentence and its two neighbours hold",
    "passage": "the part that the sentences of its passage hold",
    "local": "of what its passage holds, the part that the sentence holds; rare words in the passage weigh more",
    "best_covered": "coverage, as a share of that of the passage's best covered sentence",
    "mean_coverage": "mean coverage of the passage's sentences",
    "next": "coverage of the next sentence",
    "before_pronoun": "coverage of the sentence before one that begins with a pronoun; 0 for others",
    "ending": "coverage where words weigh more the later they are in the question",
    "focus": "1 when it holds a word of what the question asks for: its last words in Korean, the noun after what or "
    "which in English",
    "last": "1 when it holds the last word of the question's content",
    "phrase": "the part of the question's neighbouring words that are neighbours in the sentence, too",
    "title": "the part of the question's words that title and headings of the passage hold",
    "relevance": "the passage's score as a share of that of the best passage",
    "length": "a fifth of the logarithm of the number of characters",
    "novel": "number of terms that are not in the question, at most 20, divided by 20",
    "pronoun": "1 when it begins with a pronoun or a word that continues the sentence before it",
    "date": "1 when the question asks for a date and there is one",
    "number": "1 when the question asks for a number and there is one that is not in the question",
    "counter": "1 when there is a value of the kind asked for: a number with its counter (몇 권: 10권), an hour, "
    "a length of time, money",
    "counted": "1 when it holds the noun after how many or how much",
    "limit": "1 when the question asks for a limit and the sentence states one",
    "person": "1 when the question asks for a person and there is a name",
    "cosine": "cosine of sentence and question; 0 without vectors",
    "near": "the highest cosine of the sentence and its compared neighbours",
    "closest": "the highest cosine of its passage's sentences",
    "is_closest": "1 for the sentence of the passage with the highest cosine",
}
"""Name -> meaning; in [0, 1] but for `length` (to 1.3) and cosines. sentence_weights.json has their weights."""
NAMES = tuple(SENTENCE_SIGNALS)
_ABSENT = dict.fromkeys(NAMES, 0.0)
_in_order = itemgetter(*NAMES)
OF_VECTORS = ("cosine", "near", "closest", "is_closest")
COMPLETE_NOVELTY = 20
CACHED_HEADINGS = 1_024
"""Titles with headings of passages whose terms are known."""
FOCUS_TERMS = 2
"""Last terms of a Korean question's content that say what it asks for."""

_DATE = re.compile(rf"\b1\d{{3}}\b|\b20\d\d\b|\d{{1,4}}\s?[년월]|centur|\b{MONTH}\b")
_COUNTED = re.compile(r"[일이삼사오육칠팔구십백천두세네]+\s?(?:명|개|회|일|년|월|학기|학점|원|권|시간|차례|번)")
_LIMIT = re.compile(
    r"초과|이내|통산|한도|이하|까지|넘[지겨어을]|최대|at most|maximum|up to|no more than|limit|within", re.I
)
_PERSON = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+|[가-힣]{2,4}(?:장|씨|교수|위원)")
_ASKED_NOUN = re.compile(r"\b(?:what|which|whose)\s+(\w+)", re.I)
_COUNTED_NOUN = re.compile(r"\bhow (?:many|much)\s+(\w+)", re.I)
_PRONOUN = explained(
    r"(?:He|She|It|They|This|These|Those|His|Her|Its|Their)\b"
    r"|(?:이|그|그는|그녀|이는|이것|이들|그의|또한|그러나|하지만|이에|이후)\b",
    finds=("They", "그는"),
    refuses=("Theirs", "그러한"),
)


class Candidate(NamedTuple):
    """A sentence that can be quoted: `passage` counts from 0, `start` and `end` are offsets into its text.

    `terms` are its term ids in order, the first `own_terms` of them its own and the others those of `around`, the
    header or lead-in of a table row or list item. `main_start` is where the sentence begins that it restricts
    ("다만, …", "However, …"), else `start`; `proviso_end` is where the proviso behind it ends, else `end`. `lead_in` is
    the offset of the lead-in of the list whose item it is, None for others.
    """

    passage: int
    start: int
    end: int
    text: str
    terms: tuple[int, ...]
    main_start: int
    lead_in: int | None = None
    around: str = ""
    is_row: bool = False
    own_terms: int = 0
    proviso_end: int = 0


class QuestionTerms:
    """What the signals need of a question. `extra` are further terms with their shares, such as official words."""

    def __init__(self, question: str, statistics: LexicalStatistics, extra: Sequence[tuple[int, float]] = ()) -> None:
        self.question = question
        shares = dict(weighted_terms(question))
        for term, share in extra:
            shares[term] = max(share, shares.get(term, 0.0))
        chunks = max(1, statistics.chunks)
        frequencies = statistics.document_frequencies(list(shares))
        self.weights = {
            term: share * idf(frequency, chunks)
            for (term, share), frequency in zip(shares.items(), frequencies, strict=True)
        }
        self.total = sum(self.weights.values())
        about = list(term_ids(content(question)))
        self.ids = frozenset(term_ids(question))
        self.pairs = {
            pair: min(self.weights.get(pair[0], 0.0), self.weights.get(pair[1], 0.0)) for pair in pairwise(about)
        }
        places = {term: (place + 1) / len(about) for place, term in enumerate(about)}
        self.late = {term: self.weights.get(term, 0.0) * place**2 for term, place in places.items()}
        self.last = about[-1] if about else None
        self.focus = self._focus(question, about)
        counted = _COUNTED_NOUN.search(question)
        self.counted = frozenset(term_ids(counted[1])) if counted else frozenset()
        self.counter = counted_answer(question)
        self.value = self.counter if count(question, "interrogative", "relative") <= 1 else None
        self.figures = frozenset(FIGURE.findall(question))
        self.asks = {meaning: asks(question, meaning) for meaning in ("date", "number", "limit", "person")}

    @staticmethod
    def _focus(question: str, about: Sequence[int]) -> frozenset[int]:
        if language(question) == "ko":
            return frozenset(about[-FOCUS_TERMS:])
        noun = _ASKED_NOUN.search(question)
        return frozenset(term_ids(noun[1])) if noun else frozenset()

    def has_value(self, text: str) -> bool:
        """Whether the text has a value of the only kind that the question asks for, which is not in the question."""
        return self.value is not None and any(
            self.figures.isdisjoint(FIGURE.findall(value[0])) for value in self.value.finditer(text)
        )

    def part(self, matched: Collection[int]) -> float:
        """The share of the weight of the matched terms."""
        return sum(self.weights[term] for term in matched) / self.total if self.total else 0.0


def sentence_signals(
    question: QuestionTerms,
    passages: Sequence[SearchResult],
    candidates: Sequence[Candidate],
    cosines: Sequence[float] | None = None,
) -> Scores:
    """The values of `SENTENCE_SIGNALS`, a row for each candidate; candidates of one passage are next to each other.

    `cosines` are those of the candidates to the question; without them the signals of vectors are 0.
    """
    relevance = [max(passage.bm25_score, passage.vector_score) for passage in passages]
    best_passage = max(relevance, default=0.0) or 1.0
    rows = np.zeros((len(candidates), len(NAMES)))
    start = 0
    while start < len(candidates):
        passage = candidates[start].passage
        end = start
        while end < len(candidates) and candidates[end].passage == passage:
            end += 1
        group = candidates[start:end]
        shared = relevance[passage] / best_passage
        of_words = _of_words(question, passages[passage], group)
        of_vectors = _of_vectors(cosines[start:end]) if cosines is not None else [{}] * len(group)
        for place, (sentence, words, vectors) in enumerate(zip(group, of_words, of_vectors, strict=True)):
            rows[start + place] = _in_order(
                {**_ABSENT, **words, **_of_kind(question, sentence), **vectors, "relevance": shared}
            )
        start = end
    return rows


@functools.lru_cache(CACHED_HEADINGS)
def _heading_terms(headings: str) -> frozenset[int]:
    return frozenset(term_ids(headings))


def _of_words(question: QuestionTerms, passage: SearchResult, sentences: Sequence[Candidate]) -> list[dict[str, float]]:
    """Signals of the words that the sentences of one passage share with the question."""
    weights = question.weights
    matched = [weights.keys() & sentence.terms for sentence in sentences]
    together = set[int]().union(*matched)
    occurrences = Counter(term for terms_of_one in matched for term in terms_of_one)
    rarity = {t: weights[t] * math.log1p((len(matched) + 0.5) / (occurrences[t] + 0.5)) for t in together}
    rarest = sum(rarity.values()) or 1.0
    coverages = [question.part(terms_of_one) for terms_of_one in matched]
    shared = {
        "passage": question.part(together),
        "title": question.part(weights.keys() & _heading_terms(" ".join((passage.title, *passage.breadcrumb)))),
        "mean_coverage": sum(coverages) / len(coverages),
    }
    highest, late, pairs = (
        max(coverages) or 1.0,
        sum(question.late.values()) or 1.0,
        sum(question.pairs.values()) or 1.0,
    )
    rows = []
    for place, (sentence, own) in enumerate(zip(sentences, matched, strict=True)):
        continues = _PRONOUN.match(sentence.text) is not None
        before = coverages[place - 1] if place else shared["title"]
        within = [pair for pair in question.pairs if pair[0] in own and pair[1] in own] if own else []
        neighbours = frozenset(pairwise(sentence.terms)) if within else frozenset()
        rows.append(
            {
                **shared,
                "coverage": coverages[place],
                "window": question.part(set[int]().union(*matched[max(0, place - 1) : place + 2])),
                "local": sum(rarity[term] for term in own) / rarest,
                "best_covered": coverages[place] / highest,
                "next": coverages[place + 1] if place + 1 < len(sentences) else 0.0,
                "before_pronoun": before if continues else 0.0,
                "ending": sum(question.late.get(term, 0.0) for term in own) / late,
                "focus": float(not question.focus.isdisjoint(sentence.terms)),
                "last": float(question.last in own),
                "phrase": sum(question.pairs[pair] for pair in within if pair in neighbours) / pairs,
                "length": math.log1p(sentence.end - sentence.start) / 5.0,
                "novel": min(1.0, len(frozenset(sentence.terms) - question.ids) / COMPLETE_NOVELTY),
                "pronoun": float(continues),
            }
        )
    return rows


def _of_kind(question: QuestionTerms, sentence: Candidate) -> dict[str, float]:
    """Whether the sentence has the kind of value that the question asks for."""
    asks, text = question.asks, sentence.text
    values = {}
    if asks["date"]:
        values["date"] = float(_DATE.search(text) is not None)
    if asks["number"]:
        is_new = any(figure not in question.figures for figure in FIGURE.findall(text))
        values["number"] = float(is_new or _COUNTED.search(text) is not None)
    if question.counter is not None:
        values["counter"] = float(question.counter.search(text) is not None)
    if question.counted:
        values["counted"] = float(not question.counted.isdisjoint(sentence.terms))
    if asks["limit"]:
        values["limit"] = float(_LIMIT.search(text) is not None or _LIMIT.search(sentence.around) is not None)
    if asks["person"]:
        values["person"] = float(_PERSON.search(text) is not None)
    return values


def _of_vectors(cosines: Sequence[float]) -> list[dict[str, float]]:
    closest = max(cosines)
    return [
        {
            "cosine": cosine,
            "near": max(cosines[max(0, place - 1) : place + 2]),
            "closest": closest,
            "is_closest": float(cosine == closest),
        }
        for place, cosine in enumerate(cosines)
    ]


def model_name(question: str, *, with_vectors: bool) -> str:
    """The model for a question: `korean`, `vectors`, or `words` for other languages without vectors."""
    if language(question) == "ko":
        return "korean"
    return "vectors" if with_vectors else "words"


@functools.cache
def weights(model: str) -> Scores:
    """The weight of each signal, in the order of `NAMES`; signals that the model does not use weigh 0."""
    content_of_file = resources.files(__package__).joinpath("sentence_weights.json").read_text("utf-8")
    return weights_of(json.loads(content_of_file)["models"][model]["weights"])


def weights_of(by_name: Mapping[str, float]) -> Scores:
    """A vector of weights in the order of `NAMES`. Raises `ValueError` for an unknown signal."""
    if unknown := by_name.keys() - SENTENCE_SIGNALS.keys():
        raise ValueError(f"there is no signal {sorted(unknown)[0]!r}")
    return np.array([by_name.get(name, 0.0) for name in NAMES])


def probabilities(scores: Scores) -> Scores:
    """The softmax of the scores: how likely each sentence is the one that answers, if one of them does."""
    if not len(scores):
        return scores
    exponentials = np.exp(scores - scores.max())
    shares: Scores = exponentials / exponentials.sum()
    return shares
