"""Reads a text and judges its citations, in two steps: between them the texts of the cited regulations are read."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dtrag.core.documents import ParsedDocument
from dtrag.core.provisions import RegulationText, provisions_of
from dtrag.core.verification import Verification
from dtrag.regulations.korean.catalog import Catalog, Name, Outline
from dtrag.regulations.korean.citation_grammar import WHOLE
from dtrag.regulations.korean.citation_names import NameFinder
from dtrag.regulations.korean.citation_reader import Place, Token, place_of, read_citations
from dtrag.regulations.korean.collection import Collection, Regulation
from dtrag.regulations.korean.structure import split
from dtrag.regulations.korean.verification.judge import CitationJudge
from dtrag.regulations.korean.verification.quotations import Quotation, WrittenText, read_quotations

UNNAMED = "이 규정"
_NAMESPACE = uuid.UUID("6b0d6a0e-3b0c-5a55-9d43-3a1a9a4a2f10")
MAX_TEXT = 150_000
"""Code points of a text: three to six bytes each must fit into a JSON request of 1 MiB."""


@dataclass(frozen=True)
class ReadText:
    """A text with its citations."""

    text: WrittenText
    citations: tuple[Token, ...]
    quotations: tuple[Quotation, ...] = ()
    own: tuple[RegulationText, ...] = ()
    """The regulations that the text itself contains."""

    regulations: Mapping[int, Regulation] = field(default_factory=dict)
    """Identity of an outline -> its regulation."""

    editions: Mapping[uuid.UUID, Sequence[uuid.UUID]] = field(default_factory=dict)
    """Document of a cited regulation -> documents of its editions that are valid together, its own first."""

    def judged(self, texts: Iterable[RegulationText]) -> Verification:
        """The citations with their statuses; `texts` are those of `editions`."""
        by_document = {text.document_id: text for text in texts}
        editions = {key: [by_document[each] for each in keys] for key, keys in self.editions.items()}
        judge = CitationJudge(editions | {text.document_id: [text] for text in self.own}, self.regulations)
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
    own = _own_regulations(written.composed)
    drafts = [regulation for _, _, regulation in own]
    catalog = collection.catalog
    if drafts:  # their names have priority
        catalog = Catalog.of(regulation.outline for regulation in (*drafts, *collection.regulations))
    citations: list[Token] = []
    behind = 0
    for start, own_text, regulation in own:
        citations += _read_part(written, catalog, behind, start, default)
        citations += _read_own(written, catalog, start, own_text, regulation.outline)
        behind = start + len(own_text.text)
    citations += _read_part(written, catalog, behind, len(written.prepared), default)
    citations = [citation for citation in citations if _is_checked(citation)]
    own_texts = tuple(own_text for _, own_text, _ in own)
    quotations = () if own else tuple(read_quotations(written, citations))
    regulations = {id(regulation.outline): regulation for regulation in (*reversed(collection.regulations), *drafts)}
    editions = _editions(citations, own_texts, collection, regulations)
    return ReadText(written, tuple(citations), quotations, own_texts, regulations, editions)


def _own_regulations(text: str) -> list[tuple[int, RegulationText, Regulation]]:
    """Start, text and outline of each regulation in a text, in order; none in a text of another kind."""
    regulations: list[tuple[int, RegulationText, Regulation]] = []
    behind = 0
    for part in split(ParsedDocument("", text, "text/plain")) or ():
        own = part.document
        start = text.index(own.text, behind)
        behind = start + len(own.text)
        code = str(own.metadata.get("code") or "")
        key = uuid.uuid5(_NAMESPACE, f"{len(regulations)}")
        read = RegulationText(key, own.title or UNNAMED, code, own.text, provisions_of(part.chunks))
        regulations.append((start, read, Regulation.of(read)))
    return regulations


def _is_checked(citation: Token) -> bool:
    """부칙 without a name or a number is the word."""
    return citation.kind != "addendum" or citation.is_named or citation.number is not None or citation.part != WHOLE


def _read_part(written: WrittenText, catalog: Catalog, start: int, end: int, default: Regulation | None) -> list[Token]:
    """The citations in a part of a text that is not itself a regulation."""
    text = written.prepared[start:end]
    place = Place(Name(0, 0, default.name, default.outline) if default else None)
    return _moved(read_citations(text, NameFinder(text, catalog).of_text(), place), start)


def _read_own(
    written: WrittenText, catalog: Catalog, start: int, own_text: RegulationText, outline: Outline
) -> list[Token]:
    """The citations in the provisions of a regulation, whose text begins at `start`."""
    text = written.prepared[start : start + len(own_text.text)]
    names = NameFinder(text, catalog, outline).of_text()
    starts = [name.start for name in names]
    citations: list[Token] = []
    for provision in own_text.provisions:
        place = place_of(provision.label, outline)
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
    citations: Iterable[Token],
    own: Iterable[RegulationText],
    collection: Collection,
    regulations: Mapping[int, Regulation],
) -> dict[uuid.UUID, list[uuid.UUID]]:
    """Document of each cited regulation of the collection -> documents of its valid editions."""
    outside = {text.document_id for text in own}
    named = [name for citation in citations if (name := citation.name) is not None]
    cited = [regulations[id(outline)] for name in named if (outline := name.owner or name.near) is not None]
    return {
        regulation.document_id: collection.documents_of(regulation)
        for regulation in {regulation.document_id: regulation for regulation in cited}.values()
        if regulation.document_id not in outside
    }


def _moved(citations: Iterable[Token], offset: int) -> list[Token]:
    return [replace(citation, start=citation.start + offset, end=citation.end + offset) for citation in citations]
