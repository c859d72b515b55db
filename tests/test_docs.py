"""The pages say what the code does: links, commands, options, variables, targets, paths, names and messages exist."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest
import typer.main

import dtrag
from dtrag.delivery.cli.commands import app
from dtrag.settings import CONFIG, FLAGS, LIVE, PREFIX, declarations

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dtrag"
PAGES = [
    page for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "bench/*.md") for page in sorted(ROOT.glob(pattern))
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
VARIABLE = re.compile(r"\b(?:DTRAG|FEATURE)_[A-Z][A-Z_]*\b")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(text) if name == language]


def spans(text: str) -> list[str]:
    return SPAN.findall(FENCE.sub("", text))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


pages = pytest.mark.parametrize("page", PAGES, ids=name_of)
architecture = text_of(ROOT / "docs" / "explanation" / "architecture.md")


# --- links --------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as hosts of Markdown make them: lower case, no punctuation, dashes."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pages
def test_every_relative_link_resolves(page: Path) -> None:
    missing = []
    for link in LINK.findall(FENCE.sub("", text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert missing == []


def test_every_page_named_in_code_and_prose_exists() -> None:
    """Also in error texts, docstrings, scripts and tests, which are no links."""
    files = [
        file
        for folder in ("src", "tests", "scripts", "bench", "docs", "examples")
        for pattern in ("*.py", "*.md", "*.yml", "*.json", "*.sql")
        for file in (ROOT / folder).rglob(pattern)
    ]
    files += [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    named = {
        (name_of(file), path) for file in files for path in re.findall(r"(?<![\w./-])docs/[\w./-]+\.\w+", text_of(file))
    }
    assert sorted((where, path) for where, path in named if not (ROOT / path).exists()) == []


@pytest.mark.parametrize("index", ["docs/index.md", "docs/index.ko.md"])
def test_every_page_is_linked_from_the_entry_pages(index: str) -> None:
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(ROOT / index))}
    assert {page for page in (ROOT / "docs").rglob("*.md") if page.stem != "index.ko"} - {ROOT / index} <= linked


@pytest.mark.parametrize("readme", ["README.md", "README.ko.md"])
def test_the_readme_links_an_entry_page(readme: str) -> None:
    entry = "docs/index.ko.md" if ".ko" in readme else "docs/index.md"
    assert entry in LINK.findall(text_of(ROOT / readme))


def test_every_page_is_of_one_of_four_kinds() -> None:
    kinds = {str(page.relative_to(ROOT / "docs").parent) for page in (ROOT / "docs").rglob("*.md")}
    assert kinds == {".", "tutorial", "how-to", "reference", "explanation"}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} == {"index.md", "index.ko.md"}


# --- commands -----------------------------------------------------------------------------------------------------


def quoted_commands(text: str) -> Iterator[list[str]]:
    """The words behind `dtrag` of each command in a shell block or between backticks, comments and pipes cut off."""
    lines = [line for language in ("sh", "bash") for body in blocks(text, language) for line in body.splitlines()]
    for line in [*lines, *spans(text)]:
        command = re.sub(r"^(?:[A-Z_]+=\S* )*(?:\S*/)?(?=dtrag )", "", line.strip())
        if command.startswith("dtrag "):
            yield shlex.split(re.split(r"\s[|>]\s", command)[0], comments=True)[1:]


def options_of(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}


def mistake(words: list[str], command: Any) -> str:
    """What is wrong with the words of a command line; empty when nothing is."""
    for word in words:
        if word.startswith("[") and not re.search(r"[|-]", word):
            continue  # a word that stands for others, such as [options]
        bare = word.strip("[]")
        if bare.startswith("--") and bare not in options_of(command):
            return f"dtrag {command.name or ''} has no option {bare}"
        subcommands = getattr(command, "commands", None)
        if subcommands and re.fullmatch(r"[a-z][a-z|-]*", bare):
            for name in bare.split("|"):
                if name not in subcommands:
                    return f"dtrag {command.name or ''} has no command {name}"
            command = subcommands[bare.split("|")[0]]
    return ""


@pages
def test_every_quoted_command_exists(page: Path) -> None:
    top = typer.main.get_command(app)
    found = [mistake(words, top) for words in quoted_commands(text_of(page))]
    assert [what for what in found if what] == []


def test_wrong_commands_are_noticed() -> None:
    top = typer.main.get_command(app)
    assert mistake(["ingest", "FOLDER", "--category", "A/B"], top) == ""
    assert mistake(["inject", "FOLDER"], top)
    assert mistake(["models", "[list|push", "NAME]"], top)
    assert mistake(["search", "word", "--top"], top)


def test_every_command_is_quoted() -> None:
    quoted = {words[0] for page in PAGES for words in quoted_commands(text_of(page)) if words}
    top: Any = typer.main.get_command(app)
    assert set(top.commands) <= quoted


@pages
def test_every_make_target_exists(page: Path) -> None:
    makefile = text_of(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE))
    lines = [line for body in blocks(text_of(page), "sh") for line in body.splitlines()] + spans(text_of(page))
    asked = {match[1] for line in lines if (match := re.match(r"make (?:[A-Z]+=\S+ )*([a-z-]+)", line))}
    assert asked <= targets


# --- settings -----------------------------------------------------------------------------------------------------


def declared_variables() -> set[str]:
    settings = {PREFIX + declared.name.upper() for declared in declarations()}
    flags = {name for flag in FLAGS for name in (f"FEATURE_{flag.name.upper()}", *flag.aliases)}
    live = {CONFIG, *(name for name, _ in LIVE)}
    return {name for name in settings | flags | live if VARIABLE.fullmatch(name)}


def script_of(page: str) -> ModuleType:
    """The script that writes a page of the reference."""
    name = f"write_{page}_page"
    spec = spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["settings", "metrics"])
def test_a_generated_page_is_current(name: str) -> None:
    script = script_of(name)
    assert text_of(script.PAGE) == script.page(), f"run: .venv/bin/python scripts/write_{name}_page.py"


def test_the_option_tables_of_the_command_line_are_current() -> None:
    script = script_of("cli")
    text = text_of(script.PAGE)
    assert text == script.page(text), "run: .venv/bin/python scripts/write_cli_page.py"


def test_every_setting_is_on_its_page() -> None:
    assert set(VARIABLE.findall(text_of(ROOT / "docs" / "reference" / "settings.md"))) == declared_variables()


@pages
def test_every_variable_is_declared(page: Path) -> None:
    assert set(VARIABLE.findall(text_of(page))) - declared_variables() == set()


# --- Python -------------------------------------------------------------------------------------------------------


def _described(owner: str, name: str) -> object:
    """What the name in a snippet belongs to: `app` is an `App`, or a `SyncApp` where only that has the method."""
    if owner == "dtrag":
        return dtrag
    return dtrag.App if hasattr(dtrag.App, name) else dtrag.SyncApp


@pytest.mark.parametrize("readme", ["README.md", "README.ko.md"])
def test_the_python_snippets_fit_the_api(readme: str) -> None:
    snippets = blocks(text_of(ROOT / readme), "python")
    assert snippets
    for snippet in snippets:
        tree = compile(snippet, readme, "exec", ast.PyCF_ONLY_AST)
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            owner = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
            if owner in {"app", "dtrag"}:
                function = getattr(_described(owner, call.func.attr), call.func.attr)
                known = set(inspect.signature(function).parameters)
                assert {keyword.arg for keyword in call.keywords} <= known


# --- the architecture page ----------------------------------------------------------------------------------------


def defined(tree: ast.Module, dotted: str) -> bool:
    """Whether the module defines the function or class, or the class's method."""
    body: list[ast.stmt] = tree.body
    for name in dotted.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = [node for node in body if isinstance(node, kinds) and node.name == name]
        if not found:
            return False
        body = found[0].body
    return True


