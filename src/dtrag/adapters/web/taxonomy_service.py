"""Category trees of another service: the one that `TAXONOMY_BASE` names."""

from __future__ import annotations

import asyncio
from urllib.parse import quote, urlsplit

from dtrag.adapters.web.fetch import WebFetcher
from dtrag.core.access.egress import PORTS, allowed_hosts, target
from dtrag.core.taxonomy.external_tree import MAX_BYTES, SentTree, read_sent_tree
from dtrag.errors import EgressBlocked, FetchFailed, InvalidInput, NotFound, TaxonomyServiceFailed
from dtrag.ports import Fetcher, WebRequest
from dtrag.settings import Settings

SECONDS = 1.0
"""For the whole exchange, looking up the name included (AC-ORCH)."""


class TaxonomyService:
    """The service at `base`, which is asked without any key of the caller's."""

    def __init__(self, base: str, fetcher: Fetcher) -> None:
        self._base = base
        self._fetcher = fetcher

    @classmethod
    def of(cls, settings: Settings) -> TaxonomyService | None:
        """None when the setting is not set. Raises `InvalidInput` for what is not an address of a service."""
        base = (settings.taxonomy_base or "").strip().rstrip("/")
        if not base:
            return None
        try:
            parts = urlsplit(base)
            if parts.query or parts.fragment:
                raise ValueError
            # The administrator's own address, so it may be a private one; redirects to other private ones are refused.
            allowed = allowed_hosts(f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}")
            target(base, allowed)
        except (ValueError, KeyError) as error:  # InvalidInput and EgressBlocked are ValueErrors
            raise InvalidInput(
                "TAXONOMY_BASE must be the address of a service, such as http://127.0.0.1:8000, without user name, "
                "query and fragment."
            ) from error
        return cls(base, WebFetcher(allowed))

    async def tree(self, version: str) -> SentTree:
        """The tree of a version (a number, or `active`). Raises `NotFound` and `TaxonomyServiceFailed`."""
        request = WebRequest(f"{self._base}/api/taxonomy/tree/{quote(version, safe='')}")
        try:
            reply = await self._fetcher.fetch(
                request, seconds=SECONDS, most=MAX_BYTES, types=frozenset({"application/json"})
            )
        except (FetchFailed, EgressBlocked) as error:
            raise TaxonomyServiceFailed(reason=error.fields["reason"]) from error
        if reply.status == 404:
            raise NotFound("The service of the category tree has none of this version.")
        if reply.status != 200:
            raise TaxonomyServiceFailed(reason=f"it answered {reply.status}.")
        try:
            return await asyncio.to_thread(read_sent_tree, reply.body)  # a large one takes a tenth of a second
        except InvalidInput as error:
            raise TaxonomyServiceFailed(reason=str(error)) from error
