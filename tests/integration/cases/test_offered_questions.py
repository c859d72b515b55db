"""Earlier questions that are similar to a new one: which are offered with its answer, and that nothing else changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.database import Database
from dtrag.app import App
from dtrag.cases.reuse import MOST_OFFERED
from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.scope import EVERYTHING, PUBLISHED, Access, Grant
from dtrag.core.cases.case import Case, CitedPassage, FeedbackType, Vote, content_hash
from dtrag.core.cases.index import question_hash
from dtrag.core.documents import CaseVotes
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.pipeline.state import PipelineResponse
from dtrag.testing import add_texts
from tests.store import toy_app

pytestmark = pytest.mark.usefixtures("memory_on")

QUESTION = "How long may parental leave take at most?"
SIMILAR = "How long may parental leave take for twins?"
UNANSWERED = "How long may parental leave take on zeppelins of Jupiter?"
OTHER = "Where are the gardens?"
LEAVE = "# Parental leave\n\nParental leave takes at most 90 days. It is paid."
NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


@pytest_asyncio.fixture
async def app(emptied: Database) -> AsyncIterator[App]:
    async with toy_app(emptied) as opened:
        await add_texts(opened, {"leave.md": LEAVE}, "HR")
        await add_texts(opened, {"salaries.md": "# Salaries\n\nThe board pays salaries for parental leave."}, "Board")
        yield opened


async def earlier(
    app: App, case_id: str, question: str = SIMILAR, title: str = "Parental leave", **values: object
) -> Case:
    """A case that an answer made, with one vote for it."""
    key = next(f"{document.document_id}:0" for document in await app.documents() if document.title == title)
    taxonomy = (await app.index.snapshot()).taxonomy
    passage = (await app.index.fetch([key], EVERYTHING, taxonomy))[key]
    case = Case(
        case_id=case_id,
        query=question,
        query_hash=question_hash(question),
        vector=await app.cases._vectors.of(question),
        category_path=("HR",),
        node_id=taxonomy.find(CategoryPath.parse("HR")),
        content="Parental leave",
        created_at=NOON,
        updated_at=NOON,
        origin="answer",
        asked_in=PUBLISHED,
        upvotes=1,
        passages=(CitedPassage(key, content_hash(passage.text)),),
    )
    case = replace(case, **values)  # type: ignore[arg-type]
    assert await app.case_store.add(case)
    return case


async def offered(app: App, question: str = QUESTION, *branches: str) -> list[str]:
    """The ids of the cases that are offered to a caller of these branches, or of the whole tree."""
    taxonomy = (await app.index.snapshot()).taxonomy
    scope = Access((Grant.of([CategoryPath.parse(each) for each in branches], taxonomy),)) if branches else LOCAL.access
    recalled = await app.reuse.recall(question, scope)
    return [case.case_id for case in recalled.offered]


def comparable(response: PipelineResponse) -> PipelineResponse:
    """The answer without the offer, its times and id."""
    return replace(response, offered=(), latency=0.0, stages={}, step_timings={}, trace_id="", record_digest="")


@pytest.mark.parametrize("question", [QUESTION, UNANSWERED])
async def test_a_similar_question_is_offered_and_nothing_else_changes(app: App, question: str) -> None:
    plain = await app.pipeline.execute(question)
    assert plain.offered == ()
    await earlier(app, "similar", upvotes=2, downvotes=1)
    await earlier(app, "other", OTHER)
    response = await app.pipeline.execute(question)
    [each] = response.offered
    assert (each.case_id, each.question, each.date, each.votes) == ("similar", SIMILAR, "2030-01-31", CaseVotes(2, 1))
    assert comparable(response) == comparable(plain)
    assert response.as_answer().offered == response.offered
    facts = {step.name: step.facts for step in (await app.traces.get(response.trace_id)).steps}
    assert facts["cite"]["offered"] == 1
    assert SIMILAR not in str(facts)


async def test_a_question_in_other_words_is_offered_and_not_shown_as_answered_before(app: App) -> None:
    await earlier(app, "same")
    response = await app.pipeline.execute(SIMILAR.replace("How long may", "How many days can"))
    assert (response.answered_before, [each.case_id for each in response.offered]) == (None, ["same"])


async def test_a_declined_question_has_an_offer(app: App) -> None:
    await earlier(app, "similar", "Which zeppelins of Jupiter land?")
    response = await app.pipeline.execute("Which zeppelins of Jupiter land today?")
    assert (response.decision, [each.case_id for each in response.offered]) == ("abstain", ["similar"])


async def test_unconfirmed_and_changed_ones_are_not_offered(app: App) -> None:
    """By votes, day, passages, text and status; of passages chosen by hand, by a voter who did not choose them."""
    await earlier(app, "as many against", upvotes=1, downvotes=1)
    await earlier(app, "no vote", upvotes=0)
    await earlier(app, "another day", as_of=date(2024, 3, 1))
    await earlier(app, "no passages", passages=())
    await earlier(app, "archived", status="archived")
    await earlier(app, "without text", "")
    await earlier(app, "by hand", origin="manual", author="eve")
    assert await offered(app) == []
    for voter, expected in (("eve", []), ("kim", ["by hand"])):
        vote = Vote(
            log_id=f"l-{voter}",
            case_id="by hand",
            feedback=FeedbackType.THUMBS_UP,
            success=True,
            voter=voter,
            at=NOON,
        )
        await app.case_store.vote(vote, EVERYTHING)
        assert await offered(app) == expected
    await earlier(app, "from an answer")
    assert set(await offered(app)) == {"by hand", "from an answer"}
    await add_texts(app, {"leave.md": LEAVE.replace("90", "80")}, "HR")
    assert await offered(app) == []


async def test_what_the_caller_may_not_see_is_not_offered(app: App) -> None:
    node = (await app.index.snapshot()).taxonomy.find(CategoryPath.parse("Board"))
    assert node is not None
    await earlier(app, "asked by the board", asked_in=frozenset({node}))
    await earlier(app, "of the whole tree", asked_in=None)
    await earlier(app, "cites the board", title="Salaries")
    await earlier(app, "of the board", category_path=("Board",), node_id=node)
    assert await offered(app, QUESTION, "HR") == []
    assert len(await offered(app)) == MOST_OFFERED
    assert await offered(app, QUESTION, "HR", "Board")
    await earlier(app, "published")
    assert await offered(app, QUESTION, "HR") == ["published"]


async def test_the_most_similar_ones_come_first_without_the_one_that_is_shown(app: App) -> None:
    answer = await app.pipeline.execute(QUESTION)
    made = (await app.feedback.give(answer.trace_id, thumbs="up")).case_id
    for number in range(4):
        await earlier(
            app, f"similar-{number}", SIMILAR.replace("twins", " and ".join(["twins", *"abcd"][: number + 1]))
        )
    response = await app.pipeline.execute(f"{QUESTION} ")
    assert response.answered_before is not None
    assert response.answered_before.case_id == made
    assert [each.case_id for each in response.offered] == ["similar-0", "similar-1"]
    assert (await offered(app))[0] == made
