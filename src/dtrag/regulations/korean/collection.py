"""The regulations that a caller may see, and the provision that a reference such as 학칙 제21조 means, with details."""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from hashlib import blake2b
from itertools import chain

from dtrag.core.editions import folded_name
from dtrag.core.provisions import Amendment, Provision, ProvisionCitation, RegulationText
from dtrag.core.text.patterns import explained
from dtrag.errors import Advice, InvalidInput, NotFound
from dtrag.regulations.korean.amendments import (
    amendments,
    dates,
    effective_date,
    effective_dates,
    heading_before,
    is_repealed,
    preface,
)
from dtrag.regulations.korean.catalog import (
    Catalog,
    Number,
    Outline,
    appendix_label,
    article_label,
    article_number,
    deletions,
    folded_appendix,
    former_names,
)
from dtrag.regulations.korean.citations import citations
from dtrag.regulations.korean.heads import division_head

SUGGESTIONS = 3
"""Similar names in the message about an unknown name."""
MIN_SIMILARITY = 0.5
MAX_LISTED = 12
"""Ranges of articles in the message about an unknown article."""
CACHED_CITATIONS = 16_384
"""Texts of provisions whose citations are cached for one catalog: a book has 6,000, and most cite nothing."""
ADDENDUM = "부칙"
_DIVISION_LINE = re.compile(r"(?m)^[ \t#*]*+(?P<text>제\s?(?P<number>\d{1,3})\s?(?P<kind>[편장절관])[^\n]{0,120})$")
NO_PASSAGE = -1
"""`first` and `last` of a deleted provision."""
_REFERENCE = explained(
    r"(?:(?P<article>제?\s*\d{1,4}\s*조(?:\s*의\s*\d{1,3}(?!\s*[항호\d]))?)(?:\s*[(（][^()（）]*[)）])?"
    r"(?:\s*(?:의\s*)?제?\s*\d{1,3}\s*[항호])*|(?P<appendix>별\s*[표지첨](?:[^가-힣]|서식|양식|의|호|제)*)"
    r"|(?P<addendum>부\s*칙))\s*$",
    finds=("학칙 제21조제2항", "학칙 별표 2", "학칙 부칙"),
    refuses=("학칙 제21조를 본다", "학칙"),
)
_Place = tuple[uuid.UUID, int, int]
"""Document, first and last passage of a source."""
_NO_QUOTES = str.maketrans("", "", "「」『』“”‘’")
_AROUND_NAME = " \t「」『』\"'“”‘’<>〈〉《》[]【】()"


@dataclass(frozen=True, slots=True)
class Regulation:
    """One regulation without its text."""

    document_id: uuid.UUID
    name: str
    code: str
    outline: Outline
    provisions: tuple[Provision, ...]
    deleted: tuple[Provision, ...] = ()
    """What remains of deleted provisions (`삭제 <2020. 1. 1.>`); they have no passages (`NO_PASSAGE`)."""
    deleted_on: Mapping[str, str] = field(default_factory=dict)
    """Label of a deleted provision -> the date in what remains."""
    work_id: uuid.UUID | None = None
    headings: tuple[str, ...] = ()

    @classmethod
    def of(cls, regulation: RegulationText) -> Regulation:
        """The part of the regulation that citations need."""
        labels = [(provision.kind, provision.label) for provision in regulation.provisions]
        numbers = (article_number(label) for kind, label in labels if kind == "article")
        articles = frozenset(number for number in numbers if number)
        appendices = {folded_appendix(label): label for kind, label in reversed(labels) if kind == "appendix"}
        deleted = [
            deletion
            for deletion in deletions(regulation.text)
            if deletion.number not in articles and folded_appendix(deletion.label) not in appendices
        ]
        outline = Outline(
            regulation.name,
            regulation.code,
            articles,
            frozenset(deletion.number for deletion in deleted if deletion.number),
            appendices,
            any(kind == "addendum" for kind, _ in labels),
            frozenset(folded_appendix(deletion.label) for deletion in deleted if deletion.kind == "appendix"),
            _divisions(regulation),
            *former_names(
                regulation.name,
                (_of(regulation, provision) for provision in regulation.provisions if provision.kind == "addendum"),
            ),
        )
        remains = {
            deletion.label: Provision(
                deletion.kind, deletion.label, deletion.title, 1, deletion.start, deletion.end, NO_PASSAGE, NO_PASSAGE
            )
            for deletion in deleted
        }
        return cls(
            regulation.document_id,
            regulation.name,
            regulation.code,
            outline,
            regulation.provisions,
            tuple(remains.values()),
            {label: written[-1] for label, rest in remains.items() if (written := dates(_of(regulation, rest)))},
            regulation.work_id,
            regulation.headings,
        )

    def with_editions(self, others: Sequence[Regulation]) -> Regulation:
        """The regulation as it is cited while provisions of its other editions are valid beside its own."""
        outlines = [self.outline, *(other.outline for other in others)]
        articles = frozenset[Number]().union(*(outline.articles for outline in outlines))
        appendices = {label: text for outline in reversed(outlines) for label, text in outline.appendices.items()}
        outline = replace(
            self.outline,
            articles=articles,
            repealed=self.outline.repealed - articles,
            appendices=appendices,
            repealed_appendices=self.outline.repealed_appendices - appendices.keys(),
        )
        return replace(self, outline=outline)

    def count(self, kind: str) -> int:
        """Number of its provisions of a kind."""
        return sum(provision.kind == kind for provision in self.provisions)


