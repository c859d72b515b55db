"""Measures the size and shape of this repository, and fails where a figure is above its limit.

    python scripts/project.py [FIGURE ...] [--list] [--json] [--root FOLDER]
    python scripts/project.py --calls [--rounds N] [--json]

Without names every figure of `FIGURES` is printed with its limit; the exit code is 1 when one is above it. `--list`
prints what a figure counts. `--calls` counts the files, functions and frames that requests take, and their processor
time, over the samples: for another commit, run it with that commit's interpreter.

A limit is raised only with a reason in the commit; when a figure falls, its limit falls with it. `tests/test_house.py`
runs all of it.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import functools
import io
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
import tokenize
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
SMALL_WITH_ONE_IMPORTER = 110
"""Lines up to which a file with one importer is counted: its importer could hold it."""
LONG_PATTERN = 80
"""Characters above which a regular expression needs an example and a counter-example that a test runs."""
FEWEST_FIELDS = 4
"""Fields from which a class that repeats another one's counts."""
SHARE = 0.8
"""The share of the other class's fields from which they count as the same value."""
BANNED_NAMES = ("found", "asked", "wanted", "given", "kept", "one")
"""Local names that say nothing of what they hold."""
VIEWS = "views"
LAYERS = ("main.tsx", "app", VIEWS, "parts", "state", "api", "text", "design")
"""The page's folders, from the top: a file imports from its own or a later one."""
WITH_EXAMPLES = "explained"
"""The function that compiles a pattern with its examples."""


@dataclass(frozen=True, slots=True)
class Module:
    """A Python file of the package: its dotted name, text and syntax tree."""

    name: str
    file: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """All lines, as `wc -l` counts them."""
        return self.text.count("\n")


