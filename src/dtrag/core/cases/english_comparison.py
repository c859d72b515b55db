"""Whether two English questions ask the same, given their readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtrag.core.cases.reading import Reading, Unit
from dtrag.core.cases.spelling_distance import allowed_errors, distance
from dtrag.core.cases.subjects import exchanged_subject
from dtrag.core.cases.unit_matching import Match, matched, rebound, without_joined, without_repeated

_LENIENT_MARKERS = frozenset({"may", "must", "maximum", "any", "also", "during"})
_QUANTITIES = frozenset({"all", "only", "some", "both", "either", "any"})
_LIMITED = frozenset({"count", "amount", "duration", "frequency", "deadline", "advance"})
_FREE_VERBS = {
    "duration": {"last", "take", "run", "go", "stay", "valid"},
    "amount": {"cost", "pay", "price", "amount"},
    "where": {"find", "locat", "go", "place"},
    "when": {"happen", "due", "date", "arriv", "come", "time"},
    "way": {"work", "proceed", "procedur", "process"},
    "who": {"respons", "person", "charg"},
    "which": {"list", "kind", "type", "exist", "sort"},
    "deadline": {"deadlin", "due", "latest", "date", "time"},
}


def difference(left: Reading, right: Reading) -> str:
    """What makes two English questions different, as a short phrase; "" when they ask the same."""
    return _statements(left, right) or _units(left, right)


def _statements(left: Reading, right: Reading) -> str:
    if left.aspects != right.aspects and not (_same_request(left, right) or _same_request(right, left)):
        return f"asks something else: {'+'.join(sorted(left.aspects))} / {'+'.join(sorted(right.aspects))}"
    kinds = {kind for kind, _ in (*left.statements, *right.statements)} - {
        "marker",
        "during…",
        "who",
        "inverted",
        "sequence",
        "counted",
    }
    for kind in sorted(kinds):
        here, there = left.values(kind), right.values(kind)
        if kind == "number" and sorted(here) == sorted(there) and _counts_the_same(left, right):
            continue
        if here != there and not (kind.endswith("…") and kind != "not…" and len(here) == len(there) == 0):
            return f"{kind.rstrip('…')} differs: {_listed(here)} / {_listed(there)}"
    here, there = left.values("marker"), right.values("marker")
    strict_here = [mark for mark in here if mark not in _LENIENT_MARKERS]
    strict_there = [mark for mark in there if mark not in _LENIENT_MARKERS]
    if strict_here != strict_there:
        return f"statement differs: {_listed(strict_here)} / {_listed(strict_there)}"
    persons = any(unit.party or unit.name for unit in (*left.units, *right.units))
    if left.values("who") != right.values("who") and (persons or left.passive != right.passive):
        return "who it is done to differs"
    return _moved_number(left, right) or _modality(left, right) or _limits(left, right)


def _counts_the_same(left: Reading, right: Reading) -> bool:
    """Whether each number stands before the same word, another one for each, whatever their order."""
    here, there = left.values("counted"), right.values("counted")
    counted = {value.rsplit(" ", 1)[1] for value in here}
    return len(counted) == len(here) == len(left.values("number")) and here == there


def _moved_number(left: Reading, right: Reading) -> str:
    """A number that counts another thing: 2 managers of one trip, a manager of 2 trips."""
    texts = [{unit.text for unit in reading.units} for reading in (left, right)]
    here, there = (dict(value.rsplit(" ", 1) for value in reading.values("counted")) for reading in (left, right))
    for number in sorted(here.keys() & there.keys()):
        left_text, right_text = here[number], there[number]
        if left_text != right_text and left_text in texts[1] and right_text in texts[0]:
            return f"number belongs to another word: {number}"
    return ""


def _same_request(left: Reading, right: Reading) -> bool:
    """Whether two wordings ask for one thing: a deadline and when it must be, a time limit, a limit and how much."""
    here, there = left.values("marker"), right.values("marker")
    if left.aspects == {"deadline"}:
        return right.aspects == {"when"} and "must" in there
    if left.aspects == {"time_limit"}:
        return right.aspects in ({"deadline"}, {"speed"}, {"advance"})
    return left.aspects == {"which"} and right.aspects == {"amount"} and "maximum" in here and bool(_CAN & {*there})


_CAN = frozenset({"may", "maximum"})


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or "none"


def _modality(left: Reading, right: Reading) -> str:
    here, there = set(left.values("marker")), set(right.values("marker"))
    negated = "not" in here
    must_here, must_there = "must" in here, "must" in there
    may_here, may_there = "may" in here, "may" in there
    clash = (must_here and not must_there and may_there and not may_here) or (
        must_there and not must_here and may_here and not may_there
    )
    strict = negated or "whether" in left.aspects
    if clash or (strict and must_here != must_there) or (negated and may_here != may_there):
        return "may or must differs"
    return ""


def _limits(left: Reading, right: Reading) -> str:
    for limited, other in ((left, right), (right, left)):
        limited_marks, other_marks = limited.values("marker"), set(other.values("marker"))
        if (
            "maximum" in limited_marks
            and "maximum" not in other_marks
            and not (limited.aspects & _LIMITED and "may" in other_marks and "minimum" not in other_marks)
        ):
            return "only in one: a maximum"
        if "any" in limited_marks and not {"any"} & other_marks and other_marks & _QUANTITIES:
            return "quantity differs"
    return ""


_NEUTRAL = frozenset({"", "~"})


def _same_direction(left: Unit, right: Unit, *, passive: bool) -> bool:
    """Whether the prepositions before a word agree; of and for count as none."""
    roles = {left.role, right.role} - {"~"} | ({""} if "~" in {left.role, right.role} else set())
    if len(roles) == 1:
        return True
    if roles <= {"", "by"}:
        return passive or not (left.party or right.party)
    return roles <= {"", "between", "against", "above", "below", "over", "across"} and not (left.party or right.party)


def _mistyped(left: Unit, right: Unit) -> bool:
    left_word, right_word = left.written, right.written
    if (
        (left.known and right.known)
        or not (left_word.isalpha() and right_word.isalpha())
        or left_word[0] != right_word[0]
    ):
        return False
    errors = allowed_errors(left_word, right_word)
    if left.known or right.known:
        return (
            distance(left_word, right_word, errors) <= errors or distance(left.text, right.text, errors) <= errors > 0
        )
    if left.name or right.name or min(len(left_word), len(right_word)) < 7 or left_word[-2:] != right_word[-2:]:
        return False
    return distance(left_word, right_word, 1) <= 1


def _units(left: Reading, right: Reading) -> str:
    passive = left.passive != right.passive

    texts = {unit.text for unit in left.units}, {unit.text for unit in right.units}

    def similar(left_unit: Unit, right_unit: Unit) -> bool:
        if not _same_direction(left_unit, right_unit, passive=passive):
            return False
        if left_unit.text == right_unit.text or left_unit.meanings & right_unit.meanings:
            return True
        return left_unit.text not in texts[1] and right_unit.text not in texts[0] and _mistyped(left_unit, right_unit)

    pairs = matched(left.units, right.units, similar)
    left_rest = _unmatched(left.units, {at for at, _ in pairs})
    right_rest = _unmatched(right.units, {place for _, place in pairs})
    left_rest, right_rest = without_joined(left.units, right.units, left_rest, right_rest)
    left_rest, right_rest = without_repeated(left.units, left_rest), without_repeated(right.units, right_rest)
    free = {word for aspect in left.aspects for word in _FREE_VERBS.get(aspect, ())}
    needed = "must" in left.values("marker"), "must" in right.values("marker")
    rests = [[units[at] for at in rest] for units, rest in ((left.units, left_rest), (right.units, right_rest))]
    hard = [
        unit
        for rest in rests
        for unit in rest
        if (not unit.soft or (needed[0] != needed[1] and "receive" in unit.meanings)) and unit.text not in free
    ]
    if not hard and all(any(unit.text not in free for unit in rest) for rest in rests):
        hard = rests[0]
    if hard:
        return f"only in one: {hard[0].written}"
    if exchanged := exchanged_subject(left, right, pairs):
        return f"who does it differs: {exchanged}"
    return _persons(left, right, pairs) or _order(left, right, pairs)


def _unmatched(units: Sequence[Unit], used: set[int]) -> list[int]:
    return [at for at in range(len(units)) if at not in used]


def _persons(left: Reading, right: Reading, pairs: Sequence[Match]) -> str:
    if left.speaker == right.speaker:
        return ""
    for at, place in pairs:
        left_unit, right_unit = left.units[at], right.units[place]
        if left_unit.party and (left_unit.role or _function(left, at)) != (right_unit.role or _function(right, place)):
            return f"who does it differs: {left_unit.written}"
    return ""


def _function(reading: Reading, at: int) -> str:
    """Whether a unit comes before or after the first verb; in a passive sentence the other way round."""
    role = reading.units[at].role
    if role:
        return "subject" if role == "by" and reading.passive else role
    verbs = [place for place, unit in enumerate(reading.units) if unit.verb]
    if not verbs:
        return ""
    before = at < verbs[0]
    return "subject" if before != reading.passive else "object"


def _order(left: Reading, right: Reading, pairs: Sequence[Match]) -> str:
    """Whether persons change between subject and object, or two things change places."""
    swapped = []
    same_verb = any(left.units[at].verb and not left.units[at].soft for at, _ in pairs)
    if same_verb and left.values("inverted") != right.values("inverted"):
        return "what it is done to differs"
    for at, place in pairs:
        if left.units[at].verb:
            continue
        here, there = _function(left, at), _function(right, place)
        if {here, there} == {"subject", "object"}:
            if left.units[at].party:
                return f"who does what differs: {left.units[at].written}"
            swapped.append((here, left.units[at].written))
    if len({function for function, _ in swapped}) == 2:
        return f"order differs: {swapped[0][1]}, {swapped[1][1]}"
    if moved := rebound(left.units, right.units, pairs):
        return f"belongs to another word: {moved}"
    return _exchanged(left, right, pairs)


def _exchanged(left: Reading, right: Reading, pairs: Sequence[Match]) -> str:
    """Whether two words change places."""
    ordered = bool(left.values("sequence") or right.values("sequence"))
    listed = any(len(left.values(kind)) > 1 for kind in ("number", "date"))
    for (at, place), (later, later_place) in _following(pairs):
        unit, later_unit, partner, later_partner = (
            left.units[at],
            left.units[later],
            right.units[place],
            right.units[later_place],
        )
        if place < later_place or unit.text == later_unit.text:
            continue
        verbs = unit.verb and later_unit.verb
        between = any(at < here < later and later_place < there < place for here, there in pairs)
        if (verbs and (ordered or between)) or (listed and left.values("number") == right.values("number")):
            return f"order differs: {unit.written}, {later_unit.written}"
        if unit.verb or later_unit.verb:
            continue
        if unit.group == later_unit.group and partner.group == later_partner.group:
            return f"order differs: {unit.written}, {later_unit.written}"
        changed = (unit.role != partner.role) + (later_unit.role != later_partner.role)
        persons = unit.party and later_unit.party and left.passive == right.passive
        if changed == 2 or (persons and not (unit.role and later_unit.role)):
            return f"order differs: {unit.written}, {later_unit.written}"
    return ""


def _following(pairs: Sequence[Match]) -> Iterator[tuple[Match, Match]]:
    for number, first in enumerate(pairs):
        for second in pairs[number + 1 :]:
            yield first, second
