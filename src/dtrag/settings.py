"""Settings and feature flags, each declared once with its help. The only module that reads the environment.

`Settings.load()` reads the environment and the files of `setting_files.py` once; its result is immutable. Settings that
administrators may change are stored in the database (`governance/changed_settings.py`). Flags are read live, so that a
change takes effect on the next request (`flag("...")`). `dtrag settings` and docs/reference/settings.md come from the
tables.
"""

from __future__ import annotations

import hashlib
import math
import os
import string
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

from dtrag.core.response import response
from dtrag.errors import InvalidInput
from dtrag.setting_files import Known, no_setting, setting_files

PREFIX = "DTRAG_"
CONFIG = "DTRAG_CONFIG"
"""The variable with the path of the only file of settings to read, or `none`."""


def default_data_dir() -> Path:
    """The platform's folder for user data; below /var/lib for root, whose server runs as a separate system user."""
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/dtrag")
    import platformdirs

    return Path(platformdirs.user_data_dir("dtrag", appauthor=False))


@dataclass(frozen=True, slots=True)
class Changeable:
    """How a setting may be changed while services run."""

    __pydantic_config__ = response()

    kind: Literal["number", "choice", "text", "colour", "branches"]
    """Kind of the value: branches are paths separated by commas, or * for all; a colour is such as #7a1f3d."""
    least: float = 0
    """The smallest number."""
    most: float = 1_000_000_000_000
    """The largest number, or the most characters of a text."""
    choices: tuple[str, ...] = ()
    """The values of a choice."""

    def check(self, name: str, value: Any) -> None:
        """Raise `InvalidInput` for a value that it may not have. Paths of branches are checked where they are used."""
        if self.kind == "number" and not self.least <= value <= self.most:
            expected = f"from {self.least:g} to {self.most:,.15g}"
        elif self.kind == "choice" and value not in self.choices:
            expected = f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        elif self.kind == "colour" and value and not _is_colour(value):
            expected = "# and six hexadecimal digits, such as #7a1f3d"
        elif self.kind == "text" and len(value) > self.most:
            raise InvalidInput(f"{variable_of(name)} has {len(value)} characters: shorten it to {self.most:g}.")
        else:
            return
        shown = repr(value[:40]) if isinstance(value, str) else f"{value:g}"
        raise InvalidInput(f"{variable_of(name)} is {shown}, but must be {expected}.")


def _is_colour(text: str) -> bool:
    return len(text) == 7 and text[0] == "#" and set(text[1:]) <= set(string.hexdigits)


_PER_MINUTE = Changeable("number", least=1, most=1_000_000)
_PER_DAY = Changeable("number")
_DAYS = Changeable("number", most=36_500)
_ON_OR_OFF = Changeable("choice", choices=("on", "off"))


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def _setting(
    default: Any,
    help: str,  # noqa: A002
    *,
    secret: bool = False,
    address: bool = False,
    also: str = "",
    changeable: Changeable | None = None,
) -> Any:
    """`address` is shown without credentials; `also` is another environment variable, which other programs use too."""
    metadata = {"help": help, "secret": secret, "address": address, "also": also, "changeable": changeable}
    if callable(default):
        return field(default_factory=default, metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)


def address_without_credentials(address: str) -> str:
    """An address without user information, query and fragment; `***` where something was left out.

    A password may contain every character, so everything before the last `@` counts as user information.
    """
    scheme, separator, rest = address.rpartition("://") if address.count("://") == 1 else ("", "", address)
    user, at, place = rest.rpartition("@")
    if "?" in user or "#" in user:  # whether the @ ends a password or is part of the query is unknown
        return f"{scheme}{separator}***"
    path = place.partition("?")[0].partition("#")[0]
    ending = "?***" if path != place else ""
    return f"{scheme}{separator}{'***@' if at else ''}{path}{ending}"


