"""BERT's sentence vector in plain numpy and float32: slow, short, and independent of the graph under test."""

from __future__ import annotations

from math import erf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from dtrag.adapters.embedders.safetensors import Tensors, read_float32

Matrix = NDArray[np.float32]

HEADS = 12
_erf = np.vectorize(erf, otypes=[np.float32])


def sentence_vector(folder: Path, text: str) -> Matrix:
    """Mean of the last layer over the tokens (Reimers & Gurevych 2019), unit length. Layers: Devlin et al. 2018."""
    weights = read_float32(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    ids = tokenizer.encode(text).ids
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = _norm(weights, "embeddings", x + weights["embeddings.token_type_embeddings.weight"][0])
    for layer in range(6):
        here = f"encoder.layer.{layer}"
        query, key, value = (
            _heads(_dense(weights, f"{here}.attention.self.{p}", x)) for p in ("query", "key", "value")
        )
        mixed = (_softmax(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])) @ value).transpose(1, 0, 2)
        attention = _dense(weights, f"{here}.attention.output.dense", mixed.reshape(len(ids), -1))
        x = _norm(weights, f"{here}.attention.output", x + attention)
        inner = _dense(weights, f"{here}.intermediate.dense", x)
        inner = inner * (1 + _erf(inner / np.sqrt(2))) / 2
        x = _norm(weights, f"{here}.output", x + _dense(weights, f"{here}.output.dense", inner))
    mean: Matrix = x.mean(axis=0)
    vector: Matrix = mean / np.linalg.norm(mean)
    return vector


def _dense(weights: Tensors, name: str, x: Matrix) -> Matrix:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(weights: Tensors, name: str, x: Matrix) -> Matrix:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-12)
    vectors: Matrix = scaled * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]
    return vectors


def _heads(x: Matrix) -> Matrix:
    return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)


def _softmax(x: Matrix) -> Matrix:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Matrix = powers / powers.sum(axis=-1, keepdims=True)
    return shares
