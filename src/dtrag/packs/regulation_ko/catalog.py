"""The regulations of a collection as citations see them: names, articles, deleted articles, appendices, addenda."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Number = tuple[int, int]
"""Number and minor number of an article: 제15조의2 is (15, 2), 제15조 is (15, 0)."""

_NOT_LETTERS = re.compile(r"[\s․·ㆍ・‧･•⸱\-()「」『』]+")
_LABEL = re.compile(r"제\s*(\d{1,4})\s*조(?:\s*의\s*(\d{1,3}))?")
_DELETED = re.compile(
    r"(?m)^[ \t*#]*제\s*(\d{1,4})\s*조(?:\s*의\s*(\d{1,3}))?"
    r"(?:\s*(?:부터|내지|[~∼～\-])\s*제\s*(\d{1,4})\s*조(?:\s*의\s*(\d{1,3}))?(?:\s*까지)?)?"
    r"\s*(?:[(（][^()（）\n]*[)）])?\s*[<〈(（\[]?\s*삭\s*제"
)
_DELETED_APPENDIX = re.compile(
    r"(?m)^[ \t*]*[<〈\[(（【「〔［]?\s*"
    r"(별\s*[표지첨](?:\s*(?:서식)?\s*제?\s*\d+(?:\s*[-–의]\s*\d+)*\s*호?)?(?:\s*서\s*식)?)"
    r"\s*[>〉\])）】」〕］]?\s*[<〈(（\[]\s*삭\s*제"
)
_INSTITUTION = re.compile(r"^(?:학교법인[가-힣]+?(?=정관)|[가-힣]+?대학교(?=.))")
_APPENDIX_SPACE = re.compile(r"[\s#]+")
_WITH_BRACKETS = re.compile(r"[\s․·ㆍ・‧･•⸱]+")
WIDEST_DELETED = 60
SHORTEST_OWN = 4
"""Characters of a name that a source may shorten by the name of the body that both belong to."""


@dataclass(frozen=True, slots=True)
class Outline:
    """One regulation: `articles` and `repealed` hold article numbers, `appendices` folded label -> label."""

    name: str
    code: str = ""
    articles: frozenset[Number] = frozenset()
    repealed: frozenset[Number] = frozenset()
    appendices: Mapping[str, str] = field(default_factory=dict)
    has_addendum: bool = False
    repealed_appendices: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Catalog:
    """Regulations by folded name, and the short names that they go by (학칙, 대학원학칙, 정관)."""

    by_name: Mapping[str, Outline]
    short: Mapping[str, tuple[Outline, ...]]
    institutions: tuple[str, ...]

    @classmethod
    def of(cls, outlines: Iterable[Outline]) -> Catalog:
        """The catalog of these regulations; of two with one name the first counts."""
        by_name: dict[str, Outline] = {}
        short: dict[str, list[Outline]] = {}
        institutions: dict[str, None] = {}
        for outline in outlines:
            folded = folded_name(outline.name)
            by_name.setdefault(folded, outline)
            by_name.setdefault(_WITH_BRACKETS.sub("", outline.name), outline)
            found = _INSTITUTION.match(folded)
            if found:
                institutions[found.group()] = None
                short.setdefault(folded[found.end() :], []).append(outline)
        return cls(by_name, {name: tuple(owners) for name, owners in short.items()}, tuple(institutions))

    def longest(self) -> int:
        """Characters of the longest folded name."""
        return max(map(len, self.by_name), default=0)

    def named(self, folded: str, source: Outline | None = None) -> Outline | None:
        """The regulation of this folded name; a short name that several go by belongs to the source's own branch."""
        if folded in self.by_name:
            return self.by_name[folded]
        if folded in {"학칙", "정관"}:
            return self._branch(folded, source)
        owners = self.short.get(folded, ())
        return owners[0] if owners else self._of_same_body(folded, source)

    def _of_same_body(self, folded: str, source: Outline | None) -> Outline | None:
        """구매규정, cited by 산학협력단구매세칙, is 산학협력단구매규정."""
        if source is None or len(folded) < SHORTEST_OWN:
            return None
        own = folded_name(source.name)
        return next(
            (self.by_name[own[:length] + folded] for length in range(2, 12) if own[:length] + folded in self.by_name),
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
        general = [outline for outline in owners if not re.search("대학원|산학협력단", outline.name)]
        return min(general or owners, key=lambda outline: len(outline.name), default=None)


def folded_name(name: str) -> str:
    """A regulation's name without white space, middle dots and brackets, as names are compared."""
    return _NOT_LETTERS.sub("", name)


def article_number(label: str) -> Number | None:
    """(15, 2) of 제15조의2."""
    found = _LABEL.match(label)
    return (int(found[1]), int(found[2] or 0)) if found else None


def article_label(number: Number) -> str:
    """제15조의2 of (15, 2)."""
    return f"제{number[0]}조의{number[1]}" if number[1] else f"제{number[0]}조"


def deleted_articles(text: str) -> frozenset[Number]:
    """The articles of which the regulation's text says 삭제, ranges included."""
    deleted: set[Number] = set()
    for found in _DELETED.finditer(text):
        first = (int(found[1]), int(found[2] or 0))
        deleted.add(first)
        if found[3]:
            last = (int(found[3]), int(found[4] or 0))
            deleted.add(last)
            if last[0] - first[0] <= WIDEST_DELETED:
                deleted |= {(number, 0) for number in range(first[0] + 1, last[0])}
                if first[0] == last[0]:
                    deleted |= {(first[0], minor) for minor in range(first[1], last[1] + 1) if minor}
    return frozenset(deleted)


def deleted_appendices(text: str) -> frozenset[str]:
    """Folded labels of the appendices of which the regulation's text says 삭제."""
    return frozenset(folded_appendix(found[1]) for found in _DELETED_APPENDIX.finditer(text))


def folded_appendix(label: str) -> str:
    """A form of the label that spelling does not change: 별표1의2, 별지1호서식."""
    folded = _APPENDIX_SPACE.sub("", label).replace("제", "").replace("양식", "서식").replace("–", "-")
    numbered = re.fullmatch(r"(별[표지첨])서식(\d.*)", folded)
    return f"{numbered[1]}{numbered[2]}서식" if numbered else folded.replace("의", "-")
