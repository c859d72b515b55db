"""The checks of `dtrag doctor`. Each result has a state, a detail, and advice on how to fix a problem."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from dtrag import llm_service
from dtrag.adapters.embedders.factory import LOCAL
from dtrag.adapters.embedders.factory import choose as choose_embedder
from dtrag.adapters.embedders.models import list_models
from dtrag.adapters.llms.langchain import LangChainModel
from dtrag.adapters.llms.langchain import choose as choose_llms
from dtrag.adapters.mcp.config import read_config
from dtrag.adapters.morphemes import choose as choose_analyzer
from dtrag.adapters.parsers import ocr
from dtrag.adapters.postgres.cluster import examine as examine_cluster
from dtrag.adapters.postgres.connect import (
    damaged_tables,
    index_counts,
    personal_data_counts,
    role_rights,
    schema_state,
)
from dtrag.adapters.postgres.database import ROLES
from dtrag.adapters.postgres.server import server
from dtrag.adapters.rerankers.models import choose as choose_reranker
from dtrag.app import App, open_app
from dtrag.core.access.confinement import OWNER
from dtrag.core.chat import Message
from dtrag.delivery.cli.reading import NoService, RunningService, stale
from dtrag.destinations import embeds
from dtrag.errors import DatabaseUnavailable, DtragError, IndexMismatch, InvalidInput, LanguageModelFailed
from dtrag.governance.stored_settings import unused_settings
from dtrag.settings import Settings, unknown_variables

State = Literal["ok", "warn", "fail"]
LLM_SECONDS, LLM_TOKENS = 3.0, 16
"""Limits of the test call of a language model; some providers require at least 16 tokens."""
LITTLE_SPACE = 1 << 30
NO_SPACE = 100 << 20
"""Free bytes in the data folder below which a warning is due, and below which PostgreSQL may stop."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report."""

    name: str
    state: State
    detail: str
    advice: str = ""


@dataclass(slots=True)
class Report:
    """All check results, in order."""

    checks: list[CheckResult] = field(default_factory=list)
    reachable: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.state != "fail" for check in self.checks)


async def examine(settings: Settings) -> Report:
    """Run all checks. A database that does not exist yet is not created."""
    report = Report(
        [
            _python(),
            *_variables(),
            *_optional_parts(settings),
            *_models(settings),
            *await _language_models(settings),
        ]
    )
    report.checks += await asyncio.to_thread(_service, settings)
    if settings.database_url:
        exists = True
    else:
        report.checks.append(_folder(settings.data_dir))
        try:
            exists = _embedded(settings.data_dir, report)
        except DatabaseUnavailable as error:
            report.reachable = False
            report.checks.append(CheckResult("server", "fail", str(error)))
            return report
    if exists:
        failed = {check.name for check in report.checks if check.state == "fail"}
        await _database(_without(failed, settings), report, compare_analyzer="kiwi" not in failed)
    return report


def _without(failed: set[str], settings: Settings) -> Settings:
    """The settings without the parts whose check failed, so that the database can be checked nevertheless."""
    without: dict[str, Callable[[Settings], Settings]] = {
        "language model": lambda current: replace(current, llm=None, llm_critic=None),
        "reranker": lambda current: replace(current, reranker="none"),
        "embedder": lambda current: replace(current, embedder="none"),
        "kiwi": lambda current: replace(current, morphemes="none"),
        "tool servers": lambda current: replace(current, mcp_servers=None),
    }
    for part in failed & without.keys():
        settings = without[part](settings)
    return settings


def _python() -> CheckResult:
    version = ".".join(map(str, sys.version_info[:3]))
    supported = sys.version_info >= (3, 11)
    advice = "" if supported else "dtrag needs Python 3.11 or later."
    return CheckResult("python", "ok" if supported else "fail", version, advice)


