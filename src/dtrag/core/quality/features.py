"""What a claim and its source have in common, as numbers: the input of the fitted judge in lexical_judge.py.

Also words that contradict each other, and words that say how many or how much, in English and Korean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from dtrag.core.answers.grounding import (
    Claim,
    PassageSentence,
    Support,
    claim_of,
    combined_support,
    passage_sentences,
    support_of,
)
from dtrag.core.text.analysis import STOP_WORDS, normalise, terms
from dtrag.core.text.numbers import NUMBER
from dtrag.core.text.patterns import HANGUL, explained
from dtrag.core.text.questions import without_particle

NAMES = (
    "window_share",
    "source_share",
    "sentence_share",
    "rare_share",
    "trigrams_window",
    "trigrams_source",
    "order",
    "subsequence",
    "stems",
    "predicate",
    "subject",
    "numbers_missing",
    "numbers_apart",
    "numbers_elsewhere",
    "names_missing",
    "names_apart",
    "nouns_missing",
    "lacking",
    "denied_by_claim",
    "denied_by_source",
    "opposite",
    "quantifier",
    "words_missing",
    "stems_missing",
    "stems_in_source",
    "claim_length",
    "source_length",
)
"""The features, in the order of the vector. `lacking`: grounding.py gives a reason against the support."""
NEAR = 3
"""Distance in content terms within which two neighbouring terms of the claim count as neighbours in the source."""
MOST_TERMS = 300
"""Terms of a claim whose order is compared."""
BESIDE = 2
"""Words on either side of a number that are its neighbours."""
FITTING = 0.5
"""Share of a word's beginning that must be in the source for the word to count as present."""
LATIN_START = 4
"""Letters at the beginning that two English stems must share to be of one family (inhibit, inhibitor)."""
_AUXILIARY = ("있", "없", "않", "하", "한", "할", "되", "된", "될", "했", "됐", "수", "것", "이다", "입니다", "합니다")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class ComparedSource:
    """A source as the features read it."""

    text: str
    sentences: tuple[PassageSentence, ...]
    trigrams: frozenset[str]
    stems: frozenset[str]


@lru_cache(maxsize=256)
def source_of(text: str) -> ComparedSource:
    """The source of a text; cached, because an answer has several claims about the same passages."""
    return ComparedSource(text, passage_sentences(text), _trigrams(text), frozenset(_stems(text)))


@dataclass(frozen=True, slots=True)
class Compared:
    """A claim beside the part of a source that fits it best."""

    claim: Claim
    support: Support
    source: ComparedSource
    nearest_text: str
    window: str
    values: tuple[float, ...]


def compare(text: str, source: ComparedSource) -> Compared:
    """The features of a claim and a source."""
    claim = claim_of(text)
    support = support_of(claim, source.sentences)
    run = [part for part in source.sentences if support.start <= part.start and part.end <= support.end]
    window = source.text[support.start : support.end]
    nearest = max(run, key=lambda part: _share(claim, part.words), default=None)
    claim_terms = [term for term in terms(text) if not NUMBER.fullmatch(term)][:MOST_TERMS]
    window_terms = terms(window)[: 3 * MOST_TERMS]
    stems, window_stems = _stems(text), frozenset(_stems(window))
    fits = [_fit(stem, window_stems) for stem in stems]
    all_fits = [_fit(stem, source.stems) for stem in stems]
    present, present_near = _union(source.sentences), _union(tuple(run))
    nearest_text = source.text[nearest.start : nearest.end] if nearest is not None else ""
    values = (
        support.share,
        combined_support(claim, source.sentences).share,
        max((_share(claim, part.words) for part in source.sentences), default=0.0),
        _rare_share(claim, present),
        _contained(_trigrams(text), _trigrams(window)),
        _contained(_trigrams(text), source.trigrams),
        _order(claim_terms, window_terms),
        _subsequence(claim_terms, window_terms),
        sum(fits) / len(fits) if fits else 0.0,
        fits[-1] if fits else 0.0,
        fits[0] if fits else 0.0,
        _portion([f"#{number}" not in present for number in claim.numbers]),
        _portion([f"#{number}" not in present_near for number in claim.numbers]),
        _numbers_elsewhere(text, source.text),
        _portion([is_absent(name, shown, present) for name, shown in claim.names.items()]),
        _portion([is_absent(name, shown, present_near) for name, shown in claim.names.items()]),
        _portion([present_near.isdisjoint(terms(noun)) for noun in claim.nouns]),
        float(bool(support.reason)),
        float(claim.denied and not any(part.denied for part in run)),
        float(not claim.denied and nearest is not None and nearest.denied),
        float(bool(contradicting_words(text, nearest_text))),
        float(bool(quantifiers(text) - quantifiers(window))),
        math.log1p(sum(word not in present for word in claim.words)),
        math.log1p(sum(fit < FITTING for fit in all_fits)),
        sum(all_fits) / len(all_fits) if all_fits else 0.0,
        math.log1p(len(claim.words)),
        math.log1p(len(source.text)) / 10,
    )
    return Compared(claim, support, source, nearest_text, window, values)