class Project:
    """The files under `root`."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.package = root / "src" / "dtrag"
        self.page = root / "web" / "src"

    def files(self, *suffixes: str) -> list[Path]:
        """Files of the package with these endings, without what is built."""
        return sorted(
            file
            for suffix in suffixes
            for file in self.package.rglob(f"*{suffix}")
            if "__pycache__" not in file.parts and self.package / "delivery" / "page" not in file.parents
        )

    @functools.cached_property
    def modules(self) -> dict[str, Module]:
        """Dotted name -> module."""
        found: dict[str, Module] = {}
        for file in self.files(".py"):
            parts = file.relative_to(self.root / "src").with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = file.read_text("utf-8")
            found[name] = Module(name, file, text, ast.parse(text))
        return found

    @functools.cached_property
    def imports(self) -> dict[str, set[str]]:
        """Module -> the modules of the package that it imports, also within functions and for types."""
        return {name: set(self._imported(module)) for name, module in self.modules.items()}

    def _imported(self, module: Module) -> Iterator[str]:
        for node in ast.walk(module.tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [
                    full if (full := f"{node.module}.{alias.name}") in self.modules else node.module
                    for alias in node.names
                ]
            yield from (name for name in names if name in self.modules and name != module.name)

    @functools.cached_property
    def page_imports(self) -> dict[str, set[str]]:
        """File of the page -> the files that it imports, types included; tests are left out."""
        files = {
            str(file.relative_to(self.page)): file.read_text("utf-8")
            for file in self.page.rglob("*.ts*")
            if ".test." not in file.name
        }
        graph: dict[str, set[str]] = {}
        for name, text in files.items():
            graph[name] = set()
            for path in re.findall(r"""(?:from|import\()\s*["'](\.[^"']*)["']""", text):
                target = (self.page / name).parent.joinpath(path).resolve()
                for ending in ("", ".ts", ".tsx"):
                    candidate = Path(f"{target}{ending}")
                    if candidate.is_file() and candidate.suffix in {".ts", ".tsx"}:
                        graph[name].add(str(candidate.relative_to(self.page.resolve())))
        return graph


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Groups of files that import one another (Tarjan's strongly connected components of two or more)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[str] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                components.append(f"{len(component)} files: {', '.join(sorted(component))}")

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return components


def python_files(project: Project) -> list[str]:
    """Python files of the package."""
    return [str(file) for file in project.files(".py")]


def python_lines(project: Project) -> int:
    """Lines of Python of the package."""
    return sum(module.lines for module in project.modules.values())


def code_lines(project: Project) -> int:
    """Lines of Python that hold code: neither blank, comment, docstring nor import."""
    return sum(len(_code_lines(module)) for module in project.modules.values())


def _code_lines(module: Module) -> set[int]:
    left_out = {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - left_out


def lines_of(suffix: str) -> Callable[[Project], int]:
    """Counts the lines of files with this ending."""

    def count(project: Project) -> int:
        return sum(file.read_bytes().count(b"\n") for file in project.files(suffix))

    count.__doc__ = f"Lines of {suffix} files of the package."
    return count


def _classes(project: Project) -> Iterator[tuple[str, ast.ClassDef]]:
    for module in project.modules.values():
        yield from ((module.name, node) for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


def repeated_classes(project: Project) -> list[str]:
    """Classes whose fields, inherited ones included, are all fields of another class, and most of that one's.

    Two subclasses repeat nothing by what both inherit from one class.
    """
    own: dict[str, tuple[set[str], list[str]]] = {}
    for module, node in _classes(project):
        names = {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign)
            and isinstance(item.target, ast.Name)
            and not item.target.id.startswith("_")
            and "ClassVar" not in ast.unparse(item.annotation)
        }
        own[f"{module}.{node.name}"] = (names, [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases])
    by_name = {name.rpartition(".")[2]: name for name in sorted(own, reverse=True)}

    def ancestors(name: str) -> set[str]:
        bases = {by_name[base] for base in own[name][1] if base in by_name} - {name}
        return bases.union(*map(ancestors, bases)) if bases else bases

    lineage = {name: {name, *ancestors(name)} for name in own}
    fields = {
        name: frozenset().union(*(own[part][0] for part in parts))
        for name, parts in lineage.items()
        if "Protocol" not in own[name][1]
    }
    repeated: list[str] = []
    for small, names in sorted(fields.items()):
        if len(names) < FEWEST_FIELDS or not own[small][0]:
            continue
        for large, others in sorted(fields.items()):
            if (
                names <= others
                and len(names) >= SHARE * len(others)
                and (names != others or large < small)
                and large not in lineage[small]
                and small not in lineage[large]
                and names - {field for part in {*lineage[small]} & {*lineage[large]} for field in own[part][0]}
            ):
                repeated.append(f"{small} ({len(names)}) < {large} ({len(others)})")
                break
    return repeated


def doubled_names(project: Project) -> list[str]:
    """Names of public classes that two or more modules define."""
    where: dict[str, set[str]] = defaultdict(set)
    for module, node in _classes(project):
        if not node.name.startswith("_"):
            where[node.name].add(module)
    return [f"{name}: {', '.join(sorted(modules))}" for name, modules in sorted(where.items()) if len(modules) > 1]


def _patterns(project: Project) -> Iterator[tuple[str, str, bool]]:
    """Where and what each call of `re` matches, of a composed pattern the literal parts; whether it has examples."""
    functions = {"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
    for module in project.modules.values():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            has_examples = isinstance(node.func, ast.Name) and node.func.id == WITH_EXAMPLES
            if has_examples or (
                isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in functions
            ):
                literal = "".join(
                    str(part.value)
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )
                yield f"{module.file.relative_to(project.root)}:{node.lineno}", literal, has_examples


def regular_expressions(project: Project) -> list[str]:
    """Calls of `re` with a pattern in Python code."""
    return [f"{where} {pattern[:60]}" for where, pattern, _ in _patterns(project)]


def long_patterns(project: Project) -> list[str]:
    """Patterns above 80 characters without examples that a test runs (`dtrag.core.text.patterns.explained`)."""
    return [
        f"{where} {pattern[:60]}"
        for where, pattern, has_examples in _patterns(project)
        if len(pattern) > LONG_PATTERN and not has_examples
    ]


def small_files(project: Project) -> list[str]:
    """Files of at most 110 lines that one other file imports."""
    importers = Counter(target for targets in project.imports.values() for target in targets)
    return [
        f"{name} ({module.lines})"
        for name, module in sorted(project.modules.items())
        if importers[name] == 1 and module.lines <= SMALL_WITH_ONE_IMPORTER and module.file.name != "__init__.py"
    ]


def python_circles(project: Project) -> list[str]:
    """Groups of modules that import one another."""
    return circles(project.imports)


def page_circles(project: Project) -> list[str]:
    """Groups of files of the page that import one another."""
    return circles(project.page_imports)


def page_upward_imports(project: Project) -> list[str]:
    """Imports of the page from a lower folder to a higher one."""
    level = {folder: number for number, folder in enumerate(LAYERS)}
    return [
        f"{name} -> {target}"
        for name, targets in sorted(project.page_imports.items())
        for target in sorted(targets)
        if (top := name.split("/")[0]) in level
        and (
            level.get(target.split("/")[0], -1) < level[top]
            or (top == target.split("/")[0] == VIEWS and name.split("/")[1] != target.split("/")[1])
        )
    ]


def banned_names(project: Project) -> list[str]:
    """Local variables with a name that says nothing of what they hold."""
    return [
        f"{module.file.relative_to(project.root)}:{node.lineno} {name}"
        for module in project.modules.values()
        for node in ast.walk(module.tree)
        for name in [
            node.id
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else node.arg
            if isinstance(node, ast.arg)
            else ""
        ]
        if name in BANNED_NAMES
    ]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number, or what is counted, and the highest value that is allowed."""

    name: str
    measure: Callable[[Project], int | list[str]]
    limit: int


FIGURES = (
    Figure("python-files", python_files, 528),
    Figure("python-lines", python_lines, 106_800),
    Figure("code-lines", code_lines, 68_250),
    Figure("sql-lines", lines_of(".sql"), 4_390),
    Figure("toml-lines", lines_of(".toml"), 26_200),
    Figure("json-lines", lines_of(".json"), 600),
    Figure("repeated-classes", repeated_classes, 4),
    Figure("doubled-names", doubled_names, 4),
    Figure("regular-expressions", regular_expressions, 572),
    Figure("long-patterns", long_patterns, 0),
    Figure("small-files-with-one-importer", small_files, 24),
    Figure("python-circles", python_circles, 0),
    Figure("page-circles", page_circles, 0),
    Figure("page-upward-imports", page_upward_imports, 0),
    Figure("banned-names", banned_names, 0),
)


def above(project: Project, names: Iterable[str] = ()) -> Iterator[tuple[Figure, int, list[str]]]:
    """Each figure with its value and what it counts."""
    for figure in FIGURES:
        if not names or figure.name in names:
            measured = figure.measure(project)
            items = measured if isinstance(measured, list) else []
            yield figure, len(items) if isinstance(measured, list) else measured, items


REQUESTS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("search", "/search", {"query": "How many days of annual leave does an employee have?", "limit": 10}),
    ("english answer", "/ask", {"question": "How many days of annual leave does an employee have?"}),
    ("korean answer", "/ask", {"question": "휴학은 몇 학기까지 할 수 있나요?"}),
    ("suggestion", "/cbr/suggest", {"query": "How many days of annual leave are there?"}),
)
"""Name, path and body of what `--calls` sends."""


