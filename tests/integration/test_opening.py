"""`dtrag.open()` says how it is used, and `dtrag.open_sync()` is the same app for scripts and notebooks."""

from __future__ import annotations

import asyncio
import inspect
import os
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dtrag
from dtrag.adapters.postgres.server import server
from dtrag.app import App
from dtrag.errors import DatabaseUnavailable
from dtrag.opening import SyncApp
from dtrag.settings import Settings
from tests.store import Store

USES_NO_LANGGRAPH = """
import asyncio, sys
import httpx2
from dtrag.delivery.api.app import create_app
from dtrag.delivery.cli.main import main
from dtrag.settings import Settings

async def serve():
    api = create_app(Settings.load())
    transport = httpx2.ASGITransport(api)
    client = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")
    async with api.router.lifespan_context(api), client:
        await api.state.service.warm()
        return (await client.post("/chat/run", json={"message": "How long is parental leave?"})).status_code

assert main(["ask", "How long is parental leave?", "--json"]) == 0
assert asyncio.run(serve()) == 200
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"langgraph", "langchain_core", "langsmith"}), file=sys.stderr)
"""


def test_a_forgotten_async_with_is_explained(tmp_path: Path) -> None:
    opening: Any = dtrag.open(data_dir=tmp_path, embedder="none")
    with pytest.raises(dtrag.NotOpened, match=r"app\.search.*async with dtrag\.open\(\) as app"):
        opening.search("x")
    with pytest.raises(dtrag.NotOpened, match=r"open_sync"), opening:
        pass
    assert not hasattr(opening, "ask")

    async def awaited() -> None:
        await opening

    with pytest.raises(dtrag.NotOpened, match="async with"):
        asyncio.run(awaited())


def test_public_names_are_in_dir_and_help() -> None:
    assert set(dtrag.__all__) <= set(dir(dtrag))
    shown = pydoc.plain(pydoc.render_doc(dtrag))
    for name in ("App", "Answer", "InvalidInput", "SyncApp"):
        assert f"class {name}" in shown


def test_the_sync_app_has_every_method_of_the_app() -> None:
    """Except what only the service and the entering of the app need."""
    inner = {"forget_deleted", "recover", "ingest_sources", "warm"}
    inner |= {"queue_backup", "queue_evaluation", "queue_imagination", "queue_sync", "queue_upload"}
    inner |= {"require_no_queued", "open_sign_in", "preview_sign_in", "allow_people", "tree_grades", "exportable"}
    methods = {n for n, f in inspect.getmembers(App, inspect.iscoroutinefunction) if not n.startswith("_")}
    delegated = {name for name in vars(SyncApp) if name in methods}
    assert methods - delegated == inner
    for name in delegated:
        wrapper = inspect.getattr_static(SyncApp, name)
        assert (wrapper.method, wrapper.__doc__) == (getattr(App, name), getattr(App, name).__doc__)


def test_a_script_without_await(settings: Settings, store: Store, tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("# Kettles\n\nThe kettle on the third floor is descaled on Fridays.\n")
    progress: list[dtrag.Progress] = []
    with SyncApp(settings) as app:
        report = app.ingest(tmp_path, "House", progress.append)
        assert (report.documents, progress[-1].files) == (1, 1)
        results, metrics = app.search("kettle descaled", top_k=3, mode="lexical")
        assert ([result.title for result in results], metrics.mode) == (["Kettles"], "lexical")
        assert "Fridays" in app.ask("When is the kettle descaled?").text
        assert [document.title for document in app.documents()] == ["Kettles"]
        assert app.run(lambda inner: inner.review.waiting()) == ([], 0)
        with pytest.raises(dtrag.InvalidInput, match="limit must be"):
            app.documents(0)
    with pytest.raises(dtrag.NotOpened, match="closed"):
        app.counts()
    app.close()


async def test_it_works_inside_a_running_loop_as_in_a_notebook(settings: Settings) -> None:
    with SyncApp(settings) as app:
        assert app.counts() == (0, 0)


def test_a_callback_cannot_call_back(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("# Kettles\n\nDescaled.\n")
    with SyncApp(settings) as app, pytest.raises(dtrag.NotOpened, match="callback"):
        app.ingest(tmp_path, on_progress=lambda _: app.counts() and None)


def test_errors_on_opening_are_raised() -> None:
    with pytest.raises(DatabaseUnavailable):
        dtrag.open_sync(database_url="postgresql://someone:hush@127.0.0.1:1/nothing", embedder="none")


def test_a_script_that_does_not_close_it_ends_and_leaves_nothing_running(tmp_path: Path) -> None:
    script = "import sys, dtrag; print(dtrag.open_sync(data_dir=sys.argv[1], embedder='none').counts())"
    kept = script.replace("print(", "app = ").replace(".counts())", "; print(app.counts())")
    done = subprocess.run(
        [sys.executable, "-c", kept, str(tmp_path / "data")], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(0, 0)\n", "")
    assert server.status(tmp_path / "data").pid is None


def test_answering_imports_no_langgraph(settings: Settings) -> None:
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("DTRAG_", "FEATURE_"))}
    environment = {
        **mine,
        "DTRAG_DATA_DIR": str(settings.data_dir),
        "DTRAG_DATABASE_NAME": settings.database_name,
        "DTRAG_EMBEDDER": "none",
    }
    done = subprocess.run(
        [sys.executable, "-c", USES_NO_LANGGRAPH], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
