"""Questions that are nouns: the articles of the regulation on their subject whose titles say what is sought."""

from __future__ import annotations

import pytest

from dtrag.regulations.korean.ranking import Article, governing

TITLES = {
    "교원연구년제규정": ("신분 및 처우", "정의", "자격", "배정제외", "기간및계획변경", "기간", "신청", "신청자격"),
    "교원파견연구에관한규정": ("자격", "기간"),
}
ARTICLES = [
    Article(f"{regulation} {title}", regulation, "제1조", title, "", (), "article", 0.5)
    for regulation, titles in TITLES.items()
    for title in titles
]


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("연구년 자격 요건", ["자격", "신청자격", "배정제외"]),
        ("연구년 자격 요건이 어떻게 되나요?", ["자격", "신청자격", "배정제외"]),
        ("연구년 신청 방법 알려줘", ["신청"]),
        ("연구년 혜택", ["신분 및 처우"]),
        ("연구년", ["정의", "자격", "기간", "신청"]),
        ("연구년 기간은 몇 년인가요?", []),
        ("연구년을 신청하려면 자격이 있어야 하나요?", []),
        ("장학금 자격", []),
        ("자격", []),
        ("", []),
    ],
)
def test_titles_say_what_is_sought_of_a_subject(question: str, titles: list[str]) -> None:
    assert governing(question, ARTICLES) == [f"교원연구년제규정 {title}" for title in titles]
