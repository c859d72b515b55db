"""Scenarios of the case memory, every route of `/cbr`; and callers who ask, vote and correct in one world only.

The scope of each asker is part of no visitor's. Their answers cite documents that visitors see, so that nothing but the
scope in which a question was asked keeps its words from them.
"""

from __future__ import annotations

import random
import uuid
from typing import Any

from dtrag.isolation.library import VISITORS, Path_, Visitor
from dtrag.isolation.visits import SEARCH, Route, Visit, World, features, scenario

MEMORY = "cbr_enabled"
"""The flag of the case memory, which is on for these scenarios only: the interactions of visitors who ask at the same
time have no fixed order."""
NEURAL = "neural_case_selector"
LEAVE, BREAD, HAKSA = ("Handbook", "Leave"), ("Kitchen", "Bread"), ("학사", "휴학")
QUESTIONS: dict[Path_, str] = {
    LEAVE: "How many weeks of parental leave are there?",
    HAKSA: "휴학 기간은 얼마나 되나요?",
    BREAD: "How long does the dough proof?",
}
"""Questions of shared cases by branch, of which hidden cases have the same words."""
CASE_LISTS: tuple[Route, ...] = ("GET /cbr/cases", "GET /cbr/stats", "GET /cbr/logs", "GET /cbr/export")
"""Everything that lists or counts cases and interactions."""
ONE_CASE: dict[Route, Any] = {
    "GET /cbr/cases/{case_id}": None,
    "PUT /cbr/cases/{case_id}": {"content": "Changed."},
    "PUT /cbr/cases/{case_id}/quality": {"quality_score": 0.9},
    "DELETE /cbr/cases/{case_id}": None,
}
"""The routes of one case, with bodies."""


@scenario(SEARCH)
async def searches_of_others(visit: Visit) -> None:
    """What askers with more branches searched in one world, so that no result of theirs may serve the visitor."""
    for query in QUESTIONS.values():
        await visit.send(SEARCH, {"query": query})


@scenario(
    *("POST /cbr/suggest", "POST /cbr/feedback", "POST /cbr/case", "POST /search/neural", "POST /ask"),
    *(*ONE_CASE, *CASE_LISTS),
    writes=True,
)
async def case_memory(visit: Visit) -> None:
    """Own cases, shared ones, and hidden ones with the same questions; a visible case may cite a hidden document."""
    with features(MEMORY):
        await _suggestions(visit)
        for case_id in (visit.known("hidden case"), visit.known("citing case"), str(uuid.UUID(int=13))):
            await _one_case(visit, case_id)
        own = {"query": visit.words.question(), "content": "See the guide.", "category_path": visit.words.own_path()}
        made = await visit.send("POST /cbr/case", own)
        for change in (
            {"category_path": visit.words.hidden_path()},
            {"case_id": visit.known("hidden case")},
            {"passages": [f"{visit.known('hidden document')}:0"]},
        ):
            await visit.send("POST /cbr/case", own | change)
        case_id = str(made.get("case_id", uuid.UUID(int=17)))
        moved = {"category_path": visit.words.hidden_path()}
        await visit.send("PUT /cbr/cases/{case_id}", moved, case_id=case_id)
        for query in ("?limit=1&after=shared-0-0", "?stale=true"):
            await visit.send("GET /cbr/cases", query=query)
        await visit.get(*CASE_LISTS)
        await visit.send("GET /cbr/logs", query="?limit=1000")
        await _one_case(visit, case_id)
        await visit.send("POST /ask", {"question": visit.chance.choice(list(QUESTIONS.values()))})


async def _suggestions(visit: Visit) -> None:
    """Suggestions by words and meaning, in own and foreign categories, and votes on what they name."""
    questions = list(QUESTIONS.values())
    for category in (None, visit.words.own_path(), visit.words.own_path()[:1], visit.words.hidden_path()):
        body: dict[str, Any] = {
            "query": visit.chance.choice((*questions, visit.words.question())),
            "k": visit.chance.choice((1, 5, 50)),
            "similarity_method": visit.chance.choice(("cosine", "jaccard", "euclidean", "semantic")),
            "include_subcategories": visit.chance.random() < 0.5,
        }
        suggested = await visit.send("POST /cbr/suggest", body | ({"category_path": category} if category else {}))
        log_id = str(suggested.get("log_id"))
        first = [row["case_id"] for row in suggested.get("suggestions", [])][:1]
        for case_id in (*first, visit.known("hidden case"), visit.known("citing case")):
            vote = {"log_id": log_id, "case_id": case_id, "feedback": "thumbs_up"}
            await visit.send("POST /cbr/feedback", vote)
    with features(NEURAL):
        await visit.send("POST /search/neural", {"query": visit.chance.choice(questions), "limit": 20})
    vote = {"log_id": visit.known("hidden log"), "case_id": visit.known("hidden case"), "feedback": "thumbs_down"}
    await visit.send("POST /cbr/feedback", vote)


