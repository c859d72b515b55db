"""Entities in a question about regulations: articles, procedures, requirements, benefits, deadlines, topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dtrag.core.text.patterns import explained

SECTION_CONFIDENCE = 0.95
KEYWORD_CONFIDENCE = 0.85


class EntityType(StrEnum):
    """The six kinds of SPEC-RAG-SEARCH-001."""

    SECTION = "section"
    PROCEDURE = "procedure"
    REQUIREMENT = "requirement"
    BENEFIT = "benefit"
    DEADLINE = "deadline"
    HYPERNYM = "hypernym"


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """`text` is `query[start:end]`; `confidence` lies in [0, 1]; `expanded_terms` are the matched word and words with
    the same or a broader meaning."""

    entity_type: EntityType
    text: str
    start: int
    end: int
    confidence: float
    expanded_terms: tuple[str, ...] = ()


_SECTION = explained(
    r"제?\s?\d{1,4}\s?조(?:\s?의\s?\d{1,3})?(?!원|[가-힣]*[차회])|제\s?\d{1,3}\s?(?:항|호)|(?<=조)\s?\d{1,3}\s?(?:항|호)",
    finds=("제15조의2", "제2항", "조 3항"),
    refuses=("3조원", "5조차"),
)

_RELATED: Mapping[str, Sequence[str]] = {
    "신청": ("신청서", "제출", "등록"),
    "절차": ("방법", "과정", "단계"),
    "방법": ("절차", "방식", "요령"),
    "발급": ("교부", "신청", "증명서"),
    "제출": ("접수", "신청", "서류"),
    "신고": ("보고", "제출", "신고서"),
    "등록": ("신청", "접수", "등재"),
    "신청서": ("신청", "제출", "서식"),
    "구비서류": ("서류", "제출", "첨부"),
    "서류": ("구비서류", "제출", "첨부"),
    "처리": ("절차", "조치", "결정"),
    "자격": ("요건", "조건", "대상"),
    "요건": ("자격", "조건", "기준"),
    "조건": ("요건", "자격", "기준"),
    "기준": ("요건", "조건", "산정"),
    "제한": ("금지", "상한", "범위"),
    "대상": ("자격", "범위", "해당자"),
    "충족": ("요건", "기준"),
    "요구": ("요건", "의무"),
    "필수": ("의무", "요건"),
    "선택": ("선발", "신청"),
    "우선": ("우선순위", "선발"),
    "혜택": ("지원", "지급", "감면"),
    "지급": ("지원", "급여", "지급액"),
    "지원": ("지급", "보조", "혜택"),
    "급여": ("보수", "봉급", "지급"),
    "보조": ("지원", "보조금"),
    "장학": ("장학금", "장학금 지급"),
    "수당": ("지급", "급여", "보수"),
    "비용": ("경비", "부담", "지급"),
    "경비": ("비용", "지급"),
    "지원금": ("지원", "보조금", "지급"),
    "장학금": ("장학금 지급", "장학금 지원", "재정 지원"),
    "기한": ("기간", "마감", "기일"),
    "마감": ("기한", "기간"),
    "날짜": ("기일", "일자", "기간"),
    "기간": ("기한", "연한", "일수"),
    "까지": ("기한", "기간"),
    "이내": ("기한", "기간"),
    "이전": ("기한", "시기"),
    "이후": ("기한", "시기"),
    "부터": ("기간", "시기"),
    "당일": ("기일", "일자"),
    "매월": ("월별", "지급일"),
    "매년": ("연도별", "연간"),
}
"""Keyword -> words of regulations with the same meaning (SPEC-RAG-SEARCH-001)."""

_KEYWORDS: Mapping[EntityType, Sequence[str]] = {
    EntityType.PROCEDURE: "신청서 구비서류 신청 절차 방법 발급 제출 신고 등록 서류 처리".split(),
    EntityType.REQUIREMENT: "자격 요건 조건 기준 제한 대상 충족 요구 필수 선택 우선".split(),
    EntityType.BENEFIT: "장학금 지원금 혜택 지급 지원 급여 보조 장학 수당 비용 경비".split(),
    EntityType.DEADLINE: "기한 마감 날짜 기간 까지 이내 이전 이후 부터 당일 매월 매년".split(),
}

HYPERNYMS: Mapping[str, tuple[str, ...]] = {
    "등록금": ("학사", "행정"),
    "장학금": ("재정", "지원"),
    "휴학": ("학적", "행정"),
    "복학": ("학적", "행정"),
    "자퇴": ("학적", "행정"),
    "전과": ("학적", "행정"),
    "졸업": ("학사", "행정"),
    "수강": ("학사", "행정"),
    "성적": ("학사", "행정"),
    "교수": ("교원", "임용"),
    "조교": ("교육", "지원"),
    "연구년": ("교원", "연구"),
    "연구비": ("연구", "지원"),
    "승진": ("인사", "임용"),
    "채용": ("인사", "임용"),
    "출장": ("여비", "복무"),
    "연차": ("휴가", "복무"),
    "기숙사": ("생활관", "후생"),
}
"""Topic -> broader topics, the nearest one first (at most two levels are used)."""

_BOUND = frozenset("까지 이내 부터 이전 이후".split())
"""Keywords that follow other words; all others begin a word or end a compound noun."""
_ADJECTIVE_ENDING = ("적", "인")


class RegulationEntityRecognizer:
    """Finds entities by patterns and keywords."""

    def recognize(self, query: str) -> list[EntityMatch]:
        """The entities in reading order, without overlap within a type."""
        matches = [*_sections(query), *_keywords(query), *_topics(query)]
        return sorted(matches, key=lambda match: (match.start, match.end, match.entity_type.value))


def names_section(query: str) -> bool:
    """Whether the query cites an article, paragraph or item by number (제15조, 제2항)."""
    return _SECTION.search(query) is not None


def _sections(query: str) -> Iterator[EntityMatch]:
    for match in _SECTION.finditer(query):
        text = match.group().strip()
        start = match.start() + (len(match.group()) - len(match.group().lstrip()))
        yield EntityMatch(EntityType.SECTION, text, start, start + len(text), SECTION_CONFIDENCE, (text,))


def _keywords(query: str) -> Iterator[EntityMatch]:
    for entity_type, keywords in _KEYWORDS.items():
        taken: set[int] = set()
        for keyword in keywords:  # a keyword comes before those that it contains
            for start, end in _places(keyword, query):
                span = range(start, end)
                if not taken.isdisjoint(span) or not _is_word_or_part(query, start, end, keyword):
                    continue
                taken.update(span)
                related = (keyword, *_RELATED.get(keyword, ()))
                yield EntityMatch(entity_type, keyword, start, end, KEYWORD_CONFIDENCE, related)


def _topics(query: str) -> Iterator[EntityMatch]:
    for topic, levels in HYPERNYMS.items():
        for start, end in _places(topic, query):
            yield EntityMatch(EntityType.HYPERNYM, topic, start, end, KEYWORD_CONFIDENCE, (topic, *levels))


def _places(word: str, query: str) -> Iterator[tuple[int, int]]:
    """Where the query has the word, without overlap."""
    start = query.find(word)
    while start >= 0:
        yield start, start + len(word)
        start = query.find(word, start + len(word))


def _is_word_or_part(query: str, start: int, end: int, keyword: str) -> bool:
    """Whether the keyword is a word or a part of a compound, not a syllable sequence inside another word."""
    before = query[start - 1] if start else " "
    is_inside = "가" <= before <= "힣"
    if keyword in _BOUND:
        return is_inside or before.isdigit() or before == " "
    return not query.startswith(_ADJECTIVE_ENDING, end) or not is_inside
