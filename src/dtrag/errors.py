"""All errors of dtrag, one class per cause.

The docstring of a class is its message: what happened, and what to do next. `{names}` in it are replaced by keyword
arguments. The class attributes are the exit code of the command line and the status of the HTTP service.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from enum import Enum
from typing import ClassVar, Protocol


class Advice(Enum):
    """What to do next: the end of a message on the command line, and of the same message over HTTP.

    Advice for the operator of the service (`dtrag doctor`, `dtrag models pull`) has no request; messages have it.
    """

    LIST_DOCUMENTS = "`dtrag documents` lists what there is.", "`GET /documents` lists what there is."
    DOCUMENT_IDS = "`dtrag documents` lists them.", "`GET /documents` lists them."
    PASSAGE_IDS = "`dtrag search --json` has ids.", "`POST /search` has ids."
    FIND_PASSAGES = (
        "`dtrag review show` lists candidates with their ids, and `dtrag search --json` finds others.",
        "`GET /review/{{item_id}}` lists candidates with their ids, and `POST /search` finds others.",
    )
    PASSAGE_HASHES = "`dtrag review show` prints it after @.", "`GET /review/{{item_id}}` has it as content_hash."
    LIST_JOBS = "`dtrag jobs list` shows them.", "`GET /jobs` shows them."
    LIST_REVIEW = "`dtrag review list` shows the open ones.", "`GET /review` shows the open ones."
    CORRECT_ITEM = "Give it one with: dtrag review correct", "Give it one with: POST /review/{{item_id}}/correct"
    LIST_AGENTS = "`dtrag agents list` shows what there is.", "`GET /agents` shows what there is."
    LIST_REGULATIONS = "All of them: dtrag regulations list", "All of them: GET /regulations"
    ADD_REGULATIONS = "Read a regulation book with: dtrag ingest FILE", "Read a regulation book with: POST /documents"
    LIST_ENTRIES = "`dtrag lexicon list --field own` shows them.", "`GET /lexicon` shows them."
    ENTRY_WORDS = "See {option}.", "See the field {field}."
    REPLACE_ENTRY = (
        "Remove it first (dtrag lexicon remove {number}), then add one entry with all its official words.",
        "Remove it first (DELETE /lexicon/{number}), then add one entry with all its official words.",
    )
    LIST_CATEGORIES = "`dtrag taxonomy tree` lists the categories.", "`GET /taxonomy/active/tree` lists the categories."
    LIST_VERSIONS = "List them with: dtrag taxonomy list", "List them with: GET /taxonomy"
    ACTIVATE = (
        "Activate it with: dtrag taxonomy activate {version}",
        "Activate it with: POST /taxonomy/{version}/activate",
    )
    RETURN_TO = (
        "Return to it with: dtrag taxonomy rollback {version}",
        "Return to it with: POST /taxonomy/{version}/rollback",
    )
    ACCEPT_WIDENING = (
        "Review them with: dtrag taxonomy preview {version}; accept it with --accept-widening.",
        "Review them with: GET /taxonomy/{version}/preview; accept it with accept_widening.",
    )
    ACCEPT_LOWERING = (
        "Review them with: dtrag taxonomy preview {version}; accept it with --accept-lowering.",
        "Review them with: GET /taxonomy/{version}/preview; accept it with accept_lowering.",
    )
    ACCEPT_EFFECT = (
        "See it with --dry-run; accept it with {option}.",
        "See it with dry_run; accept it with {field}.",
    )
    LIST_TRACES = "`dtrag trace --list 20` shows the newest.", "`GET /traces` shows the newest."
    LIST_TOOLS = "`dtrag tools list` shows all tools.", "`GET /tools` shows all tools."
    REVIEW_TOOL = (
        "Review it again with `dtrag tools list`, then approve that.",
        ("Review it again with `GET /tools`, then approve that."),
    )
    APPROVE_TOOL = (
        "Review it with `dtrag tools list`, then approve it again with: dtrag tools approve {tool}",
        "Review it with `GET /tools`, then approve it again with: POST /tools/{tool}/approve",
    )

    def __init__(self, command: str, request: str) -> None:
        self.command = command
        self.request = request


class Coded(Protocol):
    """A message with a code, which `str` shows."""

    @property
    def code(self) -> str: ...
    @property
    def values(self) -> Mapping[str, str]: ...


class DtragError(Exception):
    """Something went wrong in dtrag."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    advised: ClassVar[Advice | None] = None
    """The advice of the message in the docstring."""

    def __init__(self, message: str | Coded | None = None, advice: Advice | None = None, **fields: object) -> None:
        template = inspect.cleandoc(type(self).__doc__ or "")
        self.message = message
        self.fields = fields
        self.over_http = str(message) if message is not None else template.format(**fields).replace("\n", " ")
        """The message for clients of the HTTP service; `str` is the one for the command line."""
        advice = advice if message is not None else self.advised
        if advice is None:
            super().__init__(self.over_http)
            return
        super().__init__(f"{self.over_http} {advice.command.format(**fields)}")
        self.over_http = f"{self.over_http} {advice.request.format(**fields)}"


