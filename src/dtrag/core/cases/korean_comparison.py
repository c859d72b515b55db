"""Whether two Korean questions ask the same, given their readings."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

from dtrag.core.cases.hangul import letters
from dtrag.core.cases.korean_words import korean
from dtrag.core.cases.reading import Reading, Unit
from dtrag.core.cases.spelling_distance import distance
from dtrag.core.cases.subjects import exchanged_subject
from dtrag.core.cases.unit_matching import Match, matched, rebound, without_joined, without_repeated


class Synonyms(Protocol):
    """See `same_question.Synonyms`."""

    def knows(self, word: str) -> bool:
        """Whether the lexicon has this word, so that it is no typing error."""

    def official(self, words: Sequence[str]) -> Sequence[tuple[tuple[int, ...], frozenset[str]]]:
        """Positions in `words` that mean one thing -> the official words for it."""


_LENIENT_MARKERS = frozenset({"may", "must", "maximum"})
_EXPLICIT = frozenset({"subject", "object", "to", "from", "into", "until", "before", "after", "of", "at"})
LONG = 4
"""Syllables from which on one wrong letter is forgiven although neither word is known."""
MOST_EXPLAINED = 4
"""Unmatched words of a question up to which the lexicon is asked about them."""
_LIMITED = frozenset({"count", "amount", "duration", "deadline", "percent"})
_FREE = {
    "duration": {"걸리다", "소요", "되다", "기간"},
    "amount": {"되다", "금액", "돈", "비용"},
    "way": {"하다", "방법", "절차", "거치다", "밟다", "과정"},
    "who": {"담당", "사람", "대상", "맡다"},
    "deadline": {"기한", "마감"},
    "count": {"횟수", "인원", "수"},
    "percent": {"비율"},
    "why": {"사유", "때문"},
}


def difference(left: Reading, right: Reading, synonyms: Synonyms | None) -> str:
    """What makes two Korean questions different, as a short phrase; "" when they ask the same."""
    return _statements(left, right) or _units(left, right, synonyms)


def _statements(left: Reading, right: Reading) -> str:
    if left.aspects != right.aspects and not _quantity_noun(left, right) and not _time_limit(left, right):
        return f"asks something else: {'+'.join(sorted(left.aspects))} / {'+'.join(sorted(right.aspects))}"
    quantity = () if _quantity_noun(left, right) else ("asked",)
    for kind in ("number", *quantity, "direction", "scope"):
        here, there = left.values(kind), right.values(kind)
        if here != there:
            return f"{kind} differs: {', '.join(here) or 'none'} / {', '.join(there) or 'none'}"
    if left.values("who") != right.values("who") and left.passive == right.passive:
        return "whom it concerns differs"
    places = left.values("place"), right.values("place")
    if places[0] != places[1] and (all(places) or ("until",) in places):
        return "the direction that is asked for differs"
    strict = [
        sorted(mark for mark in reading.values("marker") if mark not in _LENIENT_MARKERS) for reading in (left, right)
    ]
    if strict[0] != strict[1]:
        return f"statement differs: {', '.join(strict[0]) or 'none'} / {', '.join(strict[1]) or 'none'}"
    return _modality(left, right)


def _time_limit(left: Reading, right: Reading) -> bool:
    """Whether one asks for the time limit (기한) and the other by when, within or before how many days."""
    noun, questions = {"limit"}, ({"deadline"}, {"speed"}, {"advance"})
    aspects = (set(left.aspects), set(right.aspects))
    return any(aspects in ((noun, question), (question, noun)) for question in questions)


def _quantity_noun(left: Reading, right: Reading) -> str:
    """The last noun of the one question (비율) if the other one asks for that quantity (몇 퍼센트); "" if not."""
    for with_noun, other in ((left, right), (right, left)):
        if with_noun.aspects != {"which"} or not with_noun.units:
            continue
        noun = with_noun.units[-1].text
        if _quantities().get(noun) == (" ".join(sorted(other.aspects)), *other.values("asked")):
            return noun
    return ""


@functools.cache
def _quantities() -> dict[str, tuple[str, ...]]:
    """Noun -> the aspect that asks for its quantity, and the counter after 몇."""
    return {noun: tuple(rest) for noun, *rest in (line.split() for line in korean().words["quantity_nouns"])}


@functools.cache
def _converse() -> frozenset[frozenset[str]]:
    """Pairs of verbs for the two sides of one action: 주다 and 받다."""
    return frozenset(frozenset(pair.split()) for pair in korean().words["converse"])


def _modality(left: Reading, right: Reading) -> str:
    here, there = set(left.values("marker")), set(right.values("marker"))
    must, may = ("must" in here, "must" in there), ("may" in here, "may" in there)
    clash = (must[0] and not must[1] and may[1]) or (must[1] and not must[0] and may[0])
    if clash or ("whether" in left.aspects and must[0] != must[1]):
        return "may or must differs"
    for question, own_marks, other_marks in ((left, here, there), (right, there, here)):
        if (
            "maximum" in own_marks
            and "maximum" not in other_marks
            and (not question.aspects & _LIMITED or "minimum" in other_marks or "may" not in other_marks | own_marks)
        ):
            return "only in one: a maximum"
    return ""


def _units(left: Reading, right: Reading, synonyms: Synonyms | None) -> str:
    voice = _voice(left, right)
    directed = any(unit.role in {"from", "to", "than"} for unit in (*left.units, *right.units))

    texts = {unit.text for unit in left.units}, {unit.text for unit in right.units}

    def similar(left_unit: Unit, right_unit: Unit) -> bool:
        if not _same_role(left_unit, right_unit, voice=voice, directed=directed):
            return False
        if frozenset({left_unit.text, right_unit.text}) in _converse():
            return False
        if left_unit.text == right_unit.text or left_unit.meanings & right_unit.meanings:
            return True
        return (
            left_unit.text not in texts[1]
            and right_unit.text not in texts[0]
            and _mistyped(left_unit, right_unit, synonyms)
        )

    pairs = matched(left.units, right.units, similar)
    left_rest = [at for at in range(len(left.units)) if at not in {here for here, _ in pairs}]
    right_rest = [at for at in range(len(right.units)) if at not in {there for _, there in pairs}]
    left_rest, right_rest = without_joined(left.units, right.units, left_rest, right_rest)
    left_rest, right_rest = without_repeated(left.units, left_rest), without_repeated(right.units, right_rest)
    if synonyms is not None and 0 < len(left_rest) <= MOST_EXPLAINED and 0 < len(right_rest) <= MOST_EXPLAINED:
        left_rest, right_rest = _without_synonyms(left, right, left_rest, right_rest, synonyms)
    free = {word for aspect in left.aspects | right.aspects for word in _FREE.get(aspect, ())}
    free |= {_quantity_noun(left, right)}
    return _unmatched((left.units, left_rest), (right.units, right_rest), free) or _order(
        left, right, pairs, voice=voice
    )


def _unmatched(left: tuple[Sequence[Unit], list[int]], right: tuple[Sequence[Unit], list[int]], free: set[str]) -> str:
    """A word without a partner that matters; `left` and `right` are the units and the unmatched positions."""
    hard = [
        [
            at
            for at in rest
            if (not _is_soft(units[at]) or _narrows(units, at)) and not {units[at].text, *units[at].meanings} & free
        ]
        for units, rest in (left, right)
    ]
    for verb in (False, True):
        contrast = [
            [units[at].text for at in rest if units[at].verb == verb and units[at].text not in free]
            for units, rest in (left, right)
        ]
        if contrast[0] and contrast[1]:
            return f"only in one: {contrast[0][0]}"
    first = [units[positions[0]].text for (units, _), positions in zip((left, right), hard, strict=True) if positions]
    scenes = all(
        _is_scene(units[at]) and not _narrows(units, at)
        for (units, _), positions in zip((left, right), hard, strict=True)
        for at in positions
    )
    return f"only in one: {first[0]}" if len(first) == 2 or not scenes else ""


def _is_soft(unit: Unit) -> bool:
    """Whether a word may be missing in the other question; none with a direction may."""
    return unit.soft and unit.role not in _EXACT_ROLES - {"if", "then", "during"} | _ATTRIBUTES | _DIRECTIONS


def _narrows(units: Sequence[Unit], at: int) -> bool:
    """Whether a person or place stands directly before the noun that it describes: 학교 버스."""
    following = units[at + 1] if at + 1 < len(units) else None
    return (
        units[at].party
        and following is not None
        and following.group == units[at].group
        and not (following.verb or following.soft)
    )


def _is_scene(unit: Unit) -> bool:
    """Whether a word only describes the situation, in a question that says more than the other one."""
    named = _EXACT_ROLES | _ATTRIBUTES | {"by", "from", "to"}
    return unit.text in korean().words["scene"] and unit.role not in named


_EXACT_ROLES = frozenset(
    {"before", "after", "than", "or", "if", "then", "during", "each", "like", "until", "only", "instead"}
)
_DIRECTIONS = frozenset({"into", "from", "to", "by"})
_ATTRIBUTES = frozenset({"does", "done", "received"})
"""초청한 강사 and 초청받은 강사."""
_NEUTRAL_ROLES = frozenset({"", "during", "at", "if", "then", "topic", "of", "object", "subject", "into"})


def _same_role(left: Unit, right: Unit, *, voice: int, directed: bool) -> bool:
    """Whether the cases of a word in the two questions agree; `voice` as `_voice`."""
    roles = {left.role, right.role}
    party = left.party or right.party
    if voice and party:
        active, passive = (left.role, right.role) if voice > 0 else (right.role, left.role)
        return passive in _IN_PASSIVE.get(active, {active}) or not passive
    if len(roles) == 1:
        return True
    if roles & (_EXACT_ROLES | _ATTRIBUTES):
        return roles <= _NEUTRAL_ROLES | _ATTRIBUTES and not ("does" in roles and roles & {"done", "received"})
    if roles & {"from", "to", "by"}:
        return bool(voice) and "by" in roles
    if "into" in roles:
        return not directed and not party and "subject" not in roles
    return not party or roles not in ({"subject", "object"}, {"topic", "object"})


_IN_PASSIVE = {
    "subject": frozenset({"by", "to", "from", "at"}),
    "topic": frozenset({"by", "to", "from", "at", "topic"}),
    "object": frozenset({"subject", "topic", "object"}),
    "to": frozenset({"subject", "topic", "to"}),
    "": frozenset({"", "topic", "subject", "object", "of", "at"}),
    "of": frozenset({"of", "", "subject", "topic"}),
}
"""Case of a person in an active question -> those that mean the same in a passive one."""


def _voice(left: Reading, right: Reading) -> int:
    """1 if only the right question is passive, -1 if only the left one is, 0 if both are alike."""
    return int(right.passive) - int(left.passive)


def _mistyped(left: Unit, right: Unit, synonyms: Synonyms | None) -> bool:
    """Whether two words are one word with a wrong letter. Words of two syllables need the vocabulary of a lexicon."""
    if left.verb or right.verb or min(len(left.text), len(right.text)) < (3 if synonyms is None else 2):
        return False
    if distance(letters(left.text), letters(right.text), 1) != 1:
        return False
    known = [unit.known or (synonyms is not None and synonyms.knows(unit.text)) for unit in (left, right)]
    if all(known) or (
        not any(known) and (min(len(left.text), len(right.text)) < LONG or left.text[0] != right.text[0])
    ):
        return False
    at = next(
        (at for at, pair in enumerate(zip(left.text, right.text, strict=False)) if pair[0] != pair[1]),
        len(left.text) - 1,
    )
    return not all(_is_part_known(unit.text, at, synonyms) for unit in (left, right))


def _is_part_known(word: str, at: int, synonyms: Synonyms | None) -> bool:
    """Whether the syllable at a place is within a known word (학사 in 학사과정), so that it is no typing error."""
    vocabulary = korean().known
    parts = (
        word[start:end] for start in range(max(0, at - 3), at + 1) for end in range(max(at + 1, start + 2), at + 5)
    )
    return any(part in vocabulary or (synonyms is not None and synonyms.knows(part)) for part in parts)


def _without_synonyms(
    left: Reading, right: Reading, left_rest: Sequence[int], right_rest: Sequence[int], synonyms: Synonyms
) -> tuple[list[int], list[int]]:
    """The unmatched units without those that the lexicon explains by official words of the other side."""
    here, there = list(left_rest), list(right_rest)
    for own_question, other_question, rest, own_remaining, other_remaining in (
        (left, right, left_rest, here, there),
        (right, left, right_rest, there, here),
    ):
        explained = synonyms.official([own_question.units[at].written for at in rest])
        for numbers, official in sorted(explained, key=lambda pair: -len(pair[0])):
            positions = [rest[number] for number in numbers]
            partner = next((at for at in other_remaining if other_question.units[at].text in official), None)
            if partner is not None and set(positions) <= set(own_remaining):
                other_remaining.remove(partner)
                for at in positions:
                    own_remaining.remove(at)
    return here, there


def _order(left: Reading, right: Reading, pairs: Sequence[Match], *, voice: int) -> str:
    """Whether two things change places within a run of words, or two persons their cases."""
    if exchanged := exchanged_subject(left, right, pairs):
        return f"who does it differs: {exchanged}"
    changed = [
        left.units[at].text
        for at, place in pairs
        if left.units[at].party
        and left.units[at].role != right.units[place].role
        and {left.units[at].role, right.units[place].role} & {"subject", "object", "to", "from"}
    ]
    if len(changed) > 1 and not voice:
        return f"who does what differs: {', '.join(changed[:2])}"
    if moved := rebound(left.units, right.units, pairs):
        return f"belongs to another word: {moved}"
    if moved := _moved_clause(left, right, pairs):
        return f"belongs to another clause: {moved}"
    for number, (at, place) in enumerate(pairs):
        for later, later_place in pairs[number + 1 :]:
            unit, later_unit = left.units[at], left.units[later]
            partner, later_partner = right.units[place], right.units[later_place]
            if (
                place > later_place
                and unit.text != later_unit.text
                and _is_exchange(unit, later_unit, partner, later_partner, voice=voice)
            ):
                return f"order differs: {unit.text}, {later_unit.text}"
    return ""


def _moved_clause(left: Reading, right: Reading, pairs: Sequence[Match]) -> str:
    """A word with a case that stands in the clause of another verb than its partner does."""
    partners = dict(pairs)
    for at, place in pairs:
        left_unit, right_unit = left.units[at], right.units[place]
        if left_unit.role not in _OF_A_CLAUSE or right_unit.role not in _OF_A_CLAUSE:
            continue
        here, there = _clause_end(left.units, at), _clause_end(right.units, place)
        if here in partners and there in partners.values() and partners[here] != there:
            return left_unit.text
    return ""


_OF_A_CLAUSE = frozenset({"before", "after", "from", "to", "into", "until", "object"})
_CLAUSE_ENDS = frozenset({"if", "then"})


def _clause_end(units: Sequence[Unit], at: int) -> int:
    """The position of the next verb, or of a noun with one (신청하고); -1 without one."""
    following = range(at + 1, len(units))
    return next((place for place in following if units[place].verb or units[place].role in _CLAUSE_ENDS), -1)


def _is_exchange(unit: Unit, later_unit: Unit, partner: Unit, later_partner: Unit, *, voice: int) -> bool:
    """Whether two words have exchanged their parts; their partners are in the other order."""
    if unit.group == later_unit.group and partner.group == later_partner.group:
        return True
    changed = (unit.role != partner.role) + (later_unit.role != later_partner.role)
    if unit.verb or later_unit.verb:
        return changed == 2 and not voice
    if (changed == 2 or (changed and unit.party and later_unit.party)) and not voice:
        return True
    return unit.role == later_unit.role == partner.role == later_partner.role and unit.role in _EXPLICIT
