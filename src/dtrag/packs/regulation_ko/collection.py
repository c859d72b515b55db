"""The regulations that a caller may see: which there are, and which provision a reference such as 학칙 제21조 means."""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dtrag.core.provisions import Provision, ProvisionCitation, RegulationText
from dtrag.errors import InvalidInput, NotFound
from dtrag.packs.regulation_ko.catalog import (
    Catalog,
    Outline,
    article_label,
    article_number,
    deleted_appendices,
    deleted_articles,
    folded_appendix,
    folded_name,
)
from dtrag.packs.regulation_ko.citations import appendix_label, citations

NEAREST = 3
"""Names that the message about an unknown name shows."""
LEAST_LIKENESS = 0.5
MOST_NAMED = 12
"""Runs of articles that the message about an unknown article shows."""
ADDENDUM = "부칙"
_REFERENCE = re.compile(
    r"(?:(?P<article>제?\s*\d{1,4}\s*조(?:\s*의\s*\d{1,3}(?!\s*[항호\d]))?)(?:\s*[(（][^()（）]*[)）])?"
    r"(?:\s*(?:의\s*)?제?\s*\d{1,3}\s*[항호])*|(?P<appendix>별\s*[표지첨](?:[^가-힣]|서식|양식|의|호|제)*)"
    r"|(?P<addendum>부\s*칙))\s*$"
)
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

    @classmethod
    def of(cls, regulation: RegulationText) -> Regulation:
        """What citations need to know of it."""
        labels = [(provision.kind, provision.label) for provision in regulation.provisions]
        numbers = (article_number(label) for kind, label in labels if kind == "article")
        articles = frozenset(number for number in numbers if number)
        outline = Outline(
            regulation.name,
            regulation.code,
            articles,
            deleted_articles(regulation.text) - articles,
            {folded_appendix(label): label for kind, label in reversed(labels) if kind == "appendix"},
            any(kind == "addendum" for kind, _ in labels),
            deleted_appendices(regulation.text),
        )
        return cls(regulation.document_id, regulation.name, regulation.code, outline, regulation.provisions)

    def count(self, kind: str) -> int:
        """Number of its provisions of a kind."""
        return sum(provision.kind == kind for provision in self.provisions)


@dataclass(frozen=True, slots=True)
class Source:
    """A provision as it is cited (`name`: `학칙 제21조`); several with one label, such as addenda, are one source."""

    name: str
    regulation: Regulation
    provisions: tuple[Provision, ...]


