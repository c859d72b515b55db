"""What the command line asks of an app: by itself, or through the service that runs on the same data folder.

Each operation takes plain JSON values and returns a result of `delivery.results`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtrag.core.access.confinement import OWNER
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.delivery.local.results import Answered, Citations, Listing, Passages, Regulations, Shown, ShownProvision
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App

NEAREST = 3
"""Existing categories that the message about an unknown one names."""


async def _ask(app: App, question: str, categories: Sequence[str] | None) -> Answered:
    await check_categories(app, categories)
    answer = await app.ask(question, {"taxonomy_paths": list(categories)} if categories else None, scope=OWNER)
    return Answered(answer, not answer.citations and (await app.counts(scope=OWNER))[0] == 0)


async def _search(
    app: App, query: str, top_k: int, categories: Sequence[str] | None, options: Mapping[str, Any]
) -> Passages:
    await check_categories(app, categories)
    results, metrics = await app.search(query, top_k, scope=OWNER, **options)
    return Passages(results, metrics, not results and (await app.counts(scope=OWNER))[0] == 0)


async def _documents(app: App, limit: int, offset: int) -> Listing:
    total, chunks = await app.counts(scope=OWNER)
    return Listing(await app.documents(limit, offset, scope=OWNER), total, chunks)


async def _document(app: App, document_id: str) -> Shown:
    return Shown(*await app.document(document_id, scope=OWNER))


async def _regulations(app: App) -> Regulations:
    regulations = await app.regulations.regulations(scope=OWNER)
    return Regulations(regulations, not regulations and (await app.counts(scope=OWNER))[0] == 0)


async def _provision(app: App, reference: str) -> ShownProvision:
    return await app.regulations.show(reference, scope=OWNER)


async def _citations(app: App, regulation: str | None) -> Citations:
    return Citations(await app.regulations.citations(regulation, scope=OWNER))


OPERATIONS: Mapping[str, Callable[..., Coroutine[Any, Any, Any]]] = {
    "ask": _ask,
    "search": _search,
    "documents": _documents,
    "document": _document,
    "regulations": _regulations,
    "provision": _provision,
    "citations": _citations,
}
"""Reading operations on an app, by the names that commands and services use between them."""


async def check_categories(app: App, categories: Sequence[str] | None) -> None:
    """Raise `InvalidInput` for a path that is not in the active tree, with the nearest that are."""
    if not categories:
        return
    taxonomy = (await app.index.snapshot()).taxonomy
    for path in map(CategoryPath.parse, categories):
        if taxonomy.find(path) is None:
            raise InvalidInput(f"There is no category {str(path)!r}. {_suggestion(str(path), taxonomy)}")


def _suggestion(path: str, taxonomy: Taxonomy) -> str:
    known = sorted(filter(None, ("/".join(taxonomy.path(node)) for node in taxonomy.nodes)))
    if not known:
        return "There are no categories yet."
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(path.casefold(), folded, NEAREST, cutoff=0.5)
    last_name = path.casefold().rpartition("/")[2]
    near += [name for name in folded if name.rpartition("/")[2] == last_name and name not in near]
    if near:
        return f"Nearest: {', '.join(folded[name] for name in near[:NEAREST])}."
    return "List them with: dtrag taxonomy tree"
