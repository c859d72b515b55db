"""Sources of documents to test connectors against: Git repositories, an S3 service and a site, all on loopback."""

from __future__ import annotations

import asyncio
import os
import subprocess
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from dtrag.adapters.connectors.git import GitSource
from dtrag.adapters.connectors.s3 import S3Source
from dtrag.adapters.connectors.sitemap import SiteSource
from dtrag.adapters.web.fetch import WebFetcher
from dtrag.ports.connectors import Connector
from tests.web_server import Asked, WebServer, answer, web_server

AUTHOR = {f"GIT_{who}_{what}": "Kim" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


async def no_pause(_: float) -> None:
    """Instead of waiting between two requests to a site."""


class Repository:
    """A Git repository with a work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.run("init", "--quiet", "--initial-branch=main")
        self.commit()

    @property
    def address(self) -> str:
        return f"git+file://{quote(str(self.folder))}"

    def run(self, *arguments: str, stdin: bytes = b"") -> str:
        command = ["git", "-c", "protocol.file.allow=always", "-c", "core.quotePath=false", *arguments]
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **AUTHOR}
        done = subprocess.run(command, cwd=self.folder, env=environ, input=stdin, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def commit(self, *options: str) -> None:
        self.run("add", "--all")
        self.run("commit", "--quiet", "--allow-empty", "-m", "More", *options)

    def write(self, name: str, data: bytes) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


@asynccontextmanager
async def git_server(folder: Path, secret: str = "") -> AsyncIterator[WebServer]:
    """`git http-backend` over the repositories in a folder; `secret`: user and password that it demands."""

    async def serve(asked: Asked, writer: asyncio.StreamWriter) -> None:
        sent = asked.headers.get("authorization", "").removeprefix("Basic ")
        if secret and b64decode(sent).decode() != secret:
            writer.write(answer(401, b"", "text/plain", WWW_Authenticate='Basic realm="git"'))
            return
        path, _, query = asked.path.partition("?")
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": asked.method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": asked.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(asked.body)),
            "HTTP_CONTENT_ENCODING": asked.headers.get("content-encoding", ""),
            "HTTP_GIT_PROTOCOL": asked.headers.get("git-protocol", ""),
        }
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec("git", "http-backend", env=environ, stdin=pipe, stdout=pipe)
        printed, _ = await process.communicate(asked.body)
        head, _, body = printed.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.get("Status", "200").split(" ")[0])
        writer.write(answer(status, body, fields.get("Content-Type", "text/plain")))

    async with web_server(serve) as server:
        yield server


@contextmanager
def s3_service() -> Iterator[str]:
    """The address of a service with the protocol of S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def s3_environment(endpoint: str) -> dict[str, str]:
    """How commands and programs are told of a service."""
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
    files = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return {"AWS_ENDPOINT_URL": endpoint, **keys, **files, "AWS_EC2_METADATA_DISABLED": "true"}


def s3_client() -> Any:
    """A client of the service in the environment."""
    import boto3

    return boto3.client("s3")


def endpoint_allowed(endpoint: str) -> frozenset[tuple[str, int]]:
    host, _, port = endpoint.removeprefix("http://").partition(":")
    return frozenset({(host, int(port))})


@dataclass
class Page:
    """What the site answers at a path. `stated`: the `lastmod` of the sitemap; `etag`: whether it sends one."""

    body: bytes
    content_type: str = "text/html; charset=utf-8"
    stated: str = ""
    etag: bool = False
    status: int = 200
    location: str = ""

    def answer(self, *, head: bool) -> bytes:
        headers = {"ETag": f'"{sha256(self.body).hexdigest()[:16]}"'} if self.etag else {}
        headers |= {"Location": self.location} if self.location else {}
        whole = answer(self.status, self.body, self.content_type, **headers)
        return whole[: len(whole) - len(self.body)] if head else whole


@dataclass
class Site:
    """A site with a sitemap of its pages; `extra` are entries for other addresses, `files` other paths."""

    pages: dict[str, Page] = field(default_factory=dict)
    files: dict[str, Page] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    down: bool = False
    server: WebServer = field(default_factory=WebServer)

    @property
    def requests(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.server.requests]

    async def serve(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.write(answer(503, b"", "text/plain"))
            return
        page = (self.files | self.pages).get(asked.path)
        if page is None and asked.path == "/sitemap.xml":
            page = Page(self.sitemap(), "application/xml")
        writer.write((page or Page(b"", status=404)).answer(head=asked.method == "HEAD"))

    def sitemap(self) -> bytes:
        rows = [(f"{self.server.address}{path}", page.stated) for path, page in self.pages.items()]
        rows += [(url, "") for url in self.extra]
        entries = "".join(
            f"<url><loc>{escape(url)}</loc>{f'<lastmod>{stated}</lastmod>' if stated else ''}</url>"
            for url, stated in rows
        )
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()

    def connector(self, cache: Path, **options: Any) -> SiteSource:
        fetcher = WebFetcher(self.server.allowed)
        address = f"sitemap+{self.server.address}/sitemap.xml"
        return SiteSource(address, cache, fetcher, self.server.allowed, **{"sleep": no_pause, **options})


@asynccontextmanager
async def site_server() -> AsyncIterator[Site]:
    site = Site()
    async with web_server(site.serve) as site.server:
        yield site


class GitHarness:
    """A repository as a source that tests change. `names`: file names that it can have."""

    keeps_marks = True
    names = ("a b.md", "휴학 규정#1?.md", "50%.md", "%35.md", "a\n\x01b.md", "b\\..\\c.md", "나" * 80 + ".md", "...md")

    def __init__(self, folder: Path, address: str = "", allowed: frozenset[tuple[str, int]] = frozenset()) -> None:
        self.repository = Repository(folder / "repository")
        self._address = address or self.repository.address
        self._cache = folder / "cache"
        self._allowed = allowed

    def connector(self) -> Connector:
        return GitSource(self._address, self._cache, self._allowed)

    def write(self, name: str, data: bytes) -> None:
        self.repository.write(name, data)
        self.repository.commit()

    def rename(self, old: str, new: str) -> None:
        (self.repository.folder / old).rename(self.repository.folder / new)
        self.repository.commit()

    def delete(self, name: str) -> None:
        (self.repository.folder / name).unlink()
        self.repository.commit()

    def lose(self) -> None:
        self.repository.folder.rename(self.repository.folder.with_name("elsewhere"))


class S3Harness:
    """A bucket as a source that tests change."""

    keeps_marks = True
    names = ("a b.md", "휴학 규정#1?.md", "50%.md", "%35.md", "a+b&c.md", "x/../../y.md", "나" * 300 + ".md", "...md")

    def __init__(self, endpoint: str, bucket: str) -> None:
        self.client = s3_client()
        self.client.create_bucket(Bucket=bucket)
        self.bucket = bucket
        self._allowed = endpoint_allowed(endpoint)

    def connector(self) -> Connector:
        return S3Source(f"s3://{self.bucket}/규정", self._allowed)

    def write(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=f"규정/{name}", Body=data)

    def rename(self, old: str, new: str) -> None:
        source = {"Bucket": self.bucket, "Key": f"규정/{old}"}
        self.client.copy_object(Bucket=self.bucket, Key=f"규정/{new}", CopySource=source)
        self.delete(old)

    def delete(self, name: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=f"규정/{name}")

    def lose(self) -> None:
        for row in self.client.list_objects_v2(Bucket=self.bucket).get("Contents", ()):
            self.client.delete_object(Bucket=self.bucket, Key=row["Key"])
        self.client.delete_bucket(Bucket=self.bucket)


class SiteHarness:
    """A site as a source that tests change; `dated`: its sitemap states when pages changed."""

    keeps_marks = False
    names = ("a b.md", "휴학 규정?1.md", "50%.md", "%35.md", "a\x01b.md", "x/%2E%2E/y.md", "나" * 300 + ".md", "...md")

    def __init__(self, site: Site, cache: Path, *, dated: bool) -> None:
        self.site = site
        self._cache = cache
        self._dated = dated
        self._day = date(2020, 1, 1)

    def connector(self) -> Connector:
        return self.site.connector(self._cache)

    def write(self, name: str, data: bytes) -> None:
        self._day += timedelta(days=1)
        stated = self._day.isoformat() if self._dated else ""
        self.site.pages["/" + quote(name)] = Page(data, "text/markdown", stated, etag=not self._dated)

    def rename(self, old: str, new: str) -> None:
        self.site.pages["/" + quote(new)] = self.site.pages.pop("/" + quote(old))

    def delete(self, name: str) -> None:
        del self.site.pages["/" + quote(name)]

    def lose(self) -> None:
        self.site.down = True


Harness = GitHarness | S3Harness | SiteHarness
HARNESSES = ("git file", "git http", "s3", "site dated", "site with ETags")


@asynccontextmanager
async def harness(name: str, folder: Path, endpoint: str) -> AsyncIterator[Harness]:
    """A new empty source of the kind; `endpoint`: of the S3 service in the environment."""
    if name == "git file":
        yield GitHarness(folder)
    elif name == "git http":
        async with git_server(folder) as server:
            yield GitHarness(folder, f"git+{server.address}/repository/.git", server.allowed)
    elif name == "s3":
        yield S3Harness(endpoint, "b-" + sha256(str(folder).encode()).hexdigest()[:20])
    else:
        async with site_server() as site:
            yield SiteHarness(site, folder / "cache", dated=name == "site dated")