class SettingRow(TypedDict):
    """A setting for display; `value` of a set secret is "(set)", and that of an address has no credentials."""

    name: str
    environment: str
    value: Any
    default: Any
    is_default: bool
    secret: bool
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the process. The environment variable of `data_dir` is `DTRAG_DATA_DIR`, and so on."""

    data_dir: Path = _setting(default_data_dir, "Folder of the embedded database and of all other data of dtrag.")
    database_url: str | None = _setting(
        None,
        "A PostgreSQL (14 or later, with pgvector 0.8 or later) to use instead of the embedded one.",
        secret=True,
    )
    database_name: str = _setting("dtrag", "Database inside the embedded server.")
    embedder: str = _setting(
        "auto",
        "auto (minilm for English, e5 for all other languages), none, or the name of an embedder: minilm, e5, "
        "fastembed (or fastembed:MODEL), openai (or openai:MODEL), or dir:PATH for a folder with a model in ONNX "
        "(docs/how-to/own-models.md).",
    )
    embed_languages: str = _setting(
        "",
        "Languages of a fastembed model that dtrag does not know, or of dir:PATH (all by default), as two-letter codes "
        "separated by commas, or *: texts in other languages get no vectors.",
    )
    embed_base_url: str | None = _setting(
        None,
        "Address of a server that speaks the OpenAI protocol, for openai embedders (default: OpenAI's).",
        address=True,
    )
    embed_api_key: str | None = _setting(
        None, "Key of the embedding server (default: OPENAI_API_KEY, for OpenAI's own server).", secret=True
    )
    vector_weight: float = _setting(
        0.5,
        "Weight of the vectors when results by words and by vectors are fused, from 0 to 1.",
    )
    regulations: str = _setting(
        "auto",
        "Everyday words interpreted as official ones, and a second ranking of articles: auto (when the caller can see "
        "Korean regulations), on, off.",
    )
    embed_threads: int = _setting(2, "CPU threads of the embedder, and of the reranker.")
    reranker: str = _setting(
        "auto",
        "auto (a cross-encoder in the model folder, if there is one), none, the name of a cross-encoder, or dir:PATH "
        "for a folder with its model.onnx and tokenizer.json.",
    )
    judge: str = _setting(
        "lexical",
        "What judges answers in evaluations: lexical (words, numbers and names, without a model), model (the language "
        "model of DTRAG_LLM), or a folder with model.onnx and tokenizer.json of a claim checker.",
    )
    model_dir: Path | None = _setting(None, "Folder of model files (default: `models` in the data folder).")
    morphemes: str = _setting("none", "Korean morphemes besides bigrams: none, or kiwi (needs dtrag[kiwi]).")
    embed_query_ms: int = _setting(
        1_000,
        "Longest wait for the vector of a query, in milliseconds; after that the search uses keywords alone. "
        "Multiplied by PIPELINE_TIMEOUT_MULTIPLIER, and limited by the time left for the retrieve step.",
    )
    classify: str = _setting(
        "auto", "auto (documents without a category are classified, or wait in the review queue), or off."
    )
    taxonomy_base: str | None = _setting(
        None,
        "Address of another service whose category trees `GET /api/taxonomy/tree/{version}` returns, such "
        "as http://127.0.0.1:8000; also as TAXONOMY_BASE. If not set: those of dtrag itself.",
        address=True,
        also="TAXONOMY_BASE",
    )
    filter_keys: str = _setting(
        "author,department,kind,language,source,status,version,year,regulation",
        "Metadata fields that searches may be filtered by, separated by commas.",
    )
    pii: str = _setting(
        "off",
        "Personal data such as resident numbers, phones and e-mail addresses: off, mark (documents and passages with "
        "some name their kinds), or mask (their text is replaced before anything is stored, in questions too).",
    )
    pii_kinds: str = _setting(
        "all",
        "Kinds of personal data, separated by commas: all, or of email, resident, foreigner, card, phone, account, "
        "passport, licence, and the own ones.",
    )
    pii_rules: Path | None = _setting(
        None, "A TOML file with own kinds of personal data (docs/how-to/personal-data.md)."
    )
    index_cache_mb: int = _setting(
        256,
        "Most memory of a process for the postings of the lexical index while no mapped files can be written, in MiB; "
        "a million passages take about 400. Searches by words of a larger index are refused then.",
    )
    cache_size: int = _setting(1_000, "Searches whose results are cached in memory; 0 for none.")
    cache_seconds: int = _setting(3_600, "How long results of searches are cached, in seconds.")
    pool_size: int = _setting(4, "Database connections per role.")
    statement_timeout_ms: int = _setting(15_000, "Longest time of one search statement, in milliseconds.")
    min_free_mb: int = _setting(
        512,
        "Documents are refused while less than this is free on the data folder's disk, in MiB (at most a fifth of the "
        "disk counts); 0 for no limit.",
    )
    parse_memory_mb: int = _setting(1_024, "Memory limit of the parser process, in MiB.")
    parse_seconds: int = _setting(
        120, "Longest time that the parser process may take without output for one file, in seconds."
    )
    max_file_mb: int = _setting(512, "Larger files are refused, in MiB.")
    ocr: str = _setting(
        "auto",
        "Text recognition of pictures and scanned PDF pages by tesseract: auto (kor+eng, those installed), off, or "
        "languages such as eng+jpn.",
    )
    max_passages: int = _setting(
        50_000,
        "Documents of more passages are refused. A document is a file, a line of JSON lines, or 2,000 rows of CSV.",
    )
    keep_originals: str = _setting(
        "off",
        "on or off: whether PDF files of at most 32 MiB are stored with their documents, so that a source can be shown "
        "on its page (docs/how-to/originals.md). Never with DTRAG_PII=mask.",
    )
    max_upload_mb: int = _setting(64, "Larger uploads over HTTP are refused, in MiB.")
    agent_tokens_per_day: int = _setting(
        2_000_000,
        "Tokens that the models of an agent may use per day (UTC), unless its manifest sets another limit.",
        changeable=_PER_DAY,
    )
    agent_krw_per_day: int = _setting(
        10_000,
        "Won that the models of an agent may cost per day (UTC), unless its manifest sets another limit.",
        changeable=_PER_DAY,
    )
    decision: str = _setting(
        "balanced",
        "How sure an answer must be: careful (a wrong answer costs three times as much), balanced, eager (a third).",
        changeable=Changeable("choice", choices=("careful", "balanced", "eager")),
    )
    review_below: float = _setting(
        0.0,
        "Answers with a lower confidence wait in the review queue, from 0 (off) to 1; agents have a threshold of their "
        "own.",
        changeable=Changeable("number", most=1),
    )
    reader: str = _setting(
        "on",
        "on or off: whether the language model reads the first six passages, puts those that answer first and helps to "
        "decide, before an answer is composed (one more call of DTRAG_LLM).",
        changeable=_ON_OR_OFF,
    )
    debate: str = _setting(
        "always",
        "While FEATURE_DEBATE_MODE is on: always, or auto (only for answers of doubtful confidence: a debate takes "
        "five model calls).",
        changeable=Changeable("choice", choices=("always", "auto")),
    )
    audit: str = _setting("all", "What the audit log records: all, changes (with refusals, without reads), or off.")
    traces: str = _setting(
        "all",
        "Which runs of the pipeline leave a trace: all, errors (only where something failed or was degraded), or off.",
    )
    trace_days: int = _setting(30, "Days that traces are kept; 0 for no limit.", changeable=_DAYS)
    trace_text: str = _setting(
        "off", "on or off: whether traces contain questions, answers, prompts and replies besides times and counts."
    )
    answer_key: str | None = _setting(
        None,
        "Secret of 64 hexadecimal digits that signs bundles of answers and hashes their questions; not set: the file "
        "answer-key of the data folder, made when it is first needed. Services of one database need the same.",
        secret=True,
    )
    conversation_days: int = _setting(
        90, "Days that a conversation is kept after its last question; 0 for no limit.", changeable=_DAYS
    )
    rate_per_minute: int = _setting(
        600, "Requests per minute of a key over HTTP, unless the key was created with another rate."
    )
    public: str = _setting(
        "",
        "Branches that callers without a key may search, ask about and read, as paths separated by commas; * for all "
        "categories, not set: none (docs/how-to/public-access.md).",
        changeable=Changeable("branches"),
    )
    grades: str = _setting(
        "O,S,C", "Grades that branches of the category tree may have, the lowest first, separated by commas."
    )
    grade_limits: str = _setting(
        "",
        "Which destination may be sent texts of which grade, as DESTINATION=GRADE, separated by semicolons, such as "
        "http://127.0.0.1:11434/v1=C; web_search=O. Every other one gets texts of the lowest grade only "
        "(docs/how-to/grades.md).",
    )
    public_rate_per_minute: int = _setting(
        120, "Requests per minute from one address without a key.", changeable=_PER_MINUTE
    )
    public_rate_in_all: int = _setting(
        600, "Requests per minute of all callers without a key together.", changeable=_PER_MINUTE
    )
    public_tokens_per_day: int = _setting(
        500_000,
        "Tokens that language models may use per day (UTC) for answers to callers without a key.",
        changeable=_PER_DAY,
    )
    public_krw_per_day: int = _setting(
        5_000,
        "Won that language models may cost per day (UTC) for answers to callers without a key.",
        changeable=_PER_DAY,
    )
    sign_in: Path | None = _setting(
        None, "File of the identity providers that people sign in with, in TOML (docs/how-to/sign-in.md)."
    )
    page_name: str = _setting(
        "", "Name of the service on its web page; not set: dtrag.", changeable=Changeable("text", most=60)
    )
    page_greeting: str = _setting(
        "",
        "Text above the first question on the web page, shown to everybody who may ask.",
        changeable=Changeable("text", most=400),
    )
    page_colour: str = _setting(
        "",
        "Colour of links and buttons of the web page, such as #7a1f3d. The page makes it darker or lighter where the "
        "contrast needs it.",
        changeable=Changeable("colour"),
    )
    page_examples: Path | None = _setting(
        None,
        "A text file with example questions for the web page, one a line, shown to everybody who may ask; not set: "
        "they are made from titles of documents that the caller may see.",
    )
    pipeline: str = _setting(
        "plain", "What runs the steps of the pipeline: plain (a loop), or langgraph (the same steps as a LangGraph)."
    )
    answers_at_once: int = _setting(128, "Answers that the pipeline computes concurrently; more are queued.")
    answers_waiting: int = _setting(128, "Questions in the queue; more are refused with 503.")
    cpu_at_once: int = _setting(0, "CPU-bound steps of answers that run concurrently; 0 for twice the processors.")
    model_calls_at_once: int = _setting(128, "Concurrent calls of language models.")
    wait_ms: int = _setting(15_000, "Longest wait in a queue, in milliseconds; then the request is refused with 503.")
    searches_at_once: int = _setting(8, "Searches over HTTP that run concurrently; more are queued.")
    searches_waiting: int = _setting(2_000, "Searches in the queue; more are refused with 503.")
    uploads_at_once: int = _setting(4, "Uploads that are received and parsed concurrently; more are queued.")
    uploads_waiting: int = _setting(32, "Uploads in the queue; more are refused with 503.")
    jobs_at_once: int = _setting(
        2, "Jobs that each process runs concurrently; 0: this service takes none and leaves them to others."
    )
    connections_at_once: int = _setting(
        2_000,
        "Concurrent client connections, as far as the limit of file descriptors allows; beyond that, the connection "
        "that is idle longest is closed.",
    )
    idle_seconds: int = _setting(60, "How long an idle connection is kept open after a response, in seconds.")
    web_search_provider: str = _setting(
        "auto", "Provider of web_search: auto (searxng if DTRAG_WEB_SEARCH_URL is set), none, searxng, tavily, brave."
    )
    web_search_url: str | None = _setting(
        None,
        "Address of the search service: a SearXNG with the format json, or instead of the provider's own address.",
        address=True,
    )
    web_search_key: str | None = _setting(None, "Key of the search service.", secret=True)
    mcp_servers: Path | None = _setting(
        None, "A TOML or JSON file with the MCP servers whose tools may be used (docs/how-to/tools.md)."
    )
    mcp_key: str | None = _setting(
        None,
        "Key whose role and scope `dtrag mcp` has; not set: those of the owner of the data folder.",
        secret=True,
    )
    egress_allow: str | None = _setting(
        None, "Non-public addresses that tools may connect to, as host:port, separated by commas."
    )
    llm: str | None = _setting(
        None,
        "Language model that writes answers, as provider:model; without one answers are quotations. Providers: openai, "
        "google_genai, anthropic, ollama.",
    )
    llm_critic: str | None = _setting(
        None, "Language model of the critic in a debate, as provider:model (default: DTRAG_LLM)."
    )
    llm_base_url: str | None = _setting(
        None,
        "Address of a server that speaks the OpenAI protocol, for models of openai and ollama.",
        address=True,
    )
    llm_api_key: str | None = _setting(
        None, "Key of the language model (default: the variable that its provider uses).", secret=True
    )
    llm_prices: str = _setting(
        "", "Prices of language models in won per million tokens: provider:model=input/output, separated by commas."
    )
    llm_max_tokens: int = _setting(800, "Longest answer of a language model, in tokens.")
    drain_seconds: int = _setting(
        1,
        "Time after SIGTERM in which /readyz is 503 and requests are still accepted, in seconds: as long as a load "
        "balancer needs to notice.",
    )
    stop_seconds: int = _setting(25, "Time for running requests to finish after SIGTERM, in seconds.")
    cors_allowed_origins: str = _setting(
        "http://localhost:3000,http://localhost:3001,http://localhost:8080,"
        "http://127.0.0.1:3000,http://127.0.0.1:3001,http://127.0.0.1:8080",
        "Origins whose pages may call the service from a browser, separated by commas, or none; also as "
        "CORS_ALLOWED_ORIGINS. Wildcards are not supported.",
        also="CORS_ALLOWED_ORIGINS",
    )
    public_origins: str = _setting(
        "",
        "Origins under which browsers reach the service through a reverse proxy, such as https://dtrag.example.org, "
        "separated by commas.",
    )
    trusted_proxies: str = _setting(
        "",
        "Addresses or networks of the reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted, "
        "separated by commas; from others the headers are ignored.",
    )
    sentry_dsn: str | None = _setting(
        None,
        "DSN of the Sentry project to which unexpected errors of the service are reported, without any text (needs "
        "dtrag[sentry]); also as SENTRY_DSN.",
        secret=True,
        also="SENTRY_DSN",
    )
    cbr_data_dir: Path | None = _setting(
        None,
        "Folder of the case memory as an SQLite file of its own; also as CBR_DATA_DIR. If not set: the PostgreSQL "
        "database of the documents.",
        also="CBR_DATA_DIR",
    )
    sources: str | None = _setting(
        None,
        "Sources that `dtrag sync` and POST /sources/sync read: ADDRESS=CATEGORY; …, such as "
        "posix:/srv/shared=Shared drive.",
        secret=True,
    )
    backup_dir: Path | None = _setting(
        None, "Folder for the backups that administrators request with POST /backups; not set: they cannot."
    )
    backup_key: str | None = _setting(
        None, "Key with which backups are encrypted (needs dtrag[encryption]); not set: no encryption.", secret=True
    )
    backup_key_file: Path | None = _setting(
        None, "File whose first line is that key; takes precedence over DTRAG_BACKUP_KEY."
    )
    cbr_retain: str = _setting(
        "thumbs_up",
        "Which answered questions become cases: never, thumbs_up, or always; also as CBR_RETAIN.",
        also="CBR_RETAIN",
    )
    cbr_cache_ttl: int = _setting(
        3_600,
        "How long similarities of questions to cases are cached, in seconds; 0 for no cache. Also as CBR_CACHE_TTL.",
        also="CBR_CACHE_TTL",
    )
    cbr_log_days: int = _setting(365, "Days that interactions with the case memory are kept; 0 for no limit.")
    cbr_delta: float = _setting(
        0.05,
        "Largest accepted share of wrong reuse decisions, above 0 and below 1; 0.05 needs a lower bound of .95. `dtrag "
        "cbr stats` shows the bound.",
    )
    cbr_text: str = _setting("on", "on or off: whether the case memory stores the texts of questions.")
    host: str = _setting("127.0.0.1", "Address that `dtrag up` listens on.")
    port: int = _setting(8001, "Port that `dtrag up` listens on.")
    workers: int = _setting(1, "Processes of `dtrag up` that serve requests, at least 1.")
    log_level: str = _setting("WARNING", "DEBUG, INFO, WARNING or ERROR; log lines go to stderr.")
    log_format: str = _setting("auto", "Format of log lines: json, text, or auto (text on a terminal, JSON otherwise).")
    set_at_start: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The names of those that were set where the process was started, perhaps to their default. No setting itself."""

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """`overrides` (None: not set) over the environment, the files of settings and the defaults.

        With `environ`, only that: no file is read. Raises `InvalidInput`.
        """
        values: dict[str, Any] = {}
        consulted = sources(environ, overrides)
        for declared in declarations():
            for source in consulted:
                if written := source.values.get(declared.name):
                    values[declared.name] = _convert(written, str(declared.type))
                    break
        return cls(**values, set_at_start=frozenset(values))

    def is_fixed(self, name: str) -> bool:
        """Whether the setting was set where the process was started: what is stored for it has no effect."""
        return name in self.set_at_start or getattr(self, name) != getattr(Settings(), name)

    def with_stored(self, values: Mapping[str, Any]) -> Settings:
        """The settings with these values for those that are not fixed."""
        return replace(self, **{name: value for name, value in values.items() if not self.is_fixed(name)})

    def check(self) -> None:
        """Raise `InvalidInput` when a changeable setting has a value that it may not have."""
        for declared in declarations():
            if (changeable := declared.metadata["changeable"]) is not None:
                changeable.check(declared.name, getattr(self, declared.name))

    def rows(self) -> list[SettingRow]:
        """Name, environment variable, value, default flag and help of each setting, without secrets and credentials."""
        rows: list[SettingRow] = []
        for declared in declarations():
            value = getattr(self, declared.name)
            factory = declared.default_factory
            default = declared.default if factory is MISSING else factory()
            rows.append(
                {
                    "name": declared.name,
                    "environment": variable_of(declared.name),
                    "value": _shown(declared, value),
                    "default": str(default) if isinstance(default, Path) else default,
                    "is_default": value == default,
                    "secret": declared.metadata["secret"],
                    "help": declared.metadata["help"],
                }
            )
        return rows


