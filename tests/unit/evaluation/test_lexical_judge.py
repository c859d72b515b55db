"""The judge without a model agrees with people about replies, also where the question has everyday words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtrag.core.quality.scores import ACCEPTED
from dtrag.evaluation.judges import LexicalJudge

PAIRS = Path(__file__).parents[3] / "bench" / "relevancy" / "pairs.jsonl"


@pytest.mark.parametrize("everyday", [True, False])
async def test_replies_are_told_from_other_answers_about_the_same_subject(everyday: bool) -> None:
    pairs = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    assert len(pairs) >= 60
    scores = [
        ((await LexicalJudge().relevance(pair["question"], pair["answer"])).score >= ACCEPTED, pair["replies"])
        for pair in pairs
        if pair["everyday"] is everyday
    ]
    assert sum(found is replies for found, replies in scores) / len(scores) >= 0.65
    assert sum(found for found, replies in scores if replies) / (len(scores) / 2) >= 0.7
