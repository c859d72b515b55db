"""`make soak`: mixed traffic against `dtrag up --workers 2` while workers, the database and clients are killed.

    python -m tests.faults.soak [--seconds 600] [--embedder auto] [--rate PER_SECOND]

Cycles of the same length follow each other: traffic in which a worker or, in every second cycle, the database is
killed. Then all clients disconnect, and memory, descriptors, connections and temporary files are measured. What is
measured in the second half of the cycles is compared with the first half; the first two cycles only warm up. Clients
are killed all the time: a thread sends requests and resets the connection before the response, or in an upload.

A request counts as answered when it has the expected status, as shed with 503 and `Retry-After`, and as unanswered
otherwise. What changes nothing is sent once more when its connection breaks, as load balancers do; the share that was
answered at the first attempt is reported, too. The exit code is 1 if a goal is not reached.
"""

# ruff: noqa: T201 - a program: it prints

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.delivery.local_socket import FOLDER, SOCKET
from tests.faults.test_crash import postmaster
from tests.integration.cli_process import children
from tests.store import Store
from tests.toy import ENGLISH, KOREAN

WORKERS = 2
ANSWERED_SHARE, DRIFT = 0.999, 0.03
LONGEST_CYCLE_S, SHORTEST_CYCLE_S, WARM_UP = 60.0, 12.0, 2
FEWEST_JUDGED = 6
"""Cycles after warming up from which the change of the resources is judged."""
REVOKED_PER_ADDRESS = 20
"""Wrong keys sent from one address of the loopback network: more than 30 a minute get a 429 instead of a 401."""
FILE = "multipart/form-data; boundary=soak"
SHARED = "shared"
"""The branch that moves between the scopes of two keys."""
BRANCHES = {
    "north": "Plant/Open/North",
    "closed": "Plant/Closed",
    "pay": "Office/Pay",
    "desk": "Office/Desk",
    SHARED: "Plant/Open/Shared",
}
SCOPES = {"open": ("Plant/Open", {"north"}), "closed": ("Plant/Closed", {"closed"}), "pay": ("Office/Pay", {"pay"})}
"""Keys with the branch of each and the canaries that it may always see."""
READS = frozenset({"search", "ask", "chat/run", "chat/stream", "check", "revoked"})
"""Requests that change nothing but logs: the ones that are sent again."""
BURST = 32
"""Searches at once before each measurement, so that pools of connections are as full every time."""
CANARY, SERIAL = re.compile(rb"canaryq([a-z]+)"), re.compile(rb"serialq\w+")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; status 0: the connection broke, -1: no response within a minute."""

    status: int
    body: bytes = b""
    retry_after: str | None = None

    @property
    def shed(self) -> bool:
        """Whether it was refused for the moment: also a stream that the loss of the database or a stop has ended."""
        ended = b"event: error" in self.body and b"DatabaseUnavailable" in self.body
        return (self.status == 503 and self.retry_after is not None) or ended


@dataclass(slots=True)
class Ledger:
    """What became of all requests, and what must not happen."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    unanswered: list[str] = field(default_factory=list)
    repeated: int = 0
    """Requests that were answered when their connection had broken once."""
    unexplained: list[str] = field(default_factory=list)
    """Those of `unanswered` that no kill of a worker explains."""
    worker_kills: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, reply: Reply, expected: Sequence[int], begun: float) -> None:
        """Count a request that began then and has ended now."""
        outcome = "shed" if reply.shed else "answered" if reply.status in expected else "unanswered"
        with self.lock:
            self.outcomes[kind, outcome] += 1
            if outcome != "unanswered":
                self.seconds.append(time.monotonic() - begun)
                return
            self.unanswered.append(f"{kind}: {reply.status} {reply.body[:160]!r}")
            if reply.status or not any(begun - 1 < kill for kill in self.worker_kills):
                self.unexplained.append(self.unanswered[-1])

    def total(self, outcome: str) -> int:
        """Requests of any kind with this outcome."""
        return sum(count for (_, name), count in self.outcomes.items() if name == outcome)

    def share(self, *, first_attempt: bool = False) -> float:
        """Answered requests among those that were not shed."""
        answered, unanswered = self.total("answered"), self.total("unanswered")
        return (answered - self.repeated * first_attempt) / max(1, answered + unanswered)


