"""What the calibrated confidence is worth, beside the formula of the acceptance text; draws risk over coverage.

    python bench/confidence.py DATA [--cache FOLDER] [--draw bench/answers/coverage.svg]

Cases, folds and signals are those of scripts/fit_confidence.py: each value comes from weights that were fitted without
the case's fold. Absent: questions about topics that the collection does not have (korquad1-noanswer-dev). Adversarial:
the unanswerable questions of SQuAD 2. Neither is ever fitted on.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from dtrag.core.answers.passage_confidence import COSTS, Thresholds, confidence
from dtrag.core.metrics.calibration import auroc, calibration_error, coverage_at, risk_curve
from dtrag.evaluation.confidence_cases import MeasuredQuestion
from fit_confidence import MODELS, THRESHOLDS, USED, collected, predicted

ROWS = (
    ("korquad1-noanswer-dev, absent topic", "korquad1-noanswer-dev", "none", "korean", "absent"),
    ("korquad1-noanswer-dev, hidden", "korquad1-noanswer-dev", "none", "korean", "hidden"),
    ("korquad1-dev, hidden", "korquad1-dev", "none", "korean", "hidden"),
    ("kobest-boolq-dev, hidden", "kobest-boolq-dev", "none", "korean", "hidden"),
    ("regulation-articles-dev, hidden", "regulation-articles-dev", "none", "korean", "hidden"),
    ("squad2-dev, hidden, words", "squad2-dev", "none", "words", "hidden"),
    ("squad2-dev, hidden, MiniLM", "squad2-dev", "auto", "vectors", "hidden"),
    ("squad2-dev, adversarial, words", "squad2-dev", "none", "words", "absent"),
    ("hotpotqa100-dev, hidden, words", "hotpotqa100-dev", "none", "words", "hidden"),
)
DRAWN = ROWS[:1] + ROWS[2:3] + ROWS[5:8]
WIDTH, HEIGHT, LEFT, TOP, SIDE = 700, 400, 60, 20, 320
COLOURS = ("#1b6ca8", "#d1495b", "#2a9d5c", "#8f5fbf", "#b8860b")
Pair = tuple[np.ndarray, np.ndarray]


def chosen(cases: list[MeasuredQuestion], kind: str) -> list[MeasuredQuestion]:
    """Questions with an answer, and those of one kind without."""
    return [case for case in cases if case.kind in {"answerable", kind}]


def labels_of(cases: list[MeasuredQuestion], kind: str) -> np.ndarray:
    """Against absent topics a question that is answerable counts as such, also where its passage was not found."""
    if kind == "absent":
        return np.array([float(case.kind == "answerable") for case in cases])
    return np.array([case.label for case in cases])


def baseline(case: MeasuredQuestion) -> float:
    """The acceptance text's formula over our absolute scores, two sources or more: the score of the best passage.

    That favours it: over scores that are stretched per query the best passage always has 1, and nothing is told apart.
    """
    return confidence(case.signals["lexical"], 2)


async def main(data: Path, cache: Path | None, draw: Path | None) -> None:
    parts = {
        model: [await collected(data / name, embedder, cache) for name, embedder in sets]
        for model, sets in MODELS.items()
    }
    curves: list[tuple[str, Pair]] = []
    print("| set | n | AUROC | of the formula | answered at .95 right | of the formula | ECE |")
    print("|---|---|---|---|---|---|---|")
    kept, policies = [], []
    for row in ROWS:
        title, name, embedder, model, kind = row
        cases = chosen(await collected(data / name, embedder, cache), kind)
        values, labels = predicted(parts[model], USED[model], cases), labels_of(cases, kind)
        plain = np.array([baseline(case) for case in cases])
        print(
            f"| {title} | {len(cases):,} | {auroc(values, labels):.3f} | {auroc(plain, labels):.3f} "
            f"| {coverage_at(0.95, values, labels):.3f} | {coverage_at(0.95, plain, labels):.3f} "
            f"| {calibration_error(values, labels):.3f} |"
        )
        limits = THRESHOLDS[model]
        right, wrong = values[labels == 1], values[labels == 0]
        kept.append(
            f"| {title} | {(right >= limits['abstain']).mean():.3f} | {(right >= limits['review']).mean():.3f} "
            f"| {(wrong < limits['abstain']).mean():.2f} | {(wrong < limits['review']).mean():.2f} |"
        )
        policies.append(f"| {title} | {' | '.join(by_policy(values, labels, Thresholds(**limits)))} |")
        if row in DRAWN:
            curves.append((title, risk_curve(values, labels)))
    print("\n| set | answers kept by abstain | by review | no answer: abstained | abstained or marked |")
    print("|---|---|---|---|---|")
    print("\n".join(kept))
    print(f"\n| set | {' | '.join(COSTS)} |")
    print("|---|---|---|---|")
    print("\n".join(policies))
    if draw is not None:
        write(draw, drawn(curves))


def by_policy(values: np.ndarray, labels: np.ndarray, limits: Thresholds) -> list[str]:
    """For each policy of DTRAG_DECISION: coverage (questions not declined) and risk (their share without an answer)."""
    figures = []
    for ratio in COSTS.values():
        answered = values >= limits.at_cost(ratio).abstain
        risk = 1.0 - labels[answered].mean() if answered.any() else 0.0
        figures.append(f"{answered.mean():.3f}, {risk:.3f}")
    return figures


def write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")


def drawn(curves: list[tuple[str, Pair]]) -> str:
    """Precision over coverage, a line a set, as SVG."""
    bottom, right = TOP + SIDE, LEFT + SIDE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for step in range(6):
        share = step / 5
        x, y = LEFT + share * SIDE, bottom - share * SIDE
        parts += [
            f'<path d="M{x:.0f} {TOP}V{bottom}M{LEFT} {y:.0f}H{right}" stroke="#ddd" fill="none"/>',
            f'<text x="{x:.0f}" y="{bottom + 18}" text-anchor="middle">{share:.1f}</text>',
            f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{0.5 + share / 2:.1f}</text>',
        ]
    parts += [
        f'<text x="{LEFT + SIDE / 2}" y="{bottom + 40}" text-anchor="middle">questions answered</text>',
        f'<text x="16" y="{TOP + SIDE / 2}" text-anchor="middle" transform="rotate(-90 16 {TOP + SIDE / 2})">'
        "of these right</text>",
    ]
    for number, (title, (coverage, precision)) in enumerate(curves):
        at = np.unique(np.linspace(0, len(coverage) - 1, 200).astype(int))
        at = at[coverage[at] >= 0.02]  # the first few answers say nothing yet
        points = " ".join(
            f"{LEFT + coverage[i] * SIDE:.1f},{bottom - max(0.0, precision[i] - 0.5) * 2 * SIDE:.1f}" for i in at
        )
        y = TOP + 20 + 22 * number
        colour = COLOURS[number]
        parts += [
            f'<polyline points="{points}" stroke="{colour}" stroke-width="2" fill="none"/>',
            f'<path d="M{right + 16} {y - 4}h20" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{right + 42}" y="{y}">{title}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--draw", type=Path)
    given = parser.parse_args()
    asyncio.run(main(given.data, given.cache, given.draw))
