"""The tokenizer: the most likely pieces, unknown characters, and what it must not mistake for a piece."""

from __future__ import annotations

import numpy as np
import pytest

from dtrag.adapters.embedders.e5 import Unigram

PIECES = ["<s>", "<unk>", "▁", "▁k", "ett", "▁kettle", "le", "s", "k", "e", "t", "l", "zz", "주", "▁주전자", "</s>"]
SCORES = [0.0, 0.0, -3.0, -4.0, -4.0, -9.0, -3.5, -2.0, -6.0, -6.0, -6.0, -6.0, -7.0, -5.0, -8.0, 0.0]


@pytest.fixture(scope="module")
def tokenizer() -> Unigram:
    return Unigram([piece.encode() for piece in PIECES], np.array(SCORES, np.float32), unknown=1)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("kettles", ["▁kettle", "s"]),
        ("kle", ["▁k", "le"]),
        ("  kettle\t\n주전자 ", ["▁kettle", "▁주전자"]),
        ("ｋettle", ["▁kettle"]),
        ("k\u0001ettle\ufeffs", ["▁kettle", "▁", "s"]),
        ("kQQs", ["▁k", "<unk>", "s"]),
        ("<s>", ["▁", "<unk>", "s", "<unk>"]),
        ("broken \ud83d", ["▁", "<unk>", "▁", "<unk>"]),
        ("", []),
        (" \u200b\u3000 ", []),
    ],
)
def test_a_text_has_its_most_likely_pieces(tokenizer: Unigram, text: str, pieces: list[str]) -> None:
    encoded = [PIECES[number] for number in tokenizer.encode(text, 100)]
    if text.startswith("broken"):  # only its last word matters
        encoded = ["▁", "<unk>", *encoded[-2:]]
    assert encoded == pieces


def test_a_character_with_the_bytes_of_a_piece_in_memory_is_another_text(tokenizer: Unigram) -> None:
    """Python keeps U+7A7A as the two bytes of `zz`, and gives both the same hash."""
    assert "zz".encode("latin-1") == "\u7a7a".encode("utf-16-le")
    assert [PIECES[number] for number in tokenizer.encode("zz", 9)] == ["▁", "zz"]
    assert [PIECES[number] for number in tokenizer.encode("\u7a7a", 9)] == ["▁", "<unk>"]


def test_it_stops_after_the_requested_pieces(tokenizer: Unigram) -> None:
    assert len(tokenizer.encode("kettle " * 50_000, 254)) == 254
    assert len(tokenizer.encode("k" * 1_000_000, 254)) == 254
