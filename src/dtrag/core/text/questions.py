"""Content of a question, without the words that only ask; in Korean, both can be one written word.

"휴학은 최대 몇 학기까지 할 수 있나요?" has the content 휴학, 최대, 학기. The rest is in no regulation, but as bigrams
it would be most of the question: it would lower the confidence, and noise would rank the passages.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from dtrag.core.text.analysis import STOP_WORDS, Analyzer, normalise, term_id, terms
from dtrag.core.text.patterns import HANGUL, explained

ASKING_WEIGHT = 0.25
"""Factor of the idf of a term that only asks: nDCG@10 korquad1-dev .951 -> .956, kobest-boolq-dev
.951 -> .959, regulation articles .488 -> .525. Not 0, because sometimes such a term is content."""

WORD_DAMPING = 0.2
"""Exponent that reduces the weight of each pair of a long written word, because its pairs occur together:
korquad1-dev .961 -> .964, regulation articles .540 -> .550, kobest as before."""

CACHED_QUESTIONS = 64
"""Questions whose content and terms are cached: one answer needs them ten times."""

_AFTER = r"(?<=[가-힣0-9a-z)])"
_PARTICLES = (
    "에서부터|으로부터|에게서|으로서|으로써|이라고|까지는|에서는|에게|에서|으로|까지|부터|마다|처럼|보다|이나|이란|하고"
    "|은|는|이|가|을|를|의|에|로|와|과|도|만"
)
PARTICLE = re.compile(rf"{_AFTER}(?:{_PARTICLES}|밖에|랑)(?=[\s,.?!)]|$)")
"""A particle at the end of a written word of a question."""
TITLE_PARTICLE = re.compile(rf"{_AFTER}(?:{_PARTICLES}|이다|이며|인)$")
"""A particle or copula at the end of a title that a sentence mentions ("… 화성이다"): only at the end of the text."""

_ASKING = explained(
    r"\s(?:할|될|볼|갈|쓸|낼|줄)?\s?수\s?(?:있|없)\S*"
    r"|(?<=[가-힣])(?:을|를|할|될|낼|갈|쓸)\s수\s?(?:있|없)\S*"
    r"|(?:^|(?<=\s))(?:(?:어떠한|어떤|무슨)\s?사유\S{0,2}|어떻게|어떠한|어떤|어느|무엇\S*|무슨|뭐\S*|뭔가요|언제\S*|어디\S*|누가|누구\S*|왜|얼마\S*|몇|며칠)(?=[\s?,.]|$)"
    r"|(?:^|(?<=\s))(?:궁금\S*|알려\S*|알고\s?싶\S*|가르쳐\S*|설명\S*|말해\S*|부탁\S*|주세요|주실\S*|줘\S*|싶\S*|가능\S*|있\S*|없\S*)"
    r"|(?:^|(?<=\s))(?:대한|대해|대해서|대하여|관한|관해|관해서|관하여|관련\S*|따른|따라|따르면|경우\S*|때|것|곳|이유|되\S*|돼\S*|하\S*|해\S*|한|할)(?=[\s?,.]|$)"
    r"|(?<=[가-힣])(?:하고\s?싶\S*|하려면|하려고|되려면|받으려면|해야\S*|하면|되면|되나요|하나요|되는지|하는지|되는가|하는가|인가요|인가|인지|한가요"
    r"|한가|나요|까요|는가|은가|던가|는지|은지|니까|예요|에요|이야|어요|아요|해요|돼요)(?=[\s?,.]|$)"
    r"|(?<=[가-힣]{2})(?:하였|했|였|았|었|되었|됐|된|한|하는|되는|받는|하여|해서|하고|되고)(?:는데|으며|고|나|니|던|다)?(?=[\s?,.]|$)",
    finds=("신청할 수 있나요", "어떤 서류"),
    refuses="할인 대상",
)


@functools.lru_cache(maxsize=CACHED_QUESTIONS)
def content(question: str) -> str:
    """The question without words that only ask and without particles; the question itself if nothing is left."""
    remaining = PARTICLE.sub(" ", _ASKING.sub(" ", normalise(question)))
    return remaining if terms(remaining) else question


def without_particle(word: str) -> str:
    """A written Korean word without its particle (휴학은 gives 휴학); other words unchanged."""
    return PARTICLE.sub("", word)


@functools.lru_cache(maxsize=CACHED_QUESTIONS)
def weighted_terms(question: str, analyzer: Analyzer = Analyzer()) -> tuple[tuple[int, float], ...]:
    """The term ids of a question with their weights in (0, 1], in order: 1 for content, ASKING_WEIGHT for the rest.

    Each of the m pairs of one written Hangul word counts m^-WORD_DAMPING of that.
    """
    about = set(analyzer.terms(content(question)))
    pairs = _pairs(question)
    return tuple(
        (term_id(term), (1.0 if term in about else ASKING_WEIGHT) * pairs.get(term, 1) ** -WORD_DAMPING)
        for term in analyzer.terms(question)
    )


def _pairs(question: str) -> dict[str, int]:
    """Pair of Hangul -> number of pairs in the longest written word that it is in."""
    pairs: dict[str, int] = {}
    for word in HANGUL.findall(normalise(question)):
        for start in range(len(word) - 1):
            pair = word[start : start + 2]
            pairs[pair] = max(pairs.get(pair, 0), len(word) - 1)
    return pairs


def content_terms(question: str) -> list[int]:
    """Term ids of the content of the question."""
    return [term_id(term) for term in terms(content(question))]


def required_terms(question: str) -> frozenset[int]:
    """Term ids of all that a passage must contain to contain every word of the question, but for particles and words
    that only ask. Single syllables (이, 및) count only when nothing else is left.
    """
    about = terms(content(question))
    longer = [term for term in about if len(term) > 1 or not HANGUL.fullmatch(term)]
    return frozenset(map(term_id, longer or about))


def has_hangul(question: str) -> bool:
    """Whether a word of the question is Korean."""
    return HANGUL.search(normalise(question)) is not None


@dataclass(frozen=True, slots=True)
class QueryCharacteristics(Mapping[str, object]):
    """Characteristics of a query; also a mapping, `characteristics["length"]`.

    `length` is its number of words and `avg_term_length` their mean length in characters. `exact_terms` are
    those that only an exact match can find; `semantic_complexity` in [0, 1] grows with the words that could be
    paraphrased. `has_operators`: it has the words and, or, not, or a word with + or - before it.
    """

    length: int
    exact_terms: tuple[str, ...]
    semantic_complexity: float
    has_operators: bool
    avg_term_length: float

    def __getitem__(self, name: str) -> object:
        if name not in _CHARACTERISTICS:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_CHARACTERISTICS)

    def __len__(self) -> int:
        return len(_CHARACTERISTICS)


_CHARACTERISTICS = tuple(declared.name for declared in fields(QueryCharacteristics))
_OPERATORS = frozenset({"and", "or", "not"})
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|「([^」]+)」|『([^』]+)』")
_CODE = explained(
    r"제\d{1,4}조(?:의\d{1,3})?.*"  # an article of a regulation
    r"|(?=.*[^\W\d_])(?=.*\d)[\w.\-/]+"  # letters and digits in one: BM25, gpt-4
    r"|[A-Za-z0-9]+(?:[_./:#@]+[A-Za-z0-9]+)+"  # snake_case, file.names, a/path
    r"|\w*[a-z][A-Z]\w*"  # camelCase
    r"|\w+(?:\+\+|#|\(\))",  # C++, C#, call()
    flags=re.ASCII,
    finds=("snake_case", "gpt-4"),
    refuses="Python",
)
_EDGES = ".,;:!?\"'“”「」『』()[]{}<>"
LONGEST_TERM = 100
"""Longer tokens are not exact terms: users do not type them, and matching them would be slow."""
MANY_WORDS = 10
"""Content words at which the complexity reaches 1."""


def analyze_query(query: str) -> QueryCharacteristics:
    """The characteristics of a query.

    An exact term is a quoted phrase, an abbreviation in capitals or a token like code: `API`, `BM25`, `제12조의2`,
    `snake_case`, `file.py`. Semantic complexity is min(1, c / 10), c being the number of words that are neither exact
    terms nor stop words and do not only ask. Two Hangul syllables count as one word, because
    Korean joins what English writes as several words.
    """
    words = [word for word in query.split() if any(map(str.isalnum, word))]
    exact = [next(filter(None, match)).strip() for match in _QUOTED.findall(query)]
    unquoted = _QUOTED.sub(" ", query)
    exact += [word for raw in unquoted.split() if (word := _bare(raw)) and _is_exact(word)]
    rest = " ".join(raw for raw in unquoted.split() if not _is_exact(_bare(raw)))
    return QueryCharacteristics(
        length=len(words),
        exact_terms=tuple(dict.fromkeys(term for term in exact if term)),
        semantic_complexity=min(1.0, _content_words(rest) / MANY_WORDS),
        has_operators=any(word.lower() in _OPERATORS or word[0] in "+-" for word in query.split()),
        avg_term_length=sum(map(len, words)) / len(words) if words else 0.0,
    )


def _bare(word: str) -> str:
    return word.lstrip(_EDGES).rstrip(_EDGES.replace(")", "") if word.endswith("()") else _EDGES)


def _is_exact(word: str) -> bool:
    folded = word.lower()
    if len(word) > LONGEST_TERM or folded in _OPERATORS or folded in STOP_WORDS:
        return False
    capitals = len(word) > 1 and word.isascii() and word.isupper()
    return capitals or _CODE.fullmatch(word) is not None


def _content_words(text: str) -> int:
    count = 0
    for word in content(text).split():
        bare = normalise(word).strip(_EDGES)
        hangul = sum("가" <= character <= "힣" for character in bare)
        if hangul:
            count += (hangul + 1) // 2
        elif bare not in STOP_WORDS and any(map(str.isalnum, bare)):
            count += 1
    return count
