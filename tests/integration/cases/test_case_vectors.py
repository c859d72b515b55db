"""Vectors of cases belong to a model: those of another one are never compared, and are made again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from dtrag.cases.suggesting import QuestionVectors, Suggester
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import Case, CaseQuery, SimilarityMethod
from dtrag.ports import Stores
from dtrag.testing.models import HashEmbedder
from tests.builders import case

QUESTION, SAME_WORDS = "How many days of leave are there?", "days leave"


@dataclass(frozen=True)
class Later(HashEmbedder):
    """Another model, whose vectors have nothing in common with the first one's."""

    id: str = "later@00000001"


async def stored(embedder: HashEmbedder, **values: object) -> Case:
    return case("one", QUESTION, vector=await QuestionVectors(embedder).of(QUESTION), **values)  # type: ignore[arg-type]


async def test_vectors_of_another_model_are_not_compared(stores: Stores) -> None:
    cases = stores.cases
    await cases.add(await stored(HashEmbedder()))
    query = CaseQuery(text=QUESTION, limit=3, method=SimilarityMethod.SEMANTIC)
    for embedder, score in ((HashEmbedder(), 1.0), (Later(), 0.0)):
        vector = await QuestionVectors(embedder).of(QUESTION)
        [(_, nearest)] = await cases.nearest(replace(query, vector=vector), EVERYTHING)
        assert nearest == pytest.approx(score, abs=1e-5)
        suggester = Suggester(cases, QuestionVectors(embedder))
        suggester._embed_missing = lambda: asyncio.create_task(asyncio.sleep(0))  # type: ignore[method-assign]
        found = await suggester.candidates(replace(query, vector=vector), EVERYTHING)
        assert found.combined()[0][1] == pytest.approx(1.0, abs=1e-5)  # of another model: by words, which are the same


async def test_a_case_of_another_model_gets_a_vector_when_suggestions_are_first_wanted(stores: Stores) -> None:
    cases = stores.cases
    await cases.add(await stored(HashEmbedder()))
    await cases.add(case("archived", QUESTION, status="archived"))
    await cases.add(case("textless", ""))
    suggester = Suggester(cases, QuestionVectors(Later()))
    query = CaseQuery(text=SAME_WORDS, limit=3, method=SimilarityMethod.SEMANTIC)
    found = await suggester.nearest(query, EVERYTHING)
    await suggester.close()
    assert found.method is SimilarityMethod.SEMANTIC
    spaces = {each.case_id: each.vector and each.vector.space for each in await cases.page(EVERYTHING, 9)}
    assert spaces == {"one": "later@00000001", "archived": None, "textless": None}
    meaning = {each.case_id: score for each, score in found.cases}["one"]
    assert meaning > 2 / 7  # the share of words


async def test_a_case_with_another_question_by_then_keeps_its_vector(stores: Stores) -> None:
    cases = stores.cases
    first = await stored(HashEmbedder())
    await cases.add(first)
    vector = await QuestionVectors(Later()).of(QUESTION)
    assert vector is not None
    await cases.put_vectors(
        [(replace(first, query="another question"), vector), (replace(first, case_id="two"), vector)]
    )
    assert await cases.get("one", EVERYTHING) == first
