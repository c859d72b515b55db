"""The regulations of a collection as citations need them: names, articles, appendices, addenda, what was deleted."""

from __future__ import annotations

import functools
import re
import uuid
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from dtrag.core.editions import folded_name
from dtrag.core.provisions import ProvisionCitation
from dtrag.core.text.patterns import DIGITS, explained
from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.citation_patterns import PREFIXES
from dtrag.regulations.korean.spelling import letters, within_one

Number = tuple[int, int]
"""Number and minor number of an article: 제15조의2 is (15, 2), 제15조 is (15, 0)."""

_ByFirstLetters = Mapping[str, Sequence[str]]
AppendixKey = tuple[str, tuple[int, ...]]
"""The kind of an appendix (별표) and its numbers."""

ARTICLE_NUMBER = re.compile(r"제\s*(\d{1,4})\s*조(?:\s*의\s*(\d{1,3}))?")
_INSTITUTION = re.compile(r"^(?:학교법인[가-힣]+?(?=정관)|[가-힣]+?대학교(?=.))")
_WITH_BRACKETS = re.compile(r"[\s․·ㆍ・‧･•⸱]+")
ORDERED_OUTLINES = 512
"""Regulations whose articles stay cached in order."""
LONGEST_APPENDIX_RANGE = 100
MIN_SIMILARITY = 0.7
"""Dice coefficient of the pairs of letters of two names, endings aside, from which on one is near the other."""
LONGEST_NAME = 100
FIRST_LETTERS = 2
LONGEST_ORGANISATION = 11
MIN_SHARED_LENGTH = 4
"""Length from which on a name may lack the name of the organisation that it shares with the citing regulation."""


ENDING = re.compile(
    r"(?:(?:시행|운영)\s?세칙|시행\s?규칙|규정|세칙|규칙|학칙|정관|지침|내규|요령|준칙|강령|요강|규약|헌장|기준|회칙|편람)$"
)
NOT_NAMES = frozenset(
    "변경규정 개정규정 종전규정 신설규정 구규정 신규정 현규정 전규정 "
    "규정 세칙 규칙 지침 내규 기준 요령 준칙 강령 요강 규약 헌장 회칙 편람 시행세칙 운영세칙 시행규칙 관련규정 "
    "관계규정 해당규정 내부규정 학교규정 대학규정 교내규정 별도규정 제반규정 일반규정 기존규정 현행규정 상위규정 "
    "하위규정 운영규정 처벌규정 벌칙규정 금지규정 경과규정 준용규정 위임규정 임의규정 강행규정 특례규정 예외규정 "
    "처리규정 보칙규정 관련지침 운영지침 세부지침 업무지침 내부지침 세부기준 평가기준 심사기준 지급기준 선발기준 "
    "적용기준 운영기준 판단기준 산정기준 배점기준 시행지침 관련규칙 관계법령 자체규정 제규정 본규정 동규정 이규정 "
    "타규정 각규정 위규정 그규정 근거규정 의무규정 선언규정 정의규정 목적규정 조항 대학학칙".split()
)
"""Words that end as a name does and name nothing."""
_OWN_UNIVERSITY = frozenset({"본대학교", "본교", "우리대학교", "대학교"})


