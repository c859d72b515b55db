"""The vectors of the sentences of a passage, stored in int8 with a scale for each: the cosine of one with a question
differs by .0003 on average from that of float32 (bench/README.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dtrag.core.documents import Vector
from dtrag.core.text.line_kinds import QUOTABLE
from dtrag.core.text.units import units_of

Span = tuple[int, int]
"""`[start, end)` of the text of a passage."""
STEPS = 127
_HEAD = np.dtype("<i4")


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """Stored vectors of sentences, of about unit length: id of a passage -> span -> vector of the model `space`."""

    space: str
    of_passage: Mapping[str, Mapping[Span, Vector]]

    def of(self, chunk_id: str, span: Span, space: str) -> Vector | None:
        """The vector of a sentence by the model with the id `space`; None if it is not stored."""
        return self.of_passage.get(chunk_id, {}).get(span) if space == self.space else None


NOTHING_STORED = SentenceVectors("", MappingProxyType({}))


def quotable_spans(text: str) -> list[Span]:
    """The spans of a passage's text that can be quoted, in order; those of a passage that continues a table or a list
    may be others, with the text before it."""
    return [(unit.start, unit.end) for unit in units_of(text).units if unit.kind in QUOTABLE]


def pack(spans: Sequence[Span], vectors: Sequence[Vector]) -> bytes:
    """The vectors with their spans: 12 + dim bytes for each, after the 4 of the dimension; b"" without any."""
    if not spans:
        return b""
    values = np.stack(vectors)
    rows = np.empty(len(spans), _row(values.shape[1]))
    rows["span"] = spans
    rows["scale"] = np.maximum(np.abs(values).max(axis=1) / STEPS, np.finfo(np.float32).tiny)
    rows["steps"] = np.rint(values / rows["scale"][:, np.newaxis])
    return np.array(values.shape[1], _HEAD).tobytes() + rows.tobytes()


def unpack(packed: bytes) -> dict[Span, Vector]:
    """The vectors by their spans."""
    if not packed:
        return {}
    dim = int(np.frombuffer(packed, _HEAD, 1)[0])
    rows = np.frombuffer(packed, _row(dim), offset=_HEAD.itemsize)
    vectors = rows["steps"] * rows["scale"][:, np.newaxis]
    return {(start, end): vector for (start, end), vector in zip(rows["span"].tolist(), vectors, strict=True)}


def _row(dim: int) -> np.dtype[np.void]:
    return np.dtype([("span", "<i4", (2,)), ("scale", "<f4"), ("steps", "i1", (dim,))])
