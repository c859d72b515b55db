"""A question as the gate compares it: what it states, what it asks for, and its content words."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 600
"""Characters of a question that are interpreted; a longer one is only ever the same as itself."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A content word or a phrase that means one thing.

    `text` is its comparable form, `written` its form in the question, without blanks. `meanings` are the classes of
    synonyms it belongs to, with its own text. `role` is its direction or case ("" for a neutral one). `known`: the
    vocabulary has it, so that it is no typing error; `name`: written with a capital within a sentence. `soft` words
    may be missing on the other side. `group` numbers the run of words without a function word between them. `subject`
    is who does it, as far as the words show it (`core.cases.subjects`).
    """

    text: str
    written: str
    meanings: frozenset[str]
    role: str = ""
    known: bool = False
    name: bool = False
    soft: bool = False
    party: bool = False
    verb: bool = False
    group: int = 0
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question states (`statements`: kind -> values, all of which must be equal), asks for and is about."""

    language: str
    compact: str
    statements: tuple[tuple[str, tuple[str, ...]], ...]
    aspects: frozenset[str]
    units: tuple[Unit, ...]
    passive: bool = False
    speaker: bool = False
    """Whether the author of the question is the subject of a sentence (I, we)."""
    subjects: frozenset[str] = frozenset()
    """All subjects of its clauses."""

    def values(self, kind: str) -> tuple[str, ...]:
        """The values of one kind of statement."""
        return dict(self.statements).get(kind, ())