@dataclass(frozen=True)
class Collection:
    """Regulations with their catalog; of two with one name the first is meant."""

    regulations: tuple[Regulation, ...]
    catalog: Catalog
    sources: Mapping[str, Source]
    by_chunk: Mapping[uuid.UUID, Regulation]

    @classmethod
    def of(cls, regulations: Iterable[Regulation]) -> Collection:
        """The collection of these regulations, in their order."""
        regulations = tuple(regulations)
        sources: dict[str, Source] = {}
        named: set[str] = set()
        for regulation in regulations:
            if regulation.name not in named:
                named.add(regulation.name)
                sources.update((source.name, source) for source in _sources(regulation))
        catalog = Catalog.of(regulation.outline for regulation in regulations)
        return cls(regulations, catalog, sources, {regulation.document_id: regulation for regulation in regulations})

    @functools.cached_property
    def _by_folded_name(self) -> dict[str, Source]:
        return {_folded_reference(name): source for name, source in reversed(tuple(self.sources.items()))}

    def source(self, target: str) -> Source | None:
        """The provision that the target of a citation means; None for a whole regulation."""
        return self.sources.get(target)

    def source_at(self, chunk_id: str) -> Source | None:
        """The provision that a passage belongs to."""
        document_id, _, ordinal = chunk_id.rpartition(":")
        regulation = self.by_chunk.get(uuid.UUID(document_id))
        if regulation is None:
            return None
        for provision in regulation.provisions:
            if provision.first <= int(ordinal) <= provision.last:
                return Source(_cited_name(regulation, provision), regulation, (provision,))
        return None

    def named(self, name: str) -> Regulation:
        """The regulation of this name, short name or code; an exact name comes before a similar one.

        Raises `NotFound` with the nearest names.
        """
        if not self.regulations:
            raise NotFound("There are no regulations that you may see. Read a regulation book with: dtrag ingest FILE")
        wanted = _without_quotes(name)
        outline = self.catalog.named(folded_name(wanted))
        for regulation in self.regulations:
            if wanted in (regulation.name, regulation.code) or regulation.outline is outline:
                return regulation
        raise NotFound(f"There is no regulation {wanted[:60]!r} that you may see. {self._nearest(wanted)}")

    def find(self, reference: str) -> Source:
        """The provision that a reference such as `학칙 제21조`, `학칙 별표 2` or `학칙 부칙` means.

        Raises `NotFound` for what is not there, and `InvalidInput` for a reference without a provision.
        """
        text = _tidied(reference)
        exact = self._by_folded_name.get(_folded_reference(text))
        if exact is not None:
            return exact
        found = _REFERENCE.search(text)
        name = text[: found.start()] if found else text
        if not _without_quotes(name):
            raise InvalidInput('Give the name of a regulation and an article, such as "학칙 제21조".')
        regulation = self.named(name)
        there = f"It has {_provision_names(regulation)}." if regulation.provisions else "It has no articles."
        if found is None:
            raise InvalidInput(f"Name an article of {regulation.name} as well. {there}")
        label = _label(found, regulation)
        source = self.sources.get(f"{regulation.name} {label}") if label else None
        if source is not None:
            return source
        number = article_number(label) if label else None
        if number in regulation.outline.repealed:
            raise NotFound(f"{regulation.name} {label} has been deleted (삭제). {there}")
        raise NotFound(f"{regulation.name} has no {label or ' '.join(found.group().split())}. {there}")

    def citations_of(self, source: Source, texts: Sequence[str]) -> Iterator[ProvisionCitation]:
        """The citations in the texts of a source's provisions; offsets count in the texts joined by `BETWEEN`."""
        offset = 0
        for provision, text in zip(source.provisions, texts, strict=True):
            for citation in citations(text, source.regulation.outline, provision.label, self.catalog):
                yield ProvisionCitation(
                    source.name,
                    offset + citation.start,
                    offset + citation.end,
                    citation.text,
                    citation.kind,
                    citation.targets,
                    citation.paragraph,
                    citation.item,
                )
            offset += len(text) + len(BETWEEN)

    def _nearest(self, name: str) -> str:
        folded = {folded_name(regulation.name): regulation.name for regulation in self.regulations}
        wanted = folded_name(name)
        near = [known for known in folded if len(wanted) > 1 and (wanted in known or known in wanted)]
        near += difflib.get_close_matches(wanted, folded, NEAREST, cutoff=LEAST_LIKENESS)
        names = ", ".join(folded[known] for known in list(dict.fromkeys(near))[:NEAREST])
        return (f"Nearest: {names}. " if names else "") + "All of them: dtrag regulations list"


BETWEEN = "\n\n"
"""Between the texts of several provisions with one label."""


def _tidied(text: str) -> str:
    """With composed letters and single blanks; names keep their capitals."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _folded_reference(text: str) -> str:
    """Without blanks and quotation marks: `「학칙」제21조` is `학칙 제21조`."""
    return "".join(text.translate(_NO_QUOTES).split())


def _without_quotes(name: str) -> str:
    return _tidied(name).strip(_AROUND_NAME)


def _label(found: re.Match[str], regulation: Regulation) -> str | None:
    """The label of the provision as the regulation writes it; None for an appendix that it does not have."""
    if found["article"]:
        text = found["article"].strip()
        number = article_number(text if text.startswith("제") else f"제{text}")
        return article_label(number) if number else None
    return ADDENDUM if found["addendum"] else appendix_label(regulation.outline, found["appendix"].strip(_AROUND_NAME))


def _sources(regulation: Regulation) -> Iterator[Source]:
    """The provisions by the names that cite them, in the order of the text."""
    same: dict[str, list[Provision]] = {}
    for provision in regulation.provisions:
        same.setdefault(_cited_name(regulation, provision), []).append(provision)
    return (Source(name, regulation, tuple(provisions)) for name, provisions in same.items())


def _cited_name(regulation: Regulation, provision: Provision) -> str:
    if provision.kind == "addendum":
        return f"{regulation.name} {ADDENDUM}"
    number = article_number(provision.label) if provision.kind == "article" else None
    return f"{regulation.name} {article_label(number) if number else provision.label}"


def _provision_names(regulation: Regulation) -> str:
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
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
