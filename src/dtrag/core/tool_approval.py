"""Approval of tools of MCP servers: what an approval covers, and which tools cannot be approved.

Everything that such a server reports about itself is untrusted. A tool is identified by the SHA-256 of its name,
description and schema: when one of them changes, the tool needs a new approval.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from dtrag.core.response import children, deeper_than

State = Literal["approved", "new", "changed", "gone", "refused"]
"""changed: differs from the approved version; gone: approved, but no longer offered; refused: cannot be approved."""

SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
"""Without a dot, so that the server in `server.tool` is unambiguous."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
"""No look-alike letters, spaces or slashes: names are compared exactly, and are part of URLs."""
DESCRIPTION = 8_000
"""Characters of a description, which goes into prompts and must not dominate them."""
SCHEMA = 64 * 1024
"""Characters of a schema in canonical JSON."""
DEPTH = 24
"""Nesting depth of a schema; deeper ones could exhaust the stack of a parser."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as its server describes it now. `name` is its name on that server."""

    server: str
    name: str
    description: str
    input_schema: Mapping[str, Any]

    @property
    def full_name(self) -> str:
        """`server.tool`, its name in the registry."""
        return f"{self.server}.{self.name}"


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval of the tool with this fingerprint (32 bytes)."""

    tool: str
    fingerprint: bytes
    approved_by: str
    approved_at: datetime


def fingerprint(tool: OfferedTool) -> bytes:
    """SHA-256 of the canonical JSON of full name, description and schema: keys sorted, no spaces, UTF-8.

    Only for tools without a `problem`: a schema may be nested too deeply to be serialised.
    """
    described = {"name": tool.full_name, "description": tool.description, "input_schema": tool.input_schema}
    return hashlib.sha256(_canonical(described).encode("utf-8", "surrogatepass")).digest()


def problem(tool: OfferedTool) -> str:
    """Why the tool can never be approved, as a sentence for users; "" when it can."""
    if not TOOL_NAME.fullmatch(tool.name):
        return f"its name {tool.name[:60]!r} must consist of 1 to 80 letters, digits and _ . - only."
    if len(tool.description) > DESCRIPTION:
        return f"its description has {len(tool.description):,} characters; the maximum is {DESCRIPTION:,}."
    return _problem_of_schema(tool.input_schema)


def _problem_of_schema(schema: Mapping[str, Any]) -> str:
    if deeper_than(schema, DEPTH):
        return f"its schema is nested more than {DEPTH} deep."
    length = len(_canonical(schema))
    if length > SCHEMA:
        return f"its schema has {length:,} characters; the maximum is {SCHEMA:,}."
    if schema.get("type") != "object":
        return 'its schema does not have "type": "object".'
    foreign = next((reference for reference in _references(schema) if not reference.startswith("#")), None)
    return (
        f"its schema refers to {foreign[:80]!r}; only references within the schema itself (#…) are allowed."
        if foreign
        else ""
    )


def state(tool: OfferedTool, approval: Approval | None) -> State:
    """The approval state of an offered tool."""
    if problem(tool):
        return "refused"
    if approval is None:
        return "new"
    return "approved" if approval.fingerprint == fingerprint(tool) else "changed"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _references(value: Any) -> Iterator[str]:
    """References in the schema. A property that is merely named `$ref` counts as one when its value is a string."""
    if isinstance(value, Mapping):
        for key in _REFERENCES:
            if isinstance(value.get(key), str):
                yield value[key]
    for inner in children(value):
        yield from _references(inner)
