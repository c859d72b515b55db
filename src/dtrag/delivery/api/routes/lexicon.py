"""`/lexicon`: the own entries of the lexicon, for administrators of the whole tree."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.regulations.korean.own_entries import MAX_ENTRIES, MAX_FORMS, MAX_LENGTH, MAX_OFFICIAL, MIN_LENGTH

router = APIRouter(route_class=JsonRoute, tags=["lexicon"])
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


@router.get("/lexicon", responses=failures(403, 503), dependencies=ADMIN_WHOLE_TREE)
async def entries(request: Request) -> EntryList:
    """The own entries, by number; the built-in ones are shown by `dtrag lexicon list`."""
    return EntryList(entries=await app_of(request).lexicon.entries())


@router.post(
    "/lexicon",
    status_code=201,
    responses=failures(400, 403, 409, 413, 415, 422, 503, 507),
    dependencies=ADMIN_WHOLE_TREE,
)
async def add(request: Request, body: AddEntriesBody) -> EntryList:
    """Add all entries, or none if one is wrong; returns the new ones. They apply to the next question."""
    words = [(entry.spoken, entry.official) for entry in body.entries]
    added = await app_of(request).lexicon.add_all(words, by=caller_of(request))
    add_subjects(request, [str(entry.number) for entry in added])
    return EntryList(entries=added)


@router.delete(
    "/lexicon/{number}", status_code=204, responses=failures(403, 404, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def remove(
    request: Request, number: Annotated[int, Path(ge=1, le=MAX_NUMBER, description="The number of the entry.")]
) -> Response:
    """Remove an entry. This applies to the next question."""
    add_subjects(request, [str(number)])
    await app_of(request).lexicon.remove(number, by=caller_of(request))
    return Response(status_code=204)
