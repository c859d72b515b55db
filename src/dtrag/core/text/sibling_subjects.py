"""Which of several like things a question and a sentence are about: 군휴학 or 일반휴학, part-time or full-time.

A text that says one thing about each ("① 일반휴학은 …, ② 군휴학은 …") has nearly the same words in all sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dtrag.core.text.analysis import normalise
from dtrag.core.text.questions import content, without_particle

_HANGUL = re.compile(r"[가-힣]{1,8}")
_ENGLISH = re.compile(r"\b([a-z]{2,})[- ](time|term|year|day|class|based|level|paid|off|site|line)\b")
SHORT = 4
"""Syllables up to which the last two of a Korean compound are its head; of a longer one it is the last three."""
LONGEST_MODIFIER = 4
_FIRST_WORD = re.compile(r"(?:[①-⑳㉑-㉟]|\(?[0-9가-하]{1,2}[.)]|[-–•·○●■□|])?\s*([가-힣]+)")
_FIRST_CLAUSE = re.compile(r"[^,;:|]{1,60}")
_AFTER_ROLE = "(?:은|는|의|이|가|을|를|에게)?$"
_ROLE = re.compile(f"[가-힣](?P<last>[가-힣]){_AFTER_ROLE}")
_STUDENT = re.compile(f"[가-힣]{{2,{LONGEST_MODIFIER}}}생{_AFTER_ROLE}")
_MODIFIER = re.compile(f"[가-힣]{{1,{LONGEST_MODIFIER}}}")


@dataclass(frozen=True, slots=True)
class Compound:
    """A compound: `own` is true of a subject that is this one, `any_kind` of one with the same head."""

    own: Callable[[str], object]
    any_kind: Callable[[str], object]


def compounds_of(question: str) -> tuple[Compound, ...]:
    """The compounds of a question's content; a modifier of one syllable may be written apart (군 휴학)."""
    words = [word for word in map(without_particle, normalise(content(question)).split()) if _HANGUL.fullmatch(word)]
    joined = [first + second for first, second in pairwise(words) if len(first) == 1 < len(second)]
    korean = [_korean(word) for word in (*words, *joined) if len(word) > 1]
    return (*korean, *(_english(match) for match in _ENGLISH.finditer(normalise(question))))


def is_sibling(compounds: Sequence[Compound], word: str) -> bool:
    """Whether the word is a sibling of one of the compounds, and none of them."""
    return not any(compound.own(word) for compound in compounds) and any(
        compound.any_kind(word) for compound in compounds
    )


def about_siblings(compounds: Sequence[Compound], texts: Sequence[str]) -> frozenset[int]:
    """Places of the texts (of one passage) whose subject is a sibling of one of the compounds, which another text has.

    A text that names any of the compounds in its subject is none of them.
    """
    subjects = [subject_of(text) for text in texts]
    own = {place for place, text in enumerate(subjects) if any(compound.own(text) for compound in compounds)}
    return frozenset(
        place
        for compound in compounds
        if any(compound.own(subjects[other]) for other in own)
        for place, subject in enumerate(subjects)
        if place not in own and compound.any_kind(subject)
    )


def subject_of(text: str) -> str:
    """The first written word of a Korean text, without its mark; of others the first clause."""
    match = _FIRST_WORD.match(text)
    if match is not None:
        return match[1]
    clause = _FIRST_CLAUSE.match(text)
    return clause[0].lower() if clause else ""


def _korean(word: str) -> Compound:
    """Without patterns of its own: to compile those of a question takes longer than to compare all sentences."""

    def own(subject: str) -> bool:
        return subject.startswith(word)

    def has_role(subject: str) -> bool:
        role = _ROLE.match(subject)
        return role is not None and role["last"] == word[-1]

    def has_head(subject: str) -> bool:
        start = subject.find(head, 1, LONGEST_MODIFIER + len(head))
        return start > 0 and _MODIFIER.fullmatch(subject, 0, start) is not None

    if len(word) == 2:  # 소장, 부장: a role, whose name has nothing behind it but a particle
        return Compound(own, has_role)
    if word.endswith("생"):  # 학부생, 대학원생, 신입생; 학생 is all of them
        return Compound(own, _STUDENT.match)
    head = word[-2:] if len(word) <= SHORT else word[-3:]
    return Compound(own, has_head)


def _english(match: re.Match[str]) -> Compound:
    return Compound(
        re.compile(rf"\b{match[1]}[- ]?{match[2]}\b").search, re.compile(rf"\b[a-z]{{2,}}-{match[2]}\b").search
    )
