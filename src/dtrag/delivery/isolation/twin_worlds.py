"""Creates the twin worlds: two services on temporary databases, with a language model that records its prompts."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dtrag.app import App, open_throwaway
from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.case import FeedbackType, ReuseDecision, Vote
from dtrag.core.chat import Message, Reply, Usage
from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.isolation_runs import IsolationRun, IsolationRuns
from dtrag.delivery.isolation.asgi_client import send_request
from dtrag.errors import InvalidInput
from dtrag.evaluation.twins.askers import ASKERS
from dtrag.evaluation.twins.case_memory import QUESTIONS
from dtrag.evaluation.twins.library import (
    ONE,
    OTHER,
    OWN_WORDS,
    SERVER_FOLDER,
    UPLOADED,
    VISITORS,
    HiddenPart,
    Visitor,
    write_hidden,
    write_shared,
)
from dtrag.evaluation.twins.visits import Received, Send, Sent, World, sent_prompts
from dtrag.ingestion.sources import Source
from dtrag.ports import Embedder
from dtrag.settings import Settings, set_feature_flag

RATE = 1_000_000
"""Requests per minute of the visitors: rate limits are not tested here."""
UNSURE = {"override_settings": {"features": {"hitl_below_conf": 0.9}}}
MEMORY = "cbr_enabled"
"""The flag of the case memory, which the scenario of the case memory enables."""
CASE_BRANCHES = (("Handbook", "Leave"), ("학사", "휴학"), ("Kitchen", "Bread"))
"""Branches of the shared cases, one for each of their questions."""
FLAGS = ("debate_mode", "meta_planner", "mcp_tools")
"""Enabled in every third round, so that language models are also called for plans, debates and tools."""
_LONGEST_REPLY = 300


class RecordingModel:
    """A deterministic language model that records its prompts and answers with the longest line of the prompt."""

    id = "recording:model"

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        """See `ChatModel`."""
        return self._reply(messages)

    def _reply(self, messages: Sequence[Message]) -> Reply:
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
        reply = self._reply(messages)
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


@asynccontextmanager
async def twin_worlds(
    settings: Settings, embedder: Embedder | None, seed: int = 1, *, case_files: bool = False
) -> AsyncIterator[TwinWorlds]:
    """Two worlds that differ only in what no visitor may see; their databases are dropped at the end.

    Without an `embedder` the one of the settings is used, if any. `case_files`: each world keeps its cases in an SQLite
    file, and not in its database.
    """
    own = replace(
        settings, classify="auto", reranker="none", regulations="auto", llm=None, mcp_servers=None, trace_text="on"
    )
    with tempfile.TemporaryDirectory(prefix="dtrag-twins-") as name:
        folder = Path(name)
        shared = write_shared(folder / SERVER_FOLDER, _chance(seed))
        folders = [folder / f"cases-{number}" if case_files else None for number in range(2)]
        async with (
            open_throwaway(own, embedder, case_folder=folders[0]) as first,
            open_throwaway(own, first.embedder, case_folder=folders[1]) as second,
        ):
            parts = ((first, ONE), (second, OTHER))
            worlds = [await _world(app, part, shared, folder, seed) for app, part in parts]
            try:
                yield TwinWorlds((first, second), (worlds[0], worlds[1]))
            finally:
                for flag in FLAGS:
                    set_feature_flag(flag, None)


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # nosec B311  # noqa: S311 - no secret: the same number makes the same worlds


async def _world(app: App, part: HiddenPart, shared: dict[tuple[str, ...], Path], folder: Path, seed: int) -> World:
    """Fill the app and create a key for every visitor."""
    hidden = write_hidden(part, folder / f"{part.name}.jsonl", _chance(seed))
    if part is ONE:
        await _ingest(app, hidden)
        await _ingest_books(app, part, folder)
    for path, files in shared.items():
        await _ingest(app, files, path)
    if part is not ONE:
        await _ingest(app, hidden)
        await _ingest_books(app, part, folder)
    await _imagine(app)
    set_feature_flag(MEMORY, True)
    try:
        known = await _shared_objects(app, folder, next(iter(part.branches)))
        known |= await _hidden_objects(app, folder) if part is ONE else _no_objects()
    finally:
        set_feature_flag(MEMORY, None)
    return World(await _sender(app, folder / f"{part.name}-uploads", hides=part is ONE), known)


async def _imagine(app: App) -> None:
    """Imagined questions of all passages, in the words of their texts: those of hidden ones differ."""
    lines = []
    async for passage, names in app.imagination.named():
        words = passage.text.split()
        questions = [f"{' '.join(words[start : start + 4])}?" for start in (0, len(words) // 2)]
        lines.append(json.dumps({"id": names[-1], "questions": questions}))
    await app.imagination.import_lines(lines)
    await app.vectors.fill()


async def _ingest(app: App, path: Path, category: tuple[str, ...] | None = None) -> None:
    report = await app.ingest([path], category)
    if report.failed:
        raise InvalidInput(f"The documents of the twin worlds could not be read: {report.failed[0][1]}")


async def _ingest_books(app: App, part: HiddenPart, folder: Path) -> None:
    """Ingest the hidden regulation books. Raises `InvalidInput` for one that is not recognised as regulations."""
    for number, (path, text) in enumerate(part.books):
        file = folder / f"{part.name}-book-{number}.md"
        file.write_text(text, "utf-8")
        await _ingest(app, file, path)
    if part.books and not await app.regulations.regulations(scope=EVERYTHING):
        raise InvalidInput("The regulation books of the twin worlds were not recognised as regulations.")


async def _shared_objects(app: App, folder: Path, hidden: tuple[str, ...]) -> dict[str, str]:
    """Objects in both worlds: a decided item, and an agent that had a hidden branch before."""
    file = folder / "undecided.jsonl"
    file.write_text(json.dumps({"id": "u", "title": "Undecided", "text": "The orchard of the violin."}), "utf-8")
    await _ingest(app, file)
    [item] = [row for row in (await app.review.waiting())[0] if row.title == "Undecided"]
    await app.review.correct(str(item.item_id), ["Handbook", "Leave"])
    agent = await app.agents.create("1.0.0", [["Handbook", "Leave"], list(hidden)], None, name="Leave desk")
    await app.agents.update(str(agent.agent_id), "1.0.0", [["Handbook", "Leave"]], None)
    await _add_cases(app)
    return {"decided item": str(item.item_id), "shared agent": str(agent.agent_id)}


async def _add_cases(app: App) -> None:
    """Cases of both worlds, which cite shared documents."""
    documents = await app.documents(1_000, scope=EVERYTHING)
    for number, (question, path) in enumerate(zip(QUESTIONS, CASE_BRANCHES, strict=True)):
        # The same in both worlds: an edition of a regulation may have another id in a world with more regulations.
        cited = min((each.title, each.document_id) for each in documents if each.taxonomy_path == path)[1]
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


async def _add_hidden_cases(app: App, hidden: tuple[str, ...], document_id: str) -> dict[str, str]:
    """Cases of one world: one of a hidden branch, and one of a visible branch that cites a hidden document."""
    known: dict[str, str] = {}
    for name, path in (("hidden case", hidden), ("citing case", CASE_BRANCHES[0])):
        for number, question in enumerate(QUESTIONS):
            cited = [f"{document_id}:0"]
            case = await app.cases.add(question, path, f"Case of {number}", quality_score=1.0, passages=cited)
            suggested = await app.cases.suggest(question, path)
            assert suggested.log_id is not None  # noqa: S101 - the disk is not full
            await app.cases.feedback(suggested.log_id, case.case_id, FeedbackType.THUMBS_UP)
            await app.case_store.add_decision(
                ReuseDecision(
                    case_id=case.case_id, log_id=suggested.log_id, kind="vote", correct=True, at=datetime.now(UTC)
                )
            )
            known |= {name: case.case_id, "hidden log": suggested.log_id}
    return known


def _no_objects() -> dict[str, str]:
    """Ids of nonexistent objects."""
    documents = ("hidden document", "hidden agent", "hidden item", "hidden answer", "administrator's trace")
    others = ("hidden case", "citing case", "hidden log", "hidden evaluation")
    return {name: str(uuid.uuid4()) for name in (*documents, *others)}


async def _hidden_objects(app: App, folder: Path) -> dict[str, str]:
    """Objects in one world only: one of every kind, and traces of an administrator's work."""
    file = folder / "waiting.jsonl"
    file.write_text(json.dumps({"id": "w", "title": "Waiting", "text": "The copper timber of the violin."}), "utf-8")
    await _ingest(app, file)
    [waiting] = [row for row in (await app.review.waiting())[0] if row.title == "Waiting"]
    board, leave = ["Handbook", "Board"], ["Handbook", "Leave"]
    agent = await app.agents.create("1.0.0", [board], None, name="Board desk")
    mixed = await app.agents.create("1.0.0", [board, leave], UNSURE, name="Both desks")
    await app.agents.ask(mixed, "How many weeks of parental leave need a certificate?")
    answers = [row for row in (await app.review.waiting())[0] if row.kind == "answer"]
    answer = await app.ask("What is said about the merger?", scope=EVERYTHING)
    await app.conversations.add("administrators-talk", LOCAL, "What of the merger?", answer.text)
    upload = folder / "upload"
    upload.write_text("# Minutes\n\nThe severance of the board.\n", "utf-8")
    await app.ingest_sources([Source(upload, UPLOADED, f"upload:{UPLOADED}")], board, scope=EVERYTHING)
    await app.vectors.fill()
    await app.keys.create("board", [board], "reader")
    version = await app.taxonomy.propose([{"op": "rename", "path": "Vault", "name": "Strongroom"}])
    await app.taxonomy.activate(version.version, accept_widening=True)
    documents = await app.documents(1_000, scope=EVERYTHING)
    hidden = next(document for document in documents if document.taxonomy_path == tuple(board))
    cases = await _add_hidden_cases(app, tuple(board), hidden.document_id)
    run = EvaluationRun("answers", "board", "1", {}, (RunRow("1", "What of the merger?", {"correct": (1, 1)}),))
    await app.evaluations.keep(run)
    await app.lexicon.add_all(OWN_WORDS)
    return cases | {
        "hidden evaluation": str(run.run_id),
        "hidden document": hidden.document_id,
        "hidden agent": str(agent.agent_id),
        "hidden item": str(waiting.item_id),
        "hidden answer": str(answers[0].item_id if answers else uuid.uuid4()),
        "administrator's trace": answer.trace_id,
    }


async def _sender(app: App, uploads: Path, *, hides: bool) -> Send:
    """A function that sends requests through the service, with a key for each visitor and asker.

    `hides`: the service has another setting, and an isolation test is running, which only administrators may know.
    """
    api = create_app(replace(app.settings, trace_days=app.settings.trace_days + 1) if hides else app.settings)
    service = api.state.service
    service.opened = app
    # No isolation test inside of this one.
    service.isolation = IsolationRuns((sys.executable, "-c", "print('{\"leaks\": 0}')"))
    if hides:
        service.isolation.last = IsolationRun("running", datetime.now(UTC))
    await asyncio.to_thread(uploads.mkdir)
    service.uploads = uploads
    secrets = {}
    for visitor in (*VISITORS, *ASKERS):
        created = await app.keys.create(visitor.name, list(visitor.paths) or None, visitor.role, rate=RATE)
        secrets[visitor.name] = created.secret

    async def send(visitor: Visitor, sent: Sent) -> Received:
        content = sent.content
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        answered = await send_request(
            api, sent.method, sent.path, body, secret=secrets[visitor.name], content_type=sent.content_type
        )
        return Received(answered.status, answered.headers, answered.text)

    return send
