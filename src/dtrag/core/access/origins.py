"""Origins of web pages, as browsers send them."""

from __future__ import annotations

from urllib.parse import urlsplit


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
