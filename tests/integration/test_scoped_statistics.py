"""What a caller is told depends on nothing outside its scope: not even the scores do."""

from __future__ import annotations

import random

from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.app import App, open_app
from dtrag.core.access.scope import Scope
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.store import Databases
from tests.toy import ENGLISH

QUERIES = ("kettle", "kettle zanzibar", "kettle quagmire", "boiler valve merger", "how do I get a library refund")


async def filled(app: App, *, with_foreign: bool) -> Scope:
    """The same documents of ours in either database; those of the others only in one."""
    writer = PostgresWriter(app.database)
    paths = [CategoryPath.parse("Ours"), CategoryPath.parse("Theirs")]
    taxonomy = await writer.ensure_paths(paths)
    ours, theirs = (taxonomy.find(path) or 0 for path in paths)
    chance = random.Random(3)
    documents = [
        indexed_document(f"o:{number}", [" ".join(chance.choices(ENGLISH, k=9))], node_id=ours) for number in range(40)
    ]
    if with_foreign:
        # As long as ours on the mean, which is the one figure that all share.
        documents += [
            indexed_document(
                f"t:{number}", [" ".join([*chance.choices(ENGLISH, k=7), "zanzibar", "merger"])], node_id=theirs
            )
            for number in range(80)
        ]
    await writer.write(documents)
    return Scope(frozenset({ours}))


async def test_scores_answers_and_confidence_are_those_of_an_index_without_the_others(
    settings: Settings, databases: Databases
) -> None:
    async with open_app(settings) as shared, open_app(databases.settings()) as alone:
        scope = await filled(shared, with_foreign=True)
        own = await filled(alone, with_foreign=False)
        for query in QUERIES:
            found, _ = await shared.search(query, 10, scope=scope, mode="lexical")
            expected, _ = await alone.search(query, 10, scope=own, mode="lexical")
            assert [(r.chunk_id, r.bm25_score) for r in found] == [(r.chunk_id, r.bm25_score) for r in expected]
            one, other = await shared.ask(query, scope=scope), await alone.ask(query, scope=own)
            assert (one.text, one.confidence, one.reason) == (other.text, other.confidence, other.reason)


async def test_a_word_of_other_scopes_counts_as_unknown(app: App) -> None:
    scope = await filled(app, with_foreign=True)
    scores = []
    for word in ("zanzibar", "merger", "quagmire"):
        found, _ = await app.search(f"kettle {word}", 5, scope=scope, mode="lexical", explain=True)
        scores.append([(r.chunk_id, r.bm25_score, r.explanation) for r in found])
    assert scores[0] == scores[1] == scores[2]
    everything, _ = await app.search("kettle zanzibar", 5, mode="lexical")
    assert "zanzibar" in everything[0].text
