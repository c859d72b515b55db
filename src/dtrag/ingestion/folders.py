"""Keeps the index in step with folders: which files are there, which are gone, which were renamed.

A file is known by its address, and a renamed one by its content. Everything here compares addresses of files that lie
in the folder itself (symbolic links are resolved first), so nothing that was ingested from elsewhere is ever touched.
"""

from __future__ import annotations

import asyncio
import os
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.document_listing import file_path
from dtrag.core.documents import Draft, document_id
from dtrag.core.statements import Statement
from dtrag.core.text.analysis import Analyzer, clean
from dtrag.core.text.personal_data_policy import OFF, PersonalDataPolicy
from dtrag.errors import InvalidInput, ParseFailed
from dtrag.ingestion.analysis import analyse_documents
from dtrag.ingestion.exclusion import Excluded, walk
from dtrag.ingestion.sources import CONTENT_BYTES, IngestReport, Source, content_digest
from dtrag.ports import FolderStore, IndexWriter, Parser, Recorder, StoredFile

MOST_GONE = 1 / 3
"""Share of a folder's files that may go without `--prune-all`: a disk that is not mounted shows a folder without most
of its files, and ordinary changes remove fewer."""
PAGE = 200
"""Documents of a renamed file that are rewritten at a time, as in a reindex."""


@dataclass(slots=True)
class FoundFiles:
    """What lies below the paths of an ingest. `failed` and `skipped` hold (path, reason).

    `exclude` holds the patterns that were passed, `excluded` what they and the ignore files left out.
    """

    exclude: Sequence[str] = ()
    sources: list[Source] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    failed: list[tuple[str, Statement]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)


@dataclass(slots=True)
class FolderPlan:
    """What `--prune` would do: paths of new files, (old, new) paths of renamed ones, paths of files that are gone.

    An excluded file is gone, too; `left_out` has the addresses of those. `known` counts the files of the folders that
    are in the index. `refusal` says why too much would go, or is "".
    """

    added: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    removed_documents: int = 0
    known: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)
    refusal: str = ""
    moves: list[tuple[StoredFile, Source]] = field(default_factory=list, repr=False)
    gone: list[StoredFile] = field(default_factory=list, repr=False)
    left_out: set[str] = field(default_factory=set, repr=False)


def find_files(paths: Sequence[Path], parser: Parser, exclude: Sequence[str] = ()) -> FoundFiles:
    """The files below the given files and folders, in a stable order.

    A file that is named itself is always tried; inside a folder, hidden files are ignored, unknown formats skipped, and
    files left out that an ignore file or a pattern of `exclude` matches. Raises `InvalidInput` for an invalid pattern.
    """
    result = FoundFiles(exclude)
    sources: dict[str, Source] = {}
    for path in paths:
        folder = path if path.is_dir() else None
        if folder is not None:
            result.folders.append(path)
            unreadable: list[OSError] = []
            before = len(result.excluded)
            files = list(walk(path, exclude, result.excluded, unreadable))
            known = [file for file in files if parser.knows(file.name)]
            result.skipped.extend((str(file), unknown_kind(file)) for file in files if not parser.knows(file.name))
            result.failed.extend((str(error.filename), Statement("", f"{error.strerror}.")) for error in unreadable)
            if not (known or unreadable):
                reason = "There is no file in it whose format is known; `dtrag ingest --help` names them."
                if len(result.excluded) > before:
                    reason = (
                        "There is no file in it whose format is known and that is not excluded; .dtragignore files and "
                        "--exclude leave some out."
                    )
                result.failed.append((str(path), Statement("", reason)))
        elif path.is_file():
            known = [path]
        else:
            result.failed.append((str(path), Statement("", "There is no such file or folder.")))
            continue
        sources |= {source.uri: source for source in (Source.of(file, folder) for file in known)}
    result.sources = list(sources.values())
    return result


def unknown_kind(file: PurePath) -> str:
    """Why a file of a folder is not read."""
    return f"Files of the kind {file.suffix} are not read." if file.suffix else "Files without a suffix are not read."


