"""The lexicon of the regulation pack with the own entries of an index, and the query expander that uses it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable

from dtrag.core.lexicon_entry import SETTING
from dtrag.current_app import active
from dtrag.errors import NoActiveApp
from dtrag.ports import IndexSnapshot
from dtrag.regulations.korean import expansion
from dtrag.regulations.korean.lexicon import Lexicon, built_in
from dtrag.regulations.korean.own_entries import for_matching, from_stored
from dtrag.regulations.korean.question_entities import RegulationEntityRecognizer


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
