"""A full disk: documents are refused before the database cannot write any more, reads go on, and writes resume."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from dtrag.adapters.postgres import disk
from dtrag.adapters.postgres.disk import MIB, Disk
from dtrag.app import App
from dtrag.core.access.api_key import LOCAL
from dtrag.delivery.api.app import create_app
from dtrag.errors import StorageFull
from dtrag.settings import Settings
from tests.api.conftest import Served
from tests.integration.cli_process import Cli
from tests.toy import lines

SMALL_DISK = "150m"


@dataclass
class FakeDisk:
    """Space as the test says."""

    free: int = 100 * MIB
    total: int = 150 * MIB

    def space(self, folder: Path) -> tuple[int, int]:
        return self.free, self.total


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDisk:
    made = FakeDisk()
    monkeypatch.setattr(disk, "_space", made.space)
    monkeypatch.setattr(disk, "RESERVE_BYTES", MIB)
    return made


def test_the_reserve_is_given_up_and_made_again(tmp_path: Path, fake: FakeDisk) -> None:
    watched = Disk(tmp_path, 512)
    watched.look()
    reserve = tmp_path / "reserve"
    assert reserve.stat().st_size == MIB
    watched.require()
    fake.free = 29 * MIB  # below a fifth of the disk
    watched.look()
    assert reserve.exists()
    with pytest.raises(StorageFull, match="29 MiB are free, and 30 MiB are required"):
        watched.require()
    watched.require_any()
    fake.free = MIB // 2
    watched.look()
    assert not reserve.exists()
    with pytest.raises(StorageFull):
        watched.require_any()
    fake.free = 30 * MIB
    watched.look()
    assert not reserve.exists()
    with pytest.raises(StorageFull):
        watched.require()
    fake.free = 31 * MIB
    watched.look()
    assert reserve.exists()
    watched.require()
    with pytest.raises(StorageFull):
        watched.require(2 * MIB)


def test_without_a_limit_nothing_is_refused_and_nothing_reserved(tmp_path: Path, fake: FakeDisk) -> None:
    fake.free = 0
    watched = Disk(tmp_path, 0)
    watched.look()
    watched.require()
    watched.require_any()
    assert list(tmp_path.iterdir()) == []


async def test_reads_and_deletions_go_on(app: App, fake: FakeDisk, tmp_path: Path) -> None:
    path, more = lines(tmp_path / "notes.jsonl", 20), lines(tmp_path / "more.jsonl", 20, seed=1)
    await app.ingest(path)
    fake.free = MIB
    with pytest.raises(StorageFull):
        await app.ingest(more)
    with pytest.raises(StorageFull):
        await app.reindex()
    with pytest.raises(StorageFull):
        await app.conversations.add("talk", LOCAL, "Where?", "There.")
    results, _ = await app.search("kettle", mode="lexical")
    assert results
    assert (await app.ask("What about the kettle?")).text
    documents = await app.documents()
    await app.delete_document(documents[0].document_id)
    assert len(await app.documents()) == 19
    fake.free = 100 * MIB
    assert (await app.ingest(more)).documents == 20


async def test_over_http_it_is_507(settings: Settings, fake: FakeDisk) -> None:
    api = create_app(settings)
    async with api.router.lifespan_context(api):
        transport = httpx2.ASGITransport(app=api)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            file = {"files": ("a.txt", b"the kettle boils", "text/plain")}
            assert (await client.post("/documents", files=file)).status_code == 201
            fake.free = MIB
            refused = await client.post("/documents", files=file)
            assert refused.status_code == 507
            assert refused.json()["type"] == "StorageFull"
            assert "the setting min_free_mb" in refused.json()["detail"]
            assert (await client.post("/search", json={"query": "kettle"})).json()["results"]
            talk = {"message": "What boils?", "conversation_id": "talk"}
            assert (await client.post("/chat/run", json=talk)).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/health")).json()["checks"]["disk"]["status"] == "degraded"
            fake.free = 100 * MIB
            assert (await client.post("/documents", files=file)).status_code == 201


def test_the_command_line_says_so_with_its_exit_code(settings: Settings, fake: FakeDisk, tmp_path: Path) -> None:
    cli = Cli(settings.data_dir, (("DTRAG_DATABASE_NAME", settings.database_name), ("DTRAG_EMBEDDER", "none")))
    fake.free = MIB
    ran = cli.call("ingest", lines(tmp_path / "notes.jsonl", 5))
    assert ran.code == 6
    assert "too full" in ran.err and "min_free_mb" in ran.err
    assert cli.call("search", "kettle").code == 0


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 150 MB in memory."""
    folder = Path(tempfile.mkdtemp(prefix="test-dtrag-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK},mode=0755", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def _fill(path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(MIB))
        except OSError:
            pass


def _text(chance: random.Random, number: int) -> bytes:
    paragraphs = (" ".join(f"w{chance.randrange(30_000)}" for _ in range(100)) for _ in range(300))
    return f"serial{number:04} {'  '.join(paragraphs)}".encode()


def _outcome(response: httpx2.Response, expected: int) -> str:
    """The status, with the body of another one than expected."""
    return str(response.status_code) + ("" if response.status_code == expected else f" {response.text[:300]}")


@pytest.mark.long_fault
def test_a_disk_of_150_mb(small_disk: Path) -> None:
    """dtrag fills it up to the watermark, something else to the last byte; then there is space again."""
    chance, reads = random.Random(7), Counter[str]()
    mine, others = small_disk / "ballast", small_disk / "others"
    mine.write_bytes(bytes(20 * MIB))
    service = Served(data_dir=str(small_disk / "data"), embedder="none", port="0", log_level="ERROR")
    client, acknowledged = service.client, []

    def upload(number: int) -> str:
        """201, or the status with what the service says."""
        files = {"files": (f"{number}.txt", _text(chance, number), "text/plain")}
        outcome = _outcome(client.post("/documents", files=files), 201)
        if outcome == "201":
            acknowledged.append(number)
        return outcome

    def read() -> None:
        number = chance.choice(acknowledged)
        query = {"query": f"serial{number:04} w{chance.randrange(30_000)}"}
        reads[_outcome(client.post("/search", json=query), 200)] += 1
        reads[_outcome(client.post("/ask", json={"question": f"serial{number:04}?"}), 200)] += 1

    try:
        for number in range(400):
            if (refused := upload(number)) != "201":
                break
            read()
        assert refused.startswith("507"), refused
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            _fill(others)
            read()
        deadline = time.monotonic() + 20
        while (refused := upload(999)).startswith("503") and time.monotonic() < deadline:
            time.sleep(0.5)  # the server restarts when it cannot write a byte: refused all the same, with that reason
        assert refused.startswith("507"), refused
        assert set(reads) == {"200"}, reads
        others.unlink()
        mine.unlink()
        started = time.monotonic()
        while (refused := upload(500)) != "201":
            assert time.monotonic() - started < 15, refused
            time.sleep(0.1)
        resumed = time.monotonic() - started
        while not (small_disk / "data" / "reserve").exists():
            assert time.monotonic() - started < 15
            time.sleep(0.1)
        for number in acknowledged:
            found = client.post("/search", json={"query": f"serial{number:04}", "mode": "strict"}).json()["results"]
            assert any(f"serial{number:04}" in result["text"] for result in found), number
        lines_left_out = client.get("/audit?limit=1000").json()["lines"]
        print(  # noqa: T201 - `make faults` shows the figures with -s
            f"150 MB disk: {len(acknowledged)} uploads acknowledged, 0 lost; {reads['200']} reads, all 200; "
            f"writes again after {resumed:.1f} s; {len(lines_left_out)} lines in the audit log"
        )
    finally:
        code, logged = service.stop()
    assert code == 0, logged
    assert os.listdir(small_disk / "data" / "audit-spool") == []  # noqa: PTH208
