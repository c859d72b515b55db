"""`answered_before`: a question that asks the same as an earlier one, whose passages are unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag.settings import Settings
from tests.api.confined import HOUSE, House, house
from tests.api.shape import assert_failure

QUESTION, PARAPHRASE = "What does a decision tree ask?", "Hello, what does a decision tree ask"
REVERSED = "Who asks a decision tree?"
TREES = HOUSE["AI", "ML"]["trees.md"]


@pytest_asyncio.fixture
async def built(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setenv("CBR_ENABLED", "true")
    async with house(settings, tmp_path) as running:
        await running.client("kim", ["AI"], "reader")
        await running.client("lee", ["AI"], "reader")
        await running.client("han", ["HR"], "reader")
        yield running


async def asked(built: House, name: str, question: str, **body: Any) -> dict[str, Any]:
    """The answer to that client, from `/chat/run`."""
    response = await built.clients[name].post("/chat/run", json={"message": question, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def rated(built: House, name: str, answer: dict[str, Any], thumbs: str = "up") -> dict[str, Any]:
    """Give feedback on the answer as that client."""
    body = {"trace_id": answer["metadata"]["trace_id"], "thumbs": thumbs}
    response = await built.clients[name].post("/chat/feedback", json=body)
    assert response.status_code == 200, response.text
    outcome: dict[str, Any] = response.json()
    return outcome


async def change(built: House, folder: Path, text: str) -> None:
    """Replace the text of the document that answers."""
    file = folder / "AI" / "ML" / "trees.md"
    file.write_text(text, "utf-8")
    report = await built.app.ingest([file], ["AI", "ML"])
    assert not report.failed


async def test_a_case_is_shown_again_only_while_its_passages_are_unchanged(built: House, tmp_path: Path) -> None:
    first = await asked(built, "kim", QUESTION)
    assert first["answered_before"] is None
    made = await rated(built, "kim", first)
    assert (made["effect"], made["note"]) == ("case_made", "")
    again = await asked(built, "lee", PARAPHRASE)
    before = again["answered_before"]
    assert (before["case_id"], before["question"]) == (made["case_id"], QUESTION)
    assert before["votes"] == {"up": 1, "down": 0}
    assert before["date"].count("-") == 2
    assert [source["quote"] for source in again["sources"]] == [source["quote"] for source in first["sources"]]
    assert (await asked(built, "lee", REVERSED))["answered_before"] is None
    await change(built, tmp_path, TREES + "\n\nA tree is pruned in spring, and a question is not asked.\n")
    await change(built, tmp_path, TREES.replace("one question after another", "two questions at once"))
    assert (await asked(built, "lee", QUESTION))["answered_before"] is None
    await change(built, tmp_path, TREES)
    assert (await asked(built, "lee", QUESTION))["answered_before"]["case_id"] == made["case_id"]


async def test_votes_on_a_shown_case_and_a_thumbs_down_that_silences_it(built: House) -> None:
    made = await rated(built, "kim", await asked(built, "kim", QUESTION))
    shown = await asked(built, "lee", QUESTION)
    voted = await rated(built, "lee", shown)
    assert (voted["effect"], voted["case_id"]) == ("case_voted", made["case_id"])
    assert (await rated(built, "lee", shown))["changed"] is False
    assert (await asked(built, "kim", QUESTION))["answered_before"]["votes"] == {"up": 2, "down": 0}
    wrong = await asked(built, "lee", QUESTION)
    await rated(built, "lee", wrong, "down")
    assert (await asked(built, "kim", QUESTION))["answered_before"] is None
    await rated(built, "lee", wrong, "up")
    assert (await asked(built, "kim", QUESTION))["answered_before"]["votes"] == {"up": 3, "down": 0}


async def test_another_scope_never_hears_of_a_case(built: House) -> None:
    await rated(built, "kim", await asked(built, "kim", QUESTION))
    trace_id = (await asked(built, "han", QUESTION))["metadata"]["trace_id"]
    trace = await built.clients["han"].get(f"/traces/{trace_id}")
    steps = {step["name"]: step["facts"] for step in trace.json()["steps"]}
    assert steps["retrieve"]["cases"] == {
        "outcome": "silent",
        "candidates": 0,
        "same_question": 0,
        "stale": 0,
        "reason": "no_case",
    }
    body = {"trace_id": trace_id, "thumbs": "up"}
    assert_failure(await built.clients["kim"].post("/chat/feedback", json=body), 404)


async def test_every_route_and_event_has_it(built: House) -> None:
    made = await rated(built, "kim", await asked(built, "kim", QUESTION))
    kim = built.clients["kim"]
    answer = (await kim.post("/ask", json={"question": QUESTION})).json()
    assert answer["answered_before"]["case_id"] == made["case_id"]
    completion = {"model": "dtrag", "messages": [{"role": "user", "content": QUESTION}]}
    answer = (await kim.post("/v1/chat/completions", json=completion)).json()
    assert answer["answered_before"]["case_id"] == made["case_id"]
    events = (await kim.post("/chat/stream", json={"message": QUESTION})).text
    [data] = re.findall(r"event: answered_before\ndata: (.+)", events)
    assert json.loads(data)["case_id"] == made["case_id"]
    streamed = (await kim.post("/v1/chat/completions", json={**completion, "stream": True})).text
    assert made["case_id"] in streamed
    steps = (await kim.get(f"/traces/{answer['id'].removeprefix('chatcmpl-')}")).json()["steps"]
    facts = {step["name"]: step["facts"] for step in steps}
    assert (facts["retrieve"]["cases"]["outcome"], facts["cite"]["answered_before"]) == ("verified", True)


async def test_every_route_and_event_offers_similar_questions(built: House) -> None:
    made = await rated(built, "kim", await asked(built, "kim", QUESTION))
    similar = "What does a decision tree ask of gardeners?"
    expected = [{"case_id": made["case_id"], "question": QUESTION, "votes": {"up": 1, "down": 0}}]

    def without_day(offered: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{name: value for name, value in each.items() if name != "date"} for each in offered]

    lee, kim = built.clients["lee"], built.clients["kim"]
    answer = await asked(built, "lee", similar)
    assert answer["answered_before"] is None
    assert without_day(answer["offered"]) == expected
    answer = (await lee.post("/ask", json={"question": similar})).json()
    assert without_day(answer["offered"]) == expected
    events = (await kim.post("/chat/stream", json={"message": similar})).text
    [data] = re.findall(r"event: offered\ndata: (.+)", events)
    assert without_day(json.loads(data)["offered"]) == expected
    completion = {"model": "dtrag", "messages": [{"role": "user", "content": similar}]}
    assert "offered" not in (await kim.post("/v1/chat/completions", json=completion)).json()
    assert (await asked(built, "han", similar))["offered"] == []


async def test_follow_ups_greetings_and_refusals_make_no_case(built: House) -> None:
    await asked(built, "kim", QUESTION, conversation_id="c")
    notes = {
        "And what does it find?": await asked(built, "kim", "And what does it find?", conversation_id="c"),
        "greeting": await asked(built, "kim", "Hello!"),
        "declined": await asked(built, "kim", "Which wine goes with zebra fish in Lisbon?"),
        "filtered": await asked(built, "kim", QUESTION, context={"taxonomy_paths": [["AI", "ML"]]}),
    }
    for name, answer in notes.items():
        outcome = await rated(built, "kim", answer)
        assert (name, outcome["effect"], outcome["case_id"]) == (name, "recorded", None)
        assert "no case" in outcome["note"], name
    assert (await asked(built, "kim", QUESTION))["answered_before"] is None
