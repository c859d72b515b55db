"""Questions of several parts, and bare nouns, with and without their rules: `bench/regulations/parts.py QUESTIONS`.

It asks the index of DTRAG_DATA_DIR, which has the book. QUESTIONS has a JSON object a line: `qid`, `question`,
`relevant`, `must` (a group of words for each part), `kind`. `--off parts` or `--off roles` leaves out a rule.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import dtrag
from dtrag import Answer
from dtrag.evaluation.judged_questions import missing_groups, shown_parts
from dtrag.regulations import pack
from dtrag.regulations.korean import question_concepts

NOT_FOUND = "찾지 못했습니다"


async def ask(rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], Answer, float]]:
    """The answers, with the processor time of each in this process in milliseconds."""
    answers = []
    async with dtrag.open() as app:
        await app.ask(rows[0]["question"])  # loads what a first question loads
        for row in rows:
            started = time.process_time()
            answer = await app.ask(row["question"])
            answers.append((row, answer, (time.process_time() - started) * 1e3))
    return answers


def measure(answers: Sequence[tuple[dict[str, Any], Answer, float]], *, show: bool) -> None:
    """Print for each kind of question what its answers show."""
    kinds = defaultdict(list)
    for row, answer, milliseconds in answers:
        shown = shown_parts(answer) if answer.decision != "abstain" else []
        missing = missing_groups(shown, row["must"])
        if row["must"] or not row["relevant"]:
            kinds[row.get("kind", "questions")].append((row, answer, missing, milliseconds))
        if show:
            confidences = f"{answer.confidence} {answer.answer_confidence}"
            print(row["qid"], answer.decision, confidences, row["question"], missing, answer.text, "", sep="\n")
    for kind, asked in sorted(kinds.items()):
        judged = [(answer, missing) for row, answer, missing, _ in asked if row["must"]]
        groups = sum(len(row["must"]) for row, *_ in asked)
        lengths = [len(answer.text) for _, answer, *_ in asked if answer.decision != "abstain"]
        times = [milliseconds for *_, milliseconds in asked]
        print(f"{kind}: {len(asked)} questions, {len(judged)} with words to show")
        print(f"  all shown {sum(not missing for _, missing in judged)} of {len(judged)}", end="; ")
        print(f"groups shown {groups - sum(len(missing) for _, missing in judged)} of {groups}")
        for verdict in ("answer", "review", "abstain"):
            of_verdict = [missing for answer, missing in judged if answer.decision == verdict]
            others = sum(answer.decision == verdict for row, answer, *_ in asked if not row["must"])
            print(f"  {verdict}: {len(of_verdict)}, all shown {sum(not m for m in of_verdict)}; unanswerable {others}")
        named = sum(NOT_FOUND in answer.text for _, answer, *_ in asked if answer.decision != "abstain")
        print(f"  a part named as not found: {named}")
        print(f"  characters: median {median(lengths):.0f}, 90th percentile {quantiles(lengths, n=10)[-1]:.0f}")
        print(f"  ms of processor: median {median(times):.0f}, 90th percentile {quantiles(times, n=10)[-1]:.0f}")


def read(files: Sequence[Path], must: Path | None, half: str | None) -> list[dict[str, Any]]:
    """The questions of the files, with the groups of words of the file `must` where they have none themselves."""
    lines = must.read_text("utf-8").splitlines() if must is not None else []
    groups = {row["qid"]: row["must"] for row in map(json.loads, lines)}
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    rows = [row | {"must": row.get("must", groups.get(row["qid"], []))} for row in rows]
    return rows if half is None else [row for row in rows if int(row["qid"][-2:]) % 2 == (half == "odd")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--must", type=Path, help="the groups of words by qid, for questions without them")
    parser.add_argument("--half", choices=["odd", "even"], help="only questions with such a number")
    parser.add_argument("--off", choices=["parts", "roles"], action="append", default=[])
    parser.add_argument("--show", action="store_true", help="print each answer")
    options = parser.parse_args()
    if "parts" in options.off:
        question_concepts.parts_of = lambda _question: ()
    if "roles" in options.off:
        pack.governing = lambda _question, _articles: []
    measure(asyncio.run(ask(read(options.questions, options.must, options.half))), show=options.show)
