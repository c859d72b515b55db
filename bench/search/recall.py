"""Recall of the scan on real vectors: how many of the nearest passages it finds, in scopes of five sizes.

    .venv/bin/python bench/search/recall.py e5 FOLDER [FOLDER ...]

Folders have corpus.jsonl and queries.jsonl. Embedding takes minutes; the vectors are kept below `--data`, and read from
there the next time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from collection import Floats

from dtrag.adapters.embedders.bert import MiniLM
from dtrag.adapters.embedders.e5 import E5
from dtrag.core.ranking.nearest import Direction, Vectors, nearest
from dtrag.settings import Settings

MODELS = {"minilm": MiniLM, "e5": E5}
SHARES = (1.0, 0.5, 0.1, 0.01, 0.001)
LIMITS = (10, 50, 100)
QUERIES = 80
"""Of a folder."""


def texts(folders: list[Path], name: str, most: int | None = None) -> list[str]:
    """Beginnings of the different texts of a file of each folder, with their titles."""
    beginnings: list[str] = []
    for path in [folder / name for folder in folders if (folder / name).exists()]:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()[:most]]
        beginnings += [f"{row.get('title', '')}\n{row['text']}".strip()[:360] for row in rows]
    return list(dict.fromkeys(beginnings))


def embedded(model: str, folders: list[Path], data: Path, most: int) -> tuple[Floats, Floats]:
    """Vectors of the passages and of the queries, in half precision as the index has them."""
    paths = data / f"{model}.npy", data / f"{model}-q.npy"
    if not all(path.exists() for path in paths):
        data.mkdir(parents=True, exist_ok=True)
        embedder = MODELS[model].create(Settings.load(environ={}))
        passages = texts(folders, "corpus.jsonl")[:most]
        parts = [embedder.embed_documents(passages[start : start + 64]) for start in range(0, len(passages), 64)]
        np.save(paths[0], np.vstack(parts))
        np.save(paths[1], embedder.embed_queries(texts(folders, "queries.jsonl", QUERIES)))
    vectors, queries = (np.load(path).astype(np.float16).astype(np.float32) for path in paths)
    return vectors, queries


def main() -> None:
    """Embed, search, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--passages", type=int, default=20_000, help="at most")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "dtrag-bench-recall")
    options = parser.parse_args()
    vectors, queries = embedded(options.model, options.folders, options.data, options.passages)
    scanned, places = Vectors.of(vectors), np.random.default_rng(3).random(len(vectors))
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(queries, axis=1, keepdims=True)
    cosines = queries @ vectors.T / lengths
    print(f"{len(vectors):,} passages, {len(queries)} queries\n")
    print("| scope | passages |" + "".join(f" recall@{limit} |" for limit in LIMITS) + "\n|---" + "|---" * 4 + "|")
    for share in SHARES:
        rows = np.flatnonzero(places < share)
        shares = []
        for limit in LIMITS:
            hits = 0
            for query, exact in zip(queries, cosines, strict=True):
                true = rows[np.argsort(-exact[rows], kind="stable")[:limit]]
                [(near, scores)] = nearest([(scanned, None if share == 1 else rows)], Direction.of(query), limit)
                hits += np.isin(true, near[np.argsort(-scores, kind="stable")[:limit]]).sum()
            shares.append(hits / max(1, min(limit, len(rows))) / len(queries))
        print(f"| {share:.1%} | {len(rows):,} |" + "".join(f" {part:.4f} |" for part in shares), flush=True)


if __name__ == "__main__":
    main()
