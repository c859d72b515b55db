"""A limit on the body of an HTTP response, for each client of this package: no server can fill the memory."""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

Refusal = Callable[[str], Exception]
"""Makes the error to raise from the reason, a sentence whose subject is the server's response."""


def bound(response: Any, max_bytes: int | None, refusal: Refusal) -> None:
    """Have the body raise `refusal(reason)` where it exceeds `max_bytes`. A compressed response is refused at once.

    None is for a stream without an end whose client limits each of its parts. `response` is one of httpx or of httpx2:
    which of them a client library uses depends on its version.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise refusal("its response is compressed, although the request excluded that.")
    if max_bytes is None:
        return
    library = sys.modules[type(response).__module__.partition(".")[0]]
    response.stream = _bounded_stream(library.AsyncByteStream)(response.stream, max_bytes, refusal)


@functools.cache
def _bounded_stream(byte_stream: type[Any]) -> type[Any]:
    class BoundedStream(byte_stream):  # type: ignore[misc]
        """The body of a response, of at most so many bytes."""

        def __init__(self, stream: Any, max_bytes: int, refusal: Refusal) -> None:
            self._stream = stream
            self._max_bytes = max_bytes
            self._refusal = refusal

        async def __aiter__(self) -> AsyncIterator[bytes]:
            total = 0
            async for piece in self._stream:
                total += len(piece)
                if total > self._max_bytes:
                    raise self._refusal(f"its response is longer than {_size(self._max_bytes)}.")
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return BoundedStream


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count % 2**20 == 0 else f"{count:,} bytes"
