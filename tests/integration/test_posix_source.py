"""A folder with POSIX rights: who may read a file is what the kernel itself says, for accounts of this machine."""

from __future__ import annotations

import grp
import os
import pwd
import random
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.adapters.connectors.posix import PosixFolder, _acl, _gate
from dtrag.core.source_rights import SourceAccess, everyone, memberships, user
from dtrag.errors import SourceUnavailable
from tests.rounds import seeds

ACL = "system.posix_acl_access"
FOLDERS = ("a", "a/b", "c")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other accounts, and become them")


def accounts() -> list[pwd.struct_passwd]:
    """Accounts of this machine that are not root's; every installation has some."""
    return [account for account in pwd.getpwall() if account.pw_uid != 0][:6]


def readable_by(account: pwd.struct_passwd, files: list[Path]) -> set[Path]:
    """The files that a process of this account opens, as the kernel decides."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups(os.getgrouplist(account.pw_name, account.pw_gid))
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        opened = bytearray()
        for file in files:
            try:
                os.close(os.open(file, os.O_RDONLY))
                opened.append(1)
            except OSError:
                opened.append(0)
        os.write(sender, opened)
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as answers:
        bits = answers.read()
    os.waitpid(child, 0)
    assert len(bits) == len(files)
    return {file for file, bit in zip(files, bits, strict=True) if bit}


def random_acl(chance: random.Random, mode: int) -> bytes:
    """An access control list as the kernel stores it, with named users and groups, and a mask."""
    users = sorted({account.pw_uid for account in chance.sample(accounts(), 2)})
    groups = sorted({chance.choice(grp.getgrall()).gr_gid for _ in range(3)})
    rows = [(0x01, mode >> 6 & 7, 0xFFFFFFFF)]
    rows += [(0x02, chance.randint(0, 7), number) for number in users]
    rows += [(0x04, chance.randint(0, 7), 0xFFFFFFFF)]
    rows += [(0x08, chance.randint(0, 7), number) for number in groups]
    rows += [(0x10, chance.randint(0, 7), 0xFFFFFFFF), (0x20, mode & 7, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def change_rights(path: Path, chance: random.Random, lists: bool) -> None:
    account, group = chance.choice(accounts()), chance.choice(grp.getgrall())
    mode = chance.choice((0o755, 0o750, 0o700, 0o705, 0o644, 0o640, 0o604, 0o444, 0o070, 0o007, 0o710, 0o711))
    if path.is_dir():
        mode |= 0o700 if chance.random() < 0.8 else 0
        mode |= 0o011 if chance.random() < 0.6 else 0
    os.chown(path, account.pw_uid, group.gr_gid)
    path.chmod(mode)
    if lists and chance.random() < 0.5:
        os.setxattr(path, ACL, random_acl(chance, mode))


def lists_are_kept(folder: Path) -> bool:
    """Whether the file system stores access control lists."""
    probe = folder / "probe"
    probe.touch()
    try:
        os.setxattr(probe, ACL, random_acl(random.Random(1), 0o644))
    except OSError:
        return False
    finally:
        probe.unlink()
    return True


@pytest.fixture
def drive() -> Iterator[Path]:
    """A folder that every account can reach."""
    with tempfile.TemporaryDirectory(prefix="test-drive-", dir="/var/tmp") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder


async def test_random_rights_are_those_of_the_kernel(drive: Path) -> None:
    """Owners who are not members, groups that refuse, masks, folders that may not be searched."""
    lists, chance = lists_are_kept(drive), random.Random(7)
    files = [drive / folder / f"{name}.md" for folder in (".", *FOLDERS) for name in ("one", "two", "three")]
    for folder in FOLDERS:
        (drive / folder).mkdir()
    for file in files:
        file.write_text("text")
    paths, place_of = [*map(drive.joinpath, FOLDERS), *files], {str(file): file for file in files}
    wider, narrower, readable, with_list = [], [], 0, 0
    for number in seeds(30):
        for path in paths:
            change_rights(path, chance, lists)
            with_list += bool(_acl(path))
        source = PosixFolder(drive)
        items = await source.items()
        names = {everyone("posix"), *(name for item in items if item.rights for name in item.rights.groups)}
        direct = {name: await source.members(name) for name in names}
        groups = memberships(names, direct.get)
        rights = {place: item.rights for place, item in enumerate(items) if item.rights is not None}
        assert len(rights) == len(items) == len(files)
        for account in accounts():
            who = user("posix", account.pw_name)
            own = frozenset(name for name, members in groups.items() if who in members.users)
            kept = SourceAccess(rights, {who: own}).admitted([who])
            visible = {place_of[f"{drive}/{items[place].path}"] for place in kept}
            allowed = readable_by(account, files)
            readable += len(allowed)
            wider += [(number, account.pw_name, file) for file in visible - allowed]
            narrower += [(number, account.pw_name, file) for file in allowed - visible]
    assert wider == []
    assert narrower == []
    assert readable > 10 * len(seeds(30))
    assert with_list > 0 or not lists


async def test_a_file_whose_rights_change_while_it_is_fetched_is_refused(drive: Path, tmp_path: Path) -> None:
    (drive / "one.md").write_text("text")
    source = PosixFolder(drive)
    [item] = await source.items()
    await source.fetch(item, tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "text"
    (drive / "one.md").chmod(0o600)
    with pytest.raises(SourceUnavailable, match="changed meanwhile"):
        await source.fetch(item, tmp_path / "copy")
    (drive / "one.md").unlink()
    (drive / "one.md").symlink_to("/etc/hostname")
    with pytest.raises(SourceUnavailable):
        await source.fetch(item, tmp_path / "copy")


async def test_a_mark_follows_the_content_and_stays_with_a_renamed_file(drive: Path) -> None:
    file = drive / "한글 이름 #1.md"
    file.write_text("text")
    source = PosixFolder(drive)
    [first] = await source.items()
    assert "#" not in first.uri
    file = file.rename(drive / "other.md")
    [renamed] = await source.items()
    assert renamed.mark == first.mark
    file.write_text("other text")
    [changed] = await source.items()
    assert changed.mark != first.mark


async def test_hidden_files_and_links_are_left_out_and_an_empty_or_missing_folder_is_an_error(drive: Path) -> None:
    with pytest.raises(SourceUnavailable, match="empty"):
        await PosixFolder(drive).items()
    (drive / ".hidden.md").touch()
    (drive / "link.md").symlink_to("/etc/hostname")
    (drive / "one.md").touch()
    assert [item.path for item in await PosixFolder(drive).items()] == ["one.md"]
    with pytest.raises(SourceUnavailable, match="no such folder"):
        await PosixFolder(drive / "gone").items()


def test_a_folder_without_a_list_has_three_entries(drive: Path) -> None:
    assert len(_gate(drive, drive.stat(), 1)) == 3
