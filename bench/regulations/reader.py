"""What a reader of the first passages can gain at most: `python bench/regulations/reader.py FOLDER`.

FOLDER has `regulations.hwpx`, `articles.jsonl`, `questions.dev.jsonl` and `must.dev.jsonl`; the book is ingested into
the index of DTRAG_DATA_DIR unless that has it. The reader is a script that knows the relevant articles, not a language
model: it replies "whole" when one of them is among the passages it gets, else "none". Answers are quotations.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import dtrag
from dtrag.core.answers.citation_labels import label
from dtrag.core.chat import Message
from dtrag.evaluation.judged_questions import Groups, missing_groups, shown_parts
from dtrag.pipeline.state import PipelineResponse
from dtrag.testing import ScriptedModel

_READS = "You judge which numbered passages"
_PASSAGE = re.compile(r"^Passage \[(\d+)\]\n.*\n(.*)$", re.M)


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def is_relevant(passage: str, relevant: Sequence[str]) -> bool:
    name = "".join(passage.split())
    return any(name == article or name.startswith((f"{article}(", f"{article},")) for article in relevant)


def knowing(relevant: Sequence[str]) -> Callable[[Sequence[Message]], str]:
    """The replies of a reader that knows the relevant articles; as a model that writes it fails."""

    def reply(messages: Sequence[Message]) -> str:
        if not messages[0].content.startswith(_READS):
            return ""
        named = [int(number) for number, name in _PASSAGE.findall(messages[1].content) if is_relevant(name, relevant)]
        return json.dumps({"passages": named, "answer": "whole" if named else "none"})

    return reply


async def measure(folder: Path) -> None:
    names = {
        row["id"]: "".join(f"{row['regulation']}{row['article']}".split()) for row in rows(folder / "articles.jsonl")
    }
    must = {row["qid"]: tuple(map(tuple, row["must"])) for row in rows(folder / "must.dev.jsonl")}
    async with dtrag.open() as app:
        await app.ingest(folder / "regulations.hwpx", "Regulations")
        without_reader = app.run
        for kind in ("words", "reader"):
            counts: Counter[str] = Counter()
            prompts: list[int] = []
            for row in rows(folder / "questions.dev.jsonl"):
                relevant = [names[name] for name in row["relevant"] if name in names]
                model = ScriptedModel(knowing(relevant)) if kind == "reader" else None
                app.run = replace(without_reader, model=model)
                response = await app.pipeline.execute(row["question"])
                prompts += [
                    sum(len(message.content) for message in messages)
                    for messages in (model.requests if model is not None else [])
                    if messages[0].content.startswith(_READS)
                ]
                labels = {
                    passage.chunk_id: label(passage) for passage in (await app.search(row["question"], top_k=10))[0]
                }
                first = [labels.get(chunk.chunk_id, "") for chunk in response.retrieved_chunks[:6]]
                counts += outcome(row, response, [is_relevant(name, relevant) for name in first], must)
            print(kind, dict(sorted(counts.items())))
            if prompts:
                print(f"characters of a prompt: median {median(prompts):.0f}, most {max(prompts)}")


def outcome(
    row: dict[str, Any], response: PipelineResponse, first: Sequence[bool], must: dict[str, Groups]
) -> Counter[str]:
    """What is counted of one question; `first`: which of the first six passages are relevant."""
    counts = Counter([f"{'answerable' if row['relevant'] else 'unanswerable'}: {response.decision}"])
    if not row["relevant"]:
        return counts
    counts["first right"] += any(first[:1])
    counts["right among six"] += any(first)
    if groups := must.get(row["qid"]):
        shown = not missing_groups(shown_parts(response.as_answer()), groups)
        for kind in ("all", response.decision):
            counts[f"questions with key words, {kind}"] += 1
            counts[f"key words shown, {kind}"] += shown
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    asyncio.run(measure(parser.parse_args().folder))
