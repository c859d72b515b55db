"""Pages of the database overwritten on the disk, and a disk that becomes read-only under a running service."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.app import App, open_app
from dtrag.delivery.cli.checks import examine
from dtrag.errors import DatabaseDamaged
from dtrag.settings import Settings
from tests.api.conftest import Served
from tests.api.shape import BOUNDARY, file_form
from tests.toy import lines

pytestmark = pytest.mark.long_fault
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


async def file_of(app: App, relation: str) -> Path:
    async with app.database.connection("owner") as connection:
        cursor = await connection.execute("select pg_relation_filepath(%s::regclass) as path", [f"dtrag.{relation}"])
        row = await cursor.fetchone()
    assert row is not None
    return app.settings.data_dir / "postgres" / str(row["path"])


def overwrite(file: Path) -> bytes:
    """Garbage in the middle of each page; returns what was there."""
    whole = file.read_bytes()
    pages = [whole[start : start + 8_192] for start in range(0, len(whole), 8_192)]
    file.write_bytes(b"".join(page[:200] + os.urandom(4_000) + page[4_200:] for page in pages))
    return whole


@pytest.mark.parametrize("relation", ["lexical_index", "lexical_index_pkey", "chunks"])
async def test_a_damaged_page_is_reported_and_repaired(mortal: Path, tmp_path: Path, relation: str) -> None:
    settings = Settings.load(environ={}, data_dir=mortal, database_name=f"damaged_{relation}", embedder="none")
    async with open_app(settings) as app:
        await app.ingest(lines(tmp_path / "notes.jsonl", 40))
        file = await file_of(app, relation)
    whole = overwrite(file)
    async with open_app(settings) as app:
        with pytest.raises(DatabaseDamaged, match="dtrag reindex"):
            await app.search("kettle")
        if relation == "chunks":  # the texts themselves: nothing rebuilds them
            with pytest.raises(DatabaseDamaged):
                await app.reindex()
    checks = {check.name: check for check in (await examine(settings)).checks}
    assert checks["pages"].state == "fail"
    assert relation.removesuffix("_pkey") in checks["pages"].detail
    if relation == "chunks":
        file.write_bytes(whole)
    async with open_app(settings) as app:
        await app.reindex()
        results, _ = await app.search("kettle")
        assert results
    assert {check.name: check for check in (await examine(settings)).checks}["pages"].state == "ok"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that can fail."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(400 << 20)
    folder.mkdir()
    made = subprocess.run(["mkfs.ext4", "-q", image], check=False, capture_output=True).returncode
    if made != 0 or subprocess.run(["mount", "-o", "loop", image, folder], check=False, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_disk_that_becomes_read_only(disk: Path) -> None:
    tmp_path = disk.parent
    tmp_path.chmod(0o755)
    running = Served(data_dir=str(disk / "data"), embedder="none", port="0", log_level="ERROR")
    client = running.client
    try:
        running.until_ready()
        form = file_form(b"a.txt", b"Parental leave.")
        assert client.post("/documents", content=form, headers=FORM).status_code == 201
        subprocess.run(["mount", "-o", "remount,abort", disk], check=True)  # what the kernel does after an I/O error
        deadline = time.monotonic() + 60
        while True:
            refused = client.post("/search", json={"query": f"leave {time.monotonic()}"})
            if refused.status_code == 503 and "read-only" in refused.json()["detail"]:
                break
            assert refused.status_code in {200, 503}, refused.text
            assert time.monotonic() < deadline, refused.text
            time.sleep(0.1)
        upload = client.post("/documents", content=form, headers=FORM)
        assert (upload.status_code, "read-only" in upload.json()["detail"].lower()) == (503, True)
        assert client.get("/livez").status_code == 200
        assert client.get("/readyz").status_code == 503
    finally:
        code, said = running.stop()
    assert code == 0, said
    assert "Traceback" not in said.splitlines()[-1]
