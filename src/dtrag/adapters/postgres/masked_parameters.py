"""Masks personal data in every text that is sent to the database, whatever statement it is a parameter of.

Documents and questions are masked before: this covers names, notes, details and everything that is added later.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection
from psycopg.types import string
from psycopg.types.json import set_json_dumps

from dtrag.core.text.personal_data_policy import PersonalDataPolicy

_DUMPERS = (
    string.StrBinaryDumperName,
    string.StrBinaryDumperVarchar,
    string.StrBinaryDumper,
    string.StrDumperName,
    string.StrDumperVarchar,
    string.StrDumper,
    string.StrDumperUnknown,
)
"""Those of psycopg for texts, in its order: the last one of a format is the default."""


def register_masks(connection: AsyncConnection[Any], policy: PersonalDataPolicy) -> None:
    """Mask the texts of all parameters of this connection, also in lists and in JSON."""
    dumpers, json_dumps = _masking(policy)
    for dumper in dumpers:
        connection.adapters.register_dumper(str, dumper)
    set_json_dumps(json_dumps, connection)


@functools.cache
def _masking(policy: PersonalDataPolicy) -> tuple[list[Any], Callable[[Any], str]]:
    """The same for all connections: psycopg keeps what it makes of them."""

    def masked(dumper: Any) -> Any:
        return type(dumper.__name__, (dumper,), {"dump": lambda self, text: dumper.dump(self, policy.masked(text))})

    return [masked(dumper) for dumper in _DUMPERS], _Json(policy)


class _Json:
    """JSON of a value with its texts masked."""

    def __init__(self, policy: PersonalDataPolicy) -> None:
        self._policy = policy

    def __call__(self, value: Any) -> str:
        return json.dumps(self._policy.masked_value(value))
