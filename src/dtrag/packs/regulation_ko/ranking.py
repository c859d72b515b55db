"""Second ranking of the articles that a search found: what of the question does each explain, and where.

The unit is the article: its pieces count as one, with the text of all of them. Every feature lies in [0, 1] or is 0 or
1; the weights are in `ranking_weights.json` (pairwise logistic regression, `scripts/fit_regulation_ranking.py`).
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from dtrag.core.text.analysis import sentences, term_id, terms
from dtrag.packs.regulation_ko.catalog import Catalog, Outline, article_label, article_number, folded_name
from dtrag.packs.regulation_ko.concepts import Concept, Reading, Wording
from dtrag.packs.regulation_ko.lexicon import words_of

REGULATION_SHARE = 0.3
"""Weight of a regulation's score (mean of its three best articles) in an article's first score: measured on sets that
nothing was chosen on, Recall@10 +.05 and .00 (pooled +.02)."""
BEST_OF_REGULATION = 3
KIND_FACTORS: Mapping[str, float] = {"article": 1.0, "preamble": 0.5, "addendum": 0.5, "appendix": 0.8}
FORM_FACTOR = 0.5
"""A form (별지, 서식) is a sheet to fill in: it repeats the words of the article that asks for it."""
ASKS_FOR_FORM = re.compile(r"서식|양식|신청서|별지|별표|부칙|신고서|확인서|form\b")
LEAST_SHARE = 1e-3
COVERED = 0.6
"""Share of a wording's pairs of syllables that a text must hold to say it: "대학원생" is said by "대학원"."""


@dataclass(frozen=True, slots=True)
class Article:
    """An article as it was found. `score` is its best piece's first score, `pieces` the ids in reading order."""

    key: str
    regulation: str
    label: str
    title: str
    divisions: str
    text: str
    kind: str
    score: float
    regulation_score: float = 0.0

    @property
    def first(self) -> float:
        """The score that decides which articles are ranked a second time."""
        return self.score + REGULATION_SHARE * self.regulation_score


FEATURES = (
    "first_score",
    "regulation_score",
    "covered",
    "covered_by_headings",
    "covered_by_title",
    "covered_by_sentence",
    "covered_weighted",
    "all_covered",
    "title_explained",
    "regulation_explained",
    "kind_of_title",
    "boilerplate",
    "not_an_article",
    "other_audience",
    "named_regulation",
    "length",
)


def kind_factor(kind: str, label: str, question: str) -> float:
    """What the first score of a passage of this kind is multiplied by; 1 when the question asks for forms."""
    if kind == "article" or ASKS_FOR_FORM.search(question):
        return 1.0
    if label.startswith(("별지", "서식")):
        return FORM_FACTOR
    return KIND_FACTORS.get(kind, 1.0)


def regulation_scores(scores: Mapping[str, float], regulation: Mapping[str, str]) -> dict[str, float]:
    """Regulation -> the mean score of its `BEST_OF_REGULATION` best articles (missing ones count 0)."""
    best: dict[str, list[float]] = {}
    for key, score in scores.items():
        best.setdefault(regulation[key], []).append(score)
    return {
        name: sum(sorted(values, reverse=True)[:BEST_OF_REGULATION]) / BEST_OF_REGULATION
        for name, values in best.items()
    }


