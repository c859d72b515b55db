"""Files that searches map: what is cut, damaged, foreign or half written is never read, and nothing depends on them."""

from __future__ import annotations

import json
import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dtrag.adapters.postgres import disk, search_files
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.disk import MIB, Disk
from dtrag.adapters.postgres.search_files import SearchFiles
from dtrag.settings import Settings
from dtrag.testing.throwaway import Databases

PAIRS = np.dtype([("id", "<u8", (2,)), ("count", "<i4")])
ARRAYS: dict[str, NDArray[Any]] = {
    "numbers": np.arange(1_000, dtype=np.int32),
    "empty": np.empty((0, 3), np.uint8),
    "matrix": np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4),
    "pairs": np.array([((1, 2), 3), ((4, 5), 6)], PAIRS),
}
FACTS: dict[str, Any] = {"passages": 7, "means": {"en": 1.25}, "languages": ["en", "ko"]}


@pytest.fixture
def files(tmp_path: Path) -> SearchFiles:
    return SearchFiles(tmp_path / "search", "1-2")


def path_of(files: SearchFiles, name: str = "a") -> Path:
    return files._parent / files._identity / name


def is_whole(files: SearchFiles, name: str = "a") -> bool:
    mapped = files.open(name)
    if mapped is None:
        return False
    assert mapped.facts == FACTS and mapped.arrays.keys() == ARRAYS.keys()
    for key, array in mapped.arrays.items():
        assert array.dtype == ARRAYS[key].dtype and (array == ARRAYS[key]).all() and array.shape == ARRAYS[key].shape
        assert not array.flags.writeable and array.ctypes.data % search_files.ALIGNMENT == 0
    return True


def test_a_file_is_private_mapped_and_stays_readable_when_it_is_removed(files: SearchFiles) -> None:
    assert files.open("a") is None and files.names() == set() and not files._parent.exists()
    files.write("a", ARRAYS, FACTS)
    assert is_whole(files) and is_whole(SearchFiles(files._parent, "1-2"))
    assert path_of(files).stat().st_mode & 0o777 == 0o600
    assert {folder.stat().st_mode & 0o777 for folder in (files._parent, files._parent / "1-2")} == {0o700}
    mapped = files.open("a")
    assert mapped is not None
    files.write("a", {"numbers": np.zeros(3, np.int32)}, {})
    files.remove({"a", "b"})
    assert files.names() == set() and mapped.arrays["numbers"][999] == 999


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut in the prelude": lambda content: content[:20],
    "cut": lambda content: content[:-64],
    "longer": lambda content: content + b"\0",
    "zeros": lambda content: bytes(len(content)),
    "another format": lambda content: content[:8] + b"\x09" + content[9:],
    "a longer header": lambda content: content[:12] + b"\xff\xff\xff\xff" + content[16:],
    "text": lambda content: b"not a file of this program" * 200,
    "a bit of the header": lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
    "the last bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_removed(files: SearchFiles, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    files.write("a", ARRAYS, FACTS)
    content = path_of(files).read_bytes()
    path_of(files).write_bytes(DAMAGES[damage](content))
    assert files.open("a") is None and files.names() == set()
    assert "the search file a is removed" in caplog.text
    files.write("a", ARRAYS, FACTS)
    assert is_whole(files)


def test_every_changed_byte_is_noticed(files: SearchFiles) -> None:
    files.write("a", {"numbers": np.arange(9, dtype=np.int32)}, {})
    content = path_of(files).read_bytes()
    for place in range(len(content)):
        path_of(files).write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        path_of(files).chmod(0o600)
        assert files.open("a") is None, place


def test_files_of_another_name_or_database_are_not_used(files: SearchFiles) -> None:
    files.write("a", ARRAYS, FACTS)
    other = SearchFiles(files._parent, "1-3")
    other.write("b", ARRAYS, FACTS)
    shutil.copy(path_of(files), path_of(files, "b"))
    shutil.copy(path_of(files), path_of(other, "a"))
    assert files.open("b") is None and other.open("a") is None
    assert is_whole(files) and is_whole(other, "b")


