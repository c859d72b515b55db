"""The second ranking of the articles that a search returned: which parts of the question each covers, and where.

The unit is the article: its pieces count as one, with their joined text. Every feature lies in [0, 1]; beside them
counts how near the article is to the question in meaning, among the candidates. The weights are in
`ranking_weights.json` (pairwise logistic regression, `scripts/fit_regulation_ranking.py`).
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtrag.core.answers.evidence import PACK_SIGNALS
from dtrag.core.editions import folded_name
from dtrag.core.text.analysis import term_id, terms
from dtrag.core.text.patterns import explained
from dtrag.core.text.question_words import asks
from dtrag.core.text.questions import content, without_particle
from dtrag.regulations.korean.catalog import Catalog, Outline, article_label, article_number
from dtrag.regulations.korean.lexicon import words_of
from dtrag.regulations.korean.question_concepts import Concept, QuestionReading, Wording
from dtrag.regulations.korean.term_coverage import Coverage, NumberedTerms, coverage, term_ids

REGULATION_SHARE = 0.3
"""Weight of a regulation's score (mean of its three best articles) in an article's first score: measured on data sets
that nothing was tuned on, Recall@10 +.05 and .00 (pooled +.02)."""
BEST_OF_REGULATION = 3
KIND_FACTORS: Mapping[str, float] = {"preamble": 0.5, "addendum": 0.5}
FORM_FACTOR = 0.5
"""A form (별지, 서식) repeats the words of the article that requires it."""
NEAREST_ARTICLES = 20
"""Articles nearest to the question that are ranked a second time beside the best by first scores."""
MIN_SHARE = 1e-3
COVERED = 0.6
"""Share of a wording's terms that a text must contain to cover it: "대학원" covers "대학원생"."""


@dataclass(frozen=True, slots=True)
class Article:
    """An article of a result list. `score` is the first score of its best piece; `pieces` are the texts of those that
    the search returned, in the order of the article."""

    key: str
    regulation: str
    label: str
    title: str
    divisions: str
    pieces: tuple[str, ...]
    kind: str
    score: float
    regulation_score: float = 0.0
    similarity: float | None = None
    """Of its piece nearest to the question; None without vectors."""
    imagined: float | None = None
    """How near its imagined questions are to the question, from 0 to 1; None without any."""

    @property
    def first(self) -> float:
        """The score that decides which articles are ranked a second time."""
        return self.score + REGULATION_SHARE * self.regulation_score


FEATURES = (
    "first_score",
    "regulation_score",
    "covered",
    "covered_by_sentence",
    "title_explained",
    "boilerplate",
    "not_an_article",
    "other_audience",
    "named_regulation",
)


SIMILARITY = "similarity"
"""Name of the weight of an article's standardised similarity to the question; it has no limits, as features do."""


IMAGINED = "imagined"
"""Name of the weight of how near an article's imagined questions are."""
ASSUMED = 1 / 12
"""Articles without imagined questions are assumed to have some that are near by this share of the standardised
similarity of their text, so that they lose less to those that have some; a loss remains (bench/README.md)."""


def kind_factor(kind: str, label: str, question: str) -> float:
    """The factor for the first score of a passage; 1 for articles, and for all kinds if the question asks for forms."""
    if kind == "article" or ASKS_FOR_FORM.search(question):
        return 1.0
    if label.startswith(("별지", "서식")):
        return FORM_FACTOR
    return KIND_FACTORS.get(kind, 1.0)


def regulation_scores(scores: Mapping[str, float], regulation: Mapping[str, str]) -> dict[str, float]:
    """Regulation -> the mean score of its `BEST_OF_REGULATION` best articles; missing ones count as 0.

    Both arguments are by article: its score, and its regulation.
    """
    by_regulation: dict[str, list[float]] = {}
    for key, score in scores.items():
        by_regulation.setdefault(regulation[key], []).append(score)
    return {
        name: sum(sorted(values, reverse=True)[:BEST_OF_REGULATION]) / BEST_OF_REGULATION
        for name, values in by_regulation.items()
    }


@dataclass(frozen=True, slots=True)
class _MaskedWording:
    """A wording as a bit mask of the question's terms."""

    mask: int
    term_count: int


class _WeighedConcept:
    """A concept of the question, and how strongly sets of the question's terms cover it.

    The strengths are kept: articles contain the same few sets of a concept's terms.
    """

    def __init__(self, importance: float, wordings: Sequence[_MaskedWording]) -> None:
        self.importance = importance
        self.mask = functools.reduce(operator.or_, (wording.mask for wording in wordings), 0)
        self._wordings = wordings
        self._strengths: dict[int, float] = {}

    def strength(self, terms: int) -> float:
        """The share of the best covered wording's terms; 0 when none is covered."""
        present = terms & self.mask
        strength = self._strengths.get(present)
        if strength is None:
            share = max(
                [(wording.mask & present).bit_count() / wording.term_count for wording in self._wordings], default=0.0
            )
            strength = self._strengths[present] = share if share >= COVERED else 0.0
        return strength


