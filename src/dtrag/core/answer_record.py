"""What is kept of an answer beside its trace, so that the question can be answered again and the answers compared.

It holds ids, spans, hashes, dates, versions, scores and names of settings, never a text. The line of the audit log
about the answer has its digest.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dtrag.core.response import plain

FORMAT = 1


@dataclass(frozen=True, slots=True)
class TextKey:
    """The key of the hashes of what callers write: without it, a question cannot be guessed from its hash."""

    secret: bytes

    @classmethod
    def derived(cls, seed: bytes) -> TextKey:
        """From the secret of an installation, which has another use, too."""
        return cls(hmac.digest(seed, b"dtrag texts of callers", "sha256"))

    @property
    def id(self) -> str:
        """Tells keys apart: 16 hexadecimal digits."""
        return hashlib.sha256(self.secret).hexdigest()[:16]

    def hash(self, text: str) -> str:
        """HMAC-SHA-256 of the text, whose white space does not count, in hexadecimal digits."""
        return hmac.digest(self.secret, " ".join(text.split()).encode("utf-8", "replace"), "sha256").hex()

    def hash_of_filters(self, filters: Mapping[str, Any]) -> str:
        """The same of filters; "" for none."""
        return self.hash(canonical(plain(filters)).decode()) if filters else ""


def content_hash(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def canonical(values: object) -> bytes:
    """JSON values as bytes that are the same wherever they are written: UTF-8, sorted keys, no white space."""
    return json.dumps(values, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class RecordedPassage:
    """A passage that the answer used. `text` is its hash, `node_id` its category, `score` is in [0, 1]."""

    chunk_id: str
    text: str
    score: float
    node_id: int | None
    indexed_at: str
    effective_from: str = ""
    superseded_from: str = ""

    @property
    def document_id(self) -> str:
        """Its document."""
        return self.chunk_id.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class RecordedQuote:
    """A citation: `[start, end)` in code points of the document's text; `quote` is the hash of that text."""

    number: int
    chunk_id: str
    start: int
    end: int
    quote: str

    @property
    def document_id(self) -> str:
        """Its document."""
        return self.chunk_id.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a language model; `prompt` is the hash of what it was sent, without the random delimiters."""

    step: str
    model: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """One answer.

    `salt` is random: the digest reveals nothing of what a reader of it cannot see. `question`, `standalone` (the
    follow-up question as it was searched, "" for other questions) and `filters` (those other than categories) are
    keyed hashes, by the key with the id `key_id` ("" without one). `earlier` counts the messages before the question.
    `nodes` are the searched categories as ranges of ids, None for the whole tree; `day` is that of the searched texts.
    `options` can be set again for another answer, `settings` are those of the whole service. `reasons` are the codes
    of the statements. `words` is a hash of how often the words of the question occur in the `searched` passages.
    `cases` are those of the case memory; `weighted`: the weights of the search were chosen for this question.
    """

    trace_id: uuid.UUID
    created_at: datetime
    salt: str
    key_id: str = ""
    question: str = ""
    standalone: str = ""
    filters: str = ""
    earlier: int = 0
    day: str = ""
    nodes: tuple[tuple[int, int], ...] | None = None
    tree: str = ""
    options: Mapping[str, Any]
    settings: Mapping[str, str]
    text: str = ""
    decision: str = ""
    confidence: float = 0.0
    answer_confidence: float | None = None
    reasons: tuple[str, ...] = ()
    model: str = ""
    passages: tuple[RecordedPassage, ...] = ()
    quotes: tuple[RecordedQuote, ...] = ()
    calls: tuple[RecordedCall, ...] = ()
    searched: int = 0
    words: str = ""
    degraded: tuple[str, ...] = ()
    unfinished: bool = False
    vectors_pending: bool = False
    tools: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    weighted: bool = False
    format: int = FORMAT

    @property
    def document_ids(self) -> tuple[str, ...]:
        """The documents of the passages, each once."""
        return tuple(dict.fromkeys(passage.document_id for passage in self.passages))

    def as_dict(self) -> dict[str, Any]:
        """With values that JSON can store."""
        values: dict[str, Any] = plain(self)
        return values

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> AnswerRecord:
        """The inverse of `as_dict`."""
        lists = {name: tuple(row[name]) for name in ("reasons", "degraded", "tools", "cases")}
        parts = {
            "trace_id": uuid.UUID(row["trace_id"]),
            "created_at": datetime.fromisoformat(row["created_at"]),
            "nodes": None if row["nodes"] is None else tuple((first, last) for first, last in row["nodes"]),
            "passages": tuple(RecordedPassage(**each) for each in row["passages"]),
            "quotes": tuple(RecordedQuote(**each) for each in row["quotes"]),
            "calls": tuple(RecordedCall(**each) for each in row["calls"]),
        }
        return cls(**{**row, **lists, **parts})

    def digest(self) -> str:
        """SHA-256 of all of it, in hexadecimal digits: what the audit log has."""
        return hashlib.sha256(canonical(self.as_dict())).hexdigest()

    def scope_nodes(self) -> frozenset[int] | None:
        """The searched categories; None for the whole tree."""
        if self.nodes is None:
            return None
        return frozenset(node for first, last in self.nodes for node in range(first, last + 1))


def ranges(nodes: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The numbers as ranges with both ends, ascending: (1, 3), (7, 7)."""
    joined: list[tuple[int, int]] = []
    for node in sorted(nodes):
        if joined and joined[-1][1] == node - 1:
            joined[-1] = joined[-1][0], node
        else:
            joined.append((node, node))
    return tuple(joined)
