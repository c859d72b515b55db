"""Zip containers: what is refused, and that reading gives the right bytes."""

from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path

import pytest

from dtrag.adapters.parsers import archive
from dtrag.errors import ParseFailed


def made(path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries:
            file.writestr(name, data)
    return path


def test_reading(tmp_path: Path) -> None:
    path = made(tmp_path / "a.zip", ("folder/", b""), ("folder/한글.xml", b"<a/>"), ("b", b"x" * 300_000))
    with archive.open_archive(path) as opened:
        assert opened.names() == ("folder/한글.xml", "b")
        assert "b" in opened
        assert "c" not in opened
        assert opened.size("b") == 300_000
        assert opened.read("b") == b"x" * 300_000
        with opened.open("b") as stream:
            assert stream.read(10) == b"x" * 10
        with pytest.raises(ParseFailed, match="larger than"):
            opened.read("b", 1_000)
        with pytest.raises(ParseFailed, match="has no c"):
            opened.read("c")


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "..\\evil", "/etc/x", "C:\\x", "C:x"])
def test_names_that_leave_the_archive(name: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a.zip", (zipfile.ZipInfo(name), b"x"))
    with pytest.raises(ParseFailed, match=r"unsafe archive: an entry.* name"):
        archive.open_archive(path)


def test_symbolic_links(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("word/document.xml")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(ParseFailed, match="symbolic link"):
        archive.open_archive(made(tmp_path / "a.zip", (link, b"/etc/passwd")))


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        path = made(tmp_path / "a.zip", ("a", b"1"), ("a", b"2"))
    with pytest.raises(ParseFailed, match="same name"):
        archive.open_archive(path)


def test_a_bomb_by_its_ratio(tmp_path: Path) -> None:
    with pytest.raises(ParseFailed, match="300 times"):
        archive.open_archive(made(tmp_path / "a.zip", ("a", bytes(20 << 20))))


def test_a_bomb_by_its_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 1_000)
    with pytest.raises(ParseFailed, match="unpacked"):
        archive.open_archive(made(tmp_path / "a.zip", ("a", b"x" * 600), ("b", b"y" * 600)))


def test_too_many_entries(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        for number in range(archive.MAX_ENTRIES + 1):
            file.writestr(str(number), b"")
    with pytest.raises(ParseFailed, match="10,000 entries"):
        archive.open_archive(path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<HH", data, len(data) - 22 + 8, 5, 5)  # the number that it declares may lie
    path.write_bytes(data)
    with pytest.raises(ParseFailed, match="10,000 entries"):
        archive.open_archive(path)


def test_a_zip64_directory(tmp_path: Path) -> None:
    data = made(tmp_path / "a.zip", ("a", b"x")).read_bytes()
    (tmp_path / "b.zip").write_bytes(data[:-22] + b"PK\x06\x07" + bytes(16) + data[-22:])
    with pytest.raises(ParseFailed, match="ZIP64"):
        archive.open_archive(tmp_path / "b.zip")


def test_overlapping_entries(tmp_path: Path) -> None:
    data = bytearray(made(tmp_path / "a.zip", ("a", b"x" * 5_000), ("b", b"y" * 5_000)).read_bytes())
    second = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, second + 42, 0)  # both now begin at the start of the file
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(ParseFailed, match="overlap"):
        archive.open_archive(tmp_path / "b.zip")


def test_encrypted_and_unusually_packed_entries(tmp_path: Path) -> None:
    data = bytearray(made(tmp_path / "a.zip", ("a", b"x")).read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 8] |= 1
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(ParseFailed, match="encrypted"):
        archive.open_archive(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "c.zip", "w", zipfile.ZIP_LZMA) as file:
        file.writestr("a", b"x")
    with pytest.raises(ParseFailed, match="unusual"):
        archive.open_archive(tmp_path / "c.zip")


def test_damage(tmp_path: Path) -> None:
    data = made(tmp_path / "a.zip", ("a", bytes(range(256)) * 40)).read_bytes()
    for cut in range(0, len(data), 97):
        (tmp_path / "b.zip").write_bytes(data[:cut])
        with pytest.raises(ParseFailed, match="damaged"):
            archive.open_archive(tmp_path / "b.zip")
    broken = bytearray(data)
    broken[60:70] = b"\xff" * 10
    (tmp_path / "c.zip").write_bytes(broken)
    with archive.open_archive(tmp_path / "c.zip") as opened, pytest.raises(ParseFailed, match="a cannot be unpacked"):
        opened.read("a")


BOMB = b'<!DOCTYPE a [<!ENTITY x "yyyyyyyyyy"><!ENTITY z "&x;&x;&x;&x;">]><a>&z;</a>'
XXE = b'<?xml version="1.0"?><!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'


@pytest.mark.parametrize("data", [BOMB, XXE, XXE[21:].decode().encode("utf-16"), BOMB.decode().encode("utf-32")])
def test_document_type_declarations_are_refused(data: bytes) -> None:
    with pytest.raises(ParseFailed, match=r"document type declaration|not well-formed"):
        archive.parse_xml(data)


def test_the_root_has_its_namespace() -> None:
    data = b'<s xmlns="urn:x"><p>one</p><q/><p>two</p></s>'
    assert archive.parse_xml(data).tag == "{urn:x}s"


def test_malformed_xml_says_where() -> None:
    with pytest.raises(ParseFailed, match="line 2 is not well-formed"):
        archive.parse_xml(b"<a>\n</b>")