class FolderSync:
    """Follows renames and removes what is gone, for one index."""

    def __init__(
        self,
        store: FolderStore,
        writer: IndexWriter,
        parser: Parser,
        *,
        analyzer: Analyzer,
        record: Recorder,
        personal_data: PersonalDataPolicy = OFF,
    ):
        self._personal_data = personal_data
        self._store = store
        self._writer = writer
        self._parser = parser
        self._analyzer = analyzer
        self._record = record

    async def plan(self, files: FoundFiles) -> FolderPlan:
        """What is gone, renamed and new. Changes nothing.

        Raises `InvalidInput` without a folder, and when a folder or file is missing, unreadable or empty.
        """
        if files.failed:
            path, reason = files.failed[0]
            raise InvalidInput(f"Nothing was read or removed, because {path} cannot be relied on: {reason}")
        if not files.folders:
            raise InvalidInput("Only folders can be pruned, and none was named. Name the folder that has changed.")
        plan = FolderPlan(skipped=files.skipped, excluded=files.excluded)
        stored: dict[uuid.UUID, StoredFile] = {}  # by their ids: personal data in addresses may be masked
        gone: dict[uuid.UUID, StoredFile] = {}
        read = {source.source_id for source in files.sources}
        for folder in files.folders:
            prefix = self._personal_data.masked_address(_prefix(folder))
            below = {file.source_id: file for file in await self._store.files_below(prefix)}
            there, excluded = await asyncio.to_thread(_addresses, folder, files.exclude)
            present = read.union(map(document_id, there))
            missing = {key: file for key, file in below.items() if key not in present}
            left_out = frozenset(map(self._personal_data.masked_address, excluded))
            plan.left_out |= {file.uri for file in missing.values() if _is_left_out(file.uri, left_out)}
            stored |= below
            gone |= missing
        prefixes = tuple(_prefix(folder) for folder in files.folders)
        new = [source for source in files.sources if source.source_id not in stored and source.uri.startswith(prefixes)]
        plan.moves = await asyncio.to_thread(_renamed, list(gone.values()), new)
        followed = {file.uri for file, _ in plan.moves}
        arrived = {source.uri for _, source in plan.moves}
        plan.gone = sorted((file for file in gone.values() if file.uri not in followed), key=lambda file: file.uri)
        plan.known = len(stored)
        plan.added = [str(source.path) for source in new if source.uri not in arrived]
        plan.renamed = [(file_path(file.uri), str(source.path)) for file, source in plan.moves]
        plan.removed = [file_path(file.uri) for file in plan.gone]
        plan.removed_documents = sum(file.documents for file in plan.gone)
        addresses = [self._personal_data.masked_address(_prefix(folder)) for folder in files.folders]
        plan.refusal = _refusal(dict(zip(addresses, files.folders, strict=True)), stored.values(), plan.gone)
        return plan

    async def follow(self, plan: FolderPlan, report: IngestReport) -> None:
        """Give the documents of renamed files their new address; category, review state and vectors stay."""
        for file, source in plan.moves:
            moved = await self._move(file, source)
            report.renamed.append((file_path(file.uri), source.shown))
            await self._note("documents.rename", file, list(moved.values()))

    async def remove(self, plan: FolderPlan, report: IngestReport) -> None:
        """Remove the documents of files that are gone, unless one of them has come back meanwhile."""
        for file in plan.gone:
            if file.uri not in plan.left_out and await asyncio.to_thread(os.path.lexists, file_path(file.uri)):
                continue
            removed = await self._writer.drop_source(file.source_id, EVERYTHING)
            report.removed += len(removed)
            report.pruned.append(file_path(file.uri))
            await self._note("documents.prune", file, removed)
        if plan.gone or plan.moves:
            await self._writer.tidy()

    async def remove_editions(self, files: FoundFiles, report: IngestReport) -> None:
        """Remove the superseded editions that the files below the folders do not contain any more."""
        for folder in files.folders:
            retained = await self._store.retained_below(_prefix(folder))
            removed = [key for key in retained if await self._writer.delete(key, EVERYTHING, ends=True)]
            report.removed += len(removed)
            if removed:
                await self._record(
                    LOCAL.name,
                    "documents.prune_editions",
                    scope=None,
                    subjects=[str(key) for key in removed],
                    decision="done",
                    details={"documents": len(removed)},
                )

    async def _move(self, file: StoredFile, source: Source) -> dict[uuid.UUID, uuid.UUID]:
        """Write the documents under their new address, then delete the old ones. May be repeated after a crash."""
        moved: dict[uuid.UUID, uuid.UUID] = {}
        titles: Mapping[str, str] | None = None
        contained: list[int] = []
        after: uuid.UUID | None = None
        name = Path(file_path(file.uri)).stem
        while drafts := await self._store.drafts_of(file.source_id, after, PAGE):
            after = drafts[-1].document_id
            if titles is None and any(_named(draft, name) for draft in drafts):
                titles = await self._titles(source)
            retitled = {
                draft.document_id: (titles or {}).get(_part(draft), draft.passages.document.title)
                for draft in drafts
                if _named(draft, name)
            }
            renamed = await self._rewrite(drafts, source, retitled)
            contained += [
                renamed[draft.document_id].int >> 64
                for draft in drafts
                if not (draft.edition is not None and draft.edition.retained)
            ]
            moved |= renamed
        await self._store.move_review_state({old: new for old, new in moved.items() if old != new})
        # A file with editions that belong to another file is read again, which records that it contains them.
        known = b"" if await self._writer.contains_others(file.source_id) else file.fingerprint
        uri = self._personal_data.masked_address(source.uri)
        await self._writer.finish_source(source.source_id, uri, known, contained)
        await self._writer.drop_source(file.source_id, EVERYTHING)
        return moved

    async def _titles(self, source: Source) -> dict[str, str]:
        """Part of the file -> title, read from the file: the name of a file may be the title of its documents."""
        try:
            return {d.part: clean(d.title)[:500] async for d in self._parser.parse(source.path, source.name)}
        except ParseFailed:
            return {}  # the ordinary reading, which comes next, reports it

    async def _rewrite(
        self, drafts: Sequence[Draft], source: Source, titles: Mapping[uuid.UUID, str]
    ) -> dict[uuid.UUID, uuid.UUID]:
        """Write copies of the drafts with the address of `source`; returns old id -> new id.

        Vectors are copied but for those of documents with another title, and of editions, which keep their ids.
        """
        fingerprints = await self._writer.fingerprints([draft.document_id for draft in drafts])
        copies = {
            draft.document_id: self._masked(_copy(draft, source, fingerprints.get(draft.document_id, b""), titles))
            for draft in drafts
        }
        moved = {old: copy.document_id for old, copy in copies.items()}
        documents = await analyse_documents(list(copies.values()), self._analyzer)
        there = await self._writer.fingerprints(list(moved.values()))
        await self._writer.write([replace(each, replaces=each.document_id in there) for each in documents])
        same = {old: new for old, new in moved.items() if old != new and copies[old].fingerprint}
        await self._store.copy_vectors(same)
        await self._store.copy_originals({old: new for old, new in moved.items() if old != new})
        return moved

    def _masked(self, copy: Draft) -> Draft:
        """The copy without personal data in what it takes from its file."""
        title = self._personal_data.masked_name(copy.passages.document.title)
        return replace(
            copy,
            source_uri=self._personal_data.masked_address(copy.source_uri),
            source_path=self._personal_data.masked_address(copy.source_path),
            passages=replace(copy.passages, document=replace(copy.passages.document, title=title)),
        )

    async def _note(self, action: str, file: StoredFile, documents: Sequence[uuid.UUID]) -> None:
        await self._record(
            LOCAL.name,
            action,
            scope=None,
            subjects=[str(key) for key in documents],
            decision="done",
            details={"source": str(file.source_id), "documents": len(documents)},
        )


