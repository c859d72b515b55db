"""References in a question: which provisions 「학칙」 제21조, 장학금 규정 5조 2항 or 제15조 alone mean.

Names are matched without blanks and by their distinctive beginning. A reference without a name means the regulation
that the conversation is about, or the only one that has such an article; else there are several choices.
"""

from __future__ import annotations

import re
from collections.abc import Collection as Ids
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dtrag.core.editions import folded_name
from dtrag.core.text.patterns import WORD, explained
from dtrag.errors import InvalidInput, NotFound
from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.catalog import appendices_between, appendix_label, article_label, articles_between
from dtrag.regulations.korean.citation_grammar import WHOLE, Labelled, Member, read_appendices, read_members
from dtrag.regulations.korean.collection import ADDENDUM, CitableProvision, Collection, Regulation

NAME_WORDS = 6
"""Words before a reference that may be the name of its regulation."""
PARTIAL_WORDS = 4
MIN_STEM = 2
MIN_INNER_STEM = 3
"""Characters from which on a part of a name may be in its middle."""
MIN_INSIDE_WORD = 4
"""Characters of a name that may begin inside a word: 우리대학교휴학규정."""
WIDEST_RANGE = 20
MOST_LISTED = 10
"""Provisions in the message about a reference that can mean several."""
MOST_REFERENCES = 8
LONGEST_QUESTION = 1_000
_STARTS = re.compile(r"(?<![\d.,])(?=제|\d|별|부)")
"""Where a reference may begin."""
_COUNTED = re.compile(r"\s{0,2}[원건직치각교약례정사선업씩]")
"""After an article without 제 that counts something: 3조 정도, 5조씩."""
_BRACKETS = frozenset({"[]", "<>", "()", "【】"})
_PARTICLE = re.compile(r"(?:의|에서|에|중|상)$")
_ENDING = re.compile(r"(?:시행)?(?:규정|세칙|학칙|정관|지침|내규|규칙|요령|준칙|강령|규약|헌장|기준)$")
_RULE_LIKE = ("법", "법률", "령", "규정", "규칙", "세칙", "학칙", "정관", "지침", "내규", "조례", "헌법")
_DEMONSTRATIVE = re.compile(r"(?:^|\s)(?:이|그|저|해당|위|본|동|같은|방금|아까)(?:\s?(?:규정|학칙|세칙|정관|지침))?$")
_EMPTY_STEMS = frozenset("그럼 그러면 그리고 또는 그런데 혹시 저기 해당 우리 아니 그래 이제 다음 위의".split())
_ASKING = explained(
    r"그럼|그러면|그렇다면|그리고|그런데|근데|혹시|그거|그건|뭐라고|무슨|어떤|써|쓰여|적혀|나와|있습니까|있는지|있지|있어|있"
    r"|알려|보여|찾아|읽어|가르쳐|말해|설명|정리|출력|확인|하고\s?싶|주세요|주실래요|주시겠어요|줄래|주라|줘|다오|좀|부탁|드려요|드립니다"
    r"|합니다|해\s?|무엇|뭔가|뭔지|뭐|예요|인가요|입니까|인지|이죠|이지|인데|나요|까요|습니다|니다|어요|지요"
    r"|내용|전문|전체|원문|조문|규정|조항|본문|궁금|대해서|대한|대해|관해서|관한|관해|관련|어떻게|되나요|되어|돼"
    r"|please|show|me|what|is|the|tell|article|of|and|하고|[을를은는이가의에야요와과및]|[\s\W]",
    flags=re.IGNORECASE,
    finds=("알려", "있나요"),
    refuses="설립",
)
"""What a question that asks only for the text of a provision consists of, beside its reference."""


@dataclass(frozen=True, slots=True)
class NamedProvisions:
    """What a question names.

    `question` has the full names in place of the written ones. `sources` are the provisions in the order of the
    question, `paragraph` the 항 of a single one. `asks_only`: the question asks for nothing but their text. Such a
    question can also mean any of several `choices`. `absent` (`학칙 제99조`) does not exist in its `regulation`.
    """

    question: str
    sources: tuple[CitableProvision, ...] = ()
    paragraph: int | None = None
    asks_only: bool = False
    choices: tuple[CitableProvision, ...] = ()
    absent: str = ""
    regulation: Regulation | None = None


