"""`CategoryFilter`: documents in memory, confined to branches of the tree (AC-ORCH-007).

It is for lists that are there already. A search is confined where it runs, in the database, by node ids.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtrag.core.access.filter_attacks import KINDS, PATH_KEYS, FilterAttack, attack_in
from dtrag.core.taxonomy.tree import MAX_DEPTH, CategoryPath
from dtrag.core.text.analysis import normalise
from dtrag.errors import InvalidInput

MOST_KNOWN = 100_000
"""Spellings of paths whose verdict is kept, about 20 MB; a tree has some hundred, each in a few spellings."""


_PLAIN = re.compile(r"[A-Za-z0-9 _가-힣-]{1,50}")
"""Names of these letters alone hold nothing that `CategoryPath` would refuse, and need not be looked at one by one."""


@dataclass(frozen=True, slots=True)
class FilterStatistics:
    """What a filter has done so far; `seconds` is the time of `apply_filter`, `attempts` counts by kind."""

    total: int
    allowed: int
    blocked: int
    seconds: float
    attempts: Mapping[str, int]

    @property
    def pass_rate(self) -> float:
        """The share that was allowed; 0.0 before the first document."""
        return self.allowed / self.total if self.total else 0.0

    @property
    def documents_per_second(self) -> float:
        """Documents looked at in a second; 0.0 before the first."""
        return self.total / self.seconds if self.seconds else 0.0


def _fold(name: Any) -> str | None:
    """The key of a path of one name; None when it is no name."""
    if type(name) is str and _PLAIN.fullmatch(name):
        return normalise(name) or None
    try:
        return CategoryPath.parse((name,)).key[0]
    except InvalidInput:
        return None


class CategoryFilter:
    """Lets through what hangs in one of `allowed_paths` or below; without any path: nothing.

    Paths are compared element by element, folded: `["AI"]` holds `["ai", "ML"]` and never `["AIX"]`. Raises
    `InvalidInput` for an allowed path that is none.
    """

    def __init__(self, allowed_paths: Iterable[Sequence[str]] | None):
        if isinstance(allowed_paths, (str, bytes)):
            raise InvalidInput("allowed_paths is a list of category paths, such as [['AI', 'ML']].")
        self.allowed_paths = tuple(CategoryPath.parse(path) for path in allowed_paths or ())
        self._keys = frozenset(path.key for path in self.allowed_paths)
        self._depths = sorted({len(key) for key in self._keys})
        self._known: dict[tuple[Any, ...], bool] = {}
        self._folded: dict[str, str] = {}
        self._total = self._allowed = 0
        self._seconds = 0.0
        self._attempts: dict[str, int] = dict.fromkeys(KINDS, 0)

    def is_allowed(self, path: Sequence[str] | None) -> bool:
        """Whether a document that hangs at this path is let through; False for no path and for what is none."""
        if not isinstance(path, (list, tuple)):
            return False
        spelling = tuple(path)
        try:
            known = self._known.get(spelling)
        except TypeError:  # a list within the path, or the like
            return False
        return self._judged(spelling) if known is None else known

    def apply_filter(self, documents: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those of the documents whose `canonical_path` is allowed, in order."""
        started = time.perf_counter()
        known, judge = self._known, self._judged
        kept: list[Mapping[str, Any]] = []
        total = 0
        for document in documents:
            total += 1
            path = document.get("canonical_path")
            if type(path) is not list and not isinstance(path, (list, tuple)):
                continue
            spelling = tuple(path)
            try:
                verdict = known.get(spelling)  # a path judged before costs this one look-up
            except TypeError:  # a list within the path, or the like
                continue
            if verdict or (verdict is None and judge(spelling)):
                kept.append(document)
        self._total += total
        self._allowed += len(kept)
        self._seconds += time.perf_counter() - started
        return kept

    def bypass_attempt(self, document_or_filters: object) -> FilterAttack | None:
        """The attempt to get around this filter in a document's entry or in the filters of a request, or None.

        An entry must have its path; filters may ask for allowed branches, for what lies in them and above them.
        A document that merely hangs elsewhere is no attempt: it is not let through.
        """
        found = attack_in(document_or_filters)
        if found is None:
            found = self._asked_outside(document_or_filters)
        if found is not None:
            self._attempts[found.kind] += 1
        return found

    def validate_filter_bypass_attempt(self, document_or_filters: object) -> bool:
        """Whether it is an attempt: see `bypass_attempt`."""
        return self.bypass_attempt(document_or_filters) is not None

    def statistics(self) -> FilterStatistics:
        """What it has done so far."""
        blocked = self._total - self._allowed
        return FilterStatistics(self._total, self._allowed, blocked, self._seconds, dict(self._attempts))

    def _judged(self, spelling: tuple[Any, ...]) -> bool:
        key = self._key(spelling)
        if key is None:  # not kept: it may be of any length
            return False
        verdict = any(key[:depth] in self._keys for depth in self._depths)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[spelling] = verdict
        return verdict

    def _key(self, spelling: tuple[Any, ...]) -> tuple[str, ...] | None:
        """The path folded, as `CategoryPath` folds it; None for what is no path. Names are folded once."""
        if not 1 <= len(spelling) <= MAX_DEPTH:
            return None
        key = []
        for name in spelling:
            folded = self._folded.get(name) if type(name) is str else None
            if folded is None:
                folded = _fold(name)
                if folded is None:
                    return None
                if len(self._folded) >= MOST_KNOWN:
                    self._folded.clear()
                self._folded[name] = folded
            key.append(folded)
        return tuple(key)

    def _asked_outside(self, asked: object) -> FilterAttack | None:
        if not isinstance(asked, Mapping):
            return FilterAttack("bypass", "there is no path.")
        asks = [key for key in PATH_KEYS - {"canonical_path"} if key in asked]
        if not asks:
            return None if asked.get("canonical_path") else FilterAttack("bypass", "there is no path.")
        for key in asks:
            paths = asked[key]
            if not isinstance(paths, (list, tuple)) or not all(self._reaches(path) for path in paths):
                return FilterAttack("bypass", "a path lies outside the allowed branches.")
        return None

    def _reaches(self, path: Any) -> bool:
        """Whether the path is allowed, or lies above an allowed one."""
        if self.is_allowed(path):
            return True
        key = self._key(tuple(path)) if isinstance(path, (list, tuple)) else None
        return key is not None and any(allowed[: len(key)] == key for allowed in self._keys)
