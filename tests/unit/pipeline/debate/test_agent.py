"""One agent alone, by the names of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from dtrag.errors import InvalidInput, NoActiveApp
from dtrag.pipeline.debate.agent import DebateAgent
from tests.unit.pipeline.debate.scripted import Scripted, run_of


async def test_an_agent_answers_from_passages() -> None:
    model = Scripted("It is so. [1]")
    agent = DebateAgent("affirmative", model, run_of(None))

    said = await agent.generate_answer("What?", [{"text": "It is so."}])

    assert (said.text, said.model, said.cut, said.abstains) == ("It is so. [1]", "test:one", False, False)
    assert model.limits[0][0] == 500


async def test_an_agent_receives_both_previous_answers() -> None:
    model = Scripted("Better. [1]")
    await DebateAgent("critical", model, run_of(None), max_tokens=50).generate_answer(
        "What?", ["p"], "Mine.", "Theirs."
    )

    asked = model.asked[0][1].content
    assert asked.index("Mine.") < asked.index("Theirs.")
    assert model.limits[0][0] == 50


async def test_the_critical_agent_has_the_critic_where_there_is_one() -> None:
    model, critic = Scripted("Yes."), Scripted("No.")
    run = run_of(model, critic)

    assert (await DebateAgent("critical", run=run).generate_answer("What?", [])).text == "No."
    assert (await DebateAgent("affirmative", run=run).generate_answer("What?", [])).text == "Yes."
    assert (await DebateAgent("critical", run=run_of(model)).generate_answer("What?", [])).text == "Yes."


async def test_an_unknown_role_is_refused() -> None:
    role: Any = "judge"
    with pytest.raises(InvalidInput, match="affirmative and critical"):
        DebateAgent(role, Scripted("Yes."), run_of(None))


async def test_without_a_run_it_is_the_open_apps() -> None:
    with pytest.raises(NoActiveApp):
        DebateAgent("critical", Scripted("Yes."))
