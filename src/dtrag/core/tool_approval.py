"""Tools of other programs: what exactly an approval covers, and what cannot be approved at all.

Everything that such a server reports about itself is data from outside. A tool is known by the SHA-256 of its name, its
description and its schema: when one of them changes, it is another tool.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from dtrag.core.nesting import children, deeper_than

State = Literal["approved", "new", "changed", "gone", "refused"]
"""changed: approved, but it is not any more what was approved; gone: approved, but not offered; refused: never."""

SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
"""Without a dot, so that `server.tool` says which server is meant."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
"""Letters that look like others, blanks and slashes are out: names are compared exactly, and stand in addresses."""
DESCRIPTION = 8_000
"""Characters of a description: it goes into prompts, of which it must not become the greater part."""
SCHEMA = 64 * 1024
"""Characters of a schema in canonical JSON."""
DEPTH = 24
"""Nesting of a schema; deeper ones could exhaust the stack of a reader."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as its server describes it now. `name` is the server's own name for it."""

    server: str
    name: str
    description: str
    input_schema: Mapping[str, Any]

    @property
    def full_name(self) -> str:
        """`server.tool`, as the registry has it."""
        return f"{self.server}.{self.name}"


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval of the tool with this fingerprint (32 bytes)."""

    tool: str
    fingerprint: bytes
    approved_by: str
    approved_at: datetime


def fingerprint(tool: OfferedTool) -> bytes:
    """SHA-256 of the canonical JSON of full name, description and schema: keys sorted, no blanks, UTF-8.

    For tools without a `problem`: a schema may be nested too deeply to be written down.
    """
    described = {"name": tool.full_name, "description": tool.description, "input_schema": tool.input_schema}
    return hashlib.sha256(_canonical(described).encode("utf-8", "surrogatepass")).digest()


def problem(tool: OfferedTool) -> str:
    """Why the tool can never be approved, in words for people; "" when it can."""
    if not TOOL_NAME.fullmatch(tool.name):
        return f"its name {tool.name[:60]!r} is not made of up to 80 letters, digits and _ . - alone."
    if len(tool.description) > DESCRIPTION:
        return f"its description has {len(tool.description):,} characters; {DESCRIPTION:,} are the most."
    return _problem_of_schema(tool.input_schema)


def _problem_of_schema(schema: Mapping[str, Any]) -> str:
    if deeper_than(schema, DEPTH):
        return f"its schema is nested more than {DEPTH} deep."
    length = len(_canonical(schema))
    if length > SCHEMA:
        return f"its schema has {length:,} characters; {SCHEMA:,} are the most."
    if schema.get("type") != "object":
        return 'its schema does not say "type": "object".'
    foreign = next((reference for reference in _references(schema) if not reference.startswith("#")), None)
    return f"its schema refers to {foreign[:80]!r}; only what it holds itself (#…) is read." if foreign else ""


def state(tool: OfferedTool, approval: Approval | None) -> State:
    """Where an offered tool stands."""
    if problem(tool):
        return "refused"
    if approval is None:
        return "new"
    return "approved" if approval.fingerprint == fingerprint(tool) else "changed"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _references(value: Any) -> Iterator[str]:
    """What the schema refers to. A property that is only named `$ref` is taken for a reference when it is a string."""
    if isinstance(value, Mapping):
        for key in _REFERENCES:
            if isinstance(value.get(key), str):
                yield value[key]
    for inner in children(value):
        yield from _references(inner)
