"""Starts few requests per pass of the event loop, so that a thousand at once do not delay a liveness check.

Requests that arrive together would start in the same pass of the event loop, and a pass with a thousand requests takes
seconds in which nothing else is read or answered. Pure ASGI, outermost middleware.
"""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send

from dtrag.delivery.api.connections import ALWAYS_ANSWERED

STARTED_PER_PASS = 1
"""Requests started per pass of the event loop. With 8, a thousand concurrent searches start so fast that started ones
hardly progress: only a fifth as many are answered in time."""


class Pacing:
    """Starts requests in order of arrival, `STARTED_PER_PASS` in each pass of the event loop."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._started = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http" and scope["path"] != ALWAYS_ANSWERED:
            await self._turn()
        await self._app(scope, receive, send)

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._started:
            loop.call_soon(self._next_pass)
        if self._started < STARTED_PER_PASS and not self._waiting:
            self._started += 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_pass(self) -> None:
        self._started = 0
        while self._waiting and self._started < STARTED_PER_PASS:
            turn = self._waiting.popleft()
            if not turn.done():  # its request may have been cancelled
                turn.set_result(None)
                self._started += 1
        if self._started:
            asyncio.get_running_loop().call_soon(self._next_pass)
