"""Entries of the audit log, their canonical bytes, the hash chain that reveals changes, and reported deletions."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypedDict, get_args

from dtrag.core.access.scope import AnchorRow
from dtrag.core.documents import uuid_or_none
from dtrag.core.response import TEXT, Moment, Written, response
from dtrag.errors import InvalidInput

Decision = Literal["allowed", "denied", "done"]
DECISIONS: tuple[str, ...] = get_args(Decision)
MAX_TEXT = 400
"""Longest string in an entry, in characters. Names, ids and reasons are shorter; documents are longer."""
MAX_SUBJECTS = 1_000
"""Most ids in one entry: as many as a search can return passages."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Content of one line: who did what, in which scope, on which ids, and with which decision.

    `scope` None is the whole tree. `at` has a time zone, and microseconds at most.
    """

    at: datetime
    actor: str
    action: str
    scope: Sequence[Any] | None
    subjects: Sequence[str]
    decision: Decision
    details: Mapping[str, Any]

    def values(self) -> dict[str, Any]:
        """Its fields by name."""
        return {declared.name: getattr(self, declared.name) for declared in fields(self)}


class AuditOptions(TypedDict):
    """The keyword arguments of a `Recorder`: those of `AuditEntry`, with the branches of the scope."""

    scope: list[AnchorRow] | None
    subjects: Sequence[str]
    decision: Decision
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChainHead:
    """Number (from 1; 0: the log is empty) and hash (32 bytes) of the newest line."""

    number: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.number}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> ChainHead:
        """From `NUMBER:HASH`. Raises `InvalidInput`."""
        number, _, digest = text.strip().partition(":")
        try:
            head = cls(int(number), bytes.fromhex(digest))
        except ValueError:
            head = cls(-1, b"")
        if head.number < 0 or len(head.hash) != len(START.hash):
            raise InvalidInput(
                f"{text[:80]!r} is not a head of the log: give NUMBER:HASH as `dtrag audit verify` prints it."
            )
        return head


START = ChainHead(0, bytes(32))


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A stored line."""

    number: int
    entry: AuditEntry
    previous: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the audit log."""

    __pydantic_config__ = response()

    number: int
    """Counts from 1 without gaps."""
    at: Moment
    """When, in ISO 8601 and UTC."""
    actor: str
    """Name of the key, `local` or `anonymous`."""
    action: str
    """Method and route, or the operation."""
    scope: Sequence[Any] | None
    """Branches the caller may see; null for the whole tree."""
    subjects: Sequence[str]
    """Ids of the objects of the request or the response."""
    decision: Decision
    """allowed, denied or done."""
    details: Mapping[str, Any]
    """Status, request id and the like; never content."""
    hash: str
    """SHA-256 of the previous hash and the line, in hexadecimal digits."""

    @classmethod
    def of(cls, row: AuditRow) -> AuditLine:
        """From the stored line."""
        return cls(row.number, **row.entry.values(), hash=row.hash.hex())


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which lines are read; None does not restrict.

    Numbers below `before`, times from `since` on and before `until`, actions that contain `action` in any case, and
    lines about the object with the id `subject`.
    """

    before: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    actor: str | None = None
    action: str | None = None
    decision: Decision | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """The result of a check of the audit log."""

    __pydantic_config__ = response("VerdictShape")

    ok: bool
    """Whether no line was changed, removed or added by hand."""
    lines: int = field(init=False, default=0)
    """Number of lines that are proved to be unchanged."""
    head: Annotated[ChainHead, Written(str, TEXT)]
    """Number and hash of the last of them: store it elsewhere, and send it as `expect`."""
    first_bad: int | None = None
    """The first damaged line; null if there is none."""
    reason: str = ""
    """What is wrong; empty if nothing is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", self.head.number)


def plain(value: Any) -> Any:
    """The value in a form that any database returns unchanged: no floats, no characters that it cannot store.

    A float becomes its shortest decimal string, because databases and languages format floats differently.
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [plain(item) for item in items]
    text = value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")[:MAX_TEXT]


