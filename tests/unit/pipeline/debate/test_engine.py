"""A debate's course: how many calls, what is said of failures, and that nothing runs on when its time is over."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from dtrag.core.chat import Message, Reply, Usage
from dtrag.core.debate import DebateResult
from dtrag.core.text.token_counts import answer_tokens
from dtrag.errors import InvalidInput, LanguageModelFailed, ModelNotAllowed, NoActiveApp, Overloaded
from dtrag.pipeline.answer.generative import MAX_PASSAGE, NO_ANSWER
from dtrag.pipeline.debate.engine import MAX_CALLS, MAX_QUERY, MAX_ROUNDS, DebateEngine
from tests.clock import Clock
from tests.unit.pipeline.debate.scripted import Scripted, failing, run_of

PASSAGES = [{"text": "Leave lasts two semesters."}, {"text": "Military service is counted apart."}]


def _numbered(number: int, messages: Sequence[Message]) -> str:
    return f"Answer number {number}. [1]"


def _fails_at(*numbers: int, error: Exception | None = None) -> Any:
    def answer(number: int, messages: Sequence[Message]) -> str:
        if number in numbers:
            raise error or LanguageModelFailed(model="test:one", reason="it said no.")
        return _numbered(number, messages)

    return answer


async def _debate(
    answer: Any = _numbered, *, max_calls: int = MAX_CALLS, **options: Any
) -> tuple[DebateResult, Scripted]:
    model = Scripted(answer)
    engine = DebateEngine(run_of(model), max_calls=max_calls)
    return await engine.run_debate("How long is leave?", PASSAGES, **options), model


async def test_one_round_is_two_calls_and_has_no_final_answer() -> None:
    result, model = await _debate(
        lambda n, m: ["Two semesters. [1]", "Service is apart. [2] Who knows."][n], max_rounds=1
    )

    assert (result.rounds, result.llm_calls, len(model.asked)) == (1, 2, 2)
    assert result.calls_by_phase == {"round_1": 2}
    assert result.final_answer is None
    assert result.affirmative_answer == "Two semesters. [1]"
    assert result.answered
    assert result.notes == ()


async def test_two_rounds_and_the_synthesis_are_five_calls() -> None:
    result, model = await _debate()

    assert result.calls_by_phase == {"round_1": 2, "round_2": 2, "synthesis": 1}
    assert (result.rounds, result.llm_calls) == (2, 5)
    assert result.affirmative_answers == ("Answer number 0. [1]", "Answer number 2. [1]")
    assert result.critical_answers == ("Answer number 1. [1]", "Answer number 3. [1]")
    assert (result.affirmative_answer, result.critical_answer) == (
        result.affirmative_answers[1],
        result.critical_answers[1],
    )
    assert result.final_answer == "Answer number 4. [1]"
    assert result.usage == Usage(5, 50, 25, 2.5)
    assert [limit for limit, _ in model.limits] == [500, 500, 500, 500, 800]


async def test_the_second_round_sees_both_answers_and_the_synthesis_the_last_two() -> None:
    _, model = await _debate()
    first, second, third, fourth, last = (messages[1].content for messages in model.asked)

    assert "Answer number" not in first + second
    assert third.index("Answer number 0") < third.index("Answer number 1")
    assert fourth.index("Answer number 1") < fourth.index("Answer number 0")
    assert last.index("Answer number 2") < last.index("Answer number 3")
    assert "Answer number 0" not in last


async def test_rounds_run_in_parallel() -> None:
    model = Scripted(_numbered, delay=0.05)
    await DebateEngine(run_of(model)).run_debate("How long?", PASSAGES)

    assert model.most_running == 2


async def test_each_agent_uses_its_configured_model() -> None:
    model, critic = Scripted("Yes. [1]", name="test:one"), Scripted("No. [2]", name="test:two")
    result = await DebateEngine(run_of(model, critic)).run_debate("How long?", PASSAGES)

    assert (len(model.asked), len(critic.asked)) == (3, 2)
    assert result.models == ("test:one", "test:two")
    assert result.critical_answer == "No. [2]"


@pytest.mark.parametrize(
    ("wanted", "max_calls", "rounds", "calls"),
    [(1, 5, 1, 2), (2, 5, 2, 5), (3, 5, 2, 5), (10, 5, 2, 5), (3, 7, 3, 7), (10, 99, 3, 7), (2, 4, 1, 2), (3, 2, 1, 2)],
)
async def test_rounds_and_calls_are_bounded(wanted: int, max_calls: int, rounds: int, calls: int) -> None:
    result, model = await _debate(max_rounds=wanted, max_calls=max_calls)

    assert (result.rounds, result.llm_calls, len(model.asked)) == (rounds, calls, calls)
    assert bool(result.notes) is (rounds < wanted)
    assert any(str(MAX_ROUNDS) in str(note) for note in result.notes) is (wanted > MAX_ROUNDS)


@pytest.mark.parametrize("wanted", [0, -1, True, 1.5, "2"])
async def test_an_invalid_number_of_rounds_is_refused(wanted: Any) -> None:
    with pytest.raises(InvalidInput, match="max_rounds"):
        await _debate(max_rounds=wanted)


async def test_too_few_calls_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 2"):
        DebateEngine(run_of(None), max_calls=1)


@pytest.mark.parametrize("query", ["", "  \n", None, 3])
async def test_an_empty_question_is_refused(query: Any) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        await DebateEngine(run_of(Scripted("Yes."))).run_debate(query, PASSAGES)


@pytest.mark.parametrize("context", ["text", {"text": "a"}, [{"title": "a"}], [{"text": None}], [7]])
async def test_an_invalid_passage_is_refused(context: Any) -> None:
    with pytest.raises(InvalidInput, match="text"):
        await DebateEngine(run_of(Scripted("Yes."))).run_debate("How long?", context)


async def test_without_a_model_the_error_says_how_to_configure_one() -> None:
    with pytest.raises(InvalidInput, match="the setting llm"):
        await DebateEngine(run_of(None)).run_debate("How long?", PASSAGES)


async def test_without_a_run_it_is_the_open_apps() -> None:
    with pytest.raises(NoActiveApp):
        await DebateEngine().run_debate("How long?", PASSAGES)


# -- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0.0005, 0.01, 30.0])
async def test_when_time_is_over_both_agents_have_stopped(delay: float) -> None:
    model = Scripted(_numbered, delay=delay)
    before = asyncio.all_tasks()
    started = time.perf_counter()
    with pytest.raises(TimeoutError, match=r"Debate exceeded timeout of 0\.001s"):
        await DebateEngine(run_of(model)).run_debate("How long?", PASSAGES, timeout=0.001)

    assert time.perf_counter() - started < 2
    assert model.running == 0
    coroutines: list[Any] = [task.get_coro() for task in asyncio.all_tasks() - before]
    # Tasks of services that other tests of this process share come and go.
    assert [each for each in coroutines if "debate" in each.cr_code.co_filename] == []


async def test_time_that_is_over_in_the_synthesis_counts_too(clock: Clock) -> None:
    class Slow(Scripted):
        async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
            self.delay = 30.0 if len(self.asked) == 4 else 0.0
            return await super().complete(messages, max_tokens=max_tokens, seconds=seconds)

    model = Slow(_numbered, sleep=clock.sleep)
    with pytest.raises(TimeoutError):
        await DebateEngine(run_of(model)).run_debate("How long?", PASSAGES, timeout=10)
    assert (len(model.asked), model.cancelled) == (5, 1)


@pytest.mark.parametrize(("seconds", "rounds", "calls"), [(7.5, 1, 2), (12.5, 2, 4)])
async def test_phases_that_would_be_late_are_skipped_and_two_rounds_merged(
    clock: Clock, seconds: float, rounds: int, calls: int
) -> None:
    model = Scripted(_numbered, delay=5.0, sleep=clock.sleep)
    result = await DebateEngine(run_of(model)).run_debate("How long?", PASSAGES, timeout=seconds)

    assert (result.rounds, result.llm_calls, model.cancelled) == (rounds, calls, 0)
    assert any("no time left" in str(note) for note in result.notes)
    assert result.final_answer == (result.affirmative_answer if rounds == 2 else None)


async def test_a_model_that_blocks_the_event_loop_is_still_too_late(clock: Clock) -> None:
    def blocking(number: int, messages: Sequence[Message]) -> str:
        clock.advance(3)
        return "Yes. [1]"

    with pytest.raises(TimeoutError):
        await _debate(blocking, timeout=2)


@pytest.mark.parametrize("fails", [True, False])
async def test_a_synthesis_that_blocks_the_event_loop_is_too_late_whether_it_fails_or_not(
    clock: Clock, *, fails: bool
) -> None:
    def at_last(number: int, messages: Sequence[Message]) -> str:
        if number == 4:
            clock.advance(3)
        return failing(number, messages) if number == 4 and fails else "Yes. [1]"

    class Unyielding(Scripted):
        async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
            self.asked.append(list(messages))
            return Reply(at_last(len(self.asked) - 1, messages), self.id, Usage(1))

    with pytest.raises(TimeoutError, match="Debate exceeded"):
        await DebateEngine(run_of(Unyielding(""))).run_debate("How long?", PASSAGES, timeout=2.5)


async def test_a_model_that_fails_after_the_time_is_over_is_a_timeout(clock: Clock) -> None:
    def late(number: int, messages: Sequence[Message]) -> str:
        clock.advance(3)
        return failing(number, messages)

    with pytest.raises(TimeoutError):
        await _debate(late, timeout=2)


async def test_a_timeout_inside_of_a_call_is_passed_on() -> None:
    async def forbidden() -> str | None:
        raise TimeoutError("the database")

    run = run_of(Scripted("Yes. [1]"), forbidden=forbidden)
    with pytest.raises(TimeoutError, match="the database"):
        await DebateEngine(run).run_debate("How long?", PASSAGES)


async def test_cancelling_a_debate_ends_its_agents() -> None:
    model = Scripted(_numbered, delay=30)
    task = asyncio.ensure_future(DebateEngine(run_of(model)).run_debate("How long?", PASSAGES))
    await asyncio.sleep(0.05)
    assert model.running == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.running, model.cancelled) == (0, 2)


async def test_other_errors_are_raised_and_cancel_the_other_agent() -> None:
    class Broken(BaseException):
        pass

    def answer(number: int, messages: Sequence[Message]) -> str:
        if number == 0:
            raise Broken
        return "Yes."

    model, critic = Scripted(answer), Scripted("Yes.", delay=30)
    with pytest.raises(Broken):
        await DebateEngine(run_of(model, critic)).run_debate("How long?", PASSAGES)
    assert (critic.running, critic.cancelled) == (0, 1)


# -- failures ---------------------------------------------------------------------------------------------------------


async def test_when_both_fail_at_once_the_failure_is_raised() -> None:
    with pytest.raises(LanguageModelFailed, match="it said no"):
        await _debate(failing)


@pytest.mark.parametrize(("number", "role", "other"), [(0, "affirmative", "critical"), (1, "critical", "affirmative")])
async def test_when_one_fails_in_the_first_round_there_is_no_final_answer(number: int, role: str, other: str) -> None:
    result, model = await _debate(_fails_at(number))

    assert len(model.asked) == 2
    assert result.calls_by_phase == {"round_1": 2}
    assert result.final_answer is None
    assert getattr(result, f"{role}_answer") == ""
    assert getattr(result, f"{other}_answer") == f"Answer number {1 - number}. [1]"
    assert any(f"The {role} agent failed in round 1" in str(note) for note in result.notes)


async def test_an_agent_that_fails_in_the_second_round_keeps_its_first_answer() -> None:
    result, _ = await _debate(_fails_at(2))

    assert result.affirmative_answer == "Answer number 0. [1]"
    assert result.critical_answer == "Answer number 3. [1]"
    assert result.final_answer == "Answer number 4. [1]"
    assert any("its previous answer is used" in str(note) for note in result.notes)


async def test_when_both_fail_in_the_second_round_the_first_answers_are_combined() -> None:
    result, _ = await _debate(_fails_at(2, 3))

    assert (result.rounds, result.llm_calls) == (1, 5)
    assert result.final_answer == "Answer number 4. [1]"


@pytest.mark.parametrize("error", [None, Overloaded(seconds=2), ModelNotAllowed(model="test:one", reason="spent.")])
async def test_when_the_synthesis_fails_the_answers_are_merged(error: Exception | None) -> None:
    result, _ = await _debate(_fails_at(4, error=error))

    assert result.final_answer == "Answer number 2. [1]"
    assert any("synthesis failed" in str(note) for note in result.notes)
    assert result.llm_calls == (4 if isinstance(error, ModelNotAllowed) else 5)


async def test_an_overloaded_service_counts_as_a_failure() -> None:
    result, _ = await _debate(_fails_at(0, error=Overloaded(seconds=2)))
    assert result.critical_answer == "Answer number 1. [1]"

    with pytest.raises(LanguageModelFailed, match="overloaded"):
        await _debate(_fails_at(0, 1, error=Overloaded(seconds=2)))


async def test_a_used_up_budget_prevents_every_call() -> None:
    async def forbidden() -> str | None:
        return "The budget is spent."

    model = Scripted("Yes.")
    with pytest.raises(ModelNotAllowed, match="budget is spent"):
        await DebateEngine(run_of(model, forbidden=forbidden)).run_debate("How long?", PASSAGES)
    assert model.asked == []


async def test_a_budget_that_runs_out_ends_the_calls() -> None:
    left = 3

    async def forbidden() -> str | None:
        nonlocal left
        left -= 1
        return None if left >= 0 else "The budget is spent."

    model = Scripted(_numbered)
    result = await DebateEngine(run_of(model, forbidden=forbidden)).run_debate("How long?", PASSAGES)
    assert (len(model.asked), result.llm_calls) == (3, 3)
    assert result.calls_by_phase == {"round_1": 2, "round_2": 1}
    assert result.answered


async def test_an_empty_answer_is_a_failure() -> None:
    with pytest.raises(LanguageModelFailed, match="empty"):
        await _debate("  \n ")


# -- contents ---------------------------------------------------------------------------------------------------------


async def test_equal_answers_are_passed_to_the_synthesis_once() -> None:
    result, model = await _debate("It is so. [1]")

    assert result.llm_calls == 5
    assert model.asked[4][1].content.count("It is so.") == 1
    assert any("same answer" in str(note) for note in result.notes)
    assert result.final_answer == "It is so. [1]"


async def test_equal_answers_are_returned_once() -> None:
    result, _ = await _debate(lambda n, m: failing(n, m) if n == 4 else "It is so. [1]")
    assert result.final_answer == "It is so. [1]"


async def test_long_answers_are_cut_and_the_result_says_so() -> None:
    result, _ = await _debate("word " * 2_000)

    assert len(result.affirmative_answer.split()) == len(result.critical_answer.split()) == 500
    assert len((result.final_answer or "").split()) == 800
    assert sum("too long and was cut" in str(note) for note in result.notes) == 5


async def test_an_unfinished_reply_is_noted_as_cut() -> None:
    class Broken(Scripted):
        async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
            reply = await super().complete(messages, max_tokens=max_tokens, seconds=seconds)
            return Reply(reply.text, reply.model, reply.usage, finished=False)

    result = await DebateEngine(run_of(Broken("Half a sent"))).run_debate("How long?", PASSAGES, max_rounds=1)
    assert sum("was cut" in str(note) for note in result.notes) == 2


async def test_a_long_question_is_trimmed_and_the_result_says_so() -> None:
    model = Scripted("Yes. [1]")
    result = await DebateEngine(run_of(model)).run_debate("가나 " * 1_000, PASSAGES, max_rounds=1)

    assert any("1,000 characters" in str(note) for note in result.notes)
    assert model.asked[0][1].content.count("가나") <= MAX_QUERY // 3 + 1


async def test_missing_passages_are_noted() -> None:
    model = Scripted(NO_ANSWER)
    result = await DebateEngine(run_of(model)).run_debate("How long?", [])

    assert "There are no passages." in model.asked[0][1].content
    assert any("no passages" in str(note) for note in result.notes)
    assert not result.answered
    assert result.final_answer == "The documents do not answer this question."
    assert result.llm_calls == 2


async def test_passages_are_bounded() -> None:
    model = Scripted("Yes. [1]")
    result = await DebateEngine(run_of(model)).run_debate("How long?", ["x" * 9_000] * 30, max_rounds=1)

    assert model.asked[0][1].content.count("x") <= 10 * MAX_PASSAGE + 10
    assert any("first 10 of 30" in str(note) for note in result.notes)


async def test_an_abstaining_agent_does_not_discard_the_other_answer() -> None:
    """The fifth call, the synthesis, fails: the answers of the last round are merged."""
    for answers in (["Two. [1]", NO_ANSWER], [NO_ANSWER, "Two. [1]"]):
        result, _ = await _debate(lambda n, m, said=answers: failing(n, m) if n == 4 else said[n % 2])
        assert (result.answered, result.final_answer) == (True, "Two. [1]")


async def test_the_synthesis_may_find_that_nothing_answers() -> None:
    result, _ = await _debate(lambda n, m: NO_ANSWER if n == 4 else f"Answer {n}. [1]")
    assert not result.answered
    assert NO_ANSWER not in (result.final_answer or "")


async def test_a_debate_is_recorded_and_charged() -> None:
    charged: list[Usage] = []

    async def charge(usage: Usage) -> None:
        charged.append(usage)

    run = run_of(Scripted("Yes. [1]"), charge=charge)
    result = await DebateEngine(run).run_debate("How long?", PASSAGES)

    assert sum(charged, Usage()) == result.usage
    assert [call.step for call in run.recording.calls] == ["debate"] * 5
    kept = json.loads(json.dumps(result.as_dict()))
    assert kept["calls_by_phase"] == {"round_1": 2, "round_2": 2, "synthesis": 1}
    assert kept["cost"] == 2.5
    assert kept["final_answer"] == "Yes. [1]"


ANSWERS = st.sampled_from(["Yes. [1]", "No. [2]", NO_ANSWER, "", "word " * 900, "휴학" * 900, None])


@hypothesis(max_examples=60)
@given(st.lists(ANSWERS, min_size=7, max_size=7), st.integers(1, 4), st.integers(2, 8))
async def test_the_limits_hold_for_every_reply_of_the_models(
    said: list[str | None], rounds: int, max_calls: int
) -> None:
    def answer(number: int, messages: Sequence[Message]) -> str:
        return text if (text := said[number]) is not None else failing(number, messages)

    model = Scripted(answer)
    try:
        result = await DebateEngine(run_of(model), max_calls=max_calls).run_debate("How long?", PASSAGES, rounds)
    except LanguageModelFailed:
        assert len(model.asked) == 2
        return
    assert len(model.asked) == result.llm_calls <= max_calls
    assert 1 <= result.rounds <= min(rounds, MAX_ROUNDS)
    assert answer_tokens(result.affirmative_answer) <= 500
    assert answer_tokens(result.critical_answer) <= 500
    final = result.final_answer or ""
    assert bool(final) is (result.final_answer is not None)
    assert answer_tokens(final) <= 800
    assert NO_ANSWER not in final
