"""`dtrag keys`: make the keys of the HTTP service, see which there are, end them."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.access.api_key import Key, KeyView, Role
    from dtrag.governance.api_keys import CreatedKey
    from dtrag.settings import Settings

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Keys: who may ask the HTTP service, and for what.")

_MOST_DAYS = 36_500


@app.command("create")
def create(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Option(help="Whose key it is; in lists and in the audit log.", show_default=False)],
    role: Annotated[
        str, typer.Option(help="reader (asks), editor (also adds and deletes) or admin (also governs).")
    ] = "reader",
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help='A branch it may see, such as "AI/ML"; may be repeated.', show_default="all"),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="In so many days (90d), or on a date (2030-01-31).")
    ] = None,
    rate: Annotated[
        int | None, typer.Option(help="Requests a minute (DTRAG_RATE_PER_MINUTE).", show_default="600")
    ] = None,
    as_json: Json = False,
) -> int:
    """Make a key. Its secret is printed this once and kept nowhere."""
    now = datetime.datetime.now(datetime.UTC)
    asked = {"name": name, "scope": scope or None, "role": role, "expires": expiry(expires, now), "rate": rate}
    made = run_async(_create(invocation(context).settings(), asked))
    from dtrag.delivery.cli.console import data, note, show_json

    if as_json:
        show_json({"key": made.key.as_dict(now), "secret": made.secret, "unresolved_paths": list(made.unresolved)})
    else:
        data().print(made.secret, soft_wrap=True)
        note("Keep it now: it is not shown again. Send it as: Authorization: Bearer …")
    for path in made.unresolved:
        note(f"Warning: {path} leads nowhere yet; it holds nothing until it does.")
    return OK


@app.command("list")
def list_keys(context: typer.Context, as_json: Json = False) -> int:
    """The keys that there are and were, the newest first; never their secrets."""
    found = run_async(_every(invocation(context).settings()))
    now = datetime.datetime.now(datetime.UTC)
    rows = [key.as_dict(now) for key in found]
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        show_json({"keys": rows})
        return OK
    if rows:
        listed = [(row["name"], row["role"], _scope(row), row["state"], _day(row["last_used_at"])) for row in rows]
        data().print(table(("Name", "Role", "Scope", "State", "Last used"), listed, whole=("Role", "State")))
        note(plural(len(rows), "key"))
    else:
        note("There are no keys: only this machine is answered. Make one with: dtrag keys create")
    return OK


@app.command("revoke")
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As the list shows it.", show_default=False)],
    as_json: Json = False,
) -> int:
    """End a key; running services refuse it within five seconds."""
    ended = run_async(_revoke(invocation(context).settings(), name))
    from dtrag.delivery.cli.console import data, show_json

    if as_json:
        show_json({"key": ended.as_dict(datetime.datetime.now(datetime.UTC))})
    else:
        data().print(f"Revoked {ended.name}", soft_wrap=True)
    return OK


def expiry(given: str | None, now: datetime.datetime) -> datetime.datetime | None:
    """`90d` from now, or the end of a day (UTC) such as 2030-01-31, or a time. Raises `InvalidInput`."""
    if given is None:
        return None
    from dtrag.errors import InvalidInput

    text = given.strip()
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
            f"{text[:40]!r} is no time to expire at. Give days from now, such as 90d, or a date, such as 2030-01-31."
        ) from error


def _scope(row: KeyView) -> str:
    return "all" if row["scope"] is None else ", ".join(row["scope"])


def _day(moment: str | None) -> str:
    return moment[:10] if moment else "never"


async def _create(settings: Settings, asked: dict[str, Any]) -> CreatedKey:
    from dtrag.app import open_app

    role: Role = asked.pop("role")  # checked by the service
    async with open_app(settings) as opened:
        return await opened.keys.create(role=role, **asked)


async def _every(settings: Settings) -> list[Key]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.keys.every()


async def _revoke(settings: Settings, name: str) -> Key:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.keys.revoke(name)
