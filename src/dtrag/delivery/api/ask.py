"""`POST /ask`: an answer with its citations."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.filter_policy import refuse_bypass
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.schemas.common import AskRequest, AskResponse
from dtrag.delivery.api.schemas.errors import QUESTION_FAILURES

router = APIRouter(route_class=JsonRoute, tags=["ask"])


@router.post("/ask", responses=QUESTION_FAILURES, dependencies=[Depends(needs("read"))])
async def ask(request: Request, asked: AskRequest) -> AskResponse:
    """The answer with citations, or that the documents do not answer."""
    caller = caller_of(request)
    await refuse_bypass(request, asked.filters, caller)
    answering = app_of(request).ask(asked.question, asked.filters, scope=caller.access, owner=caller.owner)
    answer = await until_gone(request, service_of(request).in_flight, answering)
    add_subjects(request, (citation.document_id for citation in answer.citations))
    return AskResponse.model_validate(answer)
