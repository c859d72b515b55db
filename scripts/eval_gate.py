"""Asks the sample questions and compares with the committed baseline: `make eval-gate`, `make eval-baseline`.

    .venv/bin/python scripts/eval_gate.py            # exit code 1 when a question got worse
    .venv/bin/python scripts/eval_gate.py --write    # a new baseline: examples/baseline.json

Ten seconds, in a temporary database, with the settings of an installation that sets none.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dtrag.app import App, open_throwaway
from dtrag.core.access.confinement import OWNER
from dtrag.core.documents import SearchResult
from dtrag.core.evaluation_run import EvaluationRun
from dtrag.delivery.cli.ingest import SAMPLES
from dtrag.evaluation.answers import read_answer_set
from dtrag.evaluation.baseline import merged, regressions
from dtrag.evaluation.quality import RAGQualityEvaluator, evaluate_quality
from dtrag.evaluation.report import markdown, read_run, write_report
from dtrag.settings import Settings

EXAMPLES = Path(__file__).parents[1] / "examples"
BASELINE = EXAMPLES / "baseline.json"
DOCUMENTS = [EXAMPLES / file for files in SAMPLES.values() for file in files]


async def measured() -> EvaluationRun:
    """The run over the samples."""
    with tempfile.TemporaryDirectory(prefix="dtrag-gate-") as data_dir:
        async with open_throwaway(Settings.load(environ={}, data_dir=data_dir)) as app:
            return await gate_run(app)


async def gate_run(app: App) -> EvaluationRun:
    """The run in an empty app."""
    report = await app.ingest(DOCUMENTS)
    if report.failed:
        raise SystemExit(f"{report.failed[0][0]}: {report.failed[0][1]}")
    dataset = read_answer_set(EXAMPLES / "questions.jsonl", EXAMPLES)

    async def contexts(text: str, top_k: int) -> Sequence[SearchResult]:
        return (await app.search(text, top_k, scope=OWNER, highlights=False))[0]

    _, _, answers = await app.evaluate_answers(dataset, scope=OWNER)
    quality = await evaluate_quality(app.ask, contexts, RAGQualityEvaluator(), dataset)
    return app.evaluation_run("quality", "examples", merged(answers.rows, quality))


def main(*, write: bool) -> int:
    """The exit code."""
    run = asyncio.run(measured())
    if write:
        write_report(BASELINE, run, None)
        sys.stdout.write(f"{BASELINE} has the run of {len(run.rows)} questions.\n")
        return 0
    worse, better = regressions(run, read_run(BASELINE))
    sys.stdout.write(markdown(run, None).partition("## Questions")[0])
    for line in worse:
        sys.stdout.write(f"WORSE: {line}\n")
    for line in better:
        sys.stdout.write(f"better: {line}; keep it with: make eval-baseline\n")
    return 1 if worse else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the baseline instead of comparing with it")
    sys.exit(main(write=parser.parse_args().write))
