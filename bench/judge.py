"""The judge without a model beside people, and what it accepts and catches; fits its weights.

python bench/judge.py ../shared/data              # the tables, with the shipped weights and cross-fitted ones
python bench/judge.py ../shared/data --write      # fit on all rows and write core/quality/lexical_judge.json

Agreement with people: FaithBench (sentences without an annotation against those with one that is not "Benign", and
whole responses), KLUE-NLI (entailment against the rest) and SciFact (SUPPORT against the rest, the abstract as source).
Every figure is cross-fitted: rows of the even sources are judged by weights and thresholds of the odd ones, and the
other way round. Changed facts: honest sentences and what `bench/support.py` makes of them.

Chosen by hand: the features, the ridge, equal weight of the two English sets.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from dtrag.core.answers.grounding import SUPPORTED, claim_of
from dtrag.core.quality.features import NAMES, compare, source_of
from dtrag.core.text.analysis import sentences, terms
from support import EDITS, faithbench, klue, verbatim

RIDGE = 10.0
SAMPLES = 1000
WEIGHTS = Path(__file__).parents[1] / "src" / "dtrag" / "core" / "quality" / "lexical_judge.json"
Floats = np.ndarray


@dataclass(frozen=True)
class Row:
    """A claim with its features. `group` keeps the claims of one source in one half."""

    name: str
    group: str
    values: tuple[float, ...]
    overlap: float
    supported: bool
    positive: bool
    kind: str = ""
    response: str = ""


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def row(name: str, source: str, claim: str, positive: bool, **more: str) -> Row:
    stated = set(terms(claim))
    overlap = len(stated & set(terms(source))) / max(1, len(stated))
    compared = compare(claim, source_of(source))
    supported = compared.support.share >= SUPPORTED and not compared.support.reason
    return Row(name, more.pop("group", source), compared.values, overlap, supported, positive, **more)


def faithbench_sentences(folder: Path) -> Iterator[Row]:
    for line in rows_of(folder / "faithbench-dev" / "faithfulness.jsonl"):
        wrong = [(span["start"], span["end"]) for span in line["spans"] if set(span["label"]) != {"Benign"}]
        for start, end in sentences(line["response"]):
            text = line["response"][start:end]
            if claim_of(text).words:
                honest = not any(first < end and start < last for first, last in wrong)
                yield row("FaithBench", line["source"], text, honest, response=line["id"])


def klue_pairs(folder: Path) -> Iterator[Row]:
    for line in rows_of(folder / "klue-nli-dev" / "faithfulness.jsonl"):
        yield row("KLUE", line["source"], line["response"], line["label"] == "entailment")


def scifact(folder: Path) -> Iterator[Row]:
    corpus = {line["id"]: line for line in rows_of(folder / "scifact-dev" / "corpus.jsonl")}
    for line in rows_of(folder / "scifact-dev" / "claim_evidence.jsonl"):
        document = corpus[line["doc_id"]]
        source = f"{document['title']}\n{document['text']}"
        yield row("SciFact", source, line["claim"], line["label"] == "SUPPORT", group=line["claim"])


def edited(name: str, pairs: Sequence[tuple[str, str]]) -> Iterator[Row]:
    """Honest sentences, and what each edit makes of them."""
    rng = Random(5)
    pairs = [pair for pair in pairs if claim_of(pair[1]).words]
    for number, (source, sentence) in enumerate(pairs):
        other = pairs[(number + len(pairs) // 2) % len(pairs)]
        yield row(name, source, sentence, True, kind="honest")
        if other[0] == source:
            continue
        for kind, change in EDITS.items():
            changed = change(sentence, other[1], rng)
            if changed is not None and changed != sentence:
                yield row(name, source, changed, False, kind=kind)


# -- fitting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """A logistic regression over unstandardised features."""

    weights: Floats
    intercept: float
    threshold: float = 0.5

    def probability(self, values: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(-np.clip(values @ self.weights + self.intercept, -30, 30))))


def fitted(rows: Sequence[Row], ridge: float = RIDGE) -> Fit:
    """Ridge logistic regression; every set has the same total weight, and in each set the two classes."""
    values = np.array([each.values for each in rows])
    positive = np.array([each.positive for each in rows], float)
    weight = np.ones(len(rows))
    names = np.array([each.name for each in rows])
    for name in set(names):
        for side in (0.0, 1.0):
            chosen = (names == name) & (positive == side)
            weight[chosen] = len(rows) / (2 * len(set(names)) * max(1, chosen.sum()))
    centre, scale = values.mean(0), values.std(0) + 1e-9
    standard = np.c_[np.ones(len(rows)), (values - centre) / scale]
    penalty = np.eye(standard.shape[1]) * ridge
    penalty[0, 0] = 1e-6
    beta = np.zeros(standard.shape[1])
    for _ in range(60):
        chance = 1 / (1 + np.exp(-np.clip(standard @ beta, -30, 30)))
        gradient = standard.T @ (weight * (chance - positive)) + penalty @ beta
        hessian = (standard * (weight * chance * (1 - chance))[:, None]).T @ standard + penalty
        step = np.linalg.solve(hessian, gradient)
        beta -= step
        if abs(step).max() < 1e-8:
            break
    weights = beta[1:] / scale
    return Fit(weights, float(beta[0] - weights @ centre))


def balanced_threshold(scores: Floats, positive: Floats) -> float:
    """The threshold with the best balanced accuracy."""
    candidates = np.unique(np.quantile(scores, np.linspace(0.02, 0.98, 97)))
    return float(max(candidates, key=lambda at: balanced_accuracy(scores, positive, at)))


def balanced_accuracy(scores: Floats, positive: Floats, threshold: float) -> float:
    right = scores >= threshold
    return float((right[positive].mean() + (~right[~positive]).mean()) / 2)


def auc(scores: Floats, positive: Floats) -> float:
    """The chance that a positive scores above a negative; ties count half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones, zeros = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def auc_interval(scores: Floats, positive: Floats, groups: Sequence[str]) -> tuple[float, float]:
    """95 % by bootstrap over sources."""
    members: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    every = list(members.values())
    rng = np.random.default_rng(0)
    values = []
    for _ in range(SAMPLES):
        drawn = np.concatenate([every[place] for place in rng.integers(0, len(every), len(every))])
        if 0 < positive[drawn].sum() < len(drawn):
            values.append(auc(scores[drawn], positive[drawn]))
    return float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))


