"""`/conversations`: what a caller has asked and been answered, conversation by conversation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from dtrag.core.conversation import Conversation, Turn
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.schemas.errors import failures
from dtrag.pipeline.conversations import MAX_LISTED

router = APIRouter(tags=["conversations"])


class ConversationShape(BaseModel):
    """A conversation without its turns."""

    conversation_id: str = Field(description="Its id; send it with the next question to go on.")
    created_at: str = Field(description="When it began, ISO 8601 in UTC.")
    updated_at: str = Field(description="When its last question was answered.")
    turns: int = Field(description="How many questions were asked in it; the last 100 are kept.")
    question: str = Field(description="The first question that is kept.")

    @classmethod
    def of(cls, about: Conversation) -> ConversationShape:
        """In the shape of the answer."""
        return cls(
            conversation_id=about.conversation_id,
            created_at=about.created_at.isoformat(),
            updated_at=about.updated_at.isoformat(),
            turns=about.turns,
            question=about.question,
        )


class TurnShape(BaseModel):
    """A question with its answer."""

    number: int = Field(description="Counts from 1 in the conversation.")
    question: str = Field(description="As you asked it.")
    answer: str = Field(description="As you were answered; empty when it is withheld.")
    withheld: bool = Field(description="Whether the answer rests on documents that you may not see now.")
    created_at: str = Field(description="When it was answered.")

    @classmethod
    def of(cls, turn: Turn) -> TurnShape:
        """In the shape of the answer."""
        return cls(
            number=turn.number,
            question=turn.question,
            answer=turn.answer,
            withheld=turn.withheld,
            created_at=turn.created_at.isoformat(),
        )


class ConversationList(BaseModel):
    """A page of your conversations, the newest first."""

    conversations: list[ConversationShape] = Field(description="The conversations of this page.")
    total: int = Field(description="How many there are in all.")
    limit: int = Field(description="The page's size as asked for.")
    offset: int = Field(description="Conversations before this page.")


class ConversationResponse(BaseModel):
    """A conversation with its turns."""

    conversation: ConversationShape = Field(description="When it was, and how long it is.")
    messages: list[TurnShape] = Field(description="The questions that are kept with their answers, oldest first.")


@router.get("/conversations", responses=failures(403, 422, 503), dependencies=[Depends(needs("read"))])
async def conversations(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="How many at most.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000, description="How many to pass over.")] = 0,
) -> ConversationList:
    """Your conversations, the newest first."""
    found, total = await app_of(request).conversations.every(limit, offset, caller=caller_of(request))
    shown = [ConversationShape.of(about) for about in found]
    return ConversationList(conversations=shown, total=total, limit=limit, offset=offset)


@router.get(
    "/conversations/{conversation_id}", responses=failures(403, 404, 422, 503), dependencies=[Depends(needs("read"))]
)
async def conversation(request: Request, conversation_id: str) -> ConversationResponse:
    """A conversation of yours. Answers that rest on documents which you may not see now are withheld."""
    about, turns = await app_of(request).conversations.get(conversation_id, caller=caller_of(request))
    add_subjects(request, [about.conversation_id])
    return ConversationResponse(
        conversation=ConversationShape.of(about), messages=[TurnShape.of(turn) for turn in turns]
    )


@router.delete(
    "/conversations/{conversation_id}",
    status_code=204,
    responses=failures(403, 404, 422, 503),
    dependencies=[Depends(needs("read"))],
)
async def delete_conversation(request: Request, conversation_id: str) -> Response:
    """Delete a conversation of yours with everything that is kept of it."""
    await app_of(request).conversations.delete(conversation_id, caller=caller_of(request))
    add_subjects(request, [conversation_id])
    return Response(status_code=204)