@dataclass(frozen=True, slots=True)
class Outline:
    """One regulation: `articles` and `repealed` hold article numbers, `appendices` folded label -> label.

    `divisions` are its chapters with the articles directly below each: ("제7장", "제2절") -> articles. `renamed` are
    its own former names, `replaced` those of rules that its addenda abolish or continue.
    """

    name: str
    code: str = ""
    articles: frozenset[Number] = frozenset()
    repealed: frozenset[Number] = frozenset()
    appendices: Mapping[str, str] = field(default_factory=dict)
    has_addendum: bool = False
    repealed_appendices: frozenset[str] = frozenset()
    divisions: Mapping[tuple[str, ...], tuple[Number, ...]] = field(default_factory=dict)
    renamed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a text: of the regulation `owner`, or of none; then `near` is the most similar one.

    `successor` is the regulation that replaced the one of this name. `is_law` is true for laws and rules of the state,
    which no collection contains. `other_code` is a code (3-1-2) beside the name that is not that of the owner.
    """

    start: int
    end: int
    text: str
    owner: Outline | None = None
    near: Outline | None = None
    successor: Outline | None = None
    is_law: bool = False
    other_code: str = ""


@dataclass(frozen=True)
class Catalog:
    """Regulations by folded name, by short names (학칙, 대학원학칙, 정관), and by the names of what they replaced."""

    by_name: Mapping[str, Outline]
    short: Mapping[str, tuple[Outline, ...]]
    institutions: tuple[str, ...]
    successors: Mapping[str, Outline] = field(default_factory=dict)
    by_code: Mapping[str, Outline] = field(default_factory=dict)

    @classmethod
    def of(cls, outlines: Iterable[Outline]) -> Catalog:
        """The catalog of these regulations; of two with the same name, the first one."""
        by_name: dict[str, Outline] = {}
        short: dict[str, list[Outline]] = {}
        institutions: dict[str, None] = {}
        outlines = tuple(outlines)
        for outline in outlines:
            folded = folded_name(outline.name)
            by_name.setdefault(folded, outline)
            by_name.setdefault(_WITH_BRACKETS.sub("", outline.name), outline)
            institution = _INSTITUTION.match(folded)
            if institution:
                institutions[institution.group()] = None
                short.setdefault(folded[institution.end() :], []).append(outline)
        short_names = {name: tuple(owners) for name, owners in short.items()}
        successors: dict[str, Outline] = {}
        for field_name, names in (("renamed", by_name), ("replaced", successors)):
            former: dict[str, list[Outline]] = {}
            for outline in outlines:
                for name in getattr(outline, field_name):
                    former.setdefault(folded_name(name), []).append(outline)
            for name, owners in former.items():
                if len({owner.name for owner in owners}) == 1 and name not in by_name and name not in short_names:
                    names[name] = owners[0]
        by_code = {outline.code: outline for outline in reversed(outlines) if outline.code}
        return cls(by_name, short_names, tuple(institutions), successors, by_code)

    @functools.cached_property
    def prefixes(self) -> Mapping[str, Sequence[str]]:
        """First letter -> what may precede a name with it: 본교, 동, or an institution."""
        by_letter: dict[str, list[str]] = defaultdict(list)
        for prefix in (*PREFIXES, *self.institutions):
            by_letter[prefix[0]].append(prefix)
        return by_letter

    @functools.cached_property
    def _by_start(self) -> Mapping[str, Sequence[str]]:
        return _by_first_letters({*self.by_name, *self.short, *self.successors, "학칙", "정관"})

    @functools.cached_property
    def _of_organisations(self) -> dict[str, Mapping[str, Sequence[str]]]:
        return {}

    def exact(self, name: str, source: Outline | None = None) -> Outline | None:
        """The regulation of this name, with or without a prefix; blanks, dots and quotation marks do not count.

        `source` is the regulation whose text names it, if any: 학칙 in the rules of a graduate school is that school's.
        """
        folded = folded_name(name)
        for prefix in ("", *self.prefixes.get(folded[:1], ())):
            rest = folded[len(prefix) :]
            if not folded.startswith(prefix) or rest in NOT_NAMES:
                continue
            is_general = prefix in _OWN_UNIVERSITY and rest == "학칙"
            owner = self.named(rest, None if is_general else source)
            if owner is not None:
                return owner
        return None

    def by_first_letters(
        self, source: Outline | None
    ) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
        """First letters -> names, the longest first; and those without the organisation that `source` shares."""
        return self._by_start, self._names_of_same_organisation(source) if source else {}

    def end_of_name(self, folded: str, start: int, source: Outline | None) -> Iterator[int]:
        """Where names that start here end in a folded text, the longest first, also without the shared organisation."""
        first = folded[start : start + FIRST_LETTERS]
        candidates = chain.from_iterable(names.get(first, ()) for names in self.by_first_letters(source))
        return (start + len(name) for name in candidates if folded.startswith(name, start))

    def _names_of_same_organisation(self, source: Outline) -> Mapping[str, Sequence[str]]:
        names = self._of_organisations.get(source.name)
        if names is None:
            own = folded_name(source.name)
            shared = ((name, _shared_length(own, name)) for name in self._by_two_letters.get(own[:2], ()))
            names = self._of_organisations[source.name] = _by_first_letters(
                {
                    name[length:]
                    for name, most in shared
                    for length in range(2, min(most, LONGEST_ORGANISATION) + 1)
                    if len(name) - length >= MIN_SHARED_LENGTH
                }
            )
        return names

    @functools.cached_property
    def citations_read(self) -> dict[tuple[uuid.UUID, str, bytes], Sequence[ProvisionCitation]]:
        """Document, label and hash of a text -> its citations, as far as they were read with this catalog."""
        return {}

    @functools.cached_property
    def _by_two_letters(self) -> Mapping[str, Sequence[str]]:
        """The names by their first two letters: the least that a name and that of its organisation share."""
        names: dict[str, list[str]] = defaultdict(list)
        for name in self.by_name:
            names[name[:2]].append(name)
        return names

    @functools.cached_property
    def _stems(self) -> tuple[Sequence[tuple[str, Outline]], Mapping[str, Sequence[int]]]:
        """The names without their endings, and pair of letters -> places in this list."""
        stems: list[tuple[str, Outline]] = []
        postings: dict[str, list[int]] = defaultdict(list)
        for name in sorted({*self.by_name, *self.short, "학칙", "정관"}):
            owner = self.named(name)
            if owner is not None:
                stem = ENDING.sub("", name)
                for pair in _pairs(stem):
                    postings[pair].append(len(stems))
                stems.append((stem, owner))
        return stems, postings

    def nearest(self, name: str) -> Outline | None:
        """The most similar regulation: the same but for its ending or one letter, or with most pairs of letters."""
        stem = ENDING.sub("", name)
        if len(stem) < 2:
            return None
        stems, postings = self._stems
        pairs = _pairs(stem)
        shared = Counter(index for pair in pairs for index in postings.get(pair, ()))
        best, highest = None, MIN_SIMILARITY
        for index in sorted(shared):
            other, owner = stems[index]
            similarity = 2 * shared[index] / (len(pairs) + len(_pairs(other)))
            if _differ_by_one(stem, other):
                similarity = max(similarity, 0.9)
            if similarity >= highest and (best is None or similarity > highest):
                best, highest = owner, similarity
        return best

    def named(self, folded: str, source: Outline | None = None) -> Outline | None:
        """The regulation of this folded name; of several with the same short name, that of the source's own branch."""
        if folded in self.by_name:
            return self.by_name[folded]
        if folded in {"학칙", "정관"}:
            return self._branch(folded, source)
        owners = self.short.get(folded, ())
        return owners[0] if owners else self._of_same_organisation(folded, source)

    def _of_same_organisation(self, folded: str, source: Outline | None) -> Outline | None:
        """구매규정, cited by 산학협력단구매세칙, is 산학협력단구매규정."""
        if source is None or len(folded) < MIN_SHARED_LENGTH:
            return None
        own = folded_name(source.name)
        return next(
            (
                self.by_name[own[:length] + folded]
                for length in range(2, LONGEST_ORGANISATION + 1)
                if own[:length] + folded in self.by_name
            ),
            None,
        )

    def _branch(self, ending: str, source: Outline | None) -> Outline | None:
        """학칙 or 정관: the source itself if it is one, else that of its branch (대학원 …), else the general one."""
        if source is not None and source.name.endswith(ending):
            return source
        owners = [outline for name, outline in self.by_name.items() if name.endswith(ending)]
        for branch in ("대학원", "산학협력단"):
            if source is not None and branch in source.name:
                own = [outline for outline in owners if branch in outline.name]
                if own:
                    return own[0]
        general = [outline for outline in owners if not any(word in outline.name for word in ("대학원", "산학협력단"))]
        return min(general or owners, key=lambda outline: len(outline.name), default=None)


