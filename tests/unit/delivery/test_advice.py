"""Advice at the end of error messages: commands on the command line, requests for the clients of the HTTP service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dtrag
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.errors import detail_of, sentence
from dtrag.errors import Advice, Conflict, DtragError, NotFound, ToolChanged
from dtrag.settings import Settings

SOURCE = Path(dtrag.__file__).parent
OPERATOR = (
    "backup",
    "cluster",
    "export",
    "restore",
    "doctor",
    "models",
    "reindex",
    "keys",
    "up",
    "audit",
    "ingest --help",
    "imagine",
    "lexicon export",
    "calibrate",
    "cbr consolidate",
    "settings",
    "eval",
)
"""Commands without a request, or for the operator of the service: in messages themselves."""
_COMMAND = re.compile(r"(?:: |`)dtrag ([a-z]+(?: [a-z]+| FILE| --help)?)")
_REQUEST = re.compile(r"(GET|POST|DELETE) (/[\w/{}]*)")


@pytest.mark.parametrize(
    ("error", "command", "request_text"),
    [
        (
            NotFound(kind="document", name="x"),
            "There is no document 'x' that you may see. `dtrag documents` lists what there is.",
            "There is no document 'x' that you may see. `GET /documents` lists what there is.",
        ),
        (
            ToolChanged(tool="web.search"),
            "The tool 'web.search' has changed since it was approved. Review it with `dtrag tools list`, then approve "
            "it again with: dtrag tools approve web.search",
            "The tool 'web.search' has changed since it was approved. Review it with `GET /tools`, then approve it "
            "again with: POST /tools/web.search/approve",
        ),
        (
            Conflict("Version 1.2.0 was never active.", Advice.ACTIVATE, version="1.2.0"),
            "Version 1.2.0 was never active. Activate it with: dtrag taxonomy activate 1.2.0",
            "Version 1.2.0 was never active. Activate it with: POST /taxonomy/1.2.0/activate",
        ),
        (NotFound("There is no such thing."), "There is no such thing.", "There is no such thing."),
    ],
)
def test_an_error_has_a_message_for_each_reader(error: DtragError, command: str, request_text: str) -> None:
    assert str(error) == command
    assert error.over_http == request_text
    assert sentence(str(detail_of(error))) == request_text


def test_advice_names_routes_that_exist() -> None:
    paths = create_app(Settings.load(environ={})).openapi()["paths"]
    routes = {
        f"{method.upper()} {re.sub(r'{.*?}', '{}', path)}" for path, methods in paths.items() for method in methods
    }
    for advice in Advice:
        assert "dtrag " not in advice.request, advice
        for method, path in _REQUEST.findall(advice.request):
            assert f"{method} {re.sub(r'{+.*?}+', '{}', path).replace('active', '{}')}" in routes, advice


def test_messages_of_the_layers_below_name_no_command_that_has_a_request() -> None:
    unknown = set()
    for layer in ("core", "regulations", "governance", "retrieval", "pipeline", "tools", "adapters"):
        for file in (SOURCE / layer).rglob("*.py"):
            source = re.sub(r'"""[\s\S]*?"""', "", file.read_text("utf-8"))
            commands = (match[1] for match in _COMMAND.finditer(source))
            unknown |= {f"{file.name}: {command}" for command in commands if not command.startswith(OPERATOR)}
    assert not unknown
