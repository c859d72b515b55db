"""`/regulations`: Korean regulations, their articles and citations; `/lexicon`: own entries of the lexicon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from dtrag.core.documents import SearchResult
from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.core.provisions import (
    ProvisionCitation,
    RegulationOutline,
    RegulationSummary,
    ShownProvision,
    WholeRegulation,
    listed,
)
from dtrag.core.regulation_changes import RegulationDiff, StaleCitation
from dtrag.core.verification import Verification
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, BROWSE, caller_of
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routing import QUESTION_FAILURES, AsOf, JsonRoute, Offset, Page, StrictBody, Text, failures
from dtrag.regulations.korean.citations import Kind
from dtrag.regulations.korean.lexicon_entries import MAX_ENTRIES, MAX_FORMS, MAX_LENGTH, MAX_OFFICIAL, MIN_LENGTH
from dtrag.regulations.korean.verification.check import MAX_TEXT
from dtrag.retrieval.request import MAX_QUERY, MAX_TOP_K

T = TypeVar("T")
MAX_LIMIT = 1_000
MAX_REFERENCE = 500
"""Characters of a reference or name; names in books have at most 60."""
AsOfDay = Annotated[
    str | None,
    Query(
        max_length=40,
        json_schema_extra={"format": "date"},
        description="Regulations as they were valid on this day, such as 2024-03-01; without it today's.",
    ),
]
OnlyRegulation = Annotated[
    str | None,
    Query(max_length=MAX_REFERENCE, description="Name or code of the only regulation to read; all if absent."),
]
OneRegulation = Annotated[
    str, Query(max_length=MAX_REFERENCE, description="Name or code of the regulation.", examples=["학칙"])
]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")]

router = APIRouter(route_class=JsonRoute, tags=["regulations"])


class RegulationSearchBody(StrictBody):
    """A search for articles."""

    query: str = Field(
        max_length=MAX_QUERY, description="Words or a question; a blank query has no results.", examples=["휴학 기간"]
    )
    top_k: int | None = Field(
        None,
        ge=1,
        le=MAX_TOP_K,
        description="Maximum number of articles; without it 5 to 20, by the form of the question.",
    )
    as_of: AsOf = None


class RegulationSearchResponse(BaseModel):
    """The best articles, each once."""

    results: list[SearchResult] = Field(
        description="The best passage of each article, best first; its metadata has regulation, article, code, kind."
    )


class VerificationBody(StrictBody):
    """A text whose citations are verified."""

    text: Text = Field(
        max_length=MAX_TEXT, description="Any text that cites regulations.", examples=["학칙 제21조에 따라 수여한다."]
    )
    regulation: Text | None = Field(
        None, max_length=500, description="Name or code of the regulation of references before any name."
    )
    as_of: AsOf = None


class RegulationPage(Page):
    """A page of the regulations, by name."""

    regulations: list[RegulationSummary] = Field(description="The regulations of this page.")


class CitationsResponse(Page):
    """A page of the citations of one regulation or of all, in the order of the text."""

    citations: list[ProvisionCitation] = Field(description="The citations of this page.")


class StaleResponse(Page):
    """A page of the citations that are older than what they cite."""

    stale: list[StaleCitation] = Field(description="The citations of this page.")


@router.get("/regulations", responses=failures(422, 503), dependencies=BROWSE)
async def regulations(
    request: Request,
    *,
    limit: Limit = 100,
    offset: Offset = 0,
    as_of: AsOfDay = None,
    name: Annotated[
        str,
        Query(
            max_length=MAX_REFERENCE,
            description="Only regulations with these letters in their name or code; blanks do not count.",
            examples=["휴학"],
        ),
    ] = "",
    order: Annotated[Literal["name", "code"], Query(description="By name, or by code as in the book.")] = "name",
) -> RegulationPage:
    """The Korean regulations that you may see, with their codes and numbers of provisions."""
    scope = caller_of(request).access
    readable = await _admitted(request, lambda: app_of(request).regulations.regulations(scope=scope, as_of=as_of))
    everything = listed(readable, containing=name, by_code=order == "code")
    page = everything[offset : offset + limit]
    request.state.subjects = [regulation.document_id for regulation in page]
    return RegulationPage(regulations=page, total=len(everything), limit=limit, offset=offset)


@router.get("/regulations/show", responses=failures(404, 422, 503), dependencies=BROWSE)
async def show(
    request: Request,
    reference: Annotated[
        str,
        Query(
            max_length=MAX_REFERENCE,
            description="Name or code of a regulation, and an article, appendix or 부칙.",
            examples=["학칙 제21조"],
        ),
    ],
    as_of: AsOfDay = None,
) -> ShownProvision:
    """One article, appendix or addendum with its whole text and its citations."""
    scope = caller_of(request).access
    shown = await _admitted(request, lambda: app_of(request).regulations.show(reference, scope=scope, as_of=as_of))
    request.state.subjects = [shown.document_id]
    return shown


@router.get("/regulations/text", responses=failures(404, 422, 503), dependencies=BROWSE)
async def text(request: Request, regulation: OneRegulation, as_of: AsOfDay = None) -> WholeRegulation:
    """The whole text of a regulation, provision by provision, with its citations, and its editions."""
    regulations, scope = app_of(request).regulations, caller_of(request).access
    read = await _admitted(request, lambda: regulations.text(regulation, scope=scope, as_of=as_of))
    add_subjects(request, dict.fromkeys([read.document_id, *(each.document_id for each in read.provisions)]))
    return read


@router.get("/regulations/outline", responses=failures(404, 422, 503), dependencies=BROWSE)
async def outline(request: Request, regulation: OneRegulation, as_of: AsOfDay = None) -> RegulationOutline:
    """The provisions of a regulation under their chapters and sections, and its editions."""
    regulations, scope = app_of(request).regulations, caller_of(request).access
    read = await _admitted(request, lambda: regulations.outline(regulation, scope=scope, as_of=as_of))
    request.state.subjects = [read.document_id]
    return read


@router.get("/regulations/citations", responses=failures(404, 422, 503), dependencies=BROWSE)
async def citations(
    request: Request,
    *,
    regulation: OnlyRegulation = None,
    to: Annotated[
        str | None,
        Query(
            max_length=MAX_REFERENCE,
            description="Only citations of this provision in others.",
            examples=["학칙 제21조"],
        ),
    ] = None,
    kind: Annotated[Kind | None, Query(description="Only citations of this kind.")] = None,
    as_of: AsOfDay = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> CitationsResponse:
    """The citations of articles, appendices and addenda, with the provisions that they mean."""
    collection, scope = app_of(request).regulations, caller_of(request).access

    async def read() -> tuple[list[RegulationSummary], list[ProvisionCitation]]:
        sources = await collection.regulations(regulation, scope=scope, as_of=as_of)
        return sources, await collection.citations(regulation, to=to, kind=kind, scope=scope, as_of=as_of)

    sources, cited = await _admitted(request, read)
    page = cited[offset : offset + limit]
    request.state.subjects = _sources_of(page, sources) if regulation is None else [sources[0].document_id]
    return CitationsResponse(citations=page, total=len(cited), limit=limit, offset=offset)


@router.get("/regulations/diff", responses=failures(404, 422, 503), dependencies=BROWSE)
async def diff(
    request: Request,
    regulation: Annotated[str, Query(max_length=MAX_REFERENCE, description="Name or code of the regulation.")],
    before: Annotated[str, Query(max_length=40, description="The first day.", examples=["2023-03-01"])],
    after: Annotated[str, Query(max_length=40, description="The second day.", examples=["2024-03-01"])],
) -> RegulationDiff:
    """What changed in a regulation between two days, provision by provision."""
    regulations, scope = app_of(request).regulations, caller_of(request).access
    compared = await _admitted(request, lambda: regulations.diff(regulation, before, after, scope=scope))
    request.state.subjects = list(compared.document_ids)
    return compared


@router.get("/regulations/stale", responses=failures(404, 422, 503), dependencies=BROWSE)
async def stale(
    request: Request,
    regulation: OnlyRegulation = None,
    as_of: AsOfDay = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> StaleResponse:
    """Citations of provisions that were amended after the citing provision, or repealed."""
    collection, scope = app_of(request).regulations, caller_of(request).access

    async def read() -> tuple[list[RegulationSummary], list[StaleCitation]]:
        sources = await collection.regulations(regulation, scope=scope, as_of=as_of)
        return sources, await collection.stale(regulation, scope=scope, as_of=as_of)

    sources, citations = await _admitted(request, read)
    page = citations[offset : offset + limit]
    request.state.subjects = _sources_of(page, sources) if regulation is None else [sources[0].document_id]
    return StaleResponse(stale=page, total=len(citations), limit=limit, offset=offset)


@router.post("/regulations/search", responses=QUESTION_FAILURES, dependencies=BROWSE)
async def search(request: Request, body: RegulationSearchBody) -> RegulationSearchResponse:
    """The best articles for a question, each once."""
    scope = caller_of(request).access
    regulations = app_of(request).regulations
    results = await _admitted(
        request, lambda: regulations.search(body.query, body.top_k, scope=scope, as_of=body.as_of)
    )
    add_subjects(request, (result.chunk_id.rpartition(":")[0] for result in results))
    return RegulationSearchResponse(results=list(results))


@router.post("/regulations/verify", responses=failures(400, 404, 413, 415, 422, 503), dependencies=BROWSE)
async def verify(request: Request, body: VerificationBody) -> Verification:
    """Whether what a text cites exists."""
    regulations, scope = app_of(request).regulations, caller_of(request).access
    verified = await _admitted(
        request, lambda: regulations.verify(body.text, body.regulation, scope=scope, as_of=body.as_of)
    )
    add_subjects(request, verified.document_ids)
    return verified


def _sources_of(
    citations: Sequence[ProvisionCitation | StaleCitation], regulations: Sequence[RegulationSummary]
) -> list[str]:
    """The documents of the regulations that cite, each once; the source of a citation is `규정명 제N조`."""
    by_name = {regulation.name: regulation.document_id for regulation in reversed(regulations)}
    documents: dict[str, None] = {}
    for source in dict.fromkeys(citation.source for citation in citations):
        words = source.split(" ")
        names = (" ".join(words[:count]) for count in range(len(words) - 1, 0, -1))
        documents |= dict.fromkeys(by_name[name] for name in names if name in by_name)
    return list(documents)


async def _admitted(request: Request, read: Callable[[], Awaitable[T]]) -> T:
    """The result of `read`, under the limit of concurrent searches; cancelled when the client disconnects.

    Raises the errors of `read`, and `Overloaded` when too many searches wait.
    """

    async def run() -> T:
        async with app_of(request).run.admission.search():
            return await read()

    return await until_gone(request, service_of(request).in_flight, run())


lexicon_router = APIRouter(route_class=JsonRoute, tags=["lexicon"], dependencies=ADMIN_WHOLE_TREE)
MAX_NUMBER = 2**31 - 1
Word = Annotated[str, Field(min_length=MIN_LENGTH, max_length=MAX_LENGTH)]


class NewEntry(StrictBody):
    """An entry to add."""

    spoken: list[Word] = Field(
        min_length=1,
        max_length=MAX_FORMS,
        description="Everyday forms of one or more word beginnings, such as `책을 잃어버`; verbs match in all forms.",
    )
    official: list[Word] = Field(
        min_length=1, max_length=MAX_OFFICIAL, description="The words of the regulations, the best one first."
    )


class AddEntriesBody(StrictBody):
    """Entries to add."""

    entries: list[NewEntry] = Field(
        min_length=1,
        max_length=MAX_ENTRIES,
        description="Those that exist already in the same form are left out; others with the same form are a 409.",
    )


class EntryList(BaseModel):
    """Own entries of the lexicon."""

    entries: list[LexiconEntry] = Field(description="The entries, by number.")


@lexicon_router.get("/lexicon", responses=failures(403, 503))
async def entries(request: Request) -> EntryList:
    """The own entries, by number; the built-in ones are shown by `dtrag lexicon list`."""
    return EntryList(entries=await app_of(request).lexicon.entries())


@lexicon_router.post("/lexicon", status_code=201, responses=failures(400, 403, 409, 413, 415, 422, 503, 507))
async def add(request: Request, body: AddEntriesBody) -> EntryList:
    """Add all entries, or none if one is wrong; returns the new ones. They apply to the next question."""
    words = [(entry.spoken, entry.official) for entry in body.entries]
    added = await app_of(request).lexicon.add_all(words, by=caller_of(request))
    add_subjects(request, [str(entry.number) for entry in added])
    return EntryList(entries=added)


@lexicon_router.delete("/lexicon/{number}", status_code=204, responses=failures(403, 404, 422, 503))
async def remove(
    request: Request, number: Annotated[int, Path(ge=1, le=MAX_NUMBER, description="The number of the entry.")]
) -> Response:
    """Remove an entry. This applies to the next question."""
    add_subjects(request, [str(number)])
    await app_of(request).lexicon.remove(number, by=caller_of(request))
    return Response(status_code=204)
