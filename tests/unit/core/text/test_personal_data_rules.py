"""Own rules: what a file may contain, and what its kinds find."""

from __future__ import annotations

import pytest

from dtrag.core.text.personal_data import FILL, KINDS, Detector
from dtrag.core.text.personal_data_policy import PersonalDataPolicy
from dtrag.core.text.personal_data_rules import checked_pattern, rules_of
from dtrag.errors import InvalidInput

RULES = """
[[rules]]
name = "employee"
label = "사번"
pattern = '(?<!\\d)E\\d{6}'
words = ["사번", "employee no"]

[[rules]]
name = "project"
words = ["Project Falcon", "한빛 사업"]
"""


def test_words_and_patterns() -> None:
    detector = Detector((*rules_of(RULES), *KINDS))
    masked = detector.masked(
        "사번 E123456, project falcon; 부품 전체 목록의 끝에 있는 아주 긴 설명과 그 다음 줄의 여러 이름 다음 E123456"
    )
    assert masked.startswith(f"사번 [사번{FILL * 3}], [project{FILL * 5}];")
    assert masked.endswith("E123456")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a+)+b", "200 characters"),
        (r"\d+", "at least 2 characters|200 characters"),
        (r"(?:a|aa){1,30}x", "ways"),
        (r"\d{1,64}\d{1,64}x", "ways"),
        (r"(\w\w)\1", "not supported"),
        (r"(ab", "not a regular expression"),
        ("x", "at least 2 characters"),
        ("", "1 to 200 characters"),
        (7, "1 to 200 characters"),
    ],
)
def test_patterns_that_could_take_long_are_refused(pattern: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        checked_pattern(pattern)


def test_a_bounded_pattern_is_accepted() -> None:
    assert checked_pattern(r"(?<!\d)(?:AB|CD)-\d{4,6}(?:-\d{2}){0,2}\b").search("AB-12345-67")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x =", "not TOML"),
        ("", "1 to 100 tables"),
        ("[[rules]]\nname = 'A b'\nwords = ['xx']", "small letters"),
        ("[[rules]]\nname = 'a'", "pattern or words"),
        ("[[rules]]\nname = 'a'\nwords = ['x']", "2 to 200 characters"),
        ("[[rules]]\nname = 'a'\nlabel = '1\"'\nwords = ['xx']", "letters, blanks"),
        ("[[rules]]\nname = 'a'\nother = 1", "it is a table with"),
        ("[[rules]]\nname = 'a'\npattern = 'a+'", "Rule 1 .* its pattern"),
        ("[[rules]]\nname = 'phone'\nwords = ['xx']", "two kinds 'phone'"),
    ],
)
def test_a_wrong_file_is_refused_with_the_rule(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        rules_of(text)


def test_the_policy_of_settings() -> None:
    rules = rules_of(RULES)
    policy = PersonalDataPolicy.of("mask", "employee,phone", rules, RULES)
    assert policy.masked("kim@univ.kr 010-1234-5678") == f"kim@univ.kr [phone{FILL * 6}]"
    assert PersonalDataPolicy.of("off", "all").id == ""
    ids = {
        PersonalDataPolicy.of(mode, kinds, own, text).id
        for mode in ("mark", "mask")
        for kinds in ("all", "phone")
        for own, text in (((), ""), (rules, RULES))
    }
    assert len(ids) == 8
    with pytest.raises(InvalidInput, match="off, mark or mask"):
        PersonalDataPolicy.of("on", "all")
    with pytest.raises(InvalidInput, match="names 'fax'; kinds: all, email"):
        PersonalDataPolicy.of("mask", "fax")
    with pytest.raises(InvalidInput, match="no kind"):
        PersonalDataPolicy.of("mask", " ,")


def test_values_names_and_addresses() -> None:
    policy = PersonalDataPolicy.of("mask", "all")
    mask = f"[phone{FILL * 6}]"
    assert policy.masked_value({"a": ["010-1234-5678", 7, None, True], "010-1234-5678": 1.5}) == {
        "a": [mask, 7, None, True],
        mask: 1.5,
    }
    assert policy.masked_value(9001011234568) == f"[resident{FILL * 3}]"
    assert policy.masked_value({"계좌": 11012345678901}) == {"계좌": f"[account{FILL * 5}]"}
    assert policy.masked_name("hong_010-1234-5678-new") == f"hong_{mask}-new"
    assert policy.masked_address("upload:홍-010-1234-5678.pdf#2") == f"upload:홍-{mask}.pdf#2"
    address = "file:///data/%ED%99%8D%20010-1234-5678/a.pdf"
    assert policy.masked_address(address).startswith("file:///data/%ED%99%8D%20%5Bphone%E2%96%88")
    assert policy.masked_address("file:///data/%ED%99%8D%20a.pdf") == "file:///data/%ED%99%8D%20a.pdf"
    off = policy.without("off")
    assert off.masked("010-1234-5678") == off.masked_name("010-1234-5678") == "010-1234-5678"