class Scorer:
    """Features of articles for one question; `idf` gives the weight of a term id in the caller's collection."""

    def __init__(self, reading: Reading, idf: Mapping[int, float]) -> None:
        self._reading = reading
        self._idf = idf
        self._concepts = [(concept, self._importance(concept)) for concept in reading.concepts]
        self._total = sum(importance for _, importance in self._concepts) or 1.0
        self._vocabulary = frozenset(
            term for concept in reading.concepts for wording in concept.wordings for term in wording.terms
        ) | {term_id(term) for term in terms(reading.question)}
        self._question_words = words_of(reading.question)
        self._kinds = _kinds_of_question(reading.question)

    def _importance(self, concept: Concept) -> float:
        """The mean idf of the user's own words where the collection has them, else of the official words."""
        return max((self._specific(wording) * wording.weight for wording in concept.wordings), default=0.0)

    def _specific(self, wording: Wording) -> float:
        known = [self._idf[term] for term in wording.terms if term in self._idf]
        return sum(known) / len(wording.terms) if known else 0.0

    def features(self, article: Article, best: float, best_regulation: float) -> list[float]:
        """The values of `FEATURES`, in that order. `best` and `best_regulation` are the highest scores of the list."""
        title = _term_ids(article.title)
        name = _term_ids(article.regulation)
        headings = title | name | _term_ids(article.divisions)
        whole = headings | _term_ids(article.text)
        by_sentence = max(
            (self._share(title | _term_ids(sentence)) for sentence in _sentences(article.text)), default=0.0
        )
        covered = [self._covers(concept, whole) for concept, _ in self._concepts]
        return [
            article.score / best if best else 0.0,
            article.regulation_score / best_regulation if best_regulation else 0.0,
            self._share(whole),
            self._share(headings),
            self._share(title),
            by_sentence,
            self._share(whole, weighted=True),
            float(bool(covered) and all(covered)),
            self._explained(title),
            self._explained(name),
            float(_kind_matches(self._kinds, article.title)),
            float(bool(_BOILERPLATE.search(article.title)) and article.kind == "article"),
            float(article.kind != "article"),
            float(_other_audience(article.regulation, self._reading)),
            float(_is_named(article.regulation, self._reading.question)),
            min(1.0, math.log1p(len(article.text)) / 9.0),
        ]

    def exact(self, articles: Sequence[Article]) -> str | None:
        """The key of the article that the question names (학칙 제21조), None when it names none of these."""
        found = _NAMED_ARTICLE.search(self._reading.question)
        number = article_number(found["article"]) if found else None
        if found is None or number is None:
            return None
        catalog = Catalog.of(Outline(name) for name in dict.fromkeys(article.regulation for article in articles))
        name = folded_name(found["name"])
        owner = next((owner for start in range(len(name) - 1) if (owner := catalog.named(name[start:]))), None)
        label = article_label(number)
        return next(
            (
                article.key
                for article in articles
                if owner is not None and article.regulation == owner.name and article.label == label
            ),
            None,
        )

    def _share(self, text_terms: frozenset[int] | set[int], *, weighted: bool = False) -> float:
        """The share of the question's concepts, by importance, that the terms cover."""
        covered = sum(
            importance * self._strength(concept, text_terms, weighted=weighted)
            for concept, importance in self._concepts
        )
        return covered / self._total

    def _strength(self, concept: Concept, text_terms: frozenset[int] | set[int], *, weighted: bool) -> float:
        best = 0.0
        for wording in concept.wordings:
            share = len(wording.terms & text_terms) / len(wording.terms)
            if share >= COVERED:
                best = max(best, (wording.weight if weighted else 1.0) * share)
        return best

    def _covers(self, concept: Concept, text_terms: frozenset[int] | set[int]) -> bool:
        return self._strength(concept, text_terms, weighted=False) > 0.0

    def _explained(self, text_terms: frozenset[int]) -> float:
        """The share of a heading's terms that the question, or its official words, contain."""
        if not text_terms:
            return 0.0
        total = sum(self._idf.get(term, 1.0) for term in text_terms)
        return sum(self._idf.get(term, 1.0) for term in text_terms & self._vocabulary) / total if total else 0.0


@functools.lru_cache(4096)
def _term_ids(text: str) -> frozenset[int]:
    return frozenset(map(term_id, terms(text)))


@functools.lru_cache(1024)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in sentences(text))[:60]


_BOILERPLATE = re.compile(
    r"^(?:목\s*적|정\s*의|적용\s?범위|용어의?\s?정의|명\s*칭|시행\s?세칙|운영\s?세칙|준\s*용"
    r"|시행일|기\s*타|위임\s?규정|세부\s?사항|설\s*치|소\s*재|적용|다른 \S+과의 관계)"
)
_QUESTION_KINDS: Sequence[tuple[str, re.Pattern[str], re.Pattern[str]]] = (
    (
        "when",
        re.compile(r"언제|며칠|까지|기한|기간|얼마나 오래|몇 (?:년|학기|개월|달|일|주)|when|how long|deadline"),
        re.compile(r"기간|기한|시기|시간|일정|연한|일수|시행일|임기|횟수"),
    ),
    (
        "amount",
        re.compile(r"얼마|금액|비용|몇 (?:원|만|퍼|프로|%)|돈|how much|cost|fee"),
        re.compile(r"금액|지급|수당|비|료|단가|기준|반환|감면|액|보수|봉급"),
    ),
    (
        "how",
        re.compile(r"어떻게|방법|절차|신청|내야|어디|하려면|how|apply|where"),
        re.compile(r"절차|신청|방법|제출|접수|수속|발급|허가|승인|등록|처리"),
    ),
    (
        "may",
        re.compile(r"되나요|돼요|되는|가능|수 있|해도|될까|안 되|자격|조건|누가|누구|대상|can |may |eligible|who"),
        re.compile(r"자격|요건|대상|제한|금지|허가|범위|조건|기준|의무|준수|선발"),
    ),
    (
        "penalty",
        re.compile(r"벌|징계|처벌|걸리|걸려|안 하면|안하면|어기|위반|불이익|취소|penalt|punish"),
        re.compile(r"징계|벌|처분|제재|취소|제명|퇴사|변상|회수|중지|박탈|조치"),
    ),
    (
        "organ",
        re.compile(r"위원|누가 정|구성|몇 명|회의|정족수|임기|committee"),
        re.compile(r"구성|위원|조직|회의|의결|소집|임기|직무|간사"),
    ),
    ("meaning", re.compile(r"뜻|무엇|뭐|뭔|란\b|의미|정의|what is|mean"), re.compile(r"정의|용어|목적")),
)


