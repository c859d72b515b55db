"""`POST /search/neural`: past cases by meaning and words. 503 while its flag, 501 while the case memory is off."""

from __future__ import annotations

from fastapi import APIRouter, Request

from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import READ, caller_of
from dtrag.delivery.api.schemas.errors import QUESTION_FAILURES, failures
from dtrag.delivery.api.schemas.neural import NeuralRequest, NeuralResponse
from dtrag.errors import FeatureOff, NeuralSelectorOff
from dtrag.settings import flag

router = APIRouter(route_class=JsonRoute)
_FAILURES = {**QUESTION_FAILURES, **failures(501)}


@router.post("/search/neural", tags=["search"], responses=_FAILURES, dependencies=READ)
async def search(request: Request, body: NeuralRequest) -> NeuralResponse:
    """The cases whose questions are nearest, best first. Meaning counts from 1,000 interactions and 70 % success on."""
    if not flag("neural_case_selector"):
        raise NeuralSelectorOff
    app = app_of(request)
    if not app.cases.enabled:
        raise FeatureOff(feature="CBR system", variable="CBR_ENABLED")
    async with app.run.admission.search():
        found = await app.neural_selector.search(
            body.query, body.limit, body.category_path, body.mode, viewer=caller_of(request).access
        )
    add_subjects(request, (hit.case.case_id for hit in found.hits))
    return NeuralResponse.of(found)
