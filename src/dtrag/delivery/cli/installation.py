"""`dtrag up`, `settings`, `config`, `doctor`, `models`, `licences`: the service, what is configured and installed."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from dtrag.delivery.cli.console import Facts, ListFormat, Rows, data, megabytes, note, safe, show_json, show_result
from dtrag.delivery.cli.context import Form, Json, ListedName, invocation, run_async, with_app
from dtrag.delivery.cli.exit_codes import DATABASE_UNREACHABLE, FAILURE, OK
from dtrag.errors import InvalidInput, ModelNotFound

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from dtrag.app import App
    from dtrag.governance.changed_settings import PublicEffect
    from dtrag.settings import ExplainedRow, Settings

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


def up(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (DTRAG_HOST).", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port to listen on (DTRAG_PORT).", show_default="8001")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that serve requests (DTRAG_WORKERS).", show_default="1")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run the HTTP service until Ctrl-C or SIGTERM."""
    settings = invocation(context).settings(host=host, port=port, workers=workers)
    on_listening = (lambda address: show_json({"address": address})) if as_json else None
    if settings.workers < 1:
        raise InvalidInput("DTRAG_WORKERS is 0, but a service needs at least 1.")
    if settings.workers > 1:
        from dtrag.delivery.workers import supervise

        return supervise(settings, on_listening)
    gc.disable()  # garbage collection during imports takes a tenth of the start time
    from dtrag.delivery.api.serve import serve

    gc.freeze()
    gc.enable()

    return serve(settings, on_listening)


class FlagRow(TypedDict):
    """A feature flag; the first name of `environment` is its own, others are aliases."""

    name: str
    environment: list[str]
    on: bool
    help: str


def settings(context: typer.Context, as_json: Json = False, form: Form = ListFormat.table) -> int:
    """Show all settings with their values, sources and descriptions."""
    rows = _explained(context)
    flags = _flags()

    listed = [(row["environment"], _text(row["value"]), row["source"], row["help"]) for row in rows]
    listed += [(row["environment"][0], "on" if row["on"] else "off", "", row["help"]) for row in flags]
    when = (
        "Settings (DTRAG_…) are read at the start, flags (FEATURE_…) at every request. Settings that running services "
        "follow are changed with: dtrag config set NAME VALUE"
    )
    shown = Rows(("Environment", "Value", "From", "Help"), listed, whole=("Environment",))
    return show_result(as_json or form, {"settings": rows, "flags": flags}, shown, notes=[when])


config_app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Settings, and where they come from.")
SettingName = Annotated[
    str, typer.Argument(metavar="NAME", help="A setting, such as decision or DTRAG_DECISION.", show_default=False)
]


