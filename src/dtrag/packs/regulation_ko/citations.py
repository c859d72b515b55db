"""Citations in the text of regulations: what is cited, of which regulation, and whether it is there.

Reads 제15조제2항제3호, ranges (제13조 내지 제17조, 제13조부터 제17조까지), lists, 같은 조, 전조, 전항, 이 규정 제N조,
names with or without quotation marks, blanks and middle dots, 별표, 별지, 부칙, and laws outside the book with 같은 법.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dtrag.packs.regulation_ko.catalog import (
    Catalog,
    Number,
    Outline,
    article_label,
    article_number,
    folded_appendix,
)

Kind = Literal["internal", "other-regulation", "appendix", "addendum", "external-law", "repealed", "missing"]
WIDEST_RANGE = 200
LONG_NAME_WORDS = 3
"""Words from which on a name of a law may itself hold 및 or 등."""

_DOTS = "·ㆍ‧•・․･⸱∙⋅"
_SPACE = r"[ \t\u00a0\u3000]*"
_MARK = re.compile(
    r"[<〈(（\[【「][^<>〈〉()（）\[\]【】\n]{0,120}?(?:개\s*정|신\s*설|삭\s*제|이\s*동|전문|본조|제목|제\s*정)[^<>〈〉()（）\[\]【】\n]{0,200}[>〉)）\]】」]"
)
_ARTICLE = re.compile(
    rf"제{_SPACE}(\d{{1,4}}){_SPACE}조(?!{_SPACE}(?:건|직|치))"
    rf"(?:{_SPACE}의{_SPACE}(\d{{1,3}})(?!{_SPACE}(?:항|호|\d|[%,.]?\d|개|년|월|일|분|차|인|명|배|회|학기|과목|시간)))?"
)
_BARE_ARTICLE = re.compile(
    r"(?<![\d.,제가-힣~∼-])(\d{1,3})조(?:의(\d{1,2}))?(?=에\s?(?:규정|의한|의하여|의거|따른|따라|정한|명시)|의\s?규정|제\s?\d+\s?항)"
)
_TITLE = re.compile(rf"{_SPACE}[(（](?!이하)[^()（）\n]{{1,40}}[)）]")
_PARAGRAPH = re.compile(
    rf"{_SPACE}(?:의{_SPACE})?(?:제?{_SPACE}(\d{{1,3}}){_SPACE}|제{_SPACE}([①-⑳]){_SPACE})항(?:{_SPACE}의{_SPACE}\d{{1,2}}(?!\d))?"
)
_ITEM = re.compile(
    rf"{_SPACE}(?:의{_SPACE})?제?{_SPACE}(\d{{1,3}}){_SPACE}호(?:{_SPACE}의{_SPACE}\d{{1,2}}(?!\d))?(?!\s*(?:서식|양식))"
)
_SUBITEM = re.compile(rf"{_SPACE}([가-하]){_SPACE}목(?![가-힣](?<!의|에|을|은|과|및))")
_OWN_PARAGRAPH = re.compile(rf"제{_SPACE}(\d{{1,3}}){_SPACE}항")
_OWN_ITEM = re.compile(
    rf"제{_SPACE}(\d{{1,3}}){_SPACE}호(?!{_SPACE}(?:의?{_SPACE}\d*{_SPACE})?(?:서식|양식|의결|안건))"
)
_TO = re.compile(rf"{_SPACE}(?:내지|부터|에서|[~∼～〜\-－–])\s?{_SPACE}")
_UNTIL = re.compile(rf"{_SPACE}까지")
_AND = re.compile(rf"{_SPACE}(?:[,，、/{_DOTS}]|및|와|과|또는|이나|혹은){_SPACE}(?:및{_SPACE})?")
_SAME_ARTICLE = re.compile(r"(?<![가-힣])(?:같은\s?조|동\s?조(?!\s*[직정사합]))")
_OWN_ARTICLE = re.compile(r"(?<![가-힣])(?:본\s?조|이\s조)(?=[의에를은와,\s]|제)(?!\s?(?:신설|개정|삭제|전문))")
_PREVIOUS_ARTICLE = re.compile(r"(?<![가-힣])전\s?조(?=[의에를은와과,\s]|제\d)")
_PREVIOUS_PARAGRAPH = re.compile(r"(?<![가-힣])(?:전\s?항|전\s?[2-9]항)(?=[의에을은과,\s.]|제\d)")
_SAME_PARAGRAPH = re.compile(r"(?<![가-힣])(?:같은\s?항|동\s?항)(?=[의에을은과,\s.]|제\s*\d)")
_SELF = re.compile(r"(?<![가-힣])(?:이|본|현)\s?(?:규정|세칙|시행세칙|학칙|정관|지침|내규|규칙|요령|준칙)")
_SAME_RULE = re.compile(r"(?<![가-힣])(?:같은|동|위)\s?(?:규정|세칙|시행세칙|학칙|정관|지침|내규)")
_SAME_LAW = re.compile(
    r"(?<![가-힣])(?:같은|동)\s?(?:법률|법|영|령)(?:\s?시행령|\s?시행규칙)?|(?<![가-힣])동\s?(?:시행령|시행규칙)"
)
_APPENDIX = re.compile(
    rf"(?<![가-힣])(별{_SPACE}표|별{_SPACE}지|별{_SPACE}첨)"
    rf"({_SPACE}(?:서식{_SPACE})?(?:제|#)?{_SPACE}\d{{1,3}}(?:{_SPACE}(?:의|[-–]){_SPACE}\d{{1,3}}(?!{_SPACE}(?:호|항)?\d))?{_SPACE}(?:호)?(?:{_SPACE}의{_SPACE}\d{{1,2}})?)?"
    rf"({_SPACE}(?:서식|양식)(?:{_SPACE}\d{{1,3}})?)?"
)
_ADDENDUM = re.compile(rf"(?<![가-힣])부{_SPACE}칙(?![가-힣]*규정)")
_RULE_ENDING = r"규정|세칙|시행세칙|학칙|정관|지침|내규|요령|준칙|강령|요강|규약|헌장|기준"
_QUOTED = re.compile(r"[「『｢“\"‘'<〈《]([^「」『』｢｣“”\"‘’'<>〈〉《》\n]{2,60})[」』｣”\"’'>〉》]")
_LAW_ENDING = re.compile(
    r"(?:법|법률|시행령|시행규칙|[가-힣]령|에\s?관한\s?규칙|조례|기본법|특별법|회계\s?규칙|예규|고시|훈령)$"
)
_STATE_RULE = re.compile(
    r"국가|공무원|공공기관|교육부|교육과학|과학기술|정부|지방자치|행정|대통령|보건복지|고용노동|문화|국방|병무|법무|조달|기획재정|회계예규"
    r"|고시|훈령|예규"
)
_BARE_LAW = re.compile(
    r"(?<![가-힣])((?:[가-힣·ㆍ]+\s){0,5}?[가-힣·ㆍ]*에\s?관한\s?(?:특별법|법률|특례법)"
    r"|[가-힣·ㆍ]{1,18}법(?:률)?|[가-힣]{2,15}령|[가-힣·ㆍ ]{2,30}에\s?관한\s?규칙)"
    r"(\s?시행령|\s?시행규칙)?(?![가-힣]*(?:인|적|상))"
)
_NOT_LAW = re.compile(
    r"^(?:방|문|용|기|불|위|적|입|사|합|편|화|수|어|요|공|처|해|비|작|타|제|관|이|재|초|탈|준|무|진|범|마|창|필|농|육|주|검|총|태)법$|(?:방|기|용|관련|해당|소관|맞춤|재배|조리|사용|기록|표현|검사|운용|설계|시공|가공|치료|학습|교수|연구|측정|작성|분석|평가|제조|공식|투자|계산|표기|지급|지도|실험)법$"
    r"|(?:명|연|고|발|훈|사|법|강|지|수|호|점|대통)령$|방법|^법령$|불법|적법|위법"
)
_WORDS_BEFORE = re.compile(
    rf"(?:[가-힣A-Za-z0-9{_DOTS}]*[가-힣A-Za-z0-9](?<![은는이가을를에])(?:및)?[ ]){{0,4}}[가-힣A-Za-z0-9{_DOTS}()]+$"
)
_LAW_PARTICLE = re.compile(r"(?:에|의|상|을|를|과|와|및|이나|또는|으로|에서|[,，ㆍ·])(?!니)")
_LONG_RULE = re.compile(r"[가-힣·ㆍ]+(?:[ ][가-힣·ㆍ]+){0,4}?[ ]?[가-힣]*에[ ]?관한[ ]?(?:규정|규칙|지침|세칙)$")
_KNOWN_LAWS = frozenset(
    "사립학교법 고등교육법 교육기본법 교육공무원법 국가공무원법 지방공무원법 근로기준법 병역법 민법 형법 "
    "상법 헌법 저작권법 특허법 발명진흥법 사립학교교직원연금법 사립학교교직원연금법시행령 국민건강보험법 "
    "고용보험법 산업재해보상보험법 산업안전보건법 개인정보보호법 평생교육법 초ㆍ중등교육법 초·중등교육법 "
    "초중등교육법 학술진흥법 과학기술기본법 산업교육진흥법 소득세법 법인세법 부가가치세법 국세기본법 "
    "지방세법 남녀고용평등법 장애인복지법 노동조합법 도로교통법 의료법 약사법 간호법 동물보호법 "
    "실험동물법 소방기본법 원자력안전법 원자력법 생명윤리법 정보통신망법 전자서명법 행정절차법 "
    "청소년보호법 국가보훈기본법 예비군법 향토예비군설치법 민방위기본법 국가배상법 최저임금법 국민연금법 "
    "국적법 출입국관리법 재외동포법 도서관법 기록물관리법 감사원법 국고금관리법 국가재정법 국가계약법 "
    "지방재정법".split()
)
_AFTER_NAME = re.compile(
    rf"[」』｣”\"’'>〉》]?{_SPACE}(?:[(（][^()（）\n]{{0,60}}[)）])?{_SPACE}(?:의{_SPACE}|중{_SPACE}|상의{_SPACE})?"
    rf"(?={_SPACE}제{_SPACE}\d{{1,4}}{_SPACE}조|[(（]?{_SPACE}제{_SPACE}\d{{1,4}}{_SPACE}조|[<〈\[(（【「]?{_SPACE}별{_SPACE}[표지첨]|부{_SPACE}칙)"
)
_PARTICLE_AFTER = re.compile(
    rf"$|[^가-힣]|(?:에서|에게|에는|에도|에의|에|의|을|를|은|는|과|와|이|가|으로|로|및|또는|이나|나|도|만|등|중|상|내|별표|별지|부칙|제{_SPACE}\d|시행|준용|따|개정|제정|안에|하|이라|이란|이며|이고|이외|외|규정에)"
)
_PREFIXES = (
    "본교",
    "본대학교",
    "본대학",
    "우리대학교",
    "우리대학",
    "대학교",
    "대학",
    "법인",
    "본법인",
    "학교법인",
    "당해",
    "관련",
    "해당",
    "동",
    "현행",
    "구",
    "각",
)
_PLAIN = re.compile(
    rf"(?:[「『｢]?[가-힣{_DOTS}]*(?:{_RULE_ENDING})[」』｣]?{_SPACE})?제{_SPACE}\d{{1,4}}{_SPACE}조(?:{_SPACE}의{_SPACE}\d{{1,3}})?"
    rf"|[가-힣{_DOTS}]+(?:{_RULE_ENDING})"
)


@dataclass(frozen=True, slots=True)
class Citation:
    """`text` is `source_text[start:end]`.

    `targets` are `규정명 제N조`, `규정명 별표 2`, `규정명 부칙` or `규정명`; none for laws outside the collection and
    for what is missing. `paragraph` and `item` are the first 항 and 호 that are named.
    """

    start: int
    end: int
    text: str
    kind: Kind
    targets: tuple[str, ...] = ()
    paragraph: int | None = None
    item: int | None = None


@dataclass(slots=True)
class _Name:
    """A name in the text: of a regulation of the collection (`owner`), or of a rule outside it (owner None)."""

    start: int
    end: int
    owner: Outline | None
    is_law: bool = False


@dataclass(slots=True)
class _References:
    """One citation's articles as they were read, up to `end`."""

    end: int
    numbers: list[Number] = field(default_factory=list)
    ranges: list[tuple[Number, Number]] = field(default_factory=list)
    paragraph: int | None = None
    item: int | None = None


