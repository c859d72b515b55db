"""all-MiniLM-L6-v2 in int8 on onnxruntime: English, 384 dimensions; no torch, no hub, nothing downloaded.

`minilm.onnx` beside this file is the computation without weights (made by scripts/build_minilm_graph.py). The weights
come from the pinned safetensors file, are quantised while loading (0.1 s, so nothing is cached on disk) and handed to
the session under the names that the graph uses.

One text is one run. Activations are quantised by their range, and a batch would share that range: a text's vector
would depend on its neighbours (cosine down to .994) and on the padding. Alone, a text always has the same vector, and
threads over texts scale better than threads inside an operator, which would also spin on the second core.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.embedders.models import MINILM, locate, verify
from dtrag.adapters.embedders.safetensors import Tensors, read_float32
from dtrag.core.documents import Vector
from dtrag.errors import ModelDamaged, ModelNotFound
from dtrag.settings import Settings

Initializers = dict[str, NDArray[Any]]

GRAPH = "minilm.onnx"
LAYERS = 6
MAX_TOKENS = 256  # what the model was published with; its position table would allow 512
BLOCK = 128  # inputs that share a scale where blocks have scales of their own; 384 and 1536 are multiples of it
_MAX_CHARS = 20_000  # 256 tokens are about 1,200 characters: spares the tokenizer a whole book
_WEIGHTS = MINILM.files[0]


def available(settings: Settings) -> bool:
    """Whether the model's files are on this machine. Looks at names only; `create` verifies them."""
    return locate(MINILM, settings) is not None


def create(settings: Settings) -> MiniLM:
    """The embedder, loaded. Raises `ModelNotFound` or `ModelDamaged`."""
    folder = locate(MINILM, settings)
    if folder is None:
        raise ModelNotFound(name=MINILM.name)
    return MiniLM(folder, threads=settings.embed_threads)


class MiniLM:
    """Blocking, CPU-bound, safe to call from several threads at once. 66 MB resident beside Python and onnxruntime."""

    id = f"minilm-int8@{_WEIGHTS.sha256[:8]}"
    dim = MINILM.dim
    max_tokens = MAX_TOKENS
    languages = MINILM.languages
    floor = 0.0
    decides = True

    def __init__(self, folder: Path, threads: int) -> None:
        from tokenizers import Tokenizer

        self._folder = folder
        self._threads = max(1, threads)
        self.check()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._session = _session(_load(folder / _WEIGHTS.name))

    def check(self) -> None:
        """Raise `ModelDamaged` when the files are not, or no longer, the pinned ones. Never downloads."""
        verify(MINILM, self._folder)

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), 384), float32, unit length, in the order of the texts; an empty text has a vector too."""
        vectors = np.empty((len(texts), self.dim), dtype=np.float32)
        workers = min(self._threads, len(texts))
        if workers > 1:
            with ThreadPoolExecutor(workers, thread_name_prefix="embed") as pool:
                for row, vector in enumerate(pool.map(self._embed, texts)):
                    vectors[row] = vector
        else:
            for row, text in enumerate(texts):
                vectors[row] = self._embed(text)
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """As `embed_documents`: the model was trained without prefixes for either side."""
        return self.embed_documents(texts)

    def _embed(self, text: str) -> Vector:
        # `encode`, not `encode_batch`: the latter starts threads of its own and complains after a fork.
        tokens = self._tokenizer.encode(_encodable(text[:_MAX_CHARS])).ids
        vector: Vector = self._session.run(None, {"ids": np.array([tokens], dtype=np.int64)})[0][0]
        return vector


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced by "?": the tokenizer takes only what UTF-8 can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _load(path: Path) -> Initializers:
    try:
        return initializers(read_float32(path))
    except (KeyError, ValueError) as error:
        raise ModelDamaged(name=MINILM.name, path=path) from error


def initializers(tensors: Tensors) -> Initializers:
    """The graph's weights by the graph's names, from the tensors of the safetensors file.

    Embeddings in float16, matrices in int8 with float32 scales, biases and norms as they are (but copied, so that the
    mapped file can go). All texts are of token type 0, so that row is added to the positions here.
    """
    table = "embeddings.word_embeddings.weight"
    positions = tensors["embeddings.position_embeddings.weight"][:MAX_TOKENS]
    weights: Initializers = {
        table: tensors[table].astype(np.float16),
        "positions": positions + tensors["embeddings.token_type_embeddings.weight"][0],
    }
    for name in ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"):
        weights[name] = np.array(tensors[name])
    for layer in range(LAYERS):
        here = f"encoder.layer.{layer}."
        parts = [f"{here}attention.self.{part}." for part in ("query", "key", "value")]
        qkv = np.concatenate([tensors[part + "weight"] for part in parts])
        weights |= by_column(f"{here}attention.self.qkv.weight", qkv)
        weights[f"{here}attention.self.qkv.bias"] = np.concatenate([tensors[part + "bias"] for part in parts])
        for dense in ("attention.output.dense", "intermediate.dense"):
            weights |= by_column(f"{here}{dense}.weight", tensors[f"{here}{dense}.weight"])
        weights |= by_block(f"{here}output.dense.weight", tensors[f"{here}output.dense.weight"])
        for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
            weights[f"{here}{name}.bias"] = np.array(tensors[f"{here}{name}.bias"])
        for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
            for name in (f"{here}{norm}.weight", f"{here}{norm}.bias"):
                weights[name] = np.array(tensors[name])
    return weights


def by_column(name: str, weight: NDArray[np.float32]) -> Initializers:
    """int8 with one scale per output, transposed to (inputs, outputs) as DynamicQuantizeMatMul wants it.

    Seven bits are used: on a CPU without VNNI onnxruntime adds two products in 16 bits, and 2 * 255 * 63 still fits.
    """
    scale = np.abs(weight).max(axis=1) / 63
    return {name: np.ascontiguousarray(_steps(weight, scale[:, None]).astype(np.int8).T), f"{name}.scale": scale}


def by_block(name: str, weight: NDArray[np.float32]) -> Initializers:
    """uint8 around 128 with one scale per output and block of inputs: (outputs, blocks, BLOCK), as MatMulNBits wants
    it. For the one matrix whose input (after GELU) has outliers."""
    blocks = weight.reshape(len(weight), -1, BLOCK)
    scale = np.abs(blocks).max(axis=2) / 127
    return {name: (_steps(blocks, scale[:, :, None]) + 128).astype(np.uint8), f"{name}.scale": scale.reshape(-1)}


def _steps(weight: NDArray[np.float32], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.rint(weight / np.maximum(scale, np.finfo(np.float32).tiny))


def _session(weights: Initializers) -> Any:
    """The graph with the weights in it; onnxruntime copies them, the arrays can go."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # no thread pool inside, hence no spinning: the threads are over texts
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.add_external_initializers(list(weights), [ort.OrtValue.ortvalue_from_numpy(w) for w in weights.values()])
    graph = files(__package__).joinpath(GRAPH).read_bytes()
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
