"""Reading a safetensors file: a length, a JSON header, then the tensors' bytes. Nothing in it is executed.

Format: 8 bytes (little-endian) = length of the header; the header maps a name to `dtype`, `shape` and `data_offsets`
[begin, end) relative to the end of the header.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]

_LENGTH_BYTES = 8
_MAX_HEADER = 1_000_000  # the header of a model of six layers has 11 kB


def read_float32(path: Path) -> Tensors:
    """The float32 tensors by name, mapped into memory (pages are read when touched). Other types are left out.

    Raises `ValueError` when the header is not one or points outside of the file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        start = _LENGTH_BYTES + length
        if not 0 < length <= min(_MAX_HEADER, size - _LENGTH_BYTES):
            raise ValueError(f"the header of {path.name} would have {length} bytes")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError(f"the header of {path.name} is not an object")
    if start == size:
        return {}
    data: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r", offset=start)
    return {
        name: _tensor(data, name, entry)
        for name, entry in header.items()
        if isinstance(entry, dict) and entry.get("dtype") == "F32"
    }


def _tensor(data: NDArray[np.uint8], name: str, entry: dict[str, object]) -> NDArray[np.float32]:
    shape, offsets = _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if shape is None or offsets is None or len(offsets) != 2:
        raise ValueError(f"the tensor {name!r} has no shape or no offsets")
    begin, end = offsets
    if not begin <= end <= len(data) or end - begin != 4 * prod(shape):
        raise ValueError(f"the tensor {name!r} does not fit into the file")
    return data[begin:end].view(np.float32).reshape(shape)


def _counts(value: object) -> list[int] | None:
    if isinstance(value, list) and all(type(item) is int and item >= 0 for item in value):
        return value
    return None
