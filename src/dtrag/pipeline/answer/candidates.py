"""The sentences that an answer may quote, and which of them the question is not about.

`core/answers/sentence_signals.py` compares those that remain; `extractive.py` decides which of them are quoted.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile, zip_longest

import numpy as np

from dtrag.core.answers.sentence_signals import Candidate, QuestionTerms, Scores
from dtrag.core.documents import SearchResult
from dtrag.core.text.analysis import term_id, terms
from dtrag.core.text.line_wrapping import displayed
from dtrag.core.text.numbers import numbers_in
from dtrag.core.text.patterns import explained
from dtrag.core.text.sentences import NOTHING_BEFORE, AnalysedSentence, Preceding, sentences_after
from dtrag.core.text.sibling_subjects import about_siblings, compounds_of

MAX_CHARACTERS = 600
"""Characters of an answer."""
NEARLY = 0.75
"""Sentences that are this much as likely as the best one are quoted with it, of a provision with their paragraphs."""
FURTHER = 2
"""Further provisions that are quoted beside the first one, with one sentence each."""
MARGIN = 0.88
"""Share of the best passage's score that a further one needs. With .97 the key words are in .507 of 69 development
answers (24 further provisions, .54 of them relevant), with .93 .522 (47, .47), with .88 .565 (70, .39), with .8 .565
(99, .35), without further ones .435."""
IN_ORDER = 1e-9
"""What a score is lower than that of the row before, so that equally likely rows are quoted in their order."""

_RESTRICTS = explained(
    r"(?:다만|단|이 경우|이때|그러나|그러하지)\s*[,，]?\s|(?:However|Otherwise|In (?:this|that|such a) case|Unless)\b",
    finds=("다만, 예외", "Unless"),
    refuses=("단체는", "unless"),
)
"""Begins a sentence that only says something together with the one before it."""
_PROVISO = re.compile(r"(?:다만|단)\s?[,，]?\s")
"""Begins a sentence without which the one before it says too much."""
_CASE = explained(
    r"(?:[①-⑳]|\d{1,2}\.)?\s*(?:(?P<case>[^,.]{2,40}?)(?:경우|때|기간)에(?:는|도)|제\s?\d{1,2}\s?항[^,.]{0,12}불구하고)",
    finds=("휴학한 경우에는", "제2항에도 불구하고"),
    refuses="휴학한 경우를",
)
"""Begins a sentence that only applies to a case, and departs from the general rule beside it."""
_REFERS_ON = explained(
    r"(?:따로|별도로|별도의\s?\S{1,12})\s*(?:이를\s)?정(?:한다|하는 바에 따른다|하여 시행한다|할 수 있다)"
    r"|(?:[에을를]|바에|의하여|바를)\s?(?:따른다|의한다|준용한다|따라 정한다)\.*$|[와과]\s?같다\.*$",
    finds=("따로 정한다", "규정에 따른다."),
    refuses=("따로 정하지", "규정에 따라"),
)
"""What a sentence says that only names another place ("별표 1과 같다", "제29조에 따른다", "따로 정한다")."""
_NUMBERED = re.compile(r"(?:\d[\d,.]*|(?<![가-힣])(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열))\s?([가-힣]{1,2})")
"""A number in a question with the beginning of what it counts (10호봉, 세 개)."""
FEWEST_LETTERS = 10
"""Letters beside a citation below which a sentence or an item is little more than the citation."""
CACHED_SENTENCES = 2_000
"""Sentences whose marks are known: those of the passages whose sentences are cached."""
_MARK = re.compile(r"[<〈(\[【][^<>〈〉()\[\]]*[>〉)\]】]|[①-⑳]|^\s*[0-9가-하]{1,2}[.)]")


def candidates_of(
    passages: Sequence[SearchResult],
    preceding: Mapping[str, Preceding] = NOTHING_BEFORE,
    places: Collection[int] | None = None,
) -> Iterator[Candidate]:
    """The sentences of the passages (of those at `places`) that can be quoted."""
    for number, passage in enumerate(passages):
        if places is not None and number not in places:
            continue
        main: tuple[int, int] | None = None  # The sentence before, with the main sentence that it restricts.
        sentences = sentences_after(preceding.get(passage.chunk_id), passage.text, passage.start)
        for place, sentence in enumerate(sentences):
            main_start = _main_start(main, sentence)
            if sentence.quotable and sentence.end - sentence.start <= MAX_CHARACTERS and has_words(sentence):
                yield _candidate(number, passage, sentence, main_start, sentences[place + 1 : place + 2])
            main = (main_start, sentence.end) if sentence.quotable else None


def _candidate(
    number: int,
    passage: SearchResult,
    sentence: AnalysedSentence,
    main_start: int,
    following: Sequence[AnalysedSentence],
) -> Candidate:
    lead_ins = [span.start for span in sentence.context if span.kind == "lead_in" and sentence.kind == "item"]
    provisos = [after.end for after in following if after.quotable and _PROVISO.match(after.text)]
    return Candidate(
        number,
        sentence.start,
        sentence.end,
        sentence.text,
        sentence.terms + tuple(map(term_id, sentence.context_terms)),
        main_start,
        lead_ins[0] if lead_ins else None,
        " ".join(passage.text[span.start : span.end] for span in sentence.context if span.start >= 0),
        sentence.kind == "row",
        len(sentence.terms),
        provisos[0] if provisos and provisos[0] - main_start <= MAX_CHARACTERS // 2 else sentence.end,
    )


def without_siblings(question: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates but those about another thing of the same kind, where one beside them is about the question's.

    ("일반휴학은 한 번에 2학기까지 …" for 군휴학, which another sentence of the passage is about.)
    """
    compounds = compounds_of(question)
    remaining: list[Candidate] = []
    for _, group in groupby(candidates, key=lambda sentence: sentence.passage):
        sentences = list(group)
        siblings = about_siblings(compounds, [sentence.text for sentence in sentences]) if compounds else frozenset()
        remaining += [sentence for place, sentence in enumerate(sentences) if place not in siblings]
    return remaining


