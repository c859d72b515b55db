"""Build hook: a wheel contains the web page, complete and built from the present sources, or is not built.

An editable installation needs no page. Without `web/`, as in the tests of the package, there are no sources to compare.
The hook also writes the bill of materials (SBOM), as CycloneDX: beside the wheel and into it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/dtrag/delivery/page/index.html"
WIDGET = "widget.js"
SOURCES = "sources.sha256"
"""Beside the page: the digest of what it was built from, written by web/scripts/sources.mjs."""
REQUIREMENT = re.compile(
    r"^([a-z0-9.-]+)==(\S+)(?: ; ([^\\\n]+?))? \\\n(?: +--hash=\S+(?: \\)?\n)+ +# via(.*\n(?: +#   .*\n)*)",
    re.MULTILINE,
)
"""An entry of requirements.txt: name, version, marker, and the names behind "via"."""
FILES = ("index.html", "package-lock.json", "tsconfig.json", "vite.config.ts", "vite.widget.config.ts")


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Checks before anything is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """End the build with a message when the page, or a file of it, is missing or older than its sources; otherwise
        write the bill of materials."""
        if version == "editable":
            return
        problem = problem_of(Path(self.root))
        if problem:
            raise SystemExit(
                f"The web page {problem}, and a wheel must contain it. Build it with `make web` (it needs Node.js "
                "20.19 or later and npm), then build the wheel again."
            )
        version = self.metadata.version
        bill = Path(self.directory) / f"dtrag-{version}.cdx.json"
        bill.parent.mkdir(parents=True, exist_ok=True)
        bill.write_text(json.dumps(bill_of_materials(Path(self.root), version), indent=1) + "\n", "utf-8")
        build_data["sbom_files"].append(str(bill))


def bill_of_materials(root: Path, version: str) -> dict[str, Any]:
    """What the wheel contains of others and what it requires, in the versions of requirements.txt, as CycloneDX 1.6.

    The licences are those of NOTICE. The same sources give the same bill: it has neither a time nor a serial number.
    """
    licences = dict(re.findall(r"^  ([a-z0-9.-]+) {2,}(\S.*)$", (root / "NOTICE").read_text("utf-8"), re.MULTILINE))
    entries = REQUIREMENT.findall((root / "requirements.txt").read_text("utf-8"))
    packages = json.loads((root / "web/package-lock.json").read_text("utf-8"))["packages"]
    page = [
        component("npm", name.removeprefix("node_modules/"), package["version"], package["license"])
        | {"hashes": [{"alg": "SHA-512", "content": base64.b64decode(package["integrity"][7:]).hex()}]}
        for name, package in packages.items()
        if name and not package.get("dev")
    ]
    required = [
        component("pypi", name, pinned, licences[name])
        | ({"properties": [{"name": "dtrag:marker", "value": marker}]} if marker else {})
        for name, pinned, marker, _ in entries
    ]
    itself = component("pypi", "dtrag", version, "Apache-2.0")
    references = {name: [] for name in ("dtrag", *licences)}  # a name may have two versions, by marker
    for name, pinned, *_ in (("dtrag", version), *entries):
        references[name].append(f"pkg:pypi/{name}@{pinned}")
    used: dict[str, list[str]] = {reference: [] for every in references.values() for reference in every}
    for name, pinned, _, users in entries:
        for user in re.findall(r"[a-z0-9.-]+(?= \(pyproject.toml\)|$)", users, re.MULTILINE):
            for reference in references[user]:
                used[reference].append(f"pkg:pypi/{name}@{pinned}")
    used[itself["bom-ref"]] += [part["bom-ref"] for part in page]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": itself,
            "properties": [{"name": "dtrag:versions", "value": "as tested; the wheel also accepts later ones"}],
        },
        "components": page + required,
        "dependencies": [{"ref": reference, "dependsOn": parts} for reference, parts in used.items()],
    }


def component(kind: str, name: str, version: str, licence: str) -> dict[str, Any]:
    """A package of the bill of materials."""
    address = f"pkg:{kind}/{name.replace('@', '%40')}@{version}"
    return {
        "type": "library", "bom-ref": address, "name": name, "version": version,
        "licenses": [{"expression": licence}], "purl": address,
    }  # fmt: skip


def problem_of(root: Path) -> str | None:
    """What is wrong with the built page, to follow "The web page"; None when nothing is."""
    page = root / PAGE
    missing = PAGE if not page.is_file() else first_missing(page)
    if missing:
        return f"is missing or incomplete ({missing})"
    web, built_from = root / "web", page.parent / SOURCES
    if not (web / "src").is_dir():
        return None
    if not built_from.is_file() or built_from.read_text("ascii").strip() != digest_of(web):
        return "was built from other sources than those in web/"
    return None


def first_missing(page: Path) -> str | None:
    """The first file that the page names, or the widget, that does not exist beside it; None when it is complete."""
    named = re.findall(r"""\b(?:src|href)=["']([^"':?#]+)""", page.read_text("utf-8"))
    return next((name for name in (*named, WIDGET) if not (page.parent / name.lstrip("/")).is_file()), None)


def digest_of(web: Path) -> str:
    """The digest of the page's sources: file contents, because a checkout has no meaningful times."""
    sources = [path.relative_to(web).as_posix() for path in (web / "src").rglob("*") if path.is_file()]
    used = [path for path in sources if not re.search(r"\.test\.tsx?$|^src/test/|^src/api/schema\.ts$", path)]
    lines = (f"{path} {hashlib.sha256((web / path).read_bytes()).hexdigest()}\n" for path in sorted([*FILES, *used]))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
