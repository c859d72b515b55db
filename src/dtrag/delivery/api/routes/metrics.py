"""`GET /metrics`: metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.permissions import READ_WHOLE_TREE
from dtrag.delivery.api.prometheus import CONTENT_TYPE
from dtrag.delivery.api.schemas.errors import failures

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={**failures(403), 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=READ_WHOLE_TREE,
)
async def metrics(request: Request) -> Response:
    """Counts and times since the start of this process, in the text format of Prometheus; no content."""
    service = service_of(request)
    await service.measure_cases()
    await service.measure_vectors()
    return Response(service.telemetry.exposition(), headers={"Content-Type": CONTENT_TYPE})
