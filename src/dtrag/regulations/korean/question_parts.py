"""Questions that ask several things ("통금은 몇 시고 벌점은 몇 점까지 괜찮나요?"): their parts, and their ranking."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtrag.core.text.patterns import explained
from dtrag.core.text.question_words import asks
from dtrag.core.text.questions import content

MAX_PARTS = 3
MIN_CONTENT_WORDS = 2
"""Content words of a part. With fewer ("기간은 얼마나 돼?") it has its subject from the other part."""
_EMBEDDED = r"[는은인한던을할될갈쓸낼된온난]지"
"""The ending of an embedded question (나오는지)."""
_ENGLISH_ASKING = "(?:how|what|when|where|who|which|can|do|does|is|are|may|must)"
_NO_PERSON = "".join(rf"(?<!{end})" for end in ("자", "들", "친구", "선배", "트", "님", "가족", "사람"))
_BOUNDARY = explained(
    rf"(?P<nouns>(?<=[가-힣]{{2}}){_NO_PERSON}(?:이랑|(?<!이)랑|와|(?<!학)(?<![교결효성통초경전공의외내치부])과|(?<=[휴복입편장]학)과)"
    r"\s+(?!함께|같[은이]|다[른르]|달리|관련|비교|동일|무관|상관|별도|차이|맞)(?!.*(?:달라|다르|다른가|똑같|겹[치쳐])))"
    rf"|(?P<joint>[.,]?\s+(?:그리고|그러면|그럼|또한?|및|and(?=\s+{_ENGLISH_ASKING}\b))\s+)"
    r"|(?<=[?？])\s*(?=\S)"
    rf"|(?<={_EMBEDDED})(?:,\s*|(?:랑|와|도)\s+|\s+(?=.*{_EMBEDDED}(?:\s|를|$)))"
    r"|(?<=[요까죠지니야해어]),\s+"
    r"|(?<=[가-힣][고며]),?\s+(?!싶|있|나서|나면|다니|가는|오는|가서|와서|말)",
    flags=re.IGNORECASE,
    finds="휴학과 복학",
    refuses="휴학과 함께",
)
"""Where a part may end: a particle between nouns that are no persons, a word such as 그리고, a question mark, a verb
with -는지, -고 or -며 that no auxiliary follows."""
_NOT_A_VERB = re.compile(
    r"[라다냐자]고$|(?:^|\s)(?:말고|창고|보고|공고|광고|신고|권고|경고|해고|최고|사고|참고|재고|금고)$"
)
"""Words in 고 that end no part: nouns and quotations."""
_ASKS = re.compile(rf"까지|[?？]|{_EMBEDDED}(?:\s|$)|야\s?(?:하|되)[고며]$")
"""What asks beside the words of questions."""
_SENTENCE = re.compile(r"[다요죠]$")
_HAS_SUBJECT = re.compile(r"\S+[은는이가도](?:\s|[?？]|$)")


def parts_of(question: str) -> tuple[str, ...]:
    """The parts of a question that asks two or three things, each with a subject; () for all other questions."""
    parts = _divided(question.strip(), MAX_PARTS)
    return tuple(parts) if len(parts) > 1 else ()


def _divided(question: str, most: int) -> list[str]:
    for boundary in _BOUNDARY.finditer(question) if most > 1 else ():
        first, second = question[: boundary.start()].strip(" ,."), question[boundary.end() :].strip()
        before, after = _content_words(first), _content_words(second)
        if not before or not after or not _asks_both(boundary, first, second):
            continue
        are_nouns = bool(boundary["nouns"] or boundary["joint"])
        if len(after) < MIN_CONTENT_WORDS:
            if not are_nouns and not _HAS_SUBJECT.match(second):
                continue
            second = f"{before[0]} {second}" if len(before) > 1 else second
        if are_nouns and len(before) < MIN_CONTENT_WORDS and len(after) > 1:
            first = " ".join((first, *second.split()[1:]))
        return [first, *_divided(second, most - 1)]
    return [question]


def _asks_both(boundary: re.Match[str], first: str, second: str) -> bool:
    """Whether both sides of a boundary ask something, or are nouns that the rest of the question is about."""
    if boundary["nouns"]:
        return True
    if _asks(first):
        return _asks(second) and not _NOT_A_VERB.search(first)
    return bool(boundary["joint"]) and not _SENTENCE.search(first)


def _asks(part: str) -> bool:
    return _ASKS.search(part) is not None or asks(part, "interrogative", "relative", "auxiliary", "asking_ending")


def _content_words(part: str) -> list[str]:
    return [word for word in content(part).split() if any(map(str.isalnum, word))]


def with_best_of_parts(
    order: Sequence[tuple[str, float]], parts: Sequence[Sequence[tuple[str, float]]]
) -> list[tuple[str, float]]:
    """The articles of `order`, with the best one of each part directly after the first."""
    return raised(order, [order[0][0], *(part[0][0] for part in parts if part)])


def raised(order: Sequence[tuple[str, float]], keys: Sequence[str]) -> list[tuple[str, float]]:
    """The articles of `order`, those with these keys first.

    Scores never increase along the list: an article that moves up gets at least the score of the one that it replaces.
    """
    scores = dict(order)
    moved = [key for key in dict.fromkeys(keys) if key in scores]
    first = [(key, max(scores[key], order[at][1])) for at, key in enumerate(moved)]
    return first + [(key, score) for key, score in order if key not in moved]
