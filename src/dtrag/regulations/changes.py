"""Differences of a regulation between two days or two files, and citations that are older than what they cite."""

from __future__ import annotations

import asyncio
import difflib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from dtrag.core.access.scope import Scope
from dtrag.core.documents import ChunkedDocument
from dtrag.core.editions import folded_name
from dtrag.core.provisions import ProvisionCitation, RegulationText
from dtrag.core.regulation_changes import ProvisionChange, RegulationDiff, Span, StaleCitation
from dtrag.core.text.patterns import WORD, explained
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import IndexSnapshot, RegulationStore
from dtrag.regulations.collection_reader import READ_AT_ONCE, CollectionReader
from dtrag.regulations.korean.amendments import ProvisionDays, deletion_days, provision_days
from dtrag.regulations.korean.collection import NO_PASSAGE, Collection, Regulation

REPEALED = "repealed"
ADDENDUM_KIND, APPENDIX_KIND = "addendum", "appendix"
_ONE_PARAGRAPH = explained(
    r"^[^항]*조(?:\s*의\s*\d+)?(?:\s*[(（][^()（）]*[)）])?\s*의?\s*제?\s*(?:\d+|[①-⑳])\s*항[^항]*$",
    finds="제3조(목적) 제2항",
    refuses="제3조 제1항 및 제2항",
)


async def compare_days(
    name: str, days: tuple[date, date], collections: CollectionReader, snapshot: IndexSnapshot, scope: Scope
) -> RegulationDiff:
    """What changed in a regulation between two days.

    Raises `NotFound` when it was valid on neither of them, and `InvalidInput` when it has no dates.
    """
    sides: list[tuple[Regulation | None, list[RegulationText]]] = []
    missing: NotFound | None = None
    for day in days:
        try:
            sides.append(await _texts(name, collections, snapshot, scope.at(day)))
        except NotFound as error:
            missing = error
            sides.append((None, []))
    regulation = sides[1][0] or sides[0][0]
    if regulation is None:
        raise missing or NotFound(f"There is no regulation {name[:60]!r} that you may see.")
    texts = [*sides[0][1], *sides[1][1]]
    if any(text.effective_from is None for text in texts):
        raise InvalidInput(
            f"{regulation.name} has no dates: it has one text only. Compare two files, or ingest its editions again "
            "with --effective."
        )
    documents = tuple(dict.fromkeys(str(text.document_id) for text in texts))
    before, after = ((day.isoformat(), provisions_of(side)) for day, (_, side) in zip(days, sides, strict=True))
    return await asyncio.to_thread(difference, regulation.name, before, after, documents)


async def _texts(
    name: str, collections: CollectionReader, snapshot: IndexSnapshot, scope: Scope
) -> tuple[Regulation, list[RegulationText]]:
    """The regulation on the day of the scope, and the texts of its editions that are valid then, the main one first.

    Of an edition before its date only a part is known: there is no text of the whole then.
    """
    collection = await collections.read(snapshot, scope)
    regulation = collection.named(name)
    keys = collection.documents_of(regulation)
    texts = {text.document_id: text for text in await collections.store.read(keys, scope)}
    whole = [texts[key] for key in keys if key in texts and _has_begun(texts[key], scope)]
    if not whole:
        raise NotFound(f"No edition of {regulation.name} of {scope.as_of} is stored.")
    return regulation, whole


def _has_begun(text: RegulationText, scope: Scope) -> bool:
    return text.effective_from is None or scope.as_of is None or text.effective_from <= scope.as_of


async def stale_citations(
    citations: Sequence[ProvisionCitation], collection: Collection, store: RegulationStore, scope: Scope
) -> list[StaleCitation]:
    """Those whose target was amended after their source was last amended, or was repealed; each pair once.

    Of a citation of one paragraph (제8조제3항), only amendments of that paragraph and of the whole article count.
    Addenda (부칙) are neither sources nor targets: they say how an earlier text changed, and are not kept current. An
    appendix (별표) of the same regulation is no target unless it was repealed: it holds the details of its article.
    """
    days: dict[str, ProvisionDays] = {}
    keys = [regulation.document_id for regulation in collection.regulations if regulation.work_id is not None]
    for first in range(0, len(keys), READ_AT_ONCE):
        editions = await store.editions(keys[first : first + READ_AT_ONCE], scope)
        days |= await asyncio.to_thread(_amended_days, collection, editions)
    unknown = ProvisionDays(None, None, {})
    stale: dict[tuple[str, str], StaleCitation] = {}
    for citation in citations:
        if _is_addendum(collection, citation.source):
            continue
        source_day = days.get(citation.source, unknown).written
        for target in citation.targets:
            target_day = days.get(target, unknown).amended_in(_only_paragraph(citation))
            is_newer = source_day is not None and target_day is not None and target_day > source_day
            if citation.kind != REPEALED and (not is_newer or _is_own_appendix(collection, citation.source, target)):
                continue
            row = StaleCitation(
                citation.source,
                source_day,
                target,
                target_day,
                "repealed" if citation.kind == REPEALED else "amended",
                citation.text,
            )
            stale.setdefault((citation.source, target), row)
    return list(stale.values())


def _is_addendum(collection: Collection, name: str) -> bool:
    source = collection.source(name)
    return source is not None and source.provisions[0].kind == ADDENDUM_KIND


def _is_own_appendix(collection: Collection, source: str, target: str) -> bool:
    cited, citing = collection.source(target), collection.source(source)
    if cited is None or citing is None or cited.provisions[0].kind != APPENDIX_KIND:
        return False
    return cited.regulation.name == citing.regulation.name


def _only_paragraph(citation: ProvisionCitation) -> int | None:
    """The paragraph (항) of its target that a citation means; None when it means more than that."""
    is_only = len(citation.targets) == 1 and _ONE_PARAGRAPH.search(citation.text) is not None
    return citation.paragraph if is_only else None


def _amended_days(collection: Collection, editions: Sequence[RegulationText]) -> dict[str, ProvisionDays]:
    """Name of a provision -> when it was amended, for the works of these editions; without addenda."""
    by_work: dict[uuid.UUID | None, list[RegulationText]] = {}
    for edition in editions:
        by_work.setdefault(edition.work_id, []).append(edition)
    days: dict[str, ProvisionDays] = {}
    named = [
        (source.name, source.regulation, source.provisions[0])
        for source in collection.sources.values()
        if source.provisions[0].kind != ADDENDUM_KIND
    ]
    named += [
        (f"{regulation.name} {provision.label}", regulation, provision)
        for regulation in collection.regulations
        for provision in regulation.deleted
    ]
    for name, regulation, provision in named:
        known = by_work.get(regulation.work_id) if regulation.work_id is not None else None
        places = {text.document_id: place for place, text in enumerate(known or ())}
        own = places.get(regulation.document_id)
        if known is None or own is None or name in days:
            continue
        if provision.first == NO_PASSAGE:
            days[name] = deletion_days(known[own].text[provision.start : provision.end])
        else:
            days[name] = provision_days(known[: own + 1], provision.label)  # later editions are not valid yet
    return days


MOST_WORDS = 2_000
"""Words of a text whose changes are marked; a longer text is marked as a whole."""
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
    old, new = ([match.span() for match in WORD.finditer(text)] for text in (before, after))
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