@dataclass(frozen=True, slots=True)
class _Reference:
    """A reference as written; `start` is that of its name, `regulations` those that the name can mean.

    `cited` is an article or a range of them, an appendix (별표 1), or 부칙.
    """

    start: int
    cited: Member | Labelled
    regulations: tuple[Regulation, ...]
    has_mark: bool
    has_unknown_name: bool = False

    @property
    def end(self) -> int:
        return self.cited.end

    @property
    def paragraph(self) -> int | None:
        return self.cited.part.paragraph if isinstance(self.cited, Member) else None


@dataclass(frozen=True)
class _Question:
    """A question with the context that a reference without a name refers to."""

    text: str
    collection: Collection
    earlier: Sequence[str] = ()
    documents: Ids[str] = field(default_factory=tuple)


def may_refer(question: str) -> bool:
    """Whether the question may have a reference; a fast check."""
    return len(question) <= LONGEST_QUESTION and next(_cited(question), None) is not None


def named_provisions(
    question: str, collection: Collection, earlier: Sequence[str] = (), documents: Ids[str] = ()
) -> NamedProvisions | None:
    """The provisions that a question names; None without a reference, or with the name of a rule outside.

    `earlier` are the earlier questions of a conversation, oldest first, and `documents` the ids of the documents that
    its answers are based on. A bare name answers the question which regulation was meant.
    """
    if len(question) > LONGEST_QUESTION or not collection.regulations:
        return None
    query = _Question(question, collection, earlier, documents)
    references = list(_references(query))[:MOST_REFERENCES]
    if not references:
        return _answered_choice(query)
    if references[0].has_unknown_name:
        return None
    asks_only = not _rest(question, references)
    if (
        not references[0].has_mark
        and not references[0].regulations
        and references[0].paragraph is None
        and not asks_only
    ):
        return None
    return _resolved(query, references, asks_only=asks_only)


def find_provision(reference: str, collection: Collection) -> CitableProvision:
    """The provision that a reference means: as `Collection.find`, also with a part of the name, or without it if only
    one regulation has such a provision.

    Raises `NotFound`, and `InvalidInput` with the provisions that it could mean.
    """
    try:
        return collection.find(reference)
    except (NotFound, InvalidInput):
        named = named_provisions(reference, collection)
        if named is not None and len(named.sources) == 1:
            return named.sources[0]
        if named is not None and named.absent:
            return collection.find(named.absent)
        if named is not None and named.choices:
            names = ", ".join(source.name for source in named.choices[:MOST_LISTED])
            more = f" and {len(named.choices) - MOST_LISTED} more" if len(named.choices) > MOST_LISTED else ""
            raise InvalidInput(f"{' '.join(reference.split())} is in several regulations: {names}{more}.") from None
        raise


def _resolved(query: _Question, references: Sequence[_Reference], *, asks_only: bool) -> NamedProvisions | None:
    sources: dict[str, CitableProvision] = {}
    pieces: list[str] = []
    position = 0
    last: Regulation | None = None
    for reference in references:
        candidates = reference.regulations or ((last,) if last is not None else ())
        choices = _choices(query, reference, candidates)
        if len(choices) != 1:
            if sources:
                continue
            return _unresolved(query, reference, candidates, choices if asks_only else ())
        [provisions] = choices
        sources |= {source.name: source for source in provisions}
        last = provisions[0].regulation
        pieces += [query.text[position : reference.start], provisions[0].name]
        pieces += ["부터 ", provisions[-1].name, "까지"] if len(provisions) > 1 else []
        position = reference.end
    paragraph = references[0].paragraph if len(references) == 1 else None
    return NamedProvisions("".join((*pieces, query.text[position:])), tuple(sources.values()), paragraph, asks_only)


def _unresolved(
    query: _Question,
    reference: _Reference,
    candidates: Sequence[Regulation],
    choices: Sequence[Sequence[CitableProvision]],
) -> NamedProvisions | None:
    if choices:
        return NamedProvisions(query.text, choices=tuple(provisions[0] for provisions in choices))
    if len(candidates) == 1:
        cited = reference.cited
        label = article_label(cited.number) if isinstance(cited, Member) else cited.label
        return NamedProvisions(query.text, absent=f"{candidates[0].name} {label}", regulation=candidates[0])
    return None


