"""An embedder from a folder in the layout of sentence-transformers, with its graph in ONNX. Uses no network.

Tokenizer, pooling, prompts and limits come from the folder's files. Vectors always have unit length, with or without a
module that normalises: cosines are what is compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.embedders.models import sha256_unchanged
from dtrag.adapters.model_files import OnDemand
from dtrag.adapters.onnx_model import (
    CONFIG,
    DIR,
    SENTENCE_CONFIG,
    ModelFolder,
    OnnxModel,
    in_order,
    unknown_tokens,
)
from dtrag.core.documents import Vector
from dtrag.errors import EmbedderFailed, InvalidInput, ModelDamaged
from dtrag.settings import Settings

Floats = NDArray[np.float32]
POOLING: Mapping[str, Callable[[Floats], Floats]] = {
    "cls": lambda tokens: tokens[0],
    "cls_token": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(axis=0),
    "mean_tokens": lambda tokens: tokens.mean(axis=0),
    "mean_sqrt_len_tokens": lambda tokens: tokens.mean(axis=0),  # of another length only
    "weightedmean": lambda tokens: np.arange(1, len(tokens) + 1, dtype=np.float32) @ tokens,
    "weightedmean_tokens": lambda tokens: np.arange(1, len(tokens) + 1, dtype=np.float32) @ tokens,
    "max": lambda tokens: tokens.max(axis=0),
    "max_tokens": lambda tokens: tokens.max(axis=0),
    "lasttoken": lambda tokens: tokens[-1],
}
"""Name in `1_Pooling/config.json` -> the vector of a text from those of its tokens, shape (tokens, dim)."""
POOLED = "sentence_embedding"
"""The output of a graph that contains all modules."""
BY_TOKEN = ("last_hidden_state", "token_embeddings")
MODULES, PROMPTS, USUAL_POOLING = "modules.json", "config_sentence_transformers.json", "1_Pooling"
UNRELATED = (
    "The library opens at nine in the morning.", "Brass pumps resist corrosion.", "She plays the violin every day.",
    "Interest rates rose last quarter.", "Penguins live in the southern hemisphere.", "Boil potatoes in salted water.",
    "도서관은 아침 아홉 시에 엽니다.", "황동 펌프는 잘 부식되지 않습니다.", "그는 매일 바이올린을 연습한다.",
    "지난 분기에 금리가 올랐다.", "펭귄은 남반구에 산다.", "감자를 소금물에 삶으세요.",
)  # fmt: skip
"""Sentences in two languages, of which none is about the subject of another one. Their mean cosine is the floor: of the
language where it is lower, as texts that a model cannot read are alike. e5: .72, where .70 to .75 are equally good."""
HIGHEST_FLOOR = 0.95


@dataclass(frozen=True, slots=True)
class Layout:
    """What the files state. `pooling` is None where only the graph can pool, `why` names the reason then."""

    dim: int
    max_tokens: int
    pooling: str | None
    why: str
    query_prompt: str
    document_prompt: str
    lower: bool


class FolderEmbedder(OnDemand[OnnxModel]):
    """Blocking, CPU-bound, safe to call from several threads; loads at its first use.

    The id is a digest of the tokenizer, the weights and `Layout`: a folder may move. No constant is fitted to the
    model, so it decides nothing. Raises `ModelDamaged` that names the file to correct.
    """

    decides = False

    def __init__(self, place: str, *, languages: frozenset[str] = frozenset({"*"}), threads: int = 1) -> None:
        super().__init__(self._read)
        self._place, self._threads, self.languages = place.removeprefix(DIR), max(1, threads), languages
        self._floor: float | None = None
        try:
            self._files = ModelFolder.at(place)
            self._layout = layout_of(self._files)
            self._digest = digest_of(self._files, self._layout)
        except (AttributeError, OSError, TypeError, ValueError) as error:
            raise self._unusable(error) from error
        self.id = f"dir@{self._digest[:8]}"
        self.dim, self.max_tokens = self._layout.dim, self._layout.max_tokens

    @property
    def floor(self) -> float:
        """See `Embedder`: measured on `UNRELATED`."""
        if self._floor is None:
            half = len(UNRELATED) // 2
            questions, passages = (
                embed(UNRELATED).reshape(2, half, self.dim) for embed in (self.embed_queries, self.embed_documents)
            )
            cosines = np.matmul(questions, passages.transpose(0, 2, 1))[:, ~np.eye(half, dtype=bool)]
            self._floor = round(min(HIGHEST_FLOOR, max(0.0, float(cosines.mean(axis=1).min()))), 2)
        return self._floor

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`. Raises `ModelDamaged` and `EmbedderFailed`."""
        return self._embed(texts, self._layout.document_prompt)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """See `Embedder`. Raises `ModelDamaged` and `EmbedderFailed`."""
        return self._embed(texts, self._layout.query_prompt)

    def unknown_tokens(self, texts: Sequence[str]) -> tuple[int, int]:
        """See `Tokenizing`."""
        return unknown_tokens(self.loaded().tokenizer, texts)

    def _embed(self, texts: Sequence[str], prompt: str) -> Vector:
        vectors = in_order(partial(self._vector, self.loaded(), prompt), texts, self._threads, "embed")
        return np.stack(vectors) if vectors else np.empty((0, self.dim), np.float32)

    def _vector(self, model: OnnxModel, prompt: str, text: str) -> Floats:
        prompted = prompt + text
        vector = _pooled(model, prompted.lower() if self._layout.lower else prompted, self._layout.pooling)
        length = float(np.linalg.norm(vector))
        if not 0.0 < length < np.inf:
            raise EmbedderFailed(name=self.id, reason="a vector has no length, or a number that is not finite.")
        return vector / np.float32(length)

    def _read(self) -> OnnxModel:
        try:
            if digest_of(self._files, self._layout) != self._digest:
                raise ValueError("its files have changed since this program started: start it again")
            model = OnnxModel(self._files, self.max_tokens)
            if self._layout.pooling is None and POOLED not in model.outputs:
                raise ValueError(f"{self._layout.why}, and the graph has no output {POOLED}")
            vector = _pooled(model, UNRELATED[0], self._layout.pooling)
            if vector.shape != (self.dim,):
                raise ValueError(f"its files state vectors of {self.dim} numbers, but the graph gives {vector.shape}")
        except Exception as error:  # the boundary: both libraries raise plain `Exception` for a bad file
            raise self._unusable(error) from error
        return model

    def _unusable(self, error: Exception) -> ModelDamaged:
        reason = " ".join(str(error).split())[:400]
        return ModelDamaged(f"The embedder in {self._place} cannot be used: {reason}.")