@dataclass(frozen=True, slots=True)
class CitableProvision:
    """A provision as citations name it (`학칙 제21조`); several with one label, such as addenda, are one source."""

    name: str
    regulation: Regulation
    provisions: tuple[Provision, ...]

    @property
    def is_deleted(self) -> bool:
        """Whether only the mark of a deleted provision remains."""
        return self.provisions[0].first == NO_PASSAGE

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """The passages of the provision, in the order of the text."""
        document_id = self.regulation.document_id
        return tuple(
            f"{document_id}:{ordinal}"
            for provision in self.provisions
            for ordinal in range(provision.first, provision.last + 1)
        )


@dataclass(frozen=True, eq=False)
class Collection:
    """Regulations with their catalog; the name of two regulations means the first one."""

    regulations: tuple[Regulation, ...]
    catalog: Catalog
    sources: Mapping[str, CitableProvision]
    by_chunk: Mapping[uuid.UUID, Regulation]

    @classmethod
    def of(cls, regulations: Iterable[Regulation], known: Iterable[Collection] = ()) -> Collection:
        """The collection of these regulations, in their order.

        One of the `known` ones in which the same can be cited lends its catalog, with the citations read so far.
        """
        main, all_editions = _by_work(regulations)
        outlines = [regulation.outline for regulation in main]
        same = next((other for other in known if [each.outline for each in other.regulations] == outlines), None)
        if same is not None:
            # Outlines are known by their identity: each regulation has that of the lent catalog, in a single copy.
            lent = {id(own): other.outline for own, other in zip(outlines, same.regulations, strict=True)}
            copies = {
                id(each): replace(each, outline=lent[id(each.outline)])
                for each in (*main, *chain.from_iterable(all_editions.values()))
            }
            main = tuple(copies[id(each)] for each in main)
            all_editions = {key: tuple(copies[id(each)] for each in own) for key, own in all_editions.items()}
        catalog = same.catalog if same is not None else Catalog.of(outlines)
        sources: dict[str, CitableProvision] = {}
        named: set[str] = set()
        for regulation in main:
            if regulation.name in named:
                continue
            named.add(regulation.name)
            for edition in all_editions.get(regulation.document_id, (regulation,)):
                for source in _sources(edition):
                    if source.name not in sources or sources[source.name].is_deleted:
                        sources[source.name] = source
        by_chunk = {regulation.document_id: regulation for regulation in main}
        by_chunk |= {edition.document_id: edition for editions in all_editions.values() for edition in editions}
        return cls(main, catalog, sources, by_chunk)

    @functools.cached_property
    def _by_folded_name(self) -> dict[str, CitableProvision]:
        return {_folded_reference(name): source for name, source in reversed(tuple(self.sources.items()))}

    def source(self, target: str) -> CitableProvision | None:
        """The provision that is the target of a citation; None for a whole regulation."""
        return self.sources.get(target)

    def source_at(self, chunk_id: str) -> CitableProvision | None:
        """The provision that a passage belongs to."""
        document_id, _, ordinal = chunk_id.rpartition(":")
        regulation = self.by_chunk.get(uuid.UUID(document_id))
        if regulation is None:
            return None
        for provision in regulation.provisions:
            if provision.first <= int(ordinal) <= provision.last:
                return CitableProvision(cited_name(regulation, provision), regulation, (provision,))
        return None

    def documents_of(self, regulation: Regulation) -> list[uuid.UUID]:
        """The document of a regulation, and those of the other editions of its work that have valid provisions."""
        work_id = regulation.work_id
        others = [key for key, other in self.by_chunk.items() if other.work_id == work_id] if work_id else []
        return list(dict.fromkeys([regulation.document_id, *others]))

    def cited_names(self, source: CitableProvision, text: str) -> tuple[str, ...]:
        """Names of the provisions that the source cites, each as often as it does; `text` is its text.

        Takes a second for a text of a million characters; may run in a thread.
        """
        read = self.citations_in(source.regulation, source.provisions[0].label, text)
        return tuple(name for citation in read for name in citation.targets)

    def citations_in(self, regulation: Regulation, label: str, text: str) -> Sequence[ProvisionCitation]:
        """The citations in a text of a provision of the regulation; cached with the catalog, by the text."""
        cache = self.catalog.citations_read
        key = (regulation.document_id, label, blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        read = cache.get(key)
        if read is None:
            if len(cache) >= CACHED_CITATIONS:
                cache.clear()
            read = cache[key] = tuple(citations(text, regulation.outline, label, self.catalog))
        return read

    def remember_cited_names(self, source: CitableProvision, day: date | None, names: Sequence[str]) -> None:
        """Cache what `cited_names` returned for the whole text of the source, as of a day."""
        if len(self._cited_names) >= CACHED_CITATIONS:
            self._cited_names.clear()
        self._cited_names[_place(source), day] = names

    def cached_cited_names(self, source: CitableProvision, day: date | None) -> Sequence[str] | None:
        """What was remembered for the source, as of a day; None without that."""
        return self._cited_names.get((_place(source), day))

    @functools.cached_property
    def _cited_names(self) -> dict[tuple[_Place, date | None], Sequence[str]]:
        return {}

    def named(self, name: str) -> Regulation:
        """The regulation with this name, short name or code; an exact name comes before a short one.

        Raises `NotFound` with the most similar names.
        """
        if not self.regulations:
            raise NotFound("There are no regulations that you may see.", Advice.ADD_REGULATIONS)
        plain_name = _without_quotes(name)
        outline = self.catalog.named(folded_name(plain_name))
        for regulation in self.regulations:
            if plain_name in (regulation.name, regulation.code) or regulation.outline is outline:
                return regulation
        missing = f"There is no regulation {plain_name[:60]!r} that you may see.{self._suggestions(plain_name)}"
        raise NotFound(missing, Advice.LIST_REGULATIONS)

    def find(self, reference: str) -> CitableProvision:
        """The provision that a reference such as `학칙 제21조`, `학칙 별표 2` or `학칙 부칙` means.

        Raises `NotFound` when it does not exist, and `InvalidInput` for a reference without a provision.
        """
        text = _tidied(reference)
        exact = self._by_folded_name.get(_folded_reference(text))
        if exact is not None:
            return exact
        match = _REFERENCE.search(text)
        name = text[: match.start()] if match else text
        if not _without_quotes(name):
            raise InvalidInput('Give the name of a regulation and an article, such as "학칙 제21조".')
        regulation = self.named(name)
        provisions = f"It has {provision_names(regulation)}." if regulation.provisions else "It has no articles."
        if match is None:
            raise InvalidInput(f"Name an article of {regulation.name} as well. {provisions}")
        label = _label(match, regulation)
        source = self.sources.get(f"{regulation.name} {label}") if label else None
        if source is not None:
            return source
        if (remains := _remains(match, regulation)) is not None:
            return CitableProvision(cited_name(regulation, remains), regulation, (remains,))
        raise NotFound(f"{regulation.name} has no {label or ' '.join(match.group().split())}. {provisions}")

    def citations_of(self, source: CitableProvision, texts: Sequence[str]) -> Iterator[ProvisionCitation]:
        """The citations in the texts of a source's provisions; offsets count in the texts joined by `BETWEEN`."""
        offset = 0
        for provision, text in zip(source.provisions, texts, strict=True):
            for citation in self.citations_in(source.regulation, provision.label, text):
                start, end = offset + citation.start, offset + citation.end
                yield replace(citation, source=source.name, start=start, end=end)
            offset += len(text) + len(BETWEEN)

    def _suggestions(self, name: str) -> str:
        by_folded = {folded_name(regulation.name): regulation.name for regulation in self.regulations}
        folded = folded_name(name)
        similar = [other for other in by_folded if len(folded) > 1 and (folded in other or other in folded)]
        similar += difflib.get_close_matches(folded, by_folded, SUGGESTIONS, cutoff=MIN_SIMILARITY)
        names = ", ".join(by_folded[other] for other in list(dict.fromkeys(similar))[:SUGGESTIONS])
        return f" Nearest: {names}." if names else ""


BETWEEN = "\n\n"
"""Separator of the texts of several provisions with the same label."""


def _place(source: CitableProvision) -> _Place:
    return source.regulation.document_id, source.provisions[0].first, source.provisions[-1].last


def _of(regulation: RegulationText, provision: Provision) -> str:
    return regulation.text[provision.start : provision.end]


def _divisions(regulation: RegulationText) -> dict[tuple[str, ...], tuple[Number, ...]]:
    """The headings of divisions above the last article, as paths, with the articles directly below each."""
    numbered = ((provision, article_number(provision.label)) for provision in regulation.provisions)
    articles = [(provision.start, number) for provision, number in numbered if provision.kind == "article" and number]
    last = articles[-1][0] if articles else 0
    heads = (
        (line.start(), head[0], f"제{int(line['number'])}{line['kind']}")
        for line in _DIVISION_LINE.finditer(regulation.text, 0, last)
        if (head := division_head(line["text"].strip()))
    )
    divisions: dict[tuple[str, ...], list[Number]] = {}
    path: dict[int, str] = {}
    place = 0
    for start, rank, label in [*heads, (last + 1, 0, "")]:
        while place < len(articles) and articles[place][0] < start:
            if path:
                divisions[tuple(path.values())].append(articles[place][1])
            place += 1
        path = {outer: name for outer, name in path.items() if outer < rank} | {rank: label}
        divisions.setdefault(tuple(path.values()), [])
    divisions.pop(("",), None)
    return {path: tuple(numbers) for path, numbers in divisions.items()}


def _tidied(text: str) -> str:
    """With composed letters (NFC) and single blanks; upper case stays."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _folded_reference(text: str) -> str:
    """Without blanks and quotation marks: `「학칙」제21조` is `학칙 제21조`."""
    return "".join(text.translate(_NO_QUOTES).split())


def _without_quotes(name: str) -> str:
    return _tidied(name).strip(_AROUND_NAME)


def _label(match: re.Match[str], regulation: Regulation) -> str | None:
    """The label of the provision as the regulation writes it; None for an appendix that it does not have."""
    if match["article"]:
        text = match["article"].strip()
        number = article_number(text if text.startswith("제") else f"제{text}")
        return article_label(number) if number else None
    return ADDENDUM if match["addendum"] else appendix_label(regulation.outline, match["appendix"].strip(_AROUND_NAME))


def _remains(match: re.Match[str], regulation: Regulation) -> Provision | None:
    """What remains of the deleted provision that the reference names."""
    if match["article"]:
        label = _label(match, regulation) or ""
        return next((provision for provision in regulation.deleted if provision.label == label), None)
    folded = folded_appendix((match["appendix"] or "").strip(_AROUND_NAME))
    return next((provision for provision in regulation.deleted if folded_appendix(provision.label) == folded), None)


def _by_work(
    regulations: Iterable[Regulation],
) -> tuple[tuple[Regulation, ...], dict[uuid.UUID, tuple[Regulation, ...]]]:
    """One regulation of each work, the first; and by its id all editions of works that have several.

    A work has several while articles of a new edition have not taken effect yet.
    """
    works: dict[uuid.UUID, list[Regulation]] = {}
    for regulation in regulations:
        works.setdefault(regulation.work_id or regulation.document_id, []).append(regulation)
    main: list[Regulation] = []
    all_editions: dict[uuid.UUID, tuple[Regulation, ...]] = {}
    for first, *others in works.values():
        if not others:
            main.append(first)
            continue
        cited = first.with_editions(others)
        main.append(cited)
        all_editions[first.document_id] = (cited, *(replace(other, outline=cited.outline) for other in others))
    return tuple(main), all_editions


def _sources(regulation: Regulation) -> Iterator[CitableProvision]:
    """The provisions by the names that cite them, in the order of the text."""
    by_name: dict[str, list[Provision]] = {}
    for provision in regulation.provisions:
        by_name.setdefault(cited_name(regulation, provision), []).append(provision)
    return (CitableProvision(name, regulation, tuple(provisions)) for name, provisions in by_name.items())


def cited_name(regulation: Regulation, provision: Provision) -> str:
    """The name of a provision in citations: 학칙 제21조, 학칙 부칙."""
    if provision.kind == "addendum":
        return f"{regulation.name} {ADDENDUM}"
    number = article_number(provision.label) if provision.kind == "article" else None
    return f"{regulation.name} {article_label(number) if number else provision.label}"


def provision_names(regulation: Regulation) -> str:
    """제1조 to 제7조, 제9조, 별표 1, 부칙: neighbouring articles as runs."""
    runs: list[list[str]] = []
    before: tuple[int, int] | None = None
    for number in sorted(regulation.outline.articles):
        follows = before is not None and (number[0] == before[0] or number == (before[0] + 1, 0))
        if follows:
            runs[-1][1:] = [article_label(number)]
        else:
            runs.append([article_label(number)])
        before = number
    names = [" to ".join(run) for run in runs] + list(regulation.outline.appendices.values())
    if regulation.outline.has_addendum:
        names.append(ADDENDUM)
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


_RELATED = re.compile(r"[(（]([^()（）]{2,80}?)\s*+관련\s*+[)）]")
"""제8조 in the title of an appendix: 배차 기준(제8조 관련)."""


@dataclass(frozen=True, slots=True)
class ProvisionDetails:
    """`names` are the provisions that it cites, `named_by` those of the same regulation that cite it."""

    amendments: tuple[Amendment, ...]
    repealed: bool
    effective_dates: tuple[str, ...]
    effective_date: str | None
    names: tuple[str, ...]
    named_by: tuple[str, ...]


def details(collection: Collection, source: CitableProvision, regulation: RegulationText) -> ProvisionDetails:
    """The details of a provision of the regulation, whose citations in `collection` are followed."""
    text = regulation.text
    addenda = [
        (text[provision.start : provision.end], provision.title)
        for provision in regulation.provisions
        if provision.kind == "addendum"
    ]
    own = {(text[provision.start : provision.end], provision.title) for provision in source.provisions}
    before = preface(text)
    return ProvisionDetails(
        amendments=tuple(
            dict.fromkeys(
                amendment
                for provision in source.provisions
                if provision.kind != "addendum"
                for amendment in amendments(
                    text[provision.start : provision.end], heading_before(text, provision.start)
                )
            )
        ),
        repealed=is_repealed(before),
        effective_dates=tuple(
            dict.fromkeys(date for addendum in addenda if addendum in own for date in effective_dates(*addendum))
        ),
        effective_date=effective_date(addenda, before),
        names=_names(collection, source, text),
        named_by=tuple(
            other.name
            for other in collection.sources.values()
            if other.regulation is source.regulation
            and other.name != source.name
            and source.name in _names(collection, other, text)
        ),
    )


def _names(collection: Collection, source: CitableProvision, text: str) -> tuple[str, ...]:
    """The provisions that the text or the title (`별표 1`, 제8조 관련) of a provision cites, each once."""
    names: dict[str, None] = {}
    for provision in source.provisions:
        for part in (*_RELATED.findall(provision.title), text[provision.start : provision.end]):
            for citation in collection.citations_in(source.regulation, provision.label, part):
                names |= dict.fromkeys(citation.targets)
    names.pop(source.name, None)
    return tuple(names)