@lru_cache(maxsize=256)
def _union(parts: tuple[PassageSentence, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(part.words for part in parts))


def _share(claim: Claim, words: frozenset[str]) -> float:
    total = sum(claim.words.values())
    return sum(weight for term, weight in claim.words.items() if term in words) / total if total else 0.0


def _rare_share(claim: Claim, words: frozenset[str]) -> float:
    """The share of the claim's words, each weighted by the square of its weight: what is long or a number counts."""
    total = sum(weight**2 for weight in claim.words.values())
    return sum(weight**2 for term, weight in claim.words.items() if term in words) / total if total else 0.0


def _trigrams(text: str) -> frozenset[str]:
    folded = f" {normalise(text)} "
    return frozenset(folded[i : i + 3] for i in range(len(folded) - 2))


def _contained(part: frozenset[str], whole: frozenset[str]) -> float:
    return len(part & whole) / len(part) if part else 0.0


def _order(claim: Sequence[str], source: Sequence[str]) -> float:
    """The share of neighbouring terms of the claim that are near each other, in this order, in the source."""
    pairs = list(pairwise(claim))
    if not pairs:
        return 0.0
    near = {(first, second) for place, first in enumerate(source) for second in source[place + 1 : place + 1 + NEAR]}
    return sum(pair in near for pair in pairs) / len(pairs)


def _subsequence(claim: Sequence[str], source: Sequence[str]) -> float:
    """The longest common subsequence as a share of the claim."""
    if not claim:
        return 0.0
    lengths = [0] * (len(source) + 1)
    for term in claim:
        diagonal = 0
        for place, other in enumerate(source, start=1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if term == other else max(above, lengths[place - 1])
            diagonal = above
    return lengths[-1] / len(claim)


def _stems(text: str) -> list[str]:
    """Written Korean words without particles, stems of other words, in order."""
    stems: list[str] = []
    for word in normalise(text).split():
        if hangul := HANGUL.search(word):
            stems.append(without_particle(hangul.group()))
        else:
            stems += terms(word)
    return stems


def _fit(stem: str, stems: frozenset[str]) -> float:
    """The longest beginning that the stem shares with one of `stems`, as a share of it."""
    if stem in stems:
        return 1.0
    best = max((_shared_start(stem, other) for other in stems if other[:1] == stem[:1]), default=0)
    if not HANGUL.match(stem):
        return best / len(stem) if best >= LATIN_START else 0.0
    return best / len(stem) if best > 1 or len(stem) == 1 else 0.25 * best


def _shared_start(stem: str, other: str) -> int:
    length = 0
    for mine, theirs in zip(stem, other, strict=False):
        if mine != theirs:
            break
        length += 1
    return length


def _numbers_elsewhere(claim: str, source: str) -> float:
    """The share of the claim's numbers that stand beside none of their neighbours wherever the source has them."""
    stated, known = _number_neighbours(claim), _number_neighbours(source)
    flags = [
        bool(neighbours) and neighbours.isdisjoint(known[number])
        for number, neighbours in stated.items()
        if number in known
    ]
    return _portion(flags)


@lru_cache(maxsize=512)
def _number_neighbours(text: str) -> dict[str, frozenset[str]]:
    """Number as it is written -> the words within two of it, wherever it stands."""
    tokens = [token.replace(",", "") for token in _TOKEN.findall(normalise(text))]
    neighbours: dict[str, set[str]] = {}
    for place, token in enumerate(tokens):
        if token[0].isdigit():
            near = tokens[max(0, place - BESIDE) : place] + tokens[place + 1 : place + 1 + BESIDE]
            neighbours.setdefault(token, set()).update(word[:4] for word in near if word not in STOP_WORDS)
    return {number: frozenset(words) for number, words in neighbours.items()}


def _portion(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def missing_words(text: str, source: ComparedSource) -> list[str]:
    """The written words of a claim, without particles, of which the source has nothing that fits."""
    missing = [
        stem
        for stem in _stems(text)
        if len(stem) > 1 and _fit(stem, source.stems) < FITTING and not stem.startswith(_AUXILIARY)
    ]
    return list(dict.fromkeys(missing))


def is_absent(name: str, shown: str, words: frozenset[str]) -> bool:
    """Whether a name of a claim is among no words of a source."""
    return name not in words and words.isdisjoint(terms(shown))


_ENGLISH = (
    "increas~|rais~|rise|rises|rising|risen|rose|grow|grows|growing|growth|grew|higher|more|enhanc~|elevat~|promot~|activat~"
    "|improv~|up-?regulat~|accelerat~|greater"
    "/decreas~|reduc~|fall|falls|falling|fallen|fell|declin~|lower~|less|lesser|fewer|inhibit~|suppress~|impair~"
    "|down-?regulat~|worsen~|slow~|smaller|prevent~",
    "before|prior|earlier/after|later|following",
    "first|initial/last|final",
    "most|majority/least|minority",
    "win|wins|winning|winner|winners|won|victor~|success~/lost|lose|loses|losing|loss|losses|defeat~|fail~",
    "allow~|permit~|permission|approv~|accept~/forbid~|forbade|prohibit~|ban|bans|banned|banning|refus~|reject~|deny|denies|denied|denial",
    "includ~/exclud~",
    "open|opens|opened|opening/close|closes|closed|closing",
    "positive/negative",
    "begin|begins|beginning|began|begun|start|starts|started|starting/end|ends|ended|ending|stop|stops|stopped|stopping|finish~",
    "male|males|man|men|boy|boys|husband|father|son|sons|he|his/female|females|woman|women|girl|girls|wife|mother|daughter|daughters|she|her",
    "north|northern/south|southern",
    "east|eastern/west|western",
    "present|presence|exist~/absent|absence|lack|lacks|lacked|lacking",
    "always/never",
    "support|supports|supported|supporting/oppos~",
    "dependent/independent",
    "high/low",
    "long/short",
    "large|big/small|little",
    "buy|buys|buying|bought|purchas~/sell|sells|selling|sold|sale|sales",
    "arriv~/depart|departs|departed|departing|departure|departures|left",
    "minimum|least/maximum|most",
)
_KOREAN = (
    "있/없",
    "많|높|증가|늘어|늘었|늘리|늘린|늘고|늘면|상승|크|커|확대|강화|길|넓|빠르|오르|올라/적다|적은|적게|적어|적었|낮|감소|줄|하락|작|축소|약화|짧|좁|느리|내리|내려",
    "좋|만족|훌륭|편하|편리|친절|깨끗|완벽|쉽|행복|다행|재미있|재밌|추천|최고/나쁘|나빴|불만|별로|불편|불친절|더럽|더러|지저분|어렵|불행|재미없|지루|비추|최악",
    "가깝|가까/멀|멀리",
    "가능/불가능|불가",
    "시작|개막|설립|신설|제정/종료|끝|폐막|폐지|마감",
    "이전|전에|먼저|앞/이후|후에|나중|뒤",
    "처음|최초/마지막|최후",
    "모든|모두|전부/아무|일부|어떤",
    "성공|승리|이기|이겼|합격/실패|패배|지고|졌|불합격|낙선",
    "찬성|동의|허용|허가|승인/반대|거부|금지|불허|기각",
    "포함/제외",
    "남자|남성|아버지|아들|남편/여자|여성|어머니|딸|아내",
    "사다|구매|구입|매수/팔|판매|매도",
    "입학|입국|취임|임명/졸업|출국|사임|해임",
    "최대|이하|미만|까지|이내/최소|이상|초과|부터",
    "살아|생존|태어/죽|사망|숨",
    "춥|추운|추워|차갑/덥|더운|더워|따뜻|뜨겁",
    "밝/어둡|어두",
    "조용/시끄럽|시끄러|소음",
    "동쪽|동부/서쪽|서부",
    "남쪽|남부/북쪽|북부",
    "공개/비공개",
    "필수|의무|반드시/선택|임의|자율",
)


def _sides(pairs: tuple[str, ...]) -> Iterator[tuple[re.Pattern[str], re.Pattern[str]]]:
    for pair in pairs:
        first, _, second = pair.partition("/")
        yield re.compile(_alternatives(first)), re.compile(_alternatives(second))


def _alternatives(words: str) -> str:
    """Korean words are beginnings; English ones are whole words, or stems that end with "~"."""
    if not words.isascii():
        return f"(?<![가-힣])(?:{words})"
    return "|".join(rf"\b{word[:-1]}" if word.endswith("~") else rf"\b{word}\b" for word in words.split("|"))


_OPPOSITES = (*_sides(_ENGLISH), *_sides(_KOREAN))
_QUANTIFIERS = explained(
    r"\b(?:all|every|each|only|always|entire|whole|sole|most|both|none|any|exclusively|completely|solely|unique|best|worst)\b"
    r"|(?<![가-힣])(?:모든|모두|전부|오직|유일|항상|언제나|늘(?=\s)|가장|최고|최초|최대|결국|이제|아무|완전|전혀|반드시|절대|제일|매우|또한|다시|여전히)"
    r"|(?<=[가-힣])(?:뿐|밖에|만)(?=\s|이|을|를|의|은|$)",
    finds=("only", "학생만"),
    refuses=("wholesale", "만료", "늘어난"),
)


def contradicting_words(claim: str, nearest: str) -> list[tuple[str, str]]:
    """Pairs of a word of the claim and its opposite in the source's nearest sentence, neither of which is in both."""
    claim, nearest = normalise(claim), normalise(nearest)
    pairs = []
    for pattern, other in _OPPOSITES:
        for here, there in ((pattern, other), (other, pattern)):
            stated, opposite = here.search(claim), there.search(nearest)
            if stated and opposite and not here.search(nearest) and not there.search(claim):
                pairs.append((stated.group(), opposite.group()))
    return pairs


def quantifiers(text: str) -> frozenset[str]:
    """The words that say how many or how much."""
    return frozenset(_QUANTIFIERS.findall(normalise(text)))