class Calls:
    """Counts calls of functions of the package while it is a profile hook of all threads."""

    def __init__(self, package: Path) -> None:
        self._package = f"{package}/"
        self.calls = 0
        self.files: set[str] = set()
        self.frames = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """See `sys.setprofile`."""
        if event != "call":
            return
        file = frame.f_code.co_filename
        if file.startswith(self._package):
            self.calls += 1
            self.files.add(file)
        elif frame.f_code.co_name == "execute" and "psycopg" in file:
            depth, above_it = 0, frame.f_back
            while above_it is not None:
                depth += above_it.f_code.co_filename.startswith(self._package)
                above_it = above_it.f_back
            self.frames = max(self.frames, depth)

    def __enter__(self) -> Calls:
        threading.setprofile_all_threads(self) if sys.version_info >= (3, 12) else threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile_all_threads(None) if sys.version_info >= (3, 12) else threading.setprofile(None)


async def request_costs(rounds: int) -> dict[str, dict[str, float]]:
    """Name of a request -> calls, files, deepest frames above a statement, and the processor time in milliseconds.

    The calls are those of a second request (the first one fills caches of words and statements, not of answers); the
    processor time, of all threads of this process, is the median of `rounds` requests without the hook, each with a
    number appended so that nothing is remembered of it.
    """
    import httpx2

    import dtrag
    from dtrag.delivery.api.app import create_app
    from dtrag.settings import Settings

    package = Path(str(dtrag.__file__)).parent
    costs: dict[str, dict[str, float]] = {}

    async def measured(name: str, send: Callable[[int], Awaitable[object]], repeats: int) -> None:
        await send(0)
        with Calls(package) as counted:
            await send(1)
        times = []
        for number in range(2, repeats + 2):
            began = time.process_time()
            await send(number)
            times.append(1_000 * (time.process_time() - began))
        costs[name] = {
            "calls": counted.calls,
            "files": len(counted.files),
            "frames": counted.frames,
            "milliseconds": round(statistics.median(times), 2),
        }

    with tempfile.TemporaryDirectory() as folder:
        os.environ["CBR_ENABLED"] = "true"
        api = create_app(Settings.load(environ={}, data_dir=Path(folder) / "data"))
        async with (
            api.router.lifespan_context(api),
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=api), base_url="http://localhost:8001", timeout=120
            ) as client,
        ):
            app = api.state.service.app
            samples = ROOT / "examples"
            await app.ingest([samples / "tarrowby-handbook", samples / "hanbit-university"])

            def sender(path: str, body: dict[str, object]) -> Callable[[int], Awaitable[object]]:
                async def send(number: int) -> object:
                    key = "question" if "question" in body else "query"
                    response = await client.post(path, json={**body, key: f"{body[key]} ({number})"})
                    assert response.status_code == 200, response.text
                    return response

                return send

            for name, path, body in REQUESTS:
                await measured(name, sender(path, body), rounds)

            async def ingest(number: int) -> object:
                file = Path(folder) / f"{number}.md"
                file.write_text(
                    f"# Leave {number}\n\n" + "An employee has 26 days of paid leave a year.\n\n" * 40, "utf-8"
                )
                return await app.ingest([file])

            await measured("ingest", ingest, min(rounds, 5))
    return costs


