"""What a question is about, apart from the words that only ask: for Korean, where both are one written word.

"휴학은 최대 몇 학기까지 할 수 있나요?" asks about 휴학, 최대, 학기. The rest is in no regulation, and as bigrams
it would be most of the question: its share of the score would look like doubt, and noise would rank the passages.
"""

from __future__ import annotations

import re

from dtrag.core.text import Analyzer, normalise, term_id, terms

ASKING_WEIGHT = 0.25
"""Share of its idf that a term has which only asks, instead of 1: nDCG@10 korquad1-dev .951 -> .956, kobest-boolq-dev
.951 -> .959, regulation articles .488 -> .525. Not 0: now and then one of them is content after all."""

_ASKING = re.compile(
    r"\s(?:할|될|볼|갈|쓸|낼|줄)?\s?수\s?(?:있|없)\S*"
    r"|(?<=[가-힣])(?:을|를|할|될|낼|갈|쓸)\s수\s?(?:있|없)\S*"
    r"|(?:^|(?<=\s))(?:어떻게|어떠한|어떤|어느|무엇\S*|무슨|뭐\S*|뭔가요|언제\S*|어디\S*|누가|누구\S*|왜|얼마\S*|몇|며칠)(?=[\s?,.]|$)"
    r"|(?:^|(?<=\s))(?:궁금\S*|알려\S*|알고\s?싶\S*|가르쳐\S*|설명\S*|말해\S*|부탁\S*|주세요|주실\S*|줘\S*|싶\S*|가능\S*|있\S*|없\S*)"
    r"|(?:^|(?<=\s))(?:대한|대해|대해서|대하여|관한|관해|관해서|관하여|관련\S*|따른|따라|따르면|경우\S*|때|것|곳|이유|되\S*|돼\S*|하\S*|해\S*|한|할)(?=[\s?,.]|$)"
    r"|(?<=[가-힣])(?:하고\s?싶\S*|하려면|하려고|되려면|받으려면|해야\S*|하면|되면|되나요|하나요|되는지|하는지|되는가|하는가|인가요|인가|인지|한가요"
    r"|한가|나요|까요|는가|은가|던가|는지|은지|니까|예요|에요|이야|어요|아요|해요|돼요)(?=[\s?,.]|$)"
    r"|(?<=[가-힣]{2})(?:하였|했|였|았|었|되었|됐|된|한|하는|되는|받는|하여|해서|하고|되고)(?:는데|으며|고|나|니|던|다)?(?=[\s?,.]|$)"
)
_PARTICLE = re.compile(
    r"(?<=[가-힣0-9a-z)])(?:에서부터|으로부터|에게서|으로서|으로써|이라고|까지는|에서는|에게|에서|으로|까지|부터|마다|처럼|보다|밖에|이나|이란"
    r"|하고|은|는|이|가|을|를|의|에|로|와|과|도|만|랑)(?=[\s,.?!)]|$)"
)


def content(question: str) -> str:
    """The question without what only asks and without particles; the question itself when nothing would be left."""
    kept = _PARTICLE.sub(" ", _ASKING.sub(" ", normalise(question)))
    return kept if terms(kept) else question


def weighted_terms(question: str, analyzer: Analyzer = Analyzer()) -> list[tuple[int, float]]:
    """The term ids of a question with their weights in (0, 1], in order: 1 for content, ASKING_WEIGHT for the rest."""
    about = set(analyzer.terms(content(question)))
    return [(term_id(term), 1.0 if term in about else ASKING_WEIGHT) for term in analyzer.terms(question)]


def content_terms(question: str) -> list[int]:
    """The term ids of what the question is about."""
    return [term_id(term) for term in terms(content(question))]
