"""What every embedder must do."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dtrag.ports import Embedder

TEXTS = (
    "The library opens at nine and closes when the last reader leaves.",
    "Refunds are paid within ten working days.",
    "pump",
    "An employee who falls ill abroad sends the certificate to the personnel office, which passes it on to the insurer "
    "together with the travel order; costs that the insurer does not bear are refunded up to the limit of the tariff.",
    "Error code E-1042: the valve V7 did not close.",
)

ODD = {
    "empty": "",
    "white space": " \t\r\n\u00a0\u3000",
    "emoji": "👩‍🔬🧪🇰🇷 😀",
    "a word of 10,000 letters": "a" * 10_000,
    "a long text": "the committee meets every month " * 5_000,
    "control characters": "\x01\x02\x1b[31m\x7f\u202e",
    "a lone surrogate": "broken \ud83d text",
    "another script": "휴학은 최대 몇 학기까지 할 수 있나요?",
    "punctuation": "?!…--- () {}",
    "one combining mark": "\u0301",
}


class EmbedderContract:
    """Fixture: `embedder`. A vector may depend on its batch by rounding errors, not by more."""

    def test_has_an_identity_of_name_and_weights(self, embedder: Embedder) -> None:
        assert isinstance(embedder, Embedder)
        assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*@[0-9a-f]{8}", model) for model in embedder.id.split("+"))
        assert embedder.dim > 0
        assert embedder.max_tokens > 0

    def test_declares_its_languages(self, embedder: Embedder) -> None:
        assert embedder.languages
        assert all(code == "*" or re.fullmatch("[a-z]{2}", code) for code in embedder.languages)

    def test_declares_what_its_cosines_mean(self, embedder: Embedder) -> None:
        assert 0.0 <= embedder.floor < 1.0
        assert isinstance(embedder.decides, bool)

    def test_gives_one_unit_vector_a_text(self, embedder: Embedder) -> None:
        for vectors in (embedder.embed_documents(TEXTS), embedder.embed_queries(TEXTS)):
            assert vectors.shape == (len(TEXTS), embedder.dim)
            assert vectors.dtype == np.float32
            np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    def test_no_text_gives_no_vector(self, embedder: Embedder) -> None:
        assert embedder.embed_documents([]).shape == (0, embedder.dim)
        assert embedder.embed_queries([]).shape == (0, embedder.dim)

    def test_the_same_text_has_the_same_vector(self, embedder: Embedder) -> None:
        np.testing.assert_array_equal(embedder.embed_documents(TEXTS), embedder.embed_documents(list(TEXTS)))

    def test_a_vector_does_not_depend_on_the_neighbours_or_their_order(self, embedder: Embedder) -> None:
        together = embedder.embed_documents(TEXTS)
        backwards = embedder.embed_documents(TEXTS[::-1])[::-1]
        alone = np.concatenate([embedder.embed_documents([text]) for text in TEXTS])
        np.testing.assert_allclose(together, backwards, atol=1e-5)
        np.testing.assert_allclose(together, alone, atol=1e-5)

    def test_different_texts_have_different_vectors(self, embedder: Embedder) -> None:
        vectors = embedder.embed_documents(TEXTS)
        others = vectors @ vectors.T - 2 * np.eye(len(TEXTS))
        assert others.max() < 0.99

    @pytest.mark.parametrize("kind", ODD)
    def test_an_odd_text_has_a_unit_vector_too(self, embedder: Embedder, kind: str) -> None:
        vectors = embedder.embed_documents([ODD[kind]])
        assert vectors.shape == (1, embedder.dim)
        assert float(np.linalg.norm(vectors[0])) == pytest.approx(1, abs=1e-5)

    def test_an_odd_text_does_not_disturb_its_neighbours(self, embedder: Embedder) -> None:
        mixed = [text for pair in zip(ODD.values(), TEXTS * 2, strict=True) for text in pair]
        np.testing.assert_allclose(
            embedder.embed_documents(mixed)[1::2], embedder.embed_documents(TEXTS * 2), atol=1e-5
        )

    def test_a_long_text_is_cut_at_max_tokens(self, embedder: Embedder) -> None:
        head = "one two three four " * embedder.max_tokens
        vectors = embedder.embed_documents([head + "the end", head + "another end"])
        np.testing.assert_array_equal(vectors[0], vectors[1])

    def test_threads_share_it(self, embedder: Embedder) -> None:
        expected = embedder.embed_documents(TEXTS)
        with ThreadPoolExecutor(4) as pool:
            for vectors in pool.map(embedder.embed_documents, [TEXTS] * 12):
                np.testing.assert_allclose(vectors, expected, atol=1e-5)


class SemanticEmbedderContract(EmbedderContract):
    """For embedders that know meanings: the question and the passage that answers it share hardly a word."""

    def test_a_question_is_nearest_to_the_passage_that_answers_it(self, embedder: Embedder) -> None:
        questions = embedder.embed_queries(["when does the library close", "how long until I get my money back"])
        assert (questions @ embedder.embed_documents(TEXTS).T).argmax(axis=1).tolist() == [0, 1]