def declarations() -> tuple[Field[Any], ...]:
    """The declaration of each setting; its metadata are the arguments of `_setting`."""
    return tuple(each for each in fields(Settings) if each.metadata)


def changeable_settings() -> dict[str, Changeable]:
    """The settings that administrators may change while services run."""
    return {each.name: each.metadata["changeable"] for each in declarations() if each.metadata["changeable"]}


def changed_value(name: str, value: object) -> Any:
    """The value of a changeable setting, as it is written in the environment or in JSON. Raises `InvalidInput`."""
    [declared] = [each for each in declarations() if each.name == name]
    written = " ".join(str(value).split())
    if not written.isprintable():
        raise InvalidInput(f"{variable_of(name)} has characters that cannot be shown: leave them out.")
    converted = _convert(WrittenValue(written, variable_of(name)), str(declared.type))
    declared.metadata["changeable"].check(name, converted)
    return converted


def _shown(declared: Field[Any], value: Any) -> Any:
    if declared.metadata["secret"] and value:
        return "(set)"
    if declared.metadata["address"] and value:
        return address_without_credentials(value)
    return str(value) if isinstance(value, Path) else value


class WrittenValue(NamedTuple):
    """A value as it is written, how messages call its place, and the folder from which a relative path counts."""

    value: Any
    place: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class SettingSource:
    """A place where settings are set, and what is written there by the name of the setting; `file` is its path."""

    name: str
    values: Mapping[str, WrittenValue]
    file: str = ""


