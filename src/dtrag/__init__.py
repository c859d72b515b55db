"""dtrag: answers over an organisation's documents that can be proved.

    async with dtrag.open() as app:
        await app.ingest(["handbook/"], category=["HR"])
        results, metrics = await app.search("parental leave")
        answer = await app.ask("How many days of parental leave are there?")

In scripts and notebooks, without `await`:

    with dtrag.open_sync() as app:
        print(app.ask("How many days of parental leave are there?").text)

Names are loaded when they are first used, so that `import dtrag` and `dtrag --help` stay quick.
"""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtrag.core.version import __version__ as __version__

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.opening import SyncApp

_IMPORTS = re.compile(r"^from (\.|dtrag[\w.]*) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)
"""The lines of `__init__.pyi` with public names: `from dtrag.app import App as App`."""


def open(  # noqa: A001 - `dtrag.open()` is what it does
    *, data_dir: str | Path | None = None, database_url: str | None = None, **settings: Any
) -> AbstractAsyncContextManager[App]:
    """The engine on an embedded database in `data_dir`, or on the one at `database_url`; an async context manager.

    Other keyword arguments are settings by name (`embedder="none"`); what is not given comes from the environment.
    Raises `InvalidInput` for a bad setting, and `DatabaseUnavailable` on entering.
    """
    from dtrag.opening import AppOpening
    from dtrag.settings import Settings

    return AppOpening(Settings.load(data_dir=data_dir, database_url=database_url, **settings))


def open_sync(*, data_dir: str | Path | None = None, database_url: str | None = None, **settings: Any) -> SyncApp:
    """As `open`, for scripts and notebooks: an open app whose methods return results instead of awaitables.

    Use it with `with`, or close it with `close()`. It runs its event loop in a thread of its own, so it also works
    where a loop is running already, as in Jupyter. Raises `InvalidInput` and `DatabaseUnavailable`.
    """
    from dtrag.opening import SyncApp
    from dtrag.settings import Settings

    return SyncApp(Settings.load(data_dir=data_dir, database_url=database_url, **settings))


@cache
def _homes() -> dict[str, str]:
    """The modules of the public names; "." for those that are modules themselves (`dtrag.llm_service`)."""
    stub = Path(__file__).with_suffix(".pyi").read_text("utf-8")
    return {
        name: module
        for module, several, single in _IMPORTS.findall(stub)
        for name in re.findall(r"(\w+) as", several or single)
    }


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})


def __getattr__(name: str) -> Any:
    if name == "__all__":  # without `open`: `from dtrag import *` must not replace the function that every program has
        return sorted({*_homes(), "open_sync"})
    if name.startswith("__") or name not in _homes():
        raise AttributeError(f"module 'dtrag' has no attribute {name!r}")
    home = _homes()[name]
    return import_module(f"dtrag.{name}") if home == "." else getattr(import_module(home), name)
