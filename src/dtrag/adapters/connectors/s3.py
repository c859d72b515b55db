"""A bucket of S3 or of a server with the same protocol, by `s3fs`: the objects below one prefix."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote

from dtrag.adapters.connectors.names import IN_ADDRESS, WithoutRights, readable
from dtrag.adapters.web.guarded_transport import Resolve, resolve
from dtrag.core.access.egress import Allowed, checked, target
from dtrag.errors import InvalidInput, MissingExtra, SourceUnavailable
from dtrag.ports.connectors import SourceItem

_T = TypeVar("_T")
FORM = "s3://BUCKET[/PREFIX]"
MAX_BYTES = 512 << 20
"""Largest object that is fetched."""
_CHANGED = frozenset({"412", "PreconditionFailed"})
_CONFIG = {"retries": {"max_attempts": 3, "mode": "standard"}, "connect_timeout": 5, "read_timeout": 60}


class S3Source(WithoutRights):
    """Implements `dtrag.ports.connectors.Connector`; the mark of a file is the object's ETag and size.

    Endpoint, region and credentials are those of the usual environment of AWS. The endpoint has to be one that the
    egress policy allows.
    """

    def __init__(self, address: str, allowed: Allowed = frozenset(), *, resolve: Resolve = resolve) -> None:
        """Raises `InvalidInput` for what is not such an address, and `MissingExtra`."""
        self._bucket, _, prefix = address.removeprefix("s3://").partition("/")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{2,62}", self._bucket):
            raise InvalidInput(f"This is not the address of a bucket. Write {FORM}, without credentials.")
        if find_spec("s3fs") is None:
            raise MissingExtra(feature="A source in S3", extra="s3")
        self._prefix = unquote(prefix).rstrip("/") + "/" if prefix.strip("/") else ""
        self._base = f"s3://{self._bucket}/"
        self.address = (self._base + readable(self._prefix, IN_ADDRESS)).rstrip("/")
        self._file_system: Any = None
        self._allowed = allowed
        self._resolve = resolve

    async def items(self) -> Sequence[SourceItem]:
        """The objects below the prefix, without those whose key ends with a slash. Raises `SourceUnavailable`."""
        return await _apart(self._items())

    async def fetch(self, item: SourceItem, path: Path) -> None:
        """Write the object, if it still has the listed ETag. Raises `SourceUnavailable`."""
        await _apart(self._fetch(item, path))

    async def close(self) -> None:
        """Close the connections."""
        if self._file_system is not None:
            await _apart(self._close())

    async def _items(self) -> Sequence[SourceItem]:
        items = []
        async with self._client() as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
            async for page in pages:
                items += [self._item(row) for row in page.get("Contents", ()) if not row["Key"].endswith("/")]
        return items

    def _item(self, row: dict[str, Any]) -> SourceItem:
        key, etag = row["Key"], row["ETag"].strip('"')
        mark = f"{quote(etag)}:{row['Size']}"
        if not re.fullmatch(r"[0-9a-f]{32}(-\d+)?", etag):  # it is not the MD5 of the content: others may have it too
            mark += f":{quote(key)}"
        path = key.removeprefix(self._prefix).lstrip("/")
        return SourceItem(self._base + readable(key, IN_ADDRESS), readable(path), mark)

    async def _fetch(self, item: SourceItem, path: Path) -> None:
        key, etag = unquote(item.uri.removeprefix(self._base)), unquote(item.mark.partition(":")[0])
        async with self._client() as client:
            reply = await client.get_object(Bucket=self._bucket, Key=key, IfMatch=f'"{etag}"')
            async with reply["Body"] as body:
                if reply["ETag"].strip('"') != etag:
                    raise SourceUnavailable(address=item.uri, reason="it has changed since it was listed.")
                if reply["ContentLength"] > MAX_BYTES:
                    raise SourceUnavailable(address=item.uri, reason=f"it is larger than {MAX_BYTES >> 20} MiB.")
                with path.open("wb") as file:
                    async for piece in body.iter_chunks(1 << 18):
                        file.write(piece)

    async def _close(self) -> None:
        client = await self._file_system.set_session()
        await client.close()
        self._file_system = None

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        """The client of the service, whose errors become `SourceUnavailable`."""
        import s3fs
        from aiohttp import ClientError as ConnectionBroke
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if self._file_system is None:
                options = {"loop": asyncio.get_running_loop(), "config_kwargs": _CONFIG, "skip_instance_cache": True}
                self._file_system = s3fs.S3FileSystem(asynchronous=True, **options)
            client = await self._file_system.set_session()
            endpoint = target(client.meta.endpoint_url, self._allowed)
            checked(endpoint, await self._resolve(endpoint.host, endpoint.port))
            yield client
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            reason = "it has changed since it was listed." if code in _CHANGED else f"the service answered {code[:60]}."
            raise SourceUnavailable(address=self.address, reason=reason) from error
        except (BotoCoreError, ConnectionBroke, InvalidInput, OSError) as error:
            raise SourceUnavailable(address=self.address, reason=str(error)[:300] or type(error).__name__) from error


async def _apart(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of the work on the event loop that fsspec has in a thread of its own.

    The first client of a process needs half a second of processor time, another one 0.2 s.
    """
    asyn = await asyncio.to_thread(import_module, "fsspec.asyn")
    return cast("_T", await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, asyn.get_loop())))
