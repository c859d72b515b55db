"""Which model embeds a language, what it may decide, and what its cosines mean."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dtrag.ports import Embedder, model_for, similarity, speaks
from tests.toy import ToyEmbedder

ENGLISH = ToyEmbedder()
OTHERS = ToyEmbedder(id="others@00000002", languages=frozenset({"*"}), floor=0.75, decides=False)


@dataclass(frozen=True)
class Router(ToyEmbedder):
    """English has a model of its own."""

    languages: frozenset[str] = frozenset({"*"})

    def of(self, code: str) -> Embedder | None:
        return {"en": ENGLISH, "ko": OTHERS}.get(code)


def test_a_model_embeds_the_languages_it_declares() -> None:
    assert model_for(ENGLISH, "en") is ENGLISH
    assert model_for(OTHERS, "und") is OTHERS
    assert model_for(ENGLISH, "ko") is model_for(None, "en") is None


def test_a_router_names_the_model_of_each_language() -> None:
    assert (model_for(Router(), "en"), model_for(Router(), "ko")) == (ENGLISH, OTHERS)
    assert model_for(Router(), "und") is None
    assert speaks(Router(), "ko")
    assert not speaks(Router(), "und")


def test_a_model_that_only_proposes_does_not_speak_where_something_is_decided() -> None:
    assert speaks(Router(), "en", deciding=True)
    assert not speaks(Router(), "ko", deciding=True)
    assert not speaks(None, "en", deciding=True)


@pytest.mark.parametrize("model", [None, ENGLISH])
def test_cosines_that_begin_at_0_stay_as_they_are(model: Embedder | None) -> None:
    cosines = {"a": 0.1 + 0.2, "b": -0.4, "c": 1.0000001}
    assert similarity(model, cosines) == {"a": 0.1 + 0.2, "b": 0.0, "c": 1.0}


def test_cosines_that_begin_higher_are_stretched() -> None:
    assert similarity(OTHERS, {"a": 0.875, "b": 0.7, "c": 1.0}) == {"a": 0.5, "b": 0.0, "c": 1.0}