class Scorer:
    """Features of articles for one question; `idf` is the weight of a term id in the caller's collection."""

    def __init__(self, reading: QuestionReading, idf: Mapping[int, float]) -> None:
        self._reading = reading
        self._idf = idf
        concepts = [(concept, self._importance(concept)) for concept in reading.concepts]
        self._total = sum(importance for _, importance in concepts) or 1.0
        concept_terms = frozenset(
            term for concept in reading.concepts for wording in concept.wordings for term in wording.terms
        )
        self._vocabulary = concept_terms | {term_id(term) for term in terms(reading.question)}
        self._terms = NumberedTerms(concept_terms)
        self._concepts = [
            _WeighedConcept(importance, [self._masked(wording) for wording in concept.wordings])
            for concept, importance in concepts
        ]
        self._folded_question = folded_name(reading.question)
        self._audiences = audiences_of_question(" ".join((reading.question.lower(), *reading.official)))
        self._of_regulation: dict[str, tuple[float, float]] = {}
        self._of_terms: dict[int, float] = {}

    def _importance(self, concept: Concept) -> float:
        """The mean idf of the user's own words where the collection contains them, else of the official terms."""
        return max((self._specificity(wording) * wording.weight for wording in concept.wordings), default=0.0)

    def _specificity(self, wording: Wording) -> float:
        weights = [self._idf[term] for term in wording.terms if term in self._idf]
        return sum(weights) / len(wording.terms) if weights else 0.0

    def _masked(self, wording: Wording) -> _MaskedWording:
        return _MaskedWording(self._terms.mask(wording.terms), len(wording.terms))

    def features(self, article: Article, best: float, best_regulation: float) -> list[float]:
        """The values of `FEATURES`, in that order. `best` and `best_regulation` are the highest scores of the list."""
        covered = self._coverage(article)
        other_audience, named = self._regulation_features(article.regulation)
        return [
            article.score / best if best else 0.0,
            article.regulation_score / best_regulation if best_regulation else 0.0,
            self._covered(covered.whole),
            self._covered_by_sentence(covered, article),
            self._explained(term_ids(article.title)),
            float(article.kind == "article" and is_boilerplate(article.title)),
            float(article.kind != "article"),
            other_audience,
            named,
        ]

    def covers_all(self, article: Article) -> bool:
        """Whether the article covers every concept of the question."""
        return self._covers_all(self._coverage(article).whole)

    def _coverage(self, article: Article) -> Coverage:
        return coverage(self._terms, article.title, (article.regulation, article.divisions), article.pieces)

    def _covered(self, terms: int) -> float:
        """The share of the question that these terms cover: strengths of its concepts times their importance.

        It is kept: many sentences have the same few terms.
        """
        covered = self._of_terms.get(terms)
        if covered is None:
            strengths = [
                concept.importance * concept.strength(terms) for concept in self._concepts if concept.mask & terms
            ]
            covered = self._of_terms[terms] = sum(strengths) / self._total
        return covered

    def _covers_all(self, terms: int) -> bool:
        """Whether these terms cover every concept of the question."""
        return bool(self._concepts) and all(concept.strength(terms) > 0.0 for concept in self._concepts)

    def _covered_by_sentence(self, covered: Coverage, article: Article) -> float:
        """The highest share that one sentence covers, with the title; 0 without sentences."""
        if not any(piece and not piece.isspace() for piece in article.pieces):
            return 0.0
        return max(map(self._covered, {covered.title, *(covered.title | mask for mask in covered.sentences)}))

    def _regulation_features(self, regulation: str) -> tuple[float, float]:
        """Features that are the same for all articles of a regulation."""
        values = self._of_regulation.get(regulation)
        if values is None:
            values = self._of_regulation[regulation] = (
                float(not audiences_of_regulation(regulation) <= self._audiences),
                float(len(regulation) > 2 and folded_name(regulation) in self._folded_question),
            )
        return values

    def exact(self, articles: Sequence[Article]) -> str | None:
        """The key of the article that the question names (학칙 제21조); None when it names none of these."""
        match = NAMED_ARTICLE.search(self._reading.question)
        number = article_number(match["article"]) if match else None
        if match is None or number is None:
            return None
        catalog = Catalog.of(Outline(name) for name in dict.fromkeys(article.regulation for article in articles))
        name = folded_name(match["name"])
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

    def _explained(self, heading: frozenset[int]) -> float:
        """The share of a heading's terms, by idf, that the question or its official terms contain."""
        if not heading:
            return 0.0
        total = sum(self._idf.get(term, 1.0) for term in heading)
        return sum(self._idf.get(term, 1.0) for term in heading & self._vocabulary) / total if total else 0.0