def _part(draft: Draft) -> str:
    return draft.source_uri.partition("#")[2]


def _named(draft: Draft, name: str) -> bool:
    """Whether the document's title may come from the file's name."""
    return bool(name) and name in draft.passages.document.title


def _copy(draft: Draft, source: Source, fingerprint: bytes, titles: Mapping[uuid.UUID, str]) -> Draft:
    """The draft with the address of `source`, under another title where `titles` has one.

    A fingerprint covers the title: without one the document is rewritten when its file is next read.
    """
    part = _part(draft)
    uri = f"{source.uri}#{part}" if part else source.uri
    document = draft.passages.document
    title = titles.get(draft.document_id, document.title)
    is_edition = draft.edition is not None and draft.edition.work_id is not None
    return replace(
        draft,
        document_id=draft.document_id if is_edition else document_id(uri),
        source_id=source.source_id,
        source_uri=uri,
        source_path=source.source_path,
        passages=replace(draft.passages, document=replace(document, title=title)),
        fingerprint=fingerprint if title == document.title else b"",
    )


def _renamed(gone: Sequence[StoredFile], new: Sequence[Source]) -> list[tuple[StoredFile, Source]]:
    """Pairs with the same content; where several have it, those of the same file name first."""
    by_content: dict[bytes, list[StoredFile]] = {}
    for file in gone:
        if len(file.fingerprint) > CONTENT_BYTES:
            by_content.setdefault(file.fingerprint[:CONTENT_BYTES], []).append(file)
    pairs: list[tuple[StoredFile, Source]] = []
    if not by_content:
        return pairs
    candidates: list[tuple[Source, list[StoredFile]]] = []
    for source in new:
        try:
            candidates.append((source, by_content.get(content_digest(source.path), [])))
        except OSError:
            continue  # the reading, which comes next, reports it
    for same_name in (True, False):
        for source, files in candidates:
            if any(paired is source for _, paired in pairs):
                continue
            chosen = next((f for f in files if not same_name or Path(file_path(f.uri)).name == source.name), None)
            if chosen is not None:
                files.remove(chosen)
                pairs.append((chosen, source))
    return pairs