def _by_first_letters(names: Iterable[str]) -> dict[str, list[str]]:
    by_start: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=len, reverse=True):
        if 1 < len(name) <= LONGEST_NAME:
            by_start[name[:FIRST_LETTERS]].append(name)
    return by_start


def _shared_length(name: str, other: str) -> int:
    """Letters with which both begin."""
    pairs = enumerate(zip(name, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(name), len(other)))


def _pairs(stem: str) -> list[str]:
    marked = f"^{stem}$"
    return [marked[at : at + 2] for at in range(len(marked) - 1)]


def _differ_by_one(name: str, other: str) -> bool:
    """Whether two names differ by one letter, or in one of at least three syllables."""
    if name == other or min(len(name), len(other)) < 2:
        return False
    if len(name) == len(other) >= 3 and sum(a != b for a, b in zip(name, other, strict=True)) == 1:
        return True
    return within_one(letters(name), letters(other))


def article_number(label: str) -> Number | None:
    """(15, 2) of 제15조의2."""
    match = ARTICLE_NUMBER.match(label)
    return (int(match[1]), int(match[2] or 0)) if match else None


def article_label(number: Number) -> str:
    """제15조의2 of (15, 2)."""
    return f"제{number[0]}조의{number[1]}" if number[1] else f"제{number[0]}조"