def citations(text: str, source: Outline, label: str, catalog: Catalog) -> list[Citation]:
    """The citations of an article, appendix or addendum (`label`) of the regulation `source`, in reading order."""
    return _Reader(text, source, label, catalog).read()


def cited_texts(text: str) -> list[str]:
    """What a passage of an unknown collection cites, as text: articles (제15조), names with articles (학칙 제20조)."""
    return list(dict.fromkeys(found.group().strip() for found in _PLAIN.finditer(_masked(text))))


class _Reader:
    """Reads one text from left to right; what `같은 조`, `같은 법` refer to is remembered on the way."""

    def __init__(self, text: str, source: Outline, label: str, catalog: Catalog) -> None:
        self._text = text
        self._source = source
        self._own = article_number(label)
        self._is_addendum = re.match(r"부\s*칙", label) is not None
        self._catalog = catalog
        self._masked = _masked(text)
        self._names = {name.start: name for name in self._find_names()}
        self._last_owner: Outline | None = source
        self._last_number: Number | None = self._own
        self._last_law_line = -1
        self._citations: list[Citation] = []

    def read(self) -> list[Citation]:
        position = 0
        while position < len(self._text):
            step = self._at(position)
            position = step if step > position else position + 1
        return self._citations

    def _at(self, position: int) -> int:
        """Read what begins at `position`; the position behind it, or `position` when nothing does."""
        name = self._names.get(position)
        if name is not None:
            return self._named(name)
        character = self._masked[position]
        if character.isdigit() and (bare := _BARE_ARTICLE.match(self._masked, position)):
            read = _References(bare.end(), [(int(bare[1]), int(bare[2] or 0))])
            self._read_paragraphs(read)
            self._cite(position, read, self._source)
            return read.end
        if character not in "제같동본이전현위별부<〈[(（【「":
            return position
        for pattern, action in _ACTIONS:
            found = pattern.match(self._masked, position)
            if found:
                end = action(self, found)
                if end > position:
                    return end
        return position

    # -- names ---------------------------------------------------------------------------------------------------

    def _named(self, name: _Name) -> int:
        self._last_owner = name.owner
        if name.is_law or name.owner is None:
            self._last_law_line = self._line(name.start)
        after = _AFTER_NAME.match(self._masked, name.end)
        if after:
            place = after.end()
            while place < len(self._masked) and self._masked[place] in "(（ ":
                place += 1
            if end := self._references_of(name.start, place, name.owner, is_law=name.is_law):
                return end
            while place < len(self._masked) and self._masked[place] in "<〈[(（【「 ":
                place += 1
            appended = _APPENDIX.match(self._masked, place)
            if appended and name.owner is not None:
                return self._appendix_of(name.start, appended, name.owner)
            if appended:
                self._add(name.start, appended.end(), "external-law" if name.is_law else "missing")
                return appended.end()
            if name.owner is not None and (addendum := _ADDENDUM.match(self._masked, place)):
                return self._addendum_of(name.start, addendum.end(), name.owner)
        if name.owner is self._source:
            return name.end
        if name.owner is not None:
            self._add(name.start, name.end, "other-regulation", (name.owner.name,))
        else:
            self._add(name.start, name.end, "external-law" if name.is_law else "missing")
        return name.end

    def _find_names(self) -> Iterator[_Name]:
        taken: list[tuple[int, int]] = []
        for name in sorted(self._candidates(), key=lambda name: (name.start - name.end, name.start)):
            if all(name.end <= start or end <= name.start for start, end in taken):
                taken.append((name.start, name.end))
                yield name

    def _candidates(self) -> Iterator[_Name]:
        yield from self._quoted()
        yield from self._book_names()
        for found in _BARE_LAW.finditer(self._masked):
            law = found.group().strip()
            folded = re.sub(r"\s", "", law)
            if (
                _NOT_LAW.search(found[1])
                or folded in {"법", "이법", "동법"}
                or law.startswith(("같은", "동법", "이 법"))
            ):
                continue
            start = found.start()
            is_cited = _AFTER_NAME.match(self._masked, found.end()) is not None
            is_known = found[1] in _KNOWN_LAWS or bool(re.search(r"에\s?관한\s?(?:특별법|법률|특례법)$", found[1]))
            is_named = found[1].endswith(("법", "법률")) and _LAW_PARTICLE.match(self._masked, found.end()) is not None
            if (
                (is_cited and not law.endswith("법령"))
                or is_known
                or is_named
                or (found[2] and found[1].endswith("법"))
            ):
                start += _outer_words(found[1]) if "관한" in found[1] else 0
                yield _Name(start, found.end(), None, is_law=True)
        for found in re.finditer(
            rf"(?<![가-힣])(?:법|영|시행령|시행규칙)(?={_SPACE}(?:제{_SPACE}\d+{_SPACE}조|별{_SPACE}표))", self._masked
        ):
            yield _Name(found.start(), found.end(), None, is_law=True)

    def _quoted(self) -> Iterator[_Name]:
        for found in _QUOTED.finditer(self._masked):
            if re.search(r"이하\s*$", self._masked[: found.start()]):
                continue
            folded = _folded(found[1])
            article = _ARTICLE.search(found[1])
            if article:
                folded = _folded(found[1][: article.start()])
            owner = self._owner(folded)
            start, end = (
                (found.start(), found.end()) if not article else (found.start(), found.start(1) + article.start())
            )
            if owner is not None and len(folded) > 1:
                yield _Name(start, end, owner)
            elif _LAW_ENDING.search(found[1].strip()) and not _NOT_LAW.search(found[1].strip()):
                yield _Name(found.start(), found.end(), None, is_law=True)
            elif re.search(rf"(?:{_RULE_ENDING})$", folded) and len(folded) > 3:
                yield _Name(found.start(), found.end(), None, is_law=bool(_STATE_RULE.search(folded)))

    def _book_names(self) -> Iterator[_Name]:
        folded, places = _folded_with_places(self._masked)
        longest = self._catalog.longest() + 6
        for found in re.finditer(_RULE_ENDING, folded):
            end = found.end()
            if not _PARTICLE_AFTER.match(folded, end):
                continue
            for start in range(max(0, end - longest), end - 1):
                owner = self._name_at(folded, places, start, end)
                if owner is not None:
                    yield _Name(places[start], places[end - 1] + 1, owner)
                    break
            else:
                yield from self._unknown_rule(folded, places, end)

    def _unknown_rule(self, folded: str, places: Sequence[int], end: int) -> Iterator[_Name]:
        """A rule that the collection does not have, when a part of it is cited: its articles are not ours."""
        stop = places[end - 1] + 1
        word = re.search(r"[가-힣]+$", self._masked[:stop])
        if not _AFTER_NAME.match(self._masked, stop):
            if word and len(word.group()) > 4 and _STATE_RULE.match(word.group()):
                yield _Name(word.start(), stop, None, is_law=True)
            return
        line = self._masked.rfind("\n", 0, stop) + 1
        if long := _LONG_RULE.search(self._masked, max(line, stop - 60), stop):
            yield _Name(long.start() + _outer_words(long.group()), stop, None, is_law=True)
            return
        found = _WORDS_BEFORE.search(self._masked, 0, stop)
        if found is None:
            return
        start = found.start() + len(found.group()) - len(found.group().lstrip())
        name = self._masked[start:stop]
        refers = any(pattern.search(name) for pattern in (_SELF, _SAME_RULE)) or re.fullmatch(
            rf"(?:[가-힣]+(?:의|한|된|는)\s)?(?:{_RULE_ENDING})", name
        )
        if not refers or (not re.search(_SELF.pattern + "|" + _SAME_RULE.pattern, name) and "기준" in name):
            if re.search(_SELF.pattern + "|" + _SAME_RULE.pattern, name):
                return
            before = self._masked[max(0, start - 12) : start]
            yield _Name(start, stop, None, is_law=bool(_STATE_RULE.search(before + name)))

    def _name_at(self, folded: str, places: Sequence[int], start: int, end: int) -> Outline | None:
        owner = self._owner(folded[start:end])
        if owner is None:
            return None
        first = places[start]
        if _SELF.match(self._masked, max(0, first - 1)) or _SELF.match(self._masked, max(0, first - 2)):
            return None
        before = self._masked[first - 1] if first else " "
        if not ("가" <= before <= "힣" or before.isalnum()):
            return owner
        word = re.search(r"[가-힣]+$", self._masked[:first])
        return owner if word and word.group() in (*_PREFIXES, *self._catalog.institutions) else None

    def _owner(self, folded: str) -> Outline | None:
        for prefix in ("", *_PREFIXES, *self._catalog.institutions):
            if prefix and not folded.startswith(prefix):
                continue
            rest = folded[len(prefix) :]
            if rest in {"규정", "세칙", "지침", "내규", "기준", "요령", ""}:
                continue
            source = None if prefix in {"본대학교", "본교", "우리대학교", "대학교"} and rest == "학칙" else self._source
            owner = self._catalog.named(rest, source)
            if owner is not None:
                return owner
        return None

    # -- articles ------------------------------------------------------------------------------------------------

    def _article(self, found: re.Match[str]) -> int:
        if not self._text[: found.start()].strip() and article_number(found.group()) == self._own:
            titled = _TITLE.match(self._masked, found.end())
            if titled:  # the article's own heading
                return titled.end()
        if self._is_addendum and not self._text[: found.start()].rpartition("\n")[2].strip(" \t#*"):
            titled = _TITLE.match(self._masked, found.end())
            if titled:  # an article of the addendum itself
                return titled.end()
        return self._references_of(found.start(), found.start(), self._source)

    def _references_of(self, start: int, place: int, owner: Outline | None, *, is_law: bool = False) -> int:
        """The citations of a list of articles from `place` on; the first begins at `start`. 0 when there is none."""
        references = self._read_references(place)
        if references is None:
            return 0
        self._cite(start, references, owner, is_law=is_law)
        end = references.end
        while following := _AND.match(self._masked, end):
            references = self._read_references(following.end())
            if references is None or following.end() in self._names:
                break
            self._cite(following.end(), references, owner, is_law=is_law)
            end = references.end
        return end

    def _read_references(self, place: int) -> _References | None:
        """An article with its 항 and 호, or a range or list of bare articles."""
        first = self._one_article(place)
        if first is None:
            return None
        while first.paragraph is None and first.item is None:
            span = _TO.match(self._masked, first.end)
            following = self._one_article(span.end()) if span else None
            if following is not None:
                first.ranges.append((first.numbers.pop(), following.numbers[0]))
            else:
                listed = _AND.match(self._masked, first.end)
                following = self._one_article(listed.end()) if listed and listed.end() not in self._names else None
                if following is None or following.paragraph is not None or following.item is not None:
                    break
                first.numbers.append(following.numbers[0])
            first.end = following.end
            first.paragraph, first.item = following.paragraph, following.item
            if until := _UNTIL.match(self._masked, first.end):
                first.end = until.end()
            if span and following.paragraph is not None:
                break
        return first

    def _one_article(self, place: int) -> _References | None:
        found = _ARTICLE.match(self._masked, place)
        if found is None:
            return None
        read = _References(found.end(), [(int(found[1]), int(found[2] or 0))])
        titled = _TITLE.match(self._masked, read.end)
        if titled and not re.search(r"제\s*\d", titled.group()):
            read.end = titled.end()
        self._read_paragraphs(read)
        return read

    def _read_paragraphs(self, read: _References) -> None:
        """항 and 호 behind an article, their ranges and lists included; the first of each is kept."""
        for pattern, name in ((_PARAGRAPH, "paragraph"), (_ITEM, "item"), (_SUBITEM, "")):
            found = pattern.match(self._masked, read.end)
            if found is None:
                continue
            if name:
                setattr(read, name, _numeral(found))
            read.end = found.end()
            while joined := (_TO.match(self._masked, read.end) or _AND.match(self._masked, read.end)):
                further = pattern.match(self._masked, joined.end())
                if further is None or _ARTICLE.match(self._masked, joined.end()):
                    break
                read.end = further.end()
                if until := _UNTIL.match(self._masked, read.end):
                    read.end = until.end()

    def _cite(self, start: int, read: _References, owner: Outline | None, *, is_law: bool = False) -> None:
        if owner is None:
            self._add(start, read.end, "external-law" if is_law else "missing", (), read.paragraph, read.item)
            self._last_owner, self._last_number = None, None
            return
        numbers = list(read.numbers)
        for first, last in read.ranges:
            inside = sorted(number for number in owner.articles if first <= number <= last)
            numbers += inside[:WIDEST_RANGE] or [first, last]
        present = [number for number in sorted(set(numbers)) if number in owner.articles]
        self._last_owner, self._last_number = owner, numbers[-1] if numbers else None
        targets = tuple(f"{owner.name} {article_label(number)}" for number in present)
        if present:
            kind: Kind = "internal" if owner is self._source else "other-regulation"
        elif any(number in owner.repealed for number in numbers):
            kind = "repealed"
            targets = tuple(f"{owner.name} {article_label(number)}" for number in numbers if number in owner.repealed)
        else:
            kind = "missing"
        self._add(start, read.end, kind, targets, read.paragraph, read.item)

    # -- references to what was named before ---------------------------------------------------------------------

    def _same_article(self, found: re.Match[str]) -> int:
        read = _References(found.end(), [self._last_number] if self._last_number else [])
        self._read_paragraphs(read)
        if self._last_owner is None or self._last_number is None:
            self._add(found.start(), read.end, "external-law", (), read.paragraph, read.item)
            return read.end
        self._cite(found.start(), read, self._last_owner)
        return read.end

    def _own_article(self, found: re.Match[str]) -> int:
        return self._cite_own(found, self._own)

    def _previous_article(self, found: re.Match[str]) -> int:
        before = [number for number in self._source.articles if self._own and number < self._own]
        return self._cite_own(found, max(before, default=None))

    def _cite_own(self, found: re.Match[str], number: Number | None) -> int:
        if number is None:
            return 0
        read = _References(found.end(), [number])
        self._read_paragraphs(read)
        self._cite(found.start(), read, self._source)
        return read.end

    def _own_paragraph(self, found: re.Match[str]) -> int:
        """제2항, 제1호 without an article: of the article that stands here."""
        if self._own is None or (found.start() and self._masked[found.start() - 1].isalnum()):
            return 0
        if re.search(r"제\s*\d+\s*[장절편관]\s*$", self._masked[: found.start()][-12:]):
            return found.end()
        read = _References(found.start(), [self._own])
        self._read_paragraphs(read)
        if read.end == found.start():
            return 0
        self._cite(found.start(), read, self._source)
        return read.end

    def _previous_paragraph(self, found: re.Match[str]) -> int:
        if self._own is None:
            return 0
        read = _References(found.end(), [self._own])
        self._read_paragraphs(read)
        read.paragraph = self._paragraph_before(found.start()) if read.paragraph is None else read.paragraph
        self._cite(found.start(), read, self._source)
        return read.end

    def _same_paragraph(self, found: re.Match[str]) -> int:
        if self._last_number is None or self._last_owner is None:
            return 0
        read = _References(found.end(), [self._last_number])
        self._read_paragraphs(read)
        self._cite(found.start(), read, self._last_owner)
        return read.end

    def _paragraph_before(self, position: int) -> int | None:
        marks = re.findall(r"[①-⑳]", self._text[:position])
        return ord(marks[-1]) - ord("①") if marks and marks[-1] != "①" else None

    def _self_rule(self, found: re.Match[str]) -> int:
        """이 규정 제5조 cites; 이 규정 alone does not."""
        return self._rule_reference(found, self._source)

    def _same_rule(self, found: re.Match[str]) -> int:
        return self._rule_reference(found, self._last_owner)

    def _rule_reference(self, found: re.Match[str], owner: Outline | None) -> int:
        after = _AFTER_NAME.match(self._masked, found.end())
        if not after:
            return found.end()
        place = after.end()
        while place < len(self._masked) and self._masked[place] in "(（ ":
            place += 1
        if end := self._references_of(found.start(), place, owner):
            return end
        appended = _APPENDIX.match(self._masked, place)
        if appended and owner is not None:
            return self._appendix_of(found.start(), appended, owner)
        addendum = _ADDENDUM.match(self._masked, place)
        if addendum and owner is not None:
            return self._addendum_of(found.start(), addendum.end(), owner)
        return found.end()

    def _same_law(self, found: re.Match[str]) -> int:
        self._last_owner, self._last_number = None, None
        after = _AFTER_NAME.match(self._masked, found.end())
        if after and (end := self._references_of(found.start(), after.end(), None, is_law=True)):
            return end
        if self._last_law_line >= 0:
            self._add(found.start(), found.end(), "external-law")
        return found.end()

    # -- appendices and addenda ----------------------------------------------------------------------------------

    def _appendix(self, found: re.Match[str]) -> int:
        return self._appendix_of(found.start(1), found, self._source)

    def _appendix_of(self, start: int, found: re.Match[str], owner: Outline) -> int:
        end = found.end()
        is_bare = not found[2] and not found[3] and re.match(r"[가-힣]{2}", self._masked[end : end + 2])
        if is_bare and not _PARTICLE_AFTER.match(self._masked, end):
            return end
        label = "".join(part for part in (found[1], found[2], found[3]) if part)
        target = appendix_label(owner, label)
        if target is None:
            self._add(start, end, *_appendix_kind(owner, label))
        else:
            self._add(start, end, "appendix", (f"{owner.name} {target}",))
        while following := re.compile(
            rf"{_SPACE}(?:[,，{_DOTS}~∼～]|및|와|과|또는|내지){_SPACE}(제?{_SPACE}\d{{1,3}}(?:{_SPACE}[-–의]{_SPACE}\d{{1,3}})?{_SPACE}호?)({_SPACE}(?:서식|양식))"
        ).match(self._masked, end):
            target = appendix_label(owner, found[1] + following[1] + following[2])
            self._add(
                following.start(1),
                following.end(),
                *(("appendix", (f"{owner.name} {target}",)) if target else ("missing",)),
            )
            end = following.end()
        return end

    def _addendum(self, found: re.Match[str]) -> int:
        return self._addendum_of(found.start(), found.end(), self._source)

    def _addendum_of(self, start: int, end: int, owner: Outline) -> int:
        read = self._one_article(end + len(re.match(_SPACE, self._masked[end:]).group()))  # type: ignore[union-attr]
        if read is not None:
            end = read.end
        elif owner is self._source and not re.match(rf"{_SPACE}(?:제|에|의|\d|을|를|은|과|[<(])", self._masked[end:]):
            return end
        if owner.has_addendum:
            paragraph, item = (read.paragraph, read.item) if read else (None, None)
            self._add(start, end, "addendum", (f"{owner.name} 부칙",), paragraph, item)
        else:
            self._add(start, end, "missing")
        return end

    # -- details -------------------------------------------------------------------------------------------------

    def _line(self, position: int) -> int:
        return self._text.count("\n", 0, position)

    def _add(  # noqa: PLR0917 - in the order of the fields of `Citation`
        self,
        start: int,
        end: int,
        kind: Kind,
        targets: tuple[str, ...] = (),
        paragraph: int | None = None,
        item: int | None = None,
    ) -> None:
        self._citations.append(Citation(start, end, self._text[start:end], kind, targets, paragraph, item))


