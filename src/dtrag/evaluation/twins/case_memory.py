"""The scenario of the case memory: every route of `/cbr`."""

from __future__ import annotations

import uuid
from typing import Any

from dtrag.evaluation.twins.registry import scenario
from dtrag.evaluation.twins.visits import Visit
from dtrag.settings import set_feature_flag

CASE = "/cbr/cases/{case_id}"
QUESTIONS = (
    "How many weeks of parental leave are there?",
    "휴학 기간은 얼마나 되나요?",
    "How long does the dough proof?",
)
"""Questions of shared cases, of which hidden cases have the same words."""


@scenario(
    ("POST", "/cbr/suggest"),
    ("POST", "/cbr/feedback"),
    ("POST", "/cbr/case"),
    ("POST", "/search/neural"),
    ("GET", CASE),
    ("PUT", CASE),
    ("PUT", f"{CASE}/quality"),
    ("DELETE", CASE),
    ("GET", "/cbr/cases"),
    ("GET", "/cbr/stats"),
    ("GET", "/cbr/logs"),
    ("GET", "/cbr/export"),
    ("POST", "/ask"),
    writes=True,
)
async def case_memory(visit: Visit) -> None:
    """Own cases, shared ones, and hidden ones with the same questions; a visible case may cite a hidden document.

    The memory is enabled for this scenario only: the interactions of visitors at the same time have no fixed order.
    """
    set_feature_flag("cbr_enabled", True)
    try:
        await _suggestions(visit)
        for case_id in (visit.world.known["hidden case"], visit.world.known["citing case"], str(uuid.UUID(int=13))):
            await _one_case(visit, case_id)
        own = {"query": visit.words.question(), "content": "See the guide.", "category_path": visit.words.own_path()}
        made = await visit.send("POST", "/cbr/case", own)
        for change in ({"category_path": visit.words.hidden_path()}, {"case_id": visit.world.known["hidden case"]}):
            await visit.send("POST", "/cbr/case", own | change)
        await visit.send("POST", "/cbr/case", own | {"passages": [f"{visit.world.known['hidden document']}:0"]})
        case_id = str(made.json.get("case_id", uuid.UUID(int=17)))
        await visit.send("PUT", CASE, {"category_path": visit.words.hidden_path()}, case_id=case_id)
        await _collections(visit)
        await _one_case(visit, case_id)
        await visit.send("POST", "/ask", {"question": visit.chance.choice(QUESTIONS)})
    finally:
        set_feature_flag("cbr_enabled", None)


async def _suggestions(visit: Visit) -> None:
    """Suggestions by words and meaning, in own and foreign categories, and votes on what they name."""
    for category in (None, visit.words.own_path(), visit.words.own_path()[:1], visit.words.hidden_path()):
        body: dict[str, Any] = {
            "query": visit.chance.choice((*QUESTIONS, visit.words.question())),
            "k": visit.chance.choice((1, 5, 50)),
            "similarity_method": visit.chance.choice(("cosine", "jaccard", "euclidean", "semantic")),
            "include_subcategories": visit.chance.random() < 0.5,
        }
        suggested = await visit.send("POST", "/cbr/suggest", body | ({"category_path": category} if category else {}))
        log_id = str(suggested.json.get("log_id"))
        first = [row["case_id"] for row in suggested.json.get("suggestions", [])][:1]
        for case_id in (*first, visit.world.known["hidden case"], visit.world.known["citing case"]):
            vote = {"log_id": log_id, "case_id": case_id, "feedback": "thumbs_up"}
            await visit.send("POST", "/cbr/feedback", vote)
    set_feature_flag("neural_case_selector", True)
    try:
        await visit.send("POST", "/search/neural", {"query": visit.chance.choice(QUESTIONS), "limit": 20})
    finally:
        set_feature_flag("neural_case_selector", None)
    vote = {"log_id": visit.world.known["hidden log"], "case_id": visit.world.known["hidden case"]}
    await visit.send("POST", "/cbr/feedback", vote | {"feedback": "thumbs_down"})


async def _one_case(visit: Visit, case_id: str) -> None:
    await visit.send("GET", CASE, case_id=case_id)
    await visit.send("PUT", CASE, {"content": "Changed."}, case_id=case_id)
    await visit.send("PUT", f"{CASE}/quality", {"quality_score": 0.9}, case_id=case_id)
    await visit.send("DELETE", CASE, case_id=case_id)


async def _collections(visit: Visit) -> None:
    """Everything that lists or counts cases and interactions."""
    await visit.send("GET", "/cbr/cases")
    await visit.send("GET", "/cbr/cases", query="?limit=1&after=shared-0-0")
    await visit.send("GET", "/cbr/cases", query="?stale=true")
    for path in ("/cbr/stats", "/cbr/logs", "/cbr/export"):
        await visit.send("GET", path)
    await visit.send("GET", "/cbr/logs", query="?limit=1000")
