"""What `dtrag doctor` looks at. Every check is a value: its state, what was found, and what to type about it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dtrag import llm_service
from dtrag.adapters.analyzers.factory import choose as choose_analyzer
from dtrag.adapters.embedders.factory import choose as choose_embedder
from dtrag.adapters.embedders.models import MINILM, list_models
from dtrag.adapters.llms.factory import choose as choose_llms
from dtrag.adapters.llms.langchain import LangChainModel
from dtrag.adapters.mcp.config import read_config
from dtrag.adapters.postgres.database import ROLES
from dtrag.adapters.postgres.inspection import index_counts, role_rights, schema_state
from dtrag.adapters.postgres.server import server
from dtrag.adapters.rerankers.factory import choose as choose_reranker
from dtrag.app import App, open_app
from dtrag.core.access.confinement import OWNER
from dtrag.core.chat import Message
from dtrag.errors import DatabaseUnavailable, DtragError, IndexMismatch, InvalidInput, LanguageModelFailed
from dtrag.settings import Settings

State = Literal["ok", "warn", "fail"]
LLM_SECONDS, LLM_TOKENS = 3.0, 16
"""How long `dtrag doctor` waits for a language model; 16 is the least that some providers accept as a limit."""
LITTLE_SPACE = 1 << 30
NO_SPACE = 100 << 20
"""Bytes free in the data folder below which a warning is due, and below which PostgreSQL may stop at any moment."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    state: State
    detail: str
    advice: str = ""


@dataclass(slots=True)
class Report:
    """All checks, in the order in which they were made."""

    checks: list[Check] = field(default_factory=list)
    reachable: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.state != "fail" for check in self.checks)


async def examine(settings: Settings) -> Report:
    """Make every check. An index that does not exist yet is not made to look at it."""
    report = Report([_python(), *_optional_parts(settings), *_models(settings), *await _language_models(settings)])
    if settings.database_url:
        exists = True
    else:
        report.checks.append(_folder(settings.data_dir))
        try:
            exists = _embedded(settings.data_dir, report)
        except DatabaseUnavailable as error:
            report.reachable = False
            report.checks.append(Check("server", "fail", str(error)))
            return report
    if exists:
        failed = {check.name for check in report.checks if check.state == "fail"}
        await _database(_without(failed, settings), report, compare_analyzer="kiwi" not in failed)
    return report


def _without(failed: set[str], settings: Settings) -> Settings:
    """The settings without the parts whose own check failed: these say nothing about the database."""
    without: dict[str, dict[str, Any]] = {
        "language model": {"llm": None, "llm_critic": None},
        "reranker": {"reranker": "none"},
        "embedder": {"embedder": "none"},
        "kiwi": {"morphemes": "none"},
        "tool servers": {"mcp_servers": None},
    }
    changes = {name: value for part in failed & set(without) for name, value in without[part].items()}
    return replace(settings, **changes)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return Check("python", "ok" if good else "fail", version, "" if good else "dtrag needs Python 3.11 or later.")


def _optional_parts(settings: Settings) -> Iterator[Check]:
    try:
        choose_analyzer(settings)
        found = importlib.util.find_spec("kiwipiepy") is not None
        yield Check("kiwi", "ok", "installed" if found else "not installed (optional: pip install 'dtrag[kiwi]')")
    except DtragError as error:
        yield Check("kiwi", "fail", str(error), "or unset DTRAG_MORPHEMES")
    try:
        read_config(settings.mcp_servers)
    except DtragError as error:
        yield Check("tool servers", "fail", str(error), "correct the file, or unset DTRAG_MCP_SERVERS")


def _models(settings: Settings) -> Iterator[Check]:
    yield _reranker(settings)
    if settings.embedder == "none":
        yield Check("embedder", "warn", "switched off: search is lexical only.", "unset DTRAG_EMBEDDER")
        return
    if settings.embedder not in {"auto", MINILM.name}:
        yield _embedder(settings)
        return
    for model in list_models(settings):
        advice = f"dtrag models pull {model.name}"
        where = f"{model.name} in {model.path}"
        if model.state == "verified":
            languages = ", ".join(model.languages)
            yield Check("embedder", "ok", f"{where}, verified; languages: {languages}, {model.dim} dimensions")
        elif model.state == "damaged":
            yield Check("embedder", "fail", f"{where} is damaged.", advice)
        else:
            state: State = "fail" if settings.embedder == model.name else "warn"
            yield Check("embedder", state, f"{model.name} is not here: search is lexical only.", advice)


def _embedder(settings: Settings) -> Check:
    """Of an embedder other than MiniLM: whether it can be used, as far as is known before it is loaded."""
    try:
        chosen = choose_embedder(settings)
    except DtragError as error:
        return Check("embedder", "fail", str(error), "correct or unset DTRAG_EMBEDDER")
    assert chosen is not None  # noqa: S101 - only `none` and `auto` may give none
    languages = "any" if "*" in chosen.languages else ", ".join(sorted(chosen.languages))
    return Check("embedder", "ok", f"{chosen.id}; languages: {languages}, {chosen.dim} dimensions")


def _reranker(settings: Settings) -> Check:
    try:
        found = choose_reranker(settings)
    except DtragError as error:
        return Check("reranker", "fail", str(error), "unset DTRAG_RERANKER")
    if found is not None:
        return Check("reranker", "ok", f"{found.id} puts the results in their last order")
    if settings.reranker == "none":
        return Check("reranker", "ok", "switched off")
    return Check("reranker", "ok", "none in the model folder (optional: dtrag models list)")