def main() -> int:
    """Prints the figures; 1 when one is above its limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("figures", nargs="*", metavar="FIGURE")
    parser.add_argument("--list", action="store_true", help="print what each figure counts")
    parser.add_argument("--calls", action="store_true", help="count what requests cost instead")
    parser.add_argument("--rounds", type=int, default=20, help="timed requests of each kind")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pattern may hold half of a surrogate pair
    if unknown := sorted(set(options.figures) - {figure.name for figure in FIGURES}):
        parser.error(f"no such figure: {', '.join(unknown)}. There are {', '.join(figure.name for figure in FIGURES)}")
    if options.calls:
        costs = asyncio.run(request_costs(options.rounds))
        if options.json:
            print(json.dumps(costs, indent=2))
        for name, cost in () if options.json else costs.items():
            print(f"{name:16}", *(f"{value:>9,} {unit}" for unit, value in cost.items()))
        return 0
    measured = list(above(Project(options.root), options.figures))
    if options.json:
        print(json.dumps({figure.name: value for figure, value, _ in measured}, indent=2))
    else:
        for figure, value, items in measured:
            print(f"{figure.name:32} {value:>8,} {'>' if value > figure.limit else '≤'} {figure.limit:>8,}")
            if options.list:
                print("".join(f"  {item}\n" for item in items), end="")
    return int(any(value > figure.limit for figure, value, _ in measured))


if __name__ == "__main__":
    sys.exit(main())
