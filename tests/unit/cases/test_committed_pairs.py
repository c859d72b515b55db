"""The evidence before a collection has its own: what the gate decides about the committed trap pairs."""

from __future__ import annotations

import json
from pathlib import Path

from dtrag.core.cases.case import DecisionCounts
from dtrag.core.cases.reuse_verdict import COMMITTED_PAIRS, collection_evidence
from dtrag.core.cases.same_question import same_question

PAIRS = Path(__file__).resolve().parents[3] / "bench" / "cases"


def test_the_constant_is_what_the_gate_decides_about_the_trap_pairs() -> None:
    rows = [json.loads(line) for file in sorted(PAIRS.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    traps = [row for row in rows if not row["same"]]
    accepted = [row["id"] for row in traps if same_question(row["base"], row["other"]).same]
    assert DecisionCounts(len(traps) - len(accepted), len(accepted)) == COMMITTED_PAIRS, accepted
    assert collection_evidence(DecisionCounts(), COMMITTED_PAIRS).allowed
