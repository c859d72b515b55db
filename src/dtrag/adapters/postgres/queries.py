"""SQL is kept in `sql/*.sql`, a statement under each `-- name:` line, and found here by name.

`:name` marks a parameter (psycopg sends it apart from the text, always); `::type` casts are left alone. `{filters}`
takes fragments of the fixed table `FILTERS`, never a value.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from importlib import resources
from typing import LiteralString

from psycopg.types.json import Jsonb

from dtrag.core.access.scope import Scope, SearchFilters

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)

FILTERS: dict[str, str] = {
    "scope": "and i.node_id = any (:nodes::int[])",
    "content_types": "and exists (select from documents d where d.document_id = i.document_id"
    " and d.content_type = any (:content_types::text[]))",
    "date_from": "and exists (select from documents d where d.document_id = i.document_id"
    " and d.processed_at >= :date_from)",
    "metadata": "and i.document_id in (select documents_having(:metadata::jsonb))",
    "date_to": "and exists (select from documents d where d.document_id = i.document_id"
    " and d.processed_at <= :date_to)",
}


@functools.cache
def queries(room: str) -> dict[str, LiteralString]:
    """The statements of `sql/<room>.sql` by name, with psycopg's `%(name)s` in place of `:name`."""
    text = resources.files("dtrag.adapters.postgres").joinpath(f"sql/{room}.sql").read_text("utf-8")
    pieces = _NAME.split(text)[1:]
    return {
        name: _PARAMETER.sub(r"%(\1)s", _COMMENT.sub("", body).replace("%", "%%")).strip()
        for name, body in zip(pieces[::2], pieces[1::2], strict=True)
    }


def filtered(statement: LiteralString, fragments: Iterable[str]) -> LiteralString:
    """The statement with the named fragments of `FILTERS` in the place of `{filters}`."""
    clause = " ".join(_PARAMETER.sub(r"%(\1)s", FILTERS[name]) for name in fragments)
    return statement.replace("{filters}", clause)


def filter_parameters(scope: Scope, filters: SearchFilters) -> dict[str, object]:
    """Fragment name -> parameter value for what the scope and the filters ask; names as in `FILTERS`."""
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
