"""`CBRSystem`: the case memory for code without `await`, by the names that the acceptance texts use."""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from dtrag import current_app
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.adapters.sqlite.connection import connect as connect_file
from dtrag.app import App
from dtrag.assembly import open_stores
from dtrag.cases import case_input
from dtrag.cases.memory import MAX_EXPORTED
from dtrag.cases.suggesting import QuestionVectors, Suggester
from dtrag.cases.views import CaseExport
from dtrag.concurrency import LoopThread
from dtrag.core.access.scope import EVERYTHING, PUBLISHED
from dtrag.core.cases.case import (
    DEFAULT_QUALITY,
    Case,
    CaseChange,
    CaseLog,
    CaseQuery,
    SimilarityMethod,
    Vote,
)
from dtrag.core.cases.index import cosine, question_hash, similarity
from dtrag.core.cases.requests import (
    CaseSuggestion,
    CBRCaseResponse,
    CBRQualityUpdateRequest,
    CBRUpdateRequest,
    FeedbackRequest,
    SuggestionRequest,
    category,
    content,
    identifier,
    question,
)
from dtrag.core.cases.statistics import Readiness
from dtrag.core.response import plain
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import Analyzer
from dtrag.errors import Conflict, InvalidInput, NoActiveApp, NotFound
from dtrag.ports import CaseStore, Embedder, Index
from dtrag.ports import similarity as share_of
from dtrag.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Memory:
    """A store with what its users need; `index` knows the category tree, where there is one."""

    store: CaseStore
    suggester: Suggester
    keeps_text: bool
    index: Index | None = None

    @property
    def vectors(self) -> QuestionVectors:
        """The vectors of questions."""
        return self.suggester.vectors

    async def node_of(self, path: CategoryPath) -> int | None:
        """The node of the category."""
        return (await self.index.snapshot()).taxonomy.find(path) if self.index is not None else None


@asynccontextmanager
async def _opened(folder: Path | None, app: App | None, embedder: Embedder | None) -> AsyncIterator[_Memory]:
    """The memory in the folder, of the open app, or of the settings."""
    settings = app.settings if app is not None else Settings.load()
    vectors = QuestionVectors(embedder or (app.embedder if app is not None else None))
    async with _store(folder or settings.cbr_data_dir, settings) as (store, index):
        suggester = Suggester(store, vectors)
        try:
            yield _Memory(store, suggester, settings.cbr_text != "off", index)
        finally:
            await suggester.close()


@asynccontextmanager
async def _store(folder: Path | None, settings: Settings) -> AsyncIterator[tuple[CaseStore, Index | None]]:
    if folder is not None:
        file = SqliteCases(folder, cache_seconds=settings.cbr_cache_ttl)
        try:
            yield file, None
        finally:
            await file.close()
    else:  # connections of its own, since those of an open app belong to its event loop
        async with connect(settings) as database:
            stores = open_stores(settings, database, Analyzer())
            yield stores.cases, stores.index
            await stores.index.close()


def _open_app() -> App | None:
    with suppress(NoActiveApp):
        app = current_app.active()
        return app if isinstance(app, App) else None
    return None