class InvalidInput(DtragError, ValueError):
    """The input is not valid."""

    exit_code = 2
    http_status = 422


class BundleRefused(InvalidInput):
    """The bundle is not what was signed: {reason}"""


class IncompleteRequest(InvalidInput):
    """The request names nothing to do."""

    http_status = 400


class NotFound(DtragError):
    """There is no {kind} {name!r} that you may see."""

    http_status = 404
    advised = Advice.LIST_DOCUMENTS


class NoOriginal(DtragError):
    """Of the document {name!r} no original file is stored. Read its text instead. While the
    setting keep_originals is on, the originals of PDF files are stored (docs/how-to/originals.md)."""

    http_status = 404


class OriginalUnreadable(DtragError):
    """The original file of the document cannot be shown: {reason}. Read the text of the document instead."""

    http_status = 422


class Unauthorized(DtragError):
    """This service answers only callers with a key. Send it as `Authorization: Bearer <key>` or as `X-API-Key`;
    an administrator makes one with: dtrag keys create"""

    http_status = 401


class SignInRefused(Unauthorized):
    """The sign-in with the identity provider was refused: {reason} Sign in again, or ask an administrator."""


class ProviderUnavailable(DtragError):
    """The identity provider cannot be asked: {reason} Try again in a minute; with a key you can sign in meanwhile."""

    exit_code = 4
    http_status = 503


class Forbidden(DtragError):
    """Your key does not permit this: the role {needed} is required, and the key has the role {role}."""

    http_status = 403


class StaleSession(Forbidden):
    """This change needs the header X-CSRF-Token with the csrf of GET /session, because it comes with the cookie of a
    signed-in browser. Another tab may have signed in since this page was loaded: reload the page and try again."""


class FilterBypass(DtragError):
    """Filter bypass attempt detected: {reason} Filter by branches within your own scope only."""

    exit_code = 2
    http_status = 403


class Conflict(DtragError):
    """The resource was modified concurrently. Read its current state and try again."""

    http_status = 409


class TooManyRequests(DtragError):
    """The key is limited to {rate} requests per minute. Wait {seconds} seconds before the next."""

    http_status = 429


class BudgetSpent(DtragError):
    """The agent {name!r} has used its budget of {budget} for today; models are called again after midnight (UTC)."""

    http_status = 429


class FeatureOff(DtragError):
    """{feature} is not enabled. Set {variable}=true in the environment of the service or command, and start it
    again."""

    exit_code = 2
    http_status = 501


class MissingExtra(DtragError):
    """{feature} needs the optional part {extra!r}. Install it with: pip install 'dtrag[{extra}]'"""

    http_status = 501


class NeuralSelectorOff(DtragError):
    """The neural case selector is not enabled. An administrator enables it with the setting
    neural_case_selector."""

    http_status = 503


class ModelNotFound(DtragError):
    """The model {name!r} is not installed. Download it once with: dtrag models pull {name}"""

    http_status = 503


class ModelDamaged(DtragError):
    """The file {path} of the model {name!r} is missing or does not have the expected SHA-256.
    Download it again with: dtrag models pull {name}"""

    http_status = 503


class EmbedderFailed(DtragError):
    """The embedder {name!r} returned no vectors: {reason} Check the setting embedder, its server and its key."""

    http_status = 503


class ModelPullFailed(DtragError):
    """The model {name!r} could not be downloaded: {reason}"""

    http_status = 503


