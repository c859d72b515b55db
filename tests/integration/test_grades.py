"""Texts of graded branches and what leaves the machine, recorded by real servers: a model, an embedder, tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag import destinations
from dtrag.app import App, open_app
from dtrag.core.chat import Message
from dtrag.delivery.cli.checks import examine
from dtrag.destinations import Outgoing
from dtrag.errors import Conflict, InvalidInput, ModelNotAllowed
from dtrag.exports import export
from tests.graded import GradedWorld, graded_world
from tests.model_server import ModelServer
from tests.rounds import seeds
from tests.store import Databases


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GradedWorld]:
    async with graded_world(databases_of_module.settings, tmp_path_factory.mktemp("graded")) as made:
        yield made


@pytest.mark.asyncio(loop_scope="module")
async def test_no_text_of_a_graded_branch_is_sent(world: GradedWorld) -> None:
    """10,000 questions: bench/grades.py."""
    await world.rounds(seeds(400))
    assert world.leaks() == {}
    assert all(len(sent) > 10 for sent in world.recorded.values())
    for kind in ("You decide", "You rewrite", "You judge", "You imagine", "You answer"):
        assert any(kind in sent for sent in world.recorded["model"]), kind
    assert all(world.asked[each] > 10 for each in ("graded answers", "withheld", "answers of the model", "agents"))


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hole_is_found(world: GradedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destinations, "allows", lambda limit, grade: True)
    await world.rounds(range(20))
    assert "model" in world.leaks()
    world.model.requests.clear()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_prompt_with_too_much_in_it_is_not_sent(world: GradedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the prompts leave nothing out, the model refuses them, and the answers are quotations."""
    monkeypatch.setattr(Outgoing, "admits", lambda self, passage: True)
    monkeypatch.setattr(Outgoing, "history", lambda self, messages: list(messages))
    before = world.asked["graded answers"]
    await world.rounds(range(1_000, 1_020))
    assert world.leaks() == {} and world.model.requests
    assert world.asked["graded answers"] > before


ARMY, NEWS = "The rocket of the army has 7 stages.", "The rocket of the museum has 3 stages."


async def graded(app: App, folder: Path, grade: str = "S") -> None:
    for place, text in (("Army", ARMY), ("News", NEWS)):
        (folder / place).mkdir()
        (folder / place / "rocket.md").write_text(f"# Rockets of {place}\n\n{text}", "utf-8")
        await app.ingest([folder / place], place)
    await activated(app, {"op": "grade", "path": "Army", "grade": grade})


async def activated(app: App, *rows: dict[str, object]) -> str:
    version = (await app.taxonomy.propose(list(rows))).version
    await app.taxonomy.activate(version)
    return version


@pytest.mark.parametrize(("limit", "grade", "sent"), [("O", "S", False), ("S", "S", True), ("S", "C", False)])
async def test_the_limit_of_a_destination_decides(
    databases: Databases, tmp_path: Path, limit: str, grade: str, sent: bool
) -> None:
    with ModelServer("The rocket of the army has 7 stages. [1]") as server:
        settings = databases.settings(
            llm="openai:test", llm_base_url=server.url, reader="off", grade_limits=f"{server.url}={limit}"
        )
        async with open_app(settings) as app:
            await graded(app, tmp_path, grade)
            answer = await app.pipeline.execute("How many stages has the rocket of the army?")
            assert (ARMY in str(server.requests)) is sent
            assert "7 stages" in answer.answer and any("7 stages" in each.quote for each in answer.citations)
            notes = [note for note in answer.notes if "were not sent to the language model openai:test" in str(note)]
            assert len(notes) == (not sent)
            unknown = [Message("user", "What is this?")]
            assert app.model is not None
            if sent:
                await app.model.complete(unknown, max_tokens=5, seconds=20)
            else:
                with pytest.raises(ModelNotAllowed, match="setting grade_limits"):
                    await app.model.complete(unknown, max_tokens=5, seconds=20)


async def test_the_model_answers_from_the_rest_and_what_it_was_not_sent_is_quoted(
    databases: Databases, tmp_path: Path
) -> None:
    def reply(messages: list[dict[str, object]]) -> str:
        number = str(messages[-1]["content"]).partition("Passage [")[2].partition("]")[0]
        return f"The rocket of the museum has 3 stages. [{number}]"

    with ModelServer(reply) as server:
        async with open_app(databases.settings(llm="openai:test", llm_base_url=server.url)) as app:
            await graded(app, tmp_path)
            answer = await app.pipeline.execute("How many stages has the rocket?")
    assert answer.model == "openai:test" and NEWS.removesuffix(".") in answer.answer
    assert f"{ARMY} [2]" in answer.answer
    assert [(each.number, each.title) for each in answer.citations] == [(1, "Rockets of News"), (2, "Rockets of Army")]
    for start, end in answer.marked:
        assert answer.answer[start:end] == ARMY


