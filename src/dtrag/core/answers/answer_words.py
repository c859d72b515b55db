"""The words of a quotation that answer: numbers, dates, names, limits, and what is allowed or forbidden."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dtrag.core.text.analysis import normalise
from dtrag.core.text.patterns import DIGITS, explained
from dtrag.core.text.question_words import asks, counted_answer

MAX_SPANS = 6
LONGEST_READ = 4_000
"""Characters of a quotation that are searched; an answer has at most 600, a whole provision more."""
Span = tuple[int, int]

_UNIT = (
    r"(?:%|퍼센트|(?:[백천만억]\s?)*원|일|주일?|개월|월|년|학기|학점|학년|학번|시간|시|분|회|번|차례|명|인|권|건|개|점"
    r"|급|호봉|배|세|times?|people|persons?"
    r"|per ?cent|(?:working |calendar |business )?(?:days?|weeks?|months?|years?|hours?|minutes?)"
    r"|points?|euros?|dollars?|pounds?|EUR|USD|GBP|km|kg|m|GB|MB)(?![A-Za-z])"
)
_FIGURE = rf"(?<![\d.,제])[€$£₩]?\s?\d[\d,.]*(?<=\d)(?:\s?분의\s?\d+|\s?{_UNIT})?(?!\s?[조항호목])"
_LIMIT = r"(?:\s?(?:이내|이상|이하|미만|초과|까지|전까지|전|후|범위))?"
_WRITTEN_NUMBER = (
    r"(?<![가-힣])(?!이번|이사회|사회|사명|사인)[일이삼사오육칠팔구십백천두세네]+\s?"
    r"(?:명|개월|개|회|주|학기|차례|번|배)(?=[^가-힣]|이내|이상|까지)"
)
_NUMBER = re.compile(rf"{_FIGURE}{_LIMIT}|{_WRITTEN_NUMBER}")
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = explained(
    r"\d{4}\s?[년.]\s?(?:\d{1,2}\s?[월.]\s?(?:\d{1,2}\s?일?)?)?"
    r"|\d{1,2}\s?월(?:\s?\d{1,2}\s?일)?(?:\s?(?:초|말|중순))?|매\s?[월주]\s?\d{1,2}\s?일"
    rf"|(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}}(?!\d))?(?:,? \d{{4}})?|\b(?:1\d|20)\d\d\b"
    r"|\b\d{1,2}(?::\d\d)(?: ?[ap]\.?m\.?)?"
    r"|(?:오전|오후)\s?\d{1,2}\s?시(?:\s?\d{1,2}\s?분)?|\d{1,2}\s?시(?:\s?\d{1,2}\s?분)?",
    finds=("2024년 3월 1일", "오전 9시"),
    refuses=("3일", "3:1"),
)
_NO_NAME = (
    r"(?!(?:The|On|In|At|By|For|If|When|A|An|All|Every|No|Each|This|That|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday"
    rf"|Sunday|{MONTH})\b)"
)
_PERSON = explained(
    rf"\b(?:Mr|Mrs|Ms|Dr)\.? [A-Z][a-z]+|\b{_NO_NAME}[A-Z][a-z]+(?: {_NO_NAME}[A-Z][a-z]+)+"
    r"|[가-힣]{1,8}(?:위원장|총장|처장|학장|원장|소장|센터장|팀장|실장|부장|주임|교수|위원회|담당자)",
    finds=("Dr. Miller", "교무처장"),
    refuses=("Miller", "위원회"),
)
_RULE = explained(
    r"할 수 (?:있|없)[가-힣]*|(?:하|받|주|쓰|내)지 (?:못|않|아니)[가-힣 ]{0,4}다|아니 ?된다|안 된다"
    r"|하여야 한다|해야 한다|금지\S{0,3}|허용\S{0,3}|불가\S{0,3}"
    r"|\b(?:may|must|can|shall|need|is|are)(?: ?not|n't)?(?: be)? "
    r"(?:allowed|permitted|required|forbidden|prohibited)\b"
    r"|\b(?:may|must|can|shall|cannot)(?: not)?\b",
    finds=("신청할 수 있다", "must not"),
    refuses=("할 수단", "mayor"),
)

_NO_VALUE = explained(
    r"[<〈\[(][^<>〈〉\[\]()]*(?:개정|신설|삭제|전문|시행)[^<>〈〉\[\]()]*[>〉\])]|^\s*(?:\d{1,3}[.)]|[①-⑳])",
    flags=re.M,
    finds=("<개정 2020. 3. 1.>", "1) 대상"),
    refuses="개정 2020. 3. 1.",
)
"""Marks of amendments, and the numbers of items and paragraphs."""


def answer_words(question: str, quotation: str) -> tuple[Span, ...]:
    """Spans `[start, end)` of the quotation, ascending and disjoint, at most `MAX_SPANS`.

    Only of the kind of value that the question asks for, and not those that the question itself contains.
    """
    known, figures = normalise(question).replace(" ", ""), set(DIGITS.findall(question))
    quotation = quotation[:LONGEST_READ]
    excluded = [mark.span() for mark in _NO_VALUE.finditer(quotation)]
    spans: list[Span] = []
    for pattern in _patterns(question, quotation):
        for match in pattern.finditer(quotation):
            start, end = _trimmed(quotation, match.start(), match.end())
            value = normalise(quotation[start:end]).replace(" ", "")
            numbers = DIGITS.findall(value)
            is_new = not figures.issuperset(numbers) if numbers else value not in known
            if value and is_new and _is_apart((start, end), (*spans, *excluded)):
                spans.append((start, end))
    return tuple(sorted(spans)[:MAX_SPANS])


def _is_apart(span: Span, others: Sequence[Span]) -> bool:
    return all(span[1] <= start or end <= span[0] for start, end in others)


def _patterns(question: str, quotation: str) -> Iterator[re.Pattern[str]]:
    """The patterns of the kinds of values that the question asks for; a named counter excludes other numbers."""
    whether = asks(question, "whether") and not asks(question, "value")
    value = not whether and asks(question, "number", "date")
    if value and asks(question, "date"):
        yield _DATE
    if value:
        counted = counted_answer(question)
        yield counted if counted is not None and counted.search(quotation) else _NUMBER
    if asks(question, "person") and not whether:
        yield _PERSON
    if whether:
        yield _RULE


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while start < end and (text[end - 1].isspace() or text[end - 1] in ".,"):
        end -= 1
    return start, end