@pytest.mark.parametrize("page", ["architecture", "runtime"])
def test_paths_and_names_in_the_architecture_exist(page: str) -> None:
    text = text_of(ROOT / "docs" / "explanation" / f"{page}.md")
    named = [match for span in spans(text) if (match := re.fullmatch(r"([\w/.]+?)(?:::([\w.]+))?", span))]
    paths = [
        (match[1], match[2]) for match in named if re.search(r"\.(?:py|sql|onnx)$", match[1]) or match[1][-1] == "/"
    ]
    assert len(paths) > {"architecture": 30, "runtime": 10}[page]
    missing = [path for path, _ in paths if not (PACKAGE / path).exists()]
    unknown = [
        f"{path}::{name}"
        for path, name in paths
        if name and path not in missing and not defined(ast.parse(text_of(PACKAGE / path)), name)
    ]
    assert missing == []
    assert unknown == []


def test_every_folder_is_in_the_architecture() -> None:
    listed = re.findall(r"^\| `([\w/]+)/` \| [^|]+ \|$", architecture, re.M)
    modules = [file for file in PACKAGE.rglob("*.py") if file.stat().st_size]
    folders = {str(file.parent.relative_to(PACKAGE)) for file in modules} - {"."}
    assert sorted(listed) == sorted(folders)


