"""Detection of attempts to bypass a filter: input that no search form and no program produces by accident."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

from dtrag.core.text.analysis import normalise
from dtrag.core.text.hidden_characters import has_controls
from dtrag.core.text.patterns import explained

AttemptKind = Literal["path_traversal", "injection", "bypass"]
KINDS: tuple[AttemptKind, ...] = get_args(AttemptKind)
PATH_KEYS = frozenset({"taxonomy_paths", "allowed_category_paths", "canonical_in", "canonical_path"})
"""Keys whose values are paths, or lists of paths."""
MOST_VALUES = 2_000
"""Values that are examined, outermost first. Valid filters have fewer; larger ones are rejected anyway."""

_PROTOTYPE = frozenset({"__proto__", "prototype", "constructor"})
_SWITCHES = frozenset({"bypass", "bypass_attempt", "bypass_filter", "bypass_filters", "filter_bypass"})
_NOTHING = frozenset({"null", "undefined"})
_OPERATORS = explained(
    r"\b(?:or|and)\s+(['\"]?)(\w+)\1\s*=\s*(['\"]?)\2\3"  # or 1=1, and 'a'='a
    r"|\bunion\s+(?:all\s+)?select\b"
    r"|['\"`]\s*;|;\s*(?:drop|delete|update|insert|alter|truncate)\b"
    r"|['\"`]\s*(?:--|\bor\b|\band\b)"
    r"|/\*|\*/",
    finds=("x or 1=1", "'; drop table"),
    refuses=("day or year=2024", "the union selects"),
)
_UP = re.compile(r"(?:^|[/\\])\s*\.\.\s*(?:$|[/\\])|%2e%2e")


@dataclass(frozen=True, slots=True)
class FilterAttack:
    """An attempt: its kind, for metrics, and its reason, for users; never the input itself."""

    kind: AttemptKind
    reason: str


def attack_in(filters: object) -> FilterAttack | None:
    """The first attack in the filters of a request (or in a document's entry), or None.

    Paths are examined closely. Other values reach the database only as parameters: in them, only control characters
    that do not occur in text count as an attack.
    """
    if not isinstance(filters, Mapping):
        return None
    for key, value, is_path in islice(_walked(filters), MOST_VALUES):
        attack = (_in_key(key, value) if key else None) or _in_value(value, is_path=is_path)
        if attack is not None:
            return attack
    return None


def _walked(filters: Mapping[Any, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Every value with its key ("" in a list) and whether it is part of a path; outermost first.

    Without recursion, because the sender controls the depth.
    """
    queue: deque[tuple[str, Any, bool]] = deque([("", filters, False)])
    while queue:
        key, value, is_path = queue.popleft()
        yield key, value, is_path
        if isinstance(value, Mapping):
            members = ((str(name), member, is_path or name in PATH_KEYS) for name, member in value.items())
            queue.extend(islice(members, MOST_VALUES))
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            queue.extend(("", item, is_path) for item in islice(value, MOST_VALUES))


def _in_key(key: str, value: object) -> FilterAttack | None:
    folded = normalise(key).replace("-", "_")
    if folded in _PROTOTYPE:
        return FilterAttack("injection", "a key names a prototype.")
    if folded.startswith("$") or has_controls(key):
        return FilterAttack("injection", "a key is an operator.")
    if folded in _SWITCHES:
        return FilterAttack("bypass", "a key such as bypass_attempt asks for it.")
    if folded == "canonical_in" and isinstance(value, bool):
        return FilterAttack("bypass", "canonical_in cannot be switched.")
    if folded == "canonical_path" and value is None:
        return FilterAttack("bypass", "a path is missing.")
    return None


def _in_value(value: object, *, is_path: bool) -> FilterAttack | None:
    if isinstance(value, str):
        if has_controls(value, allowed="" if is_path else "\t\n\r"):
            return FilterAttack("injection", "a text holds control characters.")
        return _in_path(normalise(value)) if is_path else None
    if is_path and isinstance(value, Sequence) and any(inner is None for inner in value):
        return FilterAttack("bypass", "a path is null.")
    return None


def _in_path(folded: str) -> FilterAttack | None:
    if _UP.search(folded):
        return FilterAttack("path_traversal", "a path leads upwards.")
    if folded in _NOTHING:
        return FilterAttack("bypass", "a path is null.")
    if folded in _PROTOTYPE:
        return FilterAttack("injection", "a path names a prototype.")
    if _OPERATORS.search(folded):
        return FilterAttack("injection", "a path holds operators.")
    return None