class LanguageModelFailed(DtragError):
    """The language model {model!r} returned no usable answer: {reason} Check the setting llm, its server and its
    key."""

    http_status = 503


class ModelNotAllowed(LanguageModelFailed):
    """The language model {model!r} was not called: {reason}"""


class ToolServerFailed(DtragError):
    """The MCP server {name!r} cannot be used: {reason} Its tools are unavailable meanwhile; everything else works."""

    http_status = 503


class ToolChanged(DtragError):
    """The tool {tool!r} has changed since it was approved."""

    http_status = 409
    advised = Advice.APPROVE_TOOL


class ToolFailed(DtragError):
    """The tool {tool!r} failed: {reason}"""

    http_status = 503


class Overloaded(DtragError):
    """The service is overloaded. Try again in {seconds} seconds."""

    http_status = 503


class EgressBlocked(InvalidInput):
    """Request to {address} blocked: {reason} An administrator can allow one host and port with the setting
    egress_allow."""


class FetchFailed(DtragError):
    """{host} returned no usable response: {reason} Try again later, or check the settings of web search."""

    http_status = 503


class SourceUnavailable(DtragError):
    """The source {address} cannot be read: {reason}"""

    http_status = 502


class TaxonomyServiceFailed(DtragError):
    """The service of the category tree returned none: {reason} Try again later; the active tree of dtrag itself is
    at /taxonomy/active/tree."""

    http_status = 502


class Stopping(DtragError):
    """The service is shutting down and could not finish this answer. Try again in a moment."""

    http_status = 503


class StorageFull(DtragError):
    """The disk of the data folder is too full to add data: {free} are free, and {needed} are required.
    Free some space, or lower the setting min_free_mb; searches and answers still work, and no restart is needed."""

    exit_code = 6
    http_status = 507


class LeaseLost(DtragError):
    """The job was cancelled, or another process continues it; nothing more was written here. `dtrag jobs list` shows
    the state of all jobs."""

    http_status = 409


class DatabaseUnavailable(DtragError):
    """The database cannot be reached: {reason} Diagnose it with: dtrag doctor"""

    exit_code = 4
    http_status = 503


class DatabaseStartFailed(DatabaseUnavailable):
    """The embedded database in {data_dir} did not start: {reason}"""


class SchemaTooNew(DtragError):
    """{place} has changes that this dtrag ({current}) does not know: {change}, made by {maker}. Nothing was read or
    changed. Update dtrag, or choose another place for its data with {setting}."""

    exit_code = 4
    http_status = 503


class BackupRefused(DtragError):
    """{file} cannot be restored: {reason} Nothing was changed."""

    http_status = 422


class InUse(DtragError):
    """Other processes use {data_dir}. Stop the service and all other commands first; nothing was changed."""

    exit_code = 4
    http_status = 409


class BackupFailed(DtragError):
    """The database was not {work}: {reason}"""

    http_status = 503


class DatabaseDamaged(DatabaseUnavailable):
    """A part of the database is damaged on the disk: {reason} Check the disk. `dtrag reindex` rebuilds the index from
    the stored texts; if it reports the same, restore a backup into another data folder (dtrag restore), or ingest the
    documents again there, with the setting data_dir."""


class NoActiveApp(DtragError):
    """There is {number} open app, so that the index is not known.
    Open one with `async with dtrag.open()`, or pass embedding_service and db_manager to the engine."""


class NotOpened(DtragError, AttributeError):
    """`{use}` was used on what dtrag.open() returns, which is not open yet: write `async with dtrag.open() as app:`.
    In scripts and notebooks without await: `with dtrag.open_sync() as app:`"""


class IndexMismatch(DtragError):
    """The index was built with the analyzer {stored!r}, but {configured!r} is configured; the two cannot be mixed.
    Use the version and settings that built it, or rebuild the index with: dtrag reindex"""

    http_status = 503


class ParseFailed(DtragError):
    """One file could not be read. The message is the reason shown beside the file's name in the report."""

    exit_code = 3
    http_status = 422


class WorkerFailed(DtragError):
    """A worker ended before it served, with exit code {code}. The log has the reason."""

    http_status = 503


class CannotListen(DtragError):
    """The service cannot listen on {host} port {port}: {reason}. Choose another with: dtrag up --port {other}"""

    exit_code = 4
    http_status = 503