class Moves:
    """Where the shared branch is: between sending a move and its acknowledgement it may be in both places."""

    def __init__(self) -> None:
        self._spans: list[tuple[str, float, float]] = [("open", 0.0, float("inf"))]

    def begin(self, place: str) -> None:
        """A move to `place` is about to be sent."""
        self._spans = [*self._spans, (place, time.monotonic(), float("inf"))]

    def settle(self, place: str) -> None:
        """The branch is in `place` and nowhere else from now on."""
        now = time.monotonic()
        self._spans = [(name, since, until if name == place else min(until, now)) for name, since, until in self._spans]

    def allowed(self, key: str, begun: float) -> bool:
        """Whether a request of the key that began then and has just ended may show the shared branch."""
        return any(name == key and until >= begun for name, _, until in self._spans)


class Client:
    """One connection, kept open between requests and opened again when the other side has closed it."""

    def __init__(self, soak: Soak, source: str = "127.0.0.1") -> None:
        self._soak = soak
        self._source = source
        self._connection: http.client.HTTPConnection | None = None

    def call(
        self,
        kind: str,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str = "admin",
        expected: Sequence[int] = (200,),
    ) -> Reply:
        """Send one request and count what becomes of it."""
        if body is None or isinstance(body, bytes):
            data, type_ = body, FILE
        else:
            data, type_ = json.dumps(body).encode(), "application/json"
        headers = {"Content-Type": type_, "X-API-Key": self._soak.secrets.get(key, key)}
        begun = time.monotonic()
        reply = self._exchange(method, path, data, headers)
        if reply.status == 0 and kind in READS:
            reply = self._exchange(method, path, data, headers)
            with self._soak.ledger.lock:
                self._soak.ledger.repeated += reply.status in expected
        self._soak.ledger.note(kind, reply, expected, begun)
        self._soak.check_scope(key, reply, begun)
        if reply.shed:
            time.sleep(0.1)  # less than `Retry-After` says: an impatient client
        return reply

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Reply:
        try:
            connection = self._open()
            connection.request(method, path, data, headers)
            with contextlib.closing(connection.getresponse()) as response:
                reply = Reply(response.status, response.read(), response.getheader("Retry-After"))
                if not response.will_close:
                    return reply
        except TimeoutError:
            reply = Reply(-1)
        except (OSError, http.client.HTTPException):
            reply = Reply(0)
        self.close()
        return reply

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is not None and (used := self._connection.sock) is not None:
            if not select.select([used], [], [], 0)[0]:  # readable without a request: the other side has closed it
                return self._connection
            self.close()
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", self._soak.port, timeout=60, source_address=(self._source, 0)
        )
        self._connection.connect()
        return self._connection

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def form(name: str, text: str, category: str) -> bytes:
    """The body of an upload of one file."""
    return (
        f'--soak\r\nContent-Disposition: form-data; name="category"\r\n\r\n{category}\r\n'
        f'--soak\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        f"Content-Type: text/plain\r\n\r\n{text}\r\n--soak--\r\n"
    ).encode()


