"""A bundle: one answer with its evidence as JSON that proves, by a signature, who gave it and that it is unchanged.

`{"payload": {…}, "public_key": "…", "signature": "…"}`. The signature covers the canonical bytes of the payload, which
holds the format and the public key. Reading is strict: there is one way to write a bundle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dtrag.core.answer_record import AnswerRecord, canonical, content_hash
from dtrag.core.response import response
from dtrag.errors import BundleRefused

FORMAT = "dtrag-answer/1"
MOST_BYTES = 4 << 20
DEEPEST = 12
"""Levels of lists and objects; a bundle has five."""
SIGNED_FOR = b"dtrag answer bundle\n"
"""Before the signed bytes, so that a signature for another purpose is none of a bundle."""
_PAYLOAD: Mapping[str, type | tuple[type, ...]] = {
    "format": str,
    "public_key": str,
    "exported_at": str,
    "trace_id": str,
    "answered_at": str,
    "question": (str, type(None)),
    "answer": (str, type(None)),
    "answer_hash": str,
    "citations": list,
    "passages": list,
    "day": str,
    "tree": str,
    "scope_hash": str,
    "decision": str,
    "confidence": float,
    "answer_confidence": (float, type(None)),
    "reasons": list,
    "model": str,
    "calls": list,
    "record_hash": str,
    "audit": (dict, type(None)),
    "left_out": list,
}
_CITATION: Mapping[str, type | tuple[type, ...]] = {
    "number": int,
    "chunk_id": str,
    "start": int,
    "end": int,
    "hash": str,
    "quote": (str, type(None)),
    "document_hash": (str, type(None)),
}
_CITED: Mapping[str, type | tuple[type, ...]] = {
    "chunk_id": str,
    "hash": str,
    "indexed_at": str,
    "effective_from": str,
    "superseded_from": str,
}


@dataclass(frozen=True, slots=True)
class BundleEvidence:
    """Of an answer, for a bundle. Both by number of citation; None where it is not that of then, or may not be seen.

    `documents`: hashes of whole documents. `whole`: the answer may be part of it, too, which rests on all its passages.
    """

    quotes: Mapping[int, str | None]
    documents: Mapping[int, str | None]
    whole: bool


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle of an answer."""

    __pydantic_config__ = response("AnswerBundle")

    payload: dict[str, Any]
    """The answer with its evidence: what is signed."""
    signature: str
    """Ed25519 signature of the payload, in hexadecimal digits."""

    def written(self) -> bytes:
        """The file."""
        return canonical({"payload": self.payload, "signature": self.signature}) + b"\n"


def payload_of(
    record: AnswerRecord,
    evidence: BundleEvidence,
    *,
    question: str,
    answer: str,
    audit: Mapping[str, Any] | None,
    at: datetime,
) -> dict[str, Any]:
    """What is signed, without the key; `question` and `answer` are "" where they are not known."""
    answer = answer if evidence.whole else ""
    texts: dict[str, object] = {"question": question, "answer": answer, "audit": audit}
    texts |= {f"citation {number}": quote for number, quote in evidence.quotes.items()}
    texts |= {f"document hash of citation {number}": each for number, each in evidence.documents.items()}
    return {
        "format": FORMAT,
        "exported_at": at.isoformat(),
        "trace_id": str(record.trace_id),
        "answered_at": record.created_at.isoformat(),
        "question": question or None,
        "answer": answer or None,
        "answer_hash": record.text,
        "citations": [
            {
                "number": quote.number,
                "chunk_id": quote.chunk_id,
                "start": quote.start,
                "end": quote.end,
                "hash": quote.quote,
                "quote": evidence.quotes[quote.number],
                "document_hash": evidence.documents[quote.number],
            }
            for quote in record.quotes
        ],
        "passages": [
            {
                "chunk_id": passage.chunk_id,
                "hash": passage.text,
                "indexed_at": passage.indexed_at,
                "effective_from": passage.effective_from,
                "superseded_from": passage.superseded_from,
            }
            for passage in record.passages
        ],
        "day": record.day,
        "tree": record.tree,
        "scope_hash": content_hash(f"{record.salt} {record.nodes}"),
        "decision": record.decision,
        "confidence": float(record.confidence),
        "answer_confidence": None if record.answer_confidence is None else float(record.answer_confidence),
        "reasons": list(record.reasons),
        "model": record.model,
        "calls": [{"step": call.step, "model": call.model, "prompt": call.prompt} for call in record.calls],
        "record_hash": record.digest(),
        "audit": audit,
        "left_out": [name for name, text in texts.items() if not text],
    }


