"""What is recognised as personal data, what is not, and how it is masked."""

from __future__ import annotations

import time
from datetime import date

import pytest

from dtrag.core.text.personal_data import FILL, KINDS, Detector, Kind, birth_date, has_check_digit, is_iban, is_luhn
from tests.personal_data import Sentence, findings, generated, written

DETECTOR = Detector()
ADVERSARIAL = (
    "1",
    "1-",
    "12-34-",
    "1 ",
    "010 ",
    "a@",
    "a@a.",
    "[at]a",
    "+1 ",
    "+1(",
    "900101-",
    "계좌 DE89 3704 ",
    "(010)",
)
MOST_S = 0.003
"""For 1,000 characters without personal data: three times what is promised."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_finds_its_examples_and_no_others(kind: Kind) -> None:
    for text in kind.finds:
        assert [datum.kind for datum in DETECTOR.find(text)] == [kind.name], text
    for text in kind.refuses:
        assert kind.name not in {datum.kind for datum in DETECTOR.find(text)}, text


@pytest.mark.parametrize(
    "sentences",
    [written("development"), written("heldout"), list(generated(2_000, 7))],
    ids=["development", "heldout", "generated"],
)
def test_precision_and_recall(sentences: list[Sentence]) -> None:
    result = findings(sentences)
    assert result.precision >= 0.98, result.false
    assert result.recall >= 0.95, result.missed


def test_masks_keep_the_length_and_nothing_of_the_value() -> None:
    for each in [*written("development"), *written("heldout"), *generated(500, 3)]:
        masked = DETECTOR.masked(each.text)
        assert len(masked) == len(each.text)
        assert DETECTOR.masked(masked) == masked
        for _, start, end in each.data:
            assert not any(character.isdigit() for character in masked[start:end])
            assert FILL in masked[start:end]
    assert DETECTOR.masked("전화 010-1234-5678, a@b.kr") == f"전화 [phone{FILL * 6}], {FILL * 6}"


def test_a_mask_makes_nothing_else_personal() -> None:
    text = DETECTOR.masked("010-1234-5678 650-555-0199")
    assert text.endswith("650-555-0199")
    assert DETECTOR.masked(text) == text


def test_full_width_digits_and_dashes() -> None:
    assert [datum.kind for datum in DETECTOR.find("주민번호 ９００１０１－１２３４５６８")] == ["resident"]
    assert [datum.kind for datum in DETECTOR.find("전화 ０１０–１２３４–５６７８")] == ["phone"]


def test_the_name_of_the_field_decides() -> None:
    assert DETECTOR.find("11012345678901") == []
    assert [datum.kind for datum in DETECTOR.find("11012345678901", "계좌번호")] == ["account"]
    assert DETECTOR.find("9001011234567", "order number") == []


def test_check_digits() -> None:
    assert is_luhn("4111111111111111")
    assert not is_luhn("4111111111111112")
    assert is_iban("DE89 3704 0044 0532 0130 00")
    assert not is_iban("DE88 3704 0044 0532 0130 00")
    assert has_check_digit("9001011234568")
    assert not has_check_digit("9001011234567")
    assert birth_date("9913311234567") is None
    assert birth_date("0102293234567") is None
    assert birth_date("0102283234567") == date(2001, 2, 28)


def test_time_grows_with_the_length_only() -> None:
    for piece in ADVERSARIAL:
        text = (piece * 50_000)[:50_000]
        began = time.process_time()
        DETECTOR.find(text)
        assert (time.process_time() - began) / 50 < MOST_S, piece
