"""Ports of models: embedders, rerankers, language models, and judges of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeVar, runtime_checkable

from dtrag.core.chat import Message, Reply
from dtrag.core.documents import Vector
from dtrag.core.quality.scores import Judgement, Relevance
from dtrag.core.text.analysis import Analyzer

Key = TypeVar("Key", bound=Hashable)


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors. Blocking and CPU-bound: callers run it in a thread."""

    @property
    def id(self) -> str:
        """Model name and hash of the weights, e.g. `minilm-int8@1b7d3c2a`; of several models with `+` between them.

        Stored with the index: vectors of different embedders are never compared.
        """

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens of the model; longer texts are truncated."""

    @property
    def languages(self) -> frozenset[str]:
        """Supported languages as ISO 639-1 codes; `{"*"}` = all. Texts in other languages get no vector."""

    @property
    def floor(self) -> float:
        """The cosine of unrelated texts, in [0, 1): 0.0 for most models, .75 for one whose cosines lie above it."""

    @property
    def decides(self) -> bool:
        """Whether its cosines may decide: which sentence answers, what is supported, whether questions are the same.

        False for a model that the constants of these decisions are not fitted to: it only proposes passages and cases.
        """

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Vectors of passages: float32, shape (len(texts), dim), L2-normalised."""

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Vectors of questions: float32, shape (len(texts), dim), L2-normalised."""


class NotConfigured(Enum):
    """The type of `NOT_CONFIGURED`."""

    NOT_CONFIGURED = "not configured"


NOT_CONFIGURED: Final = NotConfigured.NOT_CONFIGURED
"""Passed to `embedding_service` and `llm_service` for "no model": there, None means the model of the open app."""


@runtime_checkable
class EmbedderRouter(Protocol):
    """An embedder of several models, each for the languages that it is best at."""

    def of(self, code: str) -> Embedder | None:
        """The model for texts of the language; None without one."""


def model_for(embedder: Embedder | None, code: str) -> Embedder | None:
    """The model that embeds texts of the language (ISO 639-1 code, or `und`): of a router the routed one, None if none
    does. Vectors are compared only with those of the same model."""
    of: Callable[[str], Embedder | None] | None = getattr(embedder, "of", None)  # `EmbedderRouter.of`
    if of is not None:
        return of(code)
    return embedder if embedder is not None and ("*" in embedder.languages or code in embedder.languages) else None


def speaks(embedder: Embedder | None, code: str, *, deciding: bool = False) -> bool:
    """Whether there is a model for the language; with `deciding`, one whose cosines may decide."""
    model = model_for(embedder, code)
    return model is not None and (model.decides or not deciding)


def similarity(model: Embedder | None, cosines: Mapping[Key, float]) -> dict[Key, float]:
    """The cosines of a model's vectors as shares, from 0 for unrelated texts to 1: comparable between models."""
    floor = model.floor if model is not None else 0.0
    shares = [(cosine - floor) / (1.0 - floor) for cosine in cosines.values()]
    bounded = [share if 0.0 < share < 1.0 else min(1.0, max(0.0, share)) for share in shares]
    return dict(zip(cosines, bounded, strict=True))


@runtime_checkable
class Tokenizing(Protocol):
    """A model whose tokenizer is on this machine."""

    def unknown_tokens(self, texts: Sequence[str]) -> tuple[int, int]:
        """How many tokens of the texts the model does not know, and how many tokens they have."""


@runtime_checkable
class Loadable(Protocol):
    """A model or dictionary with a slow first use: an embedder, a reranker, a morphological analyzer."""

    def load(self) -> None:
        """Load it now, if it is not loaded. Blocking. Raises what its first use would raise."""


@runtime_checkable
class Warmable(Protocol):
    """A model client with a slow first use, because it imports libraries."""

    async def warm(self) -> None:
        """Import the libraries now, if they are not. Sends nothing and raises nothing."""


class Reranker(Protocol):
    """Scores passages by reading them together with the query. Blocking and CPU-bound: callers run it in a thread."""

    @property
    def id(self) -> str:
        """Name of the model, e.g. `cross-encoder/ms-marco-MiniLM-L-6-v2`."""

    @property
    def languages(self) -> frozenset[str]:
        """Languages of the queries that it supports, as ISO 639-1 codes; `{"*"}` = all."""

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        """Relevance in (0, 1) of each text; None when it was not finished by `deadline` (of `time.monotonic()`)."""


@runtime_checkable
class Monitored(Protocol):
    """A client of a model that remembers whether its last call failed."""

    @property
    def problem(self) -> str:
        """Why the last call failed; "" when it did not, or there was none."""


class ChatModel(Protocol):
    """A language model that replies to messages."""

    @property
    def id(self) -> str:
        """Provider and model, such as `openai:gpt-4o-mini`; never contains a secret."""

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """Price of that many tokens in won; 0.0 when no price is configured."""

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        """The whole reply. Retries transient failures (429, 5xx, broken connections) as long as `seconds` allow.

        Raises `LanguageModelFailed`, also when `seconds` have passed; nothing else but `CancelledError`.
        """

    def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str | Reply]:
        """Pieces of the reply as they arrive; the last item is the whole `Reply`.

        Raises as `complete` does; there are no retries after the first piece.
        """

    async def close(self) -> None:
        """Release connections."""


class CategoryModel(Protocol):
    """A language model that classifies texts. Blocking: callers run it in a thread."""

    def classify(self, text: str, paths: Sequence[str]) -> tuple[str, float]:
        """One of the category paths (`AI/ML`), and the model's own confidence in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of an app. None: it works without. `critic` is the second agent of debates."""

    embedder: Embedder | None = None
    analyzer: Analyzer = Analyzer()
    reranker: Reranker | None = None
    chat: ChatModel | None = None
    critic: ChatModel | None = None


class Judge(Protocol):
    """Judges claims, one judgement for each, in order. Raises a `DtragError` when it cannot."""

    @property
    def id(self) -> str:
        """Names the judge and its version in reports: `lexical`, `openai:gpt-4o-mini`, a folder's name."""

    async def support(self, claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
        """Whether the contexts support each claim. `query` is the question that the claims answer."""

    async def relevance(self, query: str, answer: str) -> Relevance:
        """How well the answer replies to the query, whether or not it is true."""


class ClaimChecker(Protocol):
    """A model that reads a source and a claim. Blocking and CPU-bound: callers run it in a thread."""

    @property
    def id(self) -> str:
        """Name of the model."""

    def check(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability in [0, 1] that the source supports the claim, for each pair of them."""
