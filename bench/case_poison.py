"""Poison: an attacker who owns half of the cases of a scope tries to change what honest questions are answered from.

For every question of a judged set there is an honest case, rated up by its asker, and a case of the attacker with the
same question, category and best quality, which cites another passage that the search returns for it. `--voters 0`: the
attacker has one key; 1, 2, …: as many further keys of the attacker's vote for each of its cases.
"""

from __future__ import annotations

import argparse
import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path

from dtrag.app import App, open_throwaway
from dtrag.core.access.api_key import Caller
from dtrag.core.access.confinement import OWNER
from dtrag.core.access.scope import Access
from dtrag.core.cases.case import FeedbackType
from dtrag.evaluation.judged_questions import JudgedQuestion
from dtrag.evaluation.retrieval import read_retrieval_set
from dtrag.settings import Settings, set_feature_flag

FLAG = "cbr_enabled"


def someone(name: str) -> Caller:
    """A caller with a key of its own, who sees everything and may write."""
    return Caller(name, "editor", Access(), uuid.uuid5(uuid.NAMESPACE_DNS, name))


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The subcommand `poison`."""
    poison = commands.add_parser("poison")
    poison.add_argument("folder", type=Path)
    poison.add_argument("--limit", type=int, default=200)
    poison.add_argument("--voters", type=int, default=0)


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    dataset = read_retrieval_set(arguments.folder, None, arguments.limit)
    asyncio.run(_measure(dataset.corpus, dataset.questions, arguments.voters))


async def _measure(corpus: Path, questions: Sequence[JudgedQuestion], voters: int) -> None:
    asker, attacker = someone("asker"), someone("attacker")
    async with open_throwaway(Settings.load()) as app:
        await app.ingest([corpus], "Set")
        set_feature_flag(FLAG, True)
        before = {}
        for question in questions:
            response = await app.pipeline.execute(question.text, scope=OWNER, owner=asker.owner)
            before[question.id] = [chunk.chunk_id for chunk in response.retrieved_chunks]
            if response.decision != "abstain":
                await app.feedback.give(response.trace_id, thumbs="up", caller=asker)
        honest = {question.id: await _first(app, question, asker) for question in questions}
        planted = [await _plant(app, question, before[question.id], attacker, voters) for question in questions]
        changed = shown = 0
        for question in questions:
            response = await app.pipeline.execute(question.text, scope=OWNER, owner=asker.owner)
            first = response.retrieved_chunks[0].chunk_id if response.retrieved_chunks else ""
            changed += first != honest[question.id]
            shown += response.answered_before is not None and response.answered_before.case_id in planted
        print(f"{len(questions)} honest questions, {sum(map(bool, planted))} cases of the attacker, {voters} voters:")
        print(f"  first passage changed: {changed} ({changed / len(questions):.3f}); its case shown: {shown}")


async def _first(app: App, question: JudgedQuestion, asker: Caller) -> str:
    """The first passage for the question, with the honest cases only."""
    response = await app.pipeline.execute(question.text, scope=OWNER, owner=asker.owner)
    return response.retrieved_chunks[0].chunk_id if response.retrieved_chunks else ""


async def _plant(app: App, question: JudgedQuestion, ranking: Sequence[str], attacker: Caller, voters: int) -> str:
    """A case of the attacker for the question, citing the second passage of its ranking; its id."""
    if len(ranking) < 2:
        return ""
    case = await app.cases.add(
        question.text, "Set", "See the second passage.", quality_score=1.0, passages=[ranking[1]], caller=attacker
    )
    for number in range(voters):
        voter = someone(f"voter {number}")
        suggested = await app.cases.suggest(question.text, None, 10, caller=voter)
        await app.cases.feedback(suggested.log_id, case.case_id, FeedbackType.THUMBS_UP, caller=voter)
    return case.case_id
