"""Embeddings by a server that speaks the OpenAI protocol: OpenAI itself, or one of your own.

Texts of documents and questions are sent to that server. A text is cut to as many bytes as the model takes tokens: no
token of these models is shorter than a byte, so no text is refused for its length.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtrag.core.access.grade_limits import Limits, Recipient
from dtrag.core.documents import Vector
from dtrag.core.taxonomy.grades import Grades
from dtrag.errors import EmbedderFailed, InvalidInput, MissingExtra
from dtrag.personal_data import mask_of
from dtrag.settings import Settings, usual_key

DEFAULT_MODEL = "text-embedding-3-small"
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
ADDRESS = "https://api.openai.com/v1"
MAX_TOKENS = 8_191
BATCH = 64
"""Texts of one request."""
SECONDS = 30.0
RETRIES = 2
_BLANK = "."
"""Sent in place of a text without a visible character, which the protocol refuses."""


class OpenAIEmbedder:
    """Blocking, safe to call from several threads. Nothing is imported or connected to before the first text."""

    max_tokens = MAX_TOKENS
    languages = frozenset({"*"})
    floor = 0.0
    decides = True

    def __init__(
        self,
        model: str,
        *,
        address: str,
        key: str,
        seconds: float = SECONDS,
        mask: Callable[[str], str] = str,
        limits: Limits = Limits(),
    ) -> None:
        self._mask = mask
        self.dim = DIMENSIONS[model]
        # The weights are not ours to hash: what can be told apart is the model and the server that has it.
        digest = hashlib.sha256(f"{address}\n{model}\n{self.dim}".encode()).hexdigest()
        self.id = f"openai-{model}@{digest[:8]}"
        self.destination = Recipient("embedder", f"openai:{model}", address)
        self.limit = limits.of(self.destination)
        self._model, self._address, self._key, self._seconds = model, address, key, seconds
        self._client: Any = None
        self._lock = threading.Lock()

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`. Raises `EmbedderFailed`."""
        vectors = np.empty((len(texts), self.dim), np.float32)
        for start, batch in _batches(texts):
            vectors[start : start + len(batch)] = self._request(batch)
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`: these models have no prefixes for either side."""
        return self.embed_documents(texts)

    def _request(self, texts: Sequence[str]) -> Vector:
        import openai

        try:
            reply = self._connected().embeddings.create(
                model=self._model, input=[_sendable(self._mask(text)) for text in texts], encoding_format="float"
            )
            rows = sorted(reply.data, key=lambda row: row.index)
            vectors = np.asarray([row.embedding for row in rows], np.float32)
        except openai.APIStatusError as error:
            raise EmbedderFailed(name=self.id, reason=f"its server answered {error.status_code}.") from error
        except (openai.OpenAIError, AttributeError, TypeError, ValueError) as error:
            raise EmbedderFailed(name=self.id, reason=f"{type(error).__name__}.") from error
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True) if vectors.ndim == 2 else np.zeros((1, 1))
        if vectors.shape != (len(texts), self.dim) or not np.isfinite(vectors).all() or not lengths.all():
            raise EmbedderFailed(name=self.id, reason=f"it gave no {len(texts)} vectors of {self.dim} numbers.")
        return np.asarray(vectors / lengths, np.float32)

    def _connected(self) -> Any:
        import openai

        with self._lock:
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key=self._key, base_url=self._address, timeout=self._seconds, max_retries=RETRIES
                )
            return self._client


def create(name: str, settings: Settings) -> OpenAIEmbedder:
    """The embedder that `openai` or `openai:MODEL` names. Raises `InvalidInput` and `MissingExtra`."""
    model = name.partition(":")[2] or DEFAULT_MODEL
    if model not in DIMENSIONS:
        raise InvalidInput(f"There is no embedder {name[:80]!r}. Models of openai: {', '.join(DIMENSIONS)}.")
    if importlib.util.find_spec("openai") is None:
        raise MissingExtra(feature=f"The embedder {name!r}", extra="openai")
    # The usual variable is the provider's: its key is not sent to another server.
    own = settings.embed_base_url
    key = settings.embed_api_key or (None if own else usual_key("openai"))
    if key is None and not own:
        raise InvalidInput(f"The embedder {name!r} needs a key: set DTRAG_EMBED_API_KEY or OPENAI_API_KEY.")
    if own and not own.startswith(("http://", "https://")):
        raise InvalidInput("DTRAG_EMBED_BASE_URL must be an address such as http://127.0.0.1:8080/v1.")
    limits = Limits.parse(settings.grade_limits, Grades.parse(settings.grades))
    address = (own or ADDRESS).rstrip("/")
    return OpenAIEmbedder(model, address=address, key=key or "no-key", mask=mask_of(settings), limits=limits)


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for start in range(0, len(texts), BATCH):
        yield start, texts[start : start + BATCH]


def _sendable(text: str) -> str:
    cut = text.encode("utf-8", "replace")[:MAX_TOKENS].decode("utf-8", "ignore")
    return cut if cut.strip() else _BLANK
