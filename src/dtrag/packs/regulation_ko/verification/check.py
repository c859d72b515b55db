"""Reads a text and judges its citations, in two steps: between them the texts of the cited regulations are read."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dtrag.core.provisions import RegulationText
from dtrag.core.verification import Verification
from dtrag.packs.regulation_ko.catalog import article_number
from dtrag.packs.regulation_ko.collection import Collection, Regulation
from dtrag.packs.regulation_ko.verification.judge import Judge
from dtrag.packs.regulation_ko.verification.names_in_text import NamesInText
from dtrag.packs.regulation_ko.verification.own_text import own_regulations
from dtrag.packs.regulation_ko.verification.quotations import Quotation, read_quotations
from dtrag.packs.regulation_ko.verification.reader import Citation, Place, read_citations
from dtrag.packs.regulation_ko.verification.rule_names import RuleNames, WrittenName
from dtrag.packs.regulation_ko.verification.written_text import WrittenText

MAX_TEXT = 150_000
"""Code points of a text: three to six bytes each must fit into a JSON request of 1 MiB."""


@dataclass(frozen=True)
class ReadText:
    """A text with its citations."""

    text: WrittenText
    citations: tuple[Citation, ...]
    quotations: tuple[Quotation, ...] = ()
    own: tuple[RegulationText, ...] = ()
    """The regulations that the text itself contains."""

    editions: Mapping[uuid.UUID, Sequence[uuid.UUID]] = field(default_factory=dict)
    """Document of a cited regulation -> documents of its editions that are valid together, its own first."""

    def judged(self, texts: Iterable[RegulationText]) -> Verification:
        """The citations with their statuses; `texts` are those of `editions`."""
        by_document = {text.document_id: text for text in texts}
        editions = {key: [by_document[each] for each in keys] for key, keys in self.editions.items()}
        judge = Judge(editions | {text.document_id: [text] for text in self.own})
        original = self.text.original
        verified = [
            judge.verified(citation, *self.text.span(citation.start, citation.end), original)
            for citation in self.citations
        ]
        quotations = [
            judge.quoted(
                self.citations[quotation.citation],
                verified[quotation.citation],
                *self.text.span(quotation.start, quotation.end),
                original,
            )
            for quotation in self.quotations
        ]
        return Verification.of(verified, map(str, by_document), quotations)


def read_text(text: str, collection: Collection, default: Regulation | None = None) -> ReadText:
    """The citations of a text; `default` is the regulation of references before any name.

    In a text that is itself a regulation (a draft), references without a name are to its own articles, and quotation
    marks surround words that it changes or defines.
    """
    written = WrittenText.of(text)
    own = own_regulations(written.composed)
    rules = RuleNames(collection, [regulation for _, _, regulation in own])
    citations: list[Citation] = []
    behind = 0
    for start, own_text, regulation in own:
        citations += _read_part(written, rules, behind, start, default)
        citations += _read_own(written, rules, start, own_text, regulation)
        behind = start + len(own_text.text)
    citations += _read_part(written, rules, behind, len(written.prepared), default)
    own_texts = tuple(own_text for _, own_text, _ in own)
    quotations = () if own else tuple(read_quotations(written, citations))
    return ReadText(written, tuple(citations), quotations, own_texts, _editions(citations, own_texts, collection))


def _read_part(
    written: WrittenText, rules: RuleNames, start: int, end: int, default: Regulation | None
) -> list[Citation]:
    """The citations in a part of a text that is not itself a regulation."""
    text = written.prepared[start:end]
    return _moved(read_citations(text, NamesInText(rules).find(text), Place(_name_of(default))), start)


def _read_own(
    written: WrittenText, rules: RuleNames, start: int, own_text: RegulationText, regulation: Regulation
) -> list[Citation]:
    """The citations in the provisions of a regulation, whose text begins at `start`."""
    text = written.prepared[start : start + len(own_text.text)]
    names = NamesInText(rules, regulation.outline).find(text)
    starts = [name.start for name in names]
    citations: list[Citation] = []
    for provision in own_text.provisions:
        is_article = provision.kind == "article"
        place = Place(
            _name_of(regulation),
            is_own=True,
            article=article_number(provision.label) if is_article else None,
            has_articles=not is_article,
        )
        within = names[bisect_left(starts, provision.start) : bisect_left(starts, provision.end)]
        moved = [
            replace(name, start=name.start - provision.start, end=name.end - provision.start)
            for name in within
            if name.end <= provision.end
        ]
        read = read_citations(text[provision.start : provision.end], moved, place)
        citations += _moved(read, start + provision.start)
    return citations


def _editions(
    citations: Iterable[Citation], own: Iterable[RegulationText], collection: Collection
) -> dict[uuid.UUID, list[uuid.UUID]]:
    """Document of each cited regulation of the collection -> documents of its valid editions."""
    works: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for key, edition in collection.by_chunk.items():
        if edition.work_id is not None:
            works[edition.work_id].append(key)
    outside = {text.document_id for text in own}
    named = [name for citation in citations if (name := citation.name) is not None]
    cited = [regulation for name in named if (regulation := name.regulation or name.near) is not None]
    editions: dict[uuid.UUID, list[uuid.UUID]] = {}
    for regulation in cited:
        key = regulation.document_id
        if key not in outside and key not in editions:
            others = works[regulation.work_id] if regulation.work_id is not None else []
            editions[key] = [key, *(other for other in others if other != key)]
    return editions


def _moved(citations: Iterable[Citation], offset: int) -> list[Citation]:
    return [replace(citation, start=citation.start + offset, end=citation.end + offset) for citation in citations]


def _name_of(regulation: Regulation | None) -> WrittenName | None:
    return WrittenName(0, 0, regulation.name, regulation) if regulation is not None else None
