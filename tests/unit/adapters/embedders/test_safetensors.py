"""The safetensors reader: what it reads, and that a crooked header never makes it read elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dtrag.adapters.embedders.bert import read_float32


def _file(path: Path, header: object, data: bytes, length: int | None = None) -> Path:
    encoded = json.dumps(header).encode()
    path.write_bytes((len(encoded) if length is None else length).to_bytes(8, "little") + encoded + data)
    return path


def _entry(shape: object, offsets: object, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_reads_float32_and_leaves_the_rest(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype="<f4")
    header = {
        "__metadata__": {"format": "pt"},
        "ids": _entry([1], [0, 8], "I64"),
        "matrix": _entry([2, 3], [8, 32]),
        "nothing": _entry([0], [8, 8]),
    }
    tensors = read_float32(_file(tmp_path / "a", header, bytes(8) + numbers.tobytes()))
    assert sorted(tensors) == ["matrix", "nothing"]
    np.testing.assert_array_equal(tensors["matrix"], numbers.reshape(2, 3))
    assert tensors["nothing"].shape == (0,)


def test_a_file_without_tensors_is_empty(tmp_path: Path) -> None:
    assert read_float32(_file(tmp_path / "a", {}, b"")) == {}


@pytest.mark.parametrize(
    "entry",
    [
        _entry([2], [0, 16]),
        _entry([4], [8, 24]),
        _entry([2], [8, 0]),
        _entry([2], [-8, 0]),
        _entry([-2], [0, 8]),
        _entry([2], [0]),
        _entry("2", [0, 8]),
        _entry([True, 2], [0, 8]),
        _entry([1 << 62, 4], [0, 16]),
        {"dtype": "F32"},
    ],
)
def test_a_tensor_outside_of_the_file_is_refused(tmp_path: Path, entry: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the tensor 't'"):
        read_float32(_file(tmp_path / "a", {"t": entry}, bytes(16)))


@pytest.mark.parametrize("length", [0, 10_000, 1 << 63])
def test_a_header_longer_than_the_file_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(ValueError, match="the header"):
        read_float32(_file(tmp_path / "a", {}, bytes(64), length))


@pytest.mark.parametrize("content", [b"", b"\x01", b"\x05\0\0\0\0\0\0\0{nope", b"\x02\0\0\0\0\0\0\0[]"])
def test_what_is_not_a_header_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        read_float32(tmp_path / "a")
