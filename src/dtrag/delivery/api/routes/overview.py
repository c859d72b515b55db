"""`/overview`: what the web page shows before the first question."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from dtrag.core.access.visible_tree import TopBranch, top_branches
from dtrag.core.documents import DocumentSummary
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import BROWSE, caller_of
from dtrag.delivery.api.routing import failures

router = APIRouter(tags=["documents"])

MOST_BRANCHES = 8
MOST_NEWEST = 5
READ = 60
"""Newest documents from whose titles examples are made: several editions of a regulation have one title."""


class NewDocument(BaseModel):
    """A document in the list of the newest."""

    document_id: str = Field(description="Its id.")
    title: str = Field(description="Its title.")
    taxonomy_path: tuple[str, ...] = Field(description="Its category, outermost name first; [] for none.")
    processed_at: str = Field(description="When it was indexed, ISO 8601 in UTC.")
    effective_from: str | None = Field(description="Of a dated edition the day from which it is valid; else null.")

    @classmethod
    def of(cls, document: DocumentSummary) -> NewDocument:
        """The entry of a document."""
        return cls(
            document_id=document.document_id,
            title=document.title,
            taxonomy_path=document.taxonomy_path,
            processed_at=document.processed_at,
            effective_from=document.metadata.get("effective_from"),
        )


class Overview(BaseModel):
    """What you may ask about."""

    greeting: str = Field(description="The greeting of the settings; empty without one.")
    documents: int = Field(description="Number of documents that you may see.")
    branches: list[TopBranch] = Field(description="Your topmost branches with documents, the largest first.")
    more_branches: int = Field(description="Number of such branches that are not listed.")
    newest: list[NewDocument] = Field(description="The newest documents, the newest first; one for each title.")
    examples: list[str] = Field(
        description="Example questions: those of the settings, or made from titles of the newest documents and "
        "answered with confidence."
    )


@router.get("/overview", responses=failures(403, 503), dependencies=BROWSE)
async def overview(request: Request) -> Overview:
    """What you may ask about: branches, the newest documents, and example questions.

    Without questions of the settings, those made from titles are answered once for each scope and state of the index,
    which may take two seconds; those that are not checked by then follow in a later reply.
    """
    app, access, service = app_of(request), caller_of(request).access, service_of(request)
    active = await app.taxonomy.tree()
    scope, counts = access.resolved(active), await app.taxonomy.counts()
    branches = top_branches(active, scope, counts)
    by_title: dict[str, DocumentSummary] = {}
    for document in await app.documents(READ, scope=access):
        by_title.setdefault(document.title, document)
    newest = list(by_title.values())
    request.state.subjects = [document.document_id for document in newest[:MOST_NEWEST]]
    examples = list(service.presentation.examples) or await service.examples.of(app, newest, access)
    return Overview(
        greeting=service.presentation.greeting,
        documents=sum(number for node, number in counts.items() if scope.nodes is None or node in scope.nodes),
        branches=branches[:MOST_BRANCHES],
        more_branches=max(0, len(branches) - MOST_BRANCHES),
        newest=[NewDocument.of(document) for document in newest[:MOST_NEWEST]],
        examples=examples,
    )