def _choices(
    query: _Question, reference: _Reference, candidates: Sequence[Regulation]
) -> list[Sequence[CitableProvision]]:
    """The provisions that a reference can mean, of each regulation that has them."""
    regulations = candidates or query.collection.regulations
    owners = [
        provisions
        for regulation in regulations
        if (provisions := _provisions(query.collection, reference.cited, regulation))
    ]
    if not candidates and len(owners) > 1 and (about := _topic(query, owners)):
        return [about]
    return owners


def _topic(query: _Question, owners: Sequence[Sequence[CitableProvision]]) -> Sequence[CitableProvision] | None:
    """Those of the regulation that an earlier question names, or that alone the answers are based on."""
    for question in reversed(query.earlier):
        named = _regulation_in(question, query.collection)
        for provisions in owners:
            if named is not None and provisions[0].regulation.name == named.name:
                return provisions
    based = [each for each in owners if str(each[0].regulation.document_id) in query.documents]
    return based[0] if len(based) == 1 else None


def _regulation_in(text: str, collection: Collection) -> Regulation | None:
    """The regulation with the longest name in the text, also where only a part of it precedes an article."""
    for reference in _references(_Question(text, collection)):
        if len(reference.regulations) == 1:
            return reference.regulations[0]
    folded = folded_name(text)
    names = [regulation for regulation in collection.regulations if folded_name(regulation.name) in folded]
    if not names:
        outline = next((collection.catalog.named(name) for name in ("학칙", "정관") if name in folded), None)
        names = [regulation for regulation in collection.regulations if outline and regulation.outline is outline]
    return max(names, key=lambda regulation: len(regulation.name), default=None)


def _answered_choice(query: _Question) -> NamedProvisions | None:
    """학칙 after 제15조 alone: the provision of the earlier question in the regulation that is named now."""
    if not query.earlier or len(query.text) > NAME_WORDS * 10 or may_refer(query.text):
        return None
    name = re.sub(r"(?:이요|요|입니다|이야|의\s?것|꺼|거)?[\s.!?]*$", "", query.text.strip())
    start, regulations = _named_before(name, query.collection)
    before = list(_references(_Question(query.earlier[-1], query.collection)))
    if start != 0 or len(regulations) != 1 or not before or before[0].regulations or before[0].has_unknown_name:
        return None
    written = query.earlier[-1]
    question = f"{written[: before[0].start]}{regulations[0].name} {written[before[0].cited.start :]}"
    return named_provisions(question, query.collection)


def _references(query: _Question) -> Iterator[_Reference]:
    end = 0
    for cited in _cited(query.text):
        before = query.text[end : cited.start].rstrip("[<(【 ")
        start, regulations = _named_before(before, query.collection)
        label = cited.label if isinstance(cited, Labelled) else ""
        if label and not regulations and not any(map(str.isdigit, label)):
            continue
        name = before.rstrip(" 「」『』\"'“”‘’")
        is_unknown = not regulations and not _DEMONSTRATIVE.search(name) and name.endswith(_RULE_LIKE)
        has_mark = bool(label) or query.text.startswith("제", cited.start)
        place = end + start if regulations else cited.start
        yield _Reference(place, cited, regulations, has_mark, is_unknown)
        end = cited.end


def _cited(text: str) -> Iterator[Member | Labelled]:
    """What the text cites, in its order: articles with or without 제, appendices, addenda."""
    end = 0
    for match in _STARTS.finditer(text):
        place = match.start()
        if place < end:
            continue
        for cited in _articles(text, place) or _labelled(text, place):
            yield cited
            end = cited.end


def _articles(text: str, place: int) -> list[Member]:
    """The list of articles at `place`, each once: of several paragraphs, the article."""
    articles: list[Member] = []
    for member in read_members(text, place, (), after_name=True):
        is_whole = member.part == WHOLE and member.until is None
        if is_whole and not text.startswith("제", member.start) and _COUNTED.match(text, member.end):
            break
        if articles and articles[-1].number == member.number and member.part != WHOLE:
            articles[-1] = replace(articles[-1], end=member.end, part=WHOLE)
        else:
            articles.append(member)
    return articles


