"""A case is recalled exactly while all of its passages are in scope and valid with the text that they had.

Random edits, deletions, moves, dates and scopes, against a model of the documents; on every store.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, replace
from datetime import date

from dtrag.cases.reuse import Reuse
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.cases.case import Case, CitedPassage, DecisionCounts, content_hash
from dtrag.core.documents import IndexedDocument
from dtrag.core.editions import Edition
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.ports import Stores
from tests.builders import case, chunk_id, indexed_document

DOCUMENTS, CASES = 6, 18
PAST, NOW, FUTURE = date(2020, 3, 1), date(2022, 3, 1), date(2090, 3, 1)
DAYS = (None, PAST, NOW)
ROUNDS = 100


@dataclass(frozen=True)
class Written:
    """The present state of a document."""

    text: str
    node: int
    effective: date
    ends_on: date | None


def document(number: int, written: Written) -> IndexedDocument:
    """The document as it is ingested: one dated passage of its own work."""
    made = indexed_document(f"test:{number}", [written.text], node_id=written.node, replaces=True)
    edition = Edition(f"Rules {number}", "", written.effective, work_id=uuid.UUID(int=number), ends_on=written.ends_on)
    return replace(made, edition=edition)


class World:
    """Documents in three categories, cases that cite one or two of them, and what must be true of both."""

    def __init__(self, stores: Stores, seed: int, nodes: list[int]) -> None:
        self.stores = stores
        self.random = random.Random(seed)
        self.nodes = nodes
        self.documents: dict[int, Written] = {}
        self.reuse = Reuse(stores.cases, stores.index, committed=DecisionCounts(600, 0))
        self.cases: list[Case] = []

    def key(self, number: int) -> str:
        return chunk_id(document(number, Written("", 1, PAST, None)).document_id)

    async def write(self, number: int) -> None:
        """Edit, move or date a document, or bring back one that was deleted."""
        written = Written(
            f"Text {self.random.randrange(2)} of rule {number}.",
            self.random.choice(self.nodes),
            self.random.choices((PAST, NOW, FUTURE), (6, 2, 1))[0],
            self.random.choices((None, NOW, FUTURE), (6, 1, 1))[0],
        )
        if written.ends_on is not None and written.ends_on <= written.effective:
            written = replace(written, ends_on=None)
        self.documents[number] = written
        await self.stores.writer.write([document(number, written)])

    async def delete(self, number: int) -> None:
        self.documents.pop(number, None)
        await self.stores.writer.delete(document(number, Written("", 1, PAST, None)).document_id, EVERYTHING)

    async def remember(self, number: int) -> None:
        """A case whose passages are those of one or two documents as they are now, or as they never were."""
        cited = self.random.sample(sorted(self.documents), self.random.choice((1, 2)))
        passages = tuple(CitedPassage(self.key(each), content_hash(self.documents[each].text)) for each in cited)
        node = self.documents[cited[0]].node
        made = case(f"c{number}", f"Question {number}?", node_id=node, origin="answer")
        made = replace(made, passages=passages, as_of=self.random.choice(DAYS))
        assert await self.stores.cases.add(made)
        self.cases.append(made)

    def is_current(self, cited: Case, scope: Scope) -> bool:
        """Whether the model says that all passages of the case are what they were, for this scope."""
        day = scope.as_of or date.today()
        documents = {self.key(number): written for number, written in self.documents.items()}
        for passage in cited.passages:
            written = documents.get(passage.chunk_id)
            if written is None or content_hash(written.text) != passage.content_hash:
                return False
            if scope.nodes is not None and written.node not in scope.nodes:
                return False
            if day < written.effective or (written.ends_on is not None and day >= written.ends_on):
                return False
        return scope.nodes is None or cited.node_id in scope.nodes

    async def check(self) -> bool:
        """Recall a random case for a random scope; whether it was recalled."""
        chosen = self.random.choice(self.cases)
        nodes = self.random.choice((None, frozenset(self.nodes), frozenset(self.random.sample(self.nodes, 1))))
        scope = Scope(nodes).at(self.random.choice((chosen.as_of, chosen.as_of, NOW)))
        recalled = await self.reuse.recall(chosen.query, scope)
        expected = chosen.as_of == scope.as_of and self.is_current(chosen, scope)
        assert (recalled.case is not None) == expected, (chosen, scope, self.documents)
        if recalled.case is None:
            return False
        taxonomy = (await self.stores.index.snapshot()).taxonomy
        shown = await self.stores.index.fetch(recalled.passages, scope, taxonomy)
        hashes = {passage.chunk_id: passage.content_hash for passage in recalled.case.passages}
        assert {key: content_hash(passage.text) for key, passage in shown.items()} == hashes
        return True


async def test_no_change_leaves_a_stale_case(stores: Stores) -> None:
    paths = [CategoryPath.parse(path) for path in ("A/X", "A/Y", "B")]
    taxonomy = await stores.writer.ensure_paths(paths)
    nodes = [node for path in paths if (node := taxonomy.find(path)) is not None]
    world = World(stores, 7, nodes)
    for number in range(1, DOCUMENTS + 1):
        await world.write(number)
    for number in range(CASES):
        await world.remember(number)
    recalled = 0
    for _ in range(ROUNDS):
        number = world.random.randint(1, DOCUMENTS)
        await (world.delete(number) if world.random.random() < 0.2 else world.write(number))
        recalled += await world.check()
    assert recalled > ROUNDS // 50  # it is not always silent
