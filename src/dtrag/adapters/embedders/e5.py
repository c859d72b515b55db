"""multilingual-e5-small: all languages, 384 dimensions, from 4-bit weights. See `bert`.

The file is mapped: rows of words are read from it as they occur, matrices are quantised again as in `bert`. Its blocks
could be used directly (cosine to float32 .9999 instead of .999), at twice the time of a text.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.embedders.bert import (
    MAX_TOKENS,
    BertEmbedder,
    Floats,
    Graph,
    Initializers,
    initializers,
)
from dtrag.adapters.embedders.models import E5_SMALL
from dtrag.adapters.onnx_model import readable

_WEIGHTS = E5_SMALL.files[0]
_FLOAT32 = 0
_VALUES, _BYTES = 32, 18
"""A block of 4-bit values: a float16 scale, then the low nibbles of 16 bytes, then their high ones."""
_NAMES = {
    "embeddings.position_embeddings": "emb.pos",
    "embeddings.token_type_embeddings": "emb.type",
    "embeddings.LayerNorm": "emb.ln",
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}
"""BERT's names of tensors -> those of the file, without layer and kind."""


class E5(BertEmbedder):
    """94 MB resident beside Python and onnxruntime, after use. Its cosines lie between .7 and 1.

    They rank sentences with opposite meanings as near as those that agree, so that it decides nothing.
    """

    model = E5_SMALL
    graph = Graph("e5.onnx", layers=12, word_rows=None, qkv_by_block=True)
    id = f"e5-small-int8@{_WEIGHTS.sha256[:8]}"
    dim = E5_SMALL.dim
    languages = E5_SMALL.languages
    floor = 0.75
    decides = False

    def _read(self, folder: Path) -> Initializers:
        self._weights = E5File(folder / _WEIGHTS.name)
        self._tokenizer = self._weights.tokenizer()
        weights = initializers(self._weights.tensor, self.graph)
        self._weights.release()
        return weights

    def _of_document(self, text: str) -> NDArray[Any]:
        return self._rows(f"passage: {readable(text)}")

    def _of_query(self, text: str) -> NDArray[Any]:
        return self._rows(f"query: {readable(text)}")

    def unknown_tokens(self, texts: Sequence[str]) -> tuple[int, int]:
        """See `Tokenizing`."""
        ids = [piece for text in texts for piece in self._tokenizer.encode(readable(text), MAX_TOKENS)]
        return ids.count(self._weights.unknown), len(ids)

    def _rows(self, text: str) -> Floats:
        """The rows of the words, between those of the marks of beginning and end."""
        pieces = self._tokenizer.encode(text, MAX_TOKENS - 2)
        return self._weights.words([self._weights.begin, *pieces, self._weights.end])


class E5File:
    """The weights file, mapped into memory. Little endian: sizes, pieces with scores, a table, then tensors.

    Raises `ValueError` for another form.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._data: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        self._place = 8
        try:
            hidden, *_, words, _, _ = self._next("<7i")
            _, _, self._count, self.begin, self.end, _, self.unknown = self._next("<f6i")
            (length,) = self._next("<Q")
            self._offsets = self._array(self._count + 1, np.uint32)
            self._scores = self._array(self._count, np.float32)
            self._pieces = self._array(length, np.uint8)
            _, skipped = self._next("<2i")
            self._place += skipped
            (tensors,) = self._next("<i")
            self._tensors = dict(self._entry() for _ in range(tensors))
            table = self._bytes("emb.word").reshape(words, hidden // _VALUES, _BYTES)
        except (struct.error, OverflowError, UnicodeDecodeError, KeyError) as error:
            raise ValueError(f"{path.name} is not a weights file of this form") from error
        self._table, self._hidden = table, hidden

    def tokenizer(self) -> Unigram:
        """The tokenizer of the file's pieces."""
        text = self._pieces.tobytes()
        places = pairwise(self._offsets.tolist())
        return Unigram((text[start:end] for start, end in places), np.array(self._scores), self.unknown)

    def release(self) -> None:
        """Let go of the pages that were read, 17 MB; rows of words are read again when they occur."""
        if hasattr(self._map, "madvise"):  # not on Windows
            self._map.madvise(mmap.MADV_DONTNEED)

    def words(self, ids: list[int]) -> Floats:
        """The rows of words, shape (len(ids), 384)."""
        return _values(self._table[ids]).reshape(len(ids), self._hidden)

    def tensor(self, name: str) -> Floats:
        """A tensor by its name in BERT, float32; matrices have the shape (outputs, inputs). Raises `KeyError`."""
        here, _, kind = name.rpartition(".")
        layer = ""
        if here.startswith("encoder.layer."):
            number, _, here = here.removeprefix("encoder.layer.").partition(".")
            layer = f"l{number}."
        stored = f"{layer}{_NAMES[here]}"
        is_table = stored in {"emb.pos", "emb.type"}
        stored += "" if is_table else f".{kind[0]}"
        if self._tensors[stored][0] == _FLOAT32:
            values = self._bytes(stored).view(np.float32)
            return values.reshape(-1, self._hidden) if is_table else values
        outputs = len(self._bytes(f"{stored[:-1]}b")) // 4
        return _values(self._bytes(stored).reshape(-1, _BYTES)).reshape(outputs, -1)

    def _next(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._map, self._place)
        self._place += struct.calcsize(form)
        return values

    def _array(self, count: int, kind: Any) -> NDArray[Any]:
        start, self._place = self._place, self._place + count * np.dtype(kind).itemsize
        return self._data[start : self._place].view(kind)

    def _entry(self) -> tuple[str, tuple[int, int, int]]:
        """Name of a tensor -> kind, first byte, bytes."""
        (length,) = self._next("<H")
        name = self._array(length, np.uint8).tobytes().decode()
        kind, _, start, size = self._next("<BIQQ")
        return name, (kind, start, size)

    def _bytes(self, name: str) -> NDArray[np.uint8]:
        _, start, size = self._tensors[name]
        return self._data[start : start + size]


