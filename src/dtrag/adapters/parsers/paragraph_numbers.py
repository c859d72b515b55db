"""The numbers that word processors write before paragraphs, and the bullets of Hangul, which are not in their text.

A numbering has a form for each of up to ten levels, such as `제^1장` or `(^5)`, in which `^1` stands for the number of
the first level (KS X 6101, element `paraHead`; ECMA-376-1, 17.9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Self

from dtrag.adapters.parsers.blocks import whole_number

Element = Any  # lxml elements
LONGEST_FORM = 40
"""Characters of a form or a bullet that are used: they stand before every paragraph, and none is longer."""
MOST_LEVELS = 10
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV")
SERIES: Mapping[str, Sequence[str]] = {
    "ROMAN_CAPITAL": _ROMAN,
    "ROMAN_SMALL": tuple(map(str.lower, _ROMAN)),
    "LATIN_CAPITAL": ascii_uppercase,
    "LATIN_SMALL": ascii_lowercase,
    "HANGUL_SYLLABLE": "가나다라마바사아자차카타파하",
    "HANGUL_JAMO": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "HANGUL_PHONETIC": "일이삼사오육칠팔구십",
    "IDEOGRAPH": "一二三四五六七八九十",
    "CIRCLED_DIGIT": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "CIRCLED_LATIN_CAPITAL": "ⒶⒷⒸⒹⒺⒻⒼⒽⒾⒿⓀⓁⓂⓃⓄⓅⓆⓇⓈⓉⓊⓋⓌⓍⓎⓏ",
    "CIRCLED_LATIN_SMALL": "ⓐⓑⓒⓓⓔⓕⓖⓗⓘⓙⓚⓛⓜⓝⓞⓟⓠⓡⓢⓣⓤⓥⓦⓧⓨⓩ",
    "CIRCLED_HANGUL_SYLLABLE": "㉮㉯㉰㉱㉲㉳㉴㉵㉶㉷㉸㉹㉺㉻",
    "CIRCLED_HANGUL_JAMO": "㉠㉡㉢㉣㉤㉥㉦㉧㉨㉩㉪㉫㉬㉭",
}
"""Kinds of numbers other than digits, by their names in HWPX; numbers beyond a series are written in digits."""


@dataclass(frozen=True, slots=True)
class NumberLevel:
    """One level of a numbering. `in_digits`: the numbers of all levels are digits here."""

    form: str
    series: Sequence[str]
    start: int = 1
    in_digits: bool = False

    def shown(self, number: int) -> str:
        """A number of this level."""
        return self.series[number - 1] if 0 < number <= len(self.series) else str(number)


@dataclass(slots=True)
class ParagraphNumbers:
    """Counts through one document. `outline`: the numbering of outline paragraphs in the present section."""

    numberings: Mapping[str, Sequence[NumberLevel]] = field(default_factory=dict)
    bullets: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[str, str, int]] = field(default_factory=dict)
    outline: str = ""
    _counts: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, header: Element) -> Self:
        """From the root of `header.xml`."""
        numberings = {
            each.get("id", ""): [
                NumberLevel(
                    head.text or "", SERIES.get(head.get("numFormat", ""), ()), whole_number(head.get("start"), 1)
                )
                for head in sorted(each.iterfind("{*}paraHead"), key=lambda head: whole_number(head.get("level")))
            ]
            for each in header.iter("{*}numbering")
        }
        bullets = {each.get("id", ""): each.get("char", "") for each in header.iter("{*}bullet")}
        shapes = {
            shape.get("id", ""): (heading.get("type", ""), heading.get("idRef", ""), whole_number(heading.get("level")))
            for shape in header.iter("{*}paraPr")
            for heading in shape.iter("{*}heading")
            if heading.get("type") in ("OUTLINE", "NUMBER", "BULLET")
        }
        return cls(numberings, bullets, shapes)

    def before(self, shape: str) -> str:
        """What stands before the next paragraph of this shape; "" for most."""
        kind, name, level = self.shapes.get(shape, ("", "", 0))
        if kind == "BULLET":
            return self.bullets.get(name, "")[:LONGEST_FORM]
        return self.count(self.outline if kind == "OUTLINE" else name, level) if kind else ""

    def count(self, name: str, level: int) -> str:
        """The next number at this level of a numbering; "" if it has no such level or no form there."""
        levels = self.numberings.get(name, ())
        if level >= min(len(levels), MOST_LEVELS):
            return ""
        counts = self._counts_to(name, level)
        counts[level] += 1
        text = levels[level].form[:LONGEST_FORM]
        for place in range(level, -1, -1):
            each = levels[place]
            number = counts[place] if place == level else max(counts[place], each.start)
            text = text.replace(f"^{place + 1}", str(number) if levels[level].in_digits else each.shown(number))
        return text

    def restart(self, name: str, level: int, start: int) -> None:
        """Let the next number at this level be `start`."""
        if level < min(len(self.numberings.get(name, ())), MOST_LEVELS):
            self._counts_to(name, level)[level] = start - 1

    def _counts_to(self, name: str, level: int) -> list[int]:
        """The last number of each level down to this one; those of deeper levels are forgotten."""
        counts = self._counts.setdefault(name, [])
        del counts[level + 1 :]
        counts += [each.start - 1 for each in self.numberings[name][len(counts) : level + 1]]
        return counts
