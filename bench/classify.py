"""How often classification is right, how sure it is, and what it accepts by itself.

    python bench/classify.py DATA_FOLDER [--words]

DATA_FOLDER holds newsgroups20-dev. Five folds: four teach, one is asked; dealt out three times. `--words` leaves the
embedder out. The line "fitted on the other folds" chooses a factor of the steepness anew from folds inside the four;
every other constant of core/taxonomy/classification.py was chosen on the whole set, on both lines.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dtrag.adapters.embedders import factory
from dtrag.core.documents import Draft, ParsedDocument, Vector, document_id
from dtrag.core.taxonomy import classification
from dtrag.core.taxonomy.centroids import FIRST_PASSAGES, Centroids, Sample, TermCounts, mean_vector
from dtrag.core.taxonomy.tree import ROOT, CategoryPath, Node, Taxonomy
from dtrag.ingestion import chunking
from dtrag.ingestion.analysis import analyse_documents, embedded_text
from dtrag.ingestion.classify import content
from dtrag.settings import Settings

FOLDS = 5
REPEATS = 3
BATCH = 100


@dataclass(frozen=True)
class Known:
    """A document with the node that people gave it."""

    sample: Sample
    path: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """One answer against the truth."""

    leaf: bool
    top: bool
    confidence: float
    accepted: bool


def tree(paths: Sequence[tuple[str, ...]]) -> Taxonomy:
    """The tree that the paths form."""
    nodes: dict[tuple[str, ...], Node] = {(): Node(ROOT, ROOT, "", "")}
    for names in sorted(set(paths)):
        path = CategoryPath.parse(names)
        for depth in range(1, len(names) + 1):
            key = path.key[:depth]
            if key not in nodes:
                parent = nodes[key[:-1]].node_id
                nodes[key] = Node(len(nodes) + 1, parent, path.names[depth - 1], key[-1])
    return Taxonomy.of("1.0.0", [node for key, node in nodes.items() if key])


async def read(folder: Path, words_only: bool) -> tuple[Taxonomy, list[Known]]:
    """The documents as the index would hold them."""
    settings = Settings.load(embedder="none") if words_only else Settings.load()
    embedder = factory.choose(settings)
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    taxonomy = tree([tuple(row["category_path"]) for row in rows])
    known = []
    for start in range(0, len(rows), BATCH):
        drafts = []
        for row in rows[start : start + BATCH]:
            parsed = ParsedDocument(row["title"], row["text"], "text/plain")
            node = taxonomy.find(CategoryPath.parse(row["category_path"])) or 0
            name = document_id(row["id"])
            drafts.append(Draft(name, chunking.split(parsed), name, row["id"], node, b""))
        for document in await analyse_documents(drafts):
            first, vector = document.chunks[:FIRST_PASSAGES], None
            if embedder is not None:
                title = document.document.title
                texts = [embedded_text(title, chunk.chunk.breadcrumb, chunk.chunk.text) for chunk in first]
                vector = mean_vector(list(embedder.embed_documents(texts)))
            sample = Sample(document.document_id, document.node_id, content(document), vector)
            known.append(Known(sample, taxonomy.path(document.node_id)))
        print(f"read {len(known):,} of {len(rows):,}", file=sys.stderr)
    return taxonomy, known


def folds(known: Sequence[Known], seed: int) -> list[list[Known]]:
    """The documents dealt out."""
    dealt = list(known)
    random.Random(seed).shuffle(dealt)
    return [dealt[number::FOLDS] for number in range(FOLDS)]


def ask(taxonomy: Taxonomy, teaching: Sequence[Known], asked: Sequence[Known]) -> list[Asked]:
    """What is said about each of the asked after the teaching ones."""
    names, centroids = classification.Names(taxonomy), Centroids.of([one.sample for one in teaching])
    answers = []
    for one in asked:
        found = classification.place(taxonomy, names, centroids, one.sample.terms, one.sample.vector)
        leaf, top = found.path == one.path, found.path[:1] == one.path[:1]
        answers.append(Asked(leaf, top, found.confidence, found.accepted))
    return answers


def others(parts: Sequence[list[Known]], number: int) -> list[Known]:
    """All but one of the folds."""
    return [one for place, part in enumerate(parts) if place != number for one in part]


@contextmanager
def steepness(words: float, meaning: float) -> Iterator[None]:
    """The constants with these factors."""
    before = classification.STEEPNESS, classification.BESIDE_STEEPNESS, classification.MEANING_STEEPNESS
    classification.STEEPNESS, classification.BESIDE_STEEPNESS = before[0] * words, before[1] * words
    classification.MEANING_STEEPNESS = before[2] * meaning
    try:
        yield
    finally:
        classification.STEEPNESS, classification.BESIDE_STEEPNESS, classification.MEANING_STEEPNESS = before


def fitted(parts: Sequence[list[Known]], with_meaning: bool) -> tuple[float, float]:
    """The factors with the smallest log loss over folds inside these."""
    cases: list[tuple[Centroids, TermCounts, Vector | None, int]] = []
    for number, part in enumerate(parts):
        centroids = Centroids.of([one.sample for one in others(parts, number)])
        places = {int(node): row for row, node in enumerate(centroids.nodes)}
        cases += [(centroids, one.sample.terms, one.sample.vector, places[one.sample.node_id]) for one in part]
    best, least = (1.0, 1.0), float("inf")
    for words in (0.7, 0.85, 1.0, 1.15, 1.3, 1.6, 2.0):
        for meaning in (0.7, 1.0, 1.3) if with_meaning else (1.0,):
            with steepness(words, meaning):
                probable = [classification.shares(*case[:3])[case[3]] for case in cases]
            loss = -float(np.log(np.maximum(probable, 1e-9)).mean())
            if loss < least:
                best, least = (words, meaning), loss
    return best


def calibration_error(answers: Sequence[Asked]) -> float:
    """Mean distance of what was claimed and what was right, over tenths of the claims."""
    total = 0.0
    for tenth in range(10):
        here = [a for a in answers if min(9, int(a.confidence * 10)) == tenth]
        if here:
            total += abs(sum(a.confidence for a in here) - sum(a.leaf for a in here))
    return total / len(answers)


def row(name: str, answers: Sequence[Asked]) -> str:
    """A line of the table."""
    accepted = [a for a in answers if a.accepted]
    sure = [a for a in answers if a.confidence >= classification.TRUSTED]
    figures = (
        share(answers, [a for a in answers if a.leaf]),
        share(answers, [a for a in answers if a.top]),
        share(answers, accepted),
        share(accepted, [a for a in accepted if a.leaf]),
        share(accepted, [a for a in accepted if a.top]),
        share(sure, [a for a in sure if a.leaf]),
        calibration_error(answers),
    )
    return f"| {name} | " + " | ".join(f"{figure:.3f}".lstrip("0") for figure in figures) + " |"


def share(whole: Sequence[Asked], part: Sequence[Asked]) -> float:
    """How much of the whole."""
    return len(part) / len(whole) if whole else 0.0


def few(known: Sequence[Known], each: int, seed: int) -> tuple[list[Known], list[Known]]:
    """So many of each category, and the rest."""
    dealt = list(known)
    random.Random(seed).shuffle(dealt)
    seen: dict[tuple[str, ...], int] = {}
    teaching, asked = [], []
    for one in dealt:
        seen[one.path] = seen.get(one.path, 0) + 1
        (teaching if seen[one.path] <= each else asked).append(one)
    return teaching, asked


def foreign(taxonomy: Taxonomy, parts: Sequence[list[Known]]) -> float:
    """Of documents whose own category nobody teaches, how many are accepted somewhere."""
    accepted = total = 0
    for path in sorted({one.path for part in parts for one in part}):
        number = total % FOLDS
        teaching = [one for one in others(parts, number) if one.path != path]
        answers = ask(taxonomy, teaching, [one for one in parts[number] if one.path == path])
        accepted += sum(a.accepted for a in answers)
        total += len(answers)
    return accepted / total


def main() -> None:
    """Print the table."""
    words_only = "--words" in sys.argv
    folder = Path(next(argument for argument in sys.argv[1:] if not argument.startswith("-"))) / "newsgroups20-dev"
    taxonomy, known = asyncio.run(read(folder, words_only))
    print("| | leaf | top | accepted | leaf of these | top of these | leaf at .90 | ECE |")
    print("|---|---|---|---|---|---|---|---|")
    plain: list[Asked] = []
    nested: list[Asked] = []
    for seed in range(REPEATS):
        parts = folds(known, seed)
        for number, part in enumerate(parts):
            rest = others(parts, number)
            plain += ask(taxonomy, rest, part)
            factors = fitted(folds(rest, seed), not words_only)
            print(f"fitted factors of the steepness: {factors}", file=sys.stderr)
            with steepness(*factors):
                nested += ask(taxonomy, rest, part)
    print(row("five folds", plain))
    print(row("five folds, fitted on the other folds", nested))
    for each in (1, 2, 5, 10, 20, 40):
        found = [a for seed in range(3) for a in ask(taxonomy, *few(known, each, seed))]
        print(row(f"{each} of each category", found))
    print(f"\nAccepted although their category is not there: {foreign(taxonomy, parts):.3f}")


main()
