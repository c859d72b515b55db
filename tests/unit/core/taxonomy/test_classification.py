"""Where a document belongs, from names and from the documents that are there."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.statements import Statement
from dtrag.core.taxonomy.centroids import UNSEEN_WORDS, Centroids, Sample, TermCounts, mean_vector
from dtrag.core.taxonomy.classification import (
    DISAGREEING,
    NOTHING,
    REVIEW_BELOW,
    UNCHECKED,
    Classification,
    Names,
    drifts,
    place,
    shares,
    with_model,
)
from dtrag.core.taxonomy.tree import ROOT, UNCLASSIFIED, Node, Taxonomy
from dtrag.core.text.analysis import term_id, terms

TREE = Taxonomy.of(
    "1.0.0",
    [
        Node(2, ROOT, "House", "house"),
        Node(3, 2, "Kitchen", "kitchen"),
        Node(4, 2, "Garden", "garden"),
        Node(5, ROOT, "학사", "학사"),
        Node(6, 5, "장학", "장학"),
        Node(7, ROOT, "_-_", "_-_"),
    ],
)
NAMES = Names(TREE)
WORDS = "simmer onions butter whisk prune roses compost spade hedge soup thyme frost".split()


def counts(text: str) -> TermCounts:
    found = Counter(map(term_id, terms(text)))
    ids = np.array(sorted(found), np.int32)
    return TermCounts(ids, np.array([found[int(i)] for i in ids], np.float64))


def sample(
    number: int, node_id: int, text: str, vector: Sequence[float] | None = None, decided: bool = False
) -> Sample:
    array = None if vector is None else np.array(vector, np.float32)
    return Sample(uuid.UUID(int=number), node_id, counts(text), array, decided)


KITCHEN = [sample(n, 3, f"simmer onions butter whisk soup thyme {n}") for n in range(10)]
GARDEN = [sample(100 + n, 4, f"prune roses compost spade hedge frost {n}") for n in range(10)]


def test_a_document_goes_to_the_category_of_similar_documents() -> None:
    found = place(
        TREE, NAMES, Centroids.of(KITCHEN + GARDEN), counts("whisk butter and onions into the soup with thyme")
    )
    assert (found.path, found.accepted) == (("House", "Kitchen"), True)
    assert tuple(map(str, found.reasons)) == ("Its words are like those of the documents in House/Kitchen.",)


def test_a_single_category_does_not_attract_everything() -> None:
    only = Centroids.of(KITCHEN)
    like = shares(only, counts("whisk the butter into the soup with onions and thyme"))
    foreign = shares(only, counts("whisk the ledger, list debits and credits, count the vouchers"))
    assert 1.0 > like[0] > foreign[0]
    assert foreign[0] < REVIEW_BELOW


def test_a_few_shared_words_are_not_enough() -> None:
    known = Centroids.of(KITCHEN + GARDEN)
    found = place(TREE, NAMES, known, counts("soup soup soup soup"))
    assert (found.path, found.accepted) == (("House", "Kitchen"), False)
    assert known.shared(counts("soup whisk and a ledger")) == 2


def test_few_documents_lower_the_confidence() -> None:
    asked = counts("simmer onions in butter, prune and spade and frost and compost: simmer")
    few = place(TREE, NAMES, Centroids.of([KITCHEN[0], GARDEN[0]]), asked)
    many = place(TREE, NAMES, Centroids.of(KITCHEN + GARDEN), asked)
    assert few.path == many.path
    assert few.confidence < many.confidence


def test_a_contradicting_category_name_sends_the_document_to_review() -> None:
    known = Centroids.of(KITCHEN + GARDEN)
    asked = "whisk the butter into the soup with onions and thyme"
    assert place(TREE, NAMES, known, counts(f"{asked}. 장학")).accepted
    found = place(TREE, NAMES, known, counts(f"{asked}. 학사 장학 장학 장학"))
    assert found.path == ("House", "Kitchen")
    assert found.disagreeing
    assert not found.accepted
    assert found.confidence == DISAGREEING
    assert ("학사", "장학") in {other.path for other in found.alternatives}


def test_a_category_name_of_the_same_branch_does_not_contradict() -> None:
    found = place(TREE, NAMES, Centroids.of(KITCHEN), counts("house house house whisk butter soup"))
    assert not found.disagreeing


@pytest.mark.parametrize(
    ("text", "node_id"),
    [
        ("the kitchen", 3),
        ("the house", 2),
        ("a house and its garden", 4),
        ("house house house house and once the garden", 4),
        ("장학금은 학사 규정에 따른다", 6),
        ("kitchen kitchen garden", 3),
        ("gardens are gardened", 4),
    ],
)
def test_names(text: str, node_id: int) -> None:
    found = NAMES.named(counts(text))
    assert found is not None
    assert found.node_id == node_id


@pytest.mark.parametrize("text", ["", "the attic", "kitchenette", "학생", "_-_"])
def test_no_names(text: str) -> None:
    assert NAMES.named(counts(text)) is None
    assert place(TREE, NAMES, Centroids.of([]), counts(text)) == NOTHING


def test_names_alone_never_place() -> None:
    found = place(TREE, NAMES, Centroids.of([]), counts("kitchen kitchen kitchen house house"))
    assert (found.path, found.accepted) == (("House", "Kitchen"), False)


def test_vectors_decide_when_terms_are_ambiguous() -> None:
    known = Centroids.of(
        [
            *(sample(n, 3, "bed soup", (1.0, 0.1 * n)) for n in range(5)),
            *(sample(50 + n, 4, "bed frost", (0.1 * n, 1.0)) for n in range(5)),
        ]
    )
    asked = counts("bed")
    assert shares(known, asked, np.array([0.1, 1.0], np.float32)).argmax() == 1
    assert shares(known, asked, np.array([1.0, 0.1], np.float32)).argmax() == 0
    assert np.ptp(shares(known, asked)) == pytest.approx(0.0, abs=1e-9)


def test_vectors_count_only_when_every_category_has_them() -> None:
    mixed = Centroids.of([sample(1, 3, "soup", (1.0, 0.0)), sample(2, 4, "frost")])
    assert mixed.by_meaning(np.array([1.0, 0.0], np.float32)) is None
    whole = Centroids.of([sample(1, 3, "soup", (1.0, 0.0)), sample(2, 4, "frost", (0.0, 1.0))])
    assert whole.by_meaning(np.array([1.0, 0.0, 0.0], np.float32)) is None
    assert whole.by_meaning(np.zeros(2, np.float32)) is None


def test_decisions_of_reviewers_count_more() -> None:
    machine = [sample(n, 3, "soup ledger") for n in range(2)] + [sample(10 + n, 4, "frost ledger") for n in range(2)]
    person = sample(99, 4, "ledger ledger debits", decided=True)
    plain = sample(99, 4, "ledger ledger debits")
    asked = counts("debits")
    assert Centroids.of([*machine, person]).by_words(asked)[1] > Centroids.of([*machine, plain]).by_words(asked)[1]


def test_mean_vectors() -> None:
    assert mean_vector([]) is None
    found = mean_vector([np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)])
    assert found is not None
    assert found.tolist() == [0.5, 0.5]


texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
samples = st.lists(st.tuples(st.sampled_from([2, 3, 4, 6]), texts, st.booleans()), max_size=8)


@given(samples, texts, st.randoms(use_true_random=False))
def test_the_order_of_samples_makes_no_difference(
    rows: list[tuple[int, str, bool]], asked: str, chance: random.Random
) -> None:
    known = [sample(n, node, text, decided=decided) for n, (node, text, decided) in enumerate(rows)]
    shuffled = list(known)
    chance.shuffle(shuffled)
    one, other = (place(TREE, NAMES, Centroids.of(order), counts(asked)) for order in (known, shuffled))
    assert one == other


@given(samples, texts)
def test_shares_add_up_to_at_most_one(rows: list[tuple[int, str, bool]], asked: str) -> None:
    known = Centroids.of([sample(n, node, text, decided=decided) for n, (node, text, decided) in enumerate(rows)])
    found = shares(known, counts(asked))
    assert (found >= 0).all()
    assert found.sum() <= 1.0 + 1e-9
    result = place(TREE, NAMES, known, counts(asked))
    assert 0.0 <= result.confidence <= 1.0
    assert all(0.0 <= other.confidence <= 1.0 for other in result.alternatives)
    assert result.node_id not in {other.node_id for other in result.alternatives}
    assert result.path == TREE.path(result.node_id)
    assert (result.node_id == UNCLASSIFIED) == (result.path == ())


@given(samples, texts)
def test_cosines_are_those_of_dense_arithmetic(rows: list[tuple[int, str, bool]], asked: str) -> None:
    known = [sample(n, node, text, decided=decided) for n, (node, text, decided) in enumerate(rows)]
    found = Centroids.of(known)
    vocabulary = sorted({int(term) for one in known for term in one.terms.ids})
    held = {term: sum(one.terms.count(term) > 0 for one in known) for term in vocabulary}
    idf = np.array([np.log(1 + (len(known) - held[t] + 0.5) / (held[t] + 0.5)) for t in vocabulary])

    def dense(document: TermCounts) -> np.ndarray:
        weights: np.ndarray = np.array([np.log1p(document.count(term)) for term in vocabulary]) * idf
        return weights

    def unit(weights: np.ndarray, more: float = 0.0) -> np.ndarray:
        found: np.ndarray = weights / max(np.sqrt(weights @ weights + more), 1e-12)
        return found

    unseen = np.log(2) * np.log(1 + (len(known) + 0.5) / 0.5)
    query = unit(dense(counts(asked)), UNSEEN_WORDS * unseen**2)
    for row, node_id in enumerate(found.nodes):
        own = [one.weight * unit(dense(one.terms)) for one in known if one.node_id == node_id]
        expected = float(query @ unit(sum(own, np.zeros(len(vocabulary)))))
        assert found.by_words(counts(asked))[row] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "learned", "expected"),
    [
        (("a", "b"), ("a", "b"), False),
        (("a", "b"), ("a", "c"), False),
        (("a", "b", "c"), ("a", "x"), True),
        (("a", "b", "c"), ("a", "b"), False),
        (("a",), ("b",), True),
        (("a",), ("a", "b", "c"), False),
    ],
)
def test_drift_is_less_than_half_in_common(rule: Sequence[str], learned: Sequence[str], expected: bool) -> None:
    assert drifts(rule, learned) is expected


FOUND = Classification(("House", "Kitchen"), 3, 0.6, (Statement("", "words"),))


def test_an_agreeing_model_raises_the_confidence() -> None:
    found = with_model(TREE, FOUND, "house/kitchen", 0.9)
    assert (found.path, found.accepted) == (("House", "Kitchen"), True)
    assert FOUND.confidence < found.confidence < 1.0


def test_a_disagreeing_model_sends_the_document_to_review() -> None:
    found = with_model(TREE, Classification(("House", "Kitchen"), 3, 0.95, ()), ["학사", "장학"], 1.0)
    assert (found.path, found.confidence, found.disagreeing) == (("House", "Kitchen"), DISAGREEING, True)
    assert found.alternatives[0].path == ("학사", "장학")


@pytest.mark.parametrize("claimed", [1.0, 7.0, -1.0])
def test_a_model_alone_never_places(claimed: float) -> None:
    found = with_model(TREE, NOTHING, "House/Garden", claimed)
    assert found.path == ("House", "Garden")
    assert 0.0 <= found.confidence <= UNCHECKED < REVIEW_BELOW


@pytest.mark.parametrize("said", ["", "Attic", "../House", "House/Kitchen/x", "' or 1=1", "\u202eHouse"])
def test_a_model_without_an_answer_changes_nothing(said: str) -> None:
    found = with_model(TREE, FOUND, said, 1.0)
    assert (found.path, found.confidence) == (FOUND.path, FOUND.confidence)
    assert with_model(TREE, FOUND, "House/Garden", float("nan")).path == FOUND.path
