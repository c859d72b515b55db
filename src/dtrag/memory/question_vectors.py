"""Vectors of questions, by the model for their language: to propose cases (`SimilarityMethod.SEMANTIC`) and, of a model
that decides, to find those that ask the same."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import numpy as np

from dtrag import embedding_service
from dtrag.core.text.analysis import language
from dtrag.errors import DtragError
from dtrag.ports import Embedder, model_for

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """Embeds questions with one embedder; each within `seconds`."""

    embedder: Embedder | None
    seconds: float = 5.0

    def model(self, question: str) -> Embedder | None:
        """The model for the question's language."""
        return model_for(self.embedder, language(question))

    def unsupported_reason(self, question: str) -> str:
        """Why the question cannot be embedded, as a sentence; "" when it can."""
        if self.embedder is None:
            return "No embedder is available: questions were compared by words. See `dtrag models list`."
        if self.model(question) is not None:
            return ""
        code = language(question)
        return f"The embedder {self.embedder.id} does not support the language of the question ({code}): words."

    async def of(self, question: str, *, deciding: bool = False) -> bytes | None:
        """The vector, float32; None when the question cannot be embedded, or the embedder fails. `deciding`: only of a
        model whose cosines may decide."""
        model = self.model(question)
        if model is None or (deciding and not model.decides):
            return None
        try:
            async with asyncio.timeout(self.seconds):
                vector = await embedding_service.generate_embedding(question, embedder=model)
        except (DtragError, OSError, RuntimeError, ValueError) as error:  # also `TimeoutError`: words are compared
            _LOG.warning("a question could not be embedded (%s)", type(error).__name__)
            return None
        if vector is None or not np.isfinite(vector).all():
            return None
        return np.ascontiguousarray(vector, np.float32).tobytes()