NOT_IN_PROJECT = frozenset(
    (
        "cors_allowed_origins",
        "egress_allow",
        "grade_limits",
        "grades",
        "host",
        "mcp_servers",
        "public_origins",
        "sign_in",
        "trusted_proxies",
    )
)
"""Settings that a project file may not set, besides secrets and addresses: what is run, and who connects to what."""


def sources(environ: Mapping[str, str] | None, overrides: Mapping[str, Any]) -> list[SettingSource]:
    """Where settings are set, the first one takes precedence; with `environ` no files. Raises `InvalidInput`."""
    declared = declarations()
    names = {each.name for each in declared}
    if unknown := overrides.keys() - names:
        raise InvalidInput(no_setting(min(unknown), names))
    variables = os.environ if environ is None else environ
    own: dict[str, WrittenValue] = {}
    for each in declared:
        for variable in (variable_of(each.name), each.metadata["also"]):
            if variables.get(variable):
                own.setdefault(each.name, WrittenValue(variables[variable], variable))
    options = {name: WrittenValue(value, name) for name, value in overrides.items() if value is not None}
    consulted = [SettingSource("option", options), SettingSource("environment", own)]
    if environ is None:
        secrets = {each.name for each in declared if each.metadata["secret"]}
        addresses = {each.name for each in declared if each.metadata["address"]}
        known = Known(names, secrets, NOT_IN_PROJECT | secrets | addresses)
        for file in setting_files(known, variables.get(CONFIG, "")):
            values = {
                name: WrittenValue(value, f"{file.path}:{file.lines[name]}: {name}", file.path.parent)
                for name, value in file.values.items()
                if value  # as an empty variable
            }
            consulted.append(SettingSource(file.kind, values, f"{file.path}{file.note}"))
    return consulted