def document(chance: random.Random, serial: str, branch: str) -> str:
    """Six passages, each with the canary of the branch and the serial of the document."""
    words = (*ENGLISH, *KOREAN)
    return "\n\n".join(
        f"The {chance.choice(ENGLISH)} {serial} of canaryq{branch} is checked every {chance.randint(2, 90)} days. "
        + " ".join(chance.choices(words, k=120))
        + "."
        for _ in range(6)
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """What the service uses while no client is connected."""

    pss_mb: float
    descriptors: int
    connections: int
    temporary: int


class Soak:
    """The service, its clients and what they have noted."""

    def __init__(self, folder: Path, seconds: float, embedder: str, rate: float) -> None:
        self.folder, self._embedder, self._seconds = folder, embedder, seconds
        self._pause_s = 6 / rate  # six clients of which each waits that long between two requests
        self.cycle_s = max(SHORTEST_CYCLE_S, min(LONGEST_CYCLE_S, seconds / 10))
        self.cycles = max(1, round(seconds / self.cycle_s))
        self.ledger, self.moves = Ledger(), Moves()
        self.secrets: dict[str, str] = {}
        self.documents: dict[str, tuple[str, str]] = {}
        """Acknowledged documents: file name to id and serial."""
        self.deleted: set[str] = set()
        """Serials whose deletion or replacement was acknowledged."""
        self.revoked: list[str] = []
        self.readings: list[Reading] = []
        self.kills: Counter[str] = Counter()
        self.port = 0
        self._over, self._flowing = threading.Event(), threading.Event()
        self._idle = threading.Semaphore(0)
        self._resume: list[threading.Event] = []

    # --- the service --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def served(self) -> Iterator[None]:
        """The service while it runs; it ends with code 0 and without a traceback, or that counts as lost."""
        temporary = self.folder / "temporary"
        temporary.mkdir()
        temporary.chmod(0o777)
        environment = {
            "PATH": os.environ["PATH"], "TMPDIR": str(temporary), "DTRAG_DATA_DIR": str(self.folder / "data"),
            "DTRAG_EMBEDDER": self._embedder, "DTRAG_RATE_PER_MINUTE": "1000000", "DTRAG_LOG_LEVEL": "WARNING",
        }  # fmt: skip
        log = self.folder / "log"
        with log.open("wb") as stderr:
            command = [str(Path(sys.executable).with_name("dtrag")), "up", "--workers", str(WORKERS), "--port", "0"]
            self._process = subprocess.Popen(command, env=environment, stderr=stderr)
        try:
            self._wait(lambda: b"dtrag is listening on " in log.read_bytes())
            match = re.search(r"listening on http://[^:]+:(\d+)", log.read_text("utf-8"))
            assert match is not None
            self.port = int(match[1])
            yield
        finally:
            self._process.send_signal(signal.SIGTERM)
            try:
                code = self._process.wait(90)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
            if code:
                self.ledger.lost.append(f"the service ended with code {code}")
            text = re.sub(
                r"Exception ignored in: <generator object BasePipeline.*\nTraceback", "", log.read_text("utf-8")
            )
            if problems := re.findall("Traceback|terminate called|does not end", text):
                self.ledger.lost.append(f"{', '.join(problems)} in the log {log}")  # the first is psycopg's

    def _wait(self, ready: Callable[[], bool], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(
                    "the service does not get ready: " + (self.folder / "log").read_text("utf-8")[-2000:]
                )
            time.sleep(0.05)

    def workers(self) -> list[int]:
        """The processes that serve, the oldest first."""
        [template] = [
            pid for pid, command in children(self._process.pid).items() if "dtrag.delivery.api.worker" in command
        ]
        return sorted(children(template))

    def until_complete(self) -> None:
        """Return when the database answers and all workers accept connections."""

        def complete() -> bool:
            transport = httpx2.HTTPTransport(uds=str(self.folder / "data" / FOLDER / SOCKET))
            with httpx2.Client(transport=transport, base_url="http://localhost", timeout=30) as client:
                try:
                    ready = client.get("/readyz").status_code == 200
                    return ready and client.get("/health").json()["workers"] == WORKERS
                except httpx2.HTTPError:
                    return False

        self._wait(complete)

    def prepare(self) -> None:
        """Keys and documents before the traffic."""
        transport = httpx2.HTTPTransport(uds=str(self.folder / "data" / FOLDER / SOCKET))
        with httpx2.Client(transport=transport, base_url="http://localhost", timeout=60) as owner:
            chance = random.Random(0)
            for branch, path in BRANCHES.items():
                for number in range(12):
                    serial = f"serialq{branch}fixed{number}"
                    body = form(f"{branch}-fixed-{number}.txt", document(chance, serial, branch), path)
                    added = owner.post("/documents", content=body, headers={"Content-Type": FILE})
                    added.raise_for_status()
                    [row] = added.json()["documents"]
                    self.documents[row["file"]] = (row["document_id"], serial)
            self.secrets["admin"] = owner.post("/keys", json={"name": "admin", "role": "admin"}).json()["secret"]
            for name, (path, _) in SCOPES.items():
                created = owner.post("/keys", json={"name": name, "scope": [path]}).raise_for_status()
                self.secrets[name] = created.json()["secret"]

    def processes(self) -> list[int]:
        """All processes of the service and of its database."""
        pending, found = [self._process.pid, postmaster(self.folder / "data")], []
        while pending:
            pid = pending.pop()
            found.append(pid)
            pending.extend(children(pid))
        return found

    def measure(self) -> Reading:
        """What is in use now."""
        server = postmaster(self.folder / "data")
        pss, descriptors = 0, 0
        database = {server, *children(server)}
        for pid in self.processes():
            with contextlib.suppress(OSError):
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
                pss += int(re.findall(r"^Pss:\s+(\d+)", rollup, re.M)[0])
                descriptors += 0 if pid in database else len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
        backends = [command for command in children(server).values() if " dtrag_" in command]
        temporary = [
            path
            for root in (
                self.folder / "temporary",
                self.folder / "data/uploads",
                self.folder / "data/postgres/base/pgsql_tmp",
            )
            for path in (root.rglob("*") if root.is_dir() else ())
            if path.is_file()
        ]
        return Reading(pss / 1024, descriptors, len(backends), len(temporary))

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check_scope(self, key: str, reply: Reply, begun: float) -> None:
        """Nothing of a branch outside the scope of the key is in the response."""
        if key == "admin" or key.startswith("dtrag_"):
            return
        _, allowed = SCOPES[key]
        seen = {name.decode() for name in CANARY.findall(reply.body)}
        if SHARED in seen and self.moves.allowed(key, begun):
            seen.discard(SHARED)
        if leaked := seen - allowed:
            with self.ledger.lock:
                self.ledger.leaks.append(f"key {key} saw {sorted(leaked)}: {reply.body[:300]!r}")

    def check_word(self, client: Client, serial: str, *, present: bool, why: str) -> None:
        """The word is found, or not, by the key for everything. Sheds and broken connections are asked again."""
        body = {"query": serial, "mode": "lexical", "top_k": 3}
        for _ in range(100):
            reply = client.call("check", "POST", "/search", body)
            if reply.status == 200:
                results = json.dumps(json.loads(reply.body)["results"]).encode()
                if (serial.encode() in SERIAL.findall(results)) != present:
                    with self.ledger.lock:
                        self.ledger.lost.append(f"{serial}: {why}, but it is {'missing' if present else 'there'}")
                return
            time.sleep(0.1)
        with self.ledger.lock:
            self.ledger.lost.append(f"{serial}: could not be checked")

    def check_revoked(self, secrets: Sequence[str]) -> None:
        """Revoked keys are refused, each on a connection of its own."""
        for number, secret in enumerate(secrets):
            place = number // REVOKED_PER_ADDRESS + 1
            client = Client(self, f"127.{random.randint(1, 250)}.{place // 250}.{place % 250 + 1}")
            for _ in range(100):
                reply = client.call("revoked", "POST", "/search", {"query": "kettle"}, key=secret, expected=(401,))
                if reply.status > 0 and not reply.shed:
                    break
            if reply.status != 401:
                with self.ledger.lock:
                    self.ledger.lost.append(f"a revoked key got {reply.status}: {reply.body[:200]!r}")
            client.close()

    # --- the clients --------------------------------------------------------------------------------------------------

    def turn(self, client: Client | None, resume: threading.Event) -> bool:
        """Wait a moment between two requests, and while all clients pause; False when the run is over."""
        if not self._flowing.is_set() and not self._over.is_set():
            if client is not None:
                client.close()
            self._idle.release()
            resume.wait()
            resume.clear()
        self._over.wait(self._pause_s)
        return not self._over.is_set()

    def search(self, chance: random.Random, resume: threading.Event) -> None:
        """Searches of all keys, also for words of branches that they must not see."""
        client = Client(self)
        while self.turn(client, resume):
            key, word = chance.choice([*SCOPES, "admin"]), chance.choice(ENGLISH + KOREAN)
            query = chance.choice([f"canaryq{chance.choice([*BRANCHES])}", f"{word} {chance.choice(ENGLISH)}", word])
            body = {"query": query, "top_k": 5, "highlights": False}
            client.call("search", "POST", "/search", body, key=key)

    def ask(self, chance: random.Random, resume: threading.Event) -> None:
        """Questions, as answers, in conversations and as streams."""
        client, turns = Client(self), 0
        while self.turn(client, resume):
            turns += 1
            key, branch = chance.choice([*SCOPES]), chance.choice([*BRANCHES])
            question = f"How often is {chance.choice(ENGLISH)} serialq{branch}fixed{chance.randrange(12)} checked?"
            path = ("/ask", "/chat/run", "/chat/stream")[turns % 3]
            body = {"question" if path == "/ask" else "message": question}
            reply = client.call(path[1:], "POST", path, body, key=key)
            if path == "/chat/stream" and reply.status == 200 and not reply.shed and b"event: done" not in reply.body:
                with self.ledger.lock:
                    self.ledger.lost.append(f"a stream without an end: {reply.body[-200:]!r}")

    def write(self, chance: random.Random, resume: threading.Event) -> None:
        """Uploads, replacements and deletions, each of which is checked at once."""
        client, number, own = Client(self), 0, list[str]()
        while self.turn(client, resume):
            number += 1
            branch = chance.choice([name for name in BRANCHES if name != SHARED])
            replaced = own[0] if own and number % 4 == 0 else None
            name, serial = replaced or f"new-{number}.txt", f"serialqnew{number}"
            if replaced:
                branch = self.documents[replaced][1].partition("in")[2]
            serial += f"in{branch}"
            body = form(name, document(chance, serial, branch), BRANCHES[branch])
            reply = client.call("upload", "POST", "/documents", body, expected=(201,))
            if reply.status == 201:
                before = self.documents.get(name)
                self.documents[name] = (json.loads(reply.body)["documents"][0]["document_id"], serial)
                self.check_word(client, serial, present=True, why="its upload was acknowledged")
                if before is None:
                    own.append(name)
                else:
                    self.deleted.add(before[1])
                    self.check_word(client, before[1], present=False, why="its replacement was acknowledged")
            elif replaced and not (reply.status == 503 and reply.shed):  # whether it was stored is unknown
                self.documents.pop(name)
                own.remove(name)
            if len(own) > 20:
                name = own.pop(0)
                document_id, serial = self.documents.pop(name)
                reply = client.call("delete", "DELETE", f"/documents/{document_id}", expected=(204,))
                if reply.status == 204:
                    self.deleted.add(serial)
                    self.check_word(client, serial, present=False, why="its deletion was acknowledged")

    def change_keys(self, chance: random.Random, resume: threading.Event) -> None:
        """Keys that are created, used, revoked and refused."""
        client, number = Client(self), 0
        while self.turn(client, resume):
            number += 1
            scope, _ = SCOPES[chance.choice([*SCOPES])]
            body = {"name": f"brief-{number}", "scope": [scope]}
            created = client.call("key", "POST", "/keys", body, expected=(201,))
            if created.status != 201:
                continue
            secret = json.loads(created.body)["secret"]
            client.call("key", "POST", "/search", {"query": "kettle"}, key=secret)
            for _ in range(100):
                reply = client.call("revoke", "DELETE", f"/keys/brief-{number}", expected=(200, 404, 422))
                if reply.status > 0 and not reply.shed:
                    break
            if reply.status == 200:
                self.revoked.append(secret)
                self.check_revoked([secret, secret])
            self._over.wait(0.5)

    def move(self, chance: random.Random, resume: threading.Event) -> None:
        """The shared branch moves between the scopes of two keys."""
        client, place = Client(self), "open"
        while self.turn(client, resume):
            self._over.wait(chance.uniform(2, 5))
            here, there = ("Plant/Open", "Plant/Closed") if place == "open" else ("Plant/Closed", "Plant/Open")
            target = "closed" if place == "open" else "open"
            body = {"operations": [{"op": "move", "path": f"{here}/Shared", "to": there}]}
            proposed = client.call("move", "POST", "/taxonomy", body, expected=(200, 201))
            if proposed.status not in (200, 201):
                continue
            version = json.loads(proposed.body)["version"]
            self.moves.begin(target)
            reply = client.call("move", "POST", f"/taxonomy/{version}/activate", {"accept_widening": True})
            place = target if reply.status == 200 else self._place_of_shared(client)
            self.moves.settle(place)

    def _place_of_shared(self, client: Client) -> str:
        """Where it is after a move of which the outcome is unknown; a statement in progress then has ended."""
        while True:
            time.sleep(2)
            reply = client.call("move", "GET", "/taxonomy/active/tree")
            if reply.status == 200:
                [plant] = [node for node in json.loads(reply.body)["tree"] if node["path"] == ["Plant"]]
                [parent] = [
                    node for node in plant["children"] if any("Shared" in below["path"] for below in node["children"])
                ]
                return "open" if parent["path"][-1] == "Open" else "closed"

    def vanish(self, chance: random.Random, resume: threading.Event) -> None:
        """Clients that are killed: before the response, in the middle of a stream, in the middle of an upload."""
        number = 0
        while self.turn(None, resume):
            number += 1
            self._over.wait(0.4)
            name, serial = f"cut-{number}.txt", f"serialqcut{number}"
            word, path = chance.choice(ENGLISH), chance.choice(["/search", "/chat/stream", "/documents"])
            asked = {"query": f"{word} {number}"} if path == "/search" else {"message": f"What is a {word}?"}
            body, type_ = json.dumps(asked).encode(), "application/json"
            if path == "/documents":
                body, type_ = form(name, document(chance, serial, "pay"), BRANCHES["pay"]), FILE
            head = (
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {self.secrets['admin']}\r\n"
                f"Content-Type: {type_}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as stream:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
                stream.sendall(head.encode() + body[: len(body) if path != "/documents" else len(body) // 2])
                time.sleep(chance.choice([0, 0.01, 0.05]))
            self.kills["clients"] += 1

    # --- a run --------------------------------------------------------------------------------------------------------

    def run(self, progress: Callable[[str], None] = lambda line: None) -> None:
        """The whole run, with the checks after it."""
        with self.served():
            self.until_complete()
            self.prepare()
            bodies = (
                self.search,
                self.search,
                self.ask,
                self.ask,
                self.write,
                self.change_keys,
                self.move,
                self.vanish,
            )
            self._resume = [threading.Event() for _ in bodies]
            threads = [
                threading.Thread(target=self._guarded, args=(body, random.Random(number), resume), daemon=True)
                for number, (body, resume) in enumerate(zip(bodies, self._resume, strict=True))
            ]
            self._flowing.set()
            for thread in threads:
                thread.start()
            ends = time.monotonic() + 2 * self._seconds  # on a busy machine
            for cycle in range(self.cycles):
                if time.monotonic() + self.cycle_s / 2 > ends or self._over.is_set():
                    break
                self._cycle(cycle)
                progress(f"cycle {cycle + 1} of {self.cycles}: {self.readings[-1]}, {self.ledger.share():.5f} answered")
            self._over.set()
            for resume in self._resume:
                resume.set()
            for thread in threads:
                thread.join(120)
            self.until_complete()
            self._check_all()
        with EmbeddedServer.open(self.folder / "data") as server:
            Store(server.address, "dtrag").assert_whole()

    def _guarded(
        self, body: Callable[[random.Random, threading.Event], None], chance: random.Random, resume: threading.Event
    ) -> None:
        try:
            body(chance, resume)
        except Exception as error:  # noqa: BLE001 - a client of the run is broken: the run has failed
            self.ledger.lost.append(f"{body.__name__} has ended: {error!r}")
            self._over.set()
            self._idle.release()

    def _cycle(self, cycle: int) -> None:
        """Traffic with a kill; then a pause in which resources are measured."""
        self._over.wait(self.cycle_s * 0.3)
        if cycle % 2 == 0:
            self.ledger.worker_kills.append(time.monotonic())
            os.kill(self.workers()[0], signal.SIGKILL)
            self.kills["workers"] += 1
        else:
            server = postmaster(self.folder / "data")
            backends = [pid for pid, command in children(server).items() if " dtrag_" in command]
            os.kill(backends[0] if cycle % 4 == 3 and backends else server, signal.SIGKILL)
            self.kills["database"] += 1
        self._over.wait(self.cycle_s * 0.6)
        self.until_complete()
        self._flowing.clear()
        for _ in self._resume:
            self._idle.acquire(timeout=90)
        self._burst(cycle)
        self._over.wait(max(3.0, self.cycle_s * 0.05))
        self.readings.append(self.measure())
        self._flowing.set()
        for resume in self._resume:
            resume.set()

    def _burst(self, cycle: int) -> None:
        """Searches at once, none like another, each on a connection of its own."""

        def search(number: int) -> None:
            client = Client(self)
            client.call("search", "POST", "/search", {"query": f"{ENGLISH[number % 12]} {cycle} {number}"})
            client.close()

        threads = [threading.Thread(target=search, args=(number,)) for number in range(BURST)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _check_all(self) -> None:
        """Everything acknowledged is there, everything deleted is gone, and every revoked key is refused."""
        client = Client(self)
        for _, serial in self.documents.values():
            self.check_word(client, serial, present=True, why="it was acknowledged")
        for serial in self.deleted:
            self.check_word(client, serial, present=False, why="its deletion was acknowledged")
        self.check_revoked(self.revoked)
        client.close()

    # --- the report ---------------------------------------------------------------------------------------------------

    def drift(self, name: str) -> tuple[float, float, float] | None:
        """Means of both halves of the cycles after warming up, and the change; None for fewer than two cycles."""
        values = [float(getattr(reading, name)) for reading in self.readings[WARM_UP:]]
        if len(values) < 2:
            return None
        first, second = statistics.mean(values[: len(values) // 2]), statistics.mean(values[-(len(values) // 2) :])
        return first, second, (second - first) / first if first else float(second > 0)

    def rows(self) -> list[tuple[str, str, str, bool]]:
        """The table of the report: what, figure, goal, whether it is reached."""
        ledger = self.ledger
        answered, shed, unanswered = map(ledger.total, ("answered", "shed", "unanswered"))
        judged = len(self.readings) - WARM_UP >= FEWEST_JUDGED
        kills = ", ".join(f"{count} {name}" for name, count in sorted(self.kills.items()))
        times = sorted(ledger.seconds)
        share, first = ledger.share(), ledger.share(first_attempt=True)
        written = f"{len(self.documents)} documents, {len(self.deleted)} deletions, {len(self.revoked)} revocations"
        rows = [
            ("cycles, kills", f"{len(self.readings)} of {self.cycle_s:.0f} s; {kills}", "", True),
            ("requests", f"{answered + shed + unanswered}, {shed} shed", "", True),
            ("seconds: median, 99 %", f"{times[len(times) // 2]:.3f}, {times[len(times) * 99 // 100]:.3f}", "", True),
            (
                "answered of those not shed",
                f"{share:.5f} ({unanswered} not)",
                f"≥ {ANSWERED_SHARE}",
                share >= ANSWERED_SHARE,
            ),
            ("at the first attempt", f"{first:.5f} ({unanswered + ledger.repeated} not)", "", True),
            ("unanswered without the kill of a worker", str(len(ledger.unexplained)), "0", not ledger.unexplained),
            ("acknowledged and lost", f"{len(ledger.lost)} of {written}", "0", not ledger.lost),
            ("leaks", str(len(ledger.leaks)), "0", not ledger.leaks),
        ]
        for name in ("pss_mb", "descriptors", "connections", "temporary"):
            if (change := self.drift(name)) is not None:
                goal = f"± {DRIFT:.0%}" if judged else "not judged: too short"
                figure = f"{change[0]:.1f} → {change[1]:.1f} ({change[2]:+.1%})"
                rows.append((name, figure, goal, not judged or abs(change[2]) <= DRIFT))
        return rows


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--embedder", default="auto", help="DTRAG_EMBEDDER of the service")
    parser.add_argument("--rate", type=float, default=120.0, help="requests a second that the clients try to send")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dtrag-soak-"))
    folder.chmod(0o755)
    soak = Soak(folder, options.seconds, options.embedder, options.rate)
    soak.run(lambda line: print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True))
    print("\n| what | figure | goal | |\n|---|---|---|---|")
    for what, figure, goal, reached in soak.rows():
        print(f"| {what} | {figure} | {goal} | {'' if reached else '**not reached**'} |")
    print("\n| requests | answered | shed | unanswered |\n|---|---|---|---|")
    for kind in sorted({kind for kind, _ in soak.ledger.outcomes}):
        counts: list[Any] = [soak.ledger.outcomes[kind, name] for name in ("answered", "shed", "unanswered")]
        print(f"| {kind} | {counts[0]} | {counts[1]} | {counts[2]} |")
    for title, lines in (
        ("lost", soak.ledger.lost),
        ("leaks", soak.ledger.leaks),
        ("unexplained", soak.ledger.unexplained),
    ):
        for line in lines[:20]:
            print(f"{title}: {line}")
    failed = not all(reached for *_, reached in soak.rows())
    if failed:
        print(f"the data folder and the log stay in {folder}")
    else:
        shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
