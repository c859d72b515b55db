"""kill -9 twenty times, of the database under load and of the service in uploads: nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dtrag.adapters.postgres.server.server import EmbeddedServer
from tests.api.conftest import Served
from tests.faults.test_crash import postmaster
from tests.store import Store
from tests.toy import ENGLISH

pytestmark = pytest.mark.long_fault

KILLS = 20
BACK_S = 15.0
"""Three times the promised five seconds."""
REFUSED_S = 3.0
"""A refusal is promised at once."""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="test-dtrag-kills-"))
    yield folder / "data"
    shutil.rmtree(folder)


def upload(client: httpx2.Client, name: str, chance: random.Random) -> int:
    """A file of some passages; the status, and 0 for a broken connection."""
    text = "\n\n".join(" ".join(chance.choices(ENGLISH, k=60)) for _ in range(8))
    files = {"files": (f"{name}.txt", f"serial{name} {text}".encode(), "text/plain")}
    try:
        status: int = client.post("/documents", files=files).status_code
    except httpx2.TransportError:
        return 0
    return status


class Load(threading.Thread):
    """Uploads (and searches) without a pause, and keeps what was acknowledged. Ends when the service is gone."""

    def __init__(self, address: str, number: int, *, searches: bool = True) -> None:
        super().__init__(name=f"load-{number}")
        self._searches = searches
        self._client = httpx2.Client(base_url=address, timeout=60)
        self._number = number
        self.over = threading.Event()
        self.acknowledged: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.slowest_refusal = 0.0
        self.without_retry_after = 0

    def run(self) -> None:
        """The load."""
        with self._client:
            self._upload_and_search()

    def _upload_and_search(self) -> None:
        chance, count = random.Random(self._number), 0
        while not self.over.is_set():
            count += 1
            name = f"{self._number}x{count:05}"
            status = upload(self._client, name, chance)
            if status == 201:
                self.acknowledged.append(name)
            self._noted(status)
            if status == 0:
                return
            if not self._searches:
                continue
            started = time.monotonic()
            answer = self._client.post("/search", json={"query": f"{chance.choice(ENGLISH)} {count}"})
            if answer.status_code == 503 and answer.headers.get("Retry-After") != "1":
                self.without_retry_after += 1
            if answer.status_code == 503:  # not of uploads: one may have been read for seconds
                self.slowest_refusal = max(self.slowest_refusal, time.monotonic() - started)
            self._noted(answer.status_code)

    def _noted(self, status: int) -> None:
        self.statuses[status] += 1
        if status == 503:
            time.sleep(0.02)


def outage(address: str) -> float:
    """Seconds until a search succeeds again."""
    started = time.monotonic()
    with httpx2.Client(base_url=address, timeout=60) as client:
        while True:
            query = f"kettle {time.monotonic_ns()}"
            if client.post("/search", json={"query": query}).status_code == 200:
                break
            assert time.monotonic() - started < BACK_S
            time.sleep(0.01)
        while client.get("/readyz").status_code != 200:  # it has connections of its own
            assert time.monotonic() - started < BACK_S
            time.sleep(0.01)
    return time.monotonic() - started


def assert_all_there(data_dir: Path, names: list[str]) -> int:
    """Every acknowledged file is there, once and whole; returns the number of documents."""
    with EmbeddedServer.open(data_dir) as server:
        store = Store(server.address, "dtrag")
        store.assert_whole()
        there = Counter(uri for (uri,) in store.rows("select source_uri from documents"))
        missing = [name for name in names if there[f"upload:{name}.txt"] != 1]
        assert missing == []
        return len(there)


def test_the_postmaster_is_killed_under_load(data_dir: Path) -> None:
    service = Served(data_dir=str(data_dir), embedder="none", port="0", rate_per_minute="1000000")
    loads = [Load(service.address, number) for number in range(3)]
    chance, outages = random.Random(1), list[float]()
    try:
        for load in loads:
            load.start()
        for _ in range(KILLS):
            time.sleep(0.2 + chance.random() * 0.8)
            os.kill(postmaster(data_dir), signal.SIGKILL)
            outages.append(outage(service.address))
        for load in loads:
            load.over.set()
            load.join(60)
        audited = [
            line["details"]["request_id"]
            for line in _audit_lines(service.client)
            if line["action"] == "POST /documents" and line["details"].get("status") == 201
        ]
    finally:
        for load in loads:
            load.over.set()
        code, _ = service.stop()
    acknowledged = [name for load in loads for name in load.acknowledged]
    statuses = sum((load.statuses for load in loads), Counter[int]())
    there = assert_all_there(data_dir, acknowledged)
    print(  # noqa: T201 - `pytest -s` shows the figures
        f"\n{KILLS} kills of the postmaster: longest outage {max(outages):.2f} s, "
        f"median {sorted(outages)[KILLS // 2]:.2f} s; "
        f"{len(acknowledged)} uploads acknowledged, 0 lost ({there} there); statuses {dict(statuses)}; "
        f"slowest refusal {max(load.slowest_refusal for load in loads):.2f} s; {len(set(audited))} lines of uploads"
    )
    assert code == 0
    assert set(statuses) <= {200, 201, 503}
    assert statuses[503] > 0
    assert max(load.slowest_refusal for load in loads) < REFUSED_S
    assert sum(load.without_retry_after for load in loads) == 0
    assert len(set(audited)) == len(audited)
    assert len(audited) >= len(acknowledged), "a change has no line in the audit log"


def _audit_lines(client: httpx2.Client) -> list[dict[str, Any]]:
    lines, before = [], ""
    while True:
        page = client.get(f"/audit?limit=1000{before}").json()
        lines += page["lines"]
        if page["before"] is None:
            return lines
        before = f"&before={page['before']}"


def test_the_service_is_killed_in_uploads(data_dir: Path) -> None:
    chance, acknowledged, statuses = random.Random(2), list[str](), Counter[int]()
    for number in range(KILLS):
        service = Served(data_dir=str(data_dir), embedder="none", port="0", rate_per_minute="1000000")
        loads = [Load(service.address, 100 * number + place, searches=False) for place in range(2)]
        for load in loads:
            load.start()
        wanted, deadline = chance.randint(1, 6), time.monotonic() + 15
        while sum(len(load.acknowledged) for load in loads) < wanted and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.1)
        service.process.kill()
        service.stop()
        for load in loads:
            load.over.set()
            load.join(60)
            acknowledged += load.acknowledged
            statuses += load.statuses
    last = Served(data_dir=str(data_dir), embedder="none", port="0")
    left = [path for folder in (data_dir / "uploads").iterdir() if folder.is_dir() for path in folder.iterdir()]
    assert left == [], "files of killed uploads are removed at the start"
    assert last.stop()[0] == 0
    there = assert_all_there(data_dir, acknowledged)
    print(  # noqa: T201
        f"\n{KILLS} kills of the service in uploads: {len(acknowledged)} acknowledged, 0 lost ({there} there); "
        f"statuses {dict(statuses)} (0: the connection broke)"
    )
    assert len(acknowledged) >= KILLS
    assert statuses[0] > 0, "no upload was ever interrupted"
