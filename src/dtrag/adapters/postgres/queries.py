"""Loads the SQL statements of `sql/*.sql`, each under a `-- name:` line.

`:name` marks a parameter, which psycopg always sends apart from the text; `::type` casts are left alone. `{filters}`
is replaced by conditions of `sql/filters.sql`, never by a value. Text under a `-- fragment:` line is part of the
statements of the same file that name it in braces.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import LiteralString

from psycopg.types.json import Jsonb

from dtrag.adapters.sql_files import statements
from dtrag.core.access.scope import Scope, SearchFilters

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@functools.cache
def queries(subject: str) -> dict[str, LiteralString]:
    """The statements of `sql/<subject>.sql` by name, with psycopg's `%(name)s` in place of `:name`."""
    return {name: _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")) for name, text in _statements(subject).items()}


def _statements(subject: str) -> dict[str, LiteralString]:
    return statements("dtrag.adapters.postgres", f"sql/{subject}.sql")


def condition(filters: Iterable[str]) -> LiteralString:
    """The named conditions of `sql/filters.sql`, with `:name` for their parameters."""
    return " ".join(_statements("filters")[name] for name in filters)


def filtered(statement: LiteralString, filters: Iterable[str]) -> LiteralString:
    """The statement with the named conditions of `sql/filters.sql` in the place of `{filters}`."""
    return statement.replace("{filters}", _PARAMETER.sub(r"%(\1)s", condition(filters)))


def filter_parameters(scope: Scope, filters: SearchFilters) -> dict[str, object]:
    """Name of a condition in `sql/filters.sql` -> its parameter, for those that the scope and the filters need."""
    parameters: dict[str, object] = {}
    if scope.nodes is not None:
        parameters["scope"] = sorted(scope.nodes)
    if filters.content_types is not None:
        parameters["content_types"] = list(filters.content_types)
    if filters.date_from is not None:
        parameters["date_from"] = filters.date_from
    if filters.date_to is not None:
        parameters["date_to"] = filters.date_to
    if filters.metadata is not None:
        parameters["metadata"] = Jsonb(dict(filters.metadata))
    return parameters
