"""Callers who ask, vote, comment and correct in one world only, and the visitors' search for traces of it.

The scope of each asker is part of no visitor's. Their answers cite documents that visitors see, so that nothing but the
scope in which a question was asked keeps its words from them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from dtrag.evaluation.twins.library import Visitor
from dtrag.evaluation.twins.registry import scenario
from dtrag.evaluation.twins.visits import Visit, World
from dtrag.settings import set_feature_flag

MEMORY = "cbr_enabled"
NEURAL = "neural_case_selector"
WHOLE_TREE = Visitor("whole-tree-asker", "admin", ())
ASKERS: tuple[Visitor, ...] = (
    WHOLE_TREE,
    Visitor("handbook-asker", "editor", (("Handbook",),)),
    Visitor("kitchen-asker", "reader", (("Kitchen",), ("Handbook", "Pay"))),
    Visitor("haksa-asker", "admin", (("학사",),)),
)
"""Their branches are those of visitors with the branch above them, or several that no visitor has together."""
ASKED: dict[str, tuple[tuple[str, ...], Sequence[str]]] = {
    "handbook-asker": (
        ("Handbook", "Leave"),
        ("How many weeks of parental leave are there?", "Does parental leave need a certificate before the merger?"),
    ),
    "kitchen-asker": (
        ("Kitchen", "Bread"),
        ("How long does the dough proof?", "How long does the dough of the overtime allowance proof?"),
    ),
    "haksa-asker": (
        ("학사", "휴학"),
        ("휴학 기간은 얼마나 되나요?", "징계 중에 휴학 신청 기간은 얼마나 되나요?"),
    ),
}
"""Asker -> a branch that visitors see, and questions about it. All but the last are those of shared cases: no vote is
given on their answers, since votes on shared cases are part of these."""
ASKED[WHOLE_TREE.name] = (
    ("Handbook", "Leave"),
    (*(questions[0] for _, questions in ASKED.values()), "How many weeks of parental leave does zanzibar grant?"),
)


async def ask_in_one_world(world: World, seed: str) -> None:
    """Ask, vote, comment and correct as all askers."""
    set_feature_flag(MEMORY, True)
    try:
        for asker in ASKERS:
            chance = random.Random(f"{seed}:{asker.name}")  # nosec B311  # noqa: S311 - repeatable, no secret
            await _ask(Visit(world, asker, chance))
        await _correct(Visit(world, WHOLE_TREE, random.Random(seed)))  # nosec B311  # noqa: S311
    finally:
        set_feature_flag(MEMORY, None)


async def _ask(visit: Visit) -> None:
    branch, (*shared, own) = ASKED[visit.visitor.name]
    for question in (*shared, own, f"{own} {visit.words.word()}", f"Why {own[0].lower()}{own[1:]}"):
        asked = await visit.send("POST", "/chat/run", {"message": question, "conversation_id": "asked"})
        if question in shared:
            continue
        rated = {"trace_id": asked.json.get("metadata", {}).get("trace_id"), "reason": f"No: {visit.words.word()}"}
        thumbs = "down" if question.startswith("Why") else "up"
        voted = await visit.send("POST", "/chat/feedback", rated | {"thumbs": thumbs})
        suggestion = {"query": question, "category_path": list(branch), "k": 1}
        suggested = await visit.send("POST", "/cbr/suggest", suggestion)
        made = voted.json.get("case_id")
        if made in [row["case_id"] for row in suggested.json.get("suggestions", [])]:
            vote = {"log_id": suggested.json["log_id"], "case_id": made, "feedback": "selected"}
            await visit.send("POST", "/cbr/feedback", vote)


async def _correct(visit: Visit) -> None:
    """Choose other passages for the answers that the askers found wrong."""
    waiting = await visit.send("GET", "/review", query="?limit=50")
    for row in waiting.json.get("items", []):
        if not str(row["proposal"].get("question", "")).startswith("Why"):
            continue
        address = f"/review/{row['item_id']}"
        shown = await visit.send("GET", address)
        passages = [passage["chunk_id"] for passage in shown.json["proposal"]["passages"]][-2:]
        correction = {"passages": passages, "note": f"Rather {visit.words.word()}"}
        await visit.send("POST", f"{address}/correct", correction)


@scenario(
    ("POST", "/ask"),
    ("POST", "/cbr/suggest"),
    ("POST", "/search/neural"),
    ("GET", "/cbr/cases"),
    ("GET", "/cbr/stats"),
    ("GET", "/cbr/logs"),
    ("GET", "/cbr/export"),
    ("GET", "/review"),
    writes=True,
)
async def questions_of_others(visit: Visit) -> None:
    """The very questions of the askers, and every list that could have them."""
    branch, questions = visit.chance.choice(list(ASKED.values()))
    for flag in (MEMORY, NEURAL):
        set_feature_flag(flag, True)
    try:
        for question in questions:
            await visit.send("POST", "/ask", {"question": question})
            body = {"query": question, "k": 50, "similarity_method": visit.chance.choice(("cosine", "semantic"))}
            await visit.send("POST", "/cbr/suggest", body)
            await visit.send("POST", "/cbr/suggest", body | {"category_path": list(branch)})
            await visit.send("POST", "/search/neural", {"query": question, "limit": 20})
        for path in ("/cbr/cases", "/cbr/stats", "/cbr/logs", "/cbr/export", "/review"):
            await visit.send("GET", path)
    finally:
        for flag in (MEMORY, NEURAL):
            set_feature_flag(flag, None)
