"""`serve()`: runs the service as a process with a graceful stop.

On SIGTERM or Ctrl-C `/readyz` turns 503. After SIGTERM requests are still accepted for a moment so that load balancers
notice; then the current responses are finished and the database is closed. Supervisors usually kill after 30 s;
`DRAIN_S` and DTRAG_STOP_SECONDS together stay below that.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import uvicorn

from dtrag import logs
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.connections import ConnectionLimits, Connections, affordable, raise_descriptor_limit
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.http_server import HttpServer
from dtrag.delivery.api.owner_socket import owner_socket
from dtrag.errors import CannotListen
from dtrag.settings import Settings

DRAIN_S = 1.0
"""Seconds during which requests are still accepted after SIGTERM, with `/readyz` at 503; 0 after Ctrl-C."""
LAST_WORDS_S = 2.0
"""Seconds before the end of DTRAG_STOP_SECONDS at which unfinished answers are cancelled with an error response."""
BACKLOG = 4_096
"""Clients that may wait to be accepted: more than `connections_at_once`, as the system resets connections beyond it."""


def serve(settings: Settings, on_listening: Callable[[str], None] | None = None) -> int:
    """Run until SIGTERM or SIGINT, then return 0. Raises `CannotListen` and what opening the app raises.

    `on_listening` receives the address once the service is ready there.
    """
    logs.configure(settings.log_level, settings.log_format)
    listener = listen(settings.host, settings.port)
    with contextlib.closing(listener):
        asyncio.run(_run(settings, listener, on_listening))
    return 0


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 means any free one. Raises `CannotListen`.

    It listens before the database is opened: a port in use is detected at once, and early clients wait in the queue.
    """
    try:
        if not 0 <= port <= 65_535:
            raise OverflowError("a port is a number up to 65535")  # the resolver would take it modulo 65536
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = (
            "it is not a valid host name"
            if isinstance(error, UnicodeError)
            else getattr(error, "strerror", "") or error
        )
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            reason = "another program listens there (perhaps another dtrag)"
        other = port + 1 if 1024 <= port < 65535 else 8001
        raise CannotListen(host=host, port=port, reason=reason, other=other) from error
    listener.setblocking(False)
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def _run(settings: Settings, listener: socket.socket, on_listening: Callable[[str], None] | None) -> None:
    api = create_app(settings)
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
        _print(f"dtrag is listening on {_address(listener)} (docs at /docs)")
        if on_listening is not None:
            on_listening(_address(listener))
        service.ready = False
        warming.append(asyncio.create_task(service.warm()))

    limits = ConnectionLimits(
        most=affordable(settings.connections_at_once, raise_descriptor_limit()), idle=settings.idle_seconds
    )
    server = HttpServer(config, Connections(limits), listening)
    with _stopped_by_signals(server, service):
        async with api.router.lifespan_context(api):
            await _check_keys(settings, service)
            with owner_socket(service) as server.owner:
                await server.serve([listener])
            for task in warming:
                task.cancel()
            await asyncio.gather(*warming, return_exceptions=True)


@contextlib.contextmanager
def _stopped_by_signals(server: HttpServer, service: Service) -> Iterator[None]:
    """The first signal stops gracefully; a second one cancels the current responses."""
    loop = asyncio.get_running_loop()

    finish_s = max(0.0, service.settings.stop_seconds - LAST_WORDS_S)

    def leave() -> None:
        server.should_exit = True
        loop.call_later(finish_s, service.in_flight.end)

    def stop(drain_s: float) -> None:
        if service.stopping:
            server.force_exit = True
            service.in_flight.end()
            leave()
            return
        service.stopping = True
        loop.call_later(drain_s if server.started else 0.0, leave)

    drains = {signal.SIGTERM: DRAIN_S, signal.SIGINT: 0.0}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell: it stays ignored
        del drains[signal.SIGINT]
    for number, drain_s in drains.items():
        loop.add_signal_handler(number, stop, drain_s)
    try:
        yield
    finally:
        for number in drains:
            loop.remove_signal_handler(number)


async def _check_keys(settings: Settings, service: Service) -> None:
    """Print who has access while there is no key. Raises `CannotListen` if other machines could connect."""
    if await service.app.keys.needed():
        return
    if not is_loopback(settings.host):
        raise CannotListen(
            f"{settings.host} is not a loopback address, and there is no key yet: anyone who reaches the port would "
            "see, add and delete every document. Create a key first with: dtrag keys create --name NAME --role admin"
        )
    _print("No key is configured: only this machine has access, to everything. Create one with: dtrag keys create")


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _print(line: str) -> None:
    sys.stderr.write(line + os.linesep)
    sys.stderr.flush()
