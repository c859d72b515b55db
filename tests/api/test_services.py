"""Two services with data folders of their own over one external database, behind a proxy without stickiness."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dtrag.delivery.api.clients import FAILURES_PER_MINUTE
from tests.api.conftest import Served
from tests.clusters import Cluster, Proxy, clusters

REVOKED_S = 3 * 1.0
"""Three times what is promised."""


class Pair:
    """Two services, and the proxy before them."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._folder, self._cluster = folder, cluster
        self.services = [self.start(number) for number in range(2)]
        self.proxy = Proxy(*(service.port for service in self.services))

    def start(self, number: int) -> Served:
        running = Served(
            data_dir=str(self._folder / str(number)),
            database_url=self._cluster.url(),
            embedder="none",
            port="0",
            drain_seconds="5",  # a machine of tests may be slow to notice
        )
        assert running.address, running.lines
        running.until_ready()
        return running

    def client(self, secret: str = "") -> httpx2.Client:
        """Of the proxy: each request has a connection of its own, to the other service than the one before."""
        headers = {"connection": "close"} | ({"x-api-key": secret} if secret else {})
        return httpx2.Client(base_url=f"http://127.0.0.1:{self.proxy.port}", headers=headers, timeout=60)

    def both(self, path: str, secret: str) -> list[httpx2.Response]:
        return [service.client.get(path, headers={"x-api-key": secret}) for service in self.services]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    folder = Path(tempfile.mkdtemp(prefix="test-services-"))
    with clusters() as [cluster]:
        pair = Pair(folder, cluster)
        yield pair
        pair.proxy.close()
        assert [service.stop()[0] for service in pair.services] == [0, 0]
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def admin(pair: Pair) -> str:
    created = pair.services[0].client.post("/keys", json={"name": "admin", "role": "admin", "rate_per_minute": 100_000})
    assert created.status_code == 201, created.text
    return str(created.json()["secret"])


def new_key(pair: Pair, admin: str, **more: object) -> tuple[str, str]:
    """Name and secret."""
    name = uuid.uuid4().hex[:8]
    with pair.client(admin) as client:
        created = client.post("/keys", json={"name": name, "role": "reader", **more})
    assert created.status_code == 201, created.text
    return name, str(created.json()["secret"])


def test_limits_count_for_both_services_together(pair: Pair, admin: str) -> None:
    _, five = new_key(pair, admin, rate_per_minute=5)
    started = time.monotonic()
    with pair.client(five) as client:
        statuses = [client.get("/documents").status_code for _ in range(14)]
    refilled = int((time.monotonic() - started) / 12) + 1
    assert 5 <= statuses.count(200) <= 5 + refilled
    assert statuses.count(429) == 14 - statuses.count(200)
    started = time.monotonic()
    with pair.client("wrong") as client:
        statuses = [client.get("/documents").status_code for _ in range(FAILURES_PER_MINUTE + 20)]
    refilled = int((time.monotonic() - started) / 2) + 1
    assert FAILURES_PER_MINUTE <= statuses.count(401) <= FAILURES_PER_MINUTE + refilled
    assert statuses.count(429) == len(statuses) - statuses.count(401)


def test_a_revoked_key_is_refused_by_both(pair: Pair, admin: str) -> None:
    slowest = 0.0
    for turn in range(4):
        name, secret = new_key(pair, admin)
        assert [answer.status_code for answer in pair.both("/documents", secret)] == [200, 200]
        revoking, other = pair.services[turn % 2], pair.services[1 - turn % 2]
        head = {"x-api-key": admin}
        assert revoking.client.delete(f"/keys/{name}", headers=head).status_code == 200
        revoked = time.monotonic()
        while other.client.get("/documents", headers={"x-api-key": secret}).status_code == 200:
            assert time.monotonic() - revoked < REVOKED_S
            time.sleep(0.01)
        slowest = max(slowest, time.monotonic() - revoked)
    print(f"revoked at one service, refused by the other after at most {slowest:.2f} s")  # noqa: T201


