"""Answers without a language model: exact quotations of the sentences of the passages that answer.

`core/answers/sentence_signals.py` says how likely each sentence holds the answer; here it is decided which are quoted,
and how many (bench/README.md, "Extractive answers").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dtrag import embedding_service
from dtrag.core.answers.sentence_signals import (
    Candidate,
    QuestionTerms,
    Scores,
    model_name,
    probabilities,
    sentence_signals,
    weights,
)
from dtrag.core.answers.sentence_vectors import NOTHING_STORED, SentenceVectors
from dtrag.core.documents import FollowedCitation, PackFindings, SearchResult, Vector
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.analysis import language, normalise
from dtrag.core.text.question_words import asks
from dtrag.core.text.sentences import NOTHING_BEFORE, Preceding
from dtrag.pipeline.answer.candidates import (
    MAX_CHARACTERS,
    NEARLY,
    Quote,
    candidates_of,
    has_number,
    is_other_case,
    leading,
    of_table,
    refers_on,
    without_siblings,
)
from dtrag.pipeline.answer.quoted_provisions import WHOLE, of_provision
from dtrag.pipeline.question import is_greeting
from dtrag.ports import Embedder

MAX_SENTENCES = 5
PASSAGES = 5
"""Passages that sentences are taken from; more add noise, not answers (oracle of the top 5: .96 / .99)."""
MOST_EMBEDDED = 12
"""Maximum of sentences compared by meaning: the best by words. Each takes 2 to 4 ms, most of the time of an answer."""
EMBEDDED_WITHIN = 5.0
"""Sentences whose score by words lies further below the best one's (a 150th as likely) are not compared."""
ENOUGH = 0.88
"""Probability that one of the quoted sentences holds the answer at which no further one is quoted."""
PIECES = 3
"""Pieces of a table with a number of the question that are quoted: what tells them apart may stand above the rows."""
LEAST = 0.06
"""A sentence that is less likely to hold the answer is not quoted beside others, unless it is `NEARLY` as likely as the
likeliest one, as the items of a list are."""
_BARE_WORD = re.compile(r"[가-힣A-Za-z][가-힣A-Za-z·-]{1,20}")


