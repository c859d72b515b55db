"""The file of a backup: its format, its checks, and its encryption.

    dtrag backup 1                        the number of the format
    {"id": "…", "salt": "…"}              the salt of the key; null without encryption
    (part, number, length) payload digest records: the manifest, the database, the case file, the end

A digest is the SHA-256 over the one before it, the head of the record and the payload as it is stored, so that records
which are changed, missing, repeated or exchanged are recognised. The first follows the two lines. Payloads are
encrypted one by one with ChaCha20-Poly1305; the nonce is the number of the record, since every file has its own key.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from dtrag.core.access.audit_chain import ChainHead
from dtrag.errors import BackupRefused, InvalidInput, MissingExtra, StorageFull

FORMAT = 1
"""Number of the format. Raise it with a change that earlier versions cannot read."""
_TITLE = b"dtrag backup "
_HEAD = struct.Struct("!cQI")
_MOST_HEADER, MOST_PAYLOAD = 4_096, 4 << 20
MANIFEST, DATABASE, CASES, _END = b"M", b"D", b"C", b"E"
_ORDER = (MANIFEST, DATABASE, CASES, _END)
FEWEST_KEY_CHARACTERS = 12
_SCRYPT_COST = 1 << 15
"""32 MiB and a tenth of a second for each attempt to guess a key."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup contains, and of which database it is."""

    backup_id: str
    made_at: str
    """ISO 8601, UTC."""
    dtrag: str
    postgres: str
    """Version of the server, such as 18.4."""
    dump_major: int
    """Major version of the programs that wrote the dump."""
    migrations: Sequence[str]
    """Those that the schema has had, in order."""
    identity: str
    """Of the cluster and the database in it; "" where the user may not read it."""
    generation: int
    audit_number: int
    audit_hash: str
    """The newest line of the audit log; 0 without lines."""
    audit_first: str
    """Hash of the first line: the same in all copies of one installation. "" without lines."""
    tables: Mapping[str, int]
    """Table -> rows."""
    cases: bool = False
    """Whether the file of the case memory is in it."""

    @property
    def audit_head(self) -> ChainHead:
        """The newest line of the audit log."""
        return ChainHead(self.audit_number, bytes.fromhex(self.audit_hash))


class _Cipher(Protocol):
    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...
    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...


def _cipher(key: str, salt: bytes) -> _Cipher:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError as error:
        raise MissingExtra(feature="An encrypted backup", extra="encryption") from error
    derived = hashlib.scrypt(key.encode(), salt=salt, n=_SCRYPT_COST, r=8, p=1, maxmem=64 << 20, dklen=32)
    return ChaCha20Poly1305(derived)


