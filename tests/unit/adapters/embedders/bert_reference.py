"""BERT's sentence vector in plain numpy and float32: slow, short, and independent of the graph under test."""

from __future__ import annotations

from collections.abc import Callable
from math import erf

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Weights = Callable[[str], Matrix]

HEADS = 12
_erf = np.vectorize(erf, otypes=[np.float32])


def sentence_vector(words: Matrix, weights: Weights, layers: int) -> Matrix:
    """Mean of the last layer over the tokens (Reimers & Gurevych 2019), unit length. Layers: Devlin et al. 2018.

    `words` are the rows of the tokens in the table of words, `weights` gives the other tensors by BERT's names.
    """
    x = words + weights("embeddings.position_embeddings.weight")[: len(words)]
    x = _norm(weights, "embeddings", x + weights("embeddings.token_type_embeddings.weight")[0])
    for layer in range(layers):
        here = f"encoder.layer.{layer}"
        query, key, value = (
            _heads(_dense(weights, f"{here}.attention.self.{p}", x)) for p in ("query", "key", "value")
        )
        mixed = (_softmax(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])) @ value).transpose(1, 0, 2)
        attention = _dense(weights, f"{here}.attention.output.dense", mixed.reshape(len(words), -1))
        x = _norm(weights, f"{here}.attention.output", x + attention)
        inner = _dense(weights, f"{here}.intermediate.dense", x)
        inner = inner * (1 + _erf(inner / np.sqrt(2))) / 2
        x = _norm(weights, f"{here}.output", x + _dense(weights, f"{here}.output.dense", inner))
    mean: Matrix = x.mean(axis=0)
    vector: Matrix = mean / np.linalg.norm(mean)
    return vector


def _dense(weights: Weights, name: str, x: Matrix) -> Matrix:
    return x @ weights(f"{name}.weight").T + weights(f"{name}.bias")


def _norm(weights: Weights, name: str, x: Matrix) -> Matrix:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-12)
    vectors: Matrix = scaled * weights(f"{name}.LayerNorm.weight") + weights(f"{name}.LayerNorm.bias")
    return vectors


def _heads(x: Matrix) -> Matrix:
    return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)


def _softmax(x: Matrix) -> Matrix:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Matrix = powers / powers.sum(axis=-1, keepdims=True)
    return shares