def settled(entry: AuditEntry) -> AuditEntry:
    """The entry as it is stored and hashed. Raises `InvalidInput` for an unknown decision."""
    if entry.decision not in DECISIONS:
        raise InvalidInput(f"Unknown decision {entry.decision!r}. Decisions: {', '.join(DECISIONS)}.")
    return AuditEntry(
        entry.at.astimezone(UTC),
        plain(entry.actor),
        plain(entry.action),
        None if entry.scope is None else plain(list(entry.scope)),
        plain(list(entry.subjects)[:MAX_SUBJECTS]),
        entry.decision,
        plain(entry.details),
    )


def content(number: int, entry: AuditEntry) -> bytes:
    """Canonical bytes of a settled entry with its number: JSON in UTF-8, sorted keys, no whitespace."""
    at = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    values = {**entry.values(), "number": number, "at": at}
    return json.dumps(values, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def link(previous: bytes, number: int, entry: AuditEntry) -> bytes:
    """Hash of a line: SHA-256 of the previous hash and the content."""
    return hashlib.sha256(previous + content(number, entry)).digest()


def chained(entries: Iterable[AuditEntry], head: ChainHead) -> list[AuditRow]:
    """The entries as lines that follow `head`."""
    rows: list[AuditRow] = []
    for entry in map(settled, entries):
        number = head.number + 1
        rows.append(AuditRow(number, entry, head.hash, link(head.hash, number, entry)))
        head = ChainHead(number, rows[-1].hash)
    return rows


def verify(rows: Iterable[AuditRow], after: ChainHead = START) -> ChainVerdict:
    """Verify that the rows, ordered by number, are the lines that were written after `after`."""
    head = after
    for row in rows:
        if row.number != head.number + 1:
            return ChainVerdict(False, head, head.number + 1, f"line {head.number + 1} is missing")
        if row.previous != head.hash:
            return ChainVerdict(False, head, row.number, f"line {row.number} does not follow the line before it")
        if link(row.previous, row.number, row.entry) != row.hash:
            return ChainVerdict(False, head, row.number, f"line {row.number} is not what was written")
        head = ChainHead(row.number, row.hash)
    return ChainVerdict(True, head)


OF_DOCUMENTS = (
    "documents.delete",
    "documents.prune",
    "documents.prune_editions",
    "DELETE /documents/{document_id:path}",
)
OF_KEYS = ("keys.revoke",)
ACTIONS = (*OF_DOCUMENTS, *OF_KEYS)
"""Actions of the audit log whose subjects are deleted documents or revoked keys."""


@dataclass(frozen=True, slots=True)
class Deletions:
    """Ids of deleted documents and of revoked keys."""

    documents: frozenset[uuid.UUID] = frozenset()
    keys: frozenset[uuid.UUID] = frozenset()

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, Any]]) -> Deletions:
        """From lines of the audit log: their `action`, `subjects` and, if they have it, `decision`."""
        documents: set[uuid.UUID] = set()
        keys: set[uuid.UUID] = set()
        for line in lines:
            if line["action"] in ACTIONS and line.get("decision", "done") == "done":
                ids = {key for subject in line["subjects"] if (key := uuid_or_none(subject)) is not None}
                (keys if line["action"] in OF_KEYS else documents).update(ids)
        return cls(frozenset(documents), frozenset(keys))

    def __or__(self, other: Deletions) -> Deletions:
        return Deletions(self.documents | other.documents, self.keys | other.keys)


def read_lines(text: Iterable[str], after: ChainHead) -> Deletions:
    """Of the lines behind `after` in an exported audit log, JSON lines as `dtrag export` writes them.

    Raises `InvalidInput` for other lines, and for the log of another database.
    """
    later: list[dict[str, Any]] = []
    for number, written in enumerate(text, 1):
        try:
            line = json.loads(written)
            position, digest, _, _ = line["number"], bytes.fromhex(line["hash"]), line["action"], line["subjects"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"Line {number} of the deletions is not a line of the audit log. `dtrag export` writes audit.jsonl."
            ) from error
        if position == after.number and digest != after.hash:
            raise InvalidInput(
                f"The deletions are of another database: line {position} of their audit log is not that of the backup."
            )
        if position > after.number:
            later.append(line)
    return Deletions.of(later)
