"""Whether the right case is suggested for a paraphrase.

The base questions of all pairs are cases in an SQLite file, and each paraphrase of `bench/cases` asks for the three
nearest, by words and by meaning with words.

The halves are by base question, so that a weight can be chosen on one and judged on the other.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.cases.reuse import LEAST_SIMILARITY, MOST_CANDIDATES
from dtrag.cases.suggesting import CandidateCases, QuestionVectors, Suggester
from dtrag.core.access.scope import EVERYTHING, PUBLISHED
from dtrag.core.cases import index as similarity
from dtrag.core.cases.case import Case, CaseQuery, SimilarityMethod
from dtrag.core.cases.index import question_hash
from dtrag.core.text.analysis import language
from dtrag.evaluation.question_pairs import QuestionPair
from dtrag.ports import Embedder

K = 3
SHARES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
"""Weights of meaning."""
Hits = Mapping[str, Sequence[bool]]


def run(pairs: Sequence[QuestionPair], embedder: Embedder | None) -> None:
    """Print the shares of paraphrases with the right case among the first three, by language, kind and half."""
    asyncio.run(_run(pairs, embedder))


async def _run(pairs: Sequence[QuestionPair], embedder: Embedder | None) -> None:
    vectors = QuestionVectors(embedder, seconds=60.0)
    bases = list(dict.fromkeys(pair.base for pair in pairs))
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
        store = SqliteCases(Path(folder))
        for base in bases:
            await store.add(replace(base_case(base), vector=await vectors.of(base)))
        suggester = Suggester(store, vectors)
        paraphrases = [pair for pair in pairs if pair.same]
        await suggester.nearest(CaseQuery(text="warm", limit=1, method=SimilarityMethod.SEMANTIC), EVERYTHING)
        asked, seconds = [], 0.0
        for pair in paraphrases:
            vector = await vectors.of(pair.other)
            started = time.process_time()
            query = CaseQuery(text=pair.other, limit=MOST_CANDIDATES, vector=vector)
            asked.append((pair, await suggester.candidates(query, EVERYTHING)))
            seconds += time.process_time() - started
        await suggester.close()
        await store.close()
    print(f"{len(bases)} cases, {len(asked)} paraphrases; embedder: {embedder.id if embedder else 'none'}")
    print(f"both rankings of a question, without its embedding: {seconds / len(asked) * 1000:.2f} ms of processor")
    for share in SHARES:
        similarity.MEANING_SHARE = share
        name = "words alone" if share == 0.0 else f"{share:.2f} meaning"
        show(name, [(pair, words_only(found) if share == 0.0 else found) for pair, found in asked])
    similarity.MEANING_SHARE = 0.9
    for least in (0.4, LEAST_SIMILARITY, 0.6):
        show(f"similarity of {least:.2f} or more", asked, least)


def base_case(question: str) -> Case:
    """The case of a base question."""
    now = datetime.now(UTC)
    return Case(
        case_id=base_id(question),
        query=question,
        query_hash=question_hash(question),
        category_path=("Handbook",),
        content="See the handbook.",
        created_at=now,
        updated_at=now,
        asked_in=PUBLISHED,
    )


def base_id(question: str) -> str:
    """The id of its case."""
    return hashlib.sha256(question.encode()).hexdigest()[:16]


def words_only(found: CandidateCases) -> CandidateCases:
    """The same without the vector of the question."""
    return CandidateCases(replace(found.query, vector=None), found.by_words)


def show(name: str, asked: Sequence[tuple[QuestionPair, CandidateCases]], least: float = 0.0) -> None:
    """One line for each language."""
    hits: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    offered: dict[str, list[int]] = defaultdict(list)
    for pair, found in asked:
        code = language(pair.base)
        first = [each.case_id for each, score in found.combined()[:K] if score >= least]
        half = "half A" if hashlib.sha256(f"suggest:{pair.base}".encode()).digest()[0] % 2 == 0 else "half B"
        for group in ("all", pair.kind, half):
            hits[code][group].append(base_id(pair.base) in first)
        offered[code].append(len(first))
    for code, groups in hits.items():
        shares = "  ".join(f"{group} {sum(each) / len(each):.3f}" for group, each in sorted(groups.items()))
        mean = sum(offered[code]) / len(offered[code])
        print(f"{name:24} {code}: {shares}  cases shown {mean:.2f}")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line."""
    command = commands.add_parser("paraphrases")
    command.add_argument("files", nargs="*", type=Path)
    command.add_argument("--embedder", default="auto")
