"""What each rule of the regulation pack and of its answers brings: every one switched off in turn.

    python bench/regulations/rules.py BOOK QUESTIONS.jsonl ... [--must FILE.jsonl ...] [--only NAME ...]

BOOK is a file with regulations; a question is a line `{"qid", "question", "relevant", "must"}`. Figures: Recall@10,
nDCG@10 and first right of the articles; whether all that has to be shown is shown; the share of the questions with the
decision `answer`, how many of these are right, how many questions without an answer get it; characters of an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, median
from typing import Any
from unittest import mock

from dtrag.app import App, open_throwaway
from dtrag.core.access.scope import Scope
from dtrag.core.metrics.ranking import ndcg_at, recall_at
from dtrag.evaluation.judged_questions import missing_groups, shown_parts
from dtrag.pipeline.answer import extractive
from dtrag.regulations import pack
from dtrag.regulations.korean import question_concepts, ranking
from dtrag.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from fit_regulation_ranking import article_id

Switch = tuple[object, str, object]


def without_weight(name: str) -> Switch:
    """The feature counts nothing."""
    kept = ranking.weights().copy()
    kept[[*ranking.FEATURES, ranking.SIMILARITY].index(name)] = 0.0
    return ranking, "weights", lambda: kept


RULES: Mapping[str, Sequence[Switch]] = {
    "nothing": [],
    **{f"feature {name}": [without_weight(name)] for name in (*ranking.FEATURES, ranking.SIMILARITY)},
    "nearest passages join": [(ranking, "NEAREST_ARTICLES", 0)],
    "score of the regulation in the first score": [(ranking, "REGULATION_SHARE", 0.0)],
    "factors of addenda and forms": [(pack, "kind_factor", lambda *_: 1.0)],
    "parts of a question": [(question_concepts, "parts_of", lambda _question: ())],
    "articles that govern nouns": [(pack, "governing", lambda *_: [])],
    "further articles": [(extractive, "leading", lambda passages: range(min(1, len(passages))))],
    "definition of a bare word first": [(extractive, "_defining", lambda *_: None)],
    "sentences that refer on last": [(extractive, "refers_on", lambda *_: False)],
    "references followed": [(extractive, "_referred_to", lambda *_, **__: [])],
    "other cases last": [(extractive, "is_other_case", lambda *_: False)],
    "no siblings of a compound": [(extractive, "without_siblings", lambda _, found: list(found))],
    "rows of a table": [(extractive, "of_table", lambda _, *found: found)],
    "whole articles": [(extractive, "WHOLE", 0)],
}


async def measured(app: App, questions: Sequence[dict[str, Any]]) -> str:
    """One line of figures."""
    recalls, gains, firsts, shown, characters = [], [], [], [], []
    answered, right, wrong = 0, 0, 0
    for row in questions:
        app.engine.clear_cache()
        answer = await app.ask(row["question"])
        is_right = bool(row["must"]) and not missing_groups(shown_parts(answer), row["must"])
        characters.append(len(answer.text))
        if row["must"]:
            shown.append(is_right)
            answered += answer.decision == "answer"
            right += is_right and answer.decision == "answer"
        elif not row["relevant"]:
            wrong += answer.decision == "answer"
        if row["relevant"]:
            results, _ = await app.engine.search(row["question"], 50, scope=Scope.everything(), seconds=None)
            ranked = list(dict.fromkeys(map(article_id, results)))
            relevant = dict.fromkeys(row["relevant"], 1)
            recalls.append(recall_at(10, ranked, relevant))
            gains.append(ndcg_at(10, ranked, relevant))
            firsts.append(ranked[0] in relevant)
    return (
        f"{mean(recalls):.3f} | {mean(gains):.3f} | {mean(firsts):.3f} | {mean(shown):.3f} | "
        f"{answered / len(shown):.2f} | {right / max(1, answered):.2f} | {wrong} | {median(characters):.0f}"
    )


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("book", type=Path)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--must", type=Path, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", choices=RULES, default=list(RULES))
    arguments = parser.parse_args()
    must = {row["qid"]: row["must"] for file in arguments.must for row in lines(file)}
    questions = [
        {**row, "must": row.get("must") or must.get(row["qid"], [])}
        for file in arguments.questions
        for row in lines(file)
    ]
    async with open_throwaway(Settings.load()) as app:
        await app.ingest(arguments.book)
        print(f"{len(questions)} questions\n")
        print("| without | Recall@10 | nDCG@10 | first right | shown | answer | right | wrongly | characters |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name in arguments.only:
            with ExitStack() as switched:
                for place, attribute, value in RULES[name]:
                    switched.enter_context(mock.patch.object(place, attribute, value))
                print(f"| {name} | {await measured(app, questions)} |", flush=True)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    asyncio.run(main())
