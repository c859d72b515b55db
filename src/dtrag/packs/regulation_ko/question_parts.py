"""Questions that ask two things ("통금은 몇 시고 벌점은 몇 점까지 괜찮나요?"): their parts, and their ranking."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtrag.core.text.questions import content

MIN_CONTENT_WORDS = 2
"""Content words of each part. With fewer ("기간은 얼마나 돼?") a part has its subject from the other one."""
_BOUNDARY = re.compile(
    r"(?<=[?？])\s*(?=\S)"
    r"|[.,]?\s+(?:그리고|그러면|그럼|또한|and\s+(?=(?:how|what|when|where|who|which|can|do|does|is|are|may|must)\b))\s*"
    r"|(?<=[가-힣]고),?\s+(?!싶|있|나서|나면|다니|가는|오는|가서|와서|말)"
    r"|(?<=[가-힣]며),?\s+",
    re.IGNORECASE,
)
"""Where a part may end: a question mark, a word such as 그리고, a verb with -고 or -며 that no auxiliary follows."""
_NOT_A_VERB = re.compile(
    r"(?:^|\s)(?:말고|그리고|라고|다고|냐고|자고|창고|보고|공고|광고|신고|권고|경고|해고|최고|사고|참고|재고|금고)$"
)
"""Words in 고 that end no part: nouns and quotations."""
_ASKS = re.compile(
    r"몇|언제|누가|누구|누굴|얼마|어디|어느|어떤|어떻게|무슨|무엇|뭐|뭘|뭔|며칠|왜|까지|나요|가요|까요|돼요|되나|[?？]"
    r"|\b(?:how|what|when|where|who|which|can|do|does|is|are|may|must)\b",
    re.IGNORECASE,
)


def parts_of(question: str) -> tuple[str, ...]:
    """The two parts of a question that asks two things, each with a subject of its own; () for all other questions."""
    for boundary in _BOUNDARY.finditer(question):
        first, second = question[: boundary.start()].strip(), question[boundary.end() :].strip()
        if (
            _ASKS.search(second)
            and not _NOT_A_VERB.search(first)
            and min(_content_words(first), _content_words(second)) >= MIN_CONTENT_WORDS
        ):
            return first, second
    return ()


def _content_words(part: str) -> int:
    return len(content(part).split())


def with_best_of_parts(
    order: Sequence[tuple[str, float]], parts: Sequence[Sequence[tuple[str, float]]]
) -> list[tuple[str, float]]:
    """The articles of `order`, with the best one of each part directly after the first.

    Scores never increase along the list: an article that moves up gets at least the score of the one that it replaces.
    """
    scores = dict(order)
    best = [key for key in dict.fromkeys(part[0][0] for part in parts if part) if key in scores]
    moved = [key for key in best if key != order[0][0]]
    first = [order[0], *((key, max(scores[key], order[at][1])) for at, key in enumerate(moved, 1))]
    return first + [(key, score) for key, score in order[1:] if key not in moved]