async def _language_models(settings: Settings) -> list[Check]:
    """Each one that is configured is asked for a word: the one check that uses the network, and may cost a little."""
    try:
        model, critic = choose_llms(settings)
    except DtragError as error:
        advice = "docs/how-to/language-models.md has an example for each provider"
        return [Check("language model", "fail", str(error), advice)]
    if model is None:
        return [Check("language model", "ok", "none: answers are quotations (optional: DTRAG_LLM)")]
    found = [await _answers("language model", model)]
    if critic is not None and critic is not model:
        found.append(await _answers("critic", critic))
    return found


async def _answers(name: str, model: LangChainModel) -> Check:
    await model.warm()  # what is imported here does not count against the model's time
    try:
        await llm_service.generate_answer(
            [Message("user", "Say: yes")], model=model, max_tokens=LLM_TOKENS, seconds=LLM_SECONDS
        )
    except LanguageModelFailed:
        detail = f"{model.id} gave no answer: {model.problem}"
        return Check(
            name, "warn", detail, "answers are quotations meanwhile; look at DTRAG_LLM, its server and its key"
        )
    finally:
        await model.close()
    return Check(name, "ok", f"{model.id} answers")


def _folder(data_dir: Path) -> Check:
    nearest = next((path for path in (data_dir, *data_dir.parents) if path.exists()), data_dir)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return Check("data folder", "fail", f"{data_dir} is not writable.", "choose another one with --data-dir FOLDER")
    free = shutil.disk_usage(nearest).free
    detail = f"{data_dir}{'' if nearest == data_dir else ' (not made yet)'}, {free / 1e9:,.1f} GB free"
    if free < NO_SPACE:
        return Check("data folder", "fail", detail, "free some space, or choose another one with --data-dir FOLDER")
    if free < LITTLE_SPACE:
        return Check("data folder", "warn", detail, "free some space soon")
    return Check("data folder", "ok", detail)


def _embedded(data_dir: Path, report: Report) -> bool:
    """Whether there is a cluster to look into."""
    status = server.status(data_dir)
    if not status.initialised:
        report.checks.append(
            Check("server", "warn", "there is no database yet.", "make one with: dtrag demo, or dtrag ingest FOLDER")
        )
        return False
    running = f"running, pid {status.pid}" if status.pid is not None else "not running (each command starts it)"
    detail = f"PostgreSQL {status.version}, {running}, {status.size_bytes / 1e6:,.0f} MB"
    report.checks.append(Check("server", "ok", detail))
    return True


async def _database(settings: Settings, report: Report, *, compare_analyzer: bool) -> None:
    try:
        async with open_app(settings) as app:
            where = "behind DTRAG_DATABASE_URL" if settings.database_url else f"{settings.database_name!r}, embedded"
            report.checks.append(Check("database", "ok", f"{where}, answers"))
            report.checks.append(await _schema(app))
            report.checks.append(await _roles(app))
            if compare_analyzer:
                report.checks.append(await _identity(app))
            report.checks.extend(await _contents(app))
    except DatabaseUnavailable as error:
        report.reachable = False
        report.checks.append(Check("database", "fail", str(error)))
    except InvalidInput as error:
        report.checks.append(Check("settings", "fail", str(error), "dtrag settings shows all of them"))
    except DtragError as error:
        report.checks.append(Check("database", "fail", str(error)))


async def _schema(app: App) -> Check:
    """Opening applied the missing migrations; unknown ones come from a later version."""
    schema = await schema_state(app.database)
    if schema.unknown:
        return Check("schema", "fail", f"made by a later version of dtrag ({schema.unknown[-1]}).", "update dtrag")
    return Check("schema", "ok", f"current, {schema.applied} of {schema.known} migrations")


async def _roles(app: App) -> Check:
    rights = await role_rights(app.database)
    unrestricted = ", ".join(entry.role for entry in rights if entry.unrestricted)
    names = ", ".join(entry.role for entry in rights)
    if unrestricted or len(rights) != len(ROLES):
        advice = f"as an administrator: alter role {unrestricted or names} nosuperuser nobypassrls"
        return Check("roles", "fail", f"a role may see everything: {unrestricted}.", advice)
    return Check("roles", "ok", f"{names}; none is a superuser, none bypasses row-level security")


async def _identity(app: App) -> Check:
    stored = dict((await app.index.snapshot()).settings)
    try:
        await app.check_identity()
    except IndexMismatch as error:
        return Check("index", "fail", str(error))
    if stored.get("rebuilding"):
        return Check("index", "warn", "a reindex is running or was interrupted.", "dtrag reindex")
    embedder = stored.get("embedder", {}).get("id", "none yet")
    return Check("index", "ok", f"analyzer {stored.get('analyzer', 'none yet')}, embedder {embedder}")


async def _contents(app: App) -> list[Check]:
    documents, chunks = await app.counts(scope=OWNER)
    vectors, uncounted = await index_counts(app.database)
    advice = "" if documents else "dtrag ingest FOLDER"
    found = [Check("contents", "ok", f"{documents:,} documents, {chunks:,} chunks, {vectors:,} vectors", advice)]
    if uncounted:
        found.append(
            Check(
                "statistics",
                "warn",
                f"{uncounted:,} batches are being written, or were interrupted.",
                "the next dtrag ingest puts them right",
            )
        )
    return found
