"""Past cases by meaning and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from dtrag.cases.suggesting import NeuralSelector
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.cases.case import Case, FeedbackType, QuestionVector, Vote
from dtrag.core.cases.statistics import LEAST_INTERACTIONS, CaseStatistics, Readiness, VoterCount
from dtrag.core.text.analysis import Analyzer
from dtrag.errors import EmbedderFailed, InvalidInput
from dtrag.ports import Embedder, Stores
from tests.builders import NOON, case
from tests.toy import ToyEmbedder

LEAVE, WAGE, BOILER = "How many days of leave are there?", "When is the wage paid?", "Who repairs the boiler?"


VOTERS = ("kim", "lee", "park", "choi")


@dataclass(frozen=True)
class Failing(ToyEmbedder):
    """An embedder whose server is gone."""

    def embed_queries(self, texts: object) -> np.ndarray:
        raise EmbedderFailed(name="toy", reason="gone.")


def embedded(case_id: str, query: str, **values: object) -> Case:
    """A case with its vector."""
    vector = ToyEmbedder(dim=64).embed_documents([query])[0].astype(np.float32).tobytes()
    return case(case_id, query, vector=QuestionVector(ToyEmbedder().id, vector), **values)  # type: ignore[arg-type]


async def filled(
    stores: Stores, *, votes: int = 0, successes: int | None = None, voters: Sequence[str] = VOTERS
) -> Stores:
    """Three cases, and as many votes on the first, of these callers in turn."""
    for case_id, query in (("leave", LEAVE), ("wage", WAGE), ("boiler", BOILER)):
        await stores.cases.add(embedded(case_id, query))
    for number in range(votes):
        vote = Vote(
            log_id=f"log-{number}",
            case_id="leave",
            feedback=FeedbackType.SELECTED,
            success=successes is None or number < successes,
            voter=voters[number % len(voters)],
            at=NOON,
        )
        await stores.cases.vote(vote, EVERYTHING)
    return stores


def selector(stores: Stores, embedder: Embedder | None = ToyEmbedder(dim=64)) -> NeuralSelector:
    """The selector over these stores."""
    return NeuralSelector(stores.cases, stores.index, embedder, Analyzer())


async def test_before_it_is_ready_words_decide_and_the_reason_is_told(stores: Stores) -> None:
    found = await selector(await filled(stores)).search(LEAVE, viewer=EVERYTHING)
    assert (found.mode, found.hits[0].case.case_id) == ("bm25_fallback", "leave")
    assert found.reason == "0 of 1,000 interactions with feedback are there."
    assert found.hits[0].vector_score is None and found.hits[0].bm25_score == 1.0


@pytest.mark.parametrize(("votes", "successes", "ready"), [(999, 999, False), (1000, 699, False), (1000, 700, True)])
def test_readiness_needs_interactions_and_success(votes: int, successes: int, ready: bool) -> None:
    readiness = Readiness.of(CaseStatistics(voters=[VoterCount("", False, votes, successes)]))
    assert (readiness.ready, readiness.missing == "") == (ready, ready)


@pytest.mark.parametrize(
    ("voters", "interactions", "successes", "ready"),
    [
        ([VoterCount("kim", False, 5_000, 5_000)], 250, 250, False),
        ([VoterCount("kim", False, 5_000, 5_000), VoterCount("lee", False, 700, 350)], 500, 375, False),
        ([VoterCount("kim", True, 1_000, 800)], 1_000, 800, True),
        ([VoterCount("kim", False, 5_000, 0), VoterCount("lee", True, 1_000, 1_000)], 1_250, 1_000, True),
        ([VoterCount("", False, 5_000, 4_000)], 5_000, 4_000, True),
        ([VoterCount(name, False, 250, 200) for name in VOTERS], 1_000, 800, True),
        ([VoterCount(name, False, 249, 249) for name in VOTERS], 996, 996, False),
    ],
)
def test_the_suggestions_of_one_key_count_up_to_a_quarter(
    voters: list[VoterCount], interactions: int, successes: int, ready: bool
) -> None:
    statistics = CaseStatistics(voters=voters)
    readiness = Readiness.of(statistics)
    assert (readiness.interactions, readiness.successes, readiness.ready) == (interactions, successes, ready)
    assert statistics.rated_interactions == sum(voter.interactions for voter in voters)


async def test_one_key_cannot_make_it_ready(stores: Stores) -> None:
    flooded = selector(await filled(stores, votes=LEAST_INTERACTIONS, voters=["kim"]))
    found = await flooded.search("days of leave", viewer=EVERYTHING)
    assert (found.mode, found.reason) == ("bm25_fallback", "250 of 1,000 interactions with feedback are there.")


async def test_when_it_is_ready_meaning_and_words_decide(stores: Stores) -> None:
    found = await selector(await filled(stores, votes=LEAST_INTERACTIONS)).search("days of leave", viewer=EVERYTHING)
    assert (found.mode, found.reason) == ("hybrid", "")
    best = found.hits[0]
    assert best.case.case_id == "leave" and best.vector_score is not None and best.bm25_score == 1.0
    assert best.score == pytest.approx(1.0)


async def test_the_caller_may_want_words_or_meaning_only(stores: Stores) -> None:
    ready = selector(await filled(stores, votes=LEAST_INTERACTIONS))
    words = await ready.search(LEAVE, mode="bm25", viewer=EVERYTHING)
    meaning = await ready.search(LEAVE, mode="neural", viewer=EVERYTHING)
    assert words.mode == "bm25" and all(hit.vector_score is None for hit in words.hits)
    assert meaning.mode == "neural" and all(hit.bm25_score is None for hit in meaning.hits)
    assert words.hits[0].case.case_id == meaning.hits[0].case.case_id == "leave"


@pytest.mark.parametrize(
    "embedder",
    [
        None,
        Failing(dim=64),
        ToyEmbedder(dim=64, languages=frozenset({"ko"})),
        ToyEmbedder(dim=64, decides=False),
    ],
)
async def test_without_vectors_words_decide(stores: Stores, embedder: Embedder | None) -> None:
    await filled(stores, votes=LEAST_INTERACTIONS)
    found = await selector(stores, embedder).search(LEAVE, viewer=EVERYTHING)
    assert (found.mode, found.hits[0].case.case_id) == ("bm25_fallback", "leave")
    assert "mbedder" in found.reason


async def test_only_cases_in_scope_and_of_the_category_are_found(stores: Stores) -> None:
    await stores.cases.add(embedded("mine", LEAVE, node_id=5))
    await stores.cases.add(embedded("theirs", LEAVE, node_id=6))
    await stores.cases.add(embedded("elsewhere", LEAVE, path=("Other",), node_id=5))
    found = await selector(stores).search(LEAVE, category_path=["Handbook"], viewer=Scope(frozenset({5})))
    assert [hit.case.case_id for hit in found.hits] == ["mine"]


@pytest.mark.parametrize(
    ("query", "limit", "mode"), [(" ", 5, "bm25"), ("a", 0, "bm25"), ("a", 51, "bm25"), ("a", 5, "x")]
)
async def test_bad_input_is_refused(stores: Stores, query: str, limit: int, mode: str) -> None:
    with pytest.raises(InvalidInput):
        await selector(await filled(stores)).search(query, limit, mode=mode, viewer=EVERYTHING)
