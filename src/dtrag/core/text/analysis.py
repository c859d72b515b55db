"""Text analysis, the same for indexing and querying: normalisation, language, sentences, terms.

The index contains the output of `terms()`. Its behaviour is versioned by `ANALYZER`; the index stores the version it
was built with, and searching it with another version is an error.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain

import Stemmer

from dtrag.core.text.patterns import HANGUL, LATIN, explained

ANALYZER = "words-bigrams-1"

TERM_SPACE = 1_000_000_000
"""Term ids lie in [0, TERM_SPACE): the largest dimension of pgvector's sparsevec. A hash instead of a dictionary: no
lock and no look-up on writing, and the same id on every shard; of 1M distinct terms about 500 pairs share an id."""

STOP_WORDS = frozenset(
    "a about an and any are as at be been being but by can could did do does doing for from had has have having he her "
    "hers him his how i if in into is it its itself may me might my no nor not of on onto or our ours she should so "
    "some such than that the their theirs them then there these they this those through to too us very was we were "
    "what when where which while who whom whose why will with would you your yours".split()
)

_LETTERS = re.compile(r"[^\W\d_]+")
_ARTICLE = r"제\s?\d{1,4}\s?조(?:의\s?\d{1,3})?"
CJK = "\u3040-\u30ff\u3400-\u9fff"
_LATIN = r"[a-z0-9]+(?:[._+#/&'’-]+[a-z0-9]+)*(?:\+\+|#)?"
_OTHER = rf"(?:(?![가-힣{CJK}a-z0-9_])\w)+"
LATIN_OR_OTHER = rf"(?P<latin>{_LATIN})|(?P<other>{_OTHER})"
"""Words in neither Hangul nor Chinese characters nor Kana, in a pattern."""
_KINDS = {"article": _ARTICLE, "hangul": "[가-힣]+", "cjk": f"[{CJK}]+", "latin": _LATIN, "other": _OTHER}
_TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_ANY_TOKEN, _ASCII_TOKEN = re.compile("|".join(_KINDS.values())), re.compile(_LATIN)
"""Without groups: `findall` gives the tokens."""
LONGEST_KEPT = 32
"""Characters of a token whose terms are remembered: a run of Chinese takes 130 bytes for each of its characters."""
_PART = re.compile(r"[a-z0-9]+")
_IDENTIFIER = re.compile(r"\d|[._+#/&]")
_stemmer = Stemmer.Stemmer("english")
_stemmer.maxCacheSize = 0  # our own cache below holds the stems

_SENTENCE_END = explained(
    r"""(?<=[.!?。？！…])(?P<closing>["'”’)\]]*)\s+(?=["'“‘(\[]?[A-Z0-9가-힣一-鿿①-⑳])|\n+\s*|(?<=\S)\s*(?=[①-⑳])""",
    finds=("끝. 다음", "하나②"),
    refuses="e.g. this",
)
_ABBREVIATION = explained(
    r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|al|e\.g|i\.e|cf|No|Nos|Fig|Figs|Eq|Inc|Ltd|Co|Corp|approx|Vol|pp?)\.$"
    r"|(?:^|\s)(?:[0-9]{1,2}|[가-하])\.$|\d{4}\.\s?\d{1,2}\.$",
    finds=("see Fig.", "2024. 3."),
    refuses=("the config.", "of 100."),
)
_YEAR_OF_DATE = re.compile(r"\d{4}\.\s*(?=\d)")
"""A year that a month follows (`2024. 3. 1.`); "in 1952. They" ends a sentence."""
_LOOK_BACK = 16
"""Characters before an end that are examined: more than the longest abbreviation, but not all of a long list."""


def folded(text: str) -> str:
    """NFKC, casefold, NFKC again."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def normalise(text: str) -> str:
    """The folded form for comparisons, with runs of white space as single blanks."""
    return " ".join(folded(text).split())


def clean(text: str) -> str:
    """The text without characters that PostgreSQL or UTF-8 cannot represent: NUL, lone surrogates."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-8", "ignore").decode("utf-8")
    return text


def language(text: str) -> str:
    """`ko`, `en` or `und` (another script, or no letters), by script; ISO 639-1.

    A text is Korean when at least a quarter of its letters are Hangul: Korean prose about technology keeps many Latin
    words, while English prose rarely quotes Hangul at length.
    """
    sample = text[:2000]
    if sample.isascii():
        return "en" if LATIN.search(sample) else "und"
    letters = _length(_LETTERS, sample)
    if not letters:
        return "und"
    if _length(HANGUL, sample) * 4 >= letters:
        return "ko"
    return "en" if _length(LATIN, sample) * 2 > letters else "und"