@functools.cache
def weights() -> NDArray[np.float64]:
    """The fitted weight of each feature, and last those of the standardised similarity and of imagined questions."""
    content = json.loads(resources.files(__package__).joinpath("ranking_weights.json").read_text("utf-8"))
    return np.array([content["weights"][name] for name in (*FEATURES, SIMILARITY, IMAGINED)])


def feature_rows(
    scorer: Scorer, articles: Sequence[Article], limit: int
) -> tuple[list[Article], list[Article], NDArray[np.float64]]:
    """The articles to rank a second time, the others, and the features and both similarities of each of the former.

    The former are the `limit` best by their first scores and the `NEAREST_ARTICLES` nearest to the question, themselves
    or by their imagined questions.
    """
    by_first = sorted(articles, key=lambda article: (-article.first, article.key))
    nearest = [
        *_nearest({article.key: article.similarity for article in articles}),
        *_nearest({article.key: article.imagined or None for article in articles}),
    ]
    chosen = {*(article.key for article in by_first[:limit]), *nearest}
    ranked = [article for article in by_first if article.key in chosen]
    rest = [article for article in by_first if article.key not in chosen]
    best = max((article.score for article in ranked), default=0.0)
    best_regulation = max((article.regulation_score for article in ranked), default=0.0)
    features = np.array([scorer.features(article, best, best_regulation) for article in ranked])
    meaning = standardised([article.similarity for article in ranked])
    imagined = _imagined([article.imagined for article in ranked], meaning)
    return ranked, rest, np.column_stack([features.reshape(len(ranked), len(FEATURES)), meaning, imagined])


def _imagined(nearness: Sequence[float | None], meaning: NDArray[np.float64]) -> NDArray[np.float64]:
    """How near imagined questions are, with what is assumed for articles without any; 0 for all if none is near."""
    if not any(nearness):
        return np.zeros(len(nearness))
    values = np.array([np.nan if near is None else near for near in nearness], np.float64)
    return np.where(np.isnan(values), ASSUMED * meaning.clip(min=0.0), values)


def _nearest(similarities: Mapping[str, float | None]) -> list[str]:
    """Keys of the `NEAREST_ARTICLES` with the highest similarities."""
    known = sorted((-similarity, key) for key, similarity in similarities.items() if similarity is not None)
    return [key for _, key in known[:NEAREST_ARTICLES]]


def standardised(similarities: Sequence[float | None]) -> NDArray[np.float64]:
    """(s - mean) / standard deviation over these candidates; 0 for those without a vector, and if all are equal.

    Only candidates count, so that nothing outside the caller's scope changes a score.
    """
    values = np.array([np.nan if similarity is None else similarity for similarity in similarities], np.float64)
    known = np.sort(values[~np.isnan(values)])  # sums must not depend on the order of the ids
    deviation = float(known.std()) if len(known) else 0.0
    if deviation < 1e-9:
        return np.zeros(len(values))
    return np.where(np.isnan(values), 0.0, (values - known.mean()) / deviation)


def reranked(scorer: Scorer, articles: Sequence[Article], limit: int) -> list[tuple[str, float]]:
    """Keys of the articles with their share of the highest possible score in [0, 1], best first.

    `feature_rows` decides which articles are ranked a second time; the others follow in the order of their first
    scores, with lower scores.
    """
    ranked, rest, features = feature_rows(scorer, articles, limit)
    highest = np.r_[np.ones(len(FEATURES)), features[:, len(FEATURES) :].max(axis=0, initial=0.0)]
    sums = features @ weights()
    shares = np.clip(sums / float(weights().clip(min=0.0) @ highest), MIN_SHARE, 1.0)
    exact = scorer.exact(ranked)
    order = sorted(range(len(ranked)), key=lambda row: (ranked[row].key != exact, -sums[row], ranked[row].key))
    scores = [(ranked[row].key, 1.0 if ranked[row].key == exact else float(shares[row])) for row in order]
    lowest = min((score for _, score in scores), default=1.0)
    first = rest[0].first if rest else 1.0
    return scores + [(article.key, lowest * 0.99 * article.first / first if first else 0.0) for article in rest]


