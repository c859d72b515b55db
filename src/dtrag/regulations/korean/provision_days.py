"""When a provision, or a paragraph (항) of it, was last amended: by its amendment marks and by its editions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dtrag.core.provisions import RegulationText
from dtrag.regulations.korean.amendments import amendments, effective_dates, heading_before, paragraph_texts


@dataclass(frozen=True, slots=True)
class ProvisionDays:
    """Days in ISO form. `written`: since when its text is as it is, at the latest; None if unknown.

    `amended`: its last amendment; None without any that is known. `paragraphs`: the last amendment of each 항, of its
    own or of the whole article; None without any.
    """

    written: str | None
    amended: str | None
    paragraphs: Mapping[int, str | None]

    def amended_in(self, paragraph: int | None) -> str | None:
        """The last amendment of this paragraph; of the whole provision if there is none with this number."""
        return self.paragraphs.get(paragraph, self.amended) if paragraph is not None else self.amended


def provision_days(editions: Sequence[RegulationText], label: str) -> ProvisionDays:
    """The days of a provision; `editions` are those of its work until the one that is read, the oldest first.

    An amendment is a mark (`<개정 2020. 3. 1.>`) or a text that differs from the edition before. Without any, the text
    exists at least since the oldest date of the addenda.
    """
    newest = editions[-1]
    provisions = [provision for provision in newest.provisions if provision.label == label]
    marks = [
        mark
        for provision in provisions
        for mark in amendments(
            newest.text[provision.start : provision.end], heading_before(newest.text, provision.start)
        )
    ]
    texts = [text_of(edition, label) for edition in editions]
    whole = [mark.date for mark in marks if mark.date]
    amended = max([*whole, *_changed_on(editions, texts)], default=None)
    parts = [paragraph_texts(text) for text in texts]
    paragraphs = {
        number: max(
            [mark.date for mark in marks if mark.date and mark.paragraph in {None, number}]
            + _changed_on(editions, [part.get(number, "") for part in parts]),
            default=None,
        )
        for number in parts[-1]
    }
    return ProvisionDays(amended or _enacted_on(editions[0]), amended, paragraphs)


def deletion_days(remains: str) -> ProvisionDays:
    """The days of a deleted provision, from what remains of it (`삭제 <2020. 1. 1.>`)."""
    day = max((mark.date for mark in amendments(remains) if mark.date), default=None)
    return ProvisionDays(day, day, {})


def text_of(regulation: RegulationText, label: str) -> str:
    """The text of the provisions with this label; "" when there are none."""
    provisions = [provision for provision in regulation.provisions if provision.label == label]
    return "\n".join(regulation.text[provision.start : provision.end] for provision in provisions)


def _changed_on(editions: Sequence[RegulationText], texts: Sequence[str]) -> list[str]:
    """The day of the edition since which the text is what it is in the newest one; [] if it never changed."""
    newest = "".join(texts[-1].split())
    for place in range(len(editions) - 1, 0, -1):
        if "".join(texts[place - 1].split()) != newest:
            since = editions[place].effective_from
            return [since.isoformat()] if since is not None else []
    return []


def _enacted_on(regulation: RegulationText) -> str | None:
    """The oldest date on which an addendum makes the regulation effective."""
    addenda = [provision for provision in regulation.provisions if provision.kind == "addendum"]
    texts = [(regulation.text[provision.start : provision.end], provision.title) for provision in addenda]
    return min((day for text, title in texts for day in effective_dates(text, title)), default=None)
