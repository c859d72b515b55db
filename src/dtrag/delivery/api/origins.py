"""Origins of web pages: which are listed in the settings, and which are the service's own."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from dtrag.errors import InvalidInput

CORS, PUBLIC = "CORS_ALLOWED_ORIGINS", "DTRAG_PUBLIC_ORIGINS"
"""The settings that list origins."""


def origins_of(text: str, setting: str = CORS) -> frozenset[str]:
    """The origins in a comma-separated list, none for `none`. Raises `InvalidInput` for wildcards and invalid ones."""
    if text.strip().lower() == "none":
        return frozenset()
    origins = set()
    for origin in filter(None, (part.strip() for part in text.split(","))):
        if not is_origin(origin):
            raise InvalidInput(
                f"{setting} holds {origin[:80]!r}, but must list origins in full, such as "
                "https://chat.example.org or http://localhost:3000; there are no wildcards."
            )
        origins.add(origin.lower())
    return frozenset(origins)


def is_origin(text: str) -> bool:
    """Whether it is an origin as browsers send it: scheme, host and port, nothing else."""
    try:
        parts = urlsplit(text)
        whole = f"{parts.scheme}://{parts.netloc}"
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    clean = parts.username is None and "*" not in text and text.isascii() and not set(text) & set(" \\\"'<>")
    return named and clean and parts.scheme in {"http", "https"} and text.lower() == whole.lower()


def authority_of(origin: str) -> str:
    """Host and port of an origin, in lower case; "" if invalid."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def is_own(headers: Headers, public: Collection[str]) -> bool:
    """Whether the request comes from a page of the service itself: its origin is the requested host, or in `public`.

    Programs send no `Origin`; browsers always do with other methods than GET.
    """
    origin = headers.get("origin")
    if origin is None:
        return True
    return authority_of(origin) == headers.get("host", "").lower() or origin.lower() in public