CACHED_NAMES = 8_192
"""Titles of articles, and names of regulations, whose kinds are cached."""
ASKS_FOR_FORM = re.compile(r"서식|양식|신청서|별지|별표|부칙|신고서|확인서|form\b")
_BOILERPLATE_TITLE = explained(
    r"^(?:목\s*적|정\s*의|적용\s?범위|용어의?\s?정의|명\s*칭|시행\s?세칙|운영\s?세칙|준\s*용"
    r"|시행일|기\s*타|위임\s?규정|세부\s?사항|설\s*치|소\s*재|적용|다른 \S+과의 관계)",
    finds=("목 적", "용어의 정의"),
    refuses="휴학의 목적",
)
NAMED_ARTICLE = explained(
    r"(?P<name>[가-힣A-Za-z·ㆍ()「」『』\s]{2,60}?)[」』]?\s*(?:의\s*)?(?P<article>제\s*\d{1,4}\s*조(?:\s*의\s*\d{1,3})?)",
    finds="「학칙」 제20조",
    refuses="「학칙」 제20항",
)
_AUDIENCES: Sequence[tuple[re.Pattern[str], re.Pattern[str]]] = tuple(
    (re.compile(name), re.compile(question))
    for name, question in (
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


@functools.lru_cache(CACHED_NAMES)
def is_boilerplate(title: str) -> bool:
    """Whether the title is one that nearly every regulation has, such as 목적."""
    return bool(_BOILERPLATE_TITLE.search(title))


@functools.lru_cache(CACHED_NAMES)
def audiences_of_regulation(name: str) -> frozenset[int]:
    """The audiences and subjects that the name of a regulation is limited to."""
    return frozenset(number for number, (pattern, _) in enumerate(_AUDIENCES) if pattern.search(name))


def audiences_of_question(question: str) -> frozenset[int]:
    """The audiences and subjects that the question mentions."""
    return frozenset(number for number, (_, pattern) in enumerate(_AUDIENCES) if pattern.search(question))


class Role(NamedTuple):
    """What an article regulates: the words of a question that seek it, and the ends of titles that name it.

    신청자격 names who may, not how.
    """

    sought: frozenset[str]
    titled: re.Pattern[str]


ROLES: Mapping[str, Role] = {
    name: Role(frozenset(sought.split()), re.compile(rf"(?:{titled})(?=\s|및|[ㆍ·,]|$)"))
    for name, sought, titled in (
        ("definition", "정의 뜻 의미 종류 구분", "정의|구분|종류"),
        ("eligibility", "자격 요건 조건 대상", "자격|요건|조건|대상자?|제한|제외|불가"),
        ("period", "기간 시기 기한 연한", "기간|시기|기한|연한"),
        ("procedure", "신청 절차 방법 서류", "신청|절차|방법|서류|선발|추천|추대"),
        ("benefits", "혜택 대우 처우 보수 급여", "처우|대우|보수|혜택|지원내용"),
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
    sought = [name for name, role in ROLES.items() if not role.sought.isdisjoint(words)]
    subject = [word for word in words if not any(word in role.sought for role in ROLES.values())]
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


NEAREST_SIGNAL = "regulation_similarity"
COMPARED = 5
"""First articles that must have vectors for `NEAREST_SIGNAL`: else the nearest one may not have been compared."""
FULL_SCORE = 2.0
"""Regulation score, in saturated rare terms, that counts as 1: nine of ten answerable questions stay below it."""


def signals(
    reading: QuestionReading, ranked: Sequence[Article], lexical: Mapping[str, float], scorer: Scorer, rare_term: float
) -> dict[str, float]:
    """The signals of `ranked`, best first; each in [0, 1].

    `lexical` is the BM25 score of each article, not divided by what the question can reach: people who use everyday
    words reach little. `rare_term` is the highest score of a term that one passage contains.
    """
    if not ranked:
        return dict.fromkeys((name for name in PACK_SIGNALS if name != NEAREST_SIGNAL), 0.0)
    regulation = {article.key: article.regulation for article in ranked}
    best = max(regulation_scores({key: lexical[key] for key in regulation}, regulation).values())
    is_named = scorer.exact(ranked[:1]) is not None
    if is_named:
        best = FULL_SCORE * rare_term
    words = len(words_of(reading.question))
    explained = {position for match in reading.matches if match.size > 1 for position in match.words}
    first = ranked[0]
    similarities = [article.similarity for article in ranked if article.similarity is not None]
    known = all(article.similarity is not None for article in ranked[:COMPARED])
    return {
        "regulation_score": min(1.0, best / rare_term / FULL_SCORE) if rare_term > 0.0 else 0.0,
        "regulation_situations": min(1.0, len(explained) / words) if words else 0.0,
        "regulation_covered": float(scorer.covers_all(first) or is_named),
        **({NEAREST_SIGNAL: max(similarities)} if known else {}),
    }
