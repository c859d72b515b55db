"""Matches the content words of two questions one to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dtrag.core.cases.hangul import letters
from dtrag.core.cases.reading import Unit
from dtrag.core.cases.spelling_distance import distance

Similar = Callable[[Unit, Unit], bool]
Match = tuple[int, int]
PLAIN_ROLES = frozenset({"", "~", "object", "subject", "topic", "of", "at", "into"})
"""Cases that a compound of the words does not show; it would hide 전 or 에서."""
LONG = 4
"""Syllables of a compound from which on one wrong letter is forgiven."""


def matched(left: Sequence[Unit], right: Sequence[Unit], similar: Similar) -> list[Match]:
    """A largest one-to-one matching of similar units, as positions (Kuhn 1955)."""
    partners: dict[int, int] = {}
    choices = [
        sorted(
            (place for place, other in enumerate(right) if similar(unit, other)),
            key=lambda place, unit=unit, at=at: (  # type: ignore[misc]
                right[place].role != unit.role,
                right[place].text != unit.text,
                abs(place - at),
            ),
        )
        for at, unit in enumerate(left)
    ]

    def place_unit(at: int, tried: set[int]) -> bool:
        for place in choices[at]:
            if place in tried:
                continue
            tried.add(place)
            if place not in partners or place_unit(partners[place], tried):
                partners[place] = at
                return True
        return False

    for at in range(len(left)):
        place_unit(at, set())
    return sorted((at, place) for place, at in partners.items())


def joined(units: Sequence[Unit], rest: Sequence[int], whole: Unit) -> list[int]:
    """Neighbouring unmatched units that are written together as `whole` (휴학 신청, 휴학신청); [] for none."""
    for start in range(len(rest)):
        text = ""
        for end in range(start, len(rest)):
            if end > start and rest[end] != rest[end - 1] + 1:
                break
            if end > start and not _has_plain_role(units[rest[end - 1]], units[rest[end]]):
                break
            text += units[rest[end]].written
            if end > start and (text in (whole.written, whole.text) or _mistyped(text, whole.text)):
                return list(rest[start : end + 1])
            if len(text) > len(whole.written):
                break
    return []


def _has_plain_role(unit: Unit, following: Unit) -> bool:
    """Whether a word has no case of its own; within a run of words it shares the case of the last one."""
    return unit.role in PLAIN_ROLES or (unit.role == following.role and unit.group == following.group)


def rebound(left: Sequence[Unit], right: Sequence[Unit], pairs: Sequence[Match]) -> str:
    """A word that stands directly before another noun than its partner does; "" if there is none.

    A word without a particle or preposition belongs to the noun after it: 다른 대학 교수, a UK laptop.
    """
    partners = dict(pairs)
    for at, place in pairs:
        heads = _head(left, at), _head(right, place)
        if heads[0] is None or heads[1] is None or heads[0] not in partners or heads[1] not in partners.values():
            continue
        if partners[heads[0]] != heads[1] and left[heads[0]].text != right[heads[1]].text:
            return left[at].written
        if partners[heads[0]] != heads[1] and left[heads[0]].role != right[heads[1]].role:
            return left[at].written
    return ""


def _head(units: Sequence[Unit], at: int) -> int | None:
    """The position of the noun that the word at `at` stands before within a run of words."""
    following = at + 1
    if following == len(units) or units[following].group != units[at].group:
        return None
    return None if units[at].verb or units[following].verb else following


def _mistyped(text: str, whole: str) -> bool:
    """Whether two long Korean compounds differ in one letter."""
    hangul = all("가" <= character <= "힣" for character in text + whole)
    return hangul and min(len(text), len(whole)) >= LONG and distance(letters(text), letters(whole), 1) == 1


def without_joined(
    left: Sequence[Unit], right: Sequence[Unit], left_rest: Sequence[int], right_rest: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The unmatched units of both sides, without those that only differ in being written together."""
    left_left, right_left = list(left_rest), list(right_rest)
    for here, there, units, wholes in ((left_left, right_left, left, right), (right_left, left_left, right, left)):
        for place in list(there):
            parts = joined(units, here, wholes[place])
            if parts:
                there.remove(place)
                for part in parts:
                    here.remove(part)
    return left_left, right_left


def without_repeated(units: Sequence[Unit], rest: Sequence[int]) -> list[int]:
    """The unmatched units without those that repeat a matched one: a word said twice adds nothing."""
    matched_texts = {unit.text for at, unit in enumerate(units) if at not in rest}
    return [at for at in rest if units[at].text not in matched_texts or units[at].role not in PLAIN_ROLES]
