"""Example questions made from titles of documents: only those that the service itself answers with confidence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from dtrag.app import App
from dtrag.core.access.scope import Access, Scope
from dtrag.core.documents import DocumentSummary, SearchResult
from dtrag.errors import DtragError

_LOG = logging.getLogger(__name__)

MOST = 12
"""Questions for a caller; the page shows six of them, those in its language first."""
MAX_TITLE = 60
"""Characters of a title or heading that a question repeats; longer ones are sentences or file names."""
CHECK_S = 10.0
"""Seconds after which no further question is checked."""
WAIT_S = 2.0
"""Seconds that a caller waits for a check, None for its end; then those come that are checked so far."""
MOST_CHECKS = 64


class _Check(NamedTuple):
    answered: list[str]
    task: asyncio.Task[None]


class ExampleQuestions:
    """The questions of each scope and state of the index are checked once, one scope at a time, without models."""

    def __init__(self, wait_s: float | None = WAIT_S) -> None:
        self._wait_s = wait_s
        self._checks: dict[tuple[Scope, tuple[int, int]], _Check] = {}
        self._turn = asyncio.Lock()

    async def of(self, app: App, documents: Sequence[DocumentSummary], access: Access) -> list[str]:
        """At most `MOST` questions, each in the language of its document, in the order of the documents."""
        snapshot = await app.index.snapshot()
        key = access.resolved(snapshot.taxonomy), snapshot.version
        if key not in self._checks:
            if len(self._checks) == MOST_CHECKS:
                self._checks.pop(next(iter(self._checks))).task.cancel()
            answered: list[str] = []
            self._checks[key] = _Check(answered, asyncio.create_task(self._check(app, documents, access, answered)))
        check = self._checks[key]
        await asyncio.wait({check.task}, timeout=self._wait_s)
        return list(check.answered)

    async def close(self) -> None:
        """End the checks."""
        tasks = [check.task for check in self._checks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _check(self, app: App, documents: Sequence[DocumentSummary], access: Access, answered: list[str]) -> None:
        try:
            async with self._turn, asyncio.timeout(CHECK_S):
                for document in documents:
                    if 0 < len(document.title) <= MAX_TITLE and (question := await _answered(app, document, access)):
                        answered.append(question)
                    if len(answered) == MOST:
                        return
        except TimeoutError:
            _LOG.info("%s example questions were checked in %s s", len(answered), CHECK_S)
        except DtragError as error:
            _LOG.warning("example questions could not be checked: %s", error)


async def _answered(app: App, document: DocumentSummary, access: Access) -> str | None:
    """A question about the document that is answered: about all of it, or else about what is nearest to that."""
    pipeline, question = app.pipeline.unrecorded(), _about(document)
    answer = await pipeline.execute(question, scope=access, models=False)
    if answer.decision == "answer":
        return question
    own = [each for each in answer.retrieved_chunks if each.metadata.get("document_id") == document.document_id]
    if heading := next(filter(None, map(_heading, own)), None):
        question = _about(document, heading)
        if (await pipeline.execute(question, scope=access, models=False)).decision == "answer":
            return question
    return None


def _heading(passage: SearchResult) -> str | None:
    heading = str(passage.metadata.get("article_title") or (passage.breadcrumb or ("",))[-1])
    return heading if 0 < len(heading) <= MAX_TITLE and heading != passage.title else None


def _about(document: DocumentSummary, heading: str = "") -> str:
    """The first article of a regulation states its purpose."""
    title = document.title
    if heading:
        korean = f"{title}에서 ‘{heading}’에 관해 정한 내용은 무엇인가요?"
        return korean if document.language == "ko" else f"What does “{title}” say about “{heading}”?"
    if document.metadata.get("kind") == "regulation":
        return f"{title}의 목적은 무엇인가요?"
    return f"‘{title}’에는 어떤 내용이 있나요?" if document.language == "ko" else f"What does “{title}” say?"
