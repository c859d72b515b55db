"""`dtrag licences`: the licences of dtrag and of the packages installed for it, from their own metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from dtrag.delivery.cli.context import Json
from dtrag.delivery.cli.exit_codes import OK

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


def licences(as_json: Json = False) -> int:
    """List the licences of dtrag and of the packages that are installed for it."""
    from dtrag.delivery.cli.console import data, note, show_json, table

    packages = list(installed())
    if as_json:
        show_json({"packages": [asdict(package) for package in packages]})
        return OK
    rows = [(package.name, package.version, package.licence) for package in packages]
    data().print(table(("Package", "Version", "Licence"), rows, whole=("Package", "Version")))
    note("NOTICE, beside the licence of dtrag, adds what the web page contains and what some packages bring along.")
    return OK


def installed(root: str = "dtrag") -> Iterator[Licensed]:
    """The package and all that it requires, directly or not, by name; a part for another platform is not installed."""
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
