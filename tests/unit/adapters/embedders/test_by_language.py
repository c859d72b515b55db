"""Two models behind one embedder: each text by its language, each model loaded at its own first use."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from dtrag.adapters.embedders.factory import ByLanguage, CachedEmbedder
from dtrag.errors import ModelDamaged
from dtrag.ports import Embedder, EmbedderRouter, Loadable, model_for
from dtrag.testing import HashEmbedder
from tests.contract.embedder import EmbedderContract
from tests.toy import ToyEmbedder

ENGLISH = HashEmbedder(id="english@00000001", dim=64, languages=frozenset({"en"}))
OTHERS = HashEmbedder(id="others@00000002", dim=64, languages=frozenset({"*"}), floor=0.75, decides=False)


@dataclass(frozen=True)
class Loading(ToyEmbedder):
    """Notes when it is loaded; fails when told so."""

    loaded: list[str] = field(default_factory=list)
    broken: bool = False

    def load(self) -> None:
        if self.broken:
            raise ModelDamaged(name=self.id, path="weights")
        self.loaded.append(self.id)


@pytest.fixture
def embedder() -> ByLanguage:
    return ByLanguage(ENGLISH, OTHERS)


class TestByLanguage(EmbedderContract):
    """The whole contract."""


def test_each_text_has_the_vector_of_the_model_for_its_language(embedder: ByLanguage) -> None:
    texts = ["The kettle boils.", "주전자가 끓는다.", "12345", "湯沸かし", "A boiler.", "The 밸브 leaks."]
    of_english = [0, 4, 5]
    for vectors, model in ((embedder.embed_documents(texts), "documents"), (embedder.embed_queries(texts), "queries")):
        for row, text in enumerate(texts):
            chosen = ENGLISH if row in of_english else OTHERS
            np.testing.assert_array_equal(vectors[row], getattr(chosen, f"embed_{model}")([text])[0])


def test_it_is_a_router(embedder: ByLanguage) -> None:
    assert isinstance(embedder, EmbedderRouter)
    assert embedder.id == "english@00000001+others@00000002"
    assert model_for(embedder, "en") is ENGLISH
    assert {code for code in ("ko", "und", "ja", "de") if model_for(embedder, code) is OTHERS} == {
        "ko",
        "und",
        "ja",
        "de",
    }
    assert (embedder.floor, embedder.decides) == (0.0, False)


def test_models_with_vectors_of_different_lengths_cannot_share_an_index() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        ByLanguage(ENGLISH, ToyEmbedder(dim=8))


def test_loading_continues_with_the_other_model_when_one_is_damaged() -> None:
    english, others = Loading(broken=True), Loading(id="others@00000002")
    with pytest.raises(ModelDamaged, match="toy@00000001"):
        ByLanguage(english, others).load()
    assert others.loaded == ["others@00000002"]


def test_the_cache_keeps_the_models_and_their_vectors_separate(embedder: ByLanguage) -> None:
    cached = CachedEmbedder(embedder)
    english, others = model_for(cached, "en"), model_for(cached, "ko")
    assert english is not None
    assert others is not None
    assert (english.id, english.decides, others.id, others.decides) == (ENGLISH.id, True, OTHERS.id, False)
    assert model_for(cached, "en") is english
    for model, expected in ((english, ENGLISH), (others, OTHERS), (english, ENGLISH)):
        np.testing.assert_array_equal(model.embed_queries(["kettle"]), expected.embed_queries(["kettle"]))


def test_a_question_loads_its_own_model_only() -> None:
    loaded: list[str] = []
    models: list[Embedder] = [Loading(id=name, loaded=loaded) for name in ("english@00000001", "others@00000002")]
    cached = CachedEmbedder(ByLanguage(*models))
    korean: object = model_for(cached, "ko")
    assert isinstance(korean, Loadable)
    korean.load()
    assert loaded == ["others@00000002"]
