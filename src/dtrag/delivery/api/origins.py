"""Origins of web pages: which are listed in the settings, and which are the service's own."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from dtrag.core.access.api_key import Key
from dtrag.core.access.origins import is_origin
from dtrag.errors import DtragError, InvalidInput
from dtrag.governance.api_keys import Keys

_LOG = logging.getLogger(__name__)
_ASK = re.compile(r"/agents/[^/]+/ask")
"""The only route for pages with an origin of a public key."""
_ASKING = re.compile(
    r"POST (/ask|/search(/batch|/neural)?|/chat/(run|stream)|/agents/[^/]+/(ask|search)|/regulations/search"
    r"|/v1/chat/completions)|GET /v1/models(/.+)?"
)
"""Methods and paths of questions and searches: all that listed pages may request while no key exists."""

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


@dataclass(frozen=True, slots=True)
class PageOrigins:
    """Which pages may call the service from a browser.

    `public` are its own origins behind a proxy, `listed` those in CORS_ALLOWED_ORIGINS. Pages with an origin of a
    public key may only ask agents.
    """

    public: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()

    def may_write(self, headers: Headers) -> bool:
        """Whether the request comes from no page, from an own one, or from a listed one."""
        return is_own(headers, self.public) or headers.get("origin", "").lower() in self.listed

    async def is_of_public_key(self, scope: Scope, keys: Callable[[], Keys]) -> bool:
        """Whether a page with an origin of a public key asks an agent. False while keys cannot be read."""
        origin = Headers(scope=scope).get("origin", "").lower()
        if not origin or not _ASK.fullmatch(scope["path"]):
            return False
        try:
            return origin in await keys().public_origins()
        except DtragError as error:
            _LOG.warning("the origins of public keys could not be read", exc_info=error)
            return False

    def may_act_locally(self, scope: Scope) -> bool:
        """Whether the request may be the local administrator's while no key exists: own pages and programs may.

        Listed pages may ask and search. Where browsers send no `Origin` (images, scripts, links), `Sec-Fetch-Site`
        tells that another page caused the request.
        """
        headers = Headers(scope=scope)
        if "origin" not in headers:
            return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
        asks = _ASKING.fullmatch(f"{scope['method']} {scope['path']}") is not None
        return is_own(headers, self.public) or (asks and headers["origin"].lower() in self.listed)

    def admits(self, headers: Headers, key: Key) -> bool:
        """Whether this key may be used on the page that the request comes from."""
        if key.agent_id is not None and key.origins:
            return headers.get("origin", "").lower() in key.origins
        return "origin" not in headers or self.may_write(headers)
