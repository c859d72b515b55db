"""Commands in error messages become requests for the clients of the HTTP service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dtrag
from dtrag.delivery.api.commands_as_requests import as_requests
from dtrag.delivery.api.errors import sentence

SOURCE = Path(dtrag.__file__).parent
OPERATOR = (
    "doctor",
    "models",
    "reindex",
    "keys",
    "up",
    "trace",
    "audit",
    "ingest --help",
    "lexicon export",
    "calibrate",
    "cbr consolidate",
)
"""Commands without a request: for the operator of the service."""
_COMMAND = re.compile(r"(?:: |`)dtrag ([a-z]+(?: [a-z]+| FILE| --help)?)(?: \{[^}]*\})?")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Nearest: 학칙. All of them: dtrag regulations list", "Nearest: 학칙. All of them: GET /regulations"),
        ("`dtrag documents` lists what there is.", "`GET /documents` lists what there is."),
        ("Remove it first (dtrag lexicon remove 7), then", "Remove it first (DELETE /lexicon/7), then"),
        (
            "Review them with: dtrag taxonomy preview 1.2.0; accept",
            "Review them with: GET /taxonomy/1.2.0/preview; accept",
        ),
        ("accept it with --accept-widening (accept_widening over HTTP).", "accept it with accept_widening."),
        ("this one has 0: see --official.", "this one has 0."),
        ("Diagnose it with: dtrag doctor", "Diagnose it with: dtrag doctor"),
        ("A question -- with dashes", "A question -- with dashes"),
    ],
)
def test_a_command_becomes_a_request(message: str, expected: str) -> None:
    assert as_requests(message) == expected


def test_a_sentence_that_ends_with_a_request_has_no_full_stop_behind_it() -> None:
    assert sentence("All of them: dtrag regulations list") == "All of them: GET /regulations"


def test_every_command_that_the_services_mention_has_a_request_or_is_for_the_operator() -> None:
    """New messages of the layers behind both the command line and HTTP need a line in the table."""
    unknown = set()
    for layer in ("core", "packs", "governance", "retrieval", "pipeline"):
        for file in (SOURCE / layer).rglob("*.py"):
            for match in _COMMAND.finditer(_without_docstrings(file.read_text("utf-8"))):
                command = match.group()
                if not match[1].startswith(OPERATOR) and as_requests(command) == command:
                    unknown.add(f"{file.name}: {command}")
    assert not unknown


def _without_docstrings(source: str) -> str:
    return re.sub(r'"""[\s\S]*?"""', "", source)
