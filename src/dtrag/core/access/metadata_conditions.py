"""Conditions on the metadata of passages, as clients with a language of operators send them.

`OPERATORS` is the whole language; anything else is refused. A condition that search filters can express is also passed
to the database (`as_filters`), so that the search selects within it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeGuard

from dtrag.core.access.scope import MAX_METADATA, MAX_PATHS
from dtrag.core.editions import parse_date
from dtrag.errors import InvalidInput

AS_OF = "as_of"
CATEGORY, CONTENT_TYPE = "category", "content_type"
FIELDS = ("title", CATEGORY, "source_url", CONTENT_TYPE, "language", "document_id")
"""Fields that every passage has, beside those that the setting `filter_keys` declares."""


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_empty(held: object) -> bool:
    return held is None or held in ("", [], {})


def _same(held: object, value: object) -> bool:
    return held == value and isinstance(held, bool) == isinstance(value, bool)


def _scalar(value: object) -> object:
    if isinstance(value, str) or _is_number(value):
        return value
    raise InvalidInput("its value must be a string or a number.")


def _text(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise InvalidInput("its value must be a string with characters.")


def _values(value: object) -> list[object]:
    if isinstance(value, list) and len(value) <= MAX_PATHS:
        return [_scalar(each) for each in value]
    raise InvalidInput(f"its value must be a list of at most {MAX_PATHS} strings or numbers.")


def _number(value: object) -> float:
    try:
        if _is_number(value) or isinstance(value, str):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput("its value must be a number.")


def _nothing(value: object) -> None:
    if value not in (None, ""):
        raise InvalidInput("it takes no value.")


def _contains(held: Any, value: Any) -> bool:
    return value in held if isinstance(held, str | list) else False


def _numbers(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda held, value: _is_number(held) and compare(held, value)


@dataclass(frozen=True, slots=True)
class Operator:
    """What a condition requires of its value, and of the value that a passage has.

    `of_all`: the condition on several fields holds when it holds for all of them, else for one.
    """

    parsed: Callable[[object], Any]
    holds: Callable[[Any, Any], bool]
    of_all: bool = False


def _not(operator: Operator) -> Operator:
    """The opposite, for passages that have the field: without it neither is known to hold."""
    return Operator(
        operator.parsed, lambda held, value: not _is_empty(held) and not operator.holds(held, value), of_all=True
    )


_CONTAINS = Operator(_text, _contains)
_IS = Operator(_scalar, _same)
_IN = Operator(_values, lambda held, values: any(_same(held, each) for each in values))
_EQUAL = Operator(_number, _numbers(lambda held, value: held == value))
OPERATORS: Mapping[str, Operator] = {
    "contains": _CONTAINS,
    "not contains": _not(_CONTAINS),
    "start with": Operator(_text, lambda held, value: isinstance(held, str) and held.startswith(value)),
    "end with": Operator(_text, lambda held, value: isinstance(held, str) and held.endswith(value)),
    "is": _IS,
    "is not": _not(_IS),
    "in": _IN,
    "not in": _not(_IN),
    "empty": Operator(_nothing, lambda held, value: _is_empty(held), of_all=True),
    "not empty": Operator(_nothing, lambda held, value: not _is_empty(held)),
    "=": _EQUAL,
    "≠": _not(_EQUAL),
    ">": Operator(_number, _numbers(lambda held, value: held > value)),
    "<": Operator(_number, _numbers(lambda held, value: held < value)),
    "≥": Operator(_number, _numbers(lambda held, value: held >= value)),
    "≤": Operator(_number, _numbers(lambda held, value: held <= value)),
}
_DAYS = {"is": 0, "before": -1, "after": 1}
"""Operators of `as_of`, with the distance of the day that is searched from the day that is named."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on one or several fields."""

    names: tuple[str, ...]
    operator: str
    value: Any

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a passage with this metadata fulfils it."""
        operator = OPERATORS[self.operator]
        held = (operator.holds(metadata.get(name), self.value) for name in self.names)
        return all(held) if operator.of_all else any(held)


@dataclass(frozen=True, slots=True)
class MetadataConditions:
    """All conditions of a request: each must hold, with `alternatives` one of them. `as_of` is the day to search."""

    conditions: tuple[Condition, ...] = ()
    alternatives: bool = False
    as_of: date | None = None

    @classmethod
    def parse(
        cls,
        rows: Sequence[tuple[str | Sequence[str], str, object]],
        keys: Collection[str] = (),
        *,
        alternatives: bool = False,
    ) -> MetadataConditions:
        """From rows of (field or fields, operator, value); `keys` are the declared metadata fields.

        Raises `InvalidInput` for an unknown field or operator, and for a value that the operator does not take.
        """
        if len(rows) > MAX_METADATA:
            raise InvalidInput(f"There may be at most {MAX_METADATA} conditions.")
        known = (*FIELDS, *sorted(set(keys) - {*FIELDS, AS_OF}))
        conditions, days = list[Condition](), list[date]()
        for number, (name, operator, value) in enumerate(rows, 1):
            names = (name,) if isinstance(name, str) else tuple(name)
            try:
                if names == (AS_OF,):
                    days.append(_day(operator, value))
                else:
                    conditions.append(_condition(names, operator, value, known))
            except InvalidInput as error:
                raise InvalidInput(f"Condition {number} is not valid: {error}") from None
        if len(days) > 1 or (days and alternatives and conditions):
            raise InvalidInput(f"{AS_OF} is one day for the whole search: send it once, and combine it by and.")
        return cls(tuple(conditions), alternatives, days[0] if days else None)

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a passage with this metadata fulfils the conditions."""
        if not self.conditions:
            return True
        held = (condition.admits(metadata) for condition in self.conditions)
        return any(held) if self.alternatives else all(held)

    def as_filters(self) -> tuple[dict[str, Any], bool]:
        """Search filters that every admitted passage passes, and whether they admit no other passage."""
        filters: dict[str, Any] = {}
        if self.alternatives and len(self.conditions) > 1:
            return filters, False
        are_exact = [_added(filters, condition) for condition in self.conditions]
        return filters, all(are_exact)


