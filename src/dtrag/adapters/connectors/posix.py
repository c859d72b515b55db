"""A folder whose files only those may read who may read them on this machine: modes, and POSIX access control lists.

Rights are those of open(2) with the usual checks (POSIX.1-2017 4.5, POSIX.1e draft 17 section 23.1.5): the file has to
be readable, and every folder above it, up to the root, searchable. Users and groups are those of this machine.
"""

from __future__ import annotations

import asyncio
import errno
import grp
import os
import pwd
import shutil
import stat
import struct
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from dtrag.core.source_rights import NO_READERS, Gate, Rights, RightsEntry, everyone, group, user
from dtrag.errors import SourceUnavailable
from dtrag.ports import SourceItem

FORM = "posix:/folder"
SITE = "posix"
READ, SEARCH = 4, 1
_ACL = "system.posix_acl_access"
_ACL_VERSION = 2
_OWNER, _USER, _OWNING_GROUP, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
"""Kinds of entries in the extended attribute, whose layout is that of linux/posix_acl_xattr.h."""
_NO_ACL = frozenset({errno.ENODATA, errno.EOPNOTSUPP})


class PosixFolder:
    """`Connector` for a folder of this machine. Hidden files, symbolic links and special files are left out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self.address = f"posix:{self._folder}"
        self.site = SITE

    async def items(self) -> Sequence[SourceItem]:
        """See `Connector`."""
        return await asyncio.to_thread(self._items)

    async def fetch(self, item: SourceItem, path: Path) -> None:
        """See `Connector`."""
        await asyncio.to_thread(self._fetch, item, path)

    async def members(self, principal: str) -> Collection[str]:
        """See `Connector`."""
        return await asyncio.to_thread(_members, principal)

    async def close(self) -> None:
        """See `Connector`."""

    def _items(self) -> list[SourceItem]:
        if not self._folder.is_dir():
            raise SourceUnavailable(address=self.address, reason="there is no such folder. Is its disk mounted?")
        above = [_gate(folder, folder.stat(), SEARCH) for folder in (*self._folder.parents, self._folder)]
        items = [self._item(path, gates) for path, gates in self._files(self._folder, above)]
        if not items and not any(self._folder.iterdir()):
            raise SourceUnavailable(address=self.address, reason="the folder is empty. Is its disk mounted?")
        return sorted(items, key=lambda item: item.uri)

    def _files(self, folder: Path, above: list[Gate]) -> Iterator[tuple[Path, list[Gate]]]:
        try:
            with os.scandir(folder) as entries:
                visible = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError as error:
            self._unreadable(folder, error)
        for entry in visible:
            path = Path(entry.path)
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._files(path, [*above, _gate(path, entry.stat(follow_symlinks=False), SEARCH)])
                elif entry.is_file(follow_symlinks=False):
                    yield path, above
            except FileNotFoundError:
                continue  # deleted meanwhile

    def _item(self, path: Path, above: Sequence[Gate]) -> SourceItem:
        status = path.lstat()
        try:
            rights = Rights.of([*above, _gate(path, status, READ)])
        except (OSError, ValueError):
            rights = NO_READERS
        return SourceItem(path.as_uri(), path.relative_to(self._folder).as_posix(), _mark(status), rights)

    def _fetch(self, item: SourceItem, path: Path) -> None:
        file = self._folder / item.path
        try:
            above = [_gate(folder, folder.stat(), SEARCH) for folder in file.parents]
            with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source, path.open("wb") as copy:  # noqa: PTH123 - of a descriptor
                shutil.copyfileobj(source, copy)
                status = os.fstat(source.fileno())
                rights = Rights.of([*above, _gate(source.fileno(), status, READ)])
        except (OSError, ValueError) as error:
            self._unreadable(file, error)
        if _mark(status) != item.mark or rights != item.rights:
            raise SourceUnavailable(address=self.address, reason=f"{file} was changed meanwhile. Sync it again.")

    def _unreadable(self, path: Path, error: Exception) -> NoReturn:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceUnavailable(address=self.address, reason=f"{path}: {reason}.") from error


def _mark(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


def _gate(path: Path | int, status: os.stat_result, bit: int) -> Gate:
    """Who gets this permission on a file or folder, in the order in which the system looks."""
    mode = stat.S_IMODE(status.st_mode)
    owner = RightsEntry(_user(status.st_uid), bool(mode >> 6 & bit))
    rest = RightsEntry(everyone(SITE), bool(mode & bit))
    entries = _acl(path) if mode & stat.S_IRWXG else []  # Linux reads no list whose mask is empty
    if not entries:
        return owner, RightsEntry(_group(status.st_gid), bool(mode >> 3 & bit)), rest
    mask = next((permissions for kind, permissions, _ in entries if kind == _MASK), 0o7)
    users, groups = [], []
    for kind, permissions, number in entries:
        allow = bool(permissions & mask & bit)
        if kind == _USER:
            users.append(RightsEntry(_user(number), allow))
        elif kind in (_OWNING_GROUP, _GROUP):
            groups.append(RightsEntry(_group(status.st_gid if kind == _OWNING_GROUP else number), allow))
    groups.sort(key=lambda entry: not entry.allow)  # one group that allows it is enough
    return owner, *users, *groups, rest


def _acl(path: Path | int) -> list[tuple[int, int, int]]:
    """Kind, permissions and number of the user or group of each entry; none when the mode says it all."""
    try:
        raw = os.getxattr(path, _ACL)
    except OSError as error:
        if error.errno in _NO_ACL:
            return []
        raise
    (version,) = struct.unpack_from("<I", raw)
    if version != _ACL_VERSION:
        raise ValueError(f"an access control list of version {version}")
    return list(struct.iter_unpack("<HHI", raw[4:]))


def _user(number: int) -> str:
    try:
        return user(SITE, pwd.getpwuid(number).pw_name)
    except KeyError:
        return user(SITE, f"uid:{number}")


def _group(number: int) -> str:
    try:
        return group(SITE, grp.getgrgid(number).gr_name)
    except KeyError:
        return group(SITE, f"gid:{number}")


def _members(principal: str) -> list[str]:
    accounts = pwd.getpwall()
    if principal == everyone(SITE):
        return [user(SITE, account.pw_name) for account in accounts]
    name = principal.split("/", 2)[2]
    try:
        stored = grp.getgrnam(name)
        number, names = stored.gr_gid, set(stored.gr_mem)
    except KeyError:
        number, names = int(name.removeprefix("gid:")) if name.startswith("gid:") else -1, set()
    names |= {account.pw_name for account in accounts if account.pw_gid == number}
    return [user(SITE, name) for name in sorted(names)]