@functools.lru_cache(ORDERED_OUTLINES)
def ordered_articles(articles: frozenset[Number]) -> list[Number]:
    """The articles by number."""
    return sorted(articles)


def articles_between(owner: Outline, first: Number, last: Number) -> list[Number]:
    """The existing articles of a range, in order; its ends may be in either order."""
    articles = ordered_articles(owner.articles)
    return articles[bisect_left(articles, min(first, last)) : bisect_right(articles, max(first, last))]


def folded_appendix(label: str) -> str:
    """The label without differences of spelling: 별표1의2, 별지1호서식."""
    folded = "".join(label.replace("#", "").split()).replace("제", "").replace("양식", "서식").replace("–", "-")
    numbered = re.fullmatch(r"(별[표지첨])서식(\d.*)", folded)
    return f"{numbered[1]}{numbered[2]}서식" if numbered else folded.replace("의", "-")


def appendix_labels(owner: Outline, label: str) -> tuple[str, ...]:
    """The appendices that a label means: one, all parts of it (별표 1-1 and 1-2 of 별표 1), or all of its kind."""
    folded = folded_appendix(label)
    if folded in owner.appendices:
        return (owner.appendices[folded],)
    kind, numbers = appendix_key(folded)
    keyed = appendices_of_kind(owner, kind)
    same = tuple(written for key, written in keyed if key == numbers)
    return same[:1] or tuple(written for key, written in keyed if key[: len(numbers)] == numbers)


def appendices_of_kind(owner: Outline, kind: str) -> list[tuple[tuple[int, ...], str]]:
    """Numbers and labels of the appendices of a kind (별표), in the order of the numbers."""
    return sorted((appendix_key(other)[1], label) for other, label in owner.appendices.items() if other[:2] == kind)


def appendices_between(owner: Outline, first: str, last: str) -> tuple[str, ...]:
    """The existing appendices of a range (별지 제1호 내지 제6호), in the order of their numbers."""
    (kind, low), (_, high) = appendix_key(folded_appendix(first)), appendix_key(folded_appendix(last))
    keyed = appendices_of_kind(owner, kind)
    return tuple(label for numbers, label in keyed if low <= numbers and numbers[: len(high)] <= high)


