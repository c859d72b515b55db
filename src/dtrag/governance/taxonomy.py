"""Versions of the category tree: propose, preview, activate, roll back; trees and changes in YAML.

A tree is nested names: `AI: {ML: {}, Data: {}}`; `'@grade': S` below a name is the grade of that branch. A change is
`parent`, `version` (both optional), `rationale` and `operations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import yaml

from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.audit_chain import Decision
from dtrag.core.access.taxonomy_impact import Preview, TreeVersion
from dtrag.core.taxonomy.apply import MOST_NODES, applied
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.taxonomy.operations import Add, Operation, SetGrade, Split, operations
from dtrag.core.taxonomy.tree import MAX_DEPTH, MAX_NAME, ROOT, CategoryPath, Taxonomy
from dtrag.core.taxonomy.versions import Diff, GradeChange, diff, parse_version
from dtrag.core.text.analysis import clean
from dtrag.errors import Advice, Conflict, InvalidInput, NotFound
from dtrag.ports import Recorder, TaxonomyStore, unrecorded

ACTIVE = "active"
"""Stands for the active version."""
_SHOWN = 3
"""Grantees listed in a rejection."""


class TaxonomyVersions:
    """The category tree of one app."""

    def __init__(self, store: TaxonomyStore, record: Recorder = unrecorded, *, grades: Grades = Grades()):
        self._store = store
        self.grades = grades
        self._record = record

    async def versions(self) -> list[TreeVersion]:
        """All versions, newest first."""
        return await self._store.versions()

    async def tree(self, version: str | None = None) -> Taxonomy:
        """The tree of a version; None or `active`: the active one. Raises `InvalidInput` and `NotFound`."""
        if version is None or version == ACTIVE:
            return await self._store.active()
        parse_version(version)
        taxonomy = await self._store.tree(version)
        if taxonomy is None:
            raise NotFound(f"There is no version {version!r} of the category tree.", Advice.LIST_VERSIONS)
        return taxonomy

    async def counts(self) -> dict[int, int]:
        """Node id -> number of documents."""
        return await self._store.counts()

    async def propose(
        self,
        changes: Sequence[Mapping[str, Any]] | Sequence[Operation],
        rationale: str = "",
        *,
        parent: str | None = None,
        version: str | None = None,
        by: str = LOCAL.name,
    ) -> TreeVersion:
        """Store a new, inactive version: the result of the operations on its parent (None: the active version).

        Raises `InvalidInput`, `NotFound` for the parent, and `Conflict` for a number in use.
        """
        parsed = operations([change.as_json() if isinstance(change, Operation) else change for change in changes])
        if any(_numbered(operation) for operation in parsed):
            # The id of a deleted node would reactivate grants of it.
            raise InvalidInput("'node_id' is assigned by the server: leave it out.")
        parsed = tuple(self._as_set(operation) for operation in parsed)
        if len(rationale) > MAX_RATIONALE:
            raise InvalidInput(f"A rationale has at most {MAX_RATIONALE:,} characters.")
        for number in (parent, version):
            if number is not None:
                parse_version(number)
        now = datetime.now(UTC)
        proposed = await self._store.propose(parsed, clean(rationale), parent, version, by=by, now=now)
        details = {"parent": proposed.parent, "operations": len(parsed)}
        await self._audit(by, "taxonomy.propose", proposed.version, details)
        return proposed

    async def preview(self, version: str) -> Preview:
        """What activating the version, or rolling back to it, would change. Raises `NotFound` and `Conflict`."""
        parse_version(version)
        known = {row.version: row for row in await self.versions()}
        before = version in known and known[version].activated_at is not None
        return await self._store.preview(version, "rollback" if before else "activate", datetime.now(UTC))

    async def activate(
        self, version: str, *, accept_widening: bool = False, accept_lowering: bool = False, by: str = LOCAL.name
    ) -> Preview:
        """Activate a proposed version. Raises `NotFound`, and `Conflict` when that is impossible.

        When a key or agent would see more documents, it raises `Conflict`, too, unless `accept_widening`; and when
        documents would have a lower grade, unless `accept_lowering`.
        """
        accepted = {"widening": accept_widening, "lowering": accept_lowering}
        return await self._bring_in(version, "activate", accepted, by)

    async def rollback(
        self, version: str, *, accept_widening: bool = False, accept_lowering: bool = False, by: str = LOCAL.name
    ) -> Preview:
        """Return to an earlier active version; documents return to their nodes of then. Raises as `activate`."""
        accepted = {"widening": accept_widening, "lowering": accept_lowering}
        return await self._bring_in(version, "rollback", accepted, by)

    async def diff(self, version: str, base: str) -> Diff:
        """Differences of `version` from `base`. Raises `InvalidInput` and `NotFound`."""
        after, before = await self.tree(version), await self.tree(base)
        return diff(before, after, await self._merged(before.version, after.version))

    async def export(self, version: str | None = None) -> str:
        """The tree of a version as nested names in YAML."""
        return write_tree(await self.tree(version))

    async def import_tree(self, text: str, rationale: str = "", *, by: str = LOCAL.name) -> TreeVersion:
        """Propose the categories and grades of a YAML tree that the active one lacks. Raises as `propose`."""
        added = missing(read_tree(text), await self.tree())
        if not added:
            raise InvalidInput("The active tree has all of this already: there is nothing to propose.")
        return await self.propose(added, rationale, by=by)

    async def propose_file(self, text: str, *, by: str = LOCAL.name) -> TreeVersion:
        """Propose the operations of a change file. Raises as `propose`."""
        change = read_change(text)
        rationale, parent, version = (change.get(name) for name in ("rationale", "parent", "version"))
        return await self.propose(change["operations"], rationale or "", parent=parent, version=version, by=by)

    async def _bring_in(
        self, version: str, kind: Literal["activate", "rollback"], accepted: Mapping[str, bool], by: str
    ) -> Preview:
        parse_version(version)
        rejected: list[Preview] = []

        def allowed(preview: Preview) -> None:
            for changes, name, refusal in (
                (preview.widened, "widening", _widening),
                (preview.lowered, "lowering", _lowering),
            ):
                if changes and not accepted[name]:
                    rejected.append(preview)
                    raise refusal(preview)

        try:
            preview = await self._store.bring_in(version, kind, allowed, by=by, now=datetime.now(UTC))
        except Conflict:
            if rejected:
                await self._audit(by, f"taxonomy.{kind}", version, _figures(rejected[0]), decision="denied")
            raise
        await self._audit(by, f"taxonomy.{kind}", version, _figures(preview) | {"previous": preview.active})
        return preview

    def _as_set(self, operation: Operation) -> Operation:
        """With the name of a grade as the setting spells it. Raises `InvalidInput` for an unknown one."""
        if not isinstance(operation, SetGrade) or not operation.grade:
            return operation
        return replace(operation, grade=self.grades.names[self.grades.named(operation.grade)])

    async def _merged(self, base: str, version: str) -> dict[int, int]:
        """Merged node -> its target, for the operations between the two versions."""
        known = {row.version: row for row in await self.versions()}
        chain: list[TreeVersion] = []
        current = known.get(version)
        while current is not None and current.version != base and len(chain) < len(known):
            chain.append(current)
            current = known.get(current.parent or "")
        if current is None or current.version != base:
            return {}
        merged: dict[int, int] = {}
        for row in reversed(chain):
            tree = await self._store.tree(row.parent or "")
            if tree is None:
                continue
            try:
                step = applied(tree, row.operations, row.version, next_id=0).rehoming
            except InvalidInput:
                continue  # ingest has added paths to the parent since, and the operations do not apply to it any more
            merged = {node: step.emptied.get(to, to) for node, to in merged.items()} | step.merged
        return merged

    async def _audit(
        self, by: str, action: str, version: str, details: Mapping[str, Any], decision: Decision = "done"
    ) -> None:
        await self._record(by, action, scope=None, subjects=[version], decision=decision, details=details)


def _numbered(operation: Operation) -> bool:
    parts = operation.into if isinstance(operation, Split) else ()
    own = operation.node_id if isinstance(operation, Add) else None
    return own is not None or any(part.node_id is not None for part in parts)


def _figures(preview: Preview) -> dict[str, object]:
    figures: dict[str, object] = {"documents": preview.documents, "widened": [str(row) for row in preview.widened]}
    if preview.lowered:
        figures["lowered"] = [_fall(row) for row in preview.lowered]
    return figures


def _fall(row: GradeChange) -> str:
    return f"{'/'.join(row.path) or 'no category'}: {row.before} to {row.to}"


def _lowering(preview: Preview) -> Conflict:
    falls = [_fall(row) for row in preview.lowered]
    more = f" and {len(falls) - _SHOWN} more" if len(falls) > _SHOWN else ""
    return Conflict(
        f"With version {preview.version} documents get a lower grade: {', '.join(falls[:_SHOWN])}{more}.",
        Advice.ACCEPT_LOWERING,
        version=preview.version,
    )


def _widening(preview: Preview) -> Conflict:
    gaining = [f"{row} ({row.gained:,})" for row in preview.widened]
    more = f" and {len(gaining) - _SHOWN} more" if len(gaining) > _SHOWN else ""
    return Conflict(
        f"With version {preview.version} documents become visible to {', '.join(gaining[:_SHOWN])}{more}.",
        Advice.ACCEPT_WIDENING,
        version=preview.version,
    )


MAX_CHARACTERS = 2_000_000
"""10,000 names of 50 characters with indentation take about half of it."""
MAX_RATIONALE = 2_000
_MOST_NESTING = 24
GRADE = "@grade"
"""What stands for the grade of a branch in a YAML tree: no category has such a name."""


def read_change(text: str) -> dict[str, Any]:
    """The fields of a change file; its operations are not checked. Raises `InvalidInput`."""
    change = _loaded(text)
    if not isinstance(change, dict) or "operations" not in change:
        raise InvalidInput("A change file has the fields operations, rationale and, optionally, parent and version.")
    if unknown := sorted(str(name)[:40] for name in change.keys() - {"operations", "rationale", "parent", "version"}):
        raise InvalidInput(f"A change file has no field {unknown[0]!r}.")
    for name in ("rationale", "parent", "version"):
        if not isinstance(change.get(name, ""), (str, type(None))):
            raise InvalidInput(f"The field {name!r} must be a string: put it in quotes.")
    return change


def write_tree(taxonomy: Taxonomy) -> str:
    """The tree as nested names, sorted."""

    def below(node: int) -> dict[str, object]:
        grade = taxonomy.nodes[node].grade if node in taxonomy.nodes else ""
        children = sorted(taxonomy.children.get(node, {}).values(), key=lambda child: taxonomy.nodes[child].key)
        graded: dict[str, object] = {GRADE: grade} if grade else {}
        return graded | {taxonomy.nodes[child].name: below(child) for child in children}

    return str(yaml.safe_dump(below(ROOT), allow_unicode=True, sort_keys=False, default_flow_style=False))


def read_tree(text: str) -> dict[CategoryPath, str]:
    """The paths of a tree of nested names, parents first, each with its own grade or "". Raises `InvalidInput`."""
    tree = _loaded(text)
    if not isinstance(tree, dict):
        raise InvalidInput("A tree file is nested names, such as: AI: {ML: {}, Data: {}}")
    paths: dict[CategoryPath, str] = {}
    queue: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    while queue:
        above, branch = queue.pop()
        if branch is None:
            continue
        if not isinstance(branch, Mapping):
            raise InvalidInput(f"Below {'/'.join(above)!r} there must be names with a colon each, or nothing.")
        if len(above) >= MAX_DEPTH and branch:
            raise InvalidInput(f"The tree is more than {MAX_DEPTH} levels deep, at {'/'.join(above)!r}.")
        for name, below in branch.items():
            if name == GRADE and above:
                paths[CategoryPath.parse(above)] = str(below or "")
                continue
            path = _path(above, name)
            paths.setdefault(path, "")
            queue.append((path.names, below))
        if len(paths) > MOST_NODES:
            raise InvalidInput(f"The tree has more than {MOST_NODES:,} categories.")
    return dict(sorted(paths.items(), key=lambda item: (len(item[0].key), item[0].key)))


def _path(above: tuple[str, ...], name: Any) -> CategoryPath:
    try:
        return CategoryPath.parse([*above, name])
    except InvalidInput as error:
        place = f"Below {'/'.join(above)!r}" if above else "At the top"
        raise InvalidInput(f"{place}, at {str(name)[:MAX_NAME]!r}: {error}") from error


def missing(paths: Mapping[CategoryPath, str], taxonomy: Taxonomy) -> tuple[Operation, ...]:
    """Operations that add the paths that the tree lacks, and give the grades that its categories do not have."""
    added = [Add(path) for path in paths if taxonomy.find(path) is None]
    graded = [SetGrade(path, grade) for path, grade in paths.items() if grade and _grade_of(path, taxonomy) != grade]
    return (*added, *graded)


def _grade_of(path: CategoryPath, taxonomy: Taxonomy) -> str:
    node = taxonomy.find(path)
    return "" if node is None else taxonomy.nodes[node].grade


class _Plain(yaml.SafeLoader):
    """Loads plain data; rejects references and duplicate keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise InvalidInput("The file uses references (*name), which can grow without bounds. Write them out.")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [child.value for child, _ in node.value]
        if len(set(map(str, names))) != len(names):
            raise InvalidInput(f"A name is repeated at one place, in line {node.start_mark.line + 1}.")
        return super().construct_mapping(node, deep)


def _loaded(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"The file has more than {MAX_CHARACTERS:,} characters.")
    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_NESTING:
                raise InvalidInput("The file is nested too deeply.")
        return yaml.load(text, _Plain)  # nosec B506  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise InvalidInput(
            f"The file is not valid YAML{where}: {getattr(error, 'problem', '') or 'unreadable'}."
        ) from error
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("The file contains a value that cannot be read: put it in quotes.") from error
