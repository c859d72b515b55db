"""Which fields of which values a role receives: `roles_and_fields.toml`, derived from the routes and reviewed by hand.

Values of the core are the responses of the service, so that a new field of one is public: this test fails until
`python -m tests.test_roles_and_fields` has written the list again, and the review sees the difference. Fields that a
route empties for some callers (such as `node_id` of a category) are in the tests of that route.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fastapi.routing import iter_route_contexts

from dtrag.core.access.api_key import ROLES, Need
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.permissions import Needs
from dtrag.settings import Settings

FILE = Path(__file__).with_name("roles_and_fields.toml")
ABOUT = """\
# Fields of the responses by the least role that receives them; every role also receives what is above it.
# "public" is a key for one agent, "without a key, of public branches" a caller by DTRAG_PUBLIC; neither receives what
# the other does. "admin of the whole tree" is an administrator whose key has no scope. Written by:
#   .venv/bin/python -m tests.test_roles_and_fields
"""
NO_KEY, KEYLESS, WHOLE_TREE = "without a key", "without a key, of public branches", "admin of the whole tree"
WIDTH = 120
ORDER = (NO_KEY, "public", KEYLESS, *ROLES[1:], WHOLE_TREE)
ROLE: Mapping[Need, str] = {
    "ask": "public",
    "browse": KEYLESS,
    "read": "reader",
    "originals": "reader",
    "write": "editor",
    "admin": "admin",
}
DECIDED = {"Health": "reader", "Check": "reader", "ServerShape": WHOLE_TREE}
"""Values that a route leaves out for other callers: `GET /health` and `GET /tools`, whose tests show it."""
Fields = dict[str, dict[str, list[str]]]
"""Role -> value -> fields."""


def received() -> Fields:
    """The fields of every response, by the least role."""
    api = create_app(Settings.load(environ={}, embedder="none"))
    described = api.openapi()
    schemas = described["components"]["schemas"]
    least: dict[str, int] = defaultdict(lambda: len(ORDER))
    for route in iter_route_contexts(api.routes):
        for method in getattr(route, "methods", None) or ():
            path = re.sub(r":\w+}", "}", str(getattr(route, "path", "")))
            operation = described["paths"].get(path, {}).get(method.lower(), {})
            role = ORDER.index(_role([each.dependency for each in getattr(route, "dependencies", [])]))
            for status, response in operation.get("responses", {}).items():
                for name in _values(response, schemas) if status.startswith("2") else ():
                    least[name] = min(least[name], role)
    least.update({name: ORDER.index(role) for name, role in DECIDED.items()})
    return {
        role: {name: sorted(schemas[name]["properties"]) for name in sorted(least) if ORDER[least[name]] == role}
        for role in ORDER
    }


def _role(dependencies: list[Any]) -> str:
    needs = [each for each in dependencies if isinstance(each, Needs)]
    return NO_KEY if not needs else WHOLE_TREE if needs[0].whole_tree else ROLE[needs[0].need]


def _values(described: object, schemas: Mapping[str, Any]) -> set[str]:
    """Names of the values with fields in a response, also inside of others."""
    waiting, names = list(_references(described)), set()
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += _references(schemas[name])
    return {name for name in names if "properties" in schemas[name]}


def _references(described: object) -> Iterator[str]:
    if isinstance(described, dict):
        if "$ref" in described:
            yield described["$ref"].rsplit("/", 1)[1]
        for inner in described.values():
            yield from _references(inner)
    elif isinstance(described, list):
        for inner in described:
            yield from _references(inner)


def toml(listed: Fields) -> str:
    """The list as TOML."""
    lines = [ABOUT]
    for role, values in listed.items():
        lines.append(f"[{json.dumps(role)}]")
        lines += [_line(name, " ".join(fields)) for name, fields in values.items()]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(name: str, fields: str) -> str:
    line = f'{name} = "{fields}"'
    return line if len(line) <= WIDTH else f'{name} = """\n{textwrap.fill(fields, WIDTH)}"""'


def test_no_role_receives_a_field_that_is_not_listed() -> None:
    listed = {
        (role, value, field)
        for role, values in tomllib.loads(FILE.read_text("utf-8")).items()
        for value, fields in values.items()
        for field in fields.split()
    }
    now = {(role, value, field) for role, values in received().items() for value in values for field in values[value]}
    assert sorted(now - listed) == [], "may this role see it? then: .venv/bin/python -m tests.test_roles_and_fields"
    assert sorted(listed - now) == [], "gone: .venv/bin/python -m tests.test_roles_and_fields"


if __name__ == "__main__":
    FILE.write_text(toml(received()), "utf-8")
