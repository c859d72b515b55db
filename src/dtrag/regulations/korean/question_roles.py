"""Questions that are nouns, a subject and perhaps what is sought of it ("연구년 자격 요건", "휴학")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dtrag.core.text.question_words import asks
from dtrag.core.text.questions import content, without_particle
from dtrag.regulations.korean.ranking import Article


class Role(NamedTuple):
    """What an article regulates: the words of a question that seek it, and the ends of titles that name it.

    신청자격 names who may, not how.
    """

    sought: re.Pattern[str]
    titled: re.Pattern[str]


ROLES: Mapping[str, Role] = {
    name: Role(re.compile(sought), re.compile(rf"(?:{titled})(?=\s|및|[ㆍ·,]|$)"))
    for name, sought, titled in (
        ("definition", "정의|뜻|의미|종류|구분", "정의|구분|종류"),
        ("eligibility", "자격|요건|조건|대상", "자격|요건|조건|대상자?|제한|제외|불가"),
        ("period", "기간|시기|기한|연한", "기간|시기|기한|연한"),
        ("procedure", "신청|절차|방법|서류", "신청|절차|방법|서류|선발|추천|추대"),
        ("benefits", "혜택|대우|처우|보수|급여", "처우|대우|보수|혜택|지원내용"),
    )
}
"""In the order in which they are shown for a subject alone."""
OF_SUBJECT = ("definition", "eligibility", "period", "procedure")
MOST = 4
"""Articles that come first: those of all roles of a subject."""
MAX_SUBJECT = 2
"""Words of a subject."""
LEAST_SHARE = 0.3
"""Share of a regulation's name that its subject has: 장학금 of 장학금지급규정, not of 대학원장학금지급에관한세칙."""
_CLAUSE = re.compile(r"[가-힣](?:면|고|서|려고|려면|는데|는|을|할)\s")


def governing(question: str, articles: Sequence[Article]) -> list[str]:
    """The keys of the articles that govern the subject of the question; none for a question that is a sentence.

    Those whose title says what is sought; for a subject alone, the first of each role. `articles` are in their order.
    """
    words = [without_particle(word) for word in content(question).split() if any(map(str.isalnum, word))]
    sought = [name for name, role in ROLES.items() if any(role.sought.fullmatch(word) for word in words)]
    subject = [word for word in words if not any(role.sought.fullmatch(word) for role in ROLES.values())]
    if (
        not 0 < len(subject) <= MAX_SUBJECT
        or asks(question, "circumstance")
        or _CLAUSE.search(question)
        or not (sought or len(words) == 1)
    ):
        return []
    name = "".join(subject)
    if not sought and name != "".join(question.split()).strip("?？."):
        return []
    own = [each for each in articles if each.kind == "article" and _governs(name, each)]
    asked_words = [word for word in words if word not in subject]
    by_role = [_titled(own, ROLES[role].titled, asked_words) for role in sought or OF_SUBJECT]
    keys = [key for of_role in by_role for key in (of_role if sought else of_role[:1])]
    return list(dict.fromkeys(keys))[:MOST]


def _titled(articles: Sequence[Article], titled: re.Pattern[str], asked_words: Sequence[str]) -> list[str]:
    """Those with such a title: first those with most of the words asked for, then those with the least beside it."""
    matching_articles = [each for each in articles if titled.search(each.title)]

    def rank(article: Article) -> tuple[int, int]:
        return -sum(word in article.title for word in asked_words), len(titled.sub("", article.title))

    return [each.key for each in sorted(matching_articles, key=rank)]


def _governs(subject: str, article: Article) -> bool:
    regulation = "".join(article.regulation.split())
    return subject in regulation and len(subject) >= LEAST_SHARE * len(regulation)