def _main_start(before: tuple[int, int] | None, sentence: AnalysedSentence) -> int:
    """Where the quotation of a sentence begins: at the sentences `before`, when it only restricts these."""
    if before is None or not _RESTRICTS.match(sentence.text) or sentence.end - before[0] > MAX_CHARACTERS // 2:
        return sentence.start
    return before[0]


def has_words(sentence: AnalysedSentence) -> bool:
    """Whether it has words besides list marks and bracketed text, and is not a deleted provision."""
    has_words_beside = _beside_marks(sentence.text)
    return bool(sentence.terms) if has_words_beside is None else has_words_beside


@functools.lru_cache(maxsize=CACHED_SENTENCES)
def _beside_marks(text: str) -> bool | None:
    """Whether there are words without the marks; None for a text without marks."""
    unmarked = _MARK.sub(" ", text)
    if unmarked.strip() == "삭제":
        return False
    return None if unmarked == text else bool(terms(unmarked))


def leading(passages: Sequence[SearchResult]) -> range:
    """The places of the first passage that a pack ranked, and of those whose scores are nearly as high."""
    least = MARGIN * passages[0].hybrid_score if passages else 0.0
    near = takewhile(lambda passage: passage.hybrid_score >= least, passages[: 1 + FURTHER])
    return range(sum(1 for _ in near))


def refers_on(text: str, citation: str = "") -> bool:
    """Whether a sentence only names another place that answers; `citation` is one of its citations."""
    if _REFERS_ON.search(displayed(text)):
        return True
    return bool(citation) and sum(map(str.isalpha, text.replace(citation, ""))) <= FEWEST_LETTERS


def is_other_case(query: QuestionTerms, sentence: Candidate) -> bool:
    """Whether the sentence only applies to a case that the question does not mention ("시험 기간에는 …")."""
    match = _CASE.match(sentence.text)
    return match is not None and query.ids.isdisjoint(map(term_id, terms(match["case"] or "")))


def of_table(
    query: QuestionTerms, candidates: Sequence[Candidate], scores: Scores
) -> tuple[Sequence[Candidate], Scores]:
    """The candidates without those rows of the best row's table that share nothing of their own with the question.

    The header matches for all rows of a table; what tells them apart are words that some of them have, before them a
    number with what it counts (10호봉). Where the question has none of these, all rows are equally likely, and quoted
    in their order.
    """
    best = candidates[int(np.argmax(scores))]
    if not best.is_row:
        return candidates, scores
    rows = {
        place: query.ids.intersection(sentence.terms[: sentence.own_terms])
        for place, sentence in enumerate(candidates)
        if (sentence.passage, sentence.around) == (best.passage, best.around)
    }
    numbered = {place for place in rows if has_number(query.question, candidates[place])}
    if numbered:
        remaining = [place for place in range(len(candidates)) if place not in rows or place in numbered]
        return [candidates[place] for place in remaining], scores[remaining]
    common = frozenset[int].intersection(*rows.values())
    if all(matched == common for matched in rows.values()):
        in_order = scores.copy()
        in_order[list(rows)] = scores.max() - IN_ORDER * np.arange(len(rows))
        return candidates, in_order
    remaining = [place for place in range(len(candidates)) if rows.get(place) != common]
    return [candidates[place] for place in remaining], scores[remaining]


def has_number(question: str, row: Candidate) -> bool:
    """Whether a cell of the row is a number of the question, and the cell or its header says what it counts."""
    counted = {(number, match[1]) for match in _NUMBERED.finditer(question) for number in numbers_in(match.group())}
    cells, headers = row.text.strip("| ").split("|"), row.around.split("|")
    for cell, header in zip_longest(cells, headers if len(headers) == len(cells) else (), fillvalue=""):
        numbers, letters = numbers_in(cell), _letters(cell)
        units = [unit for number, unit in counted if numbers == {number}]
        if any(letters[:1] == unit[0] if letters else _letters(header).endswith(unit) for unit in units):
            return True
    return False


def _letters(cell: str) -> str:
    return "".join(filter(str.isalpha, cell))


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Quote:
    """A text of a passage: `passage` counts from 0, `start` and `end` are offsets into the passage's text.

    `score` in (0, 1] is the probability that it is the one that answers, if one of the passages' sentences does.
    `marked` is the sentence that answers, inside the quotation, when the quotation is more than that sentence.
    `further`: it is of another provision than the answer before it, and shown on one line with its label.
    """

    passage: int
    start: int
    end: int
    text: str
    score: float
    marked: Span | None = None
    further: bool = False

    def with_mark(self, sentence: Span) -> Quote:
        """The quotation, with this sentence marked if it is inside."""
        inside = self.start <= sentence[0] and sentence[1] <= self.end
        return replace(self, marked=sentence) if inside and sentence != (self.start, self.end) else self
