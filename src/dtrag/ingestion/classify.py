"""Classifies documents without a category, or puts them into the review queue.

A caller's text is classified by what the caller may see, and by nothing else: vocabulary, word frequencies, centroids
and the probabilities that are shared out among the categories are learned for each scope.

Three routes, the cheap ones first: the names of the categories, the documents that are there already (words always,
meanings where the embedder speaks the language), and a language model where one is configured, only for
documents that the others leave open.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cachetools import LRUCache

from dtrag import embedding_service
from dtrag.core.access.scope import EVERYTHING, Scope, Viewer
from dtrag.core.documents import Draft, IndexedDocument, ParsedDocument, Vector, document_id
from dtrag.core.ranking.segments import FREQUENCY_UNIT
from dtrag.core.statements import stated
from dtrag.core.taxonomy.centroids import FIRST_PASSAGES, Centroids, TermCounts, mean_vector
from dtrag.core.taxonomy.classification import Classification, Names, place, with_model
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.taxonomy.review import Placement
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.core.text.analysis import Analyzer
from dtrag.destinations import embeds
from dtrag.errors import DtragError, InvalidInput
from dtrag.ingestion import chunking
from dtrag.ingestion.analysis import analyse_documents, embedded_text
from dtrag.ports import CategoryModel, Embedder, Index, IndexSnapshot, PlacementStore, model_for, speaks

PER_NODE = 100
MOST_SAMPLES = 10_000
LEAST_PER_NODE = 5
"""Documents that are read of a category: from 20 to 40 the share that is right grows by .01 to .04 only."""
GROWN = 1.25
"""During one ingest the samples are read again when the index has grown by so much: a first ingest learns from its own
beginning, a later one does not read them after each batch."""
MODEL_CHARACTERS = 6_000
"""Of a text that a language model is given."""
_LOG = logging.getLogger(__name__)
LEARNED_SCOPES = 32
"""Scopes for which the learned centroids are kept, the least recently used go first; each takes a few megabytes."""


def classify_enabled(setting: str) -> bool:
    """Whether documents are classified on ingest, from `auto` or `off`. Raises `InvalidInput` for anything else."""
    if setting not in {"auto", "off"}:
        raise InvalidInput(f"DTRAG_CLASSIFY is {setting[:40]!r}, but must be auto or off.")
    return setting == "auto"


@dataclass(frozen=True)
class _KnownCategories:
    """What is known of the categories in one scope, and of which state of the index.

    `nodes` are the categories that a document can get.
    """

    version: tuple[int, int]
    chunks: int
    taxonomy: Taxonomy
    nodes: frozenset[int]
    names: Names
    centroids: Centroids

    def holds(self, snapshot: IndexSnapshot, growing: bool) -> bool:
        """Whether it still does for this state. While the index is `growing`, a little behind is good enough."""
        if self.version == snapshot.version:
            return True
        return growing and self.taxonomy == snapshot.taxonomy and snapshot.statistics.chunks <= self.chunks * GROWN


STATED = stated("category_stated", "The document, its upload or its earlier edition names this category.")
DECIDED = stated("category_decided", "A reviewer put the document here.")


class Classifier:
    """Classifies by one index. `model` is a language model, or None.

    Vectors are compared in one space: of several models that of English, which the formula is fitted to.
    """

    def __init__(
        self,
        store: PlacementStore,
        index_: Index,
        analyzer: Analyzer = Analyzer(),
        embedder: Embedder | None = None,
        model: CategoryModel | None = None,
        *,
        grades: Grades = Grades(),
    ):
        self._grades = grades
        self._store = store
        self._index = index_
        self._analyzer = analyzer
        deciding = model_for(embedder, "en") or embedder
        self._embedder = deciding if deciding is not None and deciding.decides else None
        self._model = model
        self._learned: LRUCache[frozenset[int] | None, _KnownCategories] = LRUCache(LEARNED_SCOPES)
        self._learning = asyncio.Lock()

    def over(self, store: PlacementStore) -> Classifier:
        """The same with what it has learned, writing to another store."""
        other = copy.copy(self)
        other._store = store
        return other

    async def classify(self, text: str, title: str = "", *, scope: Viewer = EVERYTHING) -> Classification:
        """Where a text would belong among the categories in scope, by their documents; nothing is written."""
        learned = await self._known(scope)
        passages = chunking.split(ParsedDocument(title, text, "text/plain"))
        first = replace(passages, chunks=passages.chunks[:FIRST_PASSAGES])
        draft = Draft(document_id(""), first, document_id(""), "", UNCLASSIFIED, b"")
        [document] = await analyse_documents([draft], self._analyzer)
        return await self._place(document, learned)

    async def prepare(
        self, documents: Sequence[IndexedDocument], works: dict[uuid.UUID, Classification] | None = None
    ) -> tuple[list[IndexedDocument], dict[uuid.UUID, Classification]]:
        """The documents, each on its node, before they are written, and why they are there.

        Those whose classification is not accepted wait for a person; while there are no categories, none does.

        Documents that name a category are passed through. All editions of a work get the category of the first, also
        in later calls with the same `works`. Whatever the review queue held about any of them is gone: they have
        changed.
        """
        works = {} if works is None else works
        open_ = [document for document in documents if not document.document.category_path]
        settled = [d.document_id for d in documents if d.replaces and d.document.category_path]
        placements: list[Placement] = []
        reasons = {
            d.document_id: Classification(d.document.category_path, d.node_id, 1.0, (STATED,))
            for d in documents
            if d.document.category_path
        }
        nodes: dict[uuid.UUID, int] = {}
        if open_:
            learned = await self._known(EVERYTHING, growing=True)
            people = await self._store.decided([document.document_id for document in open_])
            decided_works = {
                _work(document): people[key] for document in open_ if (key := document.document_id) in people
            }
            for document in open_:
                work_id = _work(document)
                node_id = people.get(document.document_id, decided_works.get(work_id))
                if node_id is not None and node_id in learned.nodes:
                    settled.append(document.document_id)
                    nodes[document.document_id] = node_id
                    path = learned.taxonomy.path(node_id)
                    reasons[document.document_id] = Classification(path, node_id, 1.0, (DECIDED,))
                elif learned.nodes:
                    classification = works.get(work_id) or await self._place(document, learned)
                    if work_id != document.document_id:
                        works[work_id] = classification
                    placements.append(Placement(document.document_id, classification, datetime.now(UTC)))
                    reasons[document.document_id] = classification
                    nodes[document.document_id] = classification.node_id if classification.accepted else UNCLASSIFIED
                    await asyncio.sleep(0)  # the writer must not wait for a whole batch
        if placements or settled:
            await self._store.record(placements, settled)
        placed = [replace(d, node_id=nodes[d.document_id]) if d.document_id in nodes else d for d in documents]
        return placed, reasons

    async def _place(self, document: IndexedDocument, learned: _KnownCategories) -> Classification:
        terms = content(document)
        vector = await self._mean_vector(document) if learned.centroids.vectors is not None else None
        classification = place(learned.taxonomy, learned.names, learned.centroids, terms, vector)
        if self._model is None or classification.accepted or not learned.nodes:
            return classification
        paths = ["/".join(learned.taxonomy.path(node_id)) for node_id in sorted(learned.nodes)]
        text = f"{document.document.title}\n\n{document.document.text}"[:MODEL_CHARACTERS]
        path, confidence = await asyncio.to_thread(self._model.classify, text, paths)
        return with_model(learned.taxonomy, classification, path, confidence, learned.nodes)

    async def _mean_vector(self, document: IndexedDocument) -> Vector | None:
        """That of the first passages in languages of the model; None without any, and when the model fails."""
        model, title = self._embedder, document.document.title
        grades = self._grades.of((await self._index.snapshot()).taxonomy)
        if not embeds(model, grades.highest):  # its category, and with it its grade, is not known yet
            return None
        texts = [
            embedded_text(title, indexed.chunk.breadcrumb, indexed.chunk.text)
            for indexed in document.chunks[:FIRST_PASSAGES]
            if speaks(model, indexed.language)
        ]
        if model is None or not texts:
            return None
        try:
            vectors = await asyncio.to_thread(embedding_service.embed_passages, texts, embedder=model)
        except DtragError as error:
            _LOG.warning("a document is classified by its words: %s", error)
            return None
        return mean_vector(list(vectors))

    async def _known(self, viewer: Viewer, *, growing: bool = False) -> _KnownCategories:
        """Centroids and names of the newest state in the viewer's scope, learned again only when they have to be."""
        async with self._learning:
            snapshot = await self._index.snapshot()
            scope = viewer.resolved(snapshot.taxonomy)
            learned = self._learned.get(scope.nodes)
            if learned is None or not learned.holds(snapshot, growing):
                learned = await self._learn(snapshot, scope)
                self._learned[scope.nodes] = learned
            return learned

    async def _learn(self, snapshot: IndexSnapshot, scope: Scope) -> _KnownCategories:
        taxonomy = snapshot.taxonomy
        nodes = frozenset(taxonomy.nodes) if scope.nodes is None else scope.nodes & taxonomy.nodes.keys()
        per_node = max(LEAST_PER_NODE, min(PER_NODE, MOST_SAMPLES // max(1, len(nodes))))
        space = self._embedder.id if self._embedder is not None else ""
        samples = await self._store.samples(sorted(nodes), per_node, space) if nodes else []
        centroids = await asyncio.to_thread(Centroids.of, samples)
        names = Names(taxonomy, self._analyzer, nodes)
        return _KnownCategories(snapshot.version, snapshot.statistics.chunks, taxonomy, nodes, names, centroids)


def _work(document: IndexedDocument) -> uuid.UUID:
    """What is classified as one: the work of an edition, another document by itself."""
    edition = document.edition
    return edition.work_id if edition is not None and edition.work_id is not None else document.document_id


def content(document: IndexedDocument) -> TermCounts:
    """Terms of a document, as the index gives them back."""
    chunks = document.chunks[:FIRST_PASSAGES]
    return TermCounts.of([chunk.term_ids for chunk in chunks], [chunk.frequencies * FREQUENCY_UNIT for chunk in chunks])