def _variables() -> Iterator[CheckResult]:
    if names := unknown_variables():
        detail = f"this version has no {', '.join(names)}: ignored."
        yield CheckResult("environment", "warn", detail, "dtrag settings shows all variables; correct or unset them")


def _optional_parts(settings: Settings) -> Iterator[CheckResult]:
    try:
        choose_analyzer(settings)
        installed = importlib.util.find_spec("kiwipiepy") is not None
        detail = "installed" if installed else "not installed (optional: pip install 'dtrag[kiwi]')"
        yield CheckResult("kiwi", "ok", detail)
    except DtragError as error:
        yield CheckResult("kiwi", "fail", str(error), "or unset DTRAG_MORPHEMES")
    yield _text_recognition(settings)
    try:
        read_config(settings.mcp_servers)
    except DtragError as error:
        yield CheckResult("tool servers", "fail", str(error), "correct the file, or unset DTRAG_MCP_SERVERS")


def _text_recognition(settings: Settings) -> CheckResult:
    if settings.ocr == "off":
        return CheckResult("text recognition", "ok", "off (DTRAG_OCR): scanned pages are not read")
    languages = ocr.languages(settings.ocr)
    if not languages or not ocr.is_usable():
        absent = "no pip install 'dtrag[ocr]'" if languages else "no tesseract"
        return CheckResult("text recognition", "ok", f"{absent}: pictures and scanned pages are not read (optional)")
    missing = sorted(
        {*(ocr.PREFERRED if settings.ocr == "auto" else settings.ocr.split("+"))} - {*languages.split("+")}
    )
    if missing:
        advice = f"install tesseract's data, in Debian: apt-get install tesseract-ocr-{missing[0]}"
        return CheckResult("text recognition", "warn", f"tesseract ({languages}) without {'+'.join(missing)}", advice)
    return CheckResult("text recognition", "ok", f"tesseract ({languages})")


def _models(settings: Settings) -> Iterator[CheckResult]:
    yield _reranker(settings)
    if settings.embedder == "none":
        yield CheckResult("embedder", "warn", "disabled: search is lexical only.", "unset DTRAG_EMBEDDER")
        return
    if settings.embedder not in LOCAL:
        yield _embedder(settings)
        return
    used = {embedder.model.name for embedder in LOCAL[settings.embedder]}
    models = [model for model in list_models(settings) if model.name in used]
    installed = {model.name for model in models if model.state != "absent"}
    for model in models:
        advice = f"dtrag models pull {model.name}"
        location = f"{model.name} in {model.path}"
        if model.state == "verified":
            about = f"{_languages(model.languages)}, {model.dim} dimensions"
            yield CheckResult("embedder", "ok", f"{location}, verified; {about}")
        elif model.state == "damaged":
            yield CheckResult("embedder", "fail", f"{location} is damaged.", advice)
        else:
            state: State = "warn" if installed or settings.embedder == "auto" else "fail"
            without = f"{', '.join(installed)} is used alone." if installed else "search is lexical only."
            yield CheckResult("embedder", state, f"{model.name} is not installed: {without}", advice)


def _embedder(settings: Settings) -> CheckResult:
    """Whether an embedder without pinned files can be used, as far as is known without loading it."""
    try:
        chosen = choose_embedder(settings)
    except DtragError as error:
        return CheckResult("embedder", "fail", str(error), "correct or unset DTRAG_EMBEDDER")
    assert chosen is not None  # noqa: S101 - only `none` and `auto` may give none
    return CheckResult("embedder", "ok", f"{chosen.id}; {_languages(chosen.languages)}, {chosen.dim} dimensions")


def _languages(supported: Collection[str]) -> str:
    if "*" in supported:
        return "languages: any"
    return f"languages: {', '.join(sorted(supported))} (others are searched by keywords only)"


