"""Questions made from passages, and the weight that is chosen on one half and judged on the other."""

from __future__ import annotations

import numpy as np

from dtrag.core.documents import SearchResult
from dtrag.evaluation.embedder_check import best_weight, folds, questions_of


def _passage(number: int, text: str, *heads: str) -> SearchResult:
    return SearchResult(f"d:{number}", text, "The handbook", breadcrumb=heads)


def test_a_question_is_not_in_what_is_searched() -> None:
    passages = [
        _passage(
            number,
            f"Rule {number} concerns the pumps of house {number} only. They are oiled. They are cleaned.",
            "Maintenance",
            f"Pumps of house {number}",
        )
        for number in range(40)
    ]
    imagined = ["" if number else "who oils the first pump?" for number in range(40)]
    searched, questions = questions_of(passages, imagined, 100, 0)
    kinds = [question.kind for question in questions]
    assert kinds.count("imagined") == 1
    assert min(kinds.count("heading"), kinds.count("sentence")) > 10
    for question in questions:
        (row,) = question.relevant
        shown = [searched[row].title, *searched[row].breadcrumb, searched[row].text]
        assert question.kind == "imagined" or all(question.text not in part for part in shown)
        assert "They are oiled" in searched[row].text
        assert "Maintenance" in searched[row].breadcrumb
    assert questions_of(passages, imagined, 100, 0)[1] == questions
    assert questions_of(passages, imagined, 100, 1)[1] != questions
    assert len(questions_of(passages, imagined, 25, 0)[1]) == 25


def test_a_heading_of_several_passages_is_answered_by_each_of_them() -> None:
    passages = [_passage(number, "Short.", "Pumps", "Oiling of pumps") for number in range(5)]
    _, questions = questions_of(passages, [""] * 5, 10, 0)
    assert [(question.text, question.relevant) for question in questions] == [("Oiling of pumps", frozenset(range(5)))]
    many = [_passage(number, "Short.", "Oiling of pumps") for number in range(6)]
    assert questions_of(many, [""] * 6, 10, 0)[1] == []


def test_a_weight_is_judged_on_questions_that_did_not_choose_it() -> None:
    better = np.tile([0.2, 0.5, 0.9], (60, 1))
    held_out, gain, (low, _) = folds(better, 1, 0)
    assert (best_weight(better, 1), held_out, gain) == (2, 0.9, 0.4)
    assert low > 0
    assert best_weight(np.tile([0.5, 0.5, 0.5], (60, 1)), 1) == 1
    noise = np.random.default_rng(3).random((60, 11))
    _, gain, (low, _) = folds(noise, 5, 0)
    assert low < 0, "what is best by chance is not better on the other half"
    assert gain < noise.mean(axis=0).max() - noise[:, 5].mean()
