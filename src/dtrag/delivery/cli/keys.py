"""`dtrag keys`: create, list and revoke keys of the HTTP service."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dtrag.delivery.cli.console import ListFormat, Rows, note, plural, show_result
from dtrag.delivery.cli.context import Form, Json, ListedName, with_app
from dtrag.delivery.cli.exit_codes import OK
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.access.api_key import Key, Role
    from dtrag.governance.api_keys import CreatedKey

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Keys: who may use the HTTP service, and for what.")

_MOST_DAYS = 36_500
NO_KEYS = "There are no keys: only this machine has access. Create one with: dtrag keys create"


@app.command("create")
def create(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Option(help="Its owner, as shown in lists and the audit log.", show_default=False)],
    role: Annotated[
        str,
        typer.Option(help="reader, editor (also adds and deletes), admin (also governs), or public (with --agent)."),
    ] = "reader",
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help='A branch it may see, such as "AI/ML"; may be repeated.', show_default="all"),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="After days (90d), or on a date (2030-01-31).")
    ] = None,
    rate: Annotated[
        int | None, typer.Option(help="Requests per minute (DTRAG_RATE_PER_MINUTE).", show_default="600")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Of a public key for the pages of another site: the only agent it may ask."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Of a public key: a site (https://www.example.org); may be repeated."),
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option(metavar="SITE/USER", help="A user of a source as whom it reads (posix/kim); may be repeated."),
    ] = None,
    originals: Annotated[
        bool, typer.Option("--originals", help="It may see pages of the original files (DTRAG_KEEP_ORIGINALS).")
    ] = False,
    as_json: Json = False,
) -> int:
    """Create a key. Its secret is printed once and not stored."""
    now = datetime.datetime.now(datetime.UTC)
    expires_at = expiry(expires, now)
    checked_later = cast("Role", role)

    async def create_key(opened: App) -> CreatedKey:
        return await opened.keys.create(
            name,
            scope or None,
            checked_later,
            expires=expires_at,
            rate=rate,
            agent=await opened.agents.get(agent) if agent else None,
            origins=origin or (),
            principals=principal or (),
            originals=originals,
        )

    created = with_app(context, create_key)
    row = {"key": created.key.view(now), "secret": created.secret, "unresolved_paths": list(created.unresolved)}
    advice = "Store it now: it is not shown again. Send it as: Authorization: Bearer …"
    show_result(as_json, row, created.secret, notes=[advice])
    for path in created.unresolved:
        note(f"Warning: {path} is not in the tree yet; no document belongs to it.")
    return OK


@app.command("list")
def list_keys(context: typer.Context, as_json: Json = False, form: Form = ListFormat.table) -> int:
    """List current and former keys, the newest first, without secrets."""
    keys = with_app(context, lambda opened: opened.keys.every())
    now = datetime.datetime.now(datetime.UTC)

    rows = [(key.name, key.role, _scope(key), key.state(now), _day(key.last_used_at)) for key in keys]
    count = plural(len(keys), "key") if keys else NO_KEYS
    listed = Rows(("Name", "Role", "Scope", "State", "Last used"), rows, whole=("Role", "State"))
    return show_result(as_json or form, {"keys": [key.view(now) for key in keys]}, listed, notes=[count])


@app.command("revoke")
def revoke(
    context: typer.Context,
    name: ListedName,
    as_json: Json = False,
) -> int:
    """Revoke a key; running services refuse it within a second."""
    revoked = with_app(context, lambda opened: opened.keys.revoke(name))
    row = revoked.view(datetime.datetime.now(datetime.UTC))
    return show_result(as_json, {"key": row}, f"Revoked {revoked.name}")


def expiry(option: str | None, now: datetime.datetime) -> datetime.datetime | None:
    """`90d` from now, or the end of a day (UTC) such as 2030-01-31, or a time. Raises `InvalidInput`."""
    if option is None:
        return None

    text = option.strip()
    try:
        if text.endswith("d") and text[:-1].isdecimal() and len(text) < 7:
            days = int(text[:-1])
            if not 1 <= days <= _MOST_DAYS:
                raise ValueError(days)
            return now + datetime.timedelta(days=days)
        if len(text) == len("2030-01-31"):
            day = datetime.date.fromisoformat(text)
            midnight = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
            return midnight + datetime.timedelta(days=1)
        moment = datetime.datetime.fromisoformat(text)
        return moment.astimezone(datetime.UTC) if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{text[:40]!r} is not a valid expiry. Give days from now, such as 90d, or a date, such as 2030-01-31."
        ) from error


def _scope(key: Key) -> str:
    return "all" if key.grant is None else ", ".join(str(anchor.path) for anchor in key.grant.anchors)


def _day(moment: datetime.datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "never"
