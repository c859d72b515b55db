"""Callers without a key: which branches they may search, ask and read, and what that may cost (`DTRAG_PUBLIC`)."""

from __future__ import annotations

import datetime
from dataclasses import replace

from dtrag.core.access.api_key import PUBLIC_ID, Key
from dtrag.core.access.scope import ALL_CATEGORIES, Anchor, Grant
from dtrag.core.agent import MILLION
from dtrag.core.chat import Usage
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput
from dtrag.governance.agents import Budget, used_up
from dtrag.pipeline.run_context import Run
from dtrag.ports import PublicSpendingStore
from dtrag.settings import Settings

SPENT = "The budget for answers without a key is used up for today: the answer is quoted."
NAME = "public"
OWNER = str(PUBLIC_ID)
"""Owner of the traces of callers without a key, none of whom can read them."""


def public_grant(branches: str) -> Grant | None:
    """The branches in the setting `public`, by their paths; None for none. Raises `InvalidInput`.

    A path grants the category that has it: after a move nothing, until the setting is changed. `*` grants all of them.
    """
    paths = [part.strip() for part in branches.split(",") if part.strip()]
    if paths == ["*"]:
        return Grant((ALL_CATEGORIES,))
    try:
        anchors = tuple(Anchor(CategoryPath.parse(path), None) for path in paths)
    except InvalidInput as error:
        raise InvalidInput(f"DTRAG_PUBLIC is * or paths of categories, separated by commas. {error}") from error
    return Grant(anchors) if anchors else None


class PublicAccess:
    """What callers without a key may do, all of whom are the same caller."""

    def __init__(self, grant: Grant, settings: Settings, store: PublicSpendingStore) -> None:
        self.grant = grant
        self.per_address, self.in_all = settings.public_rate_per_minute, settings.public_rate_in_all
        self._budget = Budget(settings.public_tokens_per_day, float(settings.public_krw_per_day))
        self._store = store
        created = datetime.datetime.fromtimestamp(0, datetime.UTC)
        self.key = Key(PUBLIC_ID, NAME, "", b"", "public", grant, self.in_all, created)
        """What stands for a key where requests are recognised; no secret opens it."""

    @classmethod
    def of(cls, settings: Settings, store: PublicSpendingStore) -> PublicAccess | None:
        """None: there is no access without a key. Raises `InvalidInput`."""
        grant = public_grant(settings.public)
        return None if grant is None else cls(grant, settings, store)

    def restricted(self, run: Run) -> Run:
        """The same run without tools and case memory, within the budget; nothing is learned from it."""
        return replace(
            run,
            memory=False,
            learning=None,
            tools_allowed=(),
            forbidden=self._forbidden,
            charge=self._charge,
            recording=replace(run.recording, keeps_text=False),
        )

    async def _forbidden(self) -> str | None:
        used = await self._store.spending(_today())
        return None if used_up(used, self._budget) is None else SPENT

    async def _charge(self, usage: Usage) -> None:
        await self._store.charge(_today(), usage.calls, usage.tokens, round(usage.cost * MILLION))


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()
