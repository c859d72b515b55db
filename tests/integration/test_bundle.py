"""Signed files of answers: whole ones are verified, changed ones are refused."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.answer_key import FILE, answer_seed
from dtrag.adapters.answer_signature import public_key, signed, verified
from dtrag.app import App
from dtrag.core.answer_bundle import MOST_BYTES, Bundle
from dtrag.core.answer_record import canonical, content_hash
from dtrag.errors import BundleRefused, InvalidInput
from dtrag.settings import Settings
from tests.rounds import seeds

SEED, OTHER = bytes(range(32)), bytes(range(1, 33))
QUESTION = "What does the kettle have?"


async def bundle_of(app: App, folder: Path, **options: Any) -> Bundle:
    """Of an answer whose line is in the audit log."""
    (folder / "kettle.md").write_text("# The kettle\n\nThe kettle has a valve. It stands in the hall.", "utf-8")
    await app.ingest([folder / "kettle.md"], "Home")
    answer = await app.ask(QUESTION)
    await app.audit.record(
        "kim", "ask", scope=None, subjects=answer.audited_ids, decision="allowed", details=answer.audited_details
    )
    return await app.replays.bundle(answer.trace_id, **options)


async def test_a_bundle_holds_the_answer_and_is_verified_without_a_database(app: App, tmp_path: Path) -> None:
    bundle = await bundle_of(app, tmp_path, question=QUESTION)
    payload = verified(bundle.written(), public_key(answer_seed(app.settings))).payload
    assert payload["question"] == QUESTION
    assert "The kettle has a valve." in payload["answer"]
    assert payload["citations"][0]["quote"] in payload["answer"]
    assert payload["left_out"] == []
    cited = payload["citations"][0]
    text = (await app.texts.part(cited["chunk_id"].partition(":")[0])).text
    assert cited["document_hash"] == content_hash(text)
    assert text[cited["start"] : cited["end"]] == cited["quote"]
    [line] = [line for line in await app.audit.newest() if line.number == payload["audit"]["number"]]
    assert line.entry.details["record"] == payload["record_hash"]
    assert (app.settings.data_dir / FILE).stat().st_mode & 0o777 == 0o600
    file = tmp_path / "answer.json"
    file.write_bytes(bundle.written())
    verify = [
        str(Path(sys.executable).with_name("dtrag")),
        "--database-url",
        "postgresql://nowhere.invalid/x",
        "verify",
        str(file),
    ]
    run = subprocess.run(verify, capture_output=True, text=True, check=False)  # noqa: ASYNC221
    assert (run.returncode, "The bundle is unchanged." in run.stdout) == (0, True), run.stderr


async def test_texts_that_are_not_kept_are_left_out_and_named(app: App, tmp_path: Path) -> None:
    bundle = await bundle_of(app, tmp_path)
    assert bundle.payload["left_out"] == ["question", "answer"]
    trace_id = bundle.payload["trace_id"]
    document_id = bundle.payload["passages"][0]["chunk_id"].partition(":")[0]
    await app.delete_document(document_id)
    bundle = await app.replays.bundle(trace_id, question=QUESTION)
    assert bundle.payload["left_out"] == ["answer", "citation 1", "document hash of citation 1"]
    assert "valve" not in bundle.written().decode()
    verified(bundle.written())


Forgery = Callable[[dict[str, Any], random.Random], bytes]


def written(values: object) -> bytes:
    return canonical(values) + b"\n"


def signed_again(values: dict[str, Any], seed: bytes = OTHER) -> bytes:
    return signed(values["payload"], seed).written()


def _text(values: dict[str, Any], chance: random.Random) -> bytes:
    values["payload"][chance.choice(["question", "answer", "decision"])] += chance.choice("abc ")
    return written(values)


def _span(values: dict[str, Any], chance: random.Random) -> bytes:
    values["payload"]["citations"][0][chance.choice(["start", "end"])] += chance.randint(1, 9)
    return written(values)


def _hash(values: dict[str, Any], chance: random.Random) -> bytes:
    citation, passage = values["payload"]["citations"][0], values["payload"]["passages"][0]
    where, name = chance.choice([(citation, "hash"), (citation, "document_hash"), (passage, "hash")])
    where[name] = f"{chance.getrandbits(256):064x}"
    return written(values)


def _order(values: dict[str, Any], chance: random.Random) -> bytes:
    values["payload"]["citations"].reverse()
    return written(values)


def _key(values: dict[str, Any], chance: random.Random) -> bytes:
    return signed_again(values, chance.randbytes(32))


def _signature(values: dict[str, Any], chance: random.Random) -> bytes:
    at = chance.randrange(128)
    digit = chance.choice(sorted(set("0123456789abcdef") - {values["signature"][at]}))
    values["signature"] = values["signature"][:at] + digit + values["signature"][at + 1 :]
    return written(values)


def _time(values: dict[str, Any], chance: random.Random) -> bytes:
    values["payload"][chance.choice(["answered_at", "exported_at"])] = (
        f"20{chance.randint(10, 20)}-01-01T00:00:00+00:00"
    )
    return written(values)


def _removed(values: dict[str, Any], chance: random.Random) -> bytes:
    del values["payload"]["citations"][chance.randrange(len(values["payload"]["citations"]))]
    return written(values)


def _tree(values: dict[str, Any], chance: random.Random) -> bytes:
    values["payload"]["tree"] = f"{chance.randint(2, 99)}.0.0"
    return written(values)


def _downgraded(values: dict[str, Any], chance: random.Random) -> bytes:
    values["payload"]["format"] = f"dtrag-answer/{chance.choice(['0', '2', '1.0', ''])}"
    return signed_again(values, SEED)


FORGERIES: tuple[Forgery, ...] = (
    _text, _span, _hash, _order, _key, _signature, _time, _removed, _tree, _downgraded,
)  # fmt: skip


def genuine() -> Bundle:
    quotes = ("The kettle has a valve.", "It stands in the hall.")
    answer = f"{quotes[0]} [1]\n{quotes[1]} [2]"
    return signed(
        {
            "format": "dtrag-answer/1",
            "exported_at": "2026-02-01T00:00:00+00:00",
            "trace_id": "00000000-0000-0000-0000-000000000001",
            "answered_at": "2026-01-01T00:00:00+00:00",
            "question": QUESTION,
            "answer": answer,
            "answer_hash": content_hash(answer),
            "citations": [
                {"number": n, "chunk_id": "x:0", "start": 0, "end": len(q), "hash": content_hash(q), "quote": q}
                | {"document_hash": "0" * 64}
                for n, q in enumerate(quotes, 1)
            ],
            "passages": [
                {"chunk_id": "x:0", "hash": "0" * 64, "indexed_at": "", "effective_from": "", "superseded_from": ""}
            ],
            "day": "2026-01-01",
            "tree": "1.0.0",
            "scope_hash": "0" * 64,
            "decision": "answer",
            "confidence": 0.9,
            "answer_confidence": 0.8,
            "reasons": [],
            "model": "",
            "calls": [],
            "record_hash": "0" * 64,
            "audit": None,
            "left_out": ["audit"],
        },
        SEED,
    )


@pytest.mark.parametrize("forge", FORGERIES)
def test_forged_bundles_are_refused(forge: Forgery) -> None:
    whole, key = genuine().written(), public_key(SEED)
    verified(whole, key)
    for seed in seeds(5):
        forged = forge(json.loads(whole), random.Random(seed))
        assert forged != whole
        with pytest.raises(BundleRefused):
            verified(forged, key)


@pytest.mark.parametrize(
    ("forge", "named"),
    [
        (_span, "the span of citation 1"),
        (_order, "citation 1 is missing, or not in its place"),
        (_removed, r"citation \d is missing|signature"),  # of the last one only the signature tells
        (_key, "signed with another key"),
        (_tree, "its signature"),
    ],
)
def test_what_was_forged_is_named(forge: Forgery, named: str) -> None:
    forged = forge(json.loads(genuine().written()), random.Random(1))
    with pytest.raises(BundleRefused, match=named):
        verified(forged, public_key(SEED))


@pytest.mark.parametrize("times", [("yesterday", "today"), ("2026-01-01T00:00:00", "2026-02-01T00:00:00+00:00")])
def test_times_that_are_none_are_refused_also_with_a_signature(times: tuple[str, str]) -> None:
    values = json.loads(genuine().written())
    values["payload"]["answered_at"], values["payload"]["exported_at"] = times
    with pytest.raises(BundleRefused, match="its times"):
        verified(signed_again(values, SEED), public_key(SEED))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data + b" ",
        lambda data: data + data,
        lambda data: data[:-20],
        lambda data: b"",
        lambda data: b"\xff" + data,
        lambda data: b"[" * 200_000,
        lambda data: data.replace(b'"tree":', b'"tree":"2.0.0","tree":', 1),
        lambda data: data.replace(b'"confidence":0.9', b'"confidence":NaN', 1),
        lambda data: data.replace(b'"confidence":0.9', b'"confidence":0.90', 1),
        lambda data: data.replace(b'"payload":{', b'"payload":{"extra":1,', 1),
        lambda data: data.replace(b"{", b"{ ", 1),
        lambda data: data + b"x" * MOST_BYTES,
        lambda data: b'{"payload":[],"signature":""}\n',
        lambda data: data.replace(b'"citations":[{', b'"citations":[7,{', 1),
    ],
)
def test_damaged_bundles_are_refused(damage: Callable[[bytes], bytes]) -> None:
    data = damage(genuine().written())
    with pytest.raises(BundleRefused):
        verified(data)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    settings = Settings.load(environ={}, data_dir=tmp_path)
    assert answer_seed(settings) == answer_seed(settings)
    os.chmod(tmp_path / FILE, 0o644)  # noqa: PTH101
    with pytest.raises(InvalidInput, match="chmod 600"):
        answer_seed(settings)
    given = Settings.load(environ={}, data_dir=tmp_path, answer_key=SEED.hex())
    assert answer_seed(given) == SEED
    with pytest.raises(InvalidInput, match="openssl rand"):
        answer_seed(Settings.load(environ={}, data_dir=tmp_path, answer_key="x"))