def _condition(names: tuple[str, ...], operator: str, value: object, known: Sequence[str]) -> Condition:
    if operator in _DAYS.keys() - OPERATORS.keys():
        raise InvalidInput(f"before and after apply to {AS_OF}, the day whose texts are searched.")
    if operator not in OPERATORS:
        raise InvalidInput(f"unknown comparison_operator. Known: {', '.join((*OPERATORS, 'before', 'after'))}.")
    if not 1 <= len(names) <= MAX_METADATA or not all(name in known for name in names):
        raise InvalidInput(f"unknown field. Known: {', '.join((*known, AS_OF))}; {AS_OF} stands alone.")
    return Condition(names, operator, OPERATORS[operator].parsed(value))


def _day(operator: str, value: object) -> date:
    """The day to search. Texts of `before` a day are those of the day before it."""
    if operator not in _DAYS:
        raise InvalidInput(f"{AS_OF} takes the operators {', '.join(_DAYS)}.")
    try:
        named = datetime.fromtimestamp(value, UTC).date() if _is_number(value) else parse_date(AS_OF, value)
        if named is None:
            raise ValueError
        return named + timedelta(days=_DAYS[operator])
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput("its value must be a date such as 2024-03-01, or seconds since 1970.") from error


def _added(filters: dict[str, Any], condition: Condition) -> bool:
    """Whether the filters, with one added for the condition where that is possible, decide the condition."""
    name, operator = condition.names[0], condition.operator
    if len(condition.names) > 1 or operator not in {"is", "in"}:
        return False
    values = condition.value if operator == "in" else [condition.value]
    if name == CATEGORY and "taxonomy_paths" not in filters:
        filters["taxonomy_paths"] = [value.split("/") if isinstance(value, str) else [value] for value in values]
    elif name == CONTENT_TYPE and "content_types" not in filters:
        filters["content_types"] = values
        return True
    elif name not in FIELDS and operator == "is" and name not in filters.get("metadata", {}):
        filters.setdefault("metadata", {})[name] = condition.value
        return True
    return False
