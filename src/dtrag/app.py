"""`App`: dtrag on one database. The command line, the HTTP service and programs all call it; get one from `open()`."""

from __future__ import annotations

import asyncio
import functools
import time
import unicodedata
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack

from dtrag import current_app
from dtrag.adapters.answer_key import answer_seed, text_key
from dtrag.adapters.answer_signature import signed
from dtrag.adapters.embedders.factory import CachedEmbedder
from dtrag.adapters.postgres.connect import connect, connect_throwaway
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.web.fetch import TaxonomyService, WebFetcher
from dtrag.assembly import (
    JobTurns,
    choose_judge,
    choose_models,
    connect_source,
    fenced_stores,
    mcp_tools,
    named_sources,
    open_sign_in,
    open_stores,
    parser_process,
    pipeline_type,
    search_engine,
    sign_in_file,
)
from dtrag.cases.maintenance import CaseAuditor, Consolidation, LogExpiry, Reflection
from dtrag.cases.memory import CaseMemory
from dtrag.cases.retention import Retention
from dtrag.cases.reuse import Reuse
from dtrag.cases.review_cases import ReviewCases
from dtrag.cases.suggesting import NeuralSelector, QuestionVectors, Suggester
from dtrag.cases.weight_learning import WeightLearning
from dtrag.concurrency import Admission
from dtrag.core.access import confinement
from dtrag.core.access.api_key import LOCAL, Caller, Key, Session
from dtrag.core.access.grade_limits import UNLIMITED, Limits, Recipient
from dtrag.core.access.scope import Grant, Scope, SearchFilters, Viewer
from dtrag.core.access.sign_in import SignInFile
from dtrag.core.answers.passage_confidence import policy_of
from dtrag.core.cases.reuse_verdict import COMMITTED_PAIRS
from dtrag.core.document_listing import WHOLE_LIST, DocumentListing, DocumentTarget, file_path, select
from dtrag.core.documents import Answer, DocumentSummary, SearchMetrics, SearchResult, uuid_or_none
from dtrag.core.editions import parse_date
from dtrag.core.evaluation_run import EvaluationRun, Kind, RunRow
from dtrag.core.job import Job, Lease, NewJob
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.grades import Grades, TreeGrades
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.patterns import CHUNK_ID
from dtrag.core.version import __version__
from dtrag.destinations import LimitedModel, allows, embeds, limit_of
from dtrag.errors import Conflict, DtragError, Forbidden, InvalidInput, NotFound, SignInRefused, Unauthorized
from dtrag.evaluation.answers import AnswerMeasures, AnswerSet, evaluate_answers
from dtrag.evaluation.calibration import Calibrated, calibrate
from dtrag.evaluation.confidence_cases import Judged, MeasuredQuestion, cases
from dtrag.evaluation.judged_questions import set_of
from dtrag.governance.agents import Agents, budget
from dtrag.governance.api_keys import Keys, Sessions
from dtrag.governance.audit import Audit
from dtrag.governance.changed_settings import ChangedSettings
from dtrag.governance.evaluations import Evaluations
from dtrag.governance.public_access import OWNER, PublicAccess
from dtrag.governance.review import IN_REVIEW, Review
from dtrag.governance.sign_in import SignIn, SignInPreview, preview
from dtrag.governance.taxonomy import TaxonomyVersions
from dtrag.governance.visibility import DocumentAccess, DocumentTexts
from dtrag.ingestion.classify import Classifier, classify_enabled
from dtrag.ingestion.folders import FolderPlan, FolderSync, find_files
from dtrag.ingestion.imagine import IMAGINED, Imagination
from dtrag.ingestion.ingest import Ingestion, reindex
from dtrag.ingestion.sources import IngestReport, Progress, Source
from dtrag.ingestion.sync import SourcePlan, SourceSync
from dtrag.ingestion.vectors import VECTORS, VectorFiller
from dtrag.ingestion.write_guard import WriteGuard
from dtrag.jobs.queue import JobKind, Jobs, Running, sees_all
from dtrag.jobs.uploads import INGEST, Uploads, upload_job
from dtrag.personal_data import personal_data_of
from dtrag.pipeline.answer_feedback import FeedbackOnAnswers
from dtrag.pipeline.conversations import Conversations
from dtrag.pipeline.execution import AnswerOptions
from dtrag.pipeline.replay import Replays
from dtrag.pipeline.run_context import DebateEvent, Run
from dtrag.pipeline.state import PipelineRequest, PipelineResponse
from dtrag.pipeline.traces import Traces
from dtrag.ports import Connector, Embedder, ImaginedStore, Models, Parser, Reranker, Stores, check_identity
from dtrag.regulations.collection_reader import CollectionReader, IndexReading, read_ahead
from dtrag.regulations.korean import structure
from dtrag.regulations.lexicon import LexiconReader, OwnLexicon
from dtrag.regulations.service import Regulations
from dtrag.retrieval.request import CANDIDATES, SearchOptions
from dtrag.settings import Settings
from dtrag.tools.builtin import registry_of

MOST_LISTED = 10_000
"""Documents of one page of the list."""
Prune = Literal["all"] | bool
"""Whether documents of files that were deleted from a folder are removed; "all": also more than a third of them."""


@asynccontextmanager
async def open_app(
    settings: Settings, embedder: Embedder | None = None, *, standby: bool = False
) -> AsyncIterator[App]:
    """An `App` on the database that the settings name. Raises `DatabaseUnavailable`.

    `embedder` is that of the settings where it is already loaded. `standby`: a standby is accepted, of which the owner
    of the data reads a copy that may be late; nothing is recorded.
    """
    models = choose_models(settings, embedder)
    async with connect(settings, standby=standby) as database:
        if database.on_standby:
            settings = replace(settings, audit="off", traces="off", cbr_retain="never")
        async with App(settings, database, models) as app:
            if not database.on_standby:
                await app.recover()
                await app.audit.recover()
            await app.changed_settings.read()
            yield app