def _labelled(text: str, place: int) -> list[Labelled]:
    """The list of appendices at `place`, or the addendum; a name may precede without a blank."""
    if addendum := patterns.ADDENDUM.match(text[place:]):
        return [Labelled(place, place + addendum.end(), ADDENDUM)]
    read = read_appendices(text[place:], 0) if text[place] == "별" else []
    appendices = [replace(each, start=each.start + place, end=each.end + place) for each in read]
    if len(appendices) != 1:
        return appendices
    [only] = appendices
    if not any(map(str.isdigit, only.label)) and text[only.end : only.end + 1].isalpha():
        return []
    brackets = text[place - 1 : place] + text[only.end : only.end + 1]
    return [replace(only, start=place - 1, end=only.end + 1)] if brackets in _BRACKETS else appendices


def _named_before(before: str, collection: Collection) -> tuple[int, tuple[Regulation, ...]]:
    """Start of the name at the end of a text, and the regulations that it can mean."""
    words = list(WORD.finditer(before))[-NAME_WORDS:]
    if not words or _DEMONSTRATIVE.search(before.rstrip()):
        return len(before), ()
    first = words[0].start()
    text = _PARTICLE.sub("", before.rstrip(" 「」『』\"'“”‘’<>")[first:]).rstrip(" 「」『』\"'“”‘’<>")
    starts = {match.start() for match in re.finditer(r"(?<!\S)[「『\"'“‘<]?(?=\S)", text)}
    for start in range(len(text) - 1):
        at_word = start in starts or text[start - 1 : start] in "「『\"'“‘<"
        if text[start].isspace() or not (at_word or len(text) - start >= MIN_INSIDE_WORD):
            continue
        outline = collection.catalog.named(folded_name(text[start:]))
        if outline is not None:
            begin = max((place for place in starts if place <= start), default=start)
            return first + begin, tuple(each for each in collection.regulations if each.outline is outline)
    for word in words[-PARTIAL_WORDS:]:
        regulations = _by_part(folded_name(text[word.start() - first :]), collection)
        if regulations:
            return word.start(), regulations
    return len(before), ()


def _by_part(written: str, collection: Collection) -> tuple[Regulation, ...]:
    """The regulations whose name begins with, or else contains, the written one without its ending (규정)."""
    ending = _ENDING.search(written)
    stem, last = (written[: ending.start()], ending.group()) if ending else (written, "")
    if len(stem) < MIN_STEM or stem in _EMPTY_STEMS or (not last and not _is_word(stem)):
        return ()
    names = [(folded_name(regulation.name), regulation) for regulation in collection.regulations]
    beginning = tuple(regulation for name, regulation in names if name.startswith(stem) and name.endswith(last))
    if beginning or not last or len(stem) < MIN_STEM:
        return beginning
    inner = tuple(regulation for name, regulation in names if stem in name and name.endswith(last))
    return inner if len(stem) >= MIN_INNER_STEM or len(inner) <= WIDEST_RANGE else ()


def _is_word(stem: str) -> bool:
    return re.fullmatch(r"[가-힣A-Za-z]+", stem) is not None


def _provisions(collection: Collection, cited: Member | Labelled, regulation: Regulation) -> Sequence[CitableProvision]:
    """What is cited, as far as the regulation has it."""
    sources = (collection.source(f"{regulation.name} {label}") for label in _labels(cited, regulation))
    return [
        source
        for source in sources
        if source is not None and not source.is_deleted and source.regulation.name == regulation.name
    ]


def _labels(cited: Member | Labelled, regulation: Regulation) -> Sequence[str]:
    owner = regulation.outline
    if isinstance(cited, Member):
        numbers = articles_between(owner, cited.number, cited.until) if cited.until else [cited.number]
        return [article_label(number) for number in numbers[:WIDEST_RANGE]]
    if cited.label == ADDENDUM:
        return [ADDENDUM]
    if cited.last:
        return appendices_between(owner, cited.label, cited.last)[:WIDEST_RANGE]
    label = appendix_label(owner, cited.label)
    return [label] if label else []


def _rest(question: str, references: Sequence[_Reference]) -> str:
    """What the question asks beside its references, without words such as 알려줘."""
    parts, position = [], 0
    for reference in references:
        parts.append(question[position : reference.start])
        position = reference.end
    parts.append(question[position:])
    return "".join(_ASKING.sub("", re.sub(r"^\s?(?:부터|까지|내지)", "", part)) for part in parts)