def _values(blocks: NDArray[np.uint8]) -> Floats:
    """Blocks, shape (..., 18), as numbers, shape (..., 32)."""
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    nibbles = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1)
    return (nibbles.astype(np.float32) - 8) * scales


_START = "▁"
"""Before the first letter of each word."""
_REPLACED = dict.fromkeys(map(ord, "\u061c\u200b\u200c\u200e\u200f▁\ufeff\ufffd"), " ") | dict.fromkeys(
    (*range(9), 11, *range(14, 32), 0x7F, 0x8F, 0x9F), ""
)
"""Beside NFKC: what SentencePiece's rules `nmt_nfkc` take for a blank, and what they drop."""
_CACHED_WORDS = 16_384
_UNKNOWN_PENALTY = 10.0
"""An unknown character is so much less likely than the rarest piece (SentencePiece's constant)."""


class Unigram:
    """Splits texts into pieces. `pieces` in the order of their numbers (UTF-8), `scores` their log-likelihoods.

    Pieces with the score 0 are marks such as `<s>`, which no text contains. Hashes are those of bytes: those of strings
    with the same bytes in memory (`zz` and U+7A7A) are equal.
    """

    def __init__(self, pieces: Iterable[bytes], scores: NDArray[np.float32], unknown: int) -> None:
        hashes = np.fromiter(map(hash, pieces), np.int64, len(scores))
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._ids = order[scores[order] < 0]
        self._hashes = hashes[self._ids]
        self._scores = np.where(np.arange(len(scores)) == unknown, scores.min() - _UNKNOWN_PENALTY, scores)
        self._unknown = unknown
        self._of_word = lru_cache(_CACHED_WORDS)(self._best)

    def encode(self, text: str, most: int, longest_piece: int = 16) -> list[int]:
        """The numbers of the first `most` pieces."""
        ids: list[int] = []
        for word in normalize("NFKC", text.translate(_REPLACED)).split():
            ids += self._of_word((_START + word)[: most * longest_piece], longest_piece)
            if len(ids) >= most:
                break
        return ids[:most]

    def _best(self, word: str, longest_piece: int) -> tuple[int, ...]:
        """The most likely pieces of a word (Viterbi); unknown characters beside each other are one."""
        ends = range(1, len(word) + 1)
        spans = [(start, end) for end in ends for start in range(max(0, end - longest_piece), end)]
        texts = [word[start:end].encode("utf-8", "replace") for start, end in spans]
        hashes = np.fromiter(map(hash, texts), np.int64, len(spans))
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        pieces: dict[int, list[tuple[int, int]]] = {end: [] for end in ends}
        for hit in np.flatnonzero(self._hashes[places] == hashes).tolist():
            start, end = spans[hit]
            pieces[end].append((start, int(self._ids[places[hit]])))
        totals, last = [0.0], [(0, self._unknown)]
        for end in ends:
            if not pieces[end] or pieces[end][-1][0] != end - 1:
                pieces[end].append((end - 1, self._unknown))
            total, chosen = -math.inf, pieces[end][0]
            for start, piece in pieces[end]:
                if (likelihood := totals[start] + float(self._scores[piece])) > total:
                    total, chosen = likelihood, (start, piece)
            totals.append(total)
            last.append(chosen)
        ids: list[int] = []
        end = len(word)
        while end:
            end, piece = last[end]
            if piece != self._unknown or ids[-1:] != [piece]:
                ids.append(piece)
        return tuple(reversed(ids))
