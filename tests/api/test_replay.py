"""`POST /traces/{id}/replay`: for those who may read the trace, and for nobody else."""

from __future__ import annotations

from tests.api.confined import House
from tests.api.shape import assert_failure

QUESTION = "What does a decision tree ask?"


async def test_an_answer_is_replayed_by_its_asker_and_an_administrator(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    boss = await built.client("boss", None, "admin")
    lee = await built.client("lee", None, "reader")
    trace_id = (await kim.post("/chat/run", json={"message": QUESTION})).json()["metadata"]["trace_id"]
    path, body = f"/traces/{trace_id}/replay", {"question": QUESTION}
    for client in (kim, boss):
        response = await client.post(path, json=body)
        assert response.status_code == 200, response.text
        replayed = response.json()
        assert (replayed["same"], replayed["explained"], replayed["reasons"]) == (True, True, [])
        assert replayed["record"] == "confirmed"
        assert {aspect["name"] for aspect in replayed["aspects"] if aspect["same"]} == {
            "text",
            "citations",
            "decision",
            "confidence",
            "passages",
        }
    assert_failure(await lee.post(path, json=body), 404)
    for asked, code in (({}, "replay_question_missing"), ({"question": "Another?"}, "replay_question_differs")):
        refused = assert_failure(await kim.post(path, json=asked), 422)
        assert [each["code"] for each in refused["detail_statements"]] == [code]
    assert_failure(await kim.post(path, json={**body, "filters": {"taxonomy_paths": [["HR"]]}}), 403)
    assert len((await boss.get("/traces")).json()["traces"]) == 1, "a replay leaves no trace"
    assert len((await kim.get("/conversations")).json()["conversations"]) == 1


async def test_the_record_of_an_answer_is_in_its_line_of_the_audit_log(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    answers = [(await kim.post("/ask", json={"question": QUESTION})).json() for _ in range(2)]
    await built.app.audit.newest()
    lines = [line for line in await built.audited() if line["action"] == "POST /ask"]
    for answer, line in zip(answers, lines, strict=True):
        trace = await built.app.traces.get(answer["trace_id"])
        assert trace.record is not None
        assert line["details"]["record"] == trace.record.digest()
        assert line["subjects"][-1] == answer["trace_id"]
    assert lines[0]["details"]["record"] != lines[1]["details"]["record"]
    assert "record" not in (await kim.get(f"/traces/{answers[0]['trace_id']}")).json()
