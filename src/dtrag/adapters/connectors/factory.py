"""The connector of a source, by the scheme of its address."""

from __future__ import annotations

from pathlib import Path

from dtrag.adapters.connectors import git, posix, s3, sitemap
from dtrag.adapters.web.fetch import WebFetcher
from dtrag.core.access.egress import Allowed
from dtrag.errors import InvalidInput
from dtrag.ports.connectors import Connector

FORMS = (posix.FORM, git.FORM, s3.FORM, sitemap.FORM)


def connector(address: str, *, cache: Path, allowed: Allowed) -> Connector:
    """The source at an address, not yet connected. `cache`: a folder for what need not be fetched again.

    `allowed`: hosts and ports that may be requested although not public. Raises `InvalidInput`, `EgressBlocked` and
    `MissingExtra`.
    """
    scheme, separator, _ = address.partition(":")
    if not separator or not address.isprintable() or address != address.strip():
        scheme = ""
    if scheme == "posix" and address.startswith("posix:/"):
        return posix.PosixFolder(Path(address.removeprefix("posix:")))
    if scheme.startswith("git+"):
        return git.GitSource(address, cache, allowed)
    if scheme == "s3":
        return s3.S3Source(address, allowed)
    if scheme.startswith("sitemap+"):
        return sitemap.SiteSource(address, cache, WebFetcher(allowed), allowed)
    raise InvalidInput(f"This is not the address of a source. Write one of: {'; '.join(FORMS)}.")
