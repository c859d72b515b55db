"""Reading operations of the command line, run in its own process or by the service on the same data folder.

Each operation takes plain JSON values and returns a value of `delivery.local.results`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtrag.core.access.confinement import OWNER
from dtrag.core.document_listing import DocumentListing, continuation
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.delivery.local.results import (
    AnswerResult,
    CitationList,
    DocumentPage,
    DocumentResult,
    OwnEntries,
    ReadingResult,
    RegulationDifferences,
    RegulationList,
    SearchResults,
    ShownProvision,
    StaleCitations,
    Verification,
)
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App

NEAREST = 3
"""Number of similar existing categories in the message about an unknown one."""


async def _ask(app: App, question: str, categories: Sequence[str] | None, as_of: str | None = None) -> AnswerResult:
    await check_categories(app, categories)
    filters = {"taxonomy_paths": list(categories)} if categories else None
    answer = await app.ask(question, filters, scope=OWNER, as_of=as_of)
    return AnswerResult(answer, not answer.citations and (await app.counts(scope=OWNER))[0] == 0)


async def _search(
    app: App, query: str, top_k: int | None, categories: Sequence[str] | None, options: Mapping[str, Any]
) -> SearchResults:
    await check_categories(app, categories)
    results, metrics = await app.search(query, top_k, scope=OWNER, **options)
    return SearchResults(results, metrics, not results and (await app.counts(scope=OWNER))[0] == 0)


async def _documents(
    app: App, limit: int, offset: int, category: str | None = None, listing: Mapping[str, Any] | None = None
) -> DocumentPage:
    await check_categories(app, [category] if category else None)
    selected = DocumentListing.parse(**(listing or {}))
    total, chunks = await app.counts(category=category, listing=selected, scope=OWNER)
    page = await app.documents(limit, offset, category=category, listing=selected, scope=OWNER)
    following = continuation(page[-1], selected.sort) if len(page) == limit else None
    return DocumentPage(page, total, chunks, following, await app.pending_vectors(category=category, scope=OWNER))


async def _document(app: App, document_id: str) -> DocumentResult:
    return DocumentResult(*await app.document(document_id, scope=OWNER))


async def _regulations(app: App, as_of: str | None = None) -> RegulationList:
    regulations = await app.regulations.regulations(scope=OWNER, as_of=as_of)
    return RegulationList(regulations, not regulations and (await app.counts(scope=OWNER))[0] == 0)


async def _provision(app: App, reference: str, as_of: str | None = None) -> ShownProvision:
    return await app.regulations.show(reference, scope=OWNER, as_of=as_of)


async def _citations(app: App, regulation: str | None, to: str | None = None, as_of: str | None = None) -> CitationList:
    return CitationList(await app.regulations.citations(regulation, to=to, scope=OWNER, as_of=as_of))


async def _verify(app: App, text: str, regulation: str | None, as_of: str | None = None) -> Verification:
    return await app.regulations.verify(text, regulation, scope=OWNER, as_of=as_of)


async def _regulation_diff(app: App, regulation: str, before: str, after: str) -> RegulationDifferences:
    return RegulationDifferences([await app.regulations.diff(regulation, before, after, scope=OWNER)])


async def _stale(app: App, regulation: str | None, as_of: str | None = None) -> StaleCitations:
    return StaleCitations(await app.regulations.stale(regulation, scope=OWNER, as_of=as_of))


async def _lexicon(app: App) -> OwnEntries:
    return OwnEntries(await app.lexicon.entries())


OPERATIONS: Mapping[str, Callable[..., Coroutine[Any, Any, ReadingResult]]] = {
    "ask": _ask,
    "search": _search,
    "documents": _documents,
    "document": _document,
    "regulations": _regulations,
    "provision": _provision,
    "citations": _citations,
    "verify": _verify,
    "regulation_diff": _regulation_diff,
    "stale": _stale,
    "lexicon": _lexicon,
}
"""The operations by their names in the socket protocol."""


async def check_categories(app: App, categories: Sequence[str] | None) -> None:
    """Raise `InvalidInput` for a path that is not in the active tree; the message names similar ones."""
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
    similar = difflib.get_close_matches(path.casefold(), folded, NEAREST, cutoff=0.5)
    last_name = path.casefold().rpartition("/")[2]
    similar += [name for name in folded if name.rpartition("/")[2] == last_name and name not in similar]
    if similar:
        return f"Nearest: {', '.join(folded[name] for name in similar[:NEAREST])}."
    return "List them with: dtrag taxonomy tree"
