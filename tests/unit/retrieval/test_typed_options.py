"""Forwarded keyword arguments are typed: mypy and the run time reject a misspelt one."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

from dtrag import functions
from dtrag.app import App
from dtrag.core.access.scope import Scope
from dtrag.errors import InvalidInput
from dtrag.governance.agents import Agents
from dtrag.pipeline.execution import Pipeline
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.request import ModeSearchOptions, SearchOptions
from tests.unit.retrieval.memory import MemoryIndex, Row

INDEX = MemoryIndex([Row("a", "The kettle has a valve.")])
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    App.search,
    App.ask,
    Agents.search,
    Agents.ask,
    Agents.execute,
    Pipeline.execute,
    HybridSearchEngine.__init__,
    HybridSearchEngine.search,
    HybridSearchEngine.keyword_only_search,
    HybridSearchEngine.vector_only_search,
    HybridSearchEngine.update_config,
    functions.hybrid_search,
    functions.keyword_search,
    functions.vector_search,
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_every_keyword_argument_has_a_name(function: Callable[..., Any]) -> None:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            assert str(parameter.annotation).startswith("Unpack["), parameter


def test_the_options_are_those_of_the_engine() -> None:
    parameters = inspect.signature(HybridSearchEngine.search).parameters
    names = typing.get_type_hints(ModeSearchOptions).keys() | {"query", "top_k", "filters", "scope", "self"}
    assert names == parameters.keys()
    assert typing.get_type_hints(SearchOptions).keys() == names - {"mode", "query", "top_k", "filters", "scope", "self"}


async def test_a_misspelt_option_is_rejected() -> None:
    with pytest.raises(InvalidInput, match=r"no setting 'rerank_timout'. Known: .*rerank_timeout"):
        HybridSearchEngine(None, INDEX, rerank_timout=1.0)  # type: ignore[call-arg]
    engine = HybridSearchEngine(None, INDEX, scope=Scope.everything())
    with pytest.raises(InvalidInput, match="no setting 'cache_ttll'"):
        engine.update_config(cache_ttll=1.0)  # type: ignore[call-arg]
    for search in (engine.search, engine.keyword_only_search, engine.vector_only_search):
        with pytest.raises(TypeError, match="'expalin'"):
            await search("kettle", expalin=True)  # type: ignore[call-arg]