def extract(
    question: str,
    passages: Sequence[SearchResult],
    statistics: LexicalStatistics,
    embedder: Embedder | None = None,
    pack: PackFindings | None = None,
    *,
    preceding: Mapping[str, Preceding] = NOTHING_BEFORE,
    stored: SentenceVectors = NOTHING_STORED,
    followed: Sequence[FollowedCitation] = (),
    answers: int = 1,
) -> list[Quote]:
    """The sentences that answer: the likeliest one, then others in reading order. No two are the same.

    At most 5 with 600 characters. `embedder` must speak the question's language, or be None; what it raises is passed
    on. With `pack`, whole provisions in its order, and its official terms count like the question's own; the first one
    only if its text is shared with other `answers`.
    `preceding`, `stored` (vectors of sentences by `embedder`) and `followed`: see `Evidence`; the cited passages are
    the last of `passages`. Blocking and CPU-bound.
    """
    query = QuestionTerms(question, statistics, pack.terms if pack is not None else ())
    if not query.weights:
        return []
    if pack is not None:
        limit = MAX_CHARACTERS if pack.governed or asks(question.strip(), "list") else WHOLE
        limit = min(limit, MAX_CHARACTERS // answers)
        return _provisions(question, query, passages, preceding, followed, limit=limit, alone=answers == 1)
    defining = _defining(question, passages, preceding)
    passages = passages[:PASSAGES]
    candidates = without_siblings(question, candidates_of(passages, preceding))
    if not candidates:
        return []
    compared, scores = scored(query, passages, candidates, embedder, stored)
    if asks(question.strip(), "list"):
        best = compared[int(np.argmax(scores))]
        items = [sentence for sentence in candidates if sentence.lead_in is not None and _same_list(sentence, best)]
        if len(items) > 1:
            return _whole_list(items, passages[best.passage].text, float(probabilities(scores).max()))
    compared, scores = of_table(query, compared, scores)
    quotes = _likeliest(passages, compared, probabilities(scores))
    if defining is None:
        return quotes
    others = [quote for quote in quotes if not _overlaps(quote, defining.passage, defining.start, defining.end)]
    return _within_limits([defining, *others])


def _defining(question: str, passages: Sequence[SearchResult], preceding: Mapping[str, Preceding]) -> Quote | None:
    """For a question of one bare word (휴학), the first sentence of the passages that defines it; else None."""
    word = question.strip(" ?？.!\"'“”")
    if not _BARE_WORD.fullmatch(word):
        return None
    defines = re.compile(
        rf"[“\"‘'「]?{re.escape(word)}[”\"’'」]?\s?(?:이란|란|이라 ?함은|라 ?함은|\s(?:means|is defined as))(?=[\s,])",
        re.I,
    )
    for sentence in candidates_of(passages, preceding):
        if defines.search(sentence.text):
            return Quote(sentence.passage, sentence.start, sentence.end, sentence.text, 1.0)
    return None


def scored(
    query: QuestionTerms,
    passages: Sequence[SearchResult],
    candidates: Sequence[Candidate],
    embedder: Embedder | None,
    stored: SentenceVectors = NOTHING_STORED,
) -> tuple[Sequence[Candidate], Scores]:
    """The candidates with their scores (log-odds); with an embedder those that are likely enough by their words."""
    by_words: Scores = sentence_signals(query, passages, candidates) @ weights(
        model_name(query.question, with_vectors=False)
    )
    if embedder is None:
        return candidates, by_words
    compared = [candidates[place] for place in to_compare(by_words)]
    spans = [(passages[each.passage], each.start, each.end) for each in compared]
    vectors = vectors_of(spans, embedder, stored)
    cosines = np.asarray(vectors @ embedding_service.embed_question(query.question, embedder=embedder), np.float64)
    if not np.isfinite(cosines).all():
        raise ValueError("the embedder returned a vector with a number that is not finite")
    rows = sentence_signals(query, passages, compared, cosines.tolist())
    return compared, rows @ weights(model_name(query.question, with_vectors=True))


def to_compare(scores: Scores) -> list[int]:
    """Places of the sentences that are compared by meaning, ascending."""
    best = np.argsort(-scores, kind="stable")[:MOST_EMBEDDED]
    return sorted(best[scores[best] >= scores.max() - EMBEDDED_WITHIN].tolist())


def vectors_of(spans: Sequence[tuple[SearchResult, int, int]], embedder: Embedder, stored: SentenceVectors) -> Vector:
    """The vectors of spans of passages, shape (len(spans), dim): the stored ones, and the others embedded."""
    known = [stored.of(passage.chunk_id, (start, end), embedder.id) for passage, start, end in spans]
    missing = [place for place, vector in enumerate(known) if vector is None]
    if missing:
        texts = [passage.text[start:end] for passage, start, end in (spans[place] for place in missing)]
        embedded = embedding_service.embed_passages(texts, embedder=embedder)
        for place, vector in zip(missing, embedded, strict=True):
            known[place] = vector
    return np.stack([vector for vector in known if vector is not None])


def _same_list(sentence: Candidate, other: Candidate) -> bool:
    return (sentence.passage, sentence.lead_in) == (other.passage, other.lead_in)


def _whole_list(items: Sequence[Candidate], text: str, probability: float) -> list[Quote]:
    """The items of a list as one quotation, as far as there is space for them."""
    start = items[0].start
    end = max(item.end for item in items if item.end - start <= MAX_CHARACTERS)
    return [Quote(items[0].passage, start, end, text[start:end], probability)]


class _Selection:
    """Quotations that are different and do not overlap, at most `MAX_SENTENCES` with `MAX_CHARACTERS` in sum."""

    def __init__(self, passages: Sequence[SearchResult]) -> None:
        self.quotes: list[Quote] = []
        self._passages = passages
        self._texts: set[str] = set()
        self._characters = 0

    def add(self, sentence: Candidate, probability: float) -> None:
        """Quote the sentence, with the one that it restricts, if there is space for it and it is not quoted already."""
        passage, start, end = sentence.passage, sentence.main_start, max(sentence.end, sentence.proviso_end)
        text = self._passages[passage].text[start:end]
        parts = [quote for quote in self.quotes if _overlaps(quote, passage, start, end)]
        if parts:  # The main sentence or one that restricts it is quoted: now all of them are, as one quotation.
            self._extend(parts, min(start, *(quote.start for quote in parts)), max(end, *(q.end for q in parts)))
            return
        key = normalise(text)
        if len(self.quotes) == MAX_SENTENCES or key in self._texts or self._characters + len(text) > MAX_CHARACTERS:
            return
        self._texts.add(key)
        self._characters += len(text) + 1
        self.quotes.append(Quote(passage, start, end, text, probability))

    def _extend(self, parts: Sequence[Quote], start: int, end: int) -> None:
        """Replace the quotations `parts` by one of the whole span, in the place of the first, if there is space."""
        first = parts[0]
        longer = self._passages[first.passage].text[start:end]
        characters = self._characters + len(longer) + 1 - sum(len(quote.text) + 1 for quote in parts)
        if characters <= MAX_CHARACTERS:
            self._characters = characters
            place = self.quotes.index(first)
            self.quotes = [quote for quote in self.quotes if quote not in parts]
            self.quotes.insert(place, Quote(first.passage, start, end, longer, first.score))


def _within_limits(quotes: Sequence[Quote]) -> list[Quote]:
    """The first quotations with at most `MAX_CHARACTERS` in sum."""
    characters, remaining = -1, list[Quote]()
    for quote in quotes[:MAX_SENTENCES]:
        characters += len(quote.text) + 1
        if characters <= MAX_CHARACTERS:
            remaining.append(quote)
    return remaining


def _overlaps(quote: Quote, passage: int, start: int, end: int) -> bool:
    return quote.passage == passage and quote.start < end and start < quote.end


def _likeliest(passages: Sequence[SearchResult], candidates: Sequence[Candidate], chances: Scores) -> list[Quote]:
    """As many of the likeliest sentences as suffice: the likeliest one first, the others in reading order."""
    selection, sum_of_chances = _Selection(passages), 0.0
    least = min(LEAST, NEARLY * float(chances.max()))
    for place in np.argsort(-chances, kind="stable"):
        if selection.quotes and (chances[place] < least or sum_of_chances >= ENOUGH):
            break
        # The same sentence of another passage adds its chance, not its text.
        sum_of_chances += float(chances[place])
        selection.add(candidates[int(place)], float(chances[place]))
    return selection.quotes[:1] + sorted(selection.quotes[1:], key=lambda quote: (quote.passage, quote.start))


def _provisions(
    question: str,
    query: QuestionTerms,
    passages: Sequence[SearchResult],
    preceding: Mapping[str, Preceding],
    followed: Sequence[FollowedCitation],
    *,
    limit: int,
    alone: bool,
) -> list[Quote]:
    """The first provision that a pack ranked, whole or its best paragraphs, and the best sentence of each further one.

    One that defines the bare word of the question comes first, then those with the kind of value that it asks for;
    one that only refers on, to nothing that can be quoted, comes last. What the sentence that answers refers to follows
    it. The first one has about `limit` characters; without `alone` there are no further ones. Sentences are compared by
    words: no embedder decides which part of a provision answers.
    """
    defining = _defining(question, passages, preceding)
    places = {*leading(passages), *([] if defining is None else [defining.passage])}
    sentences = without_siblings(question, candidates_of(passages, preceding, places))
    if not sentences:
        return []
    candidates, scores = of_table(query, *scored(query, passages, sentences, None))
    tables = _tables(passages, followed)
    has_value = {
        id(each) for each in candidates if query.has_value(each.text) or _names_value(query, each, passages, tables)
    }
    valued = {sentence.passage for sentence in candidates if id(sentence) in has_value}
    citing = {citation.chunk_id for citation in followed}
    telling = {sentence.passage for sentence in candidates if not refers_on(sentence.text)}
    telling |= {place for place in places if passages[place].chunk_id in citing}
    defined = None if defining is None else defining.passage
    quotes: list[Quote] = []
    for number in sorted(
        places, key=lambda place: (place != defined, place not in telling, place not in valued, place)
    ):
        if quotes and not alone:
            break
        own = [place for place, sentence in enumerate(candidates) if sentence.passage == number]
        own = [place for place in own if id(candidates[place]) in has_value] or own
        own = [place for place in own if not is_other_case(query, candidates[place])] or own
        own = [
            place for place in own if id(candidates[place]) in has_value or not refers_on(candidates[place].text)
        ] or own
        if not own:
            continue
        chances = probabilities(scores[own])
        best = candidates[own[int(np.argmax(chances))]]
        passage = passages[number]
        if quotes or "article" not in passage.metadata:
            start, end = best.main_start, max(best.end, best.proviso_end)
            text = passage.text[start:end]
            is_new = not any(normalise(text) in normalise(quote.text) for quote in quotes)
            if is_new and not (quotes and refers_on(best.text)):
                quotes.append(Quote(number, start, end, text, float(chances.max()), further=bool(quotes)))
            continue
        by_start = {candidates[place].start: float(chance) for place, chance in zip(own, chances, strict=True)}
        if defining is not None and number == defined:
            by_start[defining.start] = 1.0
        quotes = of_provision(number, passage, by_start, preceding.get(passage.chunk_id), limit)
        quotes += _referred_to(query, best, passages, preceding, followed, limit=limit)
    return quotes


def _tables(passages: Sequence[SearchResult], followed: Sequence[FollowedCitation]) -> list[FollowedCitation]:
    """The citations of tables in annexes."""
    annexes = {passage.chunk_id for passage in passages if passage.metadata.get("kind") == "appendix"}
    return [citation for citation in followed if not annexes.isdisjoint(citation.cited)]


def _names_value(
    query: QuestionTerms, sentence: Candidate, passages: Sequence[SearchResult], tables: Sequence[FollowedCitation]
) -> bool:
    """Whether the sentence cites a table, which has the value that the question asks for."""
    return query.value is not None and any(
        citation.chunk_id == passages[sentence.passage].chunk_id and sentence.start <= citation.start < sentence.end
        for citation in tables
    )


def _referred_to(
    query: QuestionTerms,
    sentence: Candidate,
    passages: Sequence[SearchResult],
    preceding: Mapping[str, Preceding],
    followed: Sequence[FollowedCitation],
    *,
    limit: int,
) -> list[Quote]:
    """The best part of the provision that the sentence refers to; the best rows of a table that it names.

    If it names none, the rows with a number of the question (10호봉) of a table that the provision names elsewhere.
    """
    passage = passages[sentence.passage]
    place_of = {each.chunk_id: place for place, each in enumerate(passages)}  # the last one is the cited one
    citations = [citation for citation in followed if citation.chunk_id == passage.chunk_id]
    for citation in sorted(citations, key=lambda each: not sentence.start <= each.start < sentence.end):
        is_within = sentence.start <= citation.start < sentence.end
        cited = {place_of[key] for key in citation.cited if key in place_of}
        is_table = any(passages[place].metadata.get("kind") == "appendix" for place in cited)
        if not is_table and not (is_within and refers_on(sentence.text, passage.text[citation.start : citation.end])):
            continue
        sentences = list(candidates_of(passages, preceding, cited))
        sentences = [each for each in sentences if citation.source in each.text] or sentences
        sentences = [each for each in sentences if each.is_row] or sentences if is_table else sentences
        numbered = [each for each in sentences if is_table and has_number(query.question, each)]
        if not (sentences if is_within else numbered):
            continue
        candidates, scores = of_table(query, *scored(query, passages, numbered or sentences, None))
        best = candidates[int(np.argmax(scores))].passage
        quotes: list[Quote] = []
        for number in sorted({each.passage for each in numbered} or {best}, key=lambda place: place != best)[:PIECES]:
            own = [place for place, each in enumerate(candidates) if each.passage == number]
            chances = probabilities(scores[own])
            by_start = {candidates[place].start: float(chance) for place, chance in zip(own, chances, strict=True)}
            before = preceding.get(passages[number].chunk_id)
            quotes += of_provision(number, passages[number], by_start, before, min(limit, WHOLE))
        return [replace(quotes[0], further=True), *quotes[1:]]
    return []


_ABOUT = {
    "ko": "이곳에서는 읽어 둔 문서에서 답을 찾아 출처와 함께 보여 줍니다. 문서에 있는 내용을 질문해 주세요.",
    "en": "This service answers questions from its documents, and cites where each answer stands. "
    "Ask it about what they say.",
}


def nothing_found(question: str) -> str:
    """The answer when the documents do not answer, in the question's language; after a greeting, what can be asked."""
    korean = language(question) == "ko"
    if is_greeting(question):
        return _ABOUT["ko" if korean else "en"]
    if korean:
        return "문서에서 이 질문에 대한 답을 찾지 못했습니다."
    return "The documents do not answer this question."
