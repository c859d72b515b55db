"""A model hub on the loopback: the few answers that fetching a file takes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What it has, by `repository/path`; `lies` are files whose stated sum is another's."""

    url: str
    files: dict[str, bytes]
    lies: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def publish(self, repository: str, weights: str, folder: Path) -> None:
        """Offer the model in a folder."""
        self.files[f"{repository}/{weights}"] = (folder / "model.onnx").read_bytes()
        for name in ("tokenizer.json", "config.json"):
            self.files[f"{repository}/{name}"] = (folder / name).read_bytes()


@contextmanager
def open_hub() -> Iterator[Hub]:
    """A hub with nothing in it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            pass

        def _answer(self, *, body: bool) -> None:
            hub.tokens.extend(value for name, value in self.headers.items() if name.lower() == "authorization")
            repository, _, rest = self.path.lstrip("/").partition("/resolve/")
            revision, _, file = rest.partition("/")
            hub.asked.append(f"{self.command} {revision} {file}")
            key = f"{repository}/{file}"
            content = hub.files.get(key)
            self.send_response(200 if content is not None else 404)
            if content is None:
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            stated = hashlib.sha256(content + (b"!" if key in hub.lies else b"")).hexdigest()
            self.send_header("ETag", f'"{stated}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub = Hub(f"http://127.0.0.1:{server.server_address[1]}", {})
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
