"""An institution's site by its sitemap (sitemaps.org): the pages of the named host that its robots.txt permits.

One request at a time, with a pause after each. Pages of other hosts and schemes are left out, redirects to them too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urljoin

from lxml import etree

from dtrag.adapters.connectors.names import WithoutRights, readable
from dtrag.adapters.parsers.archive import parse_xml
from dtrag.adapters.parsers.formats import FORMATS, knows
from dtrag.adapters.web.fetch import MOVED, REDIRECTS
from dtrag.core.access.egress import Allowed, Destination, target
from dtrag.errors import EgressBlocked, FetchFailed, ParseFailed, SourceUnavailable
from dtrag.ports import Fetcher, WebReply, WebRequest
from dtrag.ports.connectors import SourceItem

FORM = "sitemap+https://HOST/PATH/sitemap.xml or sitemap+http://…"
AGENT = "dtrag"
PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""A site whose robots.txt demands more between two requests is not read: a thousand pages would take a day."""
SECONDS = 60.0
MAX_PAGES = 50_000
MAX_SITEMAPS = 200
SITEMAP_BYTES = 50 << 20
"""Pages and uncompressed bytes that sitemaps.org allows in one sitemap; `MAX_PAGES` is for all sitemaps of a site."""
PAGE_BYTES = 64 << 20
TOTAL_BYTES = 8 << 30
"""Of the pages that one connector fetches."""
ROBOTS_BYTES = 500 << 10
"""The least that RFC 9309 wants to be read."""
SETTLED = timedelta(days=2)
"""A `lastmod` may be a day in any time zone: while it is not older, another change may have the same."""
_LEFT_OUT = frozenset({401, 403, 404, 410})
_TYPES = {row.content_type: row.suffixes[0] for row in FORMATS} | {
    "application/xhtml+xml": ".html",
    "text/xml": ".xml",
    "text/x-markdown": ".md",
    "application/x-hwp": ".hwp",
    "application/haansofthwp": ".hwp",
    "application/haansofthwpx": ".hwpx",
}
Method = Literal["GET", "HEAD"]
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of a robots.txt for us (RFC 9309): whether each pattern allows, and the pause between requests."""

    rules: tuple[tuple[str, bool], ...] = ()
    pause_s: float = 0.0

    @classmethod
    def parse(cls, text: str, agent: str = AGENT) -> Robots:
        """The rules of the groups for the agent, or else of those for `*`."""
        groups: dict[str, tuple[list[tuple[str, bool]], list[float]]] = {}
        agents: list[str] = []
        in_rules = False
        for name, value in _fields(text):
            if name == "user-agent":
                agents = [value.lower()] if in_rules else [*agents, value.lower()]
                in_rules = False
                groups.setdefault(agents[-1], ([], []))
                continue
            in_rules = in_rules or name in {"allow", "disallow", "crawl-delay"}
            for rules, pauses in (groups[each] for each in agents):
                if name in {"allow", "disallow"} and value:
                    rules.append((unquote(value), name == "allow"))
                elif name == "crawl-delay" and value.replace(".", "", 1).isdecimal():
                    pauses.append(float(value))
        rules, pauses = groups.get(agent, groups.get("*", ([], [])))
        return cls(tuple(rules), max(pauses, default=0.0))

    def permit(self, path: str) -> bool:
        """Whether the longest pattern that fits the path, with its query, allows it; of equal ones one that allows."""
        fitting = [(len(pattern), allow) for pattern, allow in self.rules if _fits(pattern, unquote(path))]
        return max(fitting, default=(0, True))[1]


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.removeprefix("\ufeff").splitlines():
        name, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def _fits(pattern: str, path: str) -> bool:
    """Whether the path begins with the pattern, in which `*` is any characters and a final `$` the end."""
    pieces = pattern.removesuffix("$").split("*")
    if not path.startswith(pieces[0]):
        return False
    end = len(pieces[0])
    for piece in pieces[1:]:
        end = path.find(piece, end)
        if end < 0:
            return False
        end += len(piece)
    return not pattern.endswith("$") or end == len(path) or (len(pieces) > 1 and path.endswith(pieces[-1]))


class SiteSource(WithoutRights):
    """Implements `dtrag.ports.connectors.Connector`.

    The mark of a page comes from its `lastmod` when that is old enough, else from its ETag or Last-Modified. A page
    that has none of them is fetched every time. `left_out` counts pages of the last listing by the reason.
    """

    def __init__(
        self,
        address: str,
        cache: Path,
        fetcher: Fetcher,
        allowed: Allowed = frozenset(),
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Raises `EgressBlocked`, an `InvalidInput`, for what is not such an address or forbidden."""
        self._root = target(address.removeprefix("sitemap+"), allowed)
        self.address = f"sitemap+{_url(self._root)}"
        self._types = cache / f"sitemap-{blake2b(self.address.encode(), digest_size=12).hexdigest()}.json"
        self._fetcher = fetcher
        self._allowed = allowed
        self._sleep = sleep
        self._clock = clock
        self._now = now
        self._turn = asyncio.Lock()
        self._free_at = clock()
        self._robots: Robots | None = None
        self._bytes = 0
        self.left_out: Counter[str] = Counter()

    async def items(self) -> Sequence[SourceItem]:
        """The pages, by address. Raises `SourceUnavailable`, also when there is none."""
        self.left_out.clear()
        self._robots = None
        robots = await self._rules()
        pages = await self._pages()
        types, items = _stored(self._types), list[SourceItem]()
        try:
            for url, (place, stated) in sorted(pages.items()):
                if not robots.permit(place.path):
                    self.left_out["robots.txt"] += 1
                elif item := await self._item(url, place, _settled(stated, self._now()), types):
                    items.append(item)
        finally:  # a listing that breaks off continues where it was
            self._store({url: row for url, row in types.items() if url in pages})
        if self.left_out:
            _LOG.info("pages of a sitemap were left out", extra={"pages": dict(self.left_out)})
        if not items:
            raise self._unavailable(f"it has no page that may be read; left out: {dict(self.left_out)}.")
        return items

    async def fetch(self, item: SourceItem, path: Path) -> None:
        """Write the page. Raises `SourceUnavailable`."""
        reply = await self._reply(item.uri, PAGE_BYTES, page=True)
        if reply is None or reply.status != 200:
            raise self._unavailable(f"{item.uri} {_answered(reply)}.")
        self._bytes += len(reply.body)
        if self._bytes > TOTAL_BYTES:
            raise self._unavailable(f"its pages have more than {TOTAL_BYTES >> 30} GiB.")
        await asyncio.to_thread(path.write_bytes, reply.body)

    async def _item(
        self, url: str, place: Destination, settled: str, types: dict[str, tuple[str, str]]
    ) -> SourceItem | None:
        """The page as a file; None when it is left out. `types`: page -> settled `lastmod` and suffix, is added to."""
        path, _, query = place.path.lstrip("/").partition("?")
        name = unquote(path).lstrip("/") + ("index" if not path or path.endswith("/") else "")
        state, (before, suffix) = settled, types.get(url, ("", ""))
        if knows(name):
            suffix = ""
        if not settled or (before != settled and not knows(name)):
            reply = await self._reply(url, PAGE_BYTES, method="HEAD", page=True)
            if reply is not None and reply.status != 200:  # some servers know only GET
                reply = await self._reply(url, PAGE_BYTES, page=True)
            if reply is None or reply.status in _LEFT_OUT:
                self.left_out[_answered(reply)] += 1
                return None
            if reply.status != 200:
                raise self._unavailable(f"{url} {_answered(reply)}.")
            if not knows(name):
                suffix = _TYPES.get(reply.content_type, "")
            state = settled or " ".join(filter(None, map(reply.headers.get, ("etag", "last-modified"))))
        if settled:
            types[url] = settled, suffix
        mark = blake2b(f"{url} {state}".encode("utf-8", "replace"), digest_size=16).hexdigest() if state else ""
        shown = f"?{unquote(query).replace('/', '%2F')}" if query else ""
        return SourceItem(url, readable(name + shown + suffix), mark)

    def _store(self, types: dict[str, tuple[str, str]]) -> None:
        """Keep what the next listing need not ask; without it, that one only takes longer."""
        written = self._types.with_suffix(".new")
        try:
            self._types.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(json.dumps(types), "utf-8")
            written.replace(self._types)
        except OSError as error:
            _LOG.warning("the types of pages could not be stored", extra={"error": error.strerror})

    async def _pages(self) -> dict[str, tuple[Destination, str]]:
        """Page -> where it is and its `lastmod`, of the sitemap and of those that it lists."""
        pages: dict[str, tuple[Destination, str]] = {}
        queue = [_url(self._root)]
        for url in queue:
            reply = await self._reply(url, SITEMAP_BYTES)
            if reply is None or reply.status != 200:
                raise self._unavailable(f"{url} {_answered(reply)}.")
            try:
                entries = await asyncio.to_thread(lambda body: list(_entries(body)), reply.body)
            except (ParseFailed, zlib.error, ValueError) as error:
                raise self._unavailable(f"{url} is not a sitemap: {error}") from error
            for is_sitemap, location, stated in entries:
                place = self._place(urljoin(url, location))
                if place is None:
                    self.left_out["other host"] += 1
                elif is_sitemap:
                    queue += [] if _url(place) in queue else [_url(place)]
                else:
                    pages[_url(place)] = place, max(stated, pages.get(_url(place), (place, ""))[1])
                if len(pages) > MAX_PAGES or len(queue) > MAX_SITEMAPS:
                    raise self._unavailable(f"it lists more than {MAX_PAGES:,} pages or {MAX_SITEMAPS} sitemaps.")
        return pages

    async def _rules(self) -> Robots:
        """The rules of the host, read once for each listing. Raises `SourceUnavailable` when they are not known."""
        if self._robots is None:
            url = _url(self._root).removesuffix(self._root.path) + "/robots.txt"
            reply = await self._reply(url, ROBOTS_BYTES)
            if reply is None or not (reply.status == 200 or (400 <= reply.status < 500 and reply.status != 429)):
                raise self._unavailable(f"{url} {_answered(reply)}, and without it nothing may be read.")
            self._robots = Robots.parse(reply.body.decode("utf-8", "replace"))
            if self._robots.pause_s > LONGEST_PAUSE_S:
                raise self._unavailable(f"its robots.txt demands {self._robots.pause_s:g} s between two requests.")
        return self._robots

    async def _reply(self, url: str, most: int, *, method: Method = "GET", page: bool = False) -> WebReply | None:
        """The response after redirects within the host; None where it leads to another host or robots.txt forbids it.

        Raises `SourceUnavailable`.
        """
        for _ in range(REDIRECTS + 1):
            place = self._place(url)
            if place is None or (page and not (await self._rules()).permit(place.path)):
                return None
            request = WebRequest(_url(place), method, {"Accept": "*/*"}, follow=False)
            async with self._turn:
                await self._sleep(max(0.0, self._free_at - self._clock()))
                try:
                    reply = await self._fetcher.fetch(request, seconds=SECONDS, most=most, types=())
                except (FetchFailed, EgressBlocked) as error:
                    raise self._unavailable(f"{url}: {error.fields['reason']}") from error
                finally:
                    pause = max(PAUSE_S, self._robots.pause_s if self._robots else 0.0)
                    self._free_at = self._clock() + pause
            if reply.status not in MOVED or not reply.headers.get("location"):
                return reply
            url = urljoin(url, reply.headers["location"])
        raise self._unavailable(f"{url} redirects more than {REDIRECTS} times.")

    def _place(self, url: str) -> Destination | None:
        """Where it is, if that is at the named host with the named scheme and port."""
        try:
            place = target(url, self._allowed)
            place = target(urljoin(_url(place), place.path), self._allowed)  # `..` would lead past robots.txt
        except EgressBlocked:
            return None
        hidden = {".", ".."} & {*unquote(place.path).partition("?")[0].split("/")}
        return place if place.origin == self._root.origin and not hidden else None

    def _unavailable(self, reason: str) -> SourceUnavailable:
        return SourceUnavailable(address=self.address, reason=reason)