class SourceRow(TypedDict):
    """A source of a setting for display: its name, its file with the reason if nothing was read, and the value."""

    name: str
    file: str
    value: str | None


class ExplainedRow(SettingRow):
    """A setting, the name of the source that decides, and all sources; secrets are hidden as in `value`."""

    source: str
    sources: list[SourceRow]


def explained(stored: Mapping[str, Any], **overrides: Any) -> list[ExplainedRow]:
    """The settings as `Settings.load(**overrides)` returns them, with what is stored in the database, and their
    sources. Raises `InvalidInput`."""
    in_database = {name: WrittenValue(value, name) for name, value in stored.items()}
    consulted, database = [*sources(None, overrides)], SettingSource("stored", in_database)
    changeable, explanations = changeable_settings(), list[ExplainedRow]()
    for declared, row in zip(declarations(), Settings.load(**overrides).with_stored(stored).rows(), strict=True):
        read = [*consulted, database] if declared.name in changeable else consulted
        written = [(source, source.values.get(declared.name)) for source in read]
        shown: list[SourceRow] = [
            {"name": source.name, "file": source.file, "value": str(_shown(declared, text.value)) if text else None}
            for source, text in written
        ]
        decisive = next((source["name"] for source in shown if source["value"] is not None), "default")
        explanations.append({**row, "source": decisive, "sources": shown})
    return explanations