def _refusal(folders: Mapping[str, Path], stored: Iterable[StoredFile], gone: Iterable[StoredFile]) -> str:
    """Why so much may not go without being insisted on, or "". `folders`: by the beginning of the addresses below."""
    for prefix, folder in folders.items():
        known = sum(file.uri.startswith(prefix) for file in stored)
        lost = sum(file.uri.startswith(prefix) for file in gone)
        if lost > known * MOST_GONE:
            return (
                f"{lost:,} of the {known:,} files known from {folder} are gone or excluded, more than a third: nothing "
                "was read or removed. Is a disk not mounted, or a pattern too wide? Look with --prune --dry-run; if it "
                "is right, use --prune-all (in Python: prune='all')."
            )
    return ""


def _prefix(folder: Path) -> str:
    """What the addresses of all files below the folder begin with: never that of /a/bc for /a/b."""
    return Path(unicodedata.normalize("NFC", str(folder.resolve()))).as_uri().rstrip("/") + "/"


def _is_left_out(uri: str, excluded: frozenset[str]) -> bool:
    return uri in excluded or any(uri.startswith(address) for address in excluded if address.endswith("/"))


def _addresses(folder: Path, exclude: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Addresses of all files below the folder, hidden ones included, without excluded ones; and those of the latter.

    The address of an excluded folder ends with a slash. Raises `InvalidInput` when some cannot be seen.
    """
    excluded: list[Excluded] = []
    unreadable: list[OSError] = []
    files = [Source.of(file).uri for file in walk(folder, exclude, excluded, unreadable, hidden=True)]
    if unreadable:
        raise InvalidInput(
            f"Nothing was read or removed, because {unreadable[0].filename} cannot be read: {unreadable[0].strerror}."
        )
    left_out = [
        _prefix(Path(each.path)) if each.path.endswith("/") else Source.of(Path(each.path)).uri for each in excluded
    ]
    return frozenset(files), frozenset(left_out)