def test_requests_need_no_stickiness(pair: Pair, admin: str) -> None:
    with pair.client(admin) as client:
        for number in range(4):
            text = f"# Kettle {number}\n\nKettle {number} holds {number + 2} litres."
            files = {"files": (f"{number}.md", text.encode())}
            uploaded = client.post("/documents", files=files, data={"category": "Kitchen"})
            assert uploaded.status_code == 201, uploaded.text
            found = [client.post("/search", json={"query": f"kettle {number}"}).json()["results"] for _ in range(2)]
            assert all(any(f"holds {number + 2}" in passage["text"] for passage in results) for results in found)
        conversation = None
        for turn in range(4):
            asked: dict[str, Any] = {"message": f"How many litres does kettle {turn} hold?"}
            answer = client.post("/chat/run", json=asked | ({"conversation_id": conversation} if conversation else {}))
            assert answer.status_code == 200, answer.text
            conversation = answer.json()["conversation_id"]
        for _ in range(2):
            assert len(client.get(f"/conversations/{conversation}").json()["messages"]) == 4
        rename = {"operations": [{"op": "rename", "path": "Kitchen", "name": "Canteen"}]}
        made = client.post("/taxonomy", json=rename)
        assert client.post(f"/taxonomy/{made.json()['version']}/activate", json={}).status_code == 200
        trees = [answer.json() for answer in pair.both("/taxonomy/active/tree", admin)]
        assert trees[0] == trees[1]
        assert "Canteen" in str(trees[0])
        [document, *_] = client.get("/documents").json()["documents"]
        assert client.delete(f"/documents/{document['document_id']}").status_code in {200, 204}
        gone = [answer.status_code for answer in pair.both(f"/documents/{document['document_id']}", admin)]
        assert gone == [404, 404]
        assert client.get("/audit/verify").json()["ok"]


def test_a_session_is_valid_at_both_and_ends_at_both(pair: Pair, admin: str) -> None:
    with pair.client() as client:
        signed_in = client.post("/session", json={"key": admin})
        assert signed_in.status_code == 200, signed_in.text
        csrf = {"x-csrf-token": signed_in.json()["csrf"]}
        assert [client.get("/documents").status_code for _ in range(4)] == [200] * 4
        token = dict(client.cookies)
        assert client.delete("/session", headers=csrf).status_code in {200, 204}
        client.cookies.update(token)
        assert [client.get("/documents").status_code for _ in range(4)] == [401] * 4


@contextmanager
def health_checks(pair: Pair) -> Iterator[Callable[[Served], None]]:
    """The proxy passes requests to the services whose `/readyz` is 200, as a load balancer does."""
    over = threading.Event()
    services = list(pair.services)

    def ready(service: Served) -> bool:
        try:
            return httpx2.get(f"{service.address}/readyz", timeout=2).status_code == 200
        except httpx2.HTTPError:
            return False

    def check() -> None:
        while not over.wait(0.1):
            if ports := [service.port for service in list(services) if ready(service)]:
                pair.proxy.open_ports = ports

    thread = threading.Thread(target=check)
    thread.start()
    try:
        yield services.append
    finally:
        over.set()
        thread.join()


def test_services_are_replaced_one_by_one_without_a_refused_request(pair: Pair, admin: str) -> None:
    over, outcomes = threading.Event(), list[object]()

    def work(number: int) -> None:
        with pair.client(admin) as client:
            while not over.is_set():
                try:
                    answer = client.post("/search", json={"query": f"kettle {number} {len(outcomes)}"})
                    outcomes.append(answer.status_code if answer.status_code == 200 else answer.text)
                except httpx2.HTTPError as error:
                    outcomes.append(repr(error))
                time.sleep(0.01)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    with health_checks(pair) as check_also:
        for thread in threads:
            thread.start()
        try:
            for number in range(2):
                assert pair.services[number].stop()[0] == 0
                pair.services[number] = pair.start(number)
                check_also(pair.services[number])
                before, deadline = len(outcomes), time.monotonic() + 60
                while pair.services[number].port not in pair.proxy.open_ports or len(outcomes) < before + 20:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
        finally:
            over.set()
            for thread in threads:
                thread.join()
    print(f"{len(outcomes)} requests while both services were replaced")  # noqa: T201
    assert set(outcomes) == {200}
