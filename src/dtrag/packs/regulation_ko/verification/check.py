"""Reads a text and judges its citations, in two steps: between them the texts of the cited regulations are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dtrag.core.provisions import RegulationText
from dtrag.core.verification import Verification
from dtrag.packs.regulation_ko.collection import Collection, Regulation
from dtrag.packs.regulation_ko.verification.judge import Judge
from dtrag.packs.regulation_ko.verification.names_in_text import NamesInText
from dtrag.packs.regulation_ko.verification.reader import Citation, read_citations
from dtrag.packs.regulation_ko.verification.rule_names import RuleNames, WrittenName
from dtrag.packs.regulation_ko.verification.written_text import WrittenText

MAX_TEXT = 150_000
"""Code points of a text: three to six bytes each must fit into a JSON request of 1 MiB."""


@dataclass(frozen=True)
class ReadText:
    """A text with its citations."""

    text: WrittenText
    citations: tuple[Citation, ...]

    def regulations(self) -> tuple[Regulation, ...]:
        """The regulations whose texts are needed to judge the citations."""
        named = (citation.name for citation in self.citations if citation.name)
        cited = {
            regulation.document_id: regulation
            for name in named
            if (regulation := name.regulation or name.near) is not None
        }
        return tuple(cited.values())

    def judged(self, texts: Iterable[RegulationText]) -> Verification:
        """The citations with their statuses; `texts` are those of `regulations`."""
        by_document = {text.document_id: text for text in texts}
        judge = Judge(by_document)
        return Verification.of(
            [
                judge.verified(citation, *self.text.span(citation.start, citation.end), self.text.original)
                for citation in self.citations
            ],
            map(str, by_document),
        )


def read_text(text: str, collection: Collection, default: Regulation | None = None) -> ReadText:
    """The citations of a text; `default` is the regulation of references before any name."""
    written = WrittenText.of(text)
    own = WrittenName(0, 0, default.name, default) if default is not None else None
    names = NamesInText(RuleNames(collection))
    return ReadText(written, tuple(read_citations(written.prepared, names, own)))