def halves(rows: Sequence[Row]) -> Floats:
    """0 or 1 for each row, by its source."""
    order = {group: place for place, group in enumerate(sorted({each.group for each in rows}))}
    return np.array([order[each.group] % 2 for each in rows])


def cross_fitted(rows: Sequence[Row]) -> tuple[Floats, Floats]:
    """For each row its score, and whether that passes the threshold of its set, both by weights of the other half."""
    half = halves(rows)
    scores, passes = np.zeros(len(rows)), np.zeros(len(rows), bool)
    for side in (0, 1):
        other = [each for each, own in zip(rows, half, strict=True) if own != side]
        fit = fitted(other)
        for name in {each.name for each in rows}:
            seen = [each for each in other if each.name == name]
            values = np.array([each.values for each in seen])
            at = balanced_threshold(fit.probability(values), np.array([each.positive for each in seen]))
            mine = np.array([each.name == name and own == side for each, own in zip(rows, half, strict=True)])
            scores[mine] = fit.probability(np.array([each.values for each in rows])[mine])
            passes[mine] = scores[mine] >= at
    return scores, passes


# -- tables ---------------------------------------------------------------------------------------------------------


def agreement(rows: Sequence[Row]) -> None:
    scores, passes = cross_fitted(rows)
    for name in dict.fromkeys(each.name for each in rows):
        chosen = np.array([each.name == name for each in rows])
        mine = [each for each in rows if each.name == name]
        positive = np.array([each.positive for each in mine])
        overlap = np.array([each.overlap for each in mine])
        low, high = auc_interval(scores[chosen], positive, [each.group for each in mine])
        right = passes[chosen]
        accuracy = (right[positive].mean() + (~right[~positive]).mean()) / 2
        shown = f"{auc(scores[chosen], positive):.3f} [{low:.3f}, {high:.3f}]"
        print(f"| {name}, claims | {len(mine):,} | {shown} | {accuracy:.3f} | {auc(overlap, positive):.3f} |")
        if name == "FaithBench":
            whole_responses(mine, scores[chosen])


