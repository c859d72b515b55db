"""Blocks of vectors, which mapped files hold: what came between two positions in the order of changes.

A row belongs to a passage of a document as a segment was written with it (`origin`), so that the vector of a text that
was replaced is never taken for that of its successor. Rows are sorted by space, document and ordinal. Blocks follow one
another without a gap; several become one as their sizes allow, so that a row is written about log2(n) times.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.postgres.search_files import MappedFile
from dtrag.core.ranking.nearest import Rows, Vectors
from dtrag.core.ranking.segments import Segment

LARGEST = 131_072
"""Rows of a block that is not merged any more: 110 MB with 384 dimensions."""
PREFIX = "vectors-"
Position = bytes
"""Change (8 bytes), document (16) and ordinal (4) of a row, in network order: positions compare as bytes."""
START: Position = bytes(28)
Centres = Mapping[int, NDArray[np.float32]]
"""Number of a space -> what the signs of its rows are taken from: equal in all rows that are compared by them."""
_VECTOR = 48
"""Bytes of a record of `vectors_after` before its vector, which begins with its dimension (2 bytes) and 2 others."""


def position_values(position: Position) -> dict[str, object]:
    """A position as parameters of `vectors_after`."""
    return {
        "change": int.from_bytes(position[:8]),
        "document_id": uuid.UUID(bytes=position[8:24]),
        "ordinal": int.from_bytes(position[24:]),
    }


@dataclass(frozen=True, eq=False)
class SpaceRows:
    """The rows of one space in a block: halves of the documents (2, rows), ascending, and what belongs to them."""

    documents: NDArray[np.uint64]
    origins: NDArray[np.uint64]
    ordinals: NDArray[np.int32]
    vectors: Vectors
    _places: dict[uuid.UUID, tuple[Rows, Rows]] = field(default_factory=dict, repr=False)

    def centred(self, centre: NDArray[np.float32]) -> SpaceRows:
        """With signs by this centre, as the other parts of a search have them."""
        vectors = self.vectors.centred(centre)
        return self if vectors is self.vectors else replace(self, vectors=vectors)

    def places(self, segment: Segment) -> tuple[Rows, Rows]:
        """The rows that belong to a segment, and the numbers of their passages. Neither ever changes."""
        if segment.segment_id not in self._places:
            self._places[segment.segment_id] = self._located(segment)
        return self._places[segment.segment_id]

    def _located(self, segment: Segment) -> tuple[Rows, Rows]:
        order, upper = segment.by_document
        if len(upper) <= len(self.ordinals):
            heads, rows = pairs(self.documents[0], upper)
        else:
            rows, heads = pairs(upper, self.documents[0])
        documents = segment.documents[order[heads]]
        ordinals = self.ordinals[rows]
        same = (
            (documents["document_id"] == self.documents[:, rows].T).all(axis=1)
            & (documents["origin"] == self.origins[:, rows].T).all(axis=1)
            & (ordinals < documents["chunks"])
        )
        return rows[same], (segment.first[order[heads]] + ordinals)[same].astype(np.intp)

    def all_belong(self, segments: Iterable[Segment]) -> bool:
        """Whether each row is of a passage of one of these segments."""
        return sum(len(self.places(segment)[0]) for segment in segments) == len(self.ordinals)

    def rows_of(self, documents: NDArray[np.uint64], ordinals: NDArray[np.int32]) -> tuple[Rows, Rows]:
        """Of passages (halves of their documents, shape (passages, 2)): which have rows here, and the rows."""
        which, rows = pairs(self.documents[0], documents[:, 0])
        same = (self.documents[1, rows] == documents[which, 1]) & (self.ordinals[rows] == ordinals[which])
        return which[same], rows[same]

    def forget(self, segments: Iterable[uuid.UUID]) -> None:
        """Segments that were merged away."""
        for segment_id in self._places.keys() - set(segments):
            del self._places[segment_id]


def pairs(ascending: NDArray[np.uint64], values: NDArray[np.uint64]) -> tuple[Rows, Rows]:
    """Places of values and of equal numbers in an ascending array, for each pair of equal ones."""
    left, right = ascending.searchsorted(values, "left"), ascending.searchsorted(values, "right")
    counts = right - left
    which = np.repeat(np.arange(len(values)), counts)
    before = np.cumsum(counts) - counts
    return which, np.arange(len(which)) - before[which] + left[which]


@dataclass(frozen=True, eq=False)
class VectorBlock:
    """The vectors after one position, up to another one. `spaces` are the numbers of spaces and their first rows."""

    after: Position
    upto: Position
    spaces: tuple[tuple[int, int], ...]
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def of_records(cls, after: Position, records: bytes, centres: Centres) -> Self:
        """From the records of `vectors_after`, at least one, with the centres of the blocks before."""
        dim = int.from_bytes(records[_VECTOR : _VECTOR + 2])
        kind = [("document", ">u8", (2,)), ("origin", ">u8", (2,)), ("ordinal", ">i4"), ("space", ">i4")]
        rows = np.frombuffer(records, np.dtype([*kind, ("change", ">i8"), ("head", "V4"), ("vector", ">f2", (dim,))]))
        last = max(
            int(row["change"]).to_bytes(8) + row["document"].tobytes() + int(row["ordinal"]).to_bytes(4)
            for row in rows[rows["change"] == rows["change"].max()]
        )
        quantised = Vectors.of(rows["vector"].astype(np.float32))
        columns: dict[str, NDArray[Any]] = {
            "documents": rows["document"].T.astype(np.uint64),
            "origins": rows["origin"].T.astype(np.uint64),
            "ordinals": rows["ordinal"].astype(np.int32),
            "values": quantised.values,
            "scales": quantised.scales,
        }
        return cls._sorted(after, last, columns, rows["space"].astype(np.int32), centres)

    @classmethod
    def of_file(cls, after: Position, upto: Position, mapped: MappedFile) -> Self:
        """From a file that `facts` was written to."""
        return cls(after, upto, tuple((space, first) for space, first in mapped.facts["spaces"]), mapped.arrays)

    @classmethod
    def merged(cls, blocks: Sequence[VectorBlock]) -> Self:
        """Several that follow one another as one."""
        names = {"documents": 1, "origins": 1, "ordinals": 0, "values": 0, "scales": 0}
        columns = {name: np.concatenate([block.arrays[name] for block in blocks], axis) for name, axis in names.items()}
        spaces = np.concatenate([block.space_of_rows() for block in blocks])
        return cls._sorted(blocks[0].after, blocks[-1].upto, columns, spaces, centres_of(blocks))

    @classmethod
    def _sorted(
        cls,
        after: Position,
        upto: Position,
        columns: dict[str, NDArray[Any]],
        spaces: NDArray[np.int32],
        centres: Centres,
    ) -> Self:
        documents = columns["documents"]
        order = np.lexsort((columns["ordinals"], documents[1], documents[0], spaces))
        arrays = {
            name: np.ascontiguousarray(column.take(order, axis=column.ndim - 1 if name in _WIDE else 0))
            for name, column in columns.items()
        }
        numbers, firsts = np.unique(spaces[order], return_index=True)
        signs, own_centres = [], []
        for space, first, end in zip(numbers, firsts, [*firsts[1:], len(order)], strict=True):
            vectors = Vectors.of_values(
                arrays["values"][first:end], arrays["scales"][first:end], centres.get(int(space))
            )
            signs.append(vectors.signs)
            own_centres.append(vectors.centre)
        dim = arrays["values"].shape[1]
        nothing = np.empty((-(-dim // 64), 0), np.uint64)
        arrays["signs"] = np.concatenate([nothing, *signs], axis=1)
        arrays["centres"] = np.array(own_centres, np.float32).reshape(-1, dim)
        return cls(after, upto, tuple(zip(numbers.tolist(), firsts.tolist(), strict=True)), arrays)

    def __len__(self) -> int:
        return len(self.arrays["ordinals"])

    def name(self, epoch: int) -> str:
        """The name of its file: `named` returns what it consists of."""
        return f"{PREFIX}{epoch}-{self.after.hex()}-{self.upto.hex()}"

    @property
    def facts(self) -> dict[str, object]:
        """What its file contains beside the arrays."""
        return {"spaces": self.spaces}

    def space_of_rows(self) -> NDArray[np.int32]:
        """The space of each row."""
        firsts = [first for _, first in self.spaces]
        numbers = np.array([space for space, _ in self.spaces], np.int32)
        return np.repeat(numbers, np.diff([*firsts, len(self)]))

    def only(self, rows: Rows) -> VectorBlock:
        """With these rows alone."""
        names = ("documents", "origins", "ordinals", "values", "scales")
        columns = {name: self.arrays[name].take(rows, axis=1 if name in _WIDE else 0) for name in names}
        centres = {space: part.vectors.centre for space, part in self.parts.items()}
        return self._sorted(self.after, self.upto, columns, self.space_of_rows()[rows], centres)

    @cached_property
    def parts(self) -> dict[int, SpaceRows]:
        """The rows of each space."""
        arrays, parts = self.arrays, {}
        ends = [*(first for _, first in self.spaces[1:]), len(self)]
        for number, ((space, first), end) in enumerate(zip(self.spaces, ends, strict=True)):
            rows = slice(first, end)
            vectors = Vectors(
                arrays["values"][rows], arrays["scales"][rows], arrays["signs"][:, rows], arrays["centres"][number]
            )
            documents, origins = arrays["documents"][:, rows], arrays["origins"][:, rows]
            parts[space] = SpaceRows(documents, origins, arrays["ordinals"][rows], vectors)
        return parts


_WIDE = {"documents", "origins"}


def centres_of(blocks: Iterable[VectorBlock]) -> Centres:
    """The centre of each space in the largest of the blocks that has one."""
    centres: dict[int, NDArray[np.float32]] = {}
    for block in sorted(blocks, key=len):
        centres |= {space: part.vectors.centre for space, part in block.parts.items() if part.vectors.centre.any()}
    return centres


def named(name: str) -> tuple[int, Position, Position] | None:
    """Epoch and positions of the file with this name; None for other names."""
    try:
        epoch, after, upto = name.removeprefix(PREFIX).split("-")
        return (int(epoch), bytes.fromhex(after), bytes.fromhex(upto)) if name.startswith(PREFIX) else None
    except ValueError:
        return None


def to_merge(sizes: Sequence[int]) -> int:
    """How many of the last blocks to merge, so that each is larger than all after it together; 0: none."""
    total = count = 0
    for number, size in enumerate(reversed(sizes), 1):
        if number > 1 and size <= total and total + size <= LARGEST:
            count = number
        total += size
    return count
