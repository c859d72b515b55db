"""Vectors of questions, by the model for their language: to propose cases (`SimilarityMethod.SEMANTIC`) and, of a model
that decides, to find those that ask the same."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import numpy as np

from dtrag import embedding_service
from dtrag.core.cases.case import QuestionVector
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

    @property
    def spaces(self) -> frozenset[str]:
        """The ids of its models, as far as they are known: those for English, for Korean and for other languages."""
        models = (model_for(self.embedder, code) for code in ("en", "ko", "und"))
        return frozenset(model.id for model in models if model is not None)

    async def of(self, question: str) -> QuestionVector | None:
        """The vector; None when the question cannot be embedded, or the embedder fails."""
        model = self.model(question)
        if model is None:
            return None
        try:
            async with asyncio.timeout(self.seconds):
                vector = await embedding_service.generate_embedding(question, embedder=model)
        except (DtragError, OSError, RuntimeError, ValueError) as error:  # also `TimeoutError`: words are compared
            _LOG.warning("a question could not be embedded (%s)", type(error).__name__)
            return None
        if vector is None or not np.isfinite(vector).all():
            return None
        return QuestionVector(model.id, np.ascontiguousarray(vector, np.float32).tobytes())
