"""Threads of the embedder's own: one that hangs must not hold up what else runs in threads."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_EMBEDDING = ThreadPoolExecutor(2, thread_name_prefix="dtrag-embedding")


async def beside(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """As `asyncio.to_thread`, in the embedder's threads; the call goes on in there when the caller gives up."""
    call: Any = functools.partial(function, *arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_EMBEDDING, call)
