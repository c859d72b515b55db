"""Words that contradict each other, and words that say how many or how much, in English and Korean."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtrag.core.text.analysis import normalise
from dtrag.core.text.patterns import explained

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