def test_links_and_files_for_others_are_not_used(files: SearchFiles, tmp_path: Path) -> None:
    files.write("a", ARRAYS, FACTS)
    shutil.move(path_of(files), tmp_path / "elsewhere")
    path_of(files).symlink_to(tmp_path / "elsewhere")
    assert files.open("a") is None and (tmp_path / "elsewhere").exists()
    os.mkfifo(path_of(files), 0o600)
    assert files.open("a") is None
    files.write("a", ARRAYS, FACTS)
    path_of(files).chmod(0o640)
    assert files.open("a") is None
    files.write("a", ARRAYS, FACTS)
    (files._parent / "1-2").chmod(0o755)
    assert is_whole(files)
    assert (files._parent / "1-2").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_a_link_or_of_another_user_is_not_used(
    files: SearchFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "search").symlink_to(tmp_path / "elsewhere")
    files.write("a", ARRAYS, FACTS)
    assert files.open("a") is None and not list((tmp_path / "elsewhere").iterdir())
    (tmp_path / "search").unlink()
    files.write("a", ARRAYS, FACTS)
    assert is_whole(files)
    caplog.clear()
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert files.open("a") is None and files.names() == set()
    files.write("b", ARRAYS, FACTS)
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
    assert "belongs to user id" in caplog.text
    monkeypatch.undo()
    assert is_whole(files) and files.names() == {"a"}


def test_a_file_of_another_user_in_the_folder_is_removed(files: SearchFiles) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make files of another user")
    files.write("a", ARRAYS, FACTS)
    os.chown(path_of(files), 65_534, -1)
    assert files.open("a") is None and files.names() == set()


def test_a_full_disk_leaves_no_file(files: SearchFiles, caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, hard))
    try:
        files.write("a", {"numbers": np.zeros(MIB, np.int32)}, {})
        files.write("b", {"numbers": np.zeros(MIB, np.int32)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((files._parent / "1-2").iterdir())
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
    files.write("a", ARRAYS, FACTS)
    assert is_whole(files)


def test_files_leave_the_space_that_the_database_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_space", lambda folder: (100 * MIB, 1000 * MIB))
    files = SearchFiles(tmp_path / "search", "1-2", Disk(tmp_path, 64))
    files.write("a", {"numbers": np.zeros(16 * MIB, np.int32)}, {})
    files.write("b", ARRAYS, FACTS)
    assert files.names() == {"b"}


KILLS = """
import json, os, signal, sys
import numpy as np
from pathlib import Path
from dtrag.adapters.postgres import search_files
files = search_files.SearchFiles(Path(sys.argv[1]), "1-2")
files.write("a", {"numbers": np.arange(10, dtype=np.int32)}, {"version": 0})
lines, states = 0, []
def at_line(frame, event, arg):
    global lines
    if event == "line":
        lines += 1
        if lines == limit:
            os.kill(os.getpid(), signal.SIGKILL)
    return at_line
def trace(frame, event, arg):
    return at_line if frame.f_code is search_files._publish.__code__ else None
limit, status = 0, 1
while status:
    limit += 1
    child = os.fork()
    if not child:
        sys.settrace(trace)
        files.write("a", {"numbers": np.arange(10, dtype=np.int32) + limit}, {"version": limit})
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    mapped = files.open("a")
    first = mapped.arrays["numbers"][0].item()
    states.append((status, mapped.facts["version"], first, len(os.listdir(sys.argv[1] + "/1-2"))))
print(json.dumps(states))
"""


def test_a_process_that_is_killed_at_any_line_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    program = [sys.executable, "-c", KILLS, str(folder)]
    states = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)
    assert len(states) > 15
    assert all(status == signal.SIGKILL for status, *_ in states[:-1])
    assert all(version == first for _, version, first, _ in states)
    versions = [version for _, version, _, _ in states]
    assert versions[0] == 0 and versions[-1] == len(states) and sorted(versions) == versions
    assert {entries for *_, entries in states} == {1, 2}, "left-over files are removed by the next writer"
    files = SearchFiles(folder, "1-2")
    files.write("b", ARRAYS, FACTS)
    assert {path.name for path in (folder / "1-2").iterdir()} == {"a", "b"}


async def test_databases_of_one_cluster_have_folders_of_their_own(databases: Databases) -> None:
    def folders(settings: Settings) -> set[str]:
        return {path.name for path in (settings.data_dir / search_files.FOLDER).iterdir() if path.is_dir()}

    settings = databases.settings()
    async with connect(settings) as database, connect(databases.settings()) as copy:
        assert database.files is not None and copy.files is not None
        database.files.write("a", ARRAYS, FACTS)
        copy.files.write("b", ARRAYS, FACTS)
        assert database.files.names() == {"a"} and copy.files.names() == {"b"}
        own = {database.files._identity, copy.files._identity}
        assert len(own) == 2 and own <= folders(settings)
    databases.drop()
    async with connect(databases.settings()):
        assert not own & folders(settings), "those of dropped databases are removed"
