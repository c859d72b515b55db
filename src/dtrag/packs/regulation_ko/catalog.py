"""The regulations of a collection as citations need them: names, articles, deleted articles, appendices, addenda."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Number = tuple[int, int]
"""Number and minor number of an article: 제15조의2 is (15, 2), 제15조 is (15, 0)."""

_NOT_LETTERS = re.compile(r"[\s․·ㆍ・‧･•⸱\-()「」『』]+")
_LABEL = re.compile(r"제\s*(\d{1,4})\s*조(?:\s*의\s*(\d{1,3}))?")
_INSTITUTION = re.compile(r"^(?:학교법인[가-힣]+?(?=정관)|[가-힣]+?대학교(?=.))")
_APPENDIX_SPACE = re.compile(r"[\s#]+")
_WITH_BRACKETS = re.compile(r"[\s․·ㆍ・‧･•⸱]+")
MIN_SHARED_LENGTH = 4
"""Length from which on a name may lack the name of the organisation that it shares with the citing regulation."""


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
    """Regulations by folded name, and by short names (학칙, 대학원학칙, 정관)."""

    by_name: Mapping[str, Outline]
    short: Mapping[str, tuple[Outline, ...]]
    institutions: tuple[str, ...]

    @classmethod
    def of(cls, outlines: Iterable[Outline]) -> Catalog:
        """The catalog of these regulations; of two with the same name, the first one."""
        by_name: dict[str, Outline] = {}
        short: dict[str, list[Outline]] = {}
        institutions: dict[str, None] = {}
        for outline in outlines:
            folded = folded_name(outline.name)
            by_name.setdefault(folded, outline)
            by_name.setdefault(_WITH_BRACKETS.sub("", outline.name), outline)
            institution = _INSTITUTION.match(folded)
            if institution:
                institutions[institution.group()] = None
                short.setdefault(folded[institution.end() :], []).append(outline)
        return cls(by_name, {name: tuple(owners) for name, owners in short.items()}, tuple(institutions))

    def longest(self) -> int:
        """Characters of the longest folded name."""
        return max(map(len, self.by_name), default=0)

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
    match = _LABEL.match(label)
    return (int(match[1]), int(match[2] or 0)) if match else None


def article_label(number: Number) -> str:
    """제15조의2 of (15, 2)."""
    return f"제{number[0]}조의{number[1]}" if number[1] else f"제{number[0]}조"


def folded_appendix(label: str) -> str:
    """The label without differences of spelling: 별표1의2, 별지1호서식."""
    folded = _APPENDIX_SPACE.sub("", label).replace("제", "").replace("양식", "서식").replace("–", "-")
    numbered = re.fullmatch(r"(별[표지첨])서식(\d.*)", folded)
    return f"{numbered[1]}{numbered[2]}서식" if numbered else folded.replace("의", "-")


def appendix_labels(owner: Outline, label: str) -> tuple[str, ...]:
    """The appendices that a label means: one, or all parts of it (별표 1-1 and 1-2 of 별표 1)."""
    exact = appendix_label(owner, label)
    if exact is not None:
        return (exact,)
    number = re.fullmatch(r"(별[표지첨]\d+)(?:호?서식)?", folded_appendix(label))
    if number is None:
        return ()
    parts = (f"{number[1]}-", f"{number[1]}(")
    return tuple(sorted(written for folded, written in owner.appendices.items() if folded.startswith(parts)))


def appendix_label(owner: Outline, label: str) -> str | None:
    """The label of an appendix as the regulation `owner` writes it; None when it has no such appendix."""
    folded = folded_appendix(label)
    if folded in owner.appendices:
        return owner.appendices[folded]
    digits = re.search(r"\d", folded)
    same_kind = [other for other in owner.appendices if other.startswith(folded[:2])]
    if not digits:
        return owner.appendices[same_kind[0]] if len(same_kind) == 1 else None
    number = folded.replace("호", "").replace("서식", "")
    matching = [other for other in same_kind if other.replace("호", "").replace("서식", "") == number]
    return owner.appendices[matching[0]] if matching else None
