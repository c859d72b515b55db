"""Interprets a Korean question for the comparison with another one."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dtrag.core.cases.hangul import letters, parts, pattern, verb_table, verbs_of
from dtrag.core.cases.quantities import korean_numbers
from dtrag.core.cases.reading import Reading, Unit
from dtrag.core.cases.unit_matching import PLAIN_ROLES
from dtrag.core.cases.wording import Wording, listed, raw_wording

_PARTICLES_OF_ROLES = {
    "by": ("에의해"),
    "from": ("에게서는 한테서는 으로부터 에서부터 로부터 에게서 한테서 부터는 부터"),
    "to": ("에게는 한테는 에게도 한테도 에게만 에게 한테 께"),
    "subject": ("께서는 께서 이 가"),
    "place": ("에서의 에서는 에서도 에서"),
    "at": ("에는 에도 에의 엔 에"),
    "": (
        "으로서 로서 마다 이라도 이라는 이란 란 이요 요 이며 인데요 인데 인가요 인가 인지 인지요 입니까 입니다 "
        "이에요 이예요 예요 이죠 일까요 이었나요 이야 이냐 이지요 이라고 라고 도 들 님 씩 당 시 때 측"
    ),
    "into": ("으로써 로써 으로는 으로도 으로의 로의 로는 로도 으로 로"),
    "until": ("까지는 까지도 까지의 까지"),
    "than": ("보다"),
    "or": ("이나 나"),
    "only": ("만"),
    "with": ("이랑 랑 하고 와 과 와의 과의"),
    "like": ("처럼 같은"),
    "if": ("이면 이라면"),
    "topic": ("은 는"),
    "object": ("을 를"),
    "of": ("의"),
    "each": ("별"),
    "during": ("중"),
}
_PARTICLES = tuple((particle, role) for role, line in _PARTICLES_OF_ROLES.items() for particle in line.split())
_BY_LENGTH = sorted(_PARTICLES, key=lambda pair: -len(pair[0]))
_PLURAL = re.compile(r"(?<=[가-힣]{2})들$")
_VERBAL = re.compile(
    r"(?P<noun>[가-힣a-z0-9]{2,}?)(?P<voice>하|되|받|당하|시키|한|할|함|합|해|했|된|될|됨|됩|돼|됐|시킨|시킬|시켜|당한|당할|당해|드리|드려)"
    r"(?P<rest>[가-힣]*)"
)
_REST = re.compile(
    r"(?:으|시|셨|세|었|았|였|겠|여|어)*(?:려(?:면|고|는|는데|던)(?:요)?|러|면(?:은|서)?|나요?"
    r"|는(?:지|가|데|다|다면|다고|거|건|게|것)?(?:요|는|를|도)?|은(?:지|가|데)?(?:요)?"
    r"|을(?:지|까)?(?:요|도)?|까(?:요)?|니까?|니다|냐|요|죠|지(?:요|만|도|는)?|고(?:서|는|도|요|자)?|며"
    r"|서(?:는|도)?|야(?:만|지)?|도|던|다(?:가|는|고|면|며)?|습니(?:까|다)|기(?:가|는|를|만|도|로|에|까지|위해|위해서|전|전에|전까지)?"
    r"|게(?:요|끔)?|도록|자(?:마자)?|거나|든지?|음(?:은|을|이)?|세요|십니까|라(?:고|는|면)?|지요|데(?:요)?|지|면|서류|후|후에|때|때는|때의|시|경우|사람(?:은|이|을)?)?"
)
_BEFORE = frozenset(("전", "전에", "전까지", "전에는", "이전", "이전에", "전의", "전에도", "앞서", "직전", "직전에"))
_INSTEAD = frozenset(("대신", "대신에", "대신해", "대신해서", "대신으로"))
_AFTER = frozenset(
    ("후", "후에", "뒤", "뒤에", "이후", "이후에", "후의", "후에는", "후에도", "나서", "다음에",
     "후부터", "뒤에는", "뒤에도", "이후로", "이후의", "직후", "직후에")
)  # fmt: skip
_ATTACHED = re.compile(r"(?P<noun>[가-힣]{2,})(?P<when>전|후)(?P<rest>에|에는|까지|의|에도|부터)?")
_RUN_TOGETHER = re.compile(r"[가-힣]{2}(?:[을를](?=[가-힣]{2})|[이가은는](?=[있없]))")
"""An object written together with its verb: 허락을받아야."""
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
    r"(?:나요?|까요?|가요|죠|지요?|니|냐|는지요?|은지요?|인지요?|을지요?|어요?|아요?|해요?|돼요?|되요|예요|에요|여부|니까|는가|은가|이야|이냐|음|임|됨|함)(?=\s*(?:[,.?!]|$))"
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
    letters("지 "),
    letters("지않"),
    letters("지안"),
    letters("지못"),
    letters("지는"),
    letters("지도"),
)
_ATTRIBUTE = re.compile(r"(한|하는|할|했던|하던|된|되는|될|됐던|되던|받은|받는|받을|당한|당하는|당할)$")
_PASSIVE_FORMS = frozenset(("된", "되는", "될", "됐던", "되던", "받은", "받는", "받을", "당한", "당하는", "당할"))
_BY = "에의해"
_PASSIVE = "되된될됨됩돼됐받당"
_SINGLE = {particle: role for particle, role in _PARTICLES if len(particle) <= 2}
_WHO_ROLES = (
    (re.compile(r"누구(?:에게서|한테서|로부터)|누구에 ?의"), "by"),
    (re.compile(r"누구(?:에게|한테|께)"), "to"),
    (re.compile(r"누구(?:를|랑|와|하고)"), "object"),
)


@functools.cache
def korean() -> Wording:
    """The Korean wording. Blocking: reads a small file once."""
    raw = raw_wording("ko")
    words = {name: frozenset(listed(text)) for name, text in raw["words"].items() if name != "spelling"}
    phrases: dict[tuple[str, ...], set[str]] = {}
    for members in map(listed, raw["synonyms"]):
        for member in members:
            for form in (
                member,
                re.sub(r"(?<=[가-힣]{2})[을를로](?=[가-힣]{2})|(?<=^[가-힣])[을를](?=[가-힣]{2})", "", member),
            ):
                phrases.setdefault((form,), set()).add(members[0])
    known = {form for (form,) in phrases}.union(*words.values()) - {""}
    return Wording(
        {form: frozenset(names) for form, names in phrases.items()},
        max(len(form) for (form,) in phrases),
        tuple((name, _either(patterns)) for name, patterns in raw["aspects"].items()),
        tuple((name, _either(patterns)) for name, patterns in raw["markers"].items()),
        re.compile("|".join(f"(?:{text})" for text in raw["chatter"])),
        words,
        frozenset(known),
    )


def _either(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern(text)})" for text in patterns))


@functools.cache
def _spelling() -> tuple[re.Pattern[str], Mapping[str, str]]:
    pairs = dict(pair.split(" ", 1) for pair in listed(raw_wording("ko")["words"]["spelling"]))
    return re.compile("|".join(sorted(map(re.escape, pairs), key=len, reverse=True))), pairs


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
    folded = _RUN_TOGETHER.sub(
        lambda match: f"{match.group()} " if _is_particle(match.group()) else match.group(), folded
    )
    folded = _ADNOMINAL_NOUN.sub(lambda match: f"{match.group()} ", folded)
    text = re.sub(r"[\"'“”‘’「」『』()\[\]<>《》·/:~]", " ", folded)
    text = " ".join(wording.chatter.sub(" ", text).split()).strip(" ,.!?;")
    compact = re.sub(r"[^가-힣a-z0-9]", "", text)
    whether = bool(_WHETHER.search(text)) or bool(_INDIRECT.search(folded))
    who = [role for pattern, role in _WHO_ROLES if pattern.search(text)][:1]
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
        "scope": sorted(reader.scopes),
    }
    filled = tuple((kind, tuple(values)) for kind, values in statements.items() if values)
    return Reading("ko", compact, filled, aspects, tuple(units), passive or by > 0 or who == ["by"])


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

    def read(self, text: str) -> None:
        """Read all tokens of the text."""
        before = ""
        for token in _TOKEN.findall(text):
            if token in _NEGATIONS:
                self._negate(token)
            else:
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
        elif token in _SINGLE and (before.startswith("⟦") or before.isascii()):
            if before.isascii() and not before.startswith("⟦") and self.units:
                self.units[-1] = replace(self.units[-1], role=_SINGLE[token])
        else:
            made, voice = _read_token(token, self._wording, self._group)
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


def _read_token(token: str, wording: Wording, group: int) -> tuple[list[Unit], str | None]:
    """The units of a written word, and its voice if it is a verb."""
    attached = _ATTACHED.fullmatch(token)
    if attached and token not in wording.known and attached["noun"] in wording.known:
        when = "before" if attached["when"] == "전" else "after"
        return [_unit(attached["noun"], wording, group, written=token, role=when)], None
    if token.endswith(_BY):
        return _noun(token, wording, group)
    if token in wording.known:
        return ([], None) if token in wording.words["drop"] else (_split(token, token, "", wording, group), None)
    return _native_verb(token, wording, group) or _verbal_noun(token, wording, group) or _noun(token, wording, group)


def _native_verb(token: str, wording: Wording, group: int) -> tuple[list[Unit], str] | None:
    verbs = verbs_of(token, _table())
    if not verbs:
        return None
    unit = _unit(
        verbs[0],
        wording,
        group,
        written=token,
        role=_clause(token),
        also=[verb for verb in verbs[1:] if len(verb) == len(verbs[0])],
    )
    noun, _ = _stripped(token)
    if noun != token and noun in wording.known:
        unit = replace(unit, meanings=unit.meanings | {noun})
    return [unit], "passive" if verbs[0] in {"받다", "당하다"} else "active"


def _clause(token: str) -> str:
    """How a verb is joined to what follows: a condition (하면), a sequence (하고, 해서), an attribute (하는, 받은)."""
    if token.endswith(("면", "면은", "경우", "때", "시")):
        return "if"
    if attributive := _ATTRIBUTE.search(token):
        received = attributive[1].startswith(("받", "당"))
        return "received" if received else "done" if attributive[1] in _PASSIVE_FORMS else "does"
    return "then" if token.endswith(("고", "고서", "서", "아서", "어서")) else ""


def _verbal_noun(token: str, wording: Wording, group: int) -> tuple[list[Unit], str] | None:
    """A noun with 하다, 되다, 받다 or 시키다."""
    verbal = _VERBAL.fullmatch(token)
    if verbal is None or not _REST.fullmatch(verbal["rest"]):
        return None
    stem = _PLURAL.sub("", verbal["noun"])
    voice = "passive" if verbal["voice"][0] in _PASSIVE else "active"
    return ([] if stem in wording.words["drop"] else _split(stem, token, _clause(token), wording, group)), voice


def _noun(token: str, wording: Wording, group: int) -> tuple[list[Unit], None]:
    stem, role = _stripped(token)
    if role and len(token) >= 4 and token[-2:] in wording.words["tails"]:
        stem, role = token, ""
    return ([] if stem in wording.words["drop"] else _split(stem, token, role, wording, group)), None


@functools.cache
def _table() -> Mapping[str, str]:
    return verb_table(korean().words["verbs"])


@functools.lru_cache(20_000)
def _stripped(token: str) -> tuple[str, str]:
    """A written word without its particles, and the role that they give it."""
    wording = korean()
    stem, role = token, ""
    for _ in range(3):
        for particle, meaning in _BY_LENGTH:
            if not stem.endswith(particle):
                continue
            rest = stem[: -len(particle)]
            if particle in {"과", "의", "도", "가", "이"} and _ends_in_tail(stem, particle):
                continue
            if len(rest) >= 2 or rest in wording.words["one_syllable"]:
                stem, role = rest, role or meaning
                break
        else:
            break
        if stem in wording.known:
            break
    return _PLURAL.sub("", stem), role


def _ends_in_tail(stem: str, particle: str) -> bool:
    """Whether a compound ends with a common noun of which the apparent particle is a part: 감사결과."""
    tails = korean().words["tails"]
    return len(stem) >= 4 and any(
        stem.endswith(tail) and tail.endswith(particle) for tail in (stem[-2:], stem[-3:]) if tail in tails
    )


def _split(stem: str, token: str, role: str, wording: Wording, group: int) -> list[Unit]:
    """The units of a noun; a compound is split before a common last noun."""
    if stem not in wording.known and len(stem) >= 4:
        for length in (4, 3, 2):
            head, tail = stem[:-length], stem[-length:]
            if len(head) >= 2 and tail in wording.words["tails"]:
                return [*_split(head, head, "", wording, group), _unit(tail, wording, group, role=role)]
    return [_unit(stem, wording, group, role=role, also=(token,) if token != stem else ())]


def _unit(
    stem: str, wording: Wording, group: int, *, written: str = "", role: str = "", also: Sequence[str] = ()
) -> Unit:
    meanings = {stem, *also} | wording.phrases.get((stem,), frozenset())
    for other in also:
        meanings |= wording.phrases.get((other,), frozenset())
    words = wording.words
    person = stem.removesuffix("님")
    return Unit(
        stem,
        written or stem,
        frozenset(meanings),
        role=role,
        known=stem in wording.known,
        soft=stem in words["soft"],
        party=person in words["parties"] or any(person.endswith(ending) for ending in words["party_endings"]),
        verb=stem in words["verbs"],
        group=group,
    )


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
