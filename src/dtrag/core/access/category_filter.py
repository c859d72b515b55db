"""`CategoryFilter`: restricts documents in memory to branches of the tree (AC-ORCH-007).

It is for existing lists of documents. Searches are restricted in the database, by node ids.
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
"""Spellings of paths in the cache, about 20 MB; a tree has some hundred paths, each in a few spellings."""


_PLAIN = re.compile(r"[A-Za-z0-9 _가-힣-]{1,50}")
"""Names of only these characters are valid for `CategoryPath` without a check of each character."""


@dataclass(frozen=True, slots=True)
class FilterStatistics:
    """Counters of a filter; `seconds` is the time spent in `apply_filter`, `attempts` counts attacks by kind."""

    total: int
    allowed: int
    blocked: int
    seconds: float
    attempts: Mapping[str, int]

    @property
    def pass_rate(self) -> float:
        """Share of allowed documents; 0.0 before the first document."""
        return self.allowed / self.total if self.total else 0.0

    @property
    def documents_per_second(self) -> float:
        """Documents checked per second; 0.0 before the first document."""
        return self.total / self.seconds if self.seconds else 0.0


def _fold(name: Any) -> str | None:
    """The folded name; None when it is invalid."""
    if type(name) is str and _PLAIN.fullmatch(name):
        return normalise(name) or None
    try:
        return CategoryPath.parse((name,)).key[0]
    except InvalidInput:
        return None


class CategoryFilter:
    """Admits documents in one of `allowed_paths` or below; without allowed paths, none.

    Paths are compared element by element, folded: `["AI"]` contains `["ai", "ML"]`, but not `["AIX"]`. Raises
    `InvalidInput` for an invalid allowed path.
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
        """Whether a document with this path is admitted; False without a path and for an invalid one."""
        if not isinstance(path, (list, tuple)):
            return False
        spelling = tuple(path)
        try:
            known = self._known.get(spelling)
        except TypeError:  # unhashable, such as a list inside the path
            return False
        return self._judged(spelling) if known is None else known

    def apply_filter(self, documents: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The documents whose `canonical_path` is allowed, in order."""
        started = time.perf_counter()
        known, judge = self._known, self._judged
        admitted: list[Mapping[str, Any]] = []
        total = 0
        for document in documents:
            total += 1
            path = document.get("canonical_path")
            if type(path) is not list and not isinstance(path, (list, tuple)):
                continue
            spelling = tuple(path)
            try:
                verdict = known.get(spelling)  # one look-up for a path seen before
            except TypeError:  # unhashable, such as a list inside the path
                continue
            if verdict or (verdict is None and judge(spelling)):
                admitted.append(document)
        self._total += total
        self._allowed += len(admitted)
        self._seconds += time.perf_counter() - started
        return admitted

    def bypass_attempt(self, document_or_filters: object) -> FilterAttack | None:
        """The attempt to bypass this filter in a document's entry or in the filters of a request, or None.

        An entry must have a path; filters may name allowed branches, their descendants and their ancestors. A document
        in another branch is not an attempt: it is not admitted.
        """
        attack = attack_in(document_or_filters)
        if attack is None:
            attack = self._path_outside(document_or_filters)
        if attack is not None:
            self._attempts[attack.kind] += 1
        return attack

    def validate_filter_bypass_attempt(self, document_or_filters: object) -> bool:
        """Whether it is an attempt: see `bypass_attempt`."""
        return self.bypass_attempt(document_or_filters) is not None

    def statistics(self) -> FilterStatistics:
        """The counters."""
        blocked = self._total - self._allowed
        return FilterStatistics(self._total, self._allowed, blocked, self._seconds, dict(self._attempts))

    def _judged(self, spelling: tuple[Any, ...]) -> bool:
        key = self._key(spelling)
        if key is None:  # not cached: its length is not limited
            return False
        verdict = any(key[:depth] in self._keys for depth in self._depths)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[spelling] = verdict
        return verdict

    def _key(self, spelling: tuple[Any, ...]) -> tuple[str, ...] | None:
        """The path as `CategoryPath` folds it; None when it is invalid. Folded names are cached."""
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

    def _path_outside(self, entry: object) -> FilterAttack | None:
        if not isinstance(entry, Mapping):
            return FilterAttack("bypass", "there is no path.")
        path_filters = [key for key in PATH_KEYS - {"canonical_path"} if key in entry]
        if not path_filters:
            return None if entry.get("canonical_path") else FilterAttack("bypass", "there is no path.")
        for key in path_filters:
            paths = entry[key]
            if not isinstance(paths, (list, tuple)) or not all(self._reaches(path) for path in paths):
                return FilterAttack("bypass", "a path lies outside the allowed branches.")
        return None

    def _reaches(self, path: Any) -> bool:
        """Whether the path is allowed, or an ancestor of an allowed one."""
        if self.is_allowed(path):
            return True
        key = self._key(tuple(path)) if isinstance(path, (list, tuple)) else None
        return key is not None and any(allowed[: len(key)] == key for allowed in self._keys)
