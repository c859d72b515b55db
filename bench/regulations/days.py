"""Answers as of a day over the only edition of a book: `python bench/regulations/days.py QUESTIONS [--show]`.

It asks the index of DTRAG_DATA_DIR. QUESTIONS has a JSON object a line: `question`, `as_of`, the `regulation` that
answers, `provable` (whether its amendment marks say that its text was the same on that day), and `must`: groups of
words, of each of which one must be in the answer or its quotations.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dtrag
from dtrag import Answer
from dtrag.evaluation.judged_questions import missing_groups, shown_parts


def is_right(answer: Answer, row: dict[str, Any]) -> bool:
    """Whether the answer shows the key words, and cites the regulation that answers."""
    cites = any(citation.label.startswith(row["regulation"]) for citation in answer.citations)
    return cites and not missing_groups(shown_parts(answer), row["must"])


async def judge(rows: Sequence[dict[str, Any]], *, show: bool) -> None:
    """Print how many answers of each verdict are right."""
    counts: Counter[tuple[bool, str, bool]] = Counter()
    async with dtrag.open() as app:
        await app.ask(rows[0]["question"])  # loads what a first question loads
        for row in rows:
            answer = await app.ask(row["question"], as_of=row["as_of"])
            outcome = row["provable"], answer.decision, is_right(answer, row)
            counts[outcome] += 1
            if show:
                print(*outcome, row["as_of"], row["question"], answer.text, answer.reason, *answer.notes, "", sep="\n")
    for (provable, decision, right), count in sorted(counts.items(), reverse=True):
        kind = "provable" if provable else "changed since"
        print(f"{kind:14} {decision:8} {'right' if right else 'not right':10} {count}")
    sure = sum(count for (_, decision, _), count in counts.items() if decision == "answer")
    possible = sum(count for (provable, _, _), count in counts.items() if provable)
    answered = counts[True, "answer", True]
    print(f'wrong under "answer": {sure - answered} of {sure}; answered where provable: {answered} of {possible}')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--show", action="store_true", help="print each answer")
    options = parser.parse_args()
    lines = options.questions.read_text("utf-8").splitlines()
    asyncio.run(judge(list(map(json.loads, lines)), show=options.show))