_ACTIONS = (
    (_ARTICLE, _Reader._article),
    (_SAME_LAW, _Reader._same_law),
    (_SAME_ARTICLE, _Reader._same_article),
    (_SAME_PARAGRAPH, _Reader._same_paragraph),
    (_SAME_RULE, _Reader._same_rule),
    (_SELF, _Reader._self_rule),
    (_OWN_ARTICLE, _Reader._own_article),
    (_PREVIOUS_ARTICLE, _Reader._previous_article),
    (_PREVIOUS_PARAGRAPH, _Reader._previous_paragraph),
    (_OWN_PARAGRAPH, _Reader._own_paragraph),
    (_OWN_ITEM, _Reader._own_paragraph),
    (_APPENDIX, _Reader._appendix),
    (_ADDENDUM, _Reader._addendum),
)


def _numeral(found: re.Match[str]) -> int:
    """The number of 제2항 or 제②항."""
    return int(found[1]) if found[1] else ord(found[2]) - ord("①") + 1


def _masked(text: str) -> str:
    """The text with amendment marks blanked: `[제5조에서 이동]` and `[본조신설 …]` cite nothing."""
    return _MARK.sub(lambda found: " " * len(found.group()), text)


def _folded(name: str) -> str:
    return re.sub(rf"[\s{_DOTS}]", "", name)


