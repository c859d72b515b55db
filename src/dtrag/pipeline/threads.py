"""Threads of the embedder's own: one that hangs must not hold up what else runs in threads."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from dtrag.retrieval.threads import DaemonThreads

P = ParamSpec("P")
T = TypeVar("T")
_EMBEDDING = DaemonThreads(2, "dtrag-embedding")


async def beside(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """As `asyncio.to_thread`, in the embedder's threads; the call goes on in there when the caller gives up."""
    call: Any = functools.partial(function, *arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_EMBEDDING, call)
