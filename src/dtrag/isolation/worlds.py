"""Creates the twin worlds: two services on temporary databases, with a language model that records its prompts."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np
from starlette.types import ASGIApp

from dtrag.app import App, open_throwaway
from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.scope import EVERYTHING, Access, Grant
from dtrag.core.cases.case import FeedbackType, ReuseDecision, Vote
from dtrag.core.chat import Message, Reply, Usage
from dtrag.core.documents import Vector
from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput
from dtrag.ingestion.sources import Source
from dtrag.isolation import drive
from dtrag.isolation.case_scenarios import ASKERS, MEMORY, QUESTIONS
from dtrag.isolation.library import (
    ONE,
    OTHER,
    OWN_WORDS,
    PUBLIC,
    SERVER_FOLDER,
    UPLOADED,
    VISITORS,
    HiddenPart,
    Path_,
    drive_of,
    pdf_of,
    write_filling,
    write_hidden,
    write_shared,
)
from dtrag.isolation.runs import IsolationRun, IsolationRuns
from dtrag.isolation.visits import World, features, sent_prompts
from dtrag.ports import Embedder
from dtrag.settings import Settings, set_feature_flag

Serve = Callable[[App, Settings, Path, IsolationRuns], ASGIApp]
"""The service over an open app, with these settings, the folder of its uploads, and its runs of the isolation test."""
RATE = 1_000_000
"""Requests per minute of the visitors: rate limits are not tested here."""
UNSURE = {"override_settings": {"features": {"hitl_below_conf": 0.9}}}
FLAGS = ("debate_mode", "meta_planner", "mcp_tools")
"""Enabled in every third round, so that language models are also called for plans, debates and tools."""
_LONGEST_REPLY = 300


@dataclass(frozen=True)
class WordHashes:
    """An embedder without a model: hashes words into a few dimensions, so that vector retrieval is tested, too."""

    id: str = "wordhashes@1"
    dim: int = 16
    max_tokens: int = 256
    languages: frozenset[str] = frozenset({"*"})
    floor: float = 0.0
    decides: bool = True

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), 16), L2-normalised."""
        vectors = np.full((len(texts), self.dim), 0.01, np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                digest = blake2b(word.encode("utf-8", "replace"), digest_size=2).digest()
                vectors[row, digest[0] % self.dim] += 1 + digest[1] % 2
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """The same as for documents."""
        return self.embed_documents(texts)


class RecordingModel:
    """A deterministic language model that records its prompts and answers with the longest line of the prompt."""

    id = "recording:model"

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        """See `ChatModel`."""
        prompt = "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)
        recorded = sent_prompts.get()
        if recorded is not None:
            recorded.append(prompt)
        lines = [line for line in messages[-1].content.splitlines() if line and "~~~" not in line]
        text = f"{max(lines, key=len, default='Nothing.')[:_LONGEST_REPLY]} [1]"
        return Reply(text, self.id, Usage(1, len(prompt) // 4, len(text) // 4))

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float
    ) -> AsyncIterator[str | Reply]:
        """See `ChatModel`."""
        reply = await self.complete(messages, max_tokens=max_tokens, seconds=seconds)
        yield reply.text
        yield reply

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """See `ChatModel`."""
        return 0.0

    async def warm(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True)
class TwinWorlds:
    """Two running services with the same visitors."""

    apps: tuple[App, App]
    worlds: tuple[World, World]

    def begin_round(self, number: int) -> None:
        """Of three rounds: quoted answers, answers of a model, answers of a model with all flags."""
        model = RecordingModel() if number % 3 else None
        for app in self.apps:
            app.run = replace(app.run, model=model, critic=model)
        for name in FLAGS:
            set_feature_flag(name, True if number % 3 == 2 else None)

    async def hidden_documents(self) -> tuple[int, int]:
        """Numbers of documents and passages in the hidden branches of the first world."""
        app = self.apps[0]
        paths = [CategoryPath.parse(path) for path in ONE.branches]
        return await app.counts(scope=Access((Grant.of(paths, (await app.index.snapshot()).taxonomy),)))


@asynccontextmanager
async def twin_worlds(
    settings: Settings,
    embedder: Embedder | None,
    serve: Serve,
    seed: int = 1,
    *,
    documents: int = 0,
    nodes: int = 1,
    case_files: bool = False,
) -> AsyncIterator[TwinWorlds]:
    """Two worlds that differ only in what no visitor may see; their databases are dropped at the end.

    Without an `embedder` the one of the settings is used, if any. The first world has at least this many `documents` in
    this many categories (`nodes`). `case_files`: each world keeps its cases in an SQLite file, and not in its database.
    """
    own = replace(
        settings,
        classify="auto",
        reranker="none",
        regulations="auto",
        llm=None,
        mcp_servers=None,
        trace_text="on",
        public=PUBLIC,
        public_rate_per_minute=RATE,
        public_rate_in_all=RATE,
        keep_originals="on",
    )
    with tempfile.TemporaryDirectory(prefix="dtrag-twins-") as name:
        folder = Path(name)
        shared = write_shared(folder / SERVER_FOLDER, _chance(seed))
        folders = [folder / f"cases-{number}" if case_files else None for number in range(2)]
        async with (
            open_throwaway(own, embedder, case_folder=folders[0]) as first,
            open_throwaway(own, first.embedder, case_folder=folders[1]) as second,
        ):
            worlds = []
            for app, part in ((first, ONE), (second, OTHER)):
                hidden = write_hidden(part, folder / f"{part.name}.jsonl", _chance(seed))
                # What is hidden is read first in one world and last in the other.
                concealed = [(None, hidden), *_books(part, folder)]
                steps = [*concealed, *shared.items()] if part is ONE else [*shared.items(), *concealed]
                for category, path in steps:
                    await _ingest(app, path, category)
                known = await _objects(app, part, folder)
                world = await _world(app, part, folder / f"{part.name}-uploads", serve, known)
                await app.sync(drive_of(part, _chance(seed)), drive.BRANCH)  # its rights need keys
                await app.vectors.fill(sentences=True)
                worlds.append(world)
            if documents:
                await _ingest(first, write_filling(folder / "filling.jsonl", documents, nodes, _chance(seed)))
                await first.vectors.fill(sentences=True)
            try:
                yield TwinWorlds((first, second), (worlds[0], worlds[1]))
            finally:
                for flag in FLAGS:
                    set_feature_flag(flag, None)


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # nosec B311  # noqa: S311 - no secret: the same number makes the same worlds


async def _objects(app: App, part: HiddenPart, folder: Path) -> dict[str, str]:
    """Add what is not ingested; returns ids by the names that both worlds share."""
    if part.books and not await app.regulations.regulations(scope=EVERYTHING):
        raise InvalidInput("The regulation books of the twin worlds were not recognised as regulations.")
    await _imagine(app)
    with features(MEMORY):
        shared = await _shared_objects(app, folder, next(iter(part.branches)))
        hidden = await _hidden_objects(app, folder) if part is ONE else {name: str(uuid.uuid4()) for name in HIDDEN}
    return shared | hidden


async def _world(app: App, part: HiddenPart, uploads: Path, serve: Serve, known: dict[str, str]) -> World:
    """The service over the app, with a key for every visitor that has one."""
    headers = {}
    for visitor in (each for each in (*VISITORS, *ASKERS) if each.role != "public"):
        created = await app.keys.create(
            visitor.name,
            list(visitor.paths) or None,
            visitor.role,
            rate=RATE,
            principals=visitor.principals,
            originals=True,
        )
        headers[visitor.name] = {"authorization": f"Bearer {created.secret}"}
    await asyncio.to_thread(uploads.mkdir)
    # No isolation test runs inside of this one. Only administrators may know the setting and the run of one world.
    runs = IsolationRuns((sys.executable, "-c", "print('{\"leaks\": 0}')"))
    if part is ONE:
        runs.last = IsolationRun("running", datetime.now(UTC).isoformat())
        app.settings = replace(app.settings, trace_days=app.settings.trace_days + 1)
    return World(serve(app, app.settings, uploads, runs), headers, known)


def _books(part: HiddenPart, folder: Path) -> Iterator[tuple[Path_, Path]]:
    """Write the hidden regulation books; yields their branches and files."""
    for number, (path, text) in enumerate(part.books):
        file = folder / f"{part.name}-book-{number}.md"
        file.write_text(text, "utf-8")
        yield path, file


async def _imagine(app: App) -> None:
    """Imagined questions of all passages, in the words of their texts: those of hidden ones differ."""
    lines = []
    async for passage, names in app.imagination.named():
        words = passage.text.split()
        questions = [f"{' '.join(words[start : start + 4])}?" for start in (0, len(words) // 2)]
        lines.append(json.dumps({"id": names[-1], "questions": questions}))
    await app.imagination.import_lines(lines)
    await app.vectors.fill(sentences=True)


async def _ingest(app: App, path: Path, category: Path_ | None = None) -> None:
    report = await app.ingest([path], category)
    if report.failed:
        raise InvalidInput(f"The documents of the twin worlds could not be read: {report.failed[0][1]}")


async def _waiting(app: App, folder: Path, title: str, text: str) -> str:
    """The id of a new document's item in the review queue."""
    file = folder / f"{title}.jsonl"
    file.write_text(json.dumps({"id": title, "title": title, "text": text}), "utf-8")
    await _ingest(app, file)
    [item] = [row for row in (await app.review.waiting())[0] if row.title == title]
    return str(item.item_id)


async def _shared_objects(app: App, folder: Path, hidden: Path_) -> dict[str, str]:
    """Objects in both worlds: a decided item, an agent that had a hidden branch before, and cases."""
    item = await _waiting(app, folder, "Undecided", "The orchard of the violin.")
    await app.review.correct(item, ["Handbook", "Leave"])
    agent = await app.agents.create("1.0.0", [["Handbook", "Leave"], list(hidden)], None, name="Leave desk")
    await app.agents.update(str(agent.agent_id), "1.0.0", [["Handbook", "Leave"]], None)
    await _add_cases(app)
    scan = await _original(app, folder, "Leave", "A certificate of leave with a stamp.")
    return {"decided item": item, "shared agent": str(agent.agent_id), "shared original": scan}


async def _original(app: App, folder: Path, branch: str, text: str) -> str:
    """The id of a new document with an original in a branch of the handbook."""
    file = folder / f"{branch}.pdf"
    file.write_bytes(pdf_of(text))
    source = Source(file, file.name, f"upload:{file.name}")
    [read] = (await app.ingest_sources([source], ["Handbook", branch], scope=EVERYTHING)).sources
    return str(read.document_ids[0])


async def _add_cases(app: App) -> None:
    """Cases of both worlds, which cite shared documents."""
    for number, (path, question) in enumerate(QUESTIONS.items()):
        # The same in both worlds: an edition of a regulation may have another id in a world with more regulations.
        documents = await app.documents(1_000, category=path, scope=EVERYTHING)
        cited = min((each.title, each.document_id) for each in documents)[1]
        for copy, passages in enumerate(((), (f"{cited}:0",))):
            await app.cases.add(question, path, "See the guide.", case_id=f"shared-{number}-{copy}", passages=passages)
        # One vote, so that it is offered with answers to similar questions.
        vote = Vote(
            log_id=f"shared-{number}",
            case_id=f"shared-{number}-1",
            feedback=FeedbackType.THUMBS_UP,
            success=True,
            voter="shared",
            at=datetime.now(UTC),
        )
        await app.case_store.vote(vote, EVERYTHING)


async def _add_hidden_cases(app: App, hidden: Path_, document_id: str) -> dict[str, str]:
    """Cases of one world: one of a hidden branch, and one of a visible branch that cites a hidden document."""
    known: dict[str, str] = {}
    for name, path in (("hidden case", hidden), ("citing case", next(iter(QUESTIONS)))):
        for number, question in enumerate(QUESTIONS.values()):
            cited = [f"{document_id}:0"]
            case = await app.cases.add(question, path, f"Case of {number}", quality_score=1.0, passages=cited)
            suggested = await app.cases.suggest(question, path)
            assert suggested.log_id is not None  # noqa: S101 - the disk is not full
            await app.cases.feedback(suggested.log_id, case.case_id, FeedbackType.THUMBS_UP)
            decision = ReuseDecision(
                case_id=case.case_id, log_id=suggested.log_id, kind="vote", correct=True, at=datetime.now(UTC)
            )
            await app.case_store.add_decision(decision)
            known |= {name: case.case_id, "hidden log": suggested.log_id}
    return known


HIDDEN = (
    *("hidden document", "hidden agent", "hidden item", "hidden answer", "administrator's trace"),
    *("hidden case", "citing case", "hidden log", "hidden evaluation", "hidden job", "hidden original"),
)
"""Names of the objects of one world; in the other they are ids of nothing."""


async def _hidden_objects(app: App, folder: Path) -> dict[str, str]:
    """Objects in one world only: one of every kind, and traces of an administrator's work."""
    waiting = await _waiting(app, folder, "Waiting", "The copper timber of the violin.")
    board, leave = ["Handbook", "Board"], ["Handbook", "Leave"]
    agent = await app.agents.create("1.0.0", [board], None, name="Board desk")
    mixed = await app.agents.create("1.0.0", [board, leave], UNSURE, name="Both desks")
    await app.agents.ask(mixed, "How many weeks of parental leave need a certificate?")
    answers = [row for row in (await app.review.waiting())[0] if row.kind == "answer"]
    answer = await app.ask("What is said about the merger?", scope=EVERYTHING)
    await app.conversations.add("administrators-talk", LOCAL, "What of the merger?", answer.text)
    scan = await _original(app, folder, "Board", "The merger of the board with a signature.")
    upload = folder / "upload"
    upload.write_text("# Minutes\n\nThe severance of the board.\n", "utf-8")
    await app.ingest_sources([Source(upload, UPLOADED, f"upload:{UPLOADED}")], board, scope=EVERYTHING)
    await app.vectors.fill(sentences=True)
    job = await app.queue_upload([Source(upload, UPLOADED, f"upload:{UPLOADED}")], board)
    await app.keys.create("board", [board], "reader")
    version = await app.taxonomy.propose([{"op": "rename", "path": "Vault", "name": "Strongroom"}])
    await app.taxonomy.activate(version.version, accept_widening=True)
    hidden = (await app.documents(1, category=board, scope=EVERYTHING))[0].document_id
    run = EvaluationRun("answers", "board", "1", {}, (RunRow("1", "What of the merger?", {"correct": (1, 1)}),))
    await app.evaluations.keep(run)
    await app.lexicon.add_all(OWN_WORDS)
    return await _add_hidden_cases(app, tuple(board), hidden) | {
        "hidden evaluation": str(run.run_id),
        "hidden document": hidden,
        "hidden job": str(job.job_id),
        "hidden original": scan,
        "hidden agent": str(agent.agent_id),
        "hidden item": waiting,
        "hidden answer": str(answers[0].item_id if answers else uuid.uuid4()),
        "administrator's trace": answer.trace_id,
    }
