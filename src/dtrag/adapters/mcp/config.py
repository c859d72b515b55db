"""The configured MCP servers: the TOML or JSON file that DTRAG_MCP_SERVERS names, validated when it is read."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dtrag.core.tool_approval import SERVER_NAME
from dtrag.errors import InvalidInput

MOST_SERVERS = 50
MOST_BYTES = 1 << 20
START_SECONDS = 20.0
"""A server that is fetched by its package manager at the first start needs more: it can say so."""
ANSWER_SECONDS = 30.0
LONGEST = 600.0
_COMMON = {"tools", "start_seconds", "answer_seconds"}
_STDIO = {"command", "env", "folder"} | _COMMON
_HTTP = {"url", "headers"} | _COMMON
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = frozenset(
    ("accept", "accept-encoding", "content-type", "content-length", "host", "mcp-session-id", "transfer-encoding")
)
"""Headers that the protocol itself sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One server: a program (`command`) or an address (`url`), the other being empty.

    `env` are names of variables that the program may see, `headers` (name, variable) whose values it gets.
    `tools`, if any, are the only ones that are offered.
    """

    name: str
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    folder: Path | None = None
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    tools: tuple[str, ...] | None = None
    start_seconds: float = START_SECONDS
    answer_seconds: float = ANSWER_SECONDS


def read_config(path: Path | None) -> list[ServerConfig]:
    """The servers in the file; none without a file. Raises `InvalidInput`, which names the place of the fault."""
    if path is None:
        return []
    try:
        raw = path.read_bytes()
        if len(raw) > MOST_BYTES:
            raise InvalidInput(f"{path} has {len(raw):,} bytes; a list of MCP servers has at most {MOST_BYTES:,}.")
        text = raw.decode("utf-8")
        parsed: Any = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"The list of MCP servers {path} (DTRAG_MCP_SERVERS) cannot be read: {reason}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The list of MCP servers {path} is not UTF-8.") from error
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"The list of MCP servers {path} cannot be read: {error}.") from error
    servers = parsed.get("servers", {}) if isinstance(parsed, dict) else None
    if not isinstance(servers, dict) or set(parsed) - {"servers"}:
        raise InvalidInput(f"{path}: a list of MCP servers has tables named [servers.NAME], and nothing else.")
    if len(servers) > MOST_SERVERS:
        raise InvalidInput(f"{path} names {len(servers)} MCP servers; the maximum is {MOST_SERVERS}.")
    return [_server(str(path), name, table) for name, table in servers.items()]


def _server(path: str, name: str, table: Any) -> ServerConfig:
    where = f"{path}, server {name[:40]!r}"
    if not SERVER_NAME.fullmatch(name):
        raise InvalidInput(f"{where}: names are of 1 to 40 letters, digits, _ and -, and begin with a letter.")
    if not isinstance(table, dict):
        raise InvalidInput(f"{where}: must be a table with command or url.")
    if ("command" in table) == ("url" in table):
        raise InvalidInput(f"{where}: give either command (a program) or url (an address).")
    known = _STDIO if "command" in table else _HTTP
    unknown = sorted(set(table) - known)
    if unknown:
        raise InvalidInput(f"{where}: there is no {unknown[0][:40]!r} here. It takes: {', '.join(sorted(known))}.")
    kind = _program(where, table) if "command" in table else _address(where, table)
    tools = _texts(where, "tools", table["tools"]) if "tools" in table else None
    return ServerConfig(
        name=name,
        tools=tools,
        start_seconds=_seconds(where, table, "start_seconds", START_SECONDS),
        answer_seconds=_seconds(where, table, "answer_seconds", ANSWER_SECONDS),
        **kind,
    )


def _program(where: str, table: Mapping[str, Any]) -> dict[str, Any]:
    command = _texts(where, "command", table["command"])
    if not command or not command[0].strip():
        raise InvalidInput(f'{where}: command must be a list such as ["python", "-m", "server"].')
    env = _texts(where, "env", table.get("env", []))
    for variable in env:
        _variable(where, variable)
    folder = table.get("folder")
    if folder is not None and not (isinstance(folder, str) and folder):
        raise InvalidInput(f"{where}: folder must be the path of a folder.")
    return {"command": command, "env": env, "folder": Path(folder).expanduser() if folder else None}


def _address(where: str, table: Mapping[str, Any]) -> dict[str, Any]:
    url, headers = table["url"], table.get("headers", {})
    try:
        split = urlsplit(url) if isinstance(url, str) else None
        usable = split is not None and split.scheme in {"http", "https"} and bool(split.hostname)
    except ValueError:
        usable, split = False, None
    if not usable or split is None:
        raise InvalidInput(f"{where}: url must be an address such as https://tools.example.org/mcp.")
    if split.username is not None or split.password is not None:
        raise InvalidInput(f"{where}: keep secrets out of the url; give a header the name of a variable instead.")
    if not isinstance(headers, dict):
        raise InvalidInput(f'{where}: headers must be a table such as {{Authorization = "NAME_OF_A_VARIABLE"}}.')
    for header, variable in headers.items():
        if not _HEADER.fullmatch(header) or header.lower() in _OURS:
            raise InvalidInput(f"{where}: {header[:40]!r} cannot be set as a header.")
        _variable(where, variable)
    return {"url": url, "headers": tuple(headers.items())}


def _variable(where: str, name: Any) -> None:
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        # The value may be the secret itself: it is not repeated.
        raise InvalidInput(f"{where}: name the variable of the environment that holds the value, not the value.")


def _texts(where: str, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and "\x00" not in item for item in value):
        raise InvalidInput(f"{where}: {key} must be a list of strings.")
    return tuple(value)


def _seconds(where: str, table: Mapping[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST:
        raise InvalidInput(f"{where}: {key} must be a number of seconds above 0, at most {LONGEST:g}.")
    return float(value)
