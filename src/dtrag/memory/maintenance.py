"""What the maintenance of the case memory has in common: who may do it, and reading all cases."""

from __future__ import annotations

from collections.abc import AsyncIterator

from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import Case
from dtrag.errors import FeatureOff, Forbidden
from dtrag.ports import CaseStore
from dtrag.settings import flag

PAGE = 500


def require_maintainer(caller: Caller) -> None:
    """Raises `FeatureOff` while the memory is off, and `Forbidden` for a caller with a scope."""
    if not flag("cbr_enabled"):
        raise FeatureOff(feature="CBR system", variable="CBR_ENABLED")
    if caller.access.grants or not caller.may("admin"):
        raise Forbidden("Only an administrator of the whole tree may maintain the case memory.")


async def pages(store: CaseStore) -> AsyncIterator[list[Case]]:
    """All cases of the store by id, in pages."""
    after: str | None = None
    while page := await store.page(EVERYTHING, PAGE, after):
        yield list(page)
        after = page[-1].case_id


async def all_cases(store: CaseStore) -> list[Case]:
    """All cases of the store, by id."""
    return [case async for page in pages(store) for case in page]
