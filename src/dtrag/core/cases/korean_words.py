"""Reads one written word of a Korean question: its stem, its particle or ending, and its synonyms."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dtrag.core.cases.hangul import pattern, verb_table, verbs_of
from dtrag.core.cases.reading import Unit
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
    r"|게(?:요|끔)?|도록|더라도|자(?:마자)?|거나|든지?|음(?:은|을|이)?|세요|십니까|라(?:고|는|면)?|지요|데(?:요)?|지|면|서류|후|후에|때|때는|때의|시|경우|사람(?:은|이|을)?)?"
)
_ATTACHED = re.compile(r"(?P<noun>[가-힣]{2,})(?P<when>전|후)(?P<rest>에|에는|까지|의|에도|부터)?")
_ATTRIBUTE = re.compile(r"(한|하는|할|했던|하던|된|되는|될|됐던|되던|받은|받는|받을|당한|당하는|당할)$")
_PASSIVE_FORMS = frozenset(("된", "되는", "될", "됐던", "되던", "받은", "받는", "받을", "당한", "당하는", "당할"))
_BY = "에의해"
_PASSIVE = "되된될됨됩돼됐받당"
SINGLE_PARTICLES = {particle: role for particle, role in _PARTICLES if len(particle) <= 2}


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


def read_token(token: str, wording: Wording, group: int) -> tuple[list[Unit], str | None]:
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
def _party_endings() -> tuple[str, ...]:
    return tuple(korean().words["party_endings"])


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
            if particle in {"과", "의", "도", "가", "이", "당"} and _ends_in_tail(stem, particle):
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
    if stem.endswith("위원회의"):
        return False
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
        party=person in words["parties"] or person.endswith(_party_endings()),
        verb=stem in words["verbs"],
        group=group,
    )