async def test_a_lower_grade_has_to_be_accepted_and_is_recorded(app: App, tmp_path: Path) -> None:
    await graded(app, tmp_path)
    with pytest.raises(InvalidInput, match=r"no grade 'Top'.*O, S, C"):
        await app.taxonomy.propose([{"op": "grade", "path": "Army", "grade": "Top"}])
    version = (await app.taxonomy.propose([{"op": "grade", "path": "Army", "grade": ""}])).version
    with pytest.raises(Conflict, match=r"a lower grade: Army: S to O\..*--accept-lowering"):
        await app.taxonomy.activate(version)
    assert (await app.taxonomy.preview(version)).lowered
    await app.taxonomy.activate(version, accept_lowering=True)
    assert not (await app.tree_grades()).highest
    back = (await app.taxonomy.propose([{"op": "grade", "path": "Army", "grade": "c"}])).version
    await app.taxonomy.activate(back)
    with pytest.raises(Conflict, match=r"Army: C to O\."):
        await app.taxonomy.rollback(version)
    rows = [
        row.entry for row in await app.audit.newest() if row.entry.action in {"taxonomy.activate", "taxonomy.rollback"}
    ]
    assert [(row.decision, row.details.get("lowered")) for row in rows][:3] == [
        ("denied", ["Army: C to O"]),
        ("done", None),
        ("done", ["Army: S to O"]),
    ]


async def test_the_exported_tree_has_the_grades(app: App, databases: Databases, tmp_path: Path) -> None:
    await graded(app, tmp_path)
    text = await app.taxonomy.export()
    assert text == "Army:\n  '@grade': S\nNews: {}\n"
    async with open_app(databases.settings()) as other:
        proposed = await other.taxonomy.import_tree(text)
        await other.taxonomy.activate(proposed.version)
        assert await other.taxonomy.export() == text
        assert (await other.tree_grades()).path(["Army"]) == 1
        with pytest.raises(InvalidInput, match="nothing to propose"):
            await other.taxonomy.import_tree(text)


@pytest.mark.parametrize("limit", ["", "export=S"])
async def test_exports_leave_out_what_is_above_their_grade(
    databases: Databases, tmp_path: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CBR_ENABLED", "true")
    question = "How many stages has the rocket of the army?"
    async with open_app(databases.settings(grade_limits=limit, trace_text="on")) as app:
        await graded(app, tmp_path)
        for place in ("Army", "News"):
            await app.cases.add(f"What flies in {place}?", [place], "A rocket.")
        exported = await export(app, tmp_path / "all")
        training = (await app.cases.export()).training_data.cases
        bundle = (await app.replays.bundle((await app.ask(question)).trace_id)).written().decode()
    written = "".join((tmp_path / "all" / f"{kind}.jsonl").read_text("utf-8") for kind in ("documents", "cases"))
    texts, left_out = (written, bundle), json.loads(bundle)["payload"]["left_out"]
    if limit:
        assert exported.above_grade == {} and ARMY in written and "Army?" in written and ARMY in bundle
        assert len(training) == 2 and not {"answer", "citation 1"} & set(left_out)
    else:
        assert exported.above_grade == {"documents": 1, "cases": 1}
        assert not any("7 stages" in text or "in Army" in text for text in texts) and NEWS in written
        assert [case.category_path for case in training] == [("News",)]
        assert {"answer", "citation 1"} <= set(left_out)


async def test_the_doctor_names_what_may_be_sent_where(databases: Databases, tmp_path: Path) -> None:
    with ModelServer("yes") as server:
        settings = databases.settings(
            llm="openai:test", llm_base_url=server.url, grade_limits=f"{server.url}=S; mcp:none=C"
        )
        async with open_app(settings) as app:
            await graded(app, tmp_path, "C")
        lines = [(each.state, each.detail) for each in (await examine(settings)).checks if each.name == "grades"]
    assert lines == [
        ("ok", f"model openai:test ({server.url}): texts up to S"),
        *(("ok", f"export {name}: texts up to O") for name in ("documents", "cases", "answers")),
        ("warn", "DTRAG_GRADE_LIMITS names mcp:none, which is nothing that texts are sent to."),
    ]
