"""Citations in the text of regulations: what is cited, of which regulation, and whether it exists.

Reads 제15조제2항제3호, ranges (제13조 내지 제17조, 제13조부터 제17조까지), lists, 같은 조, 전조, 전항, 이 규정 제N조,
names with or without quotation marks, blanks and middle dots, chapters, 별표, 별지, 부칙, and laws outside the book.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from dtrag.core.provisions import ProvisionCitation
from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.catalog import (
    Catalog,
    Name,
    Number,
    Outline,
    appendices_between,
    appendix_labels,
    article_label,
    articles_between,
    division_articles,
    folded_appendix,
    ordered_articles,
)
from dtrag.regulations.korean.citation_grammar import MOST_MEMBERS, WHOLE
from dtrag.regulations.korean.citation_names import NameFinder
from dtrag.regulations.korean.citation_reader import Token, place_of, read_citations

Kind = Literal["internal", "other-regulation", "appendix", "addendum", "external-law", "repealed", "missing"]


def citations(text: str, source: Outline, label: str, catalog: Catalog) -> list[ProvisionCitation]:
    """The citations of an article, appendix or addendum (`label`) of the regulation `source`, in reading order.

    Their offsets are those in `text`.
    """
    masked = patterns.masked(text)
    place = place_of(label, source)
    text_citations: list[ProvisionCitation] = []
    before: Token | None = None
    for tokens in _joined(masked, read_citations(masked, NameFinder(masked, catalog, source).of_provision(), place)):
        first, end = tokens[0], tokens[-1].end
        is_of_name = before is not None and patterns.CITES_APPENDIX.fullmatch(masked, before.end, first.start)
        resolved = _resolved(tokens, source, place.article, before.name if before and is_of_name else None)
        before = first if first.kind == "regulation" else None
        if resolved is not None:
            written = text[first.start : end].rstrip()
            item = first.part.item[0] if first.part.item else None
            text_citations.append(
                ProvisionCitation(
                    f"{source.name} {label}", first.start, first.start + len(written), written, *resolved,
                    first.part.paragraph, item,
                )
            )  # fmt: skip
    return text_citations


def cited_texts(text: str) -> list[str]:
    """The citations in a passage of an unknown collection, as text: articles (제15조), or names with articles."""
    return list(dict.fromkeys(match.group().strip() for match in patterns.PLAIN.finditer(patterns.masked(text))))


def _joined(text: str, tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The tokens of each citation: a list of whole articles is one, and one of parts of the same article."""
    group: list[Token] = []
    for token in tokens:
        if group and token.joined:
            is_list = token.part == group[-1].part == WHOLE
            is_of_same = token.number == group[-1].number and not patterns.ARTICLE.match(text, token.start)
            if is_list or is_of_same:
                group.append(token)
                continue
        if group:
            yield group
        group = [token]
    if group:
        yield group


def _resolved(
    tokens: Sequence[Token], source: Outline, own: Number | None, named_before: Name | None
) -> tuple[Kind, tuple[str, ...]] | None:
    """Kind and targets of one citation; None when it cites nothing. `named_before`: …규정에 따른 before [별표]."""
    resolved: tuple[Kind, tuple[str, ...]] | None
    whole: tuple[Kind, tuple[str, ...]] | None
    first = tokens[0]
    name = first.name
    owner = name.owner if name else None
    if name is None or owner is None:
        if name is not None and name.successor is not None and name.successor is not source:
            return "other-regulation", (name.successor.name,)
        return "external-law" if name is None or name.is_law else "missing", ()
    match first.kind:
        case "regulation":
            resolved = None if owner is source else ("other-regulation", (owner.name,))
        case "article":
            resolved = _articles(_numbers(tokens, owner), owner, source)
        case "division":
            numbers = _of_divisions(first, owner, own)
            whole = ("other-regulation", (owner.name,)) if owner is not source else None
            resolved = _articles(numbers, owner, source) if numbers else whole
        case "addendum":
            resolved = ("addendum", (f"{owner.name} 부칙",)) if owner.has_addendum else ("missing", ())
        case "appendix":
            resolved = _appendices(first, owner, named_before.owner if named_before else None)
        case _:
            resolved = None
    return resolved


def _articles(numbers: Sequence[Number], owner: Outline, source: Outline) -> tuple[Kind, tuple[str, ...]]:
    present = [number for number in sorted(set(numbers)) if number in owner.articles]
    repealed = [number for number in dict.fromkeys(numbers) if number in owner.repealed]
    targets = tuple(f"{owner.name} {article_label(number)}" for number in present or repealed)
    if present:
        return "internal" if owner is source else "other-regulation", targets
    return "repealed" if repealed else "missing", targets


def _numbers(tokens: Iterable[Token], owner: Outline) -> list[Number]:
    """The cited articles, those of ranges included."""
    numbers: list[Number] = []
    for token in tokens:
        if token.number is None:
            continue
        if token.until is None:
            numbers.append(token.number)
            continue
        present = articles_between(owner, token.number, token.until)[:MOST_MEMBERS]
        numbers += present or sorted((token.number, token.until))
    return numbers


def _of_divisions(token: Token, owner: Outline, own: Number | None) -> list[Number]:
    """The articles of a division, or of a range of them."""
    first = division_articles(owner, token.label, own)
    if not token.last:
        return [*first]
    last = division_articles(owner, token.last, own)
    return [number for number in ordered_articles(owner.articles) if first and last and first[0] <= number <= last[-1]]


def _appendices(token: Token, owner: Outline, named_before: Outline | None) -> tuple[Kind, tuple[str, ...]]:
    for regulation in (owner, named_before if not token.is_named else None):
        if regulation is None:
            continue
        between = appendices_between(regulation, token.label, token.last) if token.last else ()
        targets = between or appendix_labels(regulation, token.label)
        if targets and (len(targets) == 1 or any(map(str.isdigit, token.label))):
            return "appendix", tuple(f"{regulation.name} {target}" for target in targets)
    if folded_appendix(token.label) in owner.repealed_appendices:
        return "repealed", (f"{owner.name} {token.label}",)
    return "missing", ()