def read_key(key: str | None, file: Path | None) -> str | None:
    """The key of the settings, or the first line of the file; None for no encryption. Raises `InvalidInput`."""
    if file is not None:
        try:
            key = (file.read_text("utf-8").splitlines() or [""])[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The key file {file} of DTRAG_BACKUP_KEY_FILE cannot be read as text.") from error
    if key is not None and len(key) < FEWEST_KEY_CHARACTERS:
        raise InvalidInput(
            f"The key for backups has fewer than {FEWEST_KEY_CHARACTERS} characters. "
            "Make one with: openssl rand -hex 32"
        )
    return key


@contextlib.contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """A file that appears under its name when the block has ended, durable and complete, or not at all.

    Only its owner can read it. Raises `InvalidInput` for a file that exists, unless `force`, and `StorageFull`.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        if path.exists() and not force:
            raise InvalidInput(f"{path} exists. Choose another name, or overwrite it with --force.")
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidInput(f"Another process is writing {path}. Wait for it.") from None
            try:
                file.truncate()
                yield file
                file.flush()
                os.fsync(descriptor)
                if not force:
                    os.link(partial, path)  # refuses a name that appeared in the meantime
                else:
                    partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
        sync_folder(path.parent)
    except FileExistsError as error:
        raise InvalidInput(f"{path} exists. Choose another name, or overwrite it with --force.") from error
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(f"The disk of {path} is full. Nothing is left of the file; free some space.") from error
        if isinstance(error, TimeoutError) or error.strerror is None:  # of what is written into it
            raise
        raise InvalidInput(f"{path} cannot be written: {error.strerror}. Choose another name.") from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class BackupWriter:
    """Writes the records of a new backup: `write` for each piece of each part in their order, then `finish`."""

    def __init__(self, file: IO[bytes], key: str | None) -> None:
        self.backup_id = str(uuid.uuid4())
        self._file = file
        salt = secrets.token_bytes(16) if key is not None else None
        self._cipher = _cipher(key, salt) if key is not None and salt is not None else None
        header = {"id": self.backup_id, "salt": salt and salt.hex()}
        lines = _TITLE + f"{FORMAT}\n{json.dumps(header)}\n".encode()
        self._digest = hashlib.sha256(lines).digest()
        self._number = 0
        file.write(lines + self._digest)

    def write(self, part: bytes, data: bytes) -> None:
        """Write a piece of at most 1 MiB."""
        head = _HEAD.pack(part, self._number, len(data) + (16 if self._cipher else 0))
        payload = self._cipher.encrypt(_nonce(self._number), data, head) if self._cipher else data
        self._digest = hashlib.sha256(self._digest + head + payload).digest()
        self._number += 1
        self._file.write(head + payload + self._digest)

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the first record."""
        self.write(MANIFEST, json.dumps(asdict(manifest)).encode())

    def finish(self) -> None:
        """Write the last record."""
        self.write(_END, b"")


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")


@dataclass(slots=True)
class BackupFile:
    """A backup that was read and checked to its end."""

    path: Path
    key: str | None = field(repr=False)
    manifest: Manifest
    size: int

    @classmethod
    def open(cls, path: Path, key: str | None, on_progress: Callable[[int, int], None] | None = None) -> BackupFile:
        """Read and check the whole file. Raises `BackupRefused` with the reason, and `InvalidInput`."""
        manifest, size = None, _size(path)
        done = 0
        for part, data in _records(path, key):
            if part == MANIFEST:
                manifest = _manifest(path, data)
            done += len(data)
            if on_progress is not None:
                on_progress(done, size)
        assert manifest is not None  # noqa: S101 - the first record, or `_records` raises
        return cls(path, key, manifest, size)

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """The pieces of a part, checked again."""
        return (data for each, data in _records(self.path, self.key) if each == part)


def _size(path: Path) -> int:
    try:
        if not path.is_file():
            raise InvalidInput(f"There is no file {path}.")
        return path.stat().st_size
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error


def _manifest(path: Path, data: bytes) -> Manifest:
    try:
        return Manifest(**json.loads(data))
    except (TypeError, ValueError):
        raise BackupRefused(file=path, reason="its manifest has other fields than this version knows.") from None


def _records(path: Path, key: str | None) -> Iterator[tuple[bytes, bytes]]:
    """Part and data of each record, in order. Raises `BackupRefused`."""

    def refused(reason: str) -> BackupRefused:
        return BackupRefused(file=path, reason=reason)

    def read(length: int) -> bytes:
        data = file.read(length)
        if len(data) < length:
            raise refused(f"it is cut off: it ends at byte {file.tell():,}, before its last record.")
        return data

    with path.open("rb") as file:
        header, digest = _header(file, refused)
        if read(len(digest)) != digest:
            raise refused("its header is damaged: the checksum differs.")
        cipher = _cipher_of(header, key, refused)
        number, position = 0, 0
        while True:
            start = file.tell()
            head = read(_HEAD.size)
            part, numbered, length = _HEAD.unpack(head)
            if part not in _ORDER or length > MOST_PAYLOAD:
                raise refused(f"it is damaged at byte {start:,}: no record begins there.")
            payload = read(length)
            if numbered != number:
                raise refused(f"its parts are in another order: record {numbered} is where {number} belongs.")
            digest = hashlib.sha256(digest + head + payload).digest()
            if read(len(digest)) != digest:
                raise refused(f"it is damaged between bytes {start:,} and {file.tell():,}: the checksum differs.")
            if _ORDER.index(part) < position or (number == 0) != (part == MANIFEST):
                raise refused("its parts are in another order than a backup has them.")
            data = payload if cipher is None else _decrypted(cipher, number, payload, head, refused)
            if part == _END:
                if file.read(1):
                    raise refused(f"there is more behind its end, at byte {file.tell() - 1:,}.")
                return
            yield part, data
            number, position = number + 1, _ORDER.index(part)


def _header(file: IO[bytes], refused: Callable[[str], BackupRefused]) -> tuple[Mapping[str, Any], bytes]:
    title, line = file.readline(_MOST_HEADER), b""
    if not title:
        raise refused("it is empty.")
    version = title.removeprefix(_TITLE).strip()
    if not title.startswith(_TITLE) or not version.isdigit():
        raise refused("it is not a backup of dtrag, which `dtrag backup FILE` makes.")
    if int(version) > FORMAT:
        raise refused(f"its format is {int(version)}, later than {FORMAT} of this version. Update dtrag.")
    if int(version) < FORMAT:
        raise refused(f"its format is {int(version)}, earlier than {FORMAT}, which this version does not read.")
    line = file.readline(_MOST_HEADER)
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or not line.endswith(b"\n") or header.keys() != {"id", "salt"}:
        raise refused("its header is cut off or damaged.")
    return header, hashlib.sha256(title + line).digest()


def _cipher_of(header: Mapping[str, Any], key: str | None, refused: Callable[[str], BackupRefused]) -> _Cipher | None:
    if header["salt"] is None:
        return None
    if key is None:
        raise refused("it is encrypted. Give its key with DTRAG_BACKUP_KEY_FILE or DTRAG_BACKUP_KEY.")
    return _cipher(key, bytes.fromhex(header["salt"]))


def _decrypted(
    cipher: _Cipher, number: int, payload: bytes, head: bytes, refused: Callable[[str], BackupRefused]
) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(_nonce(number), payload, head)
    except InvalidTag:
        raise refused(
            "it was encrypted with another key."
            if number == 0
            else f"record {number} was not written with the key of the others."
        ) from None