def _answered(reply: WebReply | None) -> str:
    return "leads to another host or what robots.txt forbids" if reply is None else f"answered {reply.status}"


def _url(place: Destination) -> str:
    return f"{place.scheme}://{place.authority}{place.path}"


def _settled(stated: str, now: datetime) -> str:
    """The time of the last change, if a later change cannot have the same one; else ""."""
    try:
        changed = datetime.fromisoformat(stated)
    except ValueError:
        return ""
    return stated if changed.replace(tzinfo=changed.tzinfo or UTC) < now - SETTLED else ""


def _stored(file: Path) -> dict[str, tuple[str, str]]:
    try:
        return {url: (settled, suffix) for url, (settled, suffix) in json.loads(file.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _entries(body: bytes) -> Iterator[tuple[bool, str, str]]:
    """Whether it is a sitemap itself, address and `lastmod` of each entry. Raises `ParseFailed` and `ValueError`."""
    if body.startswith(b"\x1f\x8b"):
        unpacking = zlib.decompressobj(wbits=31)
        body = unpacking.decompress(body, SITEMAP_BYTES)
        if not unpacking.eof:
            raise ValueError(f"it is cut off or has more than {SITEMAP_BYTES >> 20} MiB.")
    root = parse_xml(body.lstrip())
    kind = etree.QName(root).localname
    if kind not in {"urlset", "sitemapindex"}:
        raise ValueError(f"its root element is {kind[:40]!r}.")
    for entry in root.iterchildren("{*}url", "{*}sitemap"):
        location = (entry.findtext("{*}loc") or "").strip()
        if location:
            yield kind == "sitemapindex", location, (entry.findtext("{*}lastmod") or "").strip()