def appendix_key(folded: str) -> AppendixKey:
    """The kind of a folded label, and its numbers."""
    return folded[:2], tuple(int(number) for number in DIGITS.findall(folded))


def appendix_range(first: str, last: str) -> list[str]:
    """The labels of a range, those of absent appendices included: 별지 1, 별지 2 … for 별지 제1호 내지 제6호."""
    low, high = appendix_key(folded_appendix(first)), appendix_key(folded_appendix(last))
    if len(low[1]) != 1 or len(high[1]) != 1:
        return [first, last]
    end = min(high[1][0], low[1][0] + LONGEST_APPENDIX_RANGE)
    return [f"{low[0]} {number}" for number in range(low[1][0], end + 1)]


def has_division(owner: Outline, label: str) -> bool:
    """Whether the regulation has the division, with articles or without."""
    parts = tuple(label.split())
    return any(parts == path[at : at + len(parts)] for path in owner.divisions for at in range(len(path)))


def division_articles(owner: Outline, label: str, near: Number | None = None) -> tuple[Number, ...]:
    """The articles of a division (제10장, 제7장 제2절); of several with one label, that around the article `near`."""
    parts = tuple(label.split())
    within: dict[tuple[str, ...], list[Number]] = {}
    for path, numbers in owner.divisions.items():
        for place in range(len(path) - len(parts) + 1):
            if path[place : place + len(parts)] == parts:
                within.setdefault(path[:place], []).extend(numbers)
    if len(within) > 1:
        own = next((path for path, numbers in owner.divisions.items() if near in numbers), ())
        within = {outer: numbers for outer, numbers in within.items() if own[: len(outer)] == outer} or within
    return tuple(sorted(number for numbers in within.values() for number in numbers))


def appendix_label(owner: Outline, label: str) -> str | None:
    """The label of an appendix as the regulation `owner` writes it; None when it has no such appendix."""
    labels = appendix_labels(owner, label)
    is_part = len(labels) == 1 and appendix_key(folded_appendix(label))[1] not in {(), appendix_key(labels[0])[1]}
    return labels[0] if len(labels) == 1 and not is_part else None


