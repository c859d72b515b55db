"""Models in ONNX: sessions, tokenizers, and folders in the layouts of published models. Uses no network."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")
WEIGHTS, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
TOKENIZER_CONFIG, SENTENCE_CONFIG = "tokenizer_config.json", "sentence_bert_config.json"
DIR = "dir:"
"""Before the path in settings that name a folder."""
SHORTEST_CONTEXT = 512
"""Tokens of a model whose files state no limit."""
CHARACTERS_PER_TOKEN = 40
"""More than a token ever holds on average: what is cut before tokenizing would not have been read."""
UNKNOWN = ("[UNK]", "<unk>")
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_PADDED_POSITIONS = ("roberta", "camembert", "mpnet", "longformer")
"""Families whose positions begin behind that of the padding: of 514 they use 512."""
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])")
"""The entry of a tensor's `external_data` that names its file, and the length of that name."""


def readable(text: str, tokens: int = SHORTEST_CONTEXT) -> str:
    """The text as far as that many tokens reach, lone surrogates replaced by "?": the tokenizer takes only what UTF-8
    can carry."""
    return text[: CHARACTERS_PER_TOKEN * tokens].encode("utf-8", "replace").decode("utf-8")


def open_tokenizer(path: Path, max_tokens: int) -> Any:
    """The tokenizer of a file, which cuts at `max_tokens`; of two texts the longer one is cut first, so that a short
    question stays whole beside a long passage."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return tokenizer


def unknown_tokens(tokenizer: Any, texts: Sequence[str]) -> tuple[int, int]:
    """How many tokens of the texts are the unknown one, and how many there are."""
    unknown = {tokenizer.token_to_id(name) for name in UNKNOWN}
    ids = [number for text in texts for number in tokenizer.encode(readable(text)).ids]
    return sum(number in unknown for number in ids), len(ids)


def open_session(model: Path | bytes, weights: Mapping[str, NDArray[Any]] | None = None) -> Any:
    """The graph, and the weights in it that its own files lack; onnxruntime copies them, the arrays can go."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # no thread pool inside, hence no spinning: the threads are over texts
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 4  # what goes wrong is raised; onnxruntime need not print it as well
    if weights:
        values = [ort.OrtValue.ortvalue_from_numpy(weight) for weight in weights.values()]
        options.add_external_initializers(list(weights), values)
    source = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def in_order(compute: Callable[[T], R], items: Sequence[T], threads: int, name: str) -> list[R]:
    """The result for each item, in order, computed by that many threads. One text is one run of a model: in a batch the
    result would depend on the neighbours, by padding and by the shared range of quantised activations."""
    workers = min(threads, len(items))
    if workers <= 1:
        return [compute(item) for item in items]
    with ThreadPoolExecutor(workers, thread_name_prefix=name) as pool:
        return list(pool.map(compute, items))


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder with a model, and the file of its graph. Methods raise `ValueError` that names a file."""

    folder: Path
    weights: Path

    @classmethod
    def at(cls, place: str | Path) -> ModelFolder:
        """The model in a folder, or of a graph in one or in its subfolder `onnx`, written with or without `dir:`.

        The graph of a folder is `model.onnx`, else `onnx/model.onnx`, else the largest other `.onnx` file in these two
        places: quantised copies of a model are smaller.
        """
        path = Path(str(place).removeprefix(DIR)).expanduser().absolute()
        if path.suffix == ".onnx" and path.is_file():
            above = path.parent.parent if path.parent.name == "onnx" else path.parent
            return cls(above, path)
        places = (path, path / "onnx")
        graphs = [each / WEIGHTS for each in places if (each / WEIGHTS).is_file()]
        graphs += sorted((file for each in places for file in each.glob("*.onnx")), key=_bytes, reverse=True)
        if not graphs:
            raise ValueError(
                f"there is no {WEIGHTS} in it, nor in its subfolder onnx: export the model to ONNX, and put it there "
                f"with its {TOKENIZER}"
            )
        if not (path / TOKENIZER).is_file():
            raise ValueError(f"{TOKENIZER} is missing: save it from the model's fast tokenizer, or copy it from there")
        return cls(path, graphs[0])

    def json(self, name: str) -> Any:
        """The content of a JSON file; {} without the file."""
        try:
            content = (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{name} cannot be read: {error}") from error
        try:
            return json.loads(content)
        except ValueError as error:
            raise ValueError(f"{name} is no valid JSON ({error}): copy it again") from error

    def files(self) -> list[Path]:
        """The tokenizer and the weights: the file of the graph, and those that it keeps tensors in."""
        with self.weights.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            ends = [(match.end(), match.end() + match[1][0]) for match in _LOCATION.finditer(data)]
            names = sorted({bytes(data[start:end]).decode("utf-8", "replace") for start, end in ends})
        for name in names:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"{self.weights.name} keeps weights outside of its folder, in {name}: export it again")
            if not (self.weights.parent / name).is_file():
                raise ValueError(
                    f"{name} is missing, in which {self.weights.name} keeps its weights: copy it beside that"
                )
        return [self.folder / TOKENIZER, self.weights, *(self.weights.parent / name for name in names)]

    def max_tokens(self, most: int = 1 << 20) -> int:
        """Tokens that the model takes: the lowest limit of its files, at most `most`."""
        config = self.json(CONFIG)
        positions = config.get("max_position_embeddings")
        if isinstance(positions, int) and str(config.get("model_type")).endswith(_PADDED_POSITIONS):
            positions -= int(config.get("pad_token_id") or 0) + 1
        stated = (
            self.json(SENTENCE_CONFIG).get("max_seq_length"),
            self.json(TOKENIZER_CONFIG).get("model_max_length"),
            positions,
        )
        limits = [limit for limit in stated if isinstance(limit, int) and 0 < limit < 1_000_000]
        return min(most, *limits) if limits else min(most, SHORTEST_CONTEXT)


def _bytes(graph: Path) -> int:
    return sum(file.stat().st_size for file in graph.parent.glob(f"{graph.name}*"))


class OnnxModel:
    """A graph that reads tokens. Blocking, CPU-bound, safe to call from several threads at once.

    Raises whatever the libraries raise, and `ValueError` for a graph that reads something else.
    """

    def __init__(self, files: ModelFolder, max_tokens: int) -> None:
        self.tokenizer = open_tokenizer(files.folder / TOKENIZER, max_tokens)
        self._max_tokens = max_tokens
        self._session = open_session(files.weights)
        self._inputs = {
            each.name: np.int32 if each.type == "tensor(int32)" else np.int64 for each in self._session.get_inputs()
        }
        self.outputs: Collection[str] = [each.name for each in self._session.get_outputs()]
        if not {"input_ids"} <= self._inputs.keys() <= _INPUTS:
            raise ValueError(
                f"it takes {', '.join(self._inputs)}, but only {', '.join(sorted(_INPUTS))} can be given: export the "
                f"model without past key values and without other inputs"
            )

    def run(self, *texts: str, output: str | None = None) -> NDArray[np.float32]:
        """An output (None: the first) for one text, or for two that are read together, without the batch dimension."""
        # `encode`, not `encode_batch`: the latter starts threads of its own and complains after a fork.
        tokens = self.tokenizer.encode(*(readable(text, self._max_tokens) for text in texts))
        if not tokens.ids:  # an empty text, and a tokenizer without marks of beginning and end
            tokens = self.tokenizer.encode(".")
        known = {
            "input_ids": tokens.ids,
            "attention_mask": tokens.attention_mask,
            "token_type_ids": tokens.type_ids,
            "position_ids": range(len(tokens.ids)),
        }
        inputs = {name: np.array([known[name]], dtype=kind) for name, kind in self._inputs.items()}
        (result, *_) = self._session.run(None if output is None else [output], inputs)
        numbers: NDArray[np.float32] = np.asarray(result[0], np.float32)
        return numbers
