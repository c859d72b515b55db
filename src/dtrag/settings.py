"""Settings and feature flags: every one declared once, with its help. The only module that touches the environment.

`Settings.load()` reads the environment once; what it returns never changes. Flags are read live, so that a switch
takes effect on the next request (`flag("...")`). `dtrag settings` and docs/settings.md are derived from the tables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dtrag.errors import InvalidInput

PREFIX = "DTRAG_"


def default_data_dir() -> Path:
    """The platform's folder for user data; below /var/lib for root, whose server runs as a system user of its own."""
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/dtrag")
    import platformdirs

    return Path(platformdirs.user_data_dir("dtrag", appauthor=False))


def _setting(default: Any, help: str, *, secret: bool = False) -> Any:  # noqa: A002
    metadata = {"help": help, "secret": secret}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the process was started with. The environment name of `data_dir` is `DTRAG_DATA_DIR`, and so on."""

    data_dir: Path = _setting(default_data_dir, "Folder of the embedded database and of everything else dtrag keeps.")
    database_url: str | None = _setting(
        None,
        "A PostgreSQL (14 or later, with pgvector 0.8 or later) to use instead of the embedded one.",
        secret=True,
    )
    database_name: str = _setting("dtrag", "Database inside the embedded server.")
    embedder: str = _setting("auto", "auto, none, or the name of an embedder: minilm.")
    embed_threads: int = _setting(2, "CPU threads of the embedder, and of the reranker.")
    reranker: str = _setting(
        "auto",
        "auto (a cross-encoder in the model folder, if there is one), none, the name of a cross-encoder, or a folder "
        "with its model.onnx and tokenizer.json.",
    )
    model_dir: Path | None = _setting(None, "Folder of model files (default: `models` in the data folder).")
    morphemes: str = _setting("none", "Korean morphemes besides bigrams: none, or kiwi (needs dtrag[kiwi]).")
    embed_query_ms: int = _setting(
        2_000, "Longest wait for the vector of a query, in milliseconds; then words alone decide."
    )
    classify: str = _setting(
        "auto", "auto (documents without a category are classified, or wait in the review queue), or off."
    )
    filter_keys: str = _setting(
        "author,department,kind,language,source,status,version,year,regulation",
        "Facts of documents that searches may be filtered by, with commas.",
    )
    index_cache_mb: int = _setting(
        256, "Memory for the parts of the lexical index that were read last, in MiB; a million passages take about 400."
    )
    cache_size: int = _setting(1_000, "Searches whose results are kept in memory; 0 for none.")
    cache_seconds: int = _setting(3_600, "How long they are kept, in seconds.")
    pool_size: int = _setting(4, "Database connections per role.")
    statement_timeout_ms: int = _setting(15_000, "Longest time of one search statement, in milliseconds.")
    parse_memory_mb: int = _setting(1_024, "Memory limit of the parser process, in MiB.")
    parse_seconds: int = _setting(120, "Longest silence of the parser process about one file, in seconds.")
    max_file_mb: int = _setting(512, "Larger files are refused, in MiB.")
    max_upload_mb: int = _setting(64, "Larger uploads over HTTP are refused, in MiB.")
    agent_tokens_per_day: int = _setting(
        2_000_000, "Tokens that the models of an agent may use on a day (UTC), unless its manifest says otherwise."
    )
    agent_krw_per_day: int = _setting(
        10_000, "Won that the models of an agent may cost on a day (UTC), unless its manifest says otherwise."
    )
    audit: str = _setting("all", "What the audit log keeps: all, changes (with refusals, without reads), or off.")
    rate_per_minute: int = _setting(600, "Requests a minute of a key over HTTP, unless it was made with another rate.")
    host: str = _setting("127.0.0.1", "Address that `dtrag up` listens on.")
    port: int = _setting(8001, "Port that `dtrag up` listens on.")
    log_level: str = _setting("WARNING", "DEBUG, INFO, WARNING or ERROR; log lines go to stderr as JSON.")

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Environment over defaults, `overrides` (None = not given) over both. Raises `InvalidInput`."""
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for declared in fields(cls):
            name = PREFIX + declared.name.upper()
            if overrides.get(declared.name) is not None:
                values[declared.name] = _convert(declared.name, str(declared.type), overrides[declared.name])
            elif environ.get(name):
                values[declared.name] = _convert(name, str(declared.type), environ[name])
        unknown = set(overrides) - {declared.name for declared in fields(cls)}
        if unknown:
            raise InvalidInput(f"There is no setting {sorted(unknown)[0]!r}. `dtrag settings` lists them.")
        return cls(**values)

    def rows(self) -> list[dict[str, Any]]:
        """Name, environment variable, value, default flag and help of each setting; secrets are not shown."""
        rows = []
        for declared in fields(self):
            value = getattr(self, declared.name)
            shown = "(set)" if declared.metadata["secret"] and value else value
            rows.append(
                {
                    "name": declared.name,
                    "environment": PREFIX + declared.name.upper(),
                    "value": str(shown) if isinstance(shown, Path) else shown,
                    "help": declared.metadata["help"],
                }
            )
        return rows


def passed_on(names: Collection[str]) -> dict[str, str]:
    """Those of the environment's variables that a child process may see."""
    return {name: value for name, value in os.environ.items() if name in names}


def _convert(name: str, kind: str, value: Any) -> Any:
    try:
        if "Path" in kind:
            return Path(value).expanduser().absolute()
        if kind == "int":
            number = int(value)
            if number < 0:
                raise ValueError
            return number
        return str(value)
    except (TypeError, ValueError) as error:
        expected = "a whole number of at least 0" if kind == "int" else kind
        raise InvalidInput(f"{name} is {value!r}, but must be {expected}.") from error


@dataclass(frozen=True, slots=True)
class Flag:
    """A switch that is read live, from the first of its environment names that is set."""

    name: str
    help: str
    aliases: tuple[str, ...] = ()


FLAGS: tuple[Flag, ...] = (
    Flag("strict_lexical", "Use the strict ranker (every word must occur) where no mode is asked for."),
)
_TRUE = frozenset({"1", "true", "yes", "on"})


def flag(name: str) -> bool:
    """Whether the flag is on now: `FEATURE_<NAME>` or one of its aliases; off when none is. `KeyError` if unknown."""
    declared = {f.name: f for f in FLAGS}[name]
    for variable in (f"FEATURE_{name.upper()}", *declared.aliases):
        value = os.getenv(variable)
        if value is not None:
            return value.strip().lower() in _TRUE
    return False
