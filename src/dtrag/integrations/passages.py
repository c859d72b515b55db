"""Passages of a service or of an open app, for the retrievers of other libraries."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from typing import Any, TypedDict
from urllib.parse import urlsplit

import httpx2

from dtrag.app import App
from dtrag.core.access.scope import Viewer
from dtrag.core.documents import SearchResult
from dtrag.errors import DtragError, FetchFailed, Forbidden, InvalidInput, Overloaded, TooManyRequests, Unauthorized
from dtrag.opening import SyncApp

TIMEOUT_S = 60.0
_FIELDS = {each.name for each in fields(SearchResult)} - {"explanation"}


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage with the score that orders the results, and metadata without nested objects of dtrag."""

    id: str
    text: str
    score: float
    metadata: dict[str, Any]


class SourceOptions(TypedDict, total=False):
    """The options of every retriever; `PassageSource` defines them."""

    base_url: str
    api_key: str
    app: App | SyncApp | None
    scope: Viewer | None
    top_k: int | None
    filters: Mapping[str, Any] | None
    as_of: str | None
    mode: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSource:
    """The service at `base_url`, as far as `api_key` may see; or an open app, as far as `scope` reaches.

    The other options are those of `POST /search`; without `top_k` the number of passages is chosen. Raises
    `InvalidInput` unless there is one of `base_url` and `app`.
    """

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    app: App | SyncApp | None = field(default=None, repr=False)
    scope: Viewer | None = None
    top_k: int | None = None
    filters: Mapping[str, Any] | None = None
    as_of: str | None = None
    mode: str = "hybrid"
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        if bool(self.base_url) == (self.app is not None):
            raise InvalidInput("Pass base_url (and api_key) of a service, or app, an open app: one of both.")
        if self.base_url and urlsplit(self.base_url).scheme not in {"http", "https"}:
            raise InvalidInput("base_url is the address of a service, such as http://127.0.0.1:8001.")
        if self.scope is not None and self.app is None:
            raise InvalidInput("scope applies to an open app; a service has the scope of the key.")

    def passages(self, query: str, top_k: int | None = None) -> list[RetrievedPassage]:
        """The best passages, best first. Raises `DtragError`."""
        if isinstance(self.app, App):
            raise InvalidInput(
                "An app of `async with dtrag.open()` has no synchronous search: await the retriever's asynchronous "
                "method, or open the app with dtrag.open_sync()."
            )
        if self.app is not None:
            return _shown(self.app.search(query, **self._options(top_k))[0])
        try:
            with httpx2.Client(**self._client()) as client:
                return self._read(client.post("/search", json=self._body(query, top_k)))
        except httpx2.HTTPError as error:
            raise self._unreachable() from error

    async def apassages(self, query: str, top_k: int | None = None) -> list[RetrievedPassage]:
        """As `passages`, without blocking the event loop."""
        if isinstance(self.app, App):
            return _shown((await self.app.search(query, **self._options(top_k)))[0])
        if self.app is not None:
            return await asyncio.to_thread(self.passages, query, top_k)
        try:
            async with httpx2.AsyncClient(**self._client()) as client:
                return self._read(await client.post("/search", json=self._body(query, top_k)))
        except httpx2.HTTPError as error:
            raise self._unreachable() from error

    def _options(self, top_k: int | None) -> dict[str, Any]:
        return {
            "top_k": self.top_k if top_k is None else top_k,
            "filters": self.filters,
            "scope": self.scope,
            "as_of": self.as_of,
            "mode": self.mode,
            "highlights": False,
        }

    def _body(self, query: str, top_k: int | None) -> dict[str, Any]:
        as_of = self.as_of.isoformat() if isinstance(self.as_of, date) else self.as_of
        body = {**self._options(top_k), "query": query, "as_of": as_of}
        del body["scope"]
        return body

    def _client(self) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        context = _certificates() if self.base_url.startswith("https") else False
        return {"base_url": self.base_url, "headers": headers, "timeout": self.timeout_s, "verify": context}

    def _read(self, response: httpx2.Response) -> list[RetrievedPassage]:
        try:
            body = response.json()
        except ValueError:
            body = {}
        if response.status_code == 200 and "results" in body:
            rows = [{name: row[name] for name in _FIELDS & row.keys()} for row in body["results"]]
            return _shown([SearchResult(**row) for row in rows])
        raise self._refusal(response, str(body.get("detail") or f"the status is {response.status_code}."))

    def _refusal(self, response: httpx2.Response, detail: str) -> DtragError:
        status, seconds = response.status_code, response.headers.get("retry-after", "a few")
        if status == 401:
            sent = "does not accept this api_key" if self.api_key else "needs an api_key"
            return Unauthorized(f"{self.base_url} {sent}: an administrator creates one with: dtrag keys create")
        if status in {429, 503}:
            kind = TooManyRequests if status == 429 else Overloaded
            return kind(f"{self.base_url} refuses the search for now: {detail} Try again in {seconds} seconds.")
        if status == 403:
            return Forbidden(f"{self.base_url} does not allow the search: {detail}")
        if status in {400, 422}:
            return InvalidInput(f"{self.base_url} does not take the search: {detail}")
        return FetchFailed(f"{self.base_url} is not a service of dtrag, or has failed: {detail} Check base_url.")

    def _unreachable(self) -> FetchFailed:
        return FetchFailed(f"No service answers at {self.base_url} in time: check base_url, or start it with: dtrag up")


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates that the machine trusts; to read them takes longer than a search."""
    return ssl.create_default_context()


def _shown(results: list[SearchResult]) -> list[RetrievedPassage]:
    return [
        RetrievedPassage(result.chunk_id, result.text, result.ordering_score, result.flat_metadata())
        for result in results
    ]
