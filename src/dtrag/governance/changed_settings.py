"""Settings that administrators change while services run: stored in the database, and used by every process on it.

A process reads them when it opens, and a service every second. What was set where a process was started has precedence
in that process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import ALL_CATEGORIES, Access
from dtrag.core.access.visible_tree import TopBranch, top_branches
from dtrag.core.response import response
from dtrag.errors import Advice, Conflict, InvalidInput, NotFound
from dtrag.governance.public_access import public_grant
from dtrag.ports import IndexSettings, Recorder, TaxonomyStore
from dtrag.setting_files import no_setting
from dtrag.settings import Settings, changeable_settings, changed_value, declarations, variable_of

SETTING = "settings"
"""The name under which they are stored among the settings of the index."""
ATTEMPTS = 10
"""Attempts to store a change while other administrators store theirs."""
PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A stored value of a setting, the name of who stored it, and when, in ISO 8601."""

    value: str | int | float
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class PublicEffect:
    """What callers without a key could read after a change of the public branches."""

    __pydantic_config__ = response()

    documents: int
    """Documents that they could read."""
    gained: int
    """Those of them that they cannot read now."""
    lost: int
    """Documents that they can read now, and could not read any more."""
    widens: bool
    """Whether they would see more categories, with or without documents: such a change must be accepted."""
    branches: tuple[TopBranch, ...]
    """The topmost branches with documents that they could read, the largest first."""


def readable(stored: object) -> dict[str, StoredValue]:
    """The stored values that this version can use, by the names of their settings."""
    known, values = changeable_settings(), dict[str, StoredValue]()
    for name, row in stored.items() if isinstance(stored, Mapping) else ():
        if name not in known or not isinstance(row, Mapping):
            continue
        try:
            values[name] = StoredValue(_checked(name, row.get("value")), str(row.get("by")), str(row.get("at")))
        except InvalidInput:
            continue
    return values


def _checked(name: str, value: object) -> Any:
    checked = changed_value(name, value)
    if name == PUBLIC:
        public_grant(checked)
    return checked


class ChangedSettings:
    """The changed settings of one app. `use` is called with its settings whenever they differ from those before."""

    def __init__(
        self,
        at_start: Settings,
        store: IndexSettings,
        taxonomy: TaxonomyStore,
        record: Recorder,
        use: Callable[[Settings], None],
    ) -> None:
        self.at_start = at_start
        self.values: dict[str, StoredValue] = {}
        """The stored values by name, also those that have no effect in this process."""
        self._stored: Mapping[str, Any] | None = None
        self._in_use = at_start
        self._store = store
        self._taxonomy = taxonomy
        self._record = record
        self._use = use
        self._turns = asyncio.Lock()

    async def read(self) -> None:
        """Use what is stored now. Raises `DatabaseUnavailable`."""
        async with self._turns:
            self._take_over(await self._store.stored(SETTING))

    async def set(
        self, name: str, value: object, *, accept_widening: bool = False, dry_run: bool = False, by: Caller = LOCAL
    ) -> PublicEffect | None:
        """Store a value, and use it; for `public` returns what callers without a key see then.

        `dry_run`, for `public` only, changes nothing.

        Raises `NotFound` for an unknown setting, `InvalidInput` for a wrong value, and `Conflict` for a setting that
        cannot be changed, that is fixed here, or, unless `accept_widening`, for one by which callers without a key see
        more.
        """
        _require_changeable(name)
        if self.at_start.is_fixed(name):
            raise Conflict(
                f"{variable_of(name)} is set where this service is started, in its environment or a file of settings, "
                "and has precedence: change it there."
            )
        checked = _checked(name, value)
        effect = await self._effect(checked) if name == PUBLIC else None
        if dry_run:
            if effect is None:
                raise InvalidInput("Only a change of public can be shown before it is made: leave the dry run out.")
            return effect
        if effect is not None and effect.widens and not accept_widening:
            raise Conflict(
                f"Callers without a key would see more: {effect.documents:,} documents, {effect.gained:,} of them new.",
                Advice.ACCEPT_EFFECT,
                option="--accept-widening",
                field="accept_widening",
            )
        row = {"value": checked, "by": by.name, "at": datetime.now(UTC).isoformat()}
        await self._change("settings.set", name, row, by)
        return effect

    async def unset(self, name: str, *, by: Caller = LOCAL) -> None:
        """Return to the value from the start. Raises `NotFound`, and `Conflict` for one that cannot be changed.

        What another version stored may be removed, too.
        """
        if name not in (self._stored or {}):
            _require_changeable(name)
        await self._change("settings.unset", name, None, by)

    async def _effect(self, branches: str) -> PublicEffect:
        """What a value of `public` would change. Raises `InvalidInput`, also for a branch that does not exist."""
        tree, counts = await self._taxonomy.active(), await self._taxonomy.counts()
        grant, before = public_grant(branches), public_grant(self._in_use.public)
        if grant is not None and (missing := grant.unresolved(tree)):
            names = ", ".join(map(str, missing))
            raise InvalidInput(f"DTRAG_PUBLIC: there is no category {names}.", Advice.LIST_CATEGORIES)
        then, now = (
            frozenset[int]() if each is None else (Access((each,)).resolved(tree).nodes or frozenset())
            for each in (grant, before)
        )
        to_come = grant is not None and ALL_CATEGORIES in grant.anchors and grant != before
        scope = Access((grant,) if grant else ()).resolved(tree).narrowed(then)
        return PublicEffect(
            documents=sum(counts.get(node, 0) for node in then),
            gained=sum(counts.get(node, 0) for node in then - now),
            lost=sum(counts.get(node, 0) for node in now - then),
            widens=bool(then - now) or to_come,
            branches=tuple(top_branches(tree, scope, counts)),
        )

    async def _change(self, action: str, name: str, row: Mapping[str, Any] | None, by: Caller) -> None:
        async with self._turns:
            before = getattr(self._in_use, name, None)
            for _ in range(ATTEMPTS):
                stored = await self._store.stored(SETTING)
                changed = {key: value for key, value in (stored or {}).items() if key != name}
                if row is not None:
                    changed[name] = row
                if await self._store.replace(SETTING, changed, stored):
                    break
            else:
                raise Conflict("Others are changing the settings at the moment. Nothing was changed; try again.")
            self._take_over(changed)
        details = {"old": before, "new": getattr(self._in_use, name, None)}
        await self._record(by.name, action, scope=None, subjects=[name], decision="done", details=details)

    def _take_over(self, stored: Mapping[str, Any] | None) -> None:
        if stored == self._stored:
            return
        self._stored, self.values = stored, readable(stored)
        self._in_use = self.at_start.with_stored({name: each.value for name, each in self.values.items()})
        self._use(self._in_use)


def _require_changeable(name: str) -> None:
    names = {each.name for each in declarations()}
    if name not in names:
        raise NotFound(no_setting(name, names))
    if name not in changeable_settings():
        raise Conflict(
            f"{variable_of(name)} cannot be changed while the service runs: set it in the environment or in a file of "
            "settings, and start the service again."
        )
