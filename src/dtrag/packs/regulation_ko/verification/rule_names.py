"""Which regulation of a collection a written name means: exactly, nearly, or none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import Catalog, Outline, folded_name
from dtrag.packs.regulation_ko.spelling import letters, within_one

MIN_SIMILARITY = 0.7
"""Dice coefficient of the pairs of letters of two names, endings aside, from which on one is near the other."""
MOST_NEAR_SEARCHES = 500
"""Unknown names of one text for which near names are searched."""
LONGEST_NAME = 100
ENDING = re.compile(
    r"(?:시행\s?세칙|운영\s?세칙|시행\s?규칙|규정|세칙|규칙|학칙|정관|지침|내규|요령|준칙|강령|요강|규약|헌장|기준|회칙|편람)$"
)
CODE = re.compile(r"\d{1,2}-\d{1,4}-\d{1,4}")
_NOT_NAMES = frozenset(
    "변경규정 개정규정 종전규정 신설규정 구규정 신규정 현규정 전규정 "
    "규정 세칙 규칙 지침 내규 기준 요령 준칙 강령 요강 규약 헌장 회칙 편람 시행세칙 운영세칙 시행규칙 관련규정 "
    "관계규정 해당규정 내부규정 학교규정 대학규정 교내규정 별도규정 제반규정 일반규정 기존규정 현행규정 상위규정 "
    "하위규정 운영규정 처벌규정 벌칙규정 금지규정 경과규정 준용규정 위임규정 임의규정 강행규정 특례규정 예외규정 "
    "처리규정 보칙규정 관련지침 운영지침 세부지침 업무지침 내부지침 세부기준 평가기준 심사기준 지급기준 선발기준 "
    "적용기준 운영기준 판단기준 산정기준 배점기준 시행지침 관련규칙 관계법령 자체규정 제규정 본규정 동규정 이규정 "
    "타규정 각규정 위규정 그규정 근거규정 의무규정 선언규정 정의규정 목적규정 조항 대학학칙".split()
)
"""Words that end as a name does and name nothing."""


class RuleNames:
    """Finds and compares the names of a catalog, with those of `own`, which have priority."""

    def __init__(self, catalog: Catalog, own: Iterable[Outline] = ()) -> None:
        own = tuple(own)
        self._catalog = catalog
        outlines = {id(outline): outline for outline in catalog.by_name.values()}.values()
        self._by_code = {outline.code: outline for outline in reversed([*outlines]) if outline.code}
        self._prefixes = ("", *patterns.PREFIXES, *catalog.institutions)
        self._own = {form: outline for outline in own for form in (folded_name(outline.name), outline.name)}
        names = {*catalog.by_name, *catalog.short, *catalog.successors, "학칙", "정관"}
        names |= self._own.keys()
        self._by_start: dict[str, list[str]] = defaultdict(list)
        for name in sorted(names, key=len, reverse=True):
            if 1 < len(name) <= LONGEST_NAME:
                self._by_start[name[:2]].append(name)
        self._near: dict[str, Outline | None] = {}
        self._postings: dict[str, list[int]] = defaultdict(list)
        self._stems: list[tuple[str, Outline]] = []
        self._index_stems(names)

    def exact(self, name: str, source: Outline | None = None) -> Outline | None:
        """The regulation of this name, short name or code; blanks, middle dots and quotation marks are ignored.

        `source` is the regulation whose text names it, if any: 학칙 in the rules of a graduate school is that school's.
        """
        written = name.strip()
        if written in self._by_code:
            return self._by_code[written]
        folded = folded_name(written)
        for prefix in self._prefixes:
            if folded.startswith(prefix):
                regulation = self._named(folded[len(prefix) :], source)
                if regulation is not None:
                    return regulation
        return None

    def successor(self, name: str) -> Outline | None:
        """The regulation that replaced the one of this name."""
        return self._catalog.successors.get(folded_name(name))

    def by_code(self, code: str) -> Outline | None:
        """The regulation with this code."""
        return self._by_code.get(code)

    def near(self, name: str) -> Outline | None:
        """The most similar regulation: the same but for its ending or one letter, or with most pairs of letters."""
        folded = folded_name(name)
        for prefix in patterns.PREFIXES[:8]:
            if folded.startswith(prefix) and len(folded) > len(prefix) + 4:
                folded = folded[len(prefix) :]
                break
        if folded not in self._near:
            if len(self._near) >= MOST_NEAR_SEARCHES:
                return None
            self._near[folded] = self._nearest(folded)
        return self._near[folded]

    def occurrences(self, text: str, source: Outline | None = None) -> Iterator[tuple[int, int, Outline | None]]:
        """Start, end and regulation (None of a replaced one) of the names in a text, none within another."""
        places = [place for place, character in enumerate(text) if character not in _SKIPPED]
        folded = "".join(text[place] for place in places)
        behind = 0
        for index, place in enumerate(places):
            if index < behind or (place and _in_word(text[place - 1])):
                continue
            for prefix in self._prefixes:
                if not folded.startswith(prefix, index):
                    continue
                end = self._longest_at(text, folded, places, index + len(prefix))
                regulation = self.exact(folded[index:end], source) if end else None
                if regulation is not None or (end and self.successor(folded[index:end])):
                    yield place, places[end - 1] + 1, regulation
                    behind = end
                    break

    def _longest_at(self, text: str, folded: str, places: list[int], start: int) -> int:
        """Where the longest name that starts here ends; 0 if none does."""
        for name in self._by_start.get(folded[start : start + 2], ()):
            end = start + len(name)
            if not folded.startswith(name, start):
                continue
            after = text[places[end - 1] + 1 : places[end - 1] + 2]
            if not _in_word(after) or ("가" <= after <= "힣" and patterns.PARTICLE_AFTER.match(folded, end)):
                return end
        return 0

    def _named(self, folded: str, source: Outline | None = None) -> Outline | None:
        if folded in self._own:
            return self._own[folded]
        if folded in _NOT_NAMES:
            return None
        return self._catalog.named(folded, source)

    def _index_stems(self, names: set[str]) -> None:
        for name in sorted(names):
            regulation = self._named(name)
            if regulation is not None:
                stem = ENDING.sub("", name)
                for pair in _pairs(stem):
                    self._postings[pair].append(len(self._stems))
                self._stems.append((stem, regulation))

    def _nearest(self, folded: str) -> Outline | None:
        stem = ENDING.sub("", folded)
        if len(stem) < 2:
            return None
        pairs = _pairs(stem)
        shared: dict[int, int] = defaultdict(int)
        for pair in pairs:
            for index in self._postings.get(pair, ()):
                shared[index] += 1
        best, highest = None, MIN_SIMILARITY
        for index in sorted(shared):
            other, regulation = self._stems[index]
            similarity = 2 * shared[index] / (len(pairs) + len(_pairs(other)))
            if _differ_by_one(stem, other):
                similarity = max(similarity, 0.9)
            if similarity >= highest and (best is None or similarity > highest):
                best, highest = regulation, similarity
        return best


def _differ_by_one(one: str, other: str) -> bool:
    """Whether two names differ by one letter, or in one of at least three syllables."""
    if one == other or min(len(one), len(other)) < 2:
        return False
    if len(one) == len(other) >= 3 and sum(a != b for a, b in zip(one, other, strict=True)) == 1:
        return True
    return within_one(letters(one), letters(other))


def is_generic(name: str) -> bool:
    """Whether the words are no name: 관련 규정, 내부 지침."""
    return folded_name(name) in _NOT_NAMES


def is_of_the_state(name: str) -> bool:
    """Whether the name is one of a law or of a rule that the state issues."""
    stripped = name.strip()
    folded = folded_name(stripped)
    if is_decree(name):
        return True
    is_law = patterns.LAW_ENDING.search(stripped) is not None and not patterns.NOT_LAW.search(stripped)
    if is_law and (_STATE_ORDINANCE.search(folded) or not ENDING.search(stripped)):
        return True
    return (is_law or ENDING.search(stripped) is not None) and patterns.STATE_RULE.search(folded) is not None


def is_decree(name: str) -> bool:
    """Whether the name is that of a well-known rule of the state whose name looks like that of a regulation."""
    return folded_name(name) in _DECREES


_STATE_ORDINANCE = re.compile(r"(?:에관한|시행|회계)규칙$")
_SKIPPED = frozenset(f" \t\u00a0\u3000{patterns.DOTS}")
_DECREES = frozenset(
    folded_name(name)
    for name in (
        "대학설립·운영규정",
        "대학설립ㆍ운영 규정",
        "보안업무규정",
        "사학기관 재무·회계 규칙",
        "대학교원 자격기준 등에 관한 규정",
        "교수자격기준 등에 관한 규정",
        "공용차량 관리 규정",
        "연구윤리 확보를 위한 지침",
        "대학등록금에 관한 규칙",
        "학력인정 규칙",
        "학교 회계 규칙",
        "여비규정",
        "원격교육 설비 기준 고시",
    )
)


def _in_word(character: str) -> bool:
    return "가" <= character <= "힣" or (character.isascii() and character.isalnum())


def _pairs(stem: str) -> list[str]:
    marked = f"^{stem}$"
    return [marked[at : at + 2] for at in range(len(marked) - 1)]