@config_app.command("set")
def set_setting(
    context: typer.Context,
    name: SettingName,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its new value.", show_default=False)],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what callers without a key would see; for public.")
    ] = False,
    accept_widening: Annotated[
        bool, typer.Option("--accept-widening", help="Callers without a key may see more.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Store a setting in the database. Running services follow within seconds; the environment has precedence."""

    async def work(app: App) -> tuple[object, PublicEffect | None]:
        key = _name_of(name)
        effect = await app.changed_settings.set(key, value, accept_widening=accept_widening, dry_run=dry_run)
        return getattr(app.settings, key), effect

    now, effect = with_app(context, work)
    sees = "" if effect is None else f"Without a key: {effect.documents:,} documents, {effect.gained:,} of them new."
    changed = "" if dry_run else f"{_name_of(name)} is {_text(now)}"
    return show_result(as_json, {"name": _name_of(name), "value": now, "public": effect}, changed, sees)


@config_app.command("unset")
def unset_setting(context: typer.Context, name: SettingName, as_json: Json = False) -> int:
    """Remove the stored value of a setting: its default counts again."""

    async def work(app: App) -> object:
        await app.changed_settings.unset(_name_of(name))
        return getattr(app.settings, _name_of(name), None)

    now = with_app(context, work)
    return show_result(as_json, {"name": _name_of(name), "value": now}, f"{_name_of(name)} is {_text(now)}")


def _name_of(name: str) -> str:
    return name.lower().removeprefix("dtrag_")


@config_app.command("explain")
def explain(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A setting, such as port or DTRAG_PORT.", show_default=False)
    ],
    as_json: Json = False,
) -> int:
    """Show the value of a setting, which source it comes from, and what the other sources contain.

    For commands that are started here; GET /settings returns the values of a
    running service.
    """
    from dtrag.setting_files import no_setting

    rows = {row["name"]: row for row in _explained(context)}
    row = rows.get(_name_of(name))
    if row is None:
        raise InvalidInput(no_setting(name, rows))
    shown = [
        ("Setting", f"{row['name']} ({row['environment']})"),
        ("Value", _text(row["value"])),
        ("From", row["source"]),
        *((f"  {each['name']}", f"{_text(each['value'])}  {each['file']}".rstrip()) for each in row["sources"]),
        ("  default", _text(row["default"])),
        ("Meaning", row["help"]),
    ]
    return show_result(as_json, row, Facts(shown))


def _explained(context: typer.Context) -> list[ExplainedRow]:
    from dtrag.settings import explained

    current = invocation(context)
    settings = current.settings()
    stored = run_async(_stored(settings))
    return explained(stored, data_dir=current.data_dir, database_url=current.database_url)


async def _stored(settings: Settings) -> dict[str, str | int | float]:
    """The changed settings in the database; none where there is no database. Nothing is created or migrated."""
    from dtrag.adapters.postgres import dump
    from dtrag.adapters.postgres.connect import attached
    from dtrag.adapters.postgres.database import fetch_row
    from dtrag.adapters.postgres.queries import queries
    from dtrag.adapters.postgres.server.server import status
    from dtrag.errors import DatabaseUnavailable
    from dtrag.governance.changed_settings import readable

    if not settings.database_url and not status(settings.data_dir).initialised:
        return {}
    row = None
    try:
        async with attached(settings) as server, dump.reading(server.conninfo("owner", server.database)) as connection:
            if await dump.is_made(connection):
                row = await fetch_row(connection, queries("backup")["changed_settings"])
    except DatabaseUnavailable as error:
        note(f"Settings that were changed in the database are not shown. {error}")
    return {} if row is None else {name: each.value for name, each in readable(row["value"]).items()}


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def _flags() -> list[FlagRow]:
    from dtrag.settings import FLAGS, flag

    return [
        {
            "name": declared.name,
            "environment": [f"FEATURE_{declared.name.upper()}", *declared.aliases],
            "on": flag(declared.name),
            "help": declared.help,
        }
        for declared in FLAGS
    ]


def doctor(context: typer.Context, as_json: Json = False) -> int:
    """Check the machine, the database, the models and the index."""
    settings = invocation(context).settings()
    from dtrag.delivery.cli.checks import examine

    report = run_async(examine(settings))
    from rich.table import Table
    from rich.text import Text

    if as_json:
        show_json({"ok": report.ok, "checks": report.checks})
    else:
        grid = Table.grid(padding=(0, 2))
        for check in report.checks:
            mark, style = _MARKS[check.state]
            detail = Text(safe(check.detail), overflow="fold")
            if check.advice:
                detail.append(f"\n{safe(check.advice)}", style="bold")
            grid.add_row(Text(mark, style=style), check.name, detail)
        data().print(grid)
    if report.ok:
        return OK
    return FAILURE if report.reachable else DATABASE_UNREACHABLE


models_app = typer.Typer(rich_markup_mode=None, invoke_without_command=True, help="List and download models.")


@models_app.callback()
def models(context: typer.Context, as_json: Json = False) -> int:
    """List and download models. Without a command: list."""
    if context.invoked_subcommand is None:
        return list_models(context, as_json)
    if as_json:
        raise typer.BadParameter(f"give --json after `models {context.invoked_subcommand}`")
    return OK


@models_app.command("list")
def list_models(context: typer.Context, as_json: Json = False, form: Form = ListFormat.table) -> int:
    """List the known models, and whether they are installed and undamaged."""
    settings = invocation(context).settings()
    from dtrag.adapters.embedders.factory import LOCAL
    from dtrag.adapters.embedders.fastembed import list_models as fastembed_embedders
    from dtrag.adapters.embedders.models import list_models as embedders
    from dtrag.adapters.rerankers.models import list_models as rerankers

    known = [*embedders(settings), *fastembed_embedders(settings), *rerankers(settings)]
    cells = [
        (
            model.name,
            ", ".join("any" if code == "*" else code for code in model.languages),
            megabytes(model.size),
            model.licence,
            model.state,
        )
        for model in known
    ]
    used = {embedder.model.name for embedder in LOCAL.get(settings.embedder, ())}
    # The other models are optional: no note if they are absent.
    missing = [model for model in known if model.state == "damaged" or (model.state == "absent" and model.name in used)]
    return show_result(
        as_json or form,
        {"models": known},
        Rows(("Name", "Lang.", "Size", "Licence", "State"), cells, whole=("Size", "State")),
        notes=[f"{model.name} is {model.state}. Download it with: dtrag models pull {model.name}" for model in missing],
    )


@models_app.command("pull")
def pull(
    context: typer.Context,
    name: ListedName,
    as_json: Json = False,
) -> int:
    """Download a model into the model folder and verify it. Uses the network."""
    settings = invocation(context).settings()
    from dtrag.adapters.embedders import fastembed
    from dtrag.adapters.embedders.models import MODELS
    from dtrag.adapters.embedders.models import pull as embedder
    from dtrag.adapters.rerankers.models import PUBLISHED, published
    from dtrag.adapters.rerankers.models import pull as reranker

    if published(name) is not None:
        path = reranker(name, settings, note)
    elif name in {model.name for model in MODELS}:
        path = embedder(name, settings, note)
    elif fastembed.published(name) is not None:
        path = fastembed.pull(name, settings, note, fastembed.try_out)
    else:
        names = [model.name for model in MODELS]
        names += [model.name for model in fastembed.PUBLISHED] + [model.name for model in PUBLISHED]
        known = ", ".join(names)
        raise ModelNotFound(f"There is no model {name!r} that dtrag can download. Known: {known}.")
    return show_result(as_json, {"model": name, "path": str(path)}, str(path))


REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?")
"""A line of `Requires-Dist`: name, extras, marker."""
EXTRA = re.compile(r"""\bextra\s*==\s*["']([\w.-]+)["']""")
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "MIT, BSD": "MIT AND BSD-3-Clause",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""SPDX expressions for what packages write that do not use them yet."""


@dataclass(frozen=True, slots=True)
class Licensed:
    """A package, its version, and its licence as an SPDX expression where its metadata allows one."""

    name: str
    version: str
    licence: str


def licences(as_json: Json = False, form: Form = ListFormat.table) -> int:
    """List the licences of dtrag and of the packages that are installed for it."""
    packages = list(installed())
    rows = [(package.name, package.version, package.licence) for package in packages]
    return show_result(
        as_json or form,
        {"packages": packages},
        Rows(("Package", "Version", "Licence"), rows, whole=("Package", "Version")),
        notes=[
            "NOTICE, beside the licence of dtrag, adds what the web page contains and what some packages bring along."
        ],
    )


def installed(root: str = "dtrag") -> Iterator[Licensed]:
    """The package and all that it requires, directly or not, by name; a part for another platform is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    from dtrag.adapters.embedders.models import MODELS, REPACKED

    seen: dict[str, tuple[Distribution, set[str]]] = {}
    every_extra = set(distribution(root).metadata.get_all("Provides-Extra") or ())
    waiting = [(root, every_extra), (REPACKED, set()), *((model.package, set[str]()) for model in MODELS)]
    while waiting:
        name, extras = waiting.pop()
        key = canonical(name)
        if key in seen and extras <= seen[key][1]:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        seen[key] = (package, seen[key][1] | extras if key in seen else extras)
        waiting.extend(_required(package, extras))
    for key in sorted(seen):
        package = seen[key][0]
        yield Licensed(key, package.version, licence_of(package))


def _required(package: Distribution, extras: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Names and extras of what a package requires with these extras."""
    for line in package.requires or ():
        for name, its_extras, marker in REQUIREMENT.findall(line)[:1]:
            only_with = EXTRA.search(marker)
            if only_with is None or only_with[1] in extras:
                yield name, {extra.strip() for extra in its_extras.split(",")} - {""}


def canonical(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence_of(package: Distribution) -> str:
    """The package's licence: its SPDX expression, or else its licence field or classifier, as SPDX where known."""

    def written(field: str) -> list[str]:
        return [
            line.strip() for text in package.metadata.get_all(field) or () for line in text.strip().splitlines()[:1]
        ]

    classes = [line.rpartition(" :: ")[2] for line in written("Classifier") if line.startswith("License")]
    first = [*written("License-Expression"), *written("License"), " OR ".join(classes) or "unknown"][0]
    return SPDX.get(first, first)