def signed_bytes(payload: Mapping[str, Any]) -> bytes:
    """What the signature covers."""
    return SIGNED_FOR + canonical(payload)


def read_bundle(data: bytes) -> Bundle:
    """The bundle in a file, whose signature is not checked. Raises `BundleRefused`."""
    if len(data) > MOST_BYTES:
        raise BundleRefused(reason=f"it has more than {MOST_BYTES >> 20} MiB.")
    try:
        if data.count(b"[") + data.count(b"{") > 100_000:
            raise ValueError
        values = json.loads(data.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refused_constant)
    except BundleRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise BundleRefused(reason="it is not one JSON object in UTF-8 and nothing behind it.") from error
    if not isinstance(values, dict) or values.keys() != {"payload", "signature"}:
        raise BundleRefused(reason="it does not have a payload and a signature, and nothing else.")
    bundle = Bundle(values["payload"], values["signature"])
    if not isinstance(bundle.signature, str):
        raise BundleRefused(reason="its signature is no text.")
    if not isinstance(bundle.payload, dict) or bundle.payload.get("format") != FORMAT:
        raise BundleRefused(reason=f"its format is not {FORMAT}, the only one that this version reads.")
    _check_fields("the payload", bundle.payload, _PAYLOAD)
    for name, fields in (("citations", _CITATION), ("passages", _CITED)):
        for each in bundle.payload[name]:
            _check_fields(f"one of the {name}", each, fields)
    if bundle.written() != data:
        raise BundleRefused(reason="it is not written as dtrag writes it: its bytes were changed.")
    return bundle


def check_contents(payload: Mapping[str, Any]) -> None:
    """Compare texts with their hashes, and the numbers in the answer with the citations. Raises `BundleRefused`."""
    answer = payload["answer"]
    if answer is not None and content_hash(answer) != payload["answer_hash"]:
        raise BundleRefused(reason="the answer is not that of its hash.")
    for number, citation in enumerate(payload["citations"], start=1):
        quote = citation["quote"]
        if citation["number"] != number:
            raise BundleRefused(reason=f"citation {number} is missing, or not in its place.")
        if quote is not None and content_hash(quote) != citation["hash"]:
            raise BundleRefused(reason=f"the quotation of citation {number} is not that of its hash.")
        if quote is not None and len(quote) != citation["end"] - citation["start"]:
            raise BundleRefused(reason=f"the span of citation {number} is not that of its quotation.")
    try:
        exported, answered = (datetime.fromisoformat(payload[name]) for name in ("exported_at", "answered_at"))
        is_before = exported < answered
    except (ValueError, TypeError) as error:
        raise BundleRefused(reason="its times are no times in ISO 8601 with an offset.") from error
    if is_before:
        raise BundleRefused(reason="it was exported before the answer was given.")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise BundleRefused(reason="an object in it has a name twice.")
    return values


def _refused_constant(name: str) -> Any:
    raise BundleRefused(reason=f"it contains {name}, which is no JSON.")


def _check_fields(what: str, values: object, fields: Mapping[str, type | tuple[type, ...]]) -> None:
    if not isinstance(values, dict) or values.keys() != fields.keys():
        raise BundleRefused(reason=f"{what} does not have exactly the fields of {FORMAT}.")
    for name, kind in fields.items():
        if not isinstance(values[name], kind) or isinstance(values[name], bool):
            raise BundleRefused(reason=f"{name} of {what} has a value of another kind.")