def unknown_variables() -> list[str]:
    """Variables of the environment that are named as settings and are none: misspelt, or of another version."""
    known = {CONFIG} | {variable_of(declared.name) for declared in declarations()} | {name for name, _ in LIVE}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)


_USUAL_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "google_genai": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
}


def usual_key_variables(provider: str) -> tuple[str, ...]:
    """The environment variables from which the provider's own tools read its key."""
    return _USUAL_KEYS.get(provider, ())


def usual_key(provider: str) -> str | None:
    """The key in the first of these variables that is set, read live."""
    return next((key for name in usual_key_variables(provider) if (key := os.getenv(name))), None)


def environment_of(settings: Settings) -> dict[str, str]:
    """The environment of a child process that has the same settings: it reads no files."""
    own = {
        variable_of(each.name): getattr(settings, each.name) for each in declarations() if settings.is_fixed(each.name)
    }
    names = {variable_of(each.name) for each in declarations()} | {each.metadata["also"] for each in declarations()}
    others = {name: value for name, value in os.environ.items() if name not in names}
    return {**others, CONFIG: "none", **{name: str(value) for name, value in own.items() if value is not None}}


def passed_on(names: Collection[str]) -> dict[str, str]:
    """The environment variables that are passed to a child process."""
    return {name: value for name, value in os.environ.items() if name in names}


