"""Error messages for clients of the HTTP service: commands that they cannot run become the requests that do the same.

Commands for the operator of the service (`dtrag doctor`, `dtrag models pull`) have no request and stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_REQUESTS: Sequence[tuple[str, str]] = (
    (r"dtrag regulations list", "GET /regulations"),
    (r"dtrag documents(?: list)?", "GET /documents"),
    (r"dtrag ingest FILE", "POST /documents"),
    (r"dtrag agents list", "GET /agents"),
    (r"dtrag review list", "GET /review"),
    (r"dtrag review show", "GET /review/{item_id}"),
    (r"dtrag search(?: --json)?", "POST /search"),
    (r"dtrag review correct", "POST /review/{item_id}/correct"),
    (r"dtrag cbr list", "GET /cbr/cases"),
    (r"dtrag taxonomy list", "GET /taxonomy"),
    (r"dtrag taxonomy tree", "GET /taxonomy/active/tree"),
    (r"dtrag taxonomy preview ([^\s;`]+)", r"GET /taxonomy/\1/preview"),
    (r"dtrag lexicon list(?: --field own)?", "GET /lexicon"),
    (r"dtrag lexicon remove (\d+)", r"DELETE /lexicon/\1"),
    (r"dtrag tools list", "GET /tools"),
    (r"dtrag tools approve (\S+)", r"POST /tools/\1/approve"),
)
_PHRASES: Sequence[tuple[str, str]] = (
    (r"--accept-widening \(accept_widening over HTTP\)", "accept_widening"),
    (r"`dtrag trace --list 20`, or GET /traces, shows", "GET /traces shows"),
    (r": see --(?:spoken|official)(?=\.|$)", ""),
)
_REPLACED = [(re.compile(command), request) for command, request in (*_PHRASES, *_REQUESTS)]


def as_requests(message: str) -> str:
    """The message with requests in place of commands."""
    if "dtrag " not in message and "--" not in message:
        return message
    for command, request in _REPLACED:
        message = command.sub(request, message)
    return message
