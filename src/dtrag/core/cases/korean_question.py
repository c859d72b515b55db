"""Interprets a Korean question for the comparison with another one."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dtrag.core.cases.hangul import letters, parts
from dtrag.core.cases.korean_numerals import with_digits
from dtrag.core.cases.korean_words import SINGLE_PARTICLES, korean, read_token
from dtrag.core.cases.quantities import korean_numbers
from dtrag.core.cases.reading import Reading, Unit
from dtrag.core.cases.subjects import KoreanSubjects
from dtrag.core.cases.unit_matching import PLAIN_ROLES
from dtrag.core.cases.wording import Wording, listed, raw_wording

_BEFORE = frozenset(("전", "전에", "전까지", "전에는", "이전", "이전에", "전의", "전에도", "앞서", "직전", "직전에"))
_INSTEAD = frozenset(("대신", "대신에", "대신해", "대신해서", "대신으로"))
_AFTER = frozenset(
    ("후", "후에", "뒤", "뒤에", "이후", "이후에", "후의", "후에는", "후에도", "나서", "다음에",
     "후부터", "뒤에는", "뒤에도", "이후로", "이후의", "직후", "직후에")
)  # fmt: skip
_RUN_TOGETHER = re.compile(r"[가-힣]{2}(?:[을를](?=[가-힣]{2})|[이가은는](?=[있없]))")
"""An object written together with its verb: 허락을받아야."""
_APART = re.compile(
    r"(?<=[와워져혀려여해어아돼])(?=있[나는어습을죠던])|(?<=[가-힣]{2})(?=관련(?:\s|$))|(?<=[가-힣]{2})(?=땜에|때문에)"
    r"|(?<=[가-힣a-z0-9])(?=(?:헐|헉|ㅠ|ㅜ)(?![가-힣]))"
)
"""Places where two words are often written together: 나와있나요, 입학관련, 눈땜에."""
_GRADE = re.compile(
    r"(?<![a-z가-힣])(?:(?P<latin>[a-d])|(?P<hangul>에이|비|씨|디))\s?(?P<sign>\+|-(?![a-z0-9])|플러스|마이너스)"
)
_GRADE_LETTERS = {"에이": "a", "비": "b", "씨": "c", "디": "d"}
_F = re.compile(r"(?<![가-힣])에프(?=학점|등급|[가는를]?(?:\s|$|[,.?!])|인[가지데]|이|예|면|로)")
_ADNOMINAL_NOUN = re.compile(
    r"(?<=[가-힣])([은는을던한할된될])(?=(?:거|건|것)(?:은|는|도|만|를|로|가요?|죠|지요?|예요|에요|인가요?)?(?![가-힣]))"
    r"|(?<=[가-힣])(?=때(?:는|에|에는|도|만|마다)?(?![가-힣]))"
)
"""The end of an attribute written together with 것 or 때: 남은거, 나갈때."""
_NEGATIONS = {"안": "not", "못": "not_may"}
"""Adverbs of negation -> what they state, wherever no wording of the file has interpreted them."""
_THING = re.compile(
    r"(?:건|것|거|걸|게|점|바|데|수|때|줄)(?:가요?|인가요?|인지요?|입니까|입니다|이에요|예요|이죠|죠|은|는|이|을|를|도|에|으로|로|의|나요?|데요?|인데요?|까지|만)?"
)
_WHETHER = re.compile(
    r"(?:나요?|까요?|가요|죠|지요?|니|냐|는지요?|은지요?|인지요?|을지요?|어요?|아요?|[와워려여져쳐켜봐줘써내]요|해요?|돼요?|되요|예요|에요|여부|니까|는가|은가|이야|이냐|음|임|됨|함)(?=\s*(?:[,.?!]|$))"
)
_INDIRECT = re.compile(r"(?:는지|은지|인지|을지|ᆫ지|ᆯ지|여부)")
_COUNTED = re.compile(
    r"(⟦count⟧)\s*(?:학기|학점|과목|학년|퍼센트|차례|사람|가지|시간|군데|페이지|[가-힣])"
    r"(?=까지|이나|이|인|을|은|씩|로|$|\s|[가-힣]{0,3}(?:\s|$))(?:까지|이나|이|인|을|은|를|가|씩|로)?"
    r"(?:면|어야|여야|라야)?(?:가요|까요|나요|요|지|니까|에요|예요|죠|입니까|합니까|하나요)?"
)
_TOKEN = re.compile(r"⟦[a-z_0-9]+⟧|[가-힣]+|[a-z0-9]+|[,;.?!]")
_ON_STEM = (
    letters("갈")[-1],
    letters("을"),
    letters("지 "),
    letters("지않"),
    letters("지안"),
    letters("지못"),
    letters("지는"),
    letters("지도"),
)
_WHO_ROLES = (
    (re.compile(r"누구(?:에게서|한테서|로부터)|누구에 ?의"), "by"),
    (re.compile(r"누구(?:에게|한테|께)"), "to"),
    (re.compile(r"누구(?:를|랑|와|하고)"), "object"),
)


@functools.cache
def _spelling() -> tuple[re.Pattern[str], Mapping[str, str]]:
    pairs = dict(pair.split(" ", 1) for pair in listed(raw_wording("ko")["words"]["spelling"]))
    return re.compile("|".join(sorted(map(re.escape, pairs), key=len, reverse=True))), pairs


_PLACES = (
    (re.compile(r"어디\s?까지|어느 ?(?:곳|장소)까지"), "until"),
    (re.compile(r"어디(?:로|에?다)(?!부터)|어느 ?(?:곳|장소|건물)(?:으?로)"), "to"),
    (re.compile(r"어디(?:에서|로?부터)|어느 ?(?:곳|장소|건물)에서"), "at"),
)
"""Whether where asks for a goal or for a place; 어디에 may be either."""


def _is_particle(text: str) -> bool:
    """Whether 을 or 를 at the end of a text suits its last syllable (금을, 서를; not 가을), or stands before 있, 없."""
    before, last = parts(text[-2]), text[-1]
    if before is None:
        return False
    return (before[2] != 0) == (last in "을이은")


def read_korean(folded: str) -> Reading:
    """The Korean question with the normalised text `folded`."""
    wording = korean()
    misspelt, spellings = _spelling()
    for _ in range(2):
        folded = misspelt.sub(lambda match: spellings[match.group()], folded)
    folded = _APART.sub(" ", with_digits(_graded(folded)))
    folded = _RUN_TOGETHER.sub(
        lambda match: f"{match.group()} " if _is_particle(match.group()) else match.group(), folded
    )
    folded = _ADNOMINAL_NOUN.sub(lambda match: f"{match.group()} ", folded)
    text = re.sub(r"[\"'“”‘’「」『』()\[\]<>《》·/:~]", " ", folded)
    text = " ".join(wording.chatter.sub(" ", text).split()).strip(" ,.!?;")
    compact = re.sub(r"[^가-힣a-z0-9]", "", text)
    whether = bool(_WHETHER.search(text)) or bool(_INDIRECT.search(folded))
    who = [role for pattern, role in _WHO_ROLES if pattern.search(text)][:1]
    places = [place for place_pattern, place in _PLACES if place_pattern.search(text)]
    text, by = re.subn(r"에 ?의(?:해서?|하여)(?![가-힣])", "에의해 ", text)
    text, numbers = korean_numbers(text)
    text, aspects, asked_units = _aspects(text, wording, whether=whether)
    text, markers = _marked(text, wording)
    reader = _Reader(wording)
    reader.read(text)
    units, passive, directed = _directed(_with_phrases(reader.units, wording)), reader.passive, reader.directed
    statements = {
        "number": numbers,
        "marker": sorted([*markers, *reader.markers]),
        "asked": sorted(asked_units),
        "who": [] if who == ["by"] else who,
        "direction": sorted(directed),
        "place": places,
        "scope": sorted(reader.scopes),
    }
    filled = tuple((kind, tuple(values)) for kind, values in statements.items() if values)
    passive = passive or by > 0 or who == ["by"]
    return Reading("ko", compact, filled, aspects, tuple(units), passive, subjects=reader.subjects)


def _graded(text: str) -> str:
    """The text with grades in Latin letters, and their signs as words, so that B+, B and B- differ."""

    def spelt(match: re.Match[str]) -> str:
        letter = match["latin"] or _GRADE_LETTERS[match["hangul"]]
        return f"{letter}{'plus' if match['sign'] in {'+', '플러스'} else 'minus'} "

    return _F.sub("f", _GRADE.sub(spelt, text))


def _aspects(text: str, wording: Wording, *, whether: bool) -> tuple[str, frozenset[str], list[str]]:
    """The text with the wordings of what is asked as marks, the aspects, and the counters of 몇."""
    spelt = letters(text)
    counters: list[str] = []
    for name, aspect_pattern in wording.aspects:
        spelt = aspect_pattern.sub(f" ⟦{name}⟧ ", spelt)
    text = unicodedata.normalize("NFC", spelt)
    aspects = set(re.findall(r"⟦([a-z_]+)⟧", text)) - {"number"}
    if "count" in aspects:
        counters = [_counter(counter) for counter in re.findall(r"⟦count⟧\s*([가-힣]+)", text)]
        text = _COUNTED.sub(r"\1 ", text)
    if "which_case" in aspects:
        aspects = (aspects - {"which_case", "when"}) | {"which"}
    if aspects & {"deadline", "advance", "speed"}:
        aspects -= {"limit"}
    if "deadline" in aspects or "limit" in aspects:
        aspects -= {"when"}
    if aspects & {"limit", "duration", "count", "percent", "deadline", "frequency", "way", "when"}:
        aspects -= {"amount"}
    if "sum" in aspects:
        aspects = (aspects - {"sum"}) | {"amount"}
    if len(aspects) > 1:
        aspects -= {"which", "whether"}
    if aspects == {"which_of"}:
        aspects = {"which"}
    if aspects == {"whether"} or (not aspects and whether):
        return text, frozenset({"whether"}), counters
    return text, frozenset(aspects or {"which"}), counters


_COUNTERS = {"번": "회", "살": "세", "차": "회", "인": "명", "사": "명", "분": "명"}


def _counter(written: str) -> str:
    for word in ("학기", "학점", "과목", "학년", "퍼센트", "차례", "사람", "가지", "시간"):
        if written.startswith(word):
            return {"차례": "회", "사람": "명"}.get(word, word)
    return _COUNTERS.get(written[0], written[0])


def _marked(text: str, wording: Wording) -> tuple[str, list[str]]:
    spelt = letters(text)
    for name, marker_pattern in wording.markers:
        spelt = marker_pattern.sub(lambda match, name=name: f"{_stem_ending(match)} ⟦m_{name}⟧ ", spelt)  # type: ignore[misc]
    text = unicodedata.normalize("NFC", spelt)
    return text, [name.removesuffix("_next") for name in re.findall(r"⟦m_([a-z_]+)⟧", text)]


def _stem_ending(match: re.Match[str]) -> str:
    """다 for the stem of the verb that a marker leaves: 바꿀 수 있다 gives 바꾸다."""
    return letters("다") if match.group().startswith(_ON_STEM) else ""


class _Reader:
    """Turns the marked text of a question into units."""

    def __init__(self, wording: Wording) -> None:
        self._wording = wording
        self._group = 0
        self._negated = ""
        self.units: list[Unit] = []
        self.directed: list[str] = []
        self.scopes: list[str] = []
        self.markers: list[str] = []
        """Negations that no wording of the file interprets."""
        self.passive = False
        self._subjects = KoreanSubjects()

    @property
    def subjects(self) -> frozenset[str]:
        """All subjects of the clauses."""
        return frozenset(self._subjects.all)

    def read(self, text: str) -> None:
        """Read all tokens of the text."""
        before = ""
        for token in _TOKEN.findall(text):
            if token in _NEGATIONS:
                self._negate(token)
            elif not self._subjects.read_author(token):
                self._read(token, before)
            before = token

    def _negate(self, word: str) -> None:
        self._negated = _NEGATIONS[word]
        self.markers.append(self._negated)
        self._group += 1

    def _read(self, token: str, before: str) -> None:
        if token.startswith("⟦"):
            self._mark(token[1:-1])
            self._group += 1
        elif token in {",", ";", ".", "?", "!"}:
            self._group += 1
        elif (token in _BEFORE or token in _AFTER) and not self._is_attribute(token):
            self._direct("before" if token in _BEFORE else "after")
        elif token in _INSTEAD:
            self._direct("instead")
        elif token in self._wording.words["drop"] or _THING.fullmatch(token) or token in self._wording.words["copula"]:
            self._group += 1
            if self._negated and self.units:
                nouns = [unit for unit in self.units if unit.role in {"object", "subject"}]
                self._scope((nouns or self.units)[-1])
        elif token in SINGLE_PARTICLES and (before.startswith("⟦") or before.isascii()):
            if before.isascii() and not before.startswith("⟦") and self.units:
                self.units[-1] = replace(self.units[-1], role=SINGLE_PARTICLES[token])
        else:
            self._read_content(token, before)

    def _read_content(self, token: str, before: str) -> None:
        made, voice = read_token(token, self._wording, self._group)
        if made:
            verbal = voice is not None or made[-1].verb
            last = made[-2] if len(made) > 1 else self.units[-1] if self.units else None
            made[-1] = self._subjects.read(made[-1], token, last, verbal=verbal, previous=before)
        if voice is not None:
            self.passive = voice == "passive"
            if self._negated and made:
                self._scope(made[-1])
        self.units += made
        if (made and (made[-1].role not in {"", "of"} or token == f"{made[-1].text}도")) or voice is not None:
            self._group += 1

    def _is_attribute(self, token: str) -> bool:
        """Whether 이전 or 이후 describes the next word (이전 성적), as it does behind no bare noun."""
        return token in {"이전", "이후"} and not (
            self.units and self.units[-1].role == "" and self.units[-1].group == self._group
        )

    def _direct(self, when: str) -> None:
        if self.units:
            self.units[-1] = replace(self.units[-1], role=when)
        else:
            self.directed.append(when)
        self._group += 1

    def _mark(self, name: str) -> None:
        kind = name.removeprefix("m_")
        if kind.endswith("_next"):
            self._negated = kind.removesuffix("_next")
        elif kind in {"not", "only", "without", "except"} and self.units:
            self._negated = kind
            self._scope(self.units[-1])

    def _scope(self, unit: Unit) -> None:
        times = sum(other.text == unit.text for other in self.units)
        self.scopes.append(f"{self._negated} {min(unit.meanings)} {times if unit in self.units else times + 1}")
        self._negated = ""


def _directed(units: Sequence[Unit]) -> list[Unit]:
    """The units; a place beside a goal (에서 … 으로) is a beginning, and the words before a noun share its case."""
    goal = any(unit.role in {"into", "to", "until"} for unit in units)
    result: list[Unit] = []
    following: Unit | None = None
    for original in reversed(units):
        unit = original
        if unit.role == "done" and not (following is not None and following.party):
            unit = replace(unit, role="")
        if unit.role == "place":
            unit = replace(unit, role="from" if goal else "at")
        if (
            following is not None
            and unit.group == following.group
            and unit.role == ""
            and not unit.verb
            and following.role not in {"does", "done"}
        ):
            unit = replace(unit, role=following.role)
        result.append(unit)
        following = unit
    return result[::-1]


def _is_plain(units: Sequence[Unit]) -> bool:
    """Whether words have no case that a phrase would hide: 정년 전에 퇴직 is not 정년퇴직."""
    return all(unit.role in PLAIN_ROLES for unit in units)


def _with_phrases(units: Sequence[Unit], wording: Wording) -> list[Unit]:
    """The units with phrases of synonyms (학교 쉬다) as one unit each."""
    result: list[Unit] = []
    at = 0
    while at < len(units):
        for length in (3, 2):
            key = "".join(unit.text for unit in units[at : at + length])
            meanings = wording.phrases.get((key,))
            if meanings and at + length <= len(units) and _is_plain(units[at : at + length - 1]):
                last = units[at + length - 1]
                written = "".join(unit.written for unit in units[at : at + length])
                result.append(
                    replace(
                        last, text=key, written=written, meanings=meanings | {key}, known=True, soft=False, verb=False
                    )
                )
                at += length
                break
        else:
            result.append(units[at])
            at += 1
    return result