def _reranker(settings: Settings) -> CheckResult:
    try:
        reranker = choose_reranker(settings)
    except DtragError as error:
        return CheckResult("reranker", "fail", str(error), "unset DTRAG_RERANKER")
    if reranker is not None:
        return CheckResult("reranker", "ok", f"{reranker.id} reranks the results")
    if settings.reranker == "none":
        return CheckResult("reranker", "ok", "disabled")
    return CheckResult("reranker", "ok", "none in the model folder (optional: dtrag models list)")


async def _language_models(settings: Settings) -> list[CheckResult]:
    """Send a short request to each configured model. The only check that uses the network and may cost money."""
    try:
        model, critic = choose_llms(settings)
    except DtragError as error:
        advice = "docs/how-to/language-models.md has an example for each provider"
        return [CheckResult("language model", "fail", str(error), advice)]
    if model is None:
        return [CheckResult("language model", "ok", "none: answers are quotations (optional: DTRAG_LLM)")]
    results = [await _test_call("language model", model)]
    if critic is not None and critic is not model:
        results.append(await _test_call("critic", critic))
    return results


async def _test_call(name: str, model: LangChainModel) -> CheckResult:
    await model.warm()  # imports do not count against the time limit
    try:
        await llm_service.generate_answer(
            [Message("user", "Say: yes")], model=model, max_tokens=LLM_TOKENS, seconds=LLM_SECONDS
        )
    except LanguageModelFailed:
        detail = f"{model.id} did not respond: {model.problem}"
        return CheckResult(
            name, "warn", detail, "answers are quotations until it works; check DTRAG_LLM, its server and its key"
        )
    finally:
        await model.close()
    return CheckResult(name, "ok", f"{model.id} responds")


def _service(settings: Settings) -> list[CheckResult]:
    """How many processes serve on the data folder; empty if none."""
    try:
        with RunningService(settings) as service:
            workers = service.workers()
            return [CheckResult("service", "ok", f"running, {workers} worker{'s' if workers > 1 else ''}")]
    except (NoService, DtragError) as reason:
        detail = f"running, but commands do not use it: {reason}."
        return [CheckResult("service", "ok", detail)] if str(reason) else []


def _folder(data_dir: Path) -> CheckResult:
    nearest = next((path for path in (data_dir, *data_dir.parents) if path.exists()), data_dir)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return CheckResult(
            "data folder", "fail", f"{data_dir} is not writable.", "choose another one with --data-dir FOLDER"
        )
    free = shutil.disk_usage(nearest).free
    detail = f"{data_dir}{'' if nearest == data_dir else ' (does not exist yet)'}, {free / 1e9:,.1f} GB free"
    if free < NO_SPACE:
        return CheckResult(
            "data folder", "fail", detail, "free some space, or choose another one with --data-dir FOLDER"
        )
    if free < LITTLE_SPACE:
        return CheckResult("data folder", "warn", detail, "free some space soon")
    return CheckResult("data folder", "ok", detail)


def _embedded(data_dir: Path, report: Report) -> bool:
    """Whether the embedded database exists; adds its check."""
    status = server.status(data_dir)
    if not status.initialised:
        report.checks.append(
            CheckResult(
                "server", "warn", "there is no database yet.", "create one with: dtrag demo, or dtrag ingest FOLDER"
            )
        )
        return False
    running = f"running, pid {status.pid}" if status.pid is not None else "not running (each command starts it)"
    detail = f"PostgreSQL {status.version}, {running}, {status.size_bytes / 1e6:,.0f} MB"
    report.checks.append(CheckResult("server", "ok", detail))
    return True