async def _one_case(visit: Visit, case_id: str) -> None:
    for route, body in ONE_CASE.items():
        await visit.send(route, body, case_id=case_id)


WHOLE_TREE = Visitor("whole-tree-asker", "admin", ())
ASKERS: dict[Visitor, tuple[Path_, tuple[str, ...]]] = {
    WHOLE_TREE: (LEAVE, (*QUESTIONS.values(), "How many weeks of parental leave does zanzibar grant?")),
    Visitor("handbook-asker", "editor", (("Handbook",),)): (
        LEAVE,
        (QUESTIONS[LEAVE], "Does parental leave need a certificate before the merger?"),
    ),
    Visitor("kitchen-asker", "reader", (("Kitchen",), ("Handbook", "Pay"))): (
        BREAD,
        (QUESTIONS[BREAD], "How long does the dough of the overtime allowance proof?"),
    ),
    Visitor("haksa-asker", "admin", (("학사",),)): (
        HAKSA,
        (QUESTIONS[HAKSA], "징계 중에 휴학 신청 기간은 얼마나 되나요?"),
    ),
}
"""Asker -> a branch that visitors see, and questions about it. Their branches are those of visitors with the branch
above them, or several that no visitor has together. All questions but the last are those of shared cases: no vote is
given on their answers, since votes on shared cases are part of these."""


async def ask_in_one_world(world: World, seed: str) -> None:
    """Ask, vote, comment and correct as all askers."""
    with features(MEMORY):
        for asker in ASKERS:
            await _ask(Visit(world, asker, random.Random(f"{seed}:{asker.name}")))  # nosec  # noqa: S311 - repeatable
        await _correct(Visit(world, WHOLE_TREE, random.Random(seed)))  # nosec  # noqa: S311 - as above


async def _ask(visit: Visit) -> None:
    """Search in exactly the branches of each visitor, whose statistics are not those of the asker; then ask."""
    branch, (*shared, own) = ASKERS[visit.visitor]
    for visitor in VISITORS:
        if all(any(path[: len(wider)] == wider for wider in visit.visitor.paths) for path in visitor.paths):
            for query in QUESTIONS.values():
                await visit.send(SEARCH, {"query": query, "filters": {"taxonomy_paths": visitor.paths}})
    for question in (*shared, own, f"{own} {visit.words.word()}", f"Why {own[0].lower()}{own[1:]}"):
        reply = await visit.send("POST /chat/run", {"message": question, "conversation_id": "asked"})
        if question in shared:
            continue
        rated = {"trace_id": reply.get("metadata", {}).get("trace_id"), "reason": f"No: {visit.words.word()}"}
        thumbs = "down" if question.startswith("Why") else "up"
        voted = await visit.send("POST /chat/feedback", rated | {"thumbs": thumbs})
        suggestion = {"query": question, "category_path": list(branch), "k": 1}
        suggested = await visit.send("POST /cbr/suggest", suggestion)
        made = voted.get("case_id")
        if made in [row["case_id"] for row in suggested.get("suggestions", [])]:
            vote = {"log_id": suggested["log_id"], "case_id": made, "feedback": "selected"}
            await visit.send("POST /cbr/feedback", vote)


async def _correct(visit: Visit) -> None:
    """Choose other passages for the answers that the askers found wrong."""
    waiting = await visit.send("GET /review", query="?limit=50")
    for row in waiting.get("items", []):
        if not str(row["proposal"].get("question", "")).startswith("Why"):
            continue
        shown = await visit.send("GET /review/{item_id}", item_id=row["item_id"])
        passages = [passage["chunk_id"] for passage in shown["proposal"]["passages"]][-2:]
        correction = {"passages": passages, "note": f"Rather {visit.words.word()}"}
        await visit.send("POST /review/{item_id}/correct", correction, item_id=row["item_id"])


@scenario("POST /ask", "POST /cbr/suggest", "POST /search/neural", "GET /review", *CASE_LISTS, writes=True)
async def questions_of_others(visit: Visit) -> None:
    """The very questions of the askers, and every list that could have them."""
    branch, questions = visit.chance.choice(list(ASKERS.values()))
    with features(MEMORY, NEURAL):
        for question in questions:
            await visit.send("POST /ask", {"question": question})
            body = {"query": question, "k": 50, "similarity_method": visit.chance.choice(("cosine", "semantic"))}
            await visit.send("POST /cbr/suggest", body)
            await visit.send("POST /cbr/suggest", body | {"category_path": list(branch)})
            await visit.send("POST /search/neural", {"query": question, "limit": 20})
        await visit.get(*CASE_LISTS, "GET /review")
