"""Small values for tests: documents that are ready to be written, keys, agents, traces; and an index with documents."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dtrag.core.access.api_key import Key, digest_of, new_secret, prefix_of
from dtrag.core.access.scope import PUBLISHED, Grant, Scope
from dtrag.core.agent import Agent
from dtrag.core.cases.case import Case, CitedPassage, FeedbackType, Vote, content_hash
from dtrag.core.cases.index import question_hash
from dtrag.core.documents import Chunk, IndexedDocument, ParsedDocument, Scalar, document_id
from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.core.manifest import manifest_from_category
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.analysis import Analyzer, language
from dtrag.core.trace import Trace
from dtrag.ingestion.analysis import analyse, fingerprint
from dtrag.ingestion.vectors import VectorFiller
from dtrag.ports import Stores
from dtrag.testing import HashEmbedder

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
"""The time at which things happen in tests, unless they say otherwise."""
MINUTE = timedelta(minutes=1)
NOTHING = Scope(frozenset())
EMBEDDER = HashEmbedder()
KETTLE, BOILER, LEAVE, SALARY = (
    document_id(uri) for uri in ("test:kettle", "test:boiler", "test:leave", "test:salary")
)
"""The documents of an index that is `filled`."""


def indexed_document(
    uri: str,
    texts: Sequence[str],
    *,
    node_id: int = 1,
    title: str = "",
    source_uri: str = "",
    source_path: str = "",
    metadata: Mapping[str, Scalar] | None = None,
    passages: Sequence[Mapping[str, Scalar]] = (),
    content_type: str = "text/plain",
    analyzer: Analyzer = Analyzer(),
    replaces: bool = False,
) -> IndexedDocument:
    """A document with one passage per text, ready for `IndexWriter.write`.

    `source_uri` is the address of the file that it is a part of, by default its own; `passages` are the metadata of
    its passages.
    """
    body, chunks = "\n\n".join(texts), list[Chunk]()
    for ordinal, text in enumerate(texts):
        start = chunks[-1].end + 2 if chunks else 0
        details = passages[ordinal] if ordinal < len(passages) else {}
        chunks.append(Chunk(ordinal, start, start + len(text), text, metadata=details))
    document = ParsedDocument(title or uri, body, content_type, metadata=dict(metadata or {}))
    indexed = [analyse(document, chunk, analyzer) for chunk in chunks]
    return IndexedDocument(
        document_id=document_id(uri),
        source_id=document_id(source_uri or uri),
        source_uri=uri,
        document=document,
        node_id=node_id,
        language=language(body),
        fingerprint=fingerprint(document, analyzer),
        chunks=tuple(indexed),
        replaces=replaces,
        source_path=source_path,
    )


def chunk_id(document: uuid.UUID, ordinal: int = 0) -> str:
    """The id of a passage in results."""
    return f"{document}:{ordinal}"


def api_key(name: str, *, at: datetime = NOON, grant: Grant | None = None, days: int | None = None) -> Key:
    """A reader's key with a random secret; `days` until it expires."""
    secret = new_secret()
    expires_at = at + timedelta(days=days) if days is not None else None
    return Key(
        uuid.uuid4(), name, prefix_of(secret) or "", digest_of(secret), "reader", grant, 60, at, expires_at=expires_at
    )


def agent(name: str, *, at: datetime = NOON, grant: Grant = Grant(()), version: str = "1.0.0") -> Agent:
    """An agent on the branch `Handbook` of the tree."""
    manifest = manifest_from_category(version, [["Handbook"]], name=name)
    return Agent(uuid.uuid4(), 1, manifest, grant, "tests", at, at)


def evaluation_run(*, at: datetime = NOON, dataset: str = "handbook") -> EvaluationRun:
    """A run with two questions."""
    rows = (
        RunRow("1", "How many days?", {"contained": (1.0, 1.0)}, {"answer": "26 days", "reasons": []}),
        RunRow("2", "휴학은?", {"contained": (0.0, 1.0)}),
    )
    return EvaluationRun("answers", dataset, "0.1.0", {"embedder": "none"}, rows, uuid.uuid4(), at)


def trace(*, at: datetime = NOON, owner: str = "", question: str = "How many days?") -> Trace:
    """A run without steps."""
    return Trace(
        trace_id=uuid.uuid4(),
        created_at=at,
        owner=owner,
        question=question,
        answer="26 days.",
        decision="answer",
        confidence=0.9,
        taxonomy_version="1.0.0",
        seconds=0.5,
        degraded=(),
        document_ids=(),
        steps=(),
        calls=(),
    )


def case(
    case_id: str,
    query: str = "How many days of annual leave are there?",
    path: Sequence[str] = ("Handbook",),
    *,
    node_id: int | None = None,
    passages: Sequence[str] = (),
    at: datetime = NOON,
    **values: Any,
) -> Case:
    """A case by hand; `passages` are ids of passages, whose text is their id."""
    values.setdefault("asked_in", PUBLISHED)
    return Case(
        case_id=case_id,
        query=query,
        category_path=tuple(path),
        content="See the handbook.",
        created_at=at,
        updated_at=at,
        query_hash=question_hash(query),
        node_id=node_id,
        passages=tuple(CitedPassage(key, content_hash(key)) for key in passages),
        **values,
    )


def vote(
    case_id: str,
    feedback: FeedbackType = FeedbackType.THUMBS_UP,
    *,
    log_id: str = "log",
    voter: str = "",
    success: bool = True,
    at: datetime = NOON,
) -> Vote:
    """A vote on a case."""
    return Vote(log_id=log_id, case_id=case_id, feedback=feedback, success=success, voter=voter, at=at)


async def filled(stores: Stores) -> tuple[Taxonomy, Scope, Scope]:
    """Two documents in each of the branches AI/Machines and HR; returns the tree and the scopes of both branches."""
    paths = [CategoryPath.parse("AI/Machines"), CategoryPath.parse("HR")]
    taxonomy = await stores.writer.ensure_paths(paths)
    machines, staff = (taxonomy.find(path) for path in paths)
    assert machines is not None
    assert staff is not None
    await stores.writer.write(
        [
            indexed_document(
                "test:kettle",
                ["The kettle has a valve.", "Fill the kettle with water."],
                node_id=machines,
                title="Kettle manual",
                metadata={"kind": "manual", "author": "Kim"},
            ),
            indexed_document(
                "test:boiler",
                ["A boiler has a valve and a second valve."],
                node_id=machines,
                content_type="text/markdown",
            ),
            indexed_document("test:leave", ["Leave is granted in summer."], node_id=staff),
            indexed_document("test:salary", ["The salary office has a safety valve."], node_id=staff),
        ]
    )
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    return taxonomy, Scope(frozenset({machines})), Scope(frozenset({staff}))


def branch_nodes(scope: Scope) -> list[int]:
    """The nodes of a scope that is not the whole tree."""
    assert scope.nodes is not None
    return sorted(scope.nodes)