def test_every_migration_is_in_the_architecture() -> None:
    assert {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("migrations/*.sql")} <= set(spans(architecture))


# --- messages -----------------------------------------------------------------------------------------------------


def said_by_the_code() -> str:
    """Every text in the code, one a line, white space folded."""
    texts = [
        " ".join(node.value.split())
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(text_of(file)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "\n".join([*texts, text_of(ROOT / "Makefile")])


def test_the_messages_of_the_troubleshooting_table_are_real() -> None:
    """In the first column, behind the status: a sentence, unlike the names of fields and routes."""
    page = text_of(ROOT / "docs" / "how-to" / "troubleshooting.md")
    rows = [row.split(" | ") for row in re.findall(r"^\| (.*) \|$", page, re.MULTILINE)]
    assert {len(row) for row in rows} == {3}
    messages = [text for symptom, *_ in rows for text in SPAN.findall(symptom) if " " in text]
    assert len(messages) > 30
    said = re.sub(r"\{[^}]*\}|%[sd]", "\n", said_by_the_code())
    fragments = [part.strip() for message in messages for part in re.split(r"…|: ", message)]
    assert [fragment for fragment in fragments if fragment not in said] == []


def test_the_changelog_knows_the_version() -> None:
    assert f"## [{dtrag.__version__}]" in text_of(ROOT / "CHANGELOG.md")


# --- the two READMEs ----------------------------------------------------------------------------------------------


def test_the_korean_readme_has_what_the_english_one_has() -> None:
    """Sections at the same levels, code blocks in the same languages, links to the same pages."""
    shapes = []
    for name in ("README.md", "README.ko.md"):
        text = text_of(ROOT / name)
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
        shapes.append(
            {
                "headings": [len(marks) for marks in re.findall(r"^(#+) ", prose, re.M)],
                "blocks": re.findall(r"^```(\w+)$", text, re.M),
                "links": set(re.findall(r"\]\(([^)]+)\)", prose))
                - {"README.md", "README.ko.md", "docs/index.md", "docs/index.ko.md"},
                "listed": re.findall(r"\]\((?!docs/index)([^)]+)\)", prose.rpartition("\n## ")[2]),
                "items": len(re.findall(r"^- ", prose, re.M)),
            }
        )
    assert shapes[0] == shapes[1]


# --- files that the code names ------------------------------------------------------------------------------------


def test_files_that_comments_and_docstrings_name_exist() -> None:
    known = {
        f"/{name_of(file)}" for folder in ("src", "tests", "scripts", "bench") for file in (ROOT / folder).rglob("*")
    }
    missing = [
        f"{name_of(file)}: {path}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for path in re.findall(r"\b(?:[a-z_]+/)+[a-z_]+\.py\b", text_of(file))
        if not any(name.endswith(f"/{path}") for name in known)
    ]
    assert missing == []