async def _database(settings: Settings, report: Report, *, compare_analyzer: bool) -> None:
    try:
        async with open_app(settings, standby=True) as app:
            kind = "from DTRAG_DATABASE_URL" if settings.database_url else f"{settings.database_name!r}, embedded"
            report.checks.append(CheckResult("database", "ok", f"{kind}, responds"))
            if app.database.on_standby:
                advice = "a service and everything that writes need the primary"
                report.checks.append(CheckResult("standby", "warn", stale(await app.database.last_replayed()), advice))
            report.checks.append(await _schema(app))
            cluster = await examine_cluster(app.database)
            report.checks.extend(CheckResult("cluster", entry.state, entry.detail, entry.advice) for entry in cluster)
            report.checks.append(await _pages(app))
            report.checks.append(await _roles(app))
            if compare_analyzer:
                report.checks.append(await _identity(app))
            report.checks.extend(await _contents(app))
            report.checks.extend(await _personal_data(app))
            report.checks.append(await _jobs(app))
            report.checks.extend(await _public(app))
            report.checks.extend(await _grades(app))
            notes = unused_settings((await app.index.snapshot()).settings)
            report.checks.extend(CheckResult("stored settings", "warn", note) for note in notes)
    except DatabaseUnavailable as error:
        report.reachable = False
        report.checks.append(CheckResult("database", "fail", str(error)))
    except InvalidInput as error:
        report.checks.append(CheckResult("settings", "fail", str(error), "dtrag settings shows all of them"))
    except DtragError as error:
        report.checks.append(CheckResult("database", "fail", str(error)))


async def _grades(app: App) -> list[CheckResult]:
    """What may be sent where; nothing while no branch has a grade and no limit is set."""
    tree, known = await app.tree_grades(), app.destinations()
    if not (tree.highest or app.grade_limits.entries):
        return []
    names, results = app.grades.names, list[CheckResult]()
    own = {node.grade for node in tree.taxonomy.nodes.values() if node.grade}
    if unknown := sorted(own - set(names)):
        detail = f"the tree has {', '.join(unknown)}, which DTRAG_GRADES does not: they count as {names[-1]}."
        results.append(CheckResult("grades", "warn", detail, "name them in DTRAG_GRADES, the lowest first"))
    for destination, limit in known.items():
        results.append(CheckResult("grades", "ok", f"{destination}: texts up to {names[limit]}"))
    used = {app.grade_limits.entry(destination) for destination in known}
    for entry in sorted(app.grade_limits.entries.keys() - used):
        detail = f"DTRAG_GRADE_LIMITS names {entry}, which is nothing that texts are sent to."
        results.append(CheckResult("grades", "warn", detail, "compare it with the destinations above"))
    if not embeds(app.embedder, tree.highest):
        detail = f"the embedder may not be sent texts of {names[tree.highest]}: no vectors are made."
        results.append(CheckResult("grades", "warn", detail, "use an embedder on this machine, or raise its limit"))
    return results


async def _schema(app: App) -> CheckResult:
    """Opening applies missing migrations, and refuses a database that has others."""
    schema = await schema_state(app.database)
    return CheckResult("schema", "ok", f"current, {schema.applied} of {schema.known} migrations")


async def _pages(app: App) -> CheckResult:
    damaged = await damaged_tables(app.database)
    if damaged:
        return CheckResult(
            "pages", "fail", f"damaged on the disk: {', '.join(damaged)}. {next(iter(damaged.values()))}"
        )
    return CheckResult("pages", "ok", "the checksums of all tables are right")


async def _public(app: App) -> list[CheckResult]:
    """Which branches are public; nothing where none is meant to be."""
    if app.public is None:
        return []
    grant, taxonomy = app.public.grant, (await app.index.snapshot()).taxonomy
    if missing := grant.unresolved(taxonomy):
        names = ", ".join(map(str, missing))
        return [CheckResult("public", "warn", f"no category: {names}", "correct DTRAG_PUBLIC (dtrag taxonomy tree)")]
    names = ", ".join(str(anchor.path) for anchor in grant.anchors)
    return [CheckResult("public", "ok", f"everybody may read {names}")]


async def _roles(app: App) -> CheckResult:
    rights = await role_rights(app.database)
    unrestricted = ", ".join(entry.role for entry in rights if entry.unrestricted)
    names = ", ".join(entry.role for entry in rights)
    if unrestricted or len(rights) != len(ROLES):
        advice = f"as an administrator: alter role {unrestricted or names} nosuperuser nobypassrls"
        return CheckResult("roles", "fail", f"a role may see everything: {unrestricted or names}.", advice)
    return CheckResult("roles", "ok", f"{names}; none is a superuser, none bypasses row-level security")


