"""The case memory, measured.

python bench/cases.py same [PAIRS.jsonl …] [--embedder auto|fastembed:MODEL|none]
python bench/cases.py paraphrases [PAIRS.jsonl …] [--embedder auto|fastembed:MODEL|none]
python bench/cases.py suggest [--sizes 1000,10000,100000] [--stores sqlite,postgres] [--rounds 200]
python bench/cases.py crud [--size 10000]
python bench/cases.py concurrent [--size 10000]
python bench/cases.py poison DIR [--limit 200] [--voters 0]

`paraphrases`: whether the right case is among the first three suggestions (bench/case_paraphrases.py).
`suggest`: the five nearest cases. `crud`: add, read, change, vote, search, delete. `concurrent`: 100 requests to
/cbr/suggest at once, and 200 votes at once (all three: bench/case_store.py). `poison`: bench/case_poison.py.

`same`: the gate over pairs of questions, by kind and language, and beside it what decides without rules: the cosine of
an embedder (when a model is there without the network) and the share of equal content words, at thresholds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import case_paraphrases
import case_poison
import case_store
from dtrag.adapters.embedders import factory
from dtrag.core.text.analysis import language
from dtrag.core.text.questions import content_terms
from dtrag.errors import DtragError
from dtrag.evaluation.question_pairs import PairsReport, QuestionPair, judged, read_pairs
from dtrag.ports import Embedder
from dtrag.settings import Settings

PAIRS = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
COSINES = (0.70, 0.80, 0.85, 0.90, 0.95, 0.98)
WORD_SHARES = (0.5, 0.7, 0.8, 0.9, 1.0)
Scores = Sequence[float]


def read(files: Sequence[Path]) -> list[QuestionPair]:
    """The pairs of all files."""
    return [pair for file in files for pair in read_pairs(file.read_text("utf-8").splitlines(), file.name)]


def show_gate(report: PairsReport, label: str) -> None:
    """The counts of the gate by kind."""
    print(f"\n{label}: the gate")
    for row in report.kinds():
        print(f"  {row.kind:12} {'same' if row.same else 'trap':5} {row.accepted:4} of {row.pairs:4}")
    bound = f"upper bound {report.upper_bound:.4f}"
    print(f"  {report.false_hits} false hits in {report.traps} traps ({bound})")
    print(f"  {report.hits} hits in {report.paraphrases} paraphrases")


def show_curve(pairs: Sequence[QuestionPair], scores: Scores, thresholds: Sequence[float], label: str) -> None:
    """False hits and hits when every pair at or above a threshold counts as the same."""
    print(f"\n{label}: threshold, false hits in traps, hits in light and in heavy paraphrases")
    for threshold in thresholds:
        counts = []
        for chosen in (
            lambda pair: not pair.same,
            lambda pair: pair.kind == "light",
            lambda pair: pair.kind == "heavy",
        ):
            inside = [score >= threshold for pair, score in zip(pairs, scores, strict=True) if chosen(pair)]
            counts.append(f"{sum(inside):4} of {len(inside):4}")
        print(f"  {threshold:.2f}  {'   '.join(counts)}")


def word_share(pair: QuestionPair) -> float:
    """The share of equal content words: Jaccard of the index terms."""
    left, right = set(content_terms(pair.base)), set(content_terms(pair.other))
    return len(left & right) / len(left | right) if left | right else 0.0


def cosines(pairs: Sequence[QuestionPair], embedder: Embedder) -> list[float]:
    """The cosine of each pair."""
    vectors = embedder.embed_queries([text for pair in pairs for text in (pair.base, pair.other)])
    return [float(vectors[2 * place] @ vectors[2 * place + 1]) for place in range(len(pairs))]


def same(arguments: argparse.Namespace) -> None:
    """The gate and the curves, for each language."""
    pairs = read(arguments.files or PAIRS)
    embedder = _embedder(arguments)
    for code in ("ko", "en"):
        chosen = [pair for pair in pairs if language(pair.base) == code]
        if not chosen:
            continue
        show_gate(judged(chosen), code)
        show_curve(chosen, [word_share(pair) for pair in chosen], WORD_SHARES, f"{code}: same content words")
        if embedder is not None and not embedder.languages.isdisjoint({code, "*"}):
            show_curve(chosen, cosines(chosen, embedder), COSINES, f"{code}: cosine of {embedder.id}")


def _embedder(arguments: argparse.Namespace) -> Embedder | None:
    """The embedder, or None (with the reason) when its model is not on this machine."""
    try:
        embedder = factory.choose(Settings.load(environ={}, embedder=arguments.embedder))
        if embedder is None:
            print("The model is not on this machine: words only.")
        return embedder
    except DtragError as error:
        print(f"Words only: {error}")
        return None


SUBCOMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "same": same,
    "paraphrases": lambda arguments: case_paraphrases.run(read(arguments.files or PAIRS), _embedder(arguments)),
    "suggest": case_store.run,
    "crud": case_store.run,
    "concurrent": case_store.run,
    "poison": case_poison.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    pairs = commands.add_parser("same")
    pairs.add_argument("files", nargs="*", type=Path)
    pairs.add_argument("--embedder", default="auto")
    case_paraphrases.add_command(commands)
    case_store.add_commands(commands)
    case_poison.add_commands(commands)
    arguments = parser.parse_args()
    SUBCOMMANDS[arguments.command](arguments)


if __name__ == "__main__":
    main()
