"""Keeps a branch of the tree in step with a source: what it holds, and who may read it there.

Files of a source with rights lie in categories below the branch, one for each set of rights, that only those see whom
the source lets in (core/source_rights.py). At every moment each document is read with the rights of before a sync, with
those of after it, or by no caller: documents that change their category and the members of groups change one after the
other, so in between these documents are hidden.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

from dtrag.core.access.scope import Scope
from dtrag.core.documents import document_id
from dtrag.core.source_rights import NO_READERS, Membership, everyone, is_group, memberships
from dtrag.core.statements import Statement, stated
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.personal_data_policy import PersonalDataPolicy
from dtrag.errors import InvalidInput, SourceUnavailable
from dtrag.ingestion.folders import MOST_GONE, FolderPlan, FolderSync, unknown_kind
from dtrag.ingestion.sources import Ingest, IngestReport, Progress, Source
from dtrag.ports import Connector, IndexWriter, KeyStore, Parser, SourceItem, SourceStore, StoredFile, StoredItem

PAGE = 100
"""Files after which what was read of a source is noted: an interrupted sync fetches so many again."""
MOST_COUNTED = 100_000
"""Documents of one file that a plan counts."""
READERS = "Readers"
"""Beginning of the names of categories for those whom the source lets in."""


@dataclass(slots=True)
class SourcePlan(FolderPlan):
    """What a sync would do: what `FolderPlan` says, and the addresses of files that have changed.

    `fresh` holds new and changed files, `renames` pairs of a known file and the same with another address.
    """

    changed: list[str] = field(default_factory=list)
    fresh: list[SourceItem] = field(default_factory=list, repr=False)
    renames: list[tuple[StoredItem, SourceItem]] = field(default_factory=list, repr=False)
    lost: list[StoredItem] = field(default_factory=list, repr=False)


@dataclass(slots=True)
class _Run:
    """One sync. `paths`: the category of each set of rights, by its digest; None at a source without rights."""

    connector: Connector
    category: CategoryPath
    items: Sequence[SourceItem]
    plan: SourcePlan
    folder: Path
    report: IngestReport = field(default_factory=IngestReport)
    paths: Mapping[str, CategoryPath] | None = None

    def source(self, number: int, item: SourceItem) -> Source:
        """The item as a file to read, under a name of this machine: names of sources may not fit it."""
        suffix = re.sub(r"[^.\w]", "", PurePosixPath(_name(item)).suffix)[:20]
        path = self.folder / f"{number:06}{suffix}"
        category = None if self.paths is None else self.paths[(item.rights or NO_READERS).digest]
        return Source(path, _name(item), item.uri, item.path, partial(self.connector.fetch, item, path), category)

    def shifted(self, on_progress: Callable[[Progress], None] | None) -> Callable[[Progress], None] | None:
        """The progress of one page as that of all files."""
        if on_progress is None:
            return None
        done = self.report
        files, documents, chunks = len(done.sources), done.documents, done.chunks

        def show(now: Progress) -> None:
            on_progress(
                replace(
                    now,
                    files=files + now.files,
                    files_read=files + now.files_read,
                    files_total=len(self.plan.fresh),
                    documents=documents + now.documents,
                    chunks=chunks + now.chunks,
                )
            )

        return show


class SourceSync:
    """Reads sources into one index."""

    def __init__(
        self,
        store: SourceStore,
        *,
        folders: FolderSync,
        writer: IndexWriter,
        parser: Parser,
        ingest: Ingest,
        keys: KeyStore,
        personal_data: PersonalDataPolicy,
    ) -> None:
        self._store = store
        self._folders = folders
        self._writer = writer
        self._parser = parser
        self._ingest = ingest
        self._keys = keys
        self._personal_data = personal_data

    async def plan(self, connector: Connector) -> SourcePlan:
        """What `run` would add, change, rename and remove; nothing is changed. Raises `SourceUnavailable`."""
        plan = self._planned(await connector.items(), await self._store.items(connector.address))
        for file in plan.lost:
            plan.removed_documents += len(await self._writer.documents_of(file.source_id, MOST_COUNTED))
        return plan

    async def run(
        self,
        connector: Connector,
        category: CategoryPath,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        force: bool = False,
    ) -> IngestReport:
        """Bring the branch at `category` into step with the source.

        Raises `SourceUnavailable` when it cannot be listed, `InvalidInput` when more than a third of it is gone (unless
        `force`) or its rights cannot be kept, and `Conflict` while another process does the same. Rights are brought
        into step before anything is fetched, and a file that cannot be fetched is in the report.
        """
        async with self._store.alone(connector.address):
            items = await connector.items()
            plan = self._planned(items, await self._store.items(connector.address))
            if plan.refusal and not force:
                raise InvalidInput(plan.refusal)
            with tempfile.TemporaryDirectory(prefix="dtrag-sync-") as folder:
                run = _Run(connector, category, items, plan, Path(folder))
                nodes = await self._restrict(run) if connector.site else None
                await self._remove(run)  # before groups change: who is in them now does not count for what is gone
                if nodes is not None:
                    await self._place(run, nodes)
                await self._rename(run)
                await self._read(run, on_progress)
        run.report.unchanged += len(items) - len(plan.fresh) - len(plan.renames) - len(plan.skipped)
        run.report.files, run.report.skipped = len(items), plan.skipped
        return run.report

    def _planned(self, items: Sequence[SourceItem], stored: Sequence[StoredItem]) -> SourcePlan:
        plan = SourcePlan(known=len(stored))
        known = {file.source_id: file for file in stored}
        new: list[SourceItem] = []
        for item in items:
            file = known.pop(document_id(item.uri), None)  # what was read of a kind that is not read any more stays
            if not self._parser.knows(_name(item)):
                plan.skipped.append((item.uri, unknown_kind(PurePosixPath(item.path))))
            elif file is None:
                new.append(item)
            elif not item.mark or item.mark != file.mark:
                plan.fresh.append(item)
        plan.changed = [item.uri for item in plan.fresh]
        by_mark = {file.mark: file for file in known.values() if file.mark}
        for item in new:
            file = by_mark.pop(item.mark, None)
            if file is None:
                plan.added.append(item.uri)
                plan.fresh.append(item)
            else:
                plan.renames.append((known.pop(file.source_id), item))
        plan.lost = list(known.values())
        plan.renamed = [(file.uri, item.uri) for file, item in plan.renames]
        plan.removed = [file.uri for file in plan.lost]
        if len(plan.lost) > plan.known * MOST_GONE:
            plan.refusal = (
                f"{len(plan.lost):,} of the {plan.known:,} files known from this source are gone, more than a third: "
                "nothing was read or removed. If that is right, allow it: dtrag sync … --force"
            )
        return plan

    async def _restrict(self, run: _Run) -> dict[str, int]:
        """Restrict the branch, and a category below it for each set of rights; returns these by the digest."""
        origin = run.connector.address
        if not await self._keys.any():
            raise InvalidInput(
                f"{origin} has rights, and without keys everybody would see everything. Create a key first: "
                "dtrag keys create --name NAME --role admin"
            )
        rights = {stated.digest: stated for stated in (item.rights or NO_READERS for item in run.items)}
        names = {digest: [*run.category.names, f"{READERS} {digest}"] for digest in rights}
        run.paths = {digest: CategoryPath.parse(path) for digest, path in names.items()}
        taxonomy = await self._writer.ensure_paths([run.category, *run.paths.values()])
        root = _node(taxonomy, run.category)
        nodes = {digest: _node(taxonomy, path) for digest, path in run.paths.items()}
        restricted = await self._store.restricted()
        if restricted.get(root, origin) != origin:
            raise InvalidInput(f"{run.category} belongs to {restricted[root]}. Give this source a category of its own.")
        if root not in restricted:
            others = await self._store.others_on(taxonomy.subtree(root), origin)
            if others:
                raise InvalidInput(
                    f"{run.category} has {others:,} documents that are not from {origin}, whose rights would hide "
                    "them. Give the source a category of its own."
                )
        stated = {nodes[digest]: of_digest for digest, of_digest in rights.items()}
        await self._store.restrict(origin, {root: NO_READERS, **stated})
        return nodes

    async def _place(self, run: _Run, nodes: Mapping[str, int]) -> None:
        """Bring the members of groups into step, and which document is in which category; `nodes` by the digest."""
        origin = run.connector.address
        rights = [item.rights or NO_READERS for item in run.items]
        places = {document_id(item.uri): nodes[each.digest] for item, each in zip(run.items, rights, strict=True)}
        places |= {file.source_id: places[document_id(item.uri)] for file, item in run.plan.renames}
        groups = await self._members(run, {name for each in rights for name in each.groups})
        moves = await self._store.misplaced(places)
        if groups != await self._store.groups(origin):
            root = _node(await self._writer.ensure_paths([run.category]), run.category)
            await self._store.move(dict.fromkeys(moves, root))
            await self._store.set_groups(origin, groups)
        await self._store.move(moves)

    async def _members(self, run: _Run, groups: Collection[str]) -> dict[str, Membership]:
        direct: dict[str, Collection[str] | None] = {}
        tops = {*groups, everyone(run.connector.site)}
        queue = sorted(tops)
        while queue:
            name = queue.pop()
            if name in direct:
                continue
            try:
                direct[name] = await run.connector.members(name)
            except SourceUnavailable as error:
                direct[name] = None
                text = "The members of {group} could not be read, so that no user is let in as one of them: {reason}"
                run.report.notes.append(stated("source_group", text, group=name, reason=str(error)))
            queue += [member for member in direct[name] or () if is_group(member)]
        return memberships(tops, direct.get)

    async def _remove(self, run: _Run) -> None:
        gone = [StoredFile(file.source_id, file.uri, b"", 0) for file in run.plan.lost]
        await self._folders.remove(FolderPlan(gone=gone, left_out={file.uri for file in gone}), run.report)
        await self._store.forget([file.source_id for file in run.plan.lost])

    async def _rename(self, run: _Run) -> None:
        """Give the documents of renamed files their new address; they are in the category of their rights by then."""
        for number, (file, item) in enumerate(run.plan.renames):
            source = run.source(number, item)
            try:
                await run.connector.fetch(item, source.path)
                known = await self._writer.source_fingerprint(file.source_id)
                moves = [(StoredFile(file.source_id, file.uri, known or b"", 0), source)]
                await self._folders.follow(FolderPlan(moves=moves), run.report)
            except (SourceUnavailable, OSError) as error:
                run.report.failed.append((item.uri, Statement("", f"{error}")))
                continue
            finally:
                source.path.unlink(missing_ok=True)
            await self._note(run, [item])
            await self._store.forget([file.source_id])

    async def _read(self, run: _Run, on_progress: Callable[[Progress], None] | None) -> None:
        scope = None
        if run.paths is not None:  # nothing of such a source is written anywhere else
            taxonomy = await self._writer.ensure_paths([run.category])
            scope = Scope(taxonomy.subtree(_node(taxonomy, run.category)))
        fresh = run.plan.fresh
        for page in (fresh[start : start + PAGE] for start in range(0, len(fresh), PAGE)):
            await self._note(run, [replace(item, mark="") for item in page])  # before a document is there
            sources = [run.source(number, item) for number, item in enumerate(page)]
            read = await self._ingest(sources, run.category.names, run.shifted(on_progress), scope=scope)
            failed = {each.source.uri for each in read.sources if each.failed}
            await self._note(run, [item for item in page if item.uri not in failed])
            run.report.add(read)

    async def _note(self, run: _Run, items: Sequence[SourceItem]) -> None:
        masked = self._personal_data.masked_address
        known = [StoredItem(document_id(item.uri), masked(item.uri), item.mark) for item in items]
        await self._store.note(run.connector.address, known)


def _node(taxonomy: Taxonomy, path: CategoryPath) -> int:
    node = taxonomy.find(path)
    assert node is not None  # noqa: S101 - `ensure_paths` has made it
    return node


def _name(item: SourceItem) -> str:
    return PurePosixPath(item.path).name
