"""The lexicon of an open app with its own entries: everyday words of an organisation, added by administrators.

They are a setting of the index, which every search reads anyway: a change applies to the next question, in every
process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.documents import SearchResult
from dtrag.core.lexicon_entry import SETTING, LexiconEntry
from dtrag.core.text.analysis import normalise
from dtrag.current_app import active
from dtrag.errors import Advice, Conflict, InvalidInput, NoActiveApp, NotFound
from dtrag.ports import Index, IndexSettings, IndexSnapshot, Recorder, unrecorded
from dtrag.regulations.korean import expansion
from dtrag.regulations.korean.lexicon import Lexicon, built_in
from dtrag.regulations.korean.lexicon_entries import (
    MAX_CHARACTERS,
    MAX_ENTRIES,
    CorrectedQuestion,
    Suggestion,
    Words,
    as_stored,
    checked_words,
    for_matching,
    from_stored,
    from_toml,
    next_number,
    suggestions,
    to_toml,
    unread,
)
from dtrag.regulations.korean.question_entities import RegulationEntityRecognizer

ATTEMPTS = 10
"""Attempts to store a change while other administrators store theirs."""
LEAST = 2
"""Different questions that a suggested entry needs, unless another number is requested."""
_SHOWN = 40
T = TypeVar("T")


class OwnLexicon:
    """The own entries of the lexicon of one app. `remember` is called with their stored form, whenever it was read."""

    def __init__(
        self,
        settings: IndexSettings,
        index: Index,
        record: Recorder = unrecorded,
        remember: Callable[[Mapping[str, Any] | None], None] = lambda stored: None,
    ):
        self._remember = remember
        self._settings = settings
        self._index = index
        self._record = record

    async def entries(self) -> list[LexiconEntry]:
        """The own entries, by number."""
        return from_stored(await self._stored())

    async def add(
        self, spoken: Sequence[str] | str, official: Sequence[str] | str, *, by: Caller = LOCAL
    ) -> LexiconEntry:
        """Add an entry; an identical entry that exists is returned instead.

        Raises `InvalidInput`, and `Conflict` when another own entry has one of the spoken forms.
        """
        (entry,), _ = await self._add([checked_words(spoken, official)], by)
        return entry

    async def add_all(
        self, entries: Sequence[tuple[Sequence[str] | str, Sequence[str] | str]], *, by: Caller = LOCAL
    ) -> list[LexiconEntry]:
        """Add all entries, or none if one is wrong; returns the new ones. Identical existing ones are left out."""
        _, new = await self._add([checked_words(spoken, official) for spoken, official in entries], by)
        return new

    async def add_toml(self, text: str, *, by: Caller = LOCAL) -> list[LexiconEntry]:
        """`add_all` for the entries in a text of `export`."""
        _, new = await self._add(from_toml(text), by)
        return new

    async def remove(self, entry: int | str, *, by: Caller = LOCAL) -> LexiconEntry:
        """Remove the entry with this number or spoken form. Raises `NotFound`."""

        def without(entries: list[LexiconEntry]) -> tuple[list[LexiconEntry], LexiconEntry]:
            removed = _named(entries, entry)
            return [other for other in entries if other != removed], removed

        removed = await self._change(lambda entries, number: (*without(entries), number))
        await self._audit(by, "lexicon.remove", removed)
        return removed

    async def suggest(
        self, corrections: Sequence[tuple[str, Sequence[SearchResult]]], least: int = LEAST
    ) -> list[Suggestion]:
        """Entries that at least `least` different questions support, the best supported first. They are not added.

        `corrections` are questions whose answers reviewers corrected, with the passages that they chose.
        """
        if least < 1:
            raise InvalidInput("An entry needs at least one question.")
        corrected = [
            CorrectedQuestion(
                question,
                tuple(str(p.metadata.get("article_title") or (p.breadcrumb or (p.title,))[-1]) for p in passages),
                tuple(passage.text for passage in passages),
            )
            for question, passages in corrections
        ]
        own = for_matching(await self.entries())
        return await asyncio.to_thread(
            lambda: suggestions(corrected, built_in().with_entries(own) if own else built_in(), least)
        )

    async def export(self) -> str:
        """The own entries as TOML, for `add_toml` of another installation."""
        return to_toml(await self.entries())

    async def _add(self, words: Sequence[Words], by: Caller) -> tuple[list[LexiconEntry], list[LexiconEntry]]:
        """The entries with these words, and those of them that are new."""

        def with_new(
            entries: list[LexiconEntry], number: int
        ) -> tuple[list[LexiconEntry], tuple[list[LexiconEntry], list[LexiconEntry]], int]:
            changed, named, new = list(entries), [], []
            by_form = {form: entry for entry in entries for form in entry.spoken}
            for spoken, official in words:
                present = next((by_form[form] for form in spoken if form in by_form), None)
                if present is None:
                    present = LexiconEntry(number, spoken, official)
                    number += 1
                    changed.append(present)
                    new.append(present)
                    by_form |= dict.fromkeys(spoken, present)
                elif (present.spoken, present.official) != (spoken, official):
                    raise _taken(present, spoken)
                named.append(present)
            _check_size(changed)
            return changed, (named, new), number

        named, new = await self._change(with_new)
        await asyncio.gather(*(self._audit(by, "lexicon.add", entry) for entry in new))
        return named, new

    async def _change(self, change: Callable[[list[LexiconEntry], int], tuple[list[LexiconEntry], T, int]]) -> T:
        """Store the entries that `change` returns for the present entries and the next number; returns its result."""
        for _ in range(ATTEMPTS):
            stored = await self._stored()
            if unread(stored):
                raise Conflict(
                    "A later version of dtrag changed the lexicon, and a change by this one would lose parts of it. "
                    "Nothing was changed; use the later version."
                )
            present = from_stored(stored)
            entries, result, number = change(present, next_number(stored, present))
            if entries == present:
                return result
            changed = as_stored(entries, number)
            if await self._settings.replace(SETTING, changed, stored):
                self._remember(changed)
                return result
        raise Conflict("The lexicon is being changed by others at the moment. Nothing was changed; try again.")

    async def _stored(self) -> Mapping[str, Any] | None:
        stored = (await self._index.snapshot()).settings.get(SETTING)
        self._remember(stored)
        return stored

    async def _audit(self, by: Caller, action: str, entry: LexiconEntry) -> None:
        details = {"spoken": list(entry.spoken), "official": list(entry.official)}
        await self._record(by.name, action, scope=None, subjects=[str(entry.number)], decision="done", details=details)


def _named(entries: Sequence[LexiconEntry], number_or_form: int | str) -> LexiconEntry:
    form = " ".join(normalise(number_or_form).split()) if isinstance(number_or_form, str) else None
    for entry in entries:
        if entry.number == number_or_form or form in entry.spoken:
            return entry
    raise NotFound(f"There is no own entry {str(number_or_form)[:_SHOWN]!r} in the lexicon.", Advice.LIST_ENTRIES)


def _taken(present: LexiconEntry, spoken: Sequence[str]) -> Conflict:
    form = next(form for form in spoken if form in present.spoken)
    return Conflict(
        f"Entry {present.number} has the spoken form {form!r} already, for {', '.join(present.official)}.",
        Advice.REPLACE_ENTRY,
        number=present.number,
    )


def _check_size(entries: Sequence[LexiconEntry]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise InvalidInput(
            f"The lexicon can have {MAX_ENTRIES} own entries, and these would be {len(entries)}. Nothing was added; "
            "remove entries, or join those with the same official words."
        )
    characters = sum(len(word) for entry in entries for word in (*entry.spoken, *entry.official))
    if characters > MAX_CHARACTERS:
        raise InvalidInput(
            f"The own entries would have {characters:,} characters, and {MAX_CHARACTERS:,} are allowed. "
            "Nothing was added; remove entries or shorten them."
        )


class LexiconReader:
    """The lexicon of one app: the built-in entries, or those of `lexicon`, and the own entries that were read last."""

    def __init__(self, lexicon: Lexicon | None = None) -> None:
        self._base = lexicon
        self._stored: object = None
        self._with_own: tuple[object, Lexicon] | None = None
        self._building = threading.Lock()

    @property
    def base(self) -> Lexicon:
        """The lexicon without own entries. Blocking: the first call in a process takes .13 s."""
        return built_in() if self._base is None else self._base

    @property
    def is_loaded(self) -> bool:
        """Whether `base` is there at once."""
        return self._base is not None or built_in.cache_info().currsize > 0

    @property
    def id(self) -> str:
        """Identifies the lexicon without own entries."""
        return "built-in" if self._base is None else str(len(self._base.entries))

    def remember(self, stored: object) -> None:
        """Take over the stored form of the own entries, as a read or a change of them found it."""
        self._stored = stored

    def latest(self) -> Lexicon:
        """The lexicon with the own entries as they were last read or changed. Blocking: may load `base`."""
        return self._with(self._stored)

    def _with(self, stored: object) -> Lexicon:
        if stored is None:
            return self.base
        with self._building:
            if self._with_own is None or self._with_own[0] != stored:
                own = for_matching(from_stored(stored))
                self._with_own = (stored, self.base.with_entries(own) if own else self.base)
            return self._with_own[1]

    async def read(self, snapshot: IndexSnapshot) -> Lexicon:
        """The lexicon with the own entries of this state of the index."""
        stored = snapshot.settings.get(SETTING)
        self.remember(stored)
        if stored is None:
            return self.base
        if self._with_own is not None and self._with_own[0] == stored:
            return self._with_own[1]
        return await asyncio.to_thread(self._with, stored)


class MultiStageQueryExpander(expansion.MultiStageQueryExpander):
    """As in the pack; without `lexicon` it uses that of the open app, with the organisation's own entries.

    They are as the app last read or changed them: with every search, and with every call of `app.lexicon`.
    """

    def __init__(
        self,
        entity_recognizer: RegulationEntityRecognizer | None = None,
        *,
        lexicon: Lexicon | None = None,
        regulation_names: Iterable[str] = (),
    ) -> None:
        super().__init__(entity_recognizer, lexicon=lexicon or lexicon_in_use, regulation_names=regulation_names)


def lexicon_in_use() -> Lexicon:
    """The lexicon of the open app with its own entries; without an app the built-in one. Blocking, as `base`."""
    try:
        app = active()
    except NoActiveApp:
        return built_in()
    lexicon: Lexicon = app.regulations.lexicon.latest()
    return lexicon