def _length(runs: re.Pattern[str], text: str) -> int:
    return sum(map(len, runs.findall(text)))


def terms(text: str) -> list[str]:
    """The index terms of `text`, in order, with repetitions.

    English words are stemmed (Snowball) and stop words dropped; Hangul and CJK runs give character bigrams (a run of
    one character gives itself); identifiers (`BM25`, `제12조의2`, `text-embedding-3-small`) are kept, in addition to
    their parts.
    """
    return [
        term
        for token in _tokens(text)
        for term in (_token_terms(token) if len(token) <= LONGEST_KEPT else _terms_of(token))
    ]


def term_ids(text: str) -> Iterator[int]:
    """The ids of `terms(text)`, in order, in half the time."""
    return chain.from_iterable(
        _token_ids(token) if len(token) <= LONGEST_KEPT else map(term_id, _terms_of(token)) for token in _tokens(text)
    )


def _tokens(text: str) -> list[str]:
    text = folded(text)
    return _ASCII_TOKEN.findall(text) if text.isascii() else _ANY_TOKEN.findall(" ".join(text.split()))


@dataclass(frozen=True, slots=True)
class Analyzer:
    """Turns text into terms; `id` is stored with the index.

    `more` adds terms of an optional analyzer (Korean morphemes) to those of `terms()`.
    """

    id: str = ANALYZER
    more: Callable[[str], list[str]] | None = None

    def terms(self, text: str) -> list[str]:
        """The index terms of `text`, with repetitions."""
        own = terms(text)
        return own + self.more(text) if self.more is not None else own

    def counts(self, text: str) -> Counter[int]:
        """Id -> occurrences of the index terms of `text`."""
        ids = term_ids(text)
        return Counter(ids if self.more is None else chain(ids, map(term_id, self.more(text))))


def _terms_of(token: str) -> tuple[str, ...]:
    match = _TOKEN.match(token)
    kind = match.lastgroup if match else None
    if kind in {"hangul", "cjk"}:
        return tuple(token[i : i + 2] for i in range(max(1, len(token) - 1)))
    if kind == "latin":
        return _latin(token)
    return ("".join(token.split()),)


_token_terms = functools.lru_cache(maxsize=50_000)(_terms_of)


@functools.lru_cache(maxsize=50_000)
def _token_ids(token: str) -> tuple[int, ...]:
    return tuple(map(term_id, _terms_of(token)))


def _latin(token: str) -> tuple[str, ...]:
    if token.isalnum():
        return () if token in STOP_WORDS else (_stemmer.stemWord(token),)
    token = without_apostrophes(without_possessive(token))
    if token.isalnum():
        return _latin(token)
    parts = tuple(_stemmer.stemWord(part) for part in _PART.findall(token) if part not in STOP_WORDS)
    return (token, *parts) if _IDENTIFIER.search(token) else parts


def without_possessive(word: str) -> str:
    """The word without 's at its end."""
    return word[:-2] if word.endswith(("'s", "’s")) else word


def without_apostrophes(word: str) -> str:
    """The word with its letters joined: o'clock is oclock."""
    return word.replace("'", "").replace("’", "")


@functools.lru_cache(maxsize=100_000)
def term_id(term: str) -> int:
    """The id of a term in [0, TERM_SPACE): 32 bits of BLAKE2b, reduced."""
    return int.from_bytes(blake2b(term.encode("utf-8"), digest_size=8).digest(), "big") % TERM_SPACE


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans `[start, end)` of the sentences of `text`, without surrounding white space, in order.

    Ends are . ! ? … and their wide forms before a new beginning, line breaks, and Korean paragraph marks (①).
    Abbreviations, initials, list numbers and dates (`2024. 3. 1.`) do not end a sentence.
    """
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if "\n" not in match.group() and ends_in_abbreviation(text, start, match.start()):
            continue
        yield from _trimmed(text, start, match.end("closing") if match["closing"] else match.start())
        start = match.end()
    yield from _trimmed(text, start, len(text))


def ends_in_abbreviation(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` ends in an abbreviation, an initial, a list number or a date, which end no sentence."""
    if _ABBREVIATION.search(text[max(start, end - _LOOK_BACK) : end]):
        return True
    return end - start >= len("2024.") and _YEAR_OF_DATE.match(text, end - len("2024.")) is not None


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
