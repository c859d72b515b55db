"""Judges the citations of a text against the regulations that the caller may see."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dtrag.core.provisions import RegulationText
from dtrag.core.verification import CitationStatus, VerifiedCitation, VerifiedQuotation
from dtrag.packs.regulation_ko.amendments import dates
from dtrag.packs.regulation_ko.catalog import Number, article_label
from dtrag.packs.regulation_ko.collection import ADDENDUM, Regulation
from dtrag.packs.regulation_ko.verification.contents import (
    Addendum,
    RegulationContents,
    article_runs,
    folded_title,
    listed,
)
from dtrag.packs.regulation_ko.verification.part_judgements import (
    WIDEST_RANGE,
    Judgement,
    part_of_any,
    worst,
)
from dtrag.packs.regulation_ko.verification.quotations import compared
from dtrag.packs.regulation_ko.verification.reader import AMBIGUOUS, Citation
from dtrag.packs.regulation_ko.verification.references import WHOLE, Part, numbers_of

MIN_AGREEMENT = 0.5
"""Dice coefficient of the pairs of letters of two titles of appendices that agree."""


class Judge:
    """Judges citations; `texts` are the valid editions of the regulations that they name."""

    def __init__(self, texts: Mapping[uuid.UUID, Sequence[RegulationText]]) -> None:
        self._texts = texts
        self._contents: dict[uuid.UUID, RegulationContents] = {}

    def verified(self, citation: Citation, start: int, end: int, text: str) -> VerifiedCitation:
        """The verified citation, whose span in the original text is `[start, end)`."""
        judged = self._judge(citation)
        return VerifiedCitation(
            start, end, text[start:end], judged.status, judged.target, judged.range, judged.title, judged.reason
        )

    def quoted(
        self, citation: Citation, verified: VerifiedCitation, start: int, end: int, text: str
    ) -> VerifiedQuotation:
        """The words `[start, end)` of the original text, compared with what is cited."""
        cited = self._texts_of(citation) if verified.status in {"exists", "title_mismatch"} else []
        if not cited:
            return VerifiedQuotation(start, end, text[start:end], "unchecked")
        return VerifiedQuotation(start, end, text[start:end], compared(text[start:end], cited), verified.target)

    def _texts_of(self, citation: Citation) -> list[str]:
        """The texts of the cited provisions; that of the whole regulation for its name or a chapter."""
        regulation = citation.name and (citation.name.regulation or citation.name.near)
        if not regulation:
            return []
        contents = self._of(regulation)
        if citation.kind == "article" and citation.number is not None:
            first, last = numbers_of(citation.number, citation.until or citation.number)
            return contents.provision_texts(dict.fromkeys([first, *_between(first, last), last]))
        if citation.kind == "appendix":
            return contents.texts_labelled(contents.appendices(citation.label))
        if citation.kind == "addendum":
            return contents.addendum_texts
        return contents.whole_texts

    def _judge(self, citation: Citation) -> Judgement:
        name = citation.name
        if citation.kind == "unknown" or name is None or name is AMBIGUOUS or name.is_law:
            return Judgement("unclear", reason=_why_unclear(citation))
        if name.regulation is None:
            return self._of_wrong_name(citation)
        judged = self._of_regulation(citation, name.regulation)
        if name.other_code and judged.status == "exists":
            reason = f"The code of {name.regulation.name} is {name.regulation.code}, not {name.other_code}."
            return replace(judged, status="title_mismatch", reason=reason)
        return judged

    def _of_wrong_name(self, citation: Citation) -> Judgement:
        assert citation.name is not None  # noqa: S101 - the caller has checked it
        written, near = _short(citation.name.text), citation.name.near
        if near is None:
            return Judgement("missing", reason=f"There is no regulation {written} that you may see.")
        reason = f"There is no regulation {written} that you may see; the nearest is {near.name}."
        judged = self._of_regulation(citation, near)
        status: CitationStatus = "title_mismatch" if judged.status in {"exists", "title_mismatch"} else "missing"
        return replace(judged, status=status, reason=reason)

    def _of_regulation(self, citation: Citation, regulation: Regulation) -> Judgement:
        if citation.kind == "regulation":
            judged = Judgement("exists", regulation.name)
        elif citation.kind == "article":
            judged = self._article(citation, regulation)
        elif citation.kind == "appendix":
            judged = self._appendix(citation, regulation)
        elif citation.kind == "addendum":
            judged = self._addendum(citation, regulation)
        else:
            judged = self._division(citation, regulation)
        if judged.status in {"exists", "title_mismatch"} and self._of(regulation).is_abolished:
            return replace(judged, status="repealed", reason=f"{regulation.name} has been abolished (폐지).")
        return judged

    def _article(self, citation: Citation, regulation: Regulation) -> Judgement:
        assert citation.number is not None  # noqa: S101 - articles have one
        if citation.until is not None:
            return self._range(citation, regulation, *numbers_of(citation.number, citation.until))
        return self._single(regulation, citation.number, citation.title, citation.part)

    def _single(self, regulation: Regulation, number: Number, title: str | None, part: Part) -> Judgement:
        name = f"{regulation.name} {article_label(number)}"
        contents = self._of(regulation)
        if number in regulation.outline.repealed:
            return Judgement("repealed", name, reason=f"{name} has been deleted (삭제).")
        if number not in regulation.outline.articles:
            reason = f"{regulation.name} has no {article_label(number)}."
            return Judgement("missing", None, contents.article_numbers or None, reason=reason)
        titles = contents.titles(number)
        written = titles[0] if titles else None
        if part != WHOLE:
            judged = part_of_any(name, part, contents.article_texts(number))
            if judged.status != "exists":
                return replace(judged, title=written)
            name = judged.target or name
        if title is None or folded_title(title) in map(folded_title, titles):
            return Judgement("exists", name, title=written)
        if written is None:
            return Judgement("unclear", name, reason=f"{name} has no title in the collection.")
        others = contents.titled(title)
        elsewhere = f" {', '.join(others[:3])} has the title {_short(title)}." if others else ""
        reason = f"The title of {name} is {written}, not {_short(title)}.{elsewhere}"
        return Judgement("title_mismatch", name, title=written, reason=reason)

    def _range(self, citation: Citation, regulation: Regulation, first: Number, last: Number) -> Judgement:
        """Every article of the range; with more than one fault, the worst."""
        forward = citation.number == first
        ends = [(first, citation.title if forward else None, citation.part), (last, None, citation.last_part)]
        judged = [self._single(regulation, *end) for end in ends]
        if all(one.status in {"exists", "title_mismatch"} for one in judged):
            judged += [self._single(regulation, number, None, WHOLE) for number in _between(first, last)]
        fault = worst(judged)
        if fault.status == "exists":
            return Judgement("exists", f"{regulation.name} {article_label(first)}–{article_label(last)}")
        return fault

    def _appendix(self, citation: Citation, regulation: Regulation) -> Judgement:
        contents, label = self._of(regulation), citation.label
        labels = contents.appendices(label)
        if labels:
            title = contents.appendix_title(labels[0]) if len(labels) == 1 else None
            name = f"{regulation.name} {labels[0]}" + (f"–{labels[-1]}" if len(labels) > 1 else "")
            if citation.title and title and not _agree(citation.title, title):
                reason = f"The title of {name} is {title}, not {_short(citation.title)}."
                return Judgement("title_mismatch", name, title=title, reason=reason)
            return Judgement("exists", name, title=title)
        if contents.is_repealed_appendix(label):
            return Judgement("repealed", f"{regulation.name} {label}", reason=f"{label} has been deleted (삭제).")
        existing = contents.appendices_of_kind(label[:2])
        return Judgement("missing", None, listed(existing) or None, reason=f"{regulation.name} has no {label}.")

    def _addendum(self, citation: Citation, regulation: Regulation) -> Judgement:
        name = f"{regulation.name} {ADDENDUM}"
        addenda: Sequence[Addendum] = self._of(regulation).addenda
        if not addenda:
            return Judgement("missing", reason=f"{regulation.name} has no {ADDENDUM}.")
        if wanted := dates(citation.label):
            addenda = self._of(regulation).addenda_of(wanted[0])
            if not addenda:
                return Judgement("missing", reason=f"{regulation.name} has no {ADDENDUM} of {wanted[0]}.")
        if citation.number is not None:
            return _addendum_article(name, citation.number, citation.part, addenda)
        if citation.part != WHOLE:
            return part_of_any(name, citation.part, [addendum.parts for addendum in addenda])
        return Judgement("exists", name)

    def _division(self, citation: Citation, regulation: Regulation) -> Judgement:
        present = self._of(regulation).divisions.get(citation.label[-1], [])
        if citation.label in present:
            return Judgement("exists", f"{regulation.name} {citation.label}")
        reason = f"{regulation.name} has no {citation.label}."
        return Judgement("missing", None, listed(present) or None, reason=reason)

    def _of(self, regulation: Regulation) -> RegulationContents:
        contents = self._contents.get(regulation.document_id)
        if contents is None:
            contents = RegulationContents(regulation, self._texts[regulation.document_id])
            self._contents[regulation.document_id] = contents
        return contents


def _why_unclear(citation: Citation) -> str:
    name = citation.name
    if citation.kind == "unknown":
        return "The text does not say which article this is."
    if name is None:
        return "The text does not say of which regulation this is."
    if name is AMBIGUOUS:
        return "The text names several regulations before; this could be of any of them."
    return f"{_short(name.text)} is outside the collection."


def _between(first: Number, last: Number) -> list[Number]:
    """The articles between the ends of a range, at most `WIDEST_RANGE`."""
    if first[0] == last[0]:
        return [(first[0], minor) for minor in range(max(2, first[1] + 1), last[1])][:WIDEST_RANGE]
    end = last[0] + (last[1] > 0)
    return [(number, 0) for number in range(first[0] + 1, min(end, first[0] + WIDEST_RANGE))]


def _addendum_article(name: str, number: Number, part: Part, addenda: Sequence[Addendum]) -> Judgement:
    """An article of an addendum, in any of the addenda."""
    label = article_label(number)
    articles = [addendum.articles[number] for addendum in addenda if number in addendum.articles]
    if not articles:
        present = {other for addendum in addenda for other in addendum.articles}
        return Judgement("missing", None, article_runs(present) or None, reason=f"{name} has no {label}.")
    if part == WHOLE:
        return Judgement("exists", f"{name} {label}")
    return part_of_any(f"{name} {label}", part, articles)


def _agree(written: str, title: str) -> bool:
    """Whether titles of appendices are similar, which are less formal than those of articles."""
    one, other = folded_title(written), folded_title(title)
    if one in other or other in one:
        return True
    pairs, others = ({text[at : at + 2] for at in range(len(text) - 1)} for text in (one, other))
    return 2 * len(pairs & others) >= MIN_AGREEMENT * (len(pairs) + len(others))


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= 60 else folded[:60] + "…"