LONGEST_LIST = 600
"""Characters before 폐지한다 that may list rules."""
MIN_NAME_LENGTH = 4
"""Length of the name of an abolished rule that is too short to identify one."""
_QUOTES = " 「」『』“”‘’\"'"
WIDEST_RANGE = 60
"""Articles that a range (제5조 내지 제9조) may delete."""
_BEFORE = r"(?m)^[ \t\r\f\u00a0\u3000*#]*+"
_ARTICLE = explained(
    rf"{_BEFORE}(?P<head>제\s*+(\d{{1,4}})\s*+조(?:\s*+의\s*+(\d{{1,3}}))?)"
    r"(?P<range>\s*+(?:부터|내지|[~∼～\-])\s*+제\s*+(\d{1,4})\s*+조(?:\s*+의\s*+(\d{1,3}))?(?:\s*+까지)?)?"
    r"(?P<title>\s*+[(（](?!\s*+삭\s*+제)[^()（）\n]*+[)）])?[*\s]*+[<〈(（\[]?\s*+삭\s*+제",
    finds=("제5조 삭제 <2020. 1. 1.>", "제3조 내지 제5조 삭 제"),
    refuses="다만 제5조 삭제",
)
_APPENDIX = explained(
    rf"{_BEFORE}(?:[<〈\[(（【「〔［]\s*+)?"
    r"(?P<label>별\s*+[표지첨](?:\s*+(?:서식)?\s*+제?\s*+\d+(?:\s*+[-–의]\s*+\d+)*+\s*+호?)?(?:\s*+서\s*+식)?)"
    r"\s*+[>〉\])）】」〕］]?\s*+[<〈(（\[]\s*+삭\s*+제",
    finds="[별표 2] <삭제 2020. 1. 1.>",
    refuses="[별표 2] 심사표",
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deleted provision: `label` (제5조, 별표 2) and the span of what remains, such as `삭제 <2020. 1. 1.>`."""

    kind: str
    label: str
    title: str
    number: Number | None
    start: int
    end: int


def deletions(text: str) -> Iterator[Deletion]:
    """The deleted articles and appendices, in the order of the text; every article of a range."""
    for match in _ARTICLE.finditer(text):
        title = (match["title"] or "").strip()[1:-1]
        start = match.start("head") if match["range"] else match.end("title" if title else "head")
        span = _span(text, start, match.end())
        for number in _numbers(match):
            yield Deletion("article", article_label(number), " ".join(title.split()), number, *span)
    for match in _APPENDIX.finditer(text):
        span = _span(text, match.end("label"), match.end())
        yield Deletion("appendix", " ".join(match["label"].split()), "", None, *span)


def _numbers(match: re.Match[str]) -> list[Number]:
    first = (int(match[2]), int(match[3] or 0))
    if not match["range"]:
        return [first]
    last = (int(match[5]), int(match[6] or 0))
    if last[0] - first[0] > WIDEST_RANGE:
        return [first, last]
    if first[0] == last[0]:
        between = [(first[0], minor) for minor in range(first[1] + 1, last[1])]
    else:
        between = [(number, 0) for number in range(first[0] + 1, last[0])]
    return list(dict.fromkeys([first, *between, last]))


def _span(text: str, start: int, inside: int) -> tuple[int, int]:
    """From `start` to the end of the line that contains `inside`, without blanks and the marks of Markdown."""
    end = text.find("\n", inside)
    end = len(text) if end < 0 else end
    while start < end and text[start] in " \t\r\n*)）>〉]】」〕］":
        start += 1
    while start < end and text[end - 1] in " \t\r*":
        end -= 1
    return start, end


def abolished_rules(text: str) -> Iterator[tuple[int, str, bool]]:
    """Place and name of the rules that an addendum abolishes (`true`) or creates: …, …세칙은 폐지한다."""
    for match in patterns.ABOLISHES.finditer(text):
        before = text[max(0, match.start() - LONGEST_LIST) : match.start()]
        names = before[max(before.rfind(mark) for mark in ".\n()") + 1 :]
        start = match.start() - len(names)
        separators = list(patterns.LIST_SEPARATOR.finditer(names))
        starts = [0, *(separator.end() for separator in separators)]
        ends = [*(separator.start() for separator in separators), len(names)]
        for first, last in zip(starts, ends, strict=True):
            name = names[first:last].strip()
            name = name[max(0, *(name.rfind(mark) for mark in "“「‘")) :] if name[-1:] in _QUOTES else name
            is_rule = patterns.ENDS_AS_RULE.search(name.rstrip(_QUOTES)) is not None and len(name) > MIN_NAME_LENGTH
            if is_rule and not patterns.FORMER_RULE.match(name):
                yield start + names.index(name, first), name, "폐지" in match.group()


def former_names(name: str, addenda: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Earlier names of a regulation, and names of the rules that it replaced, as its addenda mention them."""
    own = folded_name(name)
    renamed: dict[str, None] = {}
    replaced: dict[str, None] = {}
    for text in addenda:
        for match in patterns.RENAMES.finditer(text):
            names = match["before"], match["after"]
            if own in map(folded_name, names):
                renamed |= dict.fromkeys(names)
        replaced |= dict.fromkeys(
            rule.strip(_QUOTES) for _, rule, is_abolished in abolished_rules(text) if is_abolished
        )
        replaced |= dict.fromkeys(match[1] for match in patterns.CONTINUES.finditer(text))
    return (
        tuple(former for former in renamed if folded_name(former) != own),
        tuple(former for former in replaced if folded_name(former) != own and former not in renamed),
    )