def _kinds_of_question(question: str) -> frozenset[str]:
    return frozenset(name for name, asks, _ in _QUESTION_KINDS if asks.search(question))


def _kind_matches(kinds: frozenset[str], title: str) -> bool:
    return any(name in kinds and titled.search(title) for name, _, titled in _QUESTION_KINDS)


_NAMED_ARTICLE = re.compile(
    r"(?P<name>[가-힣A-Za-z·ㆍ()「」『』\s]{2,60}?)[」』]?\s*(?:의\s*)?(?P<article>제\s*\d{1,4}\s*조(?:\s*의\s*\d{1,3})?)"
)
_AUDIENCES: Sequence[tuple[re.Pattern[str], re.Pattern[str]]] = tuple(
    (re.compile(name), re.compile(asked))
    for name, asked in (
        ("대학원", "대학원|석사|박사|학위논문|논문|graduate|master|phd|doctor"),
        (
            "외국인|유학생|글로벌|국제",
            "외국|유학|국제|교환|비자|어학|한국어|abroad|foreign|international|exchange|visa",
        ),
        ("병원|의료원|한방", "병원|의료|환자|간호|진료|한방|hospital"),
        ("고등학교|중학교|유치원|어린이", "고등학교|중학교|유치원|어린이"),
        ("평생교육|사회교육|학점은행", "평생|학점은행|비학위|사회교육"),
        ("언어교육|어학", "어학|언어|한국어|영어|language"),
        ("산학협력|기술이전|창업|보육", "산학|기술|창업|특허|기업|연구비|과제|협력|입주|보육|startup"),
        ("계약직|임시|촉탁|무기계약|기간제", "계약|비정규|임시|촉탁|무기|기간제|contract"),
        (
            "시간강사|강사|겸임|초빙|명예|석좌|객원|비전임",
            "강사|겸임|초빙|명예|석좌|객원|비전임|시간제|lecturer|adjunct|visiting",
        ),
        ("조교", "조교|assistant"),
        ("군|예비군|학군", "군대|입대|군|예비군|학군|전역|military|army"),
        ("기숙|생활관|행복기숙", "기숙|생활관|사감|룸메|방|외박|점호|퇴사|입사|dorm"),
        ("도서관|도서", "도서|책|대출|열람|자료|library|book"),
        ("법인|정관|이사회", "법인|정관|이사|재단|foundation|board"),
        ("동물|생명윤리|연구윤리|실험", "동물|윤리|실험|표절|연구|ethic|lab|animal"),
        ("약학|의과|한의|간호대|공과|경영|사범|교육대학원|법과", "약학|의과|한의|간호|공과|공대|경영|사범|교직|법과"),
    )
)


def _other_audience(regulation: str, reading: Reading) -> bool:
    """Whether the regulation is for people or matters of a kind that the question does not name."""
    words = " ".join((reading.question.lower(), *reading.official))
    return any(name.search(regulation) and not asked.search(words) for name, asked in _AUDIENCES)


def _is_named(regulation: str, question: str) -> bool:
    return len(regulation) > 2 and folded_name(regulation) in folded_name(question)


@functools.cache
def weights() -> NDArray[np.float64]:
    """The fitted weight of each feature."""
    read = json.loads(resources.files(__package__).joinpath("ranking_weights.json").read_text("utf-8"))
    return np.array([read["weights"][name] for name in FEATURES])


def feature_rows(
    scorer: Scorer, articles: Sequence[Article], most: int
) -> tuple[list[Article], list[Article], NDArray[np.float64]]:
    """The `most` best articles by their first scores, the others, and a row of `FEATURES` for each of the best."""
    by_first = sorted(articles, key=lambda article: (-article.first, article.key))
    ranked, rest = by_first[:most], by_first[most:]
    best = max((article.score for article in ranked), default=0.0)
    best_regulation = max((article.regulation_score for article in ranked), default=0.0)
    return ranked, rest, np.array([scorer.features(article, best, best_regulation) for article in ranked])


def reranked(scorer: Scorer, articles: Sequence[Article], most: int) -> list[tuple[str, float]]:
    """Keys of the articles with their share of the reachable score in [0, 1], best first.

    The first score mixed with the regulation's decides which `most` articles are ranked a second time; the others
    follow in that order, with scores below theirs.
    """
    ranked, rest, features = feature_rows(scorer, articles, most)
    reachable = float(weights().clip(min=0.0).sum())
    shares = np.clip(features @ weights() / reachable, LEAST_SHARE, 1.0)
    exact = scorer.exact(ranked)
    order = sorted(range(len(ranked)), key=lambda at: (ranked[at].key != exact, -shares[at], ranked[at].key))
    scores = [(ranked[at].key, 1.0 if ranked[at].key == exact else float(shares[at])) for at in order]
    least = min((score for _, score in scores), default=1.0)
    first = rest[0].first if rest else 1.0
    return scores + [(article.key, least * 0.99 * article.first / first if first else 0.0) for article in rest]