def create(settings: Settings) -> FolderEmbedder:
    """The embedder that `dir:PATH` names, not loaded yet. Raises `InvalidInput` and `ModelDamaged`."""
    codes = frozenset(code.strip().lower() for code in settings.embed_languages.split(",") if code.strip())
    if not all(code == "*" or (len(code) == 2 and code.isascii() and code.isalpha()) for code in codes):
        raise InvalidInput("DTRAG_EMBED_LANGUAGES must be two-letter codes with commas, such as ko,en, or *.")
    return FolderEmbedder(settings.embedder, languages=codes or frozenset({"*"}), threads=settings.embed_threads)


def layout_of(files: ModelFolder) -> Layout:
    """What the files of the folder state. Raises `ValueError` that names the file to add or to correct."""
    modules = files.json(MODULES) or []
    kinds = {str(module["type"]).rpartition(".")[2]: str(module["path"]) for module in modules}
    place = kinds.pop("Pooling", USUAL_POOLING)
    config, pooling, why = files.json(f"{place}/{CONFIG}"), None, ""
    if own := sorted(kinds.keys() - {"Transformer", "Normalize"}):
        why = f"{MODULES} names {', '.join(own)}, which only a whole exported graph contains: export all modules"
    elif config:
        pooling = pooling_of(config, f"{place}/{CONFIG}")
    else:
        why = (
            f"{place}/{CONFIG} is missing, which says how the vectors of tokens become one: add it with "
            '{"pooling_mode_mean_tokens": true}, or pooling_mode_cls_token, as the description of the model says'
        )
    model = files.json(CONFIG)
    widths = [files.json(f"{kinds['Dense']}/{CONFIG}").get("out_features")] if "Dense" in kinds else []
    widths += [config.get("word_embedding_dimension"), *(model.get(name) for name in ("hidden_size", "d_model", "dim"))]
    dim = next((width for width in widths if isinstance(width, int) and width > 0), None)
    if dim is None:
        raise ValueError(f"{CONFIG} has no hidden_size, and {place}/{CONFIG} no word_embedding_dimension: add one")
    query, document = prompts_of(files.json(PROMPTS))
    lower = bool(files.json(SENTENCE_CONFIG).get("do_lower_case"))
    return Layout(dim, files.max_tokens(), pooling, why, query, document, lower)


def pooling_of(config: Mapping[str, Any], name: str) -> str:
    """The key in `POOLING`. Raises `ValueError` for none, several or an unknown one."""
    modes = [
        key.removeprefix("pooling_mode_") for key, on in config.items() if on is True and key.startswith("pooling_")
    ]
    stated = config.get("pooling_mode")
    if not modes and isinstance(stated, str):
        modes = [stated]
    if len(modes) != 1 or modes[0] not in POOLING:
        known = ", ".join(POOLING)
        raise ValueError(f"{name} names {', '.join(modes) or 'no way'} of pooling: it must name one of {known}")
    if config.get("include_prompt", True) is not True:
        raise ValueError(f"{name} leaves the prompt out of the pooling (include_prompt), which is not supported")
    return modes[0]


def prompts_of(config: Mapping[str, Any]) -> tuple[str, str]:
    """What is put before a question and before a passage; "" for nothing."""
    prompts, usual = config.get("prompts") or {}, config.get("default_prompt_name")
    chosen = [
        next((prompts[name] for name in (*names, usual) if prompts.get(name) is not None), "")
        for names in (("query",), ("document", "passage", "corpus"))
    ]
    return str(chosen[0]), str(chosen[1])


def digest_of(files: ModelFolder, layout: Layout) -> str:
    """A digest of all that decides a vector: the contents of tokenizer and weights, and the layout."""
    parts = [sha256_unchanged(file) for file in files.files()]
    return hashlib.sha256(json.dumps([parts, asdict(layout)], sort_keys=True).encode()).hexdigest()


def _pooled(model: OnnxModel, text: str, pooling: str | None) -> Floats:
    if POOLED in model.outputs:
        return model.run(text, output=POOLED)
    tokens = model.run(text, output=next((name for name in BY_TOKEN if name in model.outputs), None))
    if tokens.ndim == 1:  # the only output of a graph that pools
        return tokens
    return POOLING[pooling or "mean"](tokens)