async def _identity(app: App) -> CheckResult:
    stored = dict((await app.index.snapshot()).settings)
    try:
        await app.check_identity()
    except IndexMismatch as error:
        return CheckResult("index", "fail", str(error))
    if stored.get("rebuilding"):
        return CheckResult("index", "warn", "a reindex is running or was interrupted.", "dtrag reindex")
    models = ", ".join(sorted(set(filter(None, stored.get("spaces", {}).values())))) or "none yet"
    return CheckResult("index", "ok", f"analyzer {stored.get('analyzer', 'none yet')}, vectors of {models}")


async def _jobs(app: App) -> CheckResult:
    """Whether jobs fail, or wait without being taken."""
    counts = await app.jobs.counts()
    numbers = Counter[str]()
    for count in counts:
        numbers[count.state] += count.jobs
    detail = ", ".join(f"{number:,} {state}" for state, number in sorted(numbers.items())) or "none"
    if await app.jobs.not_taken(counts):
        return CheckResult("jobs", "warn", f"{detail}; no process takes them.", "dtrag up")
    if reason := next((count.reason for count in counts if count.reason), None):
        return CheckResult("jobs", "warn", f"{detail}; {reason}", "dtrag jobs list")
    if numbers["failed"]:
        return CheckResult("jobs", "warn", detail, "dtrag jobs list --state failed")
    return CheckResult("jobs", "ok", detail)


async def _contents(app: App) -> list[CheckResult]:
    documents, chunks = await app.counts(scope=OWNER)
    vectors, uncounted = await index_counts(app.database)
    advice = "" if documents else "dtrag ingest FOLDER"
    detail = f"{documents:,} documents, {chunks:,} chunks, {vectors:,} vectors"
    results = [CheckResult("contents", "ok", detail, advice)]
    if pending := await app.pending_vectors(scope=OWNER):
        detail = f"{pending:,} of {chunks:,} chunks wait for their vectors and are found by their words only."
        results.append(CheckResult("vectors", "warn", detail, "dtrag ingest, or a running service, makes them"))
    if uncounted:
        detail = f"{uncounted:,} batches are being written, or were interrupted."
        results.append(CheckResult("statistics", "warn", detail, "the next dtrag ingest repairs them"))
    return results


async def _personal_data(app: App) -> list[CheckResult]:
    """What the documents contain, and which of them were stored with another policy; nothing if none has a policy."""
    policy, rows = app.personal_data, await personal_data_counts(app.database)
    if policy.mode == "off" and not any(stored for stored, _, _ in rows):
        return []
    kinds = Counter[str]()
    for _, names, documents in rows:
        kinds.update(dict.fromkeys(filter(None, names.split(",")), documents))
    counted = ", ".join(f"{kind} in {documents:,}" for kind, documents in sorted(kinds.items())) or "none found"
    results = [CheckResult("personal data", "ok", f"{policy.mode}; documents with {counted}")]
    others = Counter[str]()
    for stored, _, documents in rows:
        others[stored.partition("-")[0] or "off"] += documents if stored != policy.id else 0
    masked = 0 if policy.masks else others["mask"]
    if number := others.total() - masked:
        detail = f"{number:,} documents were read with another mode or other rules ({_modes(others)})."
        results.append(CheckResult("personal data", "warn", detail, "dtrag reindex"))
    if masked:
        detail = f"{masked:,} documents were masked when they were read, and stay so: their values are not stored."
        results.append(CheckResult("personal data", "warn", detail, "dtrag ingest the original files again"))
    return results


def _modes(counts: Counter[str]) -> str:
    return ", ".join(mode for mode, number in sorted(counts.items()) if number)
