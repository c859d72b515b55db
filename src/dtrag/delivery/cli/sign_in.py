"""`dtrag sign-in`: what groups of identity providers give, before the service uses the file that says so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import Rows, note, show_result
from dtrag.delivery.cli.context import Json, invocation, with_app
from dtrag.delivery.cli.exit_codes import OK
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.core.access.api_key import KeyView
    from dtrag.core.access.sign_in import GroupRights

app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Sign-in with identity providers: what groups give, and who may."
)


@app.callback()
def group() -> None:
    """Sign-in with identity providers: what groups give, and who may."""


@app.command("preview")
def show_preview(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The file; default: DTRAG_SIGN_IN.", show_default=False)
    ] = None,
    provider: Annotated[str | None, typer.Option(metavar="NAME", help="Of a person: the provider.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of a person: a group; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Show what each group of a file gives, and what the file changes for the people who have signed in so far.

    With --provider and --group: what a person with exactly these groups gets. Nothing is changed.
    """
    path = file or invocation(context).settings().sign_in
    if path is None:
        raise InvalidInput("There is no file of the sign-in. Give one, or set DTRAG_SIGN_IN.")
    read, result = with_app(context, lambda opened: opened.preview_sign_in(path))
    if (provider is None) != (group is None) or (provider is not None and provider not in read.providers):
        names = ", ".join(read.providers)
        raise InvalidInput(f"A person has --provider and at least one --group. Providers in the file: {names}.")
    if provider is not None:
        rights = read.providers[provider].rights(group or ())
        answer = None if rights is None else {"role": rights.role, "branches": _branches(rights)}
        shown = "no access" if rights is None else f"{rights.role} in {_listed(_branches(rights))}"
        return show_result(as_json, {"provider": provider, "groups": group, "rights": answer}, shown)
    groups: list[dict[str, object]] = []
    rows, warnings = [], []
    for each in read.providers.values():
        for name, rights in each.groups.items():
            branches, people = _branches(rights), result.people.get((each.name, name), 0)
            missing = result.missing.get((each.name, name), ())
            groups.append(
                {"provider": each.name, "group": name, "role": rights.role, "branches": branches}
                | {"missing": list(missing), "people": people}
            )
            rows.append((each.name, name, rights.role, _listed(branches), people))
            warnings += [f"{path} is not in the tree; it gives nothing to the group {name}." for path in missing]
    changes = [
        (change.name, _shown(change.now), _shown(change.then), "wider" if change.wider else "narrower or other")
        for change in result.changes
    ]
    changed = Rows(("Person", "Now", "With this file", "Change"), changes)
    show_result(
        as_json,
        {"groups": groups, "changes": [plain(change) for change in result.changes]},
        Rows(("Provider", "Group", "Role", "Branches", "People"), rows),
        changed if changes else "It changes the rights of no one.",
        notes=["People are counted once they have signed in."],
    )
    for warning in warnings:
        note(f"Warning: {warning}")
    return OK


@app.command("allow")
def allow(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="As university/kim.", show_default=False)] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All people whose keys are revoked.")] = False,
    as_json: Json = False,
) -> int:
    """Let a person sign in again whose key was revoked, by hand or by a restore on a new machine."""
    if (name is None) != everyone:
        raise InvalidInput("Give the name of one person, such as university/kim, or --all.")
    names = with_app(context, lambda opened: opened.allow_people(name))
    shown = "\n".join(names) if names else "There is no person whose key is revoked."
    return show_result(as_json, {"people": names}, shown)


def _branches(rights: GroupRights) -> list[str] | None:
    return None if rights.branches is None else [str(path) for path in rights.branches]


def _listed(branches: Iterable[str] | None) -> str:
    return "the whole tree" if branches is None else ", ".join(branches)


def _shown(view: KeyView | None) -> str:
    return "no access" if view is None else f"{view.role} in {_listed(view.scope)}"
