"""Who does what in a question whose author takes part: I end it although the landlord objects, or the other way round.

Every content word is given the subject of its clause where the words show it. Two questions differ when the subject of
one word is the author in the one and another participant of both questions in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dtrag.core.cases.reading import Reading, Unit
from dtrag.core.cases.unit_matching import Match

AUTHOR = "author"
"""The subject I, we, you or one; 제가, 저희는."""
THIRD = "third person"
"""The subject he, she, they or it."""
_AUTHOR_WORDS = frozenset({"i", "we"})
_AUTHOR_WORDS_BEFORE_A_VERB = frozenset({"you", "one"})
_THIRD_WORDS = frozenset({"he", "she", "they", "it"})
_DETERMINERS = frozenset("the a an my our your his her their this that every each".split())
_AUXILIARIES = frozenset("do does did is are am was were can could may might must should shall will would".split())
_CLAUSE_STARTS = frozenset(
    "suppose supposing assume assuming imagine provided if when whenever where because although though whether unless "
    "while that which who so but , ;".split()
)
_JOINS = frozenset({"and"})
_CLAUSE_MARKS = frozenset("before after unless until since during despite once except without".split())
_NOUN_FOLLOWS = frozenset("count amount which whose difference purpose".split())
"""What is asked; a noun without an article after it is the object as often as the subject: how many days do I get."""
_KOREAN_AUTHOR = frozenset("제가 저는 저도 내가 나는 나도 저희가 저희는 저희도 우리가 우리는 우리도".split())
_KOREAN_POSSESSIVE = frozenset("제 내 저의 나의 저희 우리 저희의 우리의".split())
_KOREAN_CLAUSE_ENDS = ("면", "지만", "니까", "는데", "더라도")


class EnglishSubjects:
    """Follows the subject while the words of an English question are read."""

    def __init__(self) -> None:
        self._subject = ""
        self._is_expected = True
        self._has_predicate = False
        self._after_question_word = False
        self._last: tuple[str, int] = ("", -1)
        self.all: set[str] = set()
        """All subjects of the question."""

    def read_word(self, token: str) -> None:
        """A function word or a punctuation mark."""
        self._is_expected |= self._after_question_word and token in _DETERMINERS
        self._after_question_word = False
        if token in _AUTHOR_WORDS or (self._is_expected and token in _AUTHOR_WORDS_BEFORE_A_VERB):
            self._set(AUTHOR)
        elif self._is_expected and token in _THIRD_WORDS:
            self._set(THIRD)
        elif token in _CLAUSE_STARTS:
            self._subject, self._is_expected = "", True
        elif token in _AUXILIARIES:
            self._expect_after_predicate()
        elif token in _JOINS:
            self._is_expected = True

    def _set(self, subject: str) -> None:
        self._subject, self._is_expected, self._has_predicate = subject, False, False
        self.all.add(subject)

    def read_mark(self, name: str) -> None:
        """A statement (must, not, before) or what is asked."""
        if not name.startswith("m_") or name.removeprefix("m_") in _CLAUSE_MARKS:
            self._subject, self._is_expected = "", name not in _NOUN_FOLLOWS
            self._after_question_word = True
        else:
            self._expect_after_predicate()

    def _expect_after_predicate(self) -> None:
        """After a predicate, another subject may follow (if I object, can my manager end it)."""
        self._is_expected = self._is_expected or not self._subject or self._has_predicate

    def of(self, text: str, *, role: str, verb: bool, party: bool, group: int) -> str:
        """The subject of a content word, "" if it is the subject itself or none is known."""
        if text in _CLAUSE_STARTS:
            return ""
        noun = not verb and role in {"", "~"}
        if noun and (self._is_expected or (party and self._last == (self._subject, group))):
            self._set(text)
            self._last = (text, group)
            return ""
        self._is_expected, self._has_predicate = False, True
        return self._subject


class KoreanSubjects:
    """Follows the subjects while the words of a Korean question are read: the next verb belongs to the latest one."""

    def __init__(self) -> None:
        self._open: list[tuple[str, bool]] = []
        self.all: set[str] = set()
        """All subjects of the question."""

    def read_author(self, token: str) -> bool:
        """Whether a written word is the author as a subject."""
        if token in _KOREAN_AUTHOR:
            self._add(AUTHOR, is_person=True)
        return token in _KOREAN_AUTHOR

    def read(self, unit: Unit, token: str, before: Unit | None, *, verbal: bool, previous: str) -> Unit:
        """A content word with its subject; `before` and `previous` are the unit and the written word before it."""
        if verbal or token.endswith(_KOREAN_CLAUSE_ENDS):
            return unit if token.endswith("게") else replace(unit, subject=self._of_verb())
        if unit.role in {"subject", "topic"}:
            self._add(unit.text, is_person=unit.role == "subject" or unit.party)
        if previous in _KOREAN_POSSESSIVE:
            return replace(unit, subject=AUTHOR)
        if before is not None and (before.role == "of" or (before.role == "" and before.group == unit.group)):
            return replace(unit, subject=before.text)
        return unit

    def _add(self, subject: str, *, is_person: bool) -> None:
        self._open.append((subject, is_person))
        self.all.add(subject)

    def _of_verb(self) -> str:
        """The subject of the next verb, "" if none is known; a topic other than a person only if there is no other."""
        persons = [place for place, (_, is_person) in enumerate(self._open) if is_person]
        if not self._open:
            return ""
        return self._open.pop(persons[-1] if persons else -1)[0]


def exchanged_subject(left: Reading, right: Reading, pairs: Sequence[Match]) -> str:
    """A word whose subject is the author in one question and another participant in the other one; "" if none is.

    In the question where it is the author, the other participant must be a subject, too, or be a person in both.
    """
    parties = [{unit.text for unit in reading.units if unit.party} for reading in (left, right)]
    for at, place in pairs:
        here, there = left.units[at].subject, right.units[place].subject
        if not here or not there or here == there or AUTHOR not in {here, there}:
            continue
        other, question = (there, left) if here == AUTHOR else (here, right)
        if other in question.subjects or other in parties[0] & parties[1]:
            return left.units[at].written
    return ""
