"""`/overview`: what the web page shows before the first question."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.access.visible_tree import TopBranch, top_branches
from dtrag.core.documents import DocumentSummary
from dtrag.core.taxonomy.tree import UNCLASSIFIED
from dtrag.delivery.api.dependencies import Service, app_of, service_of
from dtrag.delivery.api.permissions import BROWSE, caller_of
from dtrag.delivery.api.routes.health import embedder_check
from dtrag.delivery.api.routing import ReasonStatements, failures
from dtrag.jobs.queue import sees_all
from dtrag.jobs.uploads import INGEST

router = APIRouter(tags=["documents"])

MOST_BRANCHES = 8
MOST_NEWEST = 5
MOST_EXAMPLES = 12
READ = 60
"""Newest documents from whose titles examples are made: several editions of a regulation have one title."""

MAX_TITLE = 60
"""Characters of a title that a question repeats; longer ones are sentences or file names."""


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


Step = Literal["documents", "categories", "question", "access"]


class Setup(BaseModel):
    """What a new service lacks until a second person can ask, for administrators of the whole tree."""

    missing: list[Step] = Field(
        description="Steps that are not done: documents (that can be searched), categories (with documents), question "
        "(answered with a source; only where all traces are kept), access (for another person)."
    )
    reading: int = Field(description="Uploads that wait in the background or are being read.")
    failed: int = Field(description="Uploads that failed in the background.")
    unplaced: int = Field(description="Documents without a category.")
    waiting: int = Field(description="Items that wait for a review.")
    questions: int = Field(description="The newest answers that were recorded, at most 100.")
    keys: int = Field(description="Valid keys.")
    words_only: ReasonStatements = Field(description="Why search finds by words only, unless that is set; else [].")


class Overview(BaseModel):
    """What you may ask about."""

    greeting: str = Field(description="The greeting of the settings; empty without one.")
    documents: int = Field(description="Number of documents that you may see.")
    branches: list[TopBranch] = Field(description="Your topmost branches with documents, the largest first.")
    more_branches: int = Field(description="Number of such branches that are not listed.")
    newest: list[NewDocument] = Field(description="The newest documents, the newest first; one for each title.")
    examples: list[str] = Field(
        description="Example questions: those of the settings, or made from titles of the newest documents."
    )
    setup: Setup | None = Field(
        description="For administrators of the whole tree, until all steps are done; null for everybody else."
    )


@router.get("/overview", responses=failures(403, 503), dependencies=BROWSE)
async def overview(request: Request) -> Overview:
    """What you may ask about: branches, the newest documents, and example questions. No question is computed."""
    app, caller, service = app_of(request), caller_of(request), service_of(request)
    access, presentation = caller.access, service.presentation
    active = await app.taxonomy.tree()
    scope, counts = access.resolved(active), await app.taxonomy.counts()
    branches = top_branches(active, scope, counts)
    by_title: dict[str, DocumentSummary] = {}
    for document in await app.documents(READ, scope=access):
        by_title.setdefault(document.title, document)
    newest = list(by_title.values())
    request.state.subjects = [document.document_id for document in newest[:MOST_NEWEST]]
    return Overview(
        greeting=presentation.greeting,
        documents=sum(number for node, number in counts.items() if scope.nodes is None or node in scope.nodes),
        branches=branches[:MOST_BRANCHES],
        more_branches=max(0, len(branches) - MOST_BRANCHES),
        newest=[NewDocument.of(document) for document in newest[:MOST_NEWEST]],
        examples=list(presentation.examples) or example_questions(newest, MOST_EXAMPLES),
        setup=await _setup(service, caller, counts) if sees_all(caller) else None,
    )


async def _setup(service: Service, caller: Caller, counts: Mapping[int, int]) -> Setup | None:
    """What is not done yet; None if nothing. `counts`: node id -> number of documents."""
    app, now = service.app, datetime.datetime.now(datetime.UTC)
    _, passages = await app.index.counts(EVERYTHING)
    unplaced = counts.get(UNCLASSIFIED, 0)
    traces, answered = await app.traces.outcomes()
    keys = sum(key.state(now) == "valid" for key in await app.keys.every())
    done: dict[Step, bool] = {
        "documents": passages > 0,
        "categories": sum(counts.values()) > unplaced,
        "question": answered > 0 or app.traces.level != "all",
        "access": keys > 1 or app.public is not None or app.sign_in is not None,
    }
    if all(done.values()):
        return None
    uploads = [count for count in await app.jobs.counts() if count.kind == INGEST]
    check, is_lacking = embedder_check(service), app.embedder is None and service.settings.embedder != "none"
    return Setup(
        missing=[step for step, is_done in done.items() if not is_done],
        reading=sum(count.jobs for count in uploads if count.state != "failed"),
        failed=sum(count.jobs for count in uploads if count.state == "failed"),
        unplaced=unplaced,
        waiting=(await app.review.waiting(1, caller=caller))[1],
        questions=traces,
        keys=keys,
        words_only=check.reason_statements if is_lacking or check.status != "healthy" else (),
    )


def example_questions(documents: Iterable[DocumentSummary], limit: int) -> list[str]:
    """At most `limit` questions, each in the language of its document, in the order of the documents."""
    return [_about(document) for document in documents if 0 < len(document.title) <= MAX_TITLE][:limit]


def _about(document: DocumentSummary) -> str:
    """A question that the document answers if anything does: the first article of a regulation states its purpose."""
    title = document.title
    if document.metadata.get("kind") == "regulation":
        return f"{title}의 목적은 무엇인가요?"
    if document.language == "ko":
        return f"‘{title}’에는 어떤 내용이 있나요?"
    return f"What does “{title}” say?"
