"""A Git repository: the files of one branch or tag, by the `git` command and a shallow clone without a work tree.

What the repository contains is never run: no hooks, filters, submodules or symbolic links, no configuration of the user
or the machine. Over HTTP, git connects to exactly the addresses that the egress policy has checked.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote, urlsplit

from dtrag.adapters.connectors.names import IN_ADDRESS, WithoutRights, readable
from dtrag.adapters.web.guarded_transport import Resolve, resolve
from dtrag.core.access.egress import Allowed, checked, target
from dtrag.errors import EgressBlocked, InvalidInput, SourceUnavailable
from dtrag.ports.connectors import SourceItem
from dtrag.settings import passed_on

FORM = "git+https://HOST/PATH[@BRANCH], git+http://… or git+file:///PATH[@BRANCH]"
OLDEST = (2, 37)
"""The first version with `http.curloptResolve`, without which git resolves the host name itself."""
FETCH_SECONDS = 1_800.0
PACK_BYTES = 4 << 30
"""Largest file that a fetch may write; also the bound on what a server can send."""
MAX_BYTES = 512 << 20
"""Largest file that is taken from a repository."""
_HEAD = "refs/dtrag/head"
_LFS = b"version https://git-lfs.github.com/spec/"
_CONFIG = {
    "core.hooksPath": os.devnull,
    "credential.helper": "",
    "gc.autoDetach": "false",
    "gc.pruneExpire": "now",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "maintenance.autoDetach": "false",
}
_WEB = frozenset({"http", "https"})
_FILES = {b"100644", b"100755"}
"""Modes of regular files; the others are symbolic links (120000) and submodules (160000)."""


class GitSource(WithoutRights):
    """Implements `dtrag.ports.connectors.Connector`; the mark of a file is the id of its blob.

    The clone is in the folder `cache`, and is made again when it cannot be updated. A user name and password in the
    address are sent to its host only.
    """

    def __init__(
        self, address: str, cache: Path, allowed: Allowed = frozenset(), *, resolve: Resolve = resolve
    ) -> None:
        """Raises `InvalidInput` for what is not such an address, and `EgressBlocked`."""
        parts = urlsplit(address.removeprefix("git+"))
        path, at, self._ref = parts.path.rpartition("@") if "@" in parts.path else (parts.path, "", "HEAD")
        is_ref = re.fullmatch(r"\w[\w./+-]{0,200}", self._ref) and ".." not in self._ref
        local = parts.scheme == "file" and not parts.netloc
        if not is_ref or parts.query or parts.fragment or len(path) < 2 or not (local or parts.scheme in _WEB):
            raise InvalidInput(f"This is not the address of a Git repository. Write {FORM}.")
        self._config = dict(_CONFIG)
        if local:
            self._destination = None
            self._url = "file://" + quote(unquote(path))
        else:
            self._destination = target(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}", allowed)
            self._url = f"{parts.scheme}://{self._destination.authority}{self._destination.path}"
            if parts.username is not None:
                secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
                self._config["http.extraHeader"] = f"Authorization: Basic {b64encode(secret).decode()}"
        self._scheme = parts.scheme
        self._resolve = resolve
        self.address = f"git+{self._url}{at}{self._ref if at else ''}"
        self._clone = cache / f"git-{blake2b(self.address.encode(), digest_size=12).hexdigest()}"

    async def items(self) -> Sequence[SourceItem]:
        """The regular files at the tip of the branch. Raises `SourceUnavailable`."""
        await self._check_version()
        await self._pin()
        try:
            if not self._clone.is_dir():
                raise SourceUnavailable(address=self.address, reason="it was not cloned yet.")
            await self._update(self._clone)
        except SourceUnavailable:  # a process that was killed may have left locks behind
            try:
                await self._clone_again()
            except OSError as error:
                reason = f"the clone cannot be stored: {error.strerror}."
                raise SourceUnavailable(address=self.address, reason=reason) from error
        listed = await self._git(self._clone, "ls-tree", "-r", "-z", "--full-tree", _HEAD)
        items: dict[str, SourceItem] = {}
        for entry in listed.split(b"\0")[:-1]:
            facts, _, name = entry.partition(b"\t")
            mode, _, blob = facts.split(b" ")
            path = os.fsdecode(name)
            if mode in _FILES:
                uri = f"{self.address}/{readable(path, IN_ADDRESS)}"
                items[uri] = SourceItem(uri, readable(path), blob.decode())
        return list(items.values())

    async def fetch(self, item: SourceItem, path: Path) -> None:
        """Write the blob of the item. Raises `SourceUnavailable`."""
        if not item.mark.isalnum():
            raise SourceUnavailable(address=item.uri, reason="it was not listed.")
        with path.open("wb") as file:
            await self._git(self._clone, "cat-file", "blob", item.mark, output=file, most=MAX_BYTES)
        with path.open("rb") as file:
            if file.read(len(_LFS)) == _LFS:
                raise SourceUnavailable(address=item.uri, reason="its content is in Git LFS, which is not read.")

    async def _clone_again(self) -> None:
        fresh = self._clone.with_suffix(".new")
        await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        await self._git(fresh, "init", "--quiet", "--bare", "--template=")
        await self._update(fresh)
        await asyncio.to_thread(shutil.rmtree, self._clone, ignore_errors=True)
        fresh.rename(self._clone)

    async def _update(self, clone: Path) -> None:
        options = "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"
        await self._git(clone, "fetch", *options, self._url, f"+{self._ref}:{_HEAD}", seconds=FETCH_SECONDS)

    async def _check_version(self) -> None:
        if shutil.which("git") is None:
            raise SourceUnavailable(address=self.address, reason="git is not installed on this machine.")
        numbers = (await self._git(self._clone, "version")).split()[2].split(b".")  # "git version 2.39.5"
        if tuple(map(int, numbers[:2])) < OLDEST:
            raise SourceUnavailable(address=self.address, reason="git 2.37 or later is required on this machine.")

    async def _pin(self) -> None:
        """Have git connect to the addresses that the policy allows, instead of resolving the name again."""
        if self._destination is None:
            return
        host, port = self._destination.host, self._destination.port
        try:
            addresses = checked(self._destination, await self._resolve(host, port))
        except EgressBlocked as error:
            raise SourceUnavailable(address=self.address, reason=str(error)) from error
        except OSError as error:
            raise SourceUnavailable(address=self.address, reason=f"{host} cannot be resolved.") from error
        if ":" not in host:
            shown = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
            self._config["http.curloptResolve"] = f"{host}:{port}:{shown}"

    async def _git(
        self,
        clone: Path,
        *arguments: str,
        output: int | IO[bytes] = asyncio.subprocess.PIPE,
        most: int = PACK_BYTES,
        seconds: float = 120.0,
    ) -> bytes:
        """What the command prints. It writes no file of more than `most` bytes. Raises `SourceUnavailable`."""
        limited = ("sh", "-c", 'ulimit -f "$0" && exec "$@"', str(most >> 9), "git", *arguments)
        with tempfile.TemporaryFile() as errors:
            process = await asyncio.create_subprocess_exec(
                *limited,
                env=self._environment(clone),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(seconds):
                    printed, _ = await process.communicate()
            except TimeoutError as error:
                reason = f"git took longer than {seconds:g} s."
                raise SourceUnavailable(address=self.address, reason=reason) from error
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
            if process.returncode == -signal.SIGXFSZ:
                raise SourceUnavailable(address=self.address, reason=f"a file is larger than {most >> 20} MiB.")
            if process.returncode:
                errors.seek(max(0, errors.tell() - 2_000))
                raise SourceUnavailable(address=self.address, reason=_reason(errors.read()))
        return printed or b""

    def _environment(self, clone: Path) -> Mapping[str, str]:
        """Nothing of the user's own: `HOME` is the clone, which has no .netrc, and there is no proxy."""
        settings = {
            name: value
            for number, (key, text) in enumerate(self._config.items())
            for name, value in ((f"GIT_CONFIG_KEY_{number}", key), (f"GIT_CONFIG_VALUE_{number}", text))
        }
        return {
            **passed_on(("PATH", "TMPDIR", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR")),
            **settings,
            "GIT_ALLOW_PROTOCOL": self._scheme,
            "GIT_CONFIG_COUNT": str(len(self._config)),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(clone),
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": str(clone),
            "LC_ALL": "C",
        }


def _reason(errors: bytes) -> str:
    """The last line of git that explains a failure, or that there was none."""
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    shown = "".join(each for each in (fatal or ["it failed"])[0] if each.isprintable())
    return f"git reports: {shown[:300].strip().rstrip('.')}."