class CBRSystem:
    """The case memory, with the whole tree as its scope.

    It is the SQLite file in `data_dir`; without it that in the folder `CBR_DATA_DIR`; without both the memory of the
    app that is open in this process, or in the database that the settings name. `embedder` compares meanings
    (`SEMANTIC`); cases that are added without one are compared by words. Close it with `close()`, or use it with
    `with`. Any thread may call it. Raises `DatabaseUnavailable`.
    """

    def __init__(self, data_dir: str | Path | None = None, *, embedder: Embedder | None = None) -> None:
        folder = Path(data_dir).expanduser().absolute() if data_dir is not None else None
        app = _open_app()
        self._thread: LoopThread[_Memory] = LoopThread(
            lambda: _opened(folder, app, embedder),
            name="dtrag-cbr",
            reopen="This CBRSystem is closed. Make another one.",
        )
        self._finalizer = weakref.finalize(self, self._thread.close)
        self._connection: sqlite3.Connection | None = None
        self._connecting = threading.Lock()

    def close(self) -> None:
        """Close it; may be repeated."""
        with self._connecting:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
        self._finalizer()

    def __enter__(self) -> CBRSystem:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, call: Callable[[_Memory], Coroutine[Any, Any, T]]) -> T:
        return self._thread.run(call)

    def add_case(self, case: Mapping[str, Any], case_id: str | None = None) -> str:
        """Store a case: `query`, `category_path` and `content`; optionally `quality_score`, `metadata`, `case_id`.

        Returns its id. Raises `InvalidInput`, and `Conflict` when the id is in use.
        """
        unknown = set(case) - {"query", "category_path", "content", "quality_score", "metadata", "case_id"}
        if unknown:
            raise InvalidInput(f"A case has no field {sorted(unknown)[0]!r}.")
        path, query = CategoryPath.parse(category(case.get("category_path"))), question(case.get("query"))
        key, now = case_id or case.get("case_id") or str(uuid.uuid4()), datetime.now(UTC)
        stored = Case(
            case_id=case_input.new_case_id(identifier("case_id", key)),
            query=query,
            query_hash=question_hash(query),
            category_path=path.names,
            content=content(case.get("content")),
            quality_score=case_input.quality(case.get("quality_score", DEFAULT_QUALITY)),
            metadata=case_input.metadata(case.get("metadata") or {}),
            asked_in=PUBLISHED,
            created_at=now,
            updated_at=now,
        )

        async def add(memory: _Memory) -> bool:
            node_id, vector = await memory.node_of(path), await memory.vectors.of(query)
            return await memory.store.add(replace(stored, node_id=node_id, vector=vector))

        if not self._run(add):
            raise Conflict(f"There is a case {stored.case_id!r} already. Change it, or choose another case_id.")
        return stored.case_id

    def get_case_by_id(self, case_id: str) -> CBRCaseResponse | None:
        """The case, or None."""
        case = self._run(lambda memory: memory.store.get(case_id, EVERYTHING))
        return CBRCaseResponse.of(case) if case is not None else None

    def update_case(self, case_id: str, request: CBRUpdateRequest | CBRQualityUpdateRequest) -> CBRCaseResponse:
        """Replace the given fields; the case after it. Raises `InvalidInput` without any, and `NotFound`."""
        values = {name: value for name, value in request.dict().items() if value is not None}
        if not values:
            raise InvalidInput("There is nothing to change. Give at least one field a value.")
        if "metadata" in values:
            values["metadata"] = case_input.metadata(values["metadata"])

        async def change(memory: _Memory) -> tuple[Case, Case] | None:
            if "query" in values:
                values["query_hash"] = question_hash(values["query"])
                values["vector"] = await memory.vectors.of(values["query"])
            if "category_path" in values:
                path = CategoryPath.parse(values["category_path"])
                values.update(category_path=path.names, node_id=await memory.node_of(path))
            return await memory.store.change(case_id, CaseChange(**values), datetime.now(UTC), EVERYTHING)

        changed = self._run(change)
        if changed is None:
            raise _not_found(case_id)
        return CBRCaseResponse.of(changed[1])

    def delete_case(self, case_id: str) -> bool:
        """Delete the case with its votes and the interactions that name only it; False when there is none."""
        return self._run(lambda memory: memory.store.delete(case_id, EVERYTHING))

    def suggest_cases(self, request: SuggestionRequest) -> tuple[list[CaseSuggestion], float]:
        """The most similar cases, best first, and the milliseconds that it took. The interaction is stored.

        `SEMANTIC` is combined with the similarity of words; without an embedder for the language of the question only
        words are compared (`similarity_method` of a suggestion is the one that was used). Suggesting is no use.
        """
        suggestions, _, milliseconds = self.suggest_with_log(request)
        return suggestions, milliseconds

    def suggest_with_log(self, request: SuggestionRequest) -> tuple[list[CaseSuggestion], str, float]:
        """As `suggest_cases`, with the id of the interaction, which feedback names."""
        started, path = time.perf_counter(), tuple(request.category_path) if request.category_path else None
        query = CaseQuery(
            text=request.query,
            limit=request.k,
            method=request.similarity_method,
            category_path=path,
            min_quality=request.min_quality_score,
        )
        log = CaseLog(log_id=str(uuid.uuid4()), timestamp=datetime.now(UTC), query="", category_path=path or ())

        async def suggest(memory: _Memory) -> tuple[list[CaseSuggestion], float]:
            nearest = await memory.suggester.nearest(query, EVERYTHING)
            milliseconds = (time.perf_counter() - started) * 1_000
            await memory.store.add_log(
                replace(
                    log,
                    query=request.query if memory.keeps_text else "",
                    query_hash=question_hash(request.query),
                    suggested_case_ids=tuple(case.case_id for case, _ in nearest.cases),
                    execution_time_ms=round(milliseconds, 3),
                    similarity_method=nearest.method.value,
                )
            )
            suggestions = [
                CaseSuggestion.of(case, score, nearest.method, include_metadata=request.include_metadata)
                for case, score in nearest.cases
            ]
            return suggestions, milliseconds

        suggestions, milliseconds = self._run(suggest)
        return suggestions, log.log_id, milliseconds

    def update_case_feedback(self, request: FeedbackRequest) -> CBRCaseResponse:
        """Count a vote; the case after it. The same vote again changes nothing. Raises `NotFound` for an unknown case.

        An unknown `log_id` is accepted: the vote becomes an interaction of its own.
        """
        vote = Vote(
            log_id=request.log_id,
            case_id=request.case_id,
            feedback=request.feedback_type,
            success=bool(request.success),
            voter="",
            at=datetime.now(UTC),
        )
        case = self._run(lambda memory: memory.store.vote(vote, EVERYTHING))
        if case is None:
            raise _not_found(request.case_id)
        return CBRCaseResponse.of(case)

    def get_logs(self, limit: int = 100, *, success_only: bool = False) -> list[dict[str, Any]]:
        """The newest interactions, newest first."""
        logs = self._run(lambda memory: memory.store.logs(EVERYTHING, limit, success_only=success_only))
        return [plain(log) for log in logs]

    def get_stats(self) -> dict[str, Any]:
        """Figures over all cases and interactions, and whether they suffice for the neural selector."""
        statistics = self._run(lambda memory: memory.store.statistics(EVERYTHING))
        return {**plain(statistics), "neural_selector_ready": Readiness.of(statistics).ready}

    def export(self, limit: int = 10_000) -> dict[str, Any]:
        """Up to `limit` cases and as many of the newest interactions as training data, as `GET /cbr/export`."""
        if not 1 <= limit <= MAX_EXPORTED:
            raise InvalidInput(f"limit must be from 1 to {MAX_EXPORTED:,}.")

        async def read(memory: _Memory) -> CaseExport:
            cases = await memory.store.page(EVERYTHING, limit + 1)
            logs = await memory.store.logs(EVERYTHING, limit + 1)
            statistics = await memory.store.statistics(EVERYTHING)
            return CaseExport.of(cases, logs, limit, statistics)

        exported: dict[str, Any] = plain(self._run(read))
        return exported

    def _calculate_similarity(self, query1: str, query2: str, method: SimilarityMethod) -> float:
        """How alike two questions are: by words, or for `SEMANTIC` by their embeddings alone."""
        if SimilarityMethod(method) is not SimilarityMethod.SEMANTIC:
            return similarity(query1, query2, SimilarityMethod(method))

        async def compared(memory: _Memory) -> float | None:
            first, second = await memory.vectors.of(query1), await memory.vectors.of(query2)
            if first is None or second is None:
                return None
            return share_of(memory.vectors.model(query1), {"": cosine(first, second)})[""]

        meaning = self._run(compared)
        if meaning is None:
            raise InvalidInput(
                "The similarity `semantic` needs an embedder for the language of both texts: CBRSystem(embedder=…)."
            )
        return meaning

    def _get_connection(self) -> sqlite3.Connection:
        """A connection of this object to the SQLite file, in which every statement commits unless it is in a `BEGIN`.

        Changes that are made with it are seen by the next suggestion. Raises `InvalidInput` on PostgreSQL.
        """

        async def store_of(memory: _Memory) -> CaseStore:
            return memory.store

        store = self._run(store_of)
        if not isinstance(store, SqliteCases):
            raise InvalidInput("This case memory is in PostgreSQL, not in an SQLite file. Give CBRSystem a data_dir.")
        with self._connecting:
            if self._connection is None:
                self._connection = connect_file(store.folder)
                weakref.finalize(self, self._connection.close)
            return self._connection


def _not_found(case_id: str) -> NotFound:
    return NotFound(f"There is no case {case_id[:60]!r}. Add it first with add_case.")