def whole_responses(rows: Sequence[Row], scores: Floats) -> None:
    """Responses of FaithBench: faithful when no sentence is annotated; the score is the product of its sentences'."""
    by: dict[str, list[int]] = {}
    for place, each in enumerate(rows):
        by.setdefault(each.response, []).append(place)
    positive = np.array([all(rows[place].positive for place in places) for places in by.values()])
    product = np.array([np.log(scores[places]).sum() for places in by.values()])
    mean = np.array([scores[places].mean() for places in by.values()])
    overlap = np.array([np.mean([rows[place].overlap for place in places]) for places in by.values()])
    groups = [rows[places[0]].group for places in by.values()]
    low, high = auc_interval(product, positive, groups)
    shown = f"{auc(product, positive):.3f} [{low:.3f}, {high:.3f}] (mean instead of product {auc(mean, positive):.3f})"
    print(f"| FaithBench, responses | {len(by)} | {shown} | – | {auc(overlap, positive):.3f} |")


def changed_facts(rows: Sequence[Row]) -> None:
    for name in dict.fromkeys(each.name for each in rows):
        cells = []
        for kind in ("honest", *EDITS):
            marked = [not each.supported for each in rows if (each.name, each.kind) == (name, kind)]
            cells.append(f"{np.mean(marked):.3f} ({len(marked)})" if marked else "–")
        print(f"| {name} | {' | '.join(cells)} |")


def write(people: dict[str, list[Row]]) -> None:
    languages = {}
    for code, rows in people.items():
        fit = fitted(rows)
        scores = fit.probability(np.array([each.values for each in rows]))
        threshold = balanced_threshold(scores, np.array([each.positive for each in rows]))
        weights = {name: round(float(weight), 5) for name, weight in zip(NAMES, fit.weights, strict=True)}
        languages[code] = {"intercept": round(fit.intercept, 5), "threshold": round(threshold, 5), "weights": weights}
    WEIGHTS.write_text(json.dumps({"languages": languages}, indent=1) + "\n", "utf-8")


def main(folder: Path, *, writing: bool) -> None:
    people = {
        "en": [*faithbench_sentences(folder), *scifact(folder)],
        "ko": [*klue_pairs(folder)],
    }
    edits = {
        "en": [
            *edited("FaithBench, faithful", list(faithbench(folder))),
            *edited("SQuAD, to the letter", list(verbatim(folder / "squad2-dev" / "corpus.jsonl"))[::3]),
        ],
        "ko": [
            *edited("KLUE, entailed", list(klue(folder))),
            *edited("KorQuAD, to the letter", list(verbatim(folder / "korquad1-dev" / "corpus.jsonl"))[::2]),
        ],
    }
    print(
        "| against people, cross-fitted | rows | AUC | balanced accuracy | AUC of word overlap |\n|---|---|---|---|---|"
    )
    for rows in people.values():
        agreement(rows)
    print("\n| sentences, cross-fitted | honest, marked | " + " | ".join(f"{kind}, marked" for kind in EDITS) + " |")
    print("|---" * (len(EDITS) + 2) + "|")
    for rows in edits.values():
        changed_facts(rows)
    if writing:
        write(people)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    main(given.folder, writing=given.write)