@asynccontextmanager
async def open_throwaway(
    settings: Settings, embedder: Embedder | None = None, *, case_folder: Path | None = None
) -> AsyncIterator[App]:
    """An `App` on a new database of the embedded server, dropped at the end: for evaluations.

    `embedder` overrides the one in the settings. Cases are in that database, or in the SQLite file of `case_folder`,
    never in that of the settings.
    """
    settings = replace(settings, cbr_data_dir=case_folder)
    models = choose_models(settings, embedder)
    async with connect_throwaway(settings) as database, App(settings, database, models) as app:
        yield app


class App:
    """Ingest, search and question answering on one database. Get one from `dtrag.open()`.

    Results are reranked when there is a `reranker`. `on_search` is called after every search, `on_debate` when a debate
    starts and ends. Every read takes a scope. Without one it is the whole tree, or inside a pipeline run, request or
    tool call the scope of that (core/access/confinement.py).
    """

    run: Run
    """What a run of the pipeline is made of; questions that start later use its replacement."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        models: Models,
        parser: Callable[[Settings, int], Parser] = parser_process,
    ):
        settings.check()
        self.settings = settings
        """Those in use: `changed_settings` replaces them. Read them when they are needed."""
        self.public: PublicAccess | None = None
        self.database = database
        self.grades = Grades.parse(settings.grades)
        limits = self.grade_limits = Limits.parse(settings.grade_limits, self.grades)
        stores = self._stores = open_stores(settings, database, models.analyzer, self._public_grant)
        self.embedder = models.embedder
        self.analyzer = models.analyzer
        self.reranker = models.reranker
        self.model, self.critic = (
            None if model is None else LimitedModel(model, limits, self.tree_grades)
            for model in (models.chat, models.critic)
        )
        self._parser = parser(settings, settings.max_file_mb)
        self._tool_parser = parser(settings, settings.max_upload_mb)
        self.on_search: Callable[[SearchMetrics], None] = lambda metrics: None
        self.on_debate: Callable[[DebateEvent], None] = lambda event: None
        self.index = stores.index
        self.texts = DocumentTexts(stores.index)
        self._index_settings = stores.index_settings
        self._writer = stores.writer
        self.evaluations = Evaluations(stores.evaluations)
        self.case_store = stores.cases
        self.judge = choose_judge(settings, self.model)
        self.personal_data = personal_data_of(settings)
        self.audit = Audit(stores.audit, settings.audit, spool=stores.audit_spool, personal_data=self.personal_data)
        self._open_ingestion(stores)
        self._query_embedder = CachedEmbedder(self.embedder) if self.embedder is not None else None
        self._suggester = Suggester(stores.cases, QuestionVectors(self._query_embedder))
        self._open_governance(stores)
        self._open_search(stores, models.reranker)
        self._open_pipeline(stores)
        self._open_kinds()
        self._use(settings)

    def _use(self, settings: Settings) -> None:
        """Replace the settings, and what is made of those that may be changed while the app is open."""
        self.settings = settings
        self.public = PublicAccess.of(settings, self._stores.public_spending)
        self.run = replace(
            self.run, debates=settings.debate, reads=settings.reader == "on", policy=policy_of(settings.decision)
        )

    def _public_grant(self) -> Grant | None:
        return None if self.public is None else self.public.grant

    def _public_run(self) -> Run:
        if self.public is None:  # closed since the request was admitted
            raise Unauthorized
        return self.public.restricted(self.run)

    def _open_ingestion(self, stores: Stores) -> None:
        self.classifier = Classifier(stores.placements, self.index, self.analyzer, self.embedder, grades=self.grades)
        self._ingestion = Ingestion(
            self._writer,
            self._parser,
            (structure.split,),
            self.analyzer,
            folders=stores.folders,
            classifier=self.classifier if classify_enabled(self.settings.classify) else None,
            max_passages=self.settings.max_passages,
            personal_data=self.personal_data,
        )
        self._folders = folders = FolderSync(
            stores.folders,
            self._writer,
            self._parser,
            analyzer=self.analyzer,
            record=self.audit.record,
            personal_data=self.personal_data,
        )
        self._source_sync = SourceSync(
            stores.sources,
            folders=folders,
            writer=self._writer,
            parser=self._parser,
            ingest=self.ingest_sources,
            keys=stores.keys,
            personal_data=self.personal_data,
        )
        self.jobs = Jobs(stores.jobs, self.audit.record, self._maker_of, at_once=self.settings.jobs_at_once)
        self.vectors = VectorFiller(stores.vectors, self.embedder, JobTurns(self.jobs, self._fenced), self._embeds_all)
        self.imagination = self._imagination(stores.imagined)

    def _open_governance(self, stores: Stores) -> None:
        record = self.audit.record
        self.keys = Keys(stores.keys, self.index, rate=self.settings.rate_per_minute, record=record)
        self.sign_in: SignIn | None = None
        self.sessions = Sessions(stores.sessions, self.keys, confirmed=self._confirmed)
        self.rate_limits = stores.rate_limits
        self.changed_settings = ChangedSettings(
            self.settings, stores.index_settings, stores.taxonomy, record, self._use
        )
        self.taxonomy = TaxonomyVersions(stores.taxonomy, record, grades=self.grades)
        self._lexicon_reader = LexiconReader()
        self.lexicon = OwnLexicon(stores.index_settings, self.index, record, self._lexicon_reader.remember)
        self.taxonomy_service = TaxonomyService.of(self.settings)
        self.visibility = DocumentAccess(self.index, stores.keys, stores.agents, self._public_grant)
        self.conversations = Conversations(
            stores.conversations,
            stores.sight,
            self.index,
            days=lambda: self.settings.conversation_days,
            record=record,
            grades=self.grades,
        )
        self.review = Review(
            stores.review,
            self.index,
            self.classifier,
            record,
            review_below=lambda: self.settings.review_below,
            cases=ReviewCases(
                self.case_store,
                self.index,
                vector_of=self._suggester.vectors.of,
                keeps_text=self.settings.cbr_text != "off",
            ),
            feedback_by=stores.traces.feedback_by,
            answer_of=self.conversations.answer_of,
        )

    def _open_search(self, stores: Stores, reranker: Reranker | None) -> None:
        collections = self._collections = CollectionReader(stores.regulations)
        self._index_reading = IndexReading(self.index, collections)
        self.engine = search_engine(
            self.settings,
            self.index,
            self._query_embedder,
            self.analyzer,
            reranker,
            lexicon=self._lexicon_reader,
            collections=collections,
            on_search=self._on_search,
        )
        self.regulations = Regulations(self.engine, self.index, stores.regulations, collections, self._lexicon_reader)
        self.cases = CaseMemory(
            stores.cases,
            self.index,
            self._suggester,
            keeps_text=self.settings.cbr_text == "on",
            expiry=LogExpiry(stores.cases, self.settings.cbr_log_days),
            record=self.audit.record,
        )

    def _open_pipeline(self, stores: Stores) -> None:
        settings, record = self.settings, self.audit.record
        self.traces = Traces.of(settings, stores.traces, stores.sight, self.index, lambda: self.settings.trace_days)
        self.reuse = Reuse(
            stores.cases, self.index, self._suggester, committed=COMMITTED_PAIRS, delta=settings.cbr_delta
        )
        self.retention = Retention.of(settings, stores.cases, self.index, self.reuse)
        self.feedback = FeedbackOnAnswers(
            self.traces,
            stores.traces,
            retention=self.retention,
            question_of=self.conversations.question_of,
            record=record,
        )
        self.feedback.on_thumbs_down = self.review.offer_rated
        self.tools = registry_of(settings, self._tool_parser, WebFetcher)
        self.tools.limits = self.grade_limits
        self.mcp = mcp_tools(settings, stores.approvals, self.tools, record)
        self.learning = WeightLearning(stores.learning)
        self.neural_selector = NeuralSelector(stores.cases, self.index, self._query_embedder, self.analyzer)
        self.run = Run(
            engine=self.engine,
            index=self.index,
            tree_of=stores.taxonomy.tree,
            embedder=self._query_embedder,
            model=self.model,
            critic=self.critic,
            tools=self.tools,
            prepare=self.mcp.refresh,
            grades=self.grades,
            admission=Admission.of(settings),
            recording=self.traces.recording(),
            identity=self.identity(),
            text_key=functools.cache(partial(text_key, settings)),
            learning=self.learning,
            reuse=self.reuse,
            on_debate=self._on_debate,
        )
        self.consolidation = Consolidation(self.case_store, record, make_missing=self.review.make_missing_cases)
        self.reflection = Reflection(
            self.case_store,
            self.index,
            lambda offered, grant: self.review.offer_answer(offered, None, grant=grant),
            record,
        )
        self.case_auditor = CaseAuditor(self.case_store, self.index, stores.keys, stores.agents)
        keep = None if settings.traces == "off" else self.traces.keep
        self.pipeline = pipeline_type(settings.pipeline)(
            lambda: self.run, keep, self.retention.remember, self.personal_data.masked
        )
        self.public_pipeline = pipeline_type(settings.pipeline)(
            self._public_run,
            None if keep is None else lambda trace: self.traces.keep(trace.without_text()),
            mask=self.personal_data.masked,
        )
        self.replays = Replays(
            self.traces,
            lambda: self.run,
            self.index,
            record,
            self.audit.newest,
            lambda payload: signed(payload, answer_seed(settings)),
            mask=self.personal_data.masked,
        )
        self.agents = Agents(
            stores.agents,
            self.index,
            self.engine,
            self.pipeline,
            default=lambda: budget(self.settings),
            review=self.review,
            record=record,
        )

    def _open_kinds(self) -> None:
        """The kinds of jobs: what each does."""
        uploads = Uploads(self._stores.jobs, self.ingest_sources, self._place_of)
        self.jobs.kinds[INGEST] = JobKind(uploads.run)
        if self.model is not None:
            self.jobs.kinds[IMAGINED] = JobKind(self._imagine, background=True)
        if self.settings.backup_dir is not None:
            self.jobs.kinds[BACKUP] = JobKind(partial(self._back_up, self.settings.backup_dir), background=True)
        if self.settings.sources:
            self.jobs.kinds[SYNC] = JobKind(self._sync_source, background=True)
        self.jobs.kinds[EVALUATION] = JobKind(self._evaluate, background=True)
        if self.embedder is not None:
            self.jobs.kinds[VECTORS] = JobKind(
                self._make_vectors,
                background=True,
                attempts=None,
                longest_pause=timedelta(seconds=30),
                due=self.vectors.due,
            )

    def _fenced(self, lease: Lease) -> Stores:
        return fenced_stores(self._stores, self.database, lease)

    async def tree_grades(self) -> TreeGrades:
        """The grades of the active tree."""
        return self.grades.of((await self.index.snapshot()).taxonomy)

    def destinations(self) -> dict[Recipient, int]:
        """What texts are sent to, each with the highest grade that it may be sent."""
        models = [model.destination for model in (self.model, self.critic) if model is not None]
        embedder: Recipient | None = getattr(self.embedder, "destination", None)
        tools = [tool.destination for tool in self.tools.tools() if tool.destination is not None]
        named = dict.fromkeys((*models, *([embedder] if embedder is not None else []), *tools, *self.mcp.destinations))
        return {destination: self.grade_limits.of(destination) for destination in named}

    async def _embeds_all(self) -> bool:
        """Whether the embedder may be sent texts of every branch."""
        return embeds(self.embedder, 0 if embeds(self.embedder, UNLIMITED) else (await self.tree_grades()).highest)

    def _imagination(self, store: ImaginedStore) -> Imagination:
        return Imagination(store, self.model, self.analyzer, self.jobs.wake, sendable=self._sendable)

    async def _sendable(self, scope: Scope) -> Scope:
        """The part of the scope that the language model may be sent."""
        grades, limit = await self.tree_grades(), limit_of(self.model)
        return scope if allows(limit, grades.highest) else scope.narrowed(grades.up_to(limit))

    async def _make_vectors(self, running: Running) -> None:
        store = self._fenced(running.job.lease).vectors
        await self.vectors.make(store, lambda made, left: running.progress(made, made + left), background=True)

    async def _back_up(self, folder: Path, running: Running) -> None:
        """Another attempt writes the same file."""
        from dtrag import backups

        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        job = running.job
        name = f"dtrag-{job.created_at:%Y%m%d-%H%M%S}-{job.job_id.hex[:8]}"
        report = await backups.make(self.settings, folder / name, force=True)
        counts = {"bytes": report.bytes, "documents": report.manifest.tables.get("documents", 0)}
        running.result = {"file": name, "backup_id": report.manifest.backup_id, "counts": counts}

    async def _evaluate(self, running: Running) -> None:
        """Another attempt asks all questions again; of several, one run is kept."""
        job = running.job
        dataset = _answer_set(job.input)
        _, notes, run = await self.evaluate_answers(dataset, running.progress, scope=running.caller.access)
        await Evaluations(self._fenced(job.lease).evaluations).keep(replace(run, run_id=job.job_id))
        running.result = {"run_id": str(job.job_id), "counts": {"questions": len(run.rows)}, "notes": notes}

    async def _imagine(self, running: Running) -> None:
        """What was stored by an earlier attempt is not missing any more."""
        options, store = running.job.input, self._fenced(running.job.lease).imagined
        running.done = before = running.job.done
        most = None if options["most"] is None else options["most"] - before
        if most is not None and most <= 0:
            return
        scope = await self.branch(options["category"], scope=running.caller.access)
        imagination = self._imagination(store)
        report = await imagination.run(
            scope, most=most, on_progress=lambda done, total: running.progress(before + done, before + total)
        )
        running.result = {"counts": {"passages": report.passages, "questions": report.questions}}

    async def open_sign_in(self) -> None:
        """Let people sign in with the providers in the setting, if any, and give them the rights that it says today.

        For services. Raises `InvalidInput` and `MissingExtra`.
        """
        if self.settings.sign_in is not None:
            rate, record = self.settings.rate_per_minute, self.audit.record
            self.sign_in = open_sign_in(self.settings.sign_in, self._stores, self.keys, rate=rate, record=record)
            if not self.database.on_standby:
                await self.sign_in.apply()

    async def allow_people(self, name: str | None) -> list[str]:
        """Let a person whose key was revoked, or all of them (None), sign in again; returns the names of their keys.

        Raises `NotFound` and `Conflict`.
        """
        allowed = await self._stores.people.allow(name, datetime.now(UTC))
        if name is not None and not allowed:
            raise NotFound(f"There is no person {name[:80]!r} whose key is revoked. `dtrag keys list` shows the keys.")
        self.keys.forget()
        ids, details = list(map(str, allowed)), {"names": sorted(allowed.values())}
        await self.audit.record(LOCAL.name, "sign_in.allow", scope=None, subjects=ids, decision="done", details=details)
        return sorted(allowed.values())

    async def preview_sign_in(self, path: Path) -> tuple[SignInFile, SignInPreview]:
        """What a file of the sign-in says, and what it would change. Raises `InvalidInput`."""
        file = sign_in_file(path)
        return file, await preview(file, self._stores, self.keys, datetime.now(UTC))

    async def _confirmed(self, session: Session, key: Key, token: str) -> None:
        if self.sign_in is None:
            raise SignInRefused(reason="its provider is not used here any more.")
        await self.sign_in.confirmed(session, key, token)

    async def _maker_of(self, job: Job) -> Caller:
        """The maker of a job with its access of now. Raises `Forbidden` when its key is not valid any more."""
        return LOCAL if job.maker is None else (await self.keys.of_id(job.maker)).caller()

    async def _place_of(self, path: Sequence[str], node_id: int | None) -> Sequence[str]:
        """Where the category with this path and node is now: it may have been moved or merged since."""
        if node_id is None:
            return path
        node_id = await self._writer.successor(node_id)
        taxonomy = await self._writer.ensure_paths([])
        return taxonomy.path(node_id) if node_id in taxonomy.nodes else path

    def _on_search(self, metrics: SearchMetrics) -> None:
        self.on_search(metrics)  # the callback of now: it may be set after the app is open

    def _on_debate(self, event: DebateEvent) -> None:
        self.on_debate(event)

    async def __aenter__(self) -> App:
        current_app.opened(self)
        return self

    async def __aexit__(self, *exception: object) -> None:
        current_app.closed(self)
        await self._index_reading.close()
        await self.mcp.close()
        await self.retention.close()
        await self.index.close()
        await self.keys.close()
        await self.traces.close()
        await self.learning.close()
        await self.audit.close()
        await self._suggester.close()
        await self.case_store.close()
        await self._parser.close()
        await self._tool_parser.close()
        for model in (self.model, self.critic):
            if model is not None:
                await model.close()

    async def load(self) -> None:
        """Load every model now, so that no question waits for it, and read regulations ahead (3 s for 5,000 articles).

        Load errors are raised by the first use instead.
        """
        await self.warm()
        if self.settings.regulations != "off":
            with suppress(DtragError):
                await read_ahead(self.index, self._collections)
                await self.regulations.citations()

    async def warm(self) -> None:
        """Load every model, make connections to the database, and read the index."""
        await self.pipeline.load(self.run)
        with suppress(DtragError, TimeoutError):
            await self.engine.warm(self.settings.pool_size)

    async def recover(self) -> int:
        """Make the batches that a crashed writer left searchable; returns their number."""
        return await self._writer.recover()

    async def forget_deleted(self) -> None:
        """Remove documents that were deleted more than an hour ago from the segments of the index and all files."""
        await self._writer.forget_deleted()
        await self.index.forget_deleted()

    async def ingest(
        self,
        paths: Sequence[str | Path] | str | Path,
        category: Sequence[str] | str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        prune: Prune = False,
        prune_editions: bool = False,
        exclude: Sequence[str] = (),
        work: str = "",
        effective: date | str | None = None,
        wait: bool = True,
    ) -> IngestReport:
        """Index files and folders; unchanged files are skipped.

        Their words are searchable first, then their vectors are made. `wait=False` returns before that and leaves them
        to `vectors.fill()` or to the next process, as a running service of this index does in any case.

        `category` applies to documents that name none themselves. A file that fails is listed in `report.failed`, and
        the others are indexed. Raises `InvalidInput` for a bad category and `IndexMismatch` when the index was built
        with another analyzer.

        Files of folders are left out that a pattern of `exclude` or of a `.dtragignore` file matches, as in .gitignore.

        `work` and `effective` (2024-03-01) are the name and the effective date of regulations that state none: a
        document becomes an edition of that work. `prune_editions` removes superseded editions below the folders that
        their files do not contain any more; nothing else does.

        With `prune`, documents of files that were deleted from the folders or are excluded now are removed, and renamed
        files keep their category and review state. A file that fails keeps its own documents only. Raises
        `InvalidInput`, before anything is changed, when a folder is missing, unreadable or empty, or more than a third
        of its files are gone;
        "all" allows the latter.
        """
        files = await asyncio.to_thread(find_files, _paths(paths), self._parser, exclude)
        if prune_editions and not (files.folders or files.failed):
            raise InvalidInput("Editions are only removed below folders, and none was named. Name the folder.")
        plan = await self._folders.plan(files) if prune else None
        if plan is not None and plan.refusal and prune != "all":
            raise InvalidInput(plan.refusal)
        renames = IngestReport()
        if plan is not None:
            await self.check_identity()
            await self._folders.follow(plan, renames)
        report = await self.ingest_sources(files.sources, category, on_progress, work=work, effective=effective)
        report.failed[:0] = files.failed
        report.skipped, report.excluded, report.renamed = files.skipped, files.excluded, renames.renamed
        if plan is not None:
            await self._folders.remove(plan, report)
        if prune_editions and not report.failed:
            await self._folders.remove_editions(files, report)
        if wait:
            await self.vectors.fill()
        return report

    async def plan_prune(self, paths: Sequence[str | Path] | str | Path, *, exclude: Sequence[str] = ()) -> FolderPlan:
        """What `ingest` with `prune` would add, rename and remove; nothing is changed. Raises `InvalidInput`."""
        return await self._folders.plan(await asyncio.to_thread(find_files, _paths(paths), self._parser, exclude))

    def configured_sources(self) -> list[tuple[str, CategoryPath]]:
        """Address and category of each source of the settings. Raises `InvalidInput`, also when there is none."""
        named = [self.source(*pair) for pair in named_sources(self.settings.sources or "")]
        if not named:
            raise InvalidInput("No source is configured: name them in DTRAG_SOURCES, or give an address.")
        return named

    def source(self, address: str, category: Sequence[str] | str) -> tuple[str, CategoryPath]:
        """The same, validated. Raises `InvalidInput`."""
        connect_source(self.settings, address)
        return address, CategoryPath.parse(category)

    async def plan_sync(self, source: str | Connector) -> SourcePlan:
        """What `sync` would change; nothing is changed. Raises `InvalidInput` and `SourceUnavailable`."""
        async with self._connected(source) as connector:
            return await self._source_sync.plan(connector)

    async def sync(
        self,
        source: str | Connector,
        category: Sequence[str] | str | CategoryPath,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        force: bool = False,
    ) -> IngestReport:
        """Bring the branch at `category` into step with the source: its files, and who may read them there.

        `source`: its address, or a connector of your own, which stays open. `force` allows that more than a third of
        its files is removed. Raises `InvalidInput`, `SourceUnavailable`, and `Conflict` while another process does the
        same.
        """
        path = category if isinstance(category, CategoryPath) else CategoryPath.parse(category)
        await self.check_identity()
        async with self._connected(source) as connector:
            report = await self._source_sync.run(connector, path, on_progress, force=force)
        counts = {"files": report.files, "documents": report.documents, "removed": report.removed}
        details = {"address": connector.address, "category": str(path), **counts}
        await self.audit.record(LOCAL.name, "sources.sync", scope=None, subjects=[], decision="done", details=details)
        return report

    @asynccontextmanager
    async def _connected(self, source: str | Connector) -> AsyncIterator[Connector]:
        if not isinstance(source, str):
            yield source
            return
        connector = connect_source(self.settings, source)
        try:
            yield connector
        finally:
            await connector.close()

    async def _sync_source(self, running: Running) -> None:
        """The work of a job: one source of the settings, or all. Fails when one cannot be listed."""
        chosen, failed = running.job.input["category"], list[dict[str, str]]()
        sources = [pair for pair in self.configured_sources() if chosen in (None, str(pair[1]))]
        counts = Counter[str]()
        for address, category in sources:
            report = await self.sync(address, category, lambda now: running.progress(now.files, now.files_total))
            failed += [{"path": path, "reason": str(reason)} for path, reason in report.failed]
            counts.update(documents=report.documents, removed=report.removed, unchanged=report.unchanged)
        running.result = {"counts": dict(counts), "failed": failed[:SHOWN_FAILURES]}

    async def ingest_sources(
        self,
        sources: Sequence[Source],
        category: Sequence[str] | str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        scope: Viewer | None = None,
        work: str = "",
        effective: date | str | None = None,
        lease: Lease | None = None,
        requested_at: datetime | None = None,
    ) -> IngestReport:
        """As `ingest` without waiting, for files whose address is not their path (uploads).

        Nothing outside of the scope is written or overwritten. `lease` is that of the job that this is part of, and
        `requested_at` the time at which it was made. Raises `InvalidInput` for a scope without a category, and
        `Forbidden` for a category outside of it.
        """
        started = time.perf_counter()
        self.database.require_space()
        path = CategoryPath.parse(category) if category else None
        within, _ = await self._resolved(scope)
        stores = self._stores if lease is None else self._fenced(lease)
        read_with = await stores.index_settings.register(self.analyzer.id)
        report = await self._ingestion.over(stores).run(
            sources,
            path,
            on_progress,
            within,
            work=work,
            effective_from=parse_date("effective", effective),
            read_with=read_with,
            requested_at=requested_at,
        )
        self.jobs.wake()
        self._index_reading.wake()
        report.seconds = time.perf_counter() - started
        report.note_editions(datetime.now().astimezone().date())
        if report.waiting:
            waiting = f"{report.waiting:,} without a category wait for a person: dtrag review"
            report.notes.append(Statement("", waiting))
        if self.embedder is None:
            lexical = "No embedder is available: nothing got a vector, search is lexical only."
            report.notes.append(Statement("", lexical))
        return report

    async def queue_upload(
        self,
        sources: Sequence[Source],
        category: Sequence[str] | str | None = None,
        *,
        caller: Caller = LOCAL,
        work: str = "",
        effective: date | str | None = None,
    ) -> Job:
        """Store the files and the job that indexes them; durable when this returns.

        Raises what `ingest_sources` raises for the category, and `Overloaded` for too many jobs.
        """
        _require_maker(caller)
        path = CategoryPath.parse(category) if category else None
        within, taxonomy = await self._resolved(caller.access)
        await WriteGuard(self._writer, within).admit(path)
        day = parse_date("effective", effective)
        policy = self.personal_data
        masked = [Source(each.path, policy.masked_name(each.name), policy.masked_address(each.uri)) for each in sources]
        job = upload_job(
            caller, masked, path, taxonomy, work=work, effective=day.isoformat() if day is not None else None
        )
        return await self.jobs.add(job, [source.path for source in sources])

    async def require_no_queued(self, sources: Sequence[Source], caller: Caller = LOCAL) -> None:
        """Raise `Conflict` while an upload of one of these files, which the caller may see, waits or runs.

        It would replace these.
        """
        keys = [self.personal_data.masked_address(source.uri) for source in sources]
        if await self._stores.jobs.locked(keys, caller.key_id, everything=sees_all(caller)):
            raise Conflict(
                "An earlier upload of this file with wait=false has not ended, and would replace this one. Wait for "
                "its job (GET /jobs), cancel it, or send this file with wait=false, too."
            )

    async def queue_imagination(
        self, category: Sequence[str] | str | None = None, most: int | None = None, *, caller: Caller = LOCAL
    ) -> Job:
        """Store the job that lets the language model imagine questions for passages without any, `most` of them.

        Raises `InvalidInput` without a language model.
        """
        self.imagination.require_model()
        await self.branch(category, scope=caller.access)
        path = None if category is None else list(CategoryPath.parse(category).names)
        return await self._queue(IMAGINED, {"category": path, "most": most}, caller)

    async def queue_evaluation(self, name: str, questions: Sequence[Any], *, caller: Caller = LOCAL) -> Job:
        """Store the job that asks these judged questions, rows as in a file of them, and keeps the run under `name`.

        Raises `InvalidInput` that names the invalid row.
        """
        body = {"dataset": name, "questions": list(questions)}
        _answer_set(body)
        return await self._queue(EVALUATION, body, caller)

    async def queue_sync(self, category: str | None = None, *, caller: Caller = LOCAL) -> Job:
        """Store the job that syncs the source of a category in the settings, or all. Raises `InvalidInput`."""
        known = [str(path) for _, path in self.configured_sources()]
        if category not in (None, *known):
            raise InvalidInput(f"No source of the setting belongs to {category!r}. Known: {', '.join(known)}.")
        return await self._queue(SYNC, {"category": category}, caller)

    async def queue_backup(self, *, caller: Caller = LOCAL) -> Job:
        """Store the job that backs up the database into `backup_dir`. Raises `InvalidInput` without that setting."""
        if self.settings.backup_dir is None:
            raise InvalidInput("This service has no folder for backups: its setting backup_dir names one.")
        return await self._queue(BACKUP, {}, caller)

    async def _queue(self, kind: str, options: Mapping[str, Any], caller: Caller) -> Job:
        """Store a job of a kind of which one runs at a time."""
        _require_maker(caller)
        job = NewJob(kind=kind, input=options, maker=caller.key_id, maker_name=caller.name, lock_keys=[kind])
        return await self.jobs.add(job)

    async def evaluate_answers(
        self,
        dataset: AnswerSet,
        on_progress: Callable[[int, int], None] | None = None,
        *,
        scope: Viewer | None = None,
    ) -> tuple[AnswerMeasures, list[str], EvaluationRun]:
        """Ask every question and compare the answers with what is expected: the measures, notes and the run.

        The questions leave no traces and teach nothing.
        """
        within, taxonomy = await self._resolved(scope)
        pipeline = self.pipeline.unrecorded()

        async def ask(question: str) -> Answer:
            return (await pipeline.execute(question, scope=scope)).as_answer()

        async def read_text(document_id: str) -> str:
            return (await self.document(document_id, scope=scope))[1]

        async def read_passages(chunk_ids: Sequence[str]) -> Mapping[str, SearchResult]:
            return await self.index.fetch(chunk_ids, within, taxonomy)

        rows: list[RunRow] = []
        measured, notes = await evaluate_answers(
            ask, read_text, read_passages, dataset, on_progress, on_row=rows.append
        )
        return measured, notes, self.evaluation_run("answers", dataset.name, rows)

    def evaluation_run(self, kind: Kind, dataset: str, rows: Sequence[RunRow], **more: str) -> EvaluationRun:
        """The run of this app: its models and what else changes results."""
        identity = self.identity()
        settings = {
            **{name: identity[name] for name in ("analyzer", "embedder", "reranker")},
            "model": self.model.id if self.model is not None else "none",
            "regulations": identity["regulations"],
            "judge": self.judge.id,
            **more,
        }
        return EvaluationRun(kind, dataset, __version__, settings, tuple(rows))

    def identity(self) -> dict[str, str]:
        """What decides answers beside the documents and the language model: version, models of the search, settings."""
        return {
            "version": __version__,
            "analyzer": self.analyzer.id,
            "embedder": self.embedder.id if self.embedder is not None else "none",
            "reranker": self.reranker.id if self.reranker is not None else "none",
            "regulations": self.settings.regulations,
            "vector_weight": str(self.settings.vector_weight),
        }

    async def reindex(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Rebuild the index from the stored texts with the current analyzer; returns the documents.

        Personal data in them are marked or masked as the settings say now. What was masked stays masked.
        Their vectors are to be made again: `vectors.fill()`.
        """
        self.database.require_space()
        await self._index_settings.forget()
        await self._index_settings.register(self.analyzer.id)
        documents = await reindex(self._writer, on_progress, self.analyzer, self.personal_data)
        await self.imagination.analyse()
        await self._index_settings.rebuilt()
        return documents

    async def calibrate(
        self, judged: Sequence[Judged], on_progress: Callable[[int], None] | None = None, *, keep: bool = True
    ) -> Calibrated:
        """Fit the confidence to judged questions about these documents; applies from the next question on.

        A fit that would worsen a measure is rejected (`Calibrated.refusals`); when all are rejected (`helps` is False)
        nothing changes. `on_progress` gets the number of questions done. With `keep=False` nothing is stored.
        Raises `InvalidInput`.
        """
        all_cases: list[MeasuredQuestion] = []
        done = 0
        async for question_cases in cases(judged, self.index, self.embedder, self.analyzer, self.settings.regulations):
            all_cases += question_cases
            done += 1
            if on_progress is not None:
                on_progress(done)
        calibrated = await asyncio.to_thread(calibrate, all_cases, len(judged))
        if keep and calibrated.helps:
            await self._index_settings.store_calibration(calibrated.stored(datetime.now(UTC)))
        return calibrated

    async def uncalibrate(self) -> bool:
        """Restore the shipped confidence; False when nothing was calibrated."""
        return await self._index_settings.forget_calibration()

    async def search(
        self,
        query: str,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        *,
        mode: str = "hybrid",
        scope: Viewer | None = None,
        highlights: bool = True,
        **options: Unpack[SearchOptions],
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """The best passages, best first. Modes: hybrid, lexical, strict, vector.

        Without `top_k` ten, or as many as a question about regulations needs (`metrics.top_k`).

        `highlights=False` saves the time of locating the query's words in the passages.
        `options` are those of `HybridSearchEngine.search`: numbers of candidates, correlation_id, explain, as_of.
        """
        options = {
            "bm25_candidates": CANDIDATES,
            "vector_candidates": CANDIDATES,
            "highlight": highlights,
            **options,
        }
        return await self.engine.search(query, top_k, filters, scope=scope, mode=mode, **options)

    async def ask(
        self,
        question: str,
        filters: Mapping[str, Any] | None = None,
        *,
        scope: Viewer | None = None,
        owner: str = "",
        as_of: date | str | None = None,
        models: bool = True,
    ) -> Answer:
        """The answer with citations, or a refusal when the documents do not answer; `pipeline.execute` returns more.

        `as_of` (2024-03-01) answers from the regulations that were valid on that day. Without `models` no language
        model is called.
        """
        request = PipelineRequest(query=question, options={} if as_of is None else {"as_of": as_of})
        return (await self.answer(request, scope=scope, filters=filters, owner=owner, models=models)).as_answer()

    async def answer(
        self,
        request: PipelineRequest,
        *,
        scope: Viewer | None = None,
        models: bool = True,
        **options: Unpack[AnswerOptions],
    ) -> PipelineResponse:
        """`pipeline.execute`; `hitl_required` where the answer waits for a review, because `review_below` is set.

        Callers without a key, who all have the same owner, get it from a pipeline that keeps and learns nothing.
        """
        if options.get("owner") == OWNER:
            return await self.public_pipeline.execute(
                request, scope=scope, models=models, debate_allowed=False, **options
            )
        response = await self.pipeline.execute(request, scope=scope, models=models, **options)
        day, asker = request.options.get("as_of"), options.get("owner", "")
        if not await self.review.offer_unsure(response, scope, as_of=day, asker=asker):
            return response
        return replace(response, note_statements=(*response.note_statements, IN_REVIEW), hitl_required=True)

    async def _resolved(
        self, viewer: Viewer | None, category: Sequence[str] | str | None = None
    ) -> tuple[Scope, Taxonomy]:
        """What the viewer may see (of a branch) in the active version of the tree, and that version."""
        taxonomy = (await self.index.snapshot()).taxonomy
        within = confinement.bounded(viewer).resolved(taxonomy)
        if category is not None:
            within = SearchFilters.parse({"taxonomy_paths": [category]}).scope(taxonomy, within)
        return within, taxonomy

    async def branch(self, category: Sequence[str] | str | None, *, scope: Viewer | None = None) -> Scope:
        """What the viewer may see of a branch; None: everything that the viewer may see."""
        within, _ = await self._resolved(scope, category)
        return within

    async def documents(
        self,
        limit: int = 100,
        offset: int = 0,
        *,
        category: Sequence[str] | str | None = None,
        listing: DocumentListing = WHOLE_LIST,
        scope: Viewer | None = None,
    ) -> list[DocumentSummary]:
        """A page of the documents of a branch that `listing` selects and sorts; without it all, the newest first.

        `DocumentListing.parse("leave", sort="title")` searches titles and names of files.
        """
        if not (1 <= limit <= MOST_LISTED and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MOST_LISTED:,} and offset at least 0.")
        within, taxonomy = await self._resolved(scope, category)
        return await self.index.documents(within, taxonomy, limit=limit, offset=offset, listing=listing)

    async def counts(
        self,
        *,
        category: Sequence[str] | str | None = None,
        listing: DocumentListing = WHOLE_LIST,
        scope: Viewer | None = None,
    ) -> tuple[int, int]:
        """Numbers of documents and chunks, of a branch and of those that `listing` selects."""
        within, _ = await self._resolved(scope, category)
        return await self.index.counts(within, listing)

    async def pending_vectors(self, *, category: Sequence[str] | str | None = None, scope: Viewer | None = None) -> int:
        """How many passages of a branch wait for their vectors and are found by their words only."""
        within, _ = await self._resolved(scope, category)
        return await self.vectors.pending(within)

    async def document(self, document_id: str, *, scope: Viewer | None = None) -> tuple[DocumentSummary, str]:
        """A document and its text. Raises `NotFound`."""
        within, taxonomy = await self._resolved(scope)
        document = await self.index.document(_document_uuid(document_id), within, taxonomy)
        if document is None:
            raise NotFound(kind="document", name=document_id[:60])
        return document

    async def passage(self, chunk_id: str, *, scope: Viewer | None = None) -> SearchResult:
        """A passage, without scores. Raises `NotFound`."""
        within, taxonomy = await self._resolved(scope)
        known = CHUNK_ID.fullmatch(chunk_id) and await self.index.fetch([chunk_id], within, taxonomy)
        if not known or (passage := known.get(chunk_id)) is None:
            raise NotFound(kind="passage", name=chunk_id[:60])
        return passage

    async def delete_document(self, document_id: str, *, scope: Viewer | None = None) -> None:
        """Delete a document with its passages and vectors. Raises `NotFound`."""
        within, _ = await self._resolved(scope)
        if not await self._writer.delete(_document_uuid(document_id), within):
            raise NotFound(kind="document", name=document_id[:60])
        self._index_reading.wake()

    async def select_documents(
        self, targets: Sequence[str], category: Sequence[str] | str | None = None, *, scope: Viewer | None = None
    ) -> tuple[list[DocumentSummary], list[str]]:
        """Documents that match ids, paths of files or folders, or patterns (`*.md`); and targets without a match.

        `category` restricts to a branch and may be given without targets. Raises `InvalidInput` without either.
        """
        if not targets and not category:
            raise InvalidInput("Name documents by ids, paths or patterns, or a category.")
        branch = CategoryPath.parse(category) if category else None
        mask = self.personal_data.masked_address
        parsed = [DocumentTarget.parse(target, mask(_address(target))) for target in targets]
        listed: list[tuple[DocumentSummary, str]] = []
        while page := await self.documents(MOST_LISTED, len(listed), scope=scope):
            listed += [(document, file_path(document.source_url)) for document in page]
        return await asyncio.to_thread(select, listed, parsed, branch)

    async def delete_documents(self, document_ids: Sequence[str], *, scope: Viewer | None = None) -> int:
        """Delete the documents that still exist, with an audit entry; returns their number."""
        within, _ = await self._resolved(scope)
        deleted = [key for key in document_ids if await self._writer.delete(_document_uuid(key), within)]
        if deleted:
            details = {"documents": len(deleted)}
            await self.audit.record(
                LOCAL.name, "documents.delete", scope=None, subjects=deleted, decision="done", details=details
            )
        return len(deleted)

    async def check_identity(self) -> None:
        """Raise `IndexMismatch` when the index was built with another analyzer."""
        snapshot = await self.index.snapshot()
        check_identity(snapshot.settings, self.analyzer.id)


def _address(target: str) -> str:
    """The target as the absolute path of a file; addresses of uploads as they are."""
    return target if target.startswith("upload:") else unicodedata.normalize("NFC", str(Path(target).resolve()))


def _paths(paths: Sequence[str | Path] | str | Path) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]


BACKUP = "backup"
"""The kind of the job that backs up the database."""
SYNC = "sync"
"""The kind of the job that brings branches of the tree into step with sources."""
SHOWN_FAILURES = 100
"""Files of a sync that could not be read, in the result of its job."""
EVALUATION = "evaluation"
"""The kind of the job that asks judged questions."""


def _answer_set(body: Mapping[str, Any]) -> AnswerSet:
    return AnswerSet.of(set_of(body["dataset"], body["questions"]))


def _require_maker(caller: Caller) -> None:
    """Raise `Forbidden` for a job that would run outside of the scope of the code that makes it."""
    if caller.key_id is None and confinement.bounded() not in (confinement.OWNER, caller.access):
        raise Forbidden("Inside a run, request or tool call, jobs need the caller that they are for: pass caller=.")


def _document_uuid(document_id: str) -> uuid.UUID:
    key = uuid_or_none(document_id)
    if key is None:
        raise NotFound(kind="document", name=str(document_id)[:60])
    return key
