"""Compares two texts of a regulation provision by provision."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dtrag.core.documents import ChunkedDocument
from dtrag.core.editions import folded_name
from dtrag.core.provisions import RegulationText
from dtrag.core.regulation_changes import ProvisionChange, RegulationDiff, Span

MOST_WORDS = 2_000
"""Words of a text whose changes are marked; a longer text is marked as a whole."""
_WORD = re.compile(r"\S+")
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class ComparedProvision:
    """A provision in one of the two texts."""

    label: str
    title: str
    text: str


def provisions_of(regulations: Iterable[RegulationText]) -> dict[Key, ComparedProvision]:
    """The provisions of the editions that are valid together, in the order of the first one's text.

    An addendum is known by its text: addenda have no numbers of their own.
    """
    provisions: dict[Key, ComparedProvision] = {}
    for regulation in regulations:
        for provision in regulation.provisions:
            text = regulation.text[provision.start : provision.end]
            is_addendum = provision.kind == "addendum"
            key = (provision.kind, provision.label, provision.occurrence)
            if is_addendum:
                key = (provision.kind, _folded(text), 1)
            provisions.setdefault(key, ComparedProvision(provision.label, provision.title, text))
    return provisions


def provisions_in(regulation: ChunkedDocument) -> dict[Key, ComparedProvision]:
    """The provisions of a regulation that was read from a file; the pieces of a long one are joined."""
    pieces: dict[Key, list[tuple[int, int]]] = {}
    titles: dict[Key, tuple[str, str]] = {}
    for chunk in regulation.chunks:
        label, title = str(chunk.metadata.get("article") or ""), str(chunk.metadata.get("article_title") or "")
        key = (str(chunk.metadata.get("kind")), label, int(str(chunk.metadata.get("occurrence") or 1)))
        pieces.setdefault(key, []).append((chunk.start, chunk.end))
        titles.setdefault(key, (label, title))
    provisions: dict[Key, ComparedProvision] = {}
    for key, spans in pieces.items():
        text = regulation.document.text[spans[0][0] : spans[-1][1]]
        known = ("addendum", _folded(text), 1) if key[0] == "addendum" else key
        provisions[known] = ComparedProvision(*titles[key], text)
    return provisions


def difference(
    regulation: str,
    before: tuple[str, Mapping[Key, ComparedProvision]],
    after: tuple[str, Mapping[Key, ComparedProvision]],
    document_ids: tuple[str, ...] = (),
) -> RegulationDiff:
    """The differences between two texts, each a name (a day, a file) with its provisions."""
    (old_name, old), (new_name, new) = before, after
    old = _with_grown_addenda(old, new)
    changes = tuple(_changes(old, new))
    return RegulationDiff(regulation, old_name, new_name, changes, len({*old, *new}) - len(changes), document_ids)


def file_differences(
    before: tuple[str, Iterable[ChunkedDocument]], after: tuple[str, Iterable[ChunkedDocument]]
) -> list[RegulationDiff]:
    """The differences of the regulations of two files, matched by folded name; two single ones whatever their names."""
    old = {folded_name(regulation.document.title): regulation for regulation in before[1]}
    new = {folded_name(regulation.document.title): regulation for regulation in after[1]}
    if len(old) == len(new) == 1:
        old = dict(zip(new, old.values(), strict=True))
    compared: list[RegulationDiff] = []
    for name in dict.fromkeys((*new, *old)):
        texts = [provisions_in(side[name]) if name in side else {} for side in (old, new)]
        title = (new.get(name) or old[name]).document.title
        compared.append(difference(title, (before[0], texts[0]), (after[0], texts[1])))
    return compared


def _changes(old: Mapping[Key, ComparedProvision], new: Mapping[Key, ComparedProvision]) -> Iterator[ProvisionChange]:
    for key in _merged(list(old), list(new)):
        before, after = old.get(key), new.get(key)
        if before is None and after is not None:
            yield ProvisionChange(after.label, after.title, "added", "", after.text, (), ((0, len(after.text)),))
        elif before is not None and after is None:
            yield ProvisionChange(before.label, before.title, "deleted", before.text, "", ((0, len(before.text)),), ())
        elif before is not None and after is not None and _differs(before, after):
            spans = changed_spans(before.text, after.text)
            yield ProvisionChange(after.label, after.title, "amended", before.text, after.text, *spans)


def _with_grown_addenda(
    old: Mapping[Key, ComparedProvision], new: Mapping[Key, ComparedProvision]
) -> Mapping[Key, ComparedProvision]:
    """The old provisions; an addendum with which a new one begins or ends has its key: some books write one addendum
    and add a paragraph at each amendment.
    """
    grown = [key for key in new if key[0] == "addendum" and key not in old]
    keys: dict[Key, Key] = {}
    for key in [key for key in old if key[0] == "addendum" and key not in new]:
        later = next((other for other in grown if other[1].startswith(key[1]) or other[1].endswith(key[1])), None)
        if later is not None:
            keys[key] = later
            grown.remove(later)
    return {keys.get(key, key): provision for key, provision in old.items()} if keys else old


def _merged(old: list[Key], new: list[Key]) -> list[Key]:
    """The keys in the order of the new text; a deleted provision is placed after the one that it followed."""
    merged, present = list(new), set(new)
    for place, key in enumerate(old):
        if key not in present:
            merged.insert(merged.index(old[place - 1]) + 1 if place else 0, key)
            present.add(key)
    return merged


def _differs(before: ComparedProvision, after: ComparedProvision) -> bool:
    return _folded(before.text) != _folded(after.text) or _folded(before.title) != _folded(after.title)


def changed_spans(before: str, after: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The words that differ, as spans of both texts."""
    old, new = ([match.span() for match in _WORD.finditer(text)] for text in (before, after))
    if max(len(old), len(new)) > MOST_WORDS:
        return ((0, len(before)),), ((0, len(after)),)
    matcher = difflib.SequenceMatcher(
        None, [before[slice(*span)] for span in old], [after[slice(*span)] for span in new], autojunk=False
    )
    old_spans: list[Span] = []
    new_spans: list[Span] = []
    for operation, first, last, new_first, new_last in matcher.get_opcodes():
        if operation != "equal":
            old_spans += [(old[first][0], old[last - 1][1])] if last > first else []
            new_spans += [(new[new_first][0], new[new_last - 1][1])] if new_last > new_first else []
    return tuple(old_spans), tuple(new_spans)


def _folded(text: str) -> str:
    return "".join(text.split())
