"""All embeddings of dtrag are computed by the functions of this module, which are called by attribute.

A program can replace one of them (`mock.patch.object(dtrag.embedding_service, "generate_embedding", ...)`) to
affect every question of the process. The engine passes its own embedder, so that several apps of a process do not mix.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

from dtrag.core.documents import Vector
from dtrag.current_app import active
from dtrag.ports import Embedder, NotConfigured


async def generate_embedding(
    text: str, *, embedder: Embedder | NotConfigured | None = None, executor: Executor | None = None
) -> Vector | None:
    """The vector of a question; None when no embedder is configured.

    Without `embedder` it is the open app's. The computation runs in a thread of `executor` (None: the event loop's).
    Raises `NoActiveApp`, and what the embedder raises.
    """
    chosen = active().embedder if embedder is None else embedder
    if chosen is None or isinstance(chosen, NotConfigured):
        return None
    loop = asyncio.get_running_loop()
    vectors: Vector = await loop.run_in_executor(executor, chosen.embed_queries, [text])
    return vectors[0]  # type: ignore[no-any-return]


def embed_passages(texts: Sequence[str], *, embedder: Embedder) -> Vector:
    """Vectors of passages and sentences, shape (len(texts), dim). Blocking and CPU-bound: call it in a thread."""
    return embedder.embed_documents(texts)


def embed_questions(texts: Sequence[str], *, embedder: Embedder) -> Vector:
    """Vectors of questions, shape (len(texts), dim). As `embed_passages`, for code that runs in a thread already."""
    return embedder.embed_queries(texts)


def embed_question(text: str, *, embedder: Embedder) -> Vector:
    """The vector of a question."""
    vector: Vector = embed_questions([text], embedder=embedder)[0]
    return vector
