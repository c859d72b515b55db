"""Routes that need no key: the built page, what supervisors request, and the sign-in, whose key is in the body."""

from __future__ import annotations

ASSETS = "/assets/{name}"
"""Files of the built page; their names contain a hash of their content."""
WIDGET = "/widget.js"
PAGE_FILES = frozenset({"/", WIDGET})
SUPERVISED = frozenset({"/livez", "/readyz"})
SIGN_IN = ("POST", "/session")
OPEN = frozenset({("GET", path) for path in PAGE_FILES | SUPERVISED | {ASSETS}} | {SIGN_IN})
"""The routes, by method and path."""
_ASSETS_START = ASSETS.partition("{")[0]


def is_page_file(path: str) -> bool:
    """Whether the path is that of a file of the page: the same for everybody, and without any document."""
    return path in PAGE_FILES or path.startswith(_ASSETS_START)


def is_open(method: str, path: str) -> bool:
    """Whether a request of this path needs no key."""
    return is_page_file(path) or path in SUPERVISED or (method, path) == SIGN_IN
