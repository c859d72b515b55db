"""Where the constants of ranking come from: every set scored exactly in memory, one constant moved at a time.

    python bench/constants.py FOLDER... [--with FOLDER/corpus.jsonl]

FOLDER holds corpus.jsonl, queries.jsonl and qrels.tsv. Vectors are made once and kept in --cache. `--with` adds a
corpus of distractors to each set. The figures are nDCG@10 by documents, as `dtrag eval retrieval` has them.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.embedders import factory
from dtrag.adapters.parsers import jsonl
from dtrag.core.metrics.ranking import ndcg_at
from dtrag.core.text.analysis import language, term_id, terms
from dtrag.core.text.passage_title_mentions import mentions, title_key
from dtrag.core.text.questions import weighted_terms
from dtrag.evaluation.retrieval import read_retrieval_set
from dtrag.ingestion.analysis import title_weight
from dtrag.ingestion.chunking import split
from dtrag.settings import Settings

Floats = NDArray[np.float64]
NOTHING = -1e9


@dataclass
class Collection:
    """A set with everything that does not depend on a constant."""

    name: str
    documents: list[str]
    titles: list[str]
    document_of: NDArray[np.int64]
    texts: list[str]
    counts: list[tuple[Counter[int], Counter[int], bool]]
    languages: NDArray[np.str_]
    queries: list[str]
    judged: list[dict[str, int]]
    cosines: NDArray[np.float32] | None

    @classmethod
    def read(cls, folder: Path, cache: Path, distractors: Sequence[Path]) -> Collection:
        """The set in `folder`; vectors from `cache` or made now (about 15 ms a passage)."""
        judged = read_retrieval_set(folder)
        documents: list[str] = []
        titles, texts, embedded, document_of, counts = [], [], [], [], []
        for corpus in (judged.corpus, *distractors):
            for document in jsonl.parse(corpus, corpus.name):
                title = Counter(map(term_id, terms(document.title)))
                for chunk in split(document).chunks:
                    document_of.append(len(documents))
                    texts.append(chunk.text)
                    starts = chunk.text.startswith(document.title)
                    embedded.append(chunk.text if starts else f"{document.title}\n{chunk.text}")
                    counts.append((title, Counter(map(term_id, terms(chunk.text))), title_weight(document) > 1))
                documents.append(str(document.metadata.get("id", document.part)))
                titles.append(document.title)
        queries = [question.text for question in judged.questions]
        english = [language(query) == "en" for query in queries]
        kept = cache / f"{folder.name}{'+' * len(distractors)}.npy"
        cosines = None
        if sum(english) > len(queries) / 2:
            if not kept.exists():
                embedder = factory.choose(Settings.load(environ={}))
                assert embedder is not None, "these figures need the embedder: dtrag models list"
                passages = np.concatenate([embedder.embed_documents([text]) for text in embedded])
                cache.mkdir(parents=True, exist_ok=True)
                np.save(kept, embedder.embed_queries(queries) @ passages.T)
            cosines = np.load(kept)
        return cls(
            folder.name + "+" * len(distractors),
            documents,
            titles,
            np.array(document_of),
            texts,
            counts,
            np.array([language(text) for text in texts]),
            queries,
            [dict(question.judgements) for question in judged.questions],
            cosines,
        )


def bm25(collection: Collection, k1: float, b: float, in_title: float) -> list[Floats]:
    """BM25 of every passage for every query, as a share of the query's ceiling."""
    postings: dict[int, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    lengths = np.zeros(len(collection.texts))
    for number, (title, body, named) in enumerate(collection.counts):
        weight = in_title if named else 1.0
        held = Counter({term: weight * count for term, count in title.items()}) + body
        lengths[number] = max(1, round(sum(held.values())))
        for term, count in held.items():
            postings[term][0].append(number)
            postings[term][1].append(count)
    means = np.ones(len(lengths))
    for code in np.unique(collection.languages):
        own = collection.languages == code
        means[own] = lengths[own].mean()
    damped = k1 * (1 - b + b * lengths / means)
    scores = []
    for query in collection.queries:
        row, ceiling = np.zeros(len(lengths)), 0.0
        for term, share in weighted_terms(query):
            numbers, counts = postings.get(term, ([], []))
            idf = math.log(1 + (len(lengths) - len(numbers) + 0.5) / (len(numbers) + 0.5))
            ceiling += share * idf * (k1 + 1)
            if numbers:
                tf = np.array(counts)
                row[numbers] += share * idf * tf * (k1 + 1) / (tf + damped[numbers])
        scores.append(np.minimum(1.0, row / (ceiling or 1.0)))
    return scores


def fused(lexical: Floats, cosine: Floats, depth: int, weight: float, *, scale: str, complete: bool) -> Floats:
    """Hybrid scores of the best `depth` of both sides; NOTHING for the rest."""
    depth = min(depth, len(lexical))
    words, near = _best(lexical, depth), _best(cosine, depth)
    if not len(words):
        return np.where(np.isin(np.arange(len(cosine)), near), cosine, NOTHING)
    both = np.union1d(words, near)
    sides = []
    for scores, own in ((lexical, words), (cosine, near)):
        base = scores[both if complete else own]
        values = np.where(np.isin(both, both if complete else own), scores[both], base.min())
        if scale == "absolute":
            sides.append(np.clip(values, 0.0, 1.0))
            continue
        spread = (base.max() - base.min()) if scale == "min_max" else base.std()
        sides.append((values - (base.min() if scale == "min_max" else base.mean())) / (spread or 1.0))
    row = np.full(len(lexical), NOTHING)
    row[both] = weight * sides[0] + (1 - weight) * sides[1]
    return row


def _best(scores: Floats, depth: int) -> NDArray[np.int64]:
    places = np.argpartition(-scores, depth - 1)[:depth]
    return places[scores[places] > 0]


def ranking(collection: Collection, row: Floats, hop: bool) -> list[str]:
    """The ten best documents, by their best passages; with the second hop of retrieval/multihop.py if asked for."""
    order = [number for number in np.argsort(-row, kind="stable")[:80] if row[number] > NOTHING and row[number] != 0]
    ranked = list(dict.fromkeys(collection.documents[collection.document_of[number]] for number in order))[:10]
    if not hop:
        return ranked
    keys = Counter(title_key(title) for title in collection.titles)
    known = {title_key(t): d for t, d in zip(collection.titles, collection.documents, strict=True)}
    sources = [next(n for n in order if collection.documents[collection.document_of[n]] == d) for d in ranked[:3]]
    named = [known[key] for n in sources for key in mentions(collection.texts[n]) if key and keys.get(key) == 1]
    linked = [document for document in dict.fromkeys(named) if document not in ranked[:7]][:3]
    rest = [document for document in ranked if document not in linked]
    return (rest[:7] + linked + rest[7:])[:10]


def main() -> None:
    """Print one line a setting, one column a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--with", dest="distractors", action="append", type=Path, default=[])
    parser.add_argument("--cache", type=Path, default=Path("constants-cache"))
    given = parser.parse_args()
    sets = [Collection.read(folder, given.cache, given.distractors) for folder in given.folders]
    print("| setting | " + " | ".join(collection.name for collection in sets) + " |\n|---|" + "---|" * len(sets))

    def line(label: str, rows: Callable[[Collection], Sequence[Floats]], hop: bool = False) -> None:
        figures = []
        for collection in sets:
            ranked = [ranking(collection, row, hop) for row in rows(collection)]
            gains = [ndcg_at(10, r, judged) for r, judged in zip(ranked, collection.judged, strict=True)]
            whole = [set(judged) <= set(r) for r, judged in zip(ranked, collection.judged, strict=True)]
            figures.append(f"{np.mean(gains):.4f} ({np.mean(whole):.2f})" if hop else f"{np.mean(gains):.4f}")
        print(f"| {label} | " + " | ".join(figures) + " |", flush=True)

    for k1, b, title in (
        (1.2, 0.75, 1),
        (0.75, 0.5, 1),
        (0.6, 0.5, 2),
        (0.9, 0.5, 2),
        (0.75, 0.4, 2),
        (0.75, 0.6, 2),
        (0.75, 0.5, 2),
    ):
        line(f"words, k1 {k1}, b {b}, title {title}", lambda c, k=k1, b=b, t=title: bm25(c, k, b, t))  # type: ignore[misc]
    words = {collection.name: bm25(collection, 0.75, 0.5, 2) for collection in sets}

    def hybrid(depth: int, weight: float, scale: str, complete: bool) -> Callable[[Collection], Sequence[Floats]]:
        return lambda c: (
            words[c.name]
            if c.cosines is None
            else [
                fused(row, near.astype(np.float64), depth, weight, scale=scale, complete=complete)
                for row, near in zip(words[c.name], c.cosines, strict=True)
            ]
        )

    line("vectors", lambda c: words[c.name] if c.cosines is None else list(c.cosines + 2.0))
    for depth, weight, scale, complete in (
        (50, 0.5, "min_max", False),
        (50, 0.5, "min_max", True),
        (100, 0.4, "z_score", True),
        (50, 0.5, "absolute", True),
        (50, 0.5, "absolute", False),
        (200, 0.5, "absolute", False),
        (100, 0.4, "absolute", False),
        (100, 0.6, "absolute", False),
        (100, 0.5, "absolute", False),
    ):
        filled = "exact scores of both sides" if complete else "the missing side counts like its last"
        line(f"hybrid, depth {depth}, words {weight}, {scale}, {filled}", hybrid(depth, weight, scale, complete))
    line("the last, with the second hop (all supports in ten)", hybrid(100, 0.5, "absolute", False), hop=True)


if __name__ == "__main__":
    main()
