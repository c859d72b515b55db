"""One request and its answer over a connection that is open: HTTP/1.1 by h11, with limits on the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtrag.core.access.egress import Target
from dtrag.errors import FetchFailed
from dtrag.ports import WebRequest

if TYPE_CHECKING:
    import h11

READ_BYTES = 64 * 1024
AGENT = "dtrag"


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of headers are in lower case; of those that come twice the first counts. Redirects have no body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


async def exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: WebRequest,
    wanted: Target,
    *,
    most: int,
    types: frozenset[str],
) -> Answer:
    """The server's answer, its body of at most `most` bytes and, when it is a success, of one of the media types.

    Asked for without compression, so that the limit holds for what is read. Raises `FetchFailed` and `OSError`.
    """
    import h11

    connection = h11.Connection(h11.CLIENT)
    headers = {"Accept": ", ".join(sorted(types)), **request.headers}
    headers |= {"Host": wanted.authority, "User-Agent": AGENT, "Accept-Encoding": "identity", "Connection": "close"}
    if request.body:
        headers["Content-Length"] = str(len(request.body))
    try:
        asked = h11.Request(method=request.method, target=wanted.path, headers=list(headers.items()))
        sent = [connection.send(asked), connection.send(h11.Data(data=request.body)) if request.body else b""]
        writer.write(b"".join(part or b"" for part in [*sent, connection.send(h11.EndOfMessage())]))
        await writer.drain()
        return await _answer(connection, reader, wanted.host, most, types)
    except h11.ProtocolError as error:
        raise FetchFailed(host=wanted.host, reason="it does not speak HTTP as it should.") from error


async def _answer(
    connection: h11.Connection, reader: asyncio.StreamReader, host: str, most: int, types: frozenset[str]
) -> Answer:
    """The answer as it comes in. Raises `FetchFailed` as soon as something about it is not acceptable."""
    import h11

    answer = Answer(0, {}, b"")
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Response):
            answer = Answer(event.status_code, _texts(event.headers), b"")
            if not 200 <= answer.status < 300:
                return answer
            _acceptable(answer, host, types)
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most:
                raise FetchFailed(host=host, reason=f"its answer is longer than {most:,} bytes.")
        elif isinstance(event, h11.EndOfMessage):
            return Answer(answer.status, answer.headers, bytes(body))
        elif not isinstance(event, h11.InformationalResponse):
            raise FetchFailed(host=host, reason="it closed the connection.")


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in headers:
        texts.setdefault(name.decode("ascii"), value.decode("latin-1"))
    return texts


def _acceptable(answer: Answer, host: str, types: frozenset[str]) -> None:
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise FetchFailed(host=host, reason="its answer is compressed, which was not asked for.")
    if types and answer.media_type not in types:
        raise FetchFailed(host=host, reason=f"its answer is of the type {answer.media_type[:60]!r}.")