def _unsigned(number: float) -> float:
    if not (0.0 <= number < math.inf):  # not a number is neither
        raise ValueError
    return number


def _convert(written: WrittenValue, kind: str) -> Any:
    value, name, folder = written
    try:
        if "Path" in kind:
            return Path(folder or "", Path(value).expanduser()).absolute()
        if kind == "int":
            number = int(value)
            if number < 0:
                raise ValueError
            return number
        if kind == "float":
            return _unsigned(float(value))
        return str(value)
    except (TypeError, ValueError) as error:
        expected = {"int": "a whole number of at least 0", "float": "a number of at least 0"}.get(kind, kind)
        raise InvalidInput(f"{name} is {value!r}, but must be {expected}.") from error


@dataclass(frozen=True, slots=True)
class Flag:
    """A switch that is read live, from the first of its environment names that is set."""

    name: str
    help: str
    aliases: tuple[str, ...] = ()


FLAGS: tuple[Flag, ...] = (
    Flag("strict_lexical", "Use the strict ranker (every word must occur) when no mode is requested."),
    Flag("meta_planner", "Plan which tools a question needs."),
    Flag("mcp_tools", "Run the tools that are planned."),
    Flag("tools_policy", "Run only the tools listed in TOOL_WHITELIST."),
    Flag("neural_case_selector", "Find past cases by meaning and words: POST /search/neural."),
    Flag(
        "soft_q_bandit",
        "Choose fusion weights and the way of composing by what earlier answers earned (dtrag cbr bandit).",
    ),
    Flag("experience_replay", "Keep what answers earned, and learn from it in random batches."),
    Flag("cbr_enabled", "Remember answered questions as cases, and suggest them.", ("CBR_ENABLED",)),
    Flag("debate_mode", "Let two agents debate an answer before it is returned.", ("DEBATE_MODE",)),
)
_TRUE = frozenset({"1", "true", "yes", "on"})


_switched: dict[str, bool] = {}


def flag(name: str) -> bool:
    """Whether the flag is on now: by `set_feature_flag`, else by `FEATURE_<NAME>` or one of its aliases, else off.

    `KeyError` if there is no such flag.
    """
    declared = {f.name: f for f in FLAGS}[name]
    if name in _switched:
        return _switched[name]
    for variable in (f"FEATURE_{name.upper()}", *declared.aliases):
        value = os.getenv(variable)
        if value is not None:
            return value.strip().lower() in _TRUE
    return False


