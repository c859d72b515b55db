"""`serve()`: runs the service as a process with a graceful stop.

On SIGTERM or Ctrl-C `/readyz` turns 503. After SIGTERM requests are still accepted for a moment so that load balancers
notice; then the current responses are finished and the database is closed. Supervisors usually kill after 30 s;
DTRAG_DRAIN_SECONDS and DTRAG_STOP_SECONDS together stay below that.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

import uvicorn

from dtrag import logs
from dtrag.counts import Counts
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.connections import CLIENTS, ConnectionLimits, Connections, affordable, raise_descriptor_limit
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.http_server import HttpServer
from dtrag.delivery.api.owner_socket import OwnerSocket, owner_socket
from dtrag.delivery.listening import address_of, is_loopback, listen
from dtrag.errors import CannotListen
from dtrag.personal_data import mask_of
from dtrag.ports import Embedder
from dtrag.settings import Settings

DRAIN_S = 1.0
"""Seconds in which a worker that leaves its service to the others finishes without accepting connections."""
LAST_WORDS_S = 2.0
"""Seconds before the end of DTRAG_STOP_SECONDS at which unfinished answers are cancelled with an error response."""


class Stop:
    """The end of a service: `begin` gracefully, which a second call turns into the end of the current responses."""

    def __init__(self, server: HttpServer, service: Service) -> None:
        self._server = server
        self._service = service
        self._loop = asyncio.get_running_loop()

    def begin(self, *, drain: bool) -> None:
        """Accept requests for a while (`drain`) with `/readyz` at 503, then finish those in progress and leave."""
        if self._service.stopping:
            self._server.force_exit = True
            self._service.in_flight.end()
            self._leave()
            return
        self._service.stopping = True
        drain_s = self._service.settings.drain_seconds if drain and self._server.started else 0
        self._loop.call_later(drain_s, self._leave)

    def retire(self) -> None:
        """Leave the service to its other processes: accept no connection, finish, and leave."""
        if not self._service.stopping:
            self._server.retire()
            self._loop.call_later(DRAIN_S, self._leave)

    def _leave(self) -> None:
        self._server.should_exit = True
        finish_s = max(0.0, self._service.settings.stop_seconds - LAST_WORDS_S)
        self._loop.call_later(finish_s, self._service.in_flight.end)


@contextlib.contextmanager
def _stopped_by_signals(stop: Stop) -> Iterator[None]:
    """The first signal stops gracefully; a second one cancels the current responses."""
    loop = asyncio.get_running_loop()
    drains = {signal.SIGTERM: True, signal.SIGINT: False}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell: it stays ignored
        del drains[signal.SIGINT]
    for number, drain in drains.items():
        loop.add_signal_handler(number, partial(stop.begin, drain=drain))
    try:
        yield
    finally:
        for number in drains:
            loop.remove_signal_handler(number)


def _print(line: str) -> None:
    sys.stderr.write(line + os.linesep)
    sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What differs between a service of one process and one of several workers: what a process has in common with the
    others, and who stops it and prints its messages."""

    counts: Counts = field(default_factory=Counts)
    owner: Callable[[Service], AbstractContextManager[OwnerSocket | None]] = owner_socket
    stopped: Callable[[Stop], AbstractContextManager[None]] = _stopped_by_signals
    note: Callable[[str], None] = _print
    listening: Callable[[str], None] = _print
    embedder: Embedder | None = None
    """That of the settings, already loaded; None: not yet."""
    warm_first: bool = False
    """Whether models and index are loaded before the first connection is accepted: others accept until then."""


async def run(settings: Settings, listener: socket.socket, around: Surroundings) -> None:
    """Serve until stopped. Raises `CannotListen` and what opening the app raises."""
    api = create_app(settings, around.counts, around.embedder)
    service: Service = api.state.service
    config = uvicorn.Config(
        api,
        lifespan="off",  # entered below, so that errors while opening are raised unchanged
        log_config=None,
        access_log=False,  # our log line has the route instead of the address
        server_header=False,
        proxy_headers=False,  # clients.py reads them, from the proxies in the settings only
        ws="none",
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=max(1, settings.stop_seconds),
    )
    warming: list[asyncio.Task[None]] = []

    def listening() -> None:
        around.listening(address_of(listener))
        if not around.warm_first:
            service.ready = False
            warming.append(asyncio.create_task(_warm(service)))

    most = -(-settings.connections_at_once // settings.workers)
    limits = ConnectionLimits(most=affordable(most, raise_descriptor_limit()), idle=settings.idle_seconds)
    server = HttpServer(config, Connections(limits, around.counts, CLIENTS), listening)
    with around.stopped(Stop(server, service)):
        async with api.router.lifespan_context(api):
            await _check_keys(settings, service, around.note)
            if around.warm_first:
                await asyncio.gather(_warm(service), return_exceptions=True)
            with around.owner(service) as server.owner:
                await server.serve([listener])
            for task in warming:
                task.cancel()
            await asyncio.gather(*warming, return_exceptions=True)


async def _warm(service: Service) -> None:
    """`Service.warm`. What it has loaded lives as long as the process: with a book of regulations a collection of
    garbage would take .16 s to go over it, every 200 answers."""
    await service.warm()
    gc.collect()
    gc.freeze()


async def _check_keys(settings: Settings, service: Service, note: Callable[[str], None]) -> None:
    """Note who has access while there is no key. Raises `CannotListen` if other machines could connect."""
    if await service.app.keys.needed() or service.app.public is not None:
        return
    if not is_loopback(settings.host):
        raise CannotListen(
            f"{settings.host} is not a loopback address, and there is no key yet: anyone who reaches the port would "
            "see, add and delete every document. Create a key first with: dtrag keys create --name NAME --role admin"
        )
    note("No key is configured: only this machine has access, to everything. Create one with: dtrag keys create")


def serve(settings: Settings, on_listening: Callable[[str], None] | None = None) -> int:
    """Run until SIGTERM or SIGINT, then return 0. Raises `CannotListen` and what opening the app raises.

    `on_listening` receives the address once the service is ready there.
    """

    def listening(address: str) -> None:
        _print(f"dtrag is listening on {address} (docs at /docs)")
        if on_listening is not None:
            on_listening(address)

    logs.configure(settings.log_level, settings.log_format, mask_of(settings))
    with contextlib.closing(listen(settings.host, settings.port)) as listener:
        asyncio.run(run(settings, listener, Surroundings(listening=listening)))
    return 0
