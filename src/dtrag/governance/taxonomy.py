"""The versioned category tree as a service: propose a change, see what it would do, bring it in, go back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.taxonomy_impact import Preview, TreeVersion
from dtrag.core.taxonomy.apply import applied
from dtrag.core.taxonomy.operations import Add, Operation, Split, operations
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.taxonomy.versions import Diff, diff, parse_version
from dtrag.core.text.analysis import clean
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.governance import taxonomy_yaml
from dtrag.ports import Recorder, TaxonomyStore, unrecorded

ACTIVE = "active"
"""In the place of a version: the one in force."""
_SHOWN = 3
"""Names of those who gain that a refusal shows."""


class TaxonomyVersions:
    """The category tree of one app."""

    def __init__(self, store: TaxonomyStore, record: Recorder = unrecorded):
        self._store = store
        self._record = record

    async def versions(self) -> list[TreeVersion]:
        """All versions, the newest first."""
        return await self._store.versions()

    async def tree(self, version: str | None = None) -> Taxonomy:
        """The tree of a version; None or `active`: the one in force. Raises `InvalidInput` and `NotFound`."""
        if version is None or version == ACTIVE:
            return await self._store.active()
        parse_version(version)
        found = await self._store.tree(version)
        if found is None:
            raise NotFound(f"There is no version {version!r} of the category tree. List them with: dtrag taxonomy list")
        return found

    async def counts(self) -> dict[int, int]:
        """Documents on each node, by node id."""
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
        """Keep a new version: what the operations make of its parent (the one in force). Nothing else changes.

        Raises `InvalidInput`, `NotFound` for the parent, and `Conflict` for a number that is taken.
        """
        wanted = operations([change.as_json() if isinstance(change, Operation) else change for change in changes])
        if any(_numbered(operation) for operation in wanted):
            # A number that was in use before would revive what was granted with it.
            raise InvalidInput("'node_id' is assigned by the server: leave it out.")
        if len(rationale) > taxonomy_yaml.MAX_RATIONALE:
            raise InvalidInput(f"A rationale has at most {taxonomy_yaml.MAX_RATIONALE:,} characters.")
        for number in (parent, version):
            if number is not None:
                parse_version(number)
        now = datetime.now(UTC)
        found = await self._store.propose(wanted, clean(rationale), parent, version, by=by, now=now)
        await self._say(by, "taxonomy.propose", found.version, {"parent": found.parent, "operations": len(wanted)})
        return found

    async def preview(self, version: str) -> Preview:
        """What bringing the version into force would do, or going back to it. Raises `NotFound` and `Conflict`."""
        parse_version(version)
        known = {row.version: row for row in await self.versions()}
        before = version in known and known[version].activated_at is not None
        return await self._store.preview(version, "rollback" if before else "activate", datetime.now(UTC))

    async def activate(self, version: str, *, accept_widening: bool = False, by: str = LOCAL.name) -> Preview:
        """Bring a proposed version into force. Raises `NotFound`, and `Conflict` when it cannot be.

        That somebody comes to see more is a `Conflict`, too, unless it is accepted.
        """
        return await self._bring_in(version, "activate", accept_widening, by)

    async def rollback(self, version: str, *, accept_widening: bool = False, by: str = LOCAL.name) -> Preview:
        """Go back to a version that was in force; documents hang where they hung then. Raises as `activate`."""
        return await self._bring_in(version, "rollback", accept_widening, by)

    async def diff(self, version: str, base: str) -> Diff:
        """What `version` has and `base` has not, and the other way round. Raises `InvalidInput` and `NotFound`."""
        after, before = await self.tree(version), await self.tree(base)
        return diff(before, after, await self._merged(before.version, after.version))

    async def export(self, version: str | None = None) -> str:
        """The tree of a version as YAML: nested names."""
        return taxonomy_yaml.write_tree(await self.tree(version))

    async def import_tree(self, text: str, rationale: str = "", *, by: str = LOCAL.name) -> TreeVersion:
        """Propose the additions that a tree as YAML has over the one in force. Raises as `propose`."""
        added = taxonomy_yaml.missing(taxonomy_yaml.read_tree(text), await self.tree())
        if not added:
            raise InvalidInput("The tree in force has all of these categories already: there is nothing to propose.")
        return await self.propose(added, rationale, by=by)

    async def propose_file(self, text: str, *, by: str = LOCAL.name) -> TreeVersion:
        """Propose what a change file says. Raises as `propose`."""
        found = taxonomy_yaml.read_change(text)
        return await self.propose(found.operations, found.rationale, parent=found.parent, version=found.version, by=by)

    async def _bring_in(
        self, version: str, kind: Literal["activate", "rollback"], accept_widening: bool, by: str
    ) -> Preview:
        parse_version(version)
        refused: list[Preview] = []

        def allowed(found: Preview) -> None:
            if found.widened and not accept_widening:
                refused.append(found)
                raise Conflict(_widening(found))

        try:
            found = await self._store.bring_in(version, kind, allowed, by=by, now=datetime.now(UTC))
        except Conflict:
            if refused:
                await self._say(by, f"taxonomy.{kind}", version, _figures(refused[0]), decision="denied")
            raise
        await self._say(by, f"taxonomy.{kind}", version, _figures(found) | {"previous": found.active})
        return found

    async def _merged(self, base: str, version: str) -> dict[int, int]:
        """Nodes that operations between the two merged into others, from `base` on."""
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
                continue  # the parent has grown paths on ingest that the operations do not go with
            merged = {node: step.emptied.get(to, to) for node, to in merged.items()} | step.merged
        return merged

    async def _say(
        self, by: str, action: str, version: str, details: Mapping[str, Any], decision: str = "done"
    ) -> None:
        await self._record(by, action, scope=None, subjects=[version], decision=decision, details=details)


def _numbered(operation: Operation) -> bool:
    parts = operation.into if isinstance(operation, Split) else ()
    own = operation.node_id if isinstance(operation, Add) else None
    return own is not None or any(part.node_id is not None for part in parts)


def _figures(found: Preview) -> dict[str, Any]:
    return {"documents": found.documents, "widened": [f"{row.kind} {row.name}" for row in found.widened]}


def _widening(found: Preview) -> str:
    named = [f"{row.kind} {row.name} ({row.gained:,})" for row in found.widened]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return (
        f"With version {found.version} documents come into sight of {', '.join(named[:_SHOWN])}{more}. Look at them "
        f"with: dtrag taxonomy preview {found.version}; accept it with --accept-widening (accept_widening over HTTP)."
    )
