"""`POST /v1/embeddings`: the vectors of the embedder in use, for programs that keep an index of their own."""

from __future__ import annotations

import base64
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from dtrag import embedding_service
from dtrag.concurrency import DaemonThreads
from dtrag.core.documents import Vector
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.openai_reply import WHOLE_SCOPE
from dtrag.delivery.api.permissions import READ
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routes.openai import UsageShape, openai_failures
from dtrag.delivery.api.routing import JsonRoute
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import Embedder, model_for

MAX_TEXTS = 64
MAX_CHARACTERS = 20_000
AT_ONCE = 8
"""Texts between two of which a question may take its turn."""
_THREADS = DaemonThreads(1, "embed-for-programs")
EmbeddedText = Annotated[str, Field(max_length=MAX_CHARACTERS)]


class EmbeddingRequest(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(max_length=500, description="dtrag, or the id of the embedder's model.")
    input: EmbeddedText | Annotated[list[EmbeddedText], Field(min_length=1, max_length=MAX_TEXTS)] = Field(
        description="A text, or up to 64; longer ones are embedded by their beginning."
    )
    input_type: Literal["document", "query"] = Field(
        default="document", description="query for a question that is compared with documents."
    )
    encoding_format: Literal["float", "base64"] = Field(
        default="float", description="float, or base64 of 32-bit floats, little-endian."
    )
    dimensions: int | None = Field(default=None, description="The length of its vectors, or omitted.")


class EmbeddingShape(BaseModel):
    """The vector of one text."""

    object: Literal["embedding"] = Field(default="embedding", description="embedding.")
    index: int = Field(description="Place of the text, from 0.")
    embedding: list[float] | str = Field(description="The vector, of length 1, in the requested encoding.")


class EmbeddingList(BaseModel):
    """The vectors, in the order of the texts."""

    object: Literal["list"] = Field(default="list", description="list.")
    data: list[EmbeddingShape] = Field(description="One for each text.")
    model: str = Field(description="The model's id: vectors of another one must not be compared with these.")
    usage: UsageShape = Field(description="0: the model runs in the service.")


router = APIRouter(route_class=JsonRoute, tags=["openai"])


@router.post("/v1/embeddings", responses=openai_failures(400, 403, 404, 413, 415, 422, 503), dependencies=READ)
async def embed(request: Request, body: EmbeddingRequest) -> EmbeddingList:
    """The vectors of the texts, by the model that embeds documents of any language unless another one is named."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    model = _model(app_of(request).embedder, body.model)
    if body.dimensions not in {None, model.dim}:
        raise InvalidInput(f"The vectors of {model.id} have {model.dim} dimensions: omit 'dimensions'.")
    vectors = await until_gone(
        request, service_of(request).in_flight, _embedded(request, texts, model, query=body.input_type == "query")
    )
    return EmbeddingList(
        data=[
            EmbeddingShape(index=index, embedding=_encoded(vector) if body.encoding_format == "base64" else vector)
            for index, vector in enumerate(vectors.tolist() if body.encoding_format == "float" else vectors)
        ],
        model=model.id,
        usage=UsageShape(prompt_tokens=0, completion_tokens=0, total_tokens=0),
    )


def _model(embedder: Embedder | None, name: str) -> Embedder:
    """Raises `NotFound` for an unknown name, and without an embedder."""
    default = model_for(embedder, "und")
    if embedder is None or default is None:
        raise NotFound("No embedder is installed or set, so there are no vectors; dtrag doctor says more.")
    models = {model.id: model for code in ("en", "und") if (model := model_for(embedder, code)) is not None}
    models[WHOLE_SCOPE] = default
    if name not in models:
        raise NotFound(f"There is no embedding model {name[:60]!r}. Name one of {', '.join(models)}.")
    return models[name]


async def _embedded(request: Request, texts: list[str], model: Embedder, *, query: bool) -> Vector:
    """In parts, so that questions and searches are not held up by many texts. Raises `Overloaded`."""
    make = embedding_service.embed_questions if query else embedding_service.embed_passages
    admission, parts = app_of(request).run.admission, []
    for start in range(0, len(texts), AT_ONCE):
        async with admission.search(), admission.cpu():
            parts.append(await _THREADS.run(make, texts[start : start + AT_ONCE], embedder=model))
    return np.concatenate(parts)


def _encoded(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode("ascii")
