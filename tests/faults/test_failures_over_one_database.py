"""Two services over a primary with a synchronous standby: failures × reads, writes, revocation, limits.

`make faults` shows the table with -s; docs/how-to/high-availability.md has it in words.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import psycopg
import pytest

from dtrag.adapters.postgres.queries import Lock
from tests.api.conftest import SERVE, Served
from tests.clusters import Cluster, Proxy, clusters

pytestmark = pytest.mark.long_fault

REVOKED_S = 3 * 1.0
REFUSED_S = 3 * 15.0
RELEASED_S = 3 * 15.0
BACK_S = 3 * 20.0
"""Three times what is promised."""


class AheadOfTime(Served):
    """A service whose clock is ten minutes ahead."""

    program = (
        "import datetime, time\n"
        "real, ahead = time.time, datetime.timedelta(minutes=10)\n"
        "class Ahead(datetime.datetime):\n"
        "    @classmethod\n"
        "    def now(cls, tz=None): return super().now(tz) + ahead\n"
        "    @classmethod\n"
        "    def utcnow(cls): return super().utcnow() + ahead\n"
        "datetime.datetime, time.time = Ahead, lambda: real() + ahead.total_seconds()\n"
    ) + SERVE


class Setup:
    """Two services, the first with a proxy before its database, and their servers."""

    def __init__(self, folder: Path, primary: Cluster, standby: Cluster) -> None:
        self.folder, self.primary, self.standby = folder, primary, standby
        self.proxy = Proxy(primary.port)
        self.one = self.start("one", primary.url(standby, port=self.proxy.port))
        self.two = self.start("two", primary.url(standby))
        created = self.two.client.post("/keys", json={"name": "admin", "role": "admin", "rate_per_minute": 900_000})
        self.admin = str(created.json()["secret"])
        self.key_names: dict[str, str] = {}

    def start(self, name: str, url: str, kind: type[Served] = Served) -> Served:
        running = kind(data_dir=str(self.folder / name), database_url=url, embedder="none", port="0")
        assert running.address, running.lines
        running.client.timeout = httpx2.Timeout(REFUSED_S)
        running.until_ready()
        return running

    def key(self, rate: int = 900_000) -> str:
        name = uuid.uuid4().hex[:8]
        created = self.send(self.two, "POST", "/keys", json={"name": name, "role": "reader", "rate_per_minute": rate})
        self.key_names[created.json()["secret"]] = name
        return str(created.json()["secret"])

    def send(self, service: Served, method: str, path: str, secret: str = "", **body: object) -> httpx2.Response:
        headers = {"x-api-key": secret or self.admin}
        return service.client.request(method, path, headers=headers, **body)  # type: ignore[arg-type]

    def read(self, service: Served, secret: str = "") -> httpx2.Response:
        return self.send(service, "POST", "/search", secret, json={"query": f"kettle {time.monotonic()}"})

    def write(self, service: Served, name: str) -> httpx2.Response:
        files = {"files": (f"{name}.md", f"# {name}\n\nKettle {name} holds two litres.".encode())}
        return self.send(service, "POST", "/documents", files=files)

    def titles(self, service: Served) -> list[str]:
        listed = self.send(service, "GET", "/documents?limit=1000").json()["documents"]
        return [document["title"] for document in listed]

    def allowed(self, secret: str, *services: Served, turns: int = 12) -> int:
        """How many of that many requests are allowed, in turn at the services."""
        statuses = [
            self.send(services[turn % len(services)], "GET", "/documents", secret).status_code for turn in range(turns)
        ]
        assert set(statuses) <= {200, 429}
        return statuses.count(200)

    def revoke(self, at: Served, secret: str, refused_by: Served) -> float:
        """Seconds until the other service refuses a key that one revokes."""
        assert self.read(refused_by, secret).status_code == 200
        assert self.send(at, "DELETE", f"/keys/{self.key_names[secret]}").status_code == 200
        revoked = time.monotonic()
        return until(lambda: self.read(refused_by, secret).status_code == 401, REVOKED_S, since=revoked)


def until(holds: Callable[[], bool], limit_s: float, *, since: float) -> float:
    """Seconds until it holds."""
    while True:
        with suppress(httpx2.HTTPError):
            if holds():
                return time.monotonic() - since
        assert time.monotonic() - since < limit_s
        time.sleep(0.02)


def show(failure: str, **cells: str) -> None:
    print(f"\n{failure}: " + "; ".join(f"{name}: {text}" for name, text in cells.items()))  # noqa: T201


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    with tempfile.TemporaryDirectory(prefix="test-failures-") as folder, clusters(standby=True) as (primary, standby):
        primary.execute("alter system set synchronous_standby_names = '*'")
        primary.execute("select pg_reload_conf()")
        replication = "select sync_state from pg_stat_replication"
        until(lambda: primary.execute(replication) == [("sync",)], 30, since=time.monotonic())
        made = Setup(Path(folder), primary, standby)
        assert made.write(made.two, "first").status_code == 201
        yield made
        made.proxy.close()
        assert [service.stop()[0] for service in (made.one, made.two)] == [0, 0]


def test_the_clock_of_a_service_is_ten_minutes_off(setup: Setup) -> None:
    ahead = setup.start("ahead", setup.primary.url(setup.standby), AheadOfTime)
    try:
        assert [setup.read(service).status_code for service in (ahead, setup.two)] == [200, 200]
        assert setup.write(ahead, "ahead").status_code == 201
        assert "ahead" in setup.titles(setup.two)
        shown = setup.send(ahead, "GET", "/documents?q=ahead").json()["documents"][0]
        assert abs(time.time() + 600 - _epoch(shown["processed_at"])) < 120  # the clock is indeed off
        there = setup.revoke(ahead, setup.key(), setup.two)
        back = setup.revoke(setup.two, setup.key(), ahead)
        five, started = setup.key(5), time.monotonic()
        allowed = setup.allowed(five, ahead, setup.two)
        assert 5 <= allowed <= 5 + (time.monotonic() - started) / 12 + 1
    finally:
        assert ahead.stop()[0] == 0
    show(
        "clock 10 minutes off",
        reads="200",
        writes="201, found by the other",
        revocation=f"{there:.2f} s, {back:.2f} s",
        limits=f"{allowed} of 5 a minute",
    )


def _epoch(text: str) -> float:
    import datetime

    return datetime.datetime.fromisoformat(text).timestamp()


def test_one_service_is_frozen(setup: Setup) -> None:
    secret, five = setup.key(), setup.key(5)
    assert setup.read(setup.one, secret).status_code == 200
    started = time.monotonic()
    assert setup.allowed(five, setup.one, turns=3) == 3
    setup.one.process.send_signal(signal.SIGSTOP)
    try:
        assert setup.read(setup.two).status_code == 200
        assert setup.write(setup.two, "beside-a-frozen-one").status_code == 201
        other = setup.revoke(setup.two, secret, setup.two)
        allowed = setup.allowed(five, setup.two, turns=8)
        assert 2 <= allowed <= 2 + (time.monotonic() - started) / 12 + 1
    finally:
        setup.one.process.send_signal(signal.SIGCONT)
    thawed = until(lambda: setup.read(setup.one, secret).status_code == 401, REVOKED_S, since=time.monotonic())
    assert "beside-a-frozen-one" in setup.titles(setup.one)
    show(
        "one service frozen",
        reads="200 at the other",
        writes="201 at the other",
        revocation=f"{other:.2f} s at the other, {thawed:.2f} s after it continues",
        limits=f"3 + {allowed} of 5 a minute",
    )


@pytest.mark.parametrize("lock", [Lock.AUDIT, Lock.WRITERS], ids=lambda lock: lock.name)
def test_a_service_is_frozen_that_holds_a_lock(setup: Setup, lock: Lock) -> None:
    """It waits for the lock when it is frozen, and gets it then: of a transaction, and of a session."""
    database = f"host=127.0.0.1 port={setup.primary.port} user=postgres dbname=postgres"
    name, waits = f"frozen-{lock.name}", "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    with psycopg.connect(database, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(%s)", [lock])
        answers: list[int] = []
        writing = threading.Thread(target=lambda: answers.append(setup.write(setup.one, name).status_code))
        writing.start()
        until(lambda: setup.primary.execute(waits) != [(0,)], 30, since=time.monotonic())
        setup.one.process.send_signal(signal.SIGSTOP)
    frozen = time.monotonic()
    try:
        with psycopg.connect(database, autocommit=True) as other:
            other.execute(f"set lock_timeout = '{int(RELEASED_S)}s'")
            other.execute("select pg_advisory_lock(%s)", [lock])
        released_s = time.monotonic() - frozen
        assert setup.write(setup.two, f"other-{lock.name}").status_code == 201
    finally:
        setup.one.process.send_signal(signal.SIGCONT)
        writing.join()
    assert released_s < RELEASED_S
    assert answers in ([201], [503])
    assert setup.write(setup.one, name).status_code == 201
    assert setup.titles(setup.two).count(name) == 1
    assert setup.send(setup.two, "GET", "/audit/verify").json()["ok"]
    show(
        f"service frozen with the lock {lock.name}",
        writes=f"201 at the other after {released_s:.1f} s, {answers[0]} at the frozen one when it continues",
    )


def test_the_network_to_the_database_is_cut(setup: Setup) -> None:
    secret, five = setup.key(), setup.key(5)
    assert setup.read(setup.one, secret).status_code == 200
    started = time.monotonic()
    assert setup.allowed(five, setup.one, turns=3) == 3
    setup.proxy.swallow()
    try:
        begun = time.monotonic()
        read = setup.read(setup.one)
        read_s = time.monotonic() - begun
        write = setup.write(setup.one, "cut")
        write_s = time.monotonic() - begun - read_s
        for answer in (read, write, setup.read(setup.one, secret)):
            assert (answer.status_code, "retry-after" in answer.headers) == (503, True), answer.text
        assert max(read_s, write_s) < REFUSED_S
        assert setup.one.client.get("/livez").status_code == 200
        assert setup.one.client.get("/readyz").status_code == 503
        other = setup.revoke(setup.two, secret, setup.two)
        allowed = setup.allowed(five, setup.two, turns=8)
        assert 2 <= allowed <= 2 + (time.monotonic() - started) / 12 + 1
    finally:
        setup.proxy.heal()
    back = until(lambda: setup.read(setup.one).status_code == 200, BACK_S, since=time.monotonic())
    assert setup.read(setup.one, secret).status_code == 401
    assert setup.write(setup.one, "cut").status_code == 201
    assert setup.titles(setup.two).count("cut") == 1
    show(
        "network to the database cut",
        reads=f"503 after {read_s:.1f} s, 200 {back:.1f} s after it heals",
        writes=f"503 after {write_s:.1f} s, nothing twice",
        revocation=f"503 here, {other:.2f} s at the other, 401 here afterwards",
        limits=f"3 + {allowed} of 5 a minute",
    )


def test_the_primary_is_killed_and_the_standby_promoted(setup: Setup) -> None:
    services = (setup.one, setup.two)
    revoked = setup.key()
    setup.revoke(setup.one, revoked, setup.two)
    acknowledged: list[str] = []
    refusals: list[tuple[int, bool]] = []
    over = threading.Event()

    def work(service: Served, number: int) -> None:
        turn = 0
        while not over.is_set():
            turn += 1
            name = f"acknowledged-{number}-{turn}"
            with suppress(httpx2.HTTPError):
                answer = setup.write(service, name)
                if answer.status_code == 201:
                    acknowledged.append(name)
                else:
                    refusals.append((answer.status_code, "retry-after" in answer.headers))
            time.sleep(0.05)

    threads = [threading.Thread(target=work, args=(service, number)) for number, service in enumerate(services)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(acknowledged) > 10, 120, since=time.monotonic())
        setup.primary.kill()
        killed, before = time.monotonic(), len(acknowledged)
        until(lambda: len(refusals) > 3, REFUSED_S, since=killed)
        read = setup.read(setup.two)
        assert (read.status_code, "retry-after" in read.headers) == (503, True), read.text
        setup.standby.promote()
        promoted = time.monotonic()
        until(lambda: all(setup.read(service).status_code == 200 for service in services), BACK_S, since=promoted)
        read_s = time.monotonic() - promoted
        until(lambda: len(acknowledged) > before + 3, BACK_S, since=promoted)
        write_s = time.monotonic() - promoted
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert set(refusals) == {(503, True)}
    lost = set(acknowledged) - set(setup.titles(setup.two))
    assert lost == set()
    assert [setup.read(service, revoked).status_code for service in services] == [401, 401]
    again = setup.revoke(setup.two, setup.key(), setup.one)
    five, started = setup.key(5), time.monotonic()
    allowed = setup.allowed(five, *services)
    assert 5 <= allowed <= 5 + (time.monotonic() - started) / 12 + 1
    assert setup.send(setup.two, "GET", "/audit/verify").json()["ok"]
    with (setup.primary.data / "postgresql.auto.conf").open("a") as file:
        file.write("default_transaction_read_only = on\n")  # the old primary comes back, and takes no changes
    setup.primary.start()
    assert [setup.write(service, f"later-{service.port}").status_code for service in services] == [201, 201]
    show(
        "primary killed, standby promoted",
        reads=f"503, then 200 {read_s:.1f} s after the promotion",
        writes=f"503, then 201 {write_s:.1f} s after; {len(acknowledged)} acknowledged, 0 lost",
        revocation=f"holds; {again:.2f} s",
        limits=f"{allowed} of 5 a minute",
    )