def _folded_with_places(text: str) -> tuple[str, list[int]]:
    """The text without blanks and middle dots, and where each of its characters stood."""
    places = [place for place, character in enumerate(text) if character not in f" \t\u00a0\u3000{_DOTS}"]
    return "".join(text[place] for place in places), places


def _outer_words(name: str) -> int:
    """Characters before the name of a law that belong to the sentence ("본 규정은 공공기관의 … 법률")."""
    words = list(re.finditer(r"\S+", name))
    cut = 0
    for word, following in itertools.pairwise(words):
        ends = re.search(r"(?:은|는|이|가|함은|후에|하여|하고|하며|따라|의하여|의한|의거|및|또는|등)$", word.group())
        joins = word.group().endswith(("및", "등")) and cut == 0 and len(words) > LONG_NAME_WORDS
        if ends and "관한" not in word.group() and not joins:
            cut = following.start()
    return cut


def appendix_label(owner: Outline, label: str) -> str | None:
    """The label of the owner's appendix that is meant, as the owner writes it; None when there is none."""
    folded = folded_appendix(label)
    if folded in owner.appendices:
        return owner.appendices[folded]
    digits = re.search(r"\d", folded)
    same = [known for known in owner.appendices if known.startswith(folded[:2])]
    if not digits:
        return owner.appendices[same[0]] if len(same) == 1 else None
    bare = folded.replace("호", "").replace("서식", "")
    matching = [known for known in same if known.replace("호", "").replace("서식", "") == bare]
    return owner.appendices[matching[0]] if matching else None


def _appendix_kind(owner: Outline, label: str) -> tuple[Kind, tuple[str, ...]]:
    """Of an appendix that is not there: deleted, or missing."""
    folded = folded_appendix(label)
    if folded in owner.repealed_appendices:
        return "repealed", (f"{owner.name} {' '.join(label.split())}",)
    return "missing", ()