def active_flags() -> frozenset[str]:
    """The names of the flags that are on now. A run of the pipeline uses those of its start."""
    return frozenset(declared.name for declared in FLAGS if flag(declared.name))


def set_feature_flag(name: str, value: bool | None) -> None:
    """Override a flag for this process; None restores the value of the environment."""
    if name not in {declared.name for declared in FLAGS}:
        raise InvalidInput(f"There is no flag {name!r}. `dtrag settings` lists them.")
    if value is None:
        _switched.pop(name, None)
    else:
        _switched[name] = value


class EnvManager:
    """Flags by the names that the acceptance texts use."""

    def get_feature_flag(self, name: str) -> bool:
        """Whether the flag is on now."""
        return flag(name)

    def set_feature_flag(self, name: str, value: bool | None) -> None:
        """As the function of the same name."""
        set_feature_flag(name, value)


def get_env_manager() -> EnvManager:
    """The flags of this process."""
    return EnvManager()


LIVE: tuple[tuple[str, str], ...] = (
    (
        "TOOL_WHITELIST",
        "Tools that may run while `FEATURE_TOOLS_POLICY` is on: exact names, separated by commas; if empty: see "
        "DTRAG_ENV.",
    ),
    (
        "DTRAG_ENV",
        "`development` (the default): an empty TOOL_WHITELIST allows every tool. With any other value, such as "
        "`production`, it allows none.",
    ),
    ("PIPELINE_TIMEOUT_MULTIPLIER", "Factor of all time limits of the pipeline, up to 100; 1 by default."),
)
"""Other environment variables that are read for every request, and their meaning."""


_OF_THE_PROCESS = frozenset(
    "data_dir host port workers log_level log_format drain_seconds stop_seconds rate_per_minute cors_allowed_origins "
    "max_upload_mb taxonomy_base sentry_dsn trusted_proxies public_origins answers_at_once answers_waiting "
    "searches_at_once searches_waiting "
    "uploads_at_once uploads_waiting jobs_at_once connections_at_once idle_seconds cpu_at_once model_calls_at_once "
    "wait_ms pool_size index_cache_mb cache_size cache_seconds cbr_cache_ttl parse_memory_mb parse_seconds "
    "max_file_mb max_passages embed_threads sources backup_dir backup_key backup_key_file mcp_key "
    "sign_in page_name page_greeting page_colour page_examples".split()
)
"""Settings that affect how a process works, not the results of questions and searches."""


def answer_settings(settings: Settings) -> dict[str, str]:
    """Digests by name of all settings, flags and variables that affect results and answers.

    Two processes on one data folder with the same digests return the same answers. Digests, because some are secret.
    """
    values: dict[str, object] = {
        variable_of(declared.name): getattr(settings, declared.name)
        for declared in declarations()
        if declared.name not in _OF_THE_PROCESS
    }
    values |= {f"FEATURE_{declared.name.upper()}": flag(declared.name) for declared in FLAGS}
    values |= {name: os.getenv(name, "") for name, _ in LIVE}
    return {name: hashlib.sha256(str(value).encode()).hexdigest()[:16] for name, value in values.items()}


_least_multiplier: ContextVar[float] = ContextVar("dtrag_least_multiplier", default=0.0)


@contextmanager
def timeouts_times(factor: float) -> Iterator[None]:
    """Inside the block, and in tasks started in it, the time limits of the pipeline are at least `factor` as long."""
    token = _least_multiplier.set(factor)
    try:
        yield
    finally:
        _least_multiplier.reset(token)


def timeout_multiplier() -> float:
    """Factor of all time limits of the pipeline: `PIPELINE_TIMEOUT_MULTIPLIER`, read live; 1 by default.

    A value that is not a number above 0 and up to 100 counts as 1: a typo must not stop the service.
    """
    try:
        value = float(os.getenv("PIPELINE_TIMEOUT_MULTIPLIER", "1"))
    except ValueError:
        value = 1.0
    return max(value if 0 < value <= 100 else 1.0, _least_multiplier.get())


def tool_whitelist() -> list[str] | None:
    """The names in `TOOL_WHITELIST`, trimmed, read live; None when it is not set or blank."""
    value = os.getenv("TOOL_WHITELIST", "").strip()
    return [name.strip() for name in value.split(",") if name.strip()] if value else None


def development() -> bool:
    """Whether `DTRAG_ENV` is `development` now, its default: only then does an empty whitelist allow every tool."""
    return (os.getenv("DTRAG_ENV") or "development").strip().lower() == "development"
