"""What every store of imagined questions must do: they belong to a text of a document, and to its category."""

from __future__ import annotations

from collections.abc import Sequence

from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope
from dtrag.core.documents import document_id
from dtrag.core.text.analysis import term_id, terms
from dtrag.ingestion.vectors import VectorFiller
from dtrag.ports import ImaginedPassage, NewQuestion, Stores
from tests.builders import EMBEDDER, KETTLE, branch_nodes, chunk_id, filled, indexed_document

WHISTLE = "Why is my pot whistling?"


def asked(*texts: str) -> list[NewQuestion]:
    """Imagined questions in English."""
    return [NewQuestion(text, "en", tuple({term_id(term) for term in terms(text)})) for text in texts]


async def imagine(stores: Stores, texts: dict[str, Sequence[str]], scope: Scope = EVERYTHING) -> int:
    """Store questions for the passages with these beginnings."""
    passages = await stores.imagined.passages("all", EVERYTHING, 100)
    chosen = [
        (passage, asked(*questions))
        for passage in passages
        for beginning, questions in texts.items()
        if passage.text.startswith(beginning)
    ]
    return await stores.imagined.put(chosen, "test", scope)


async def by_words(stores: Stores, text: str, scope: Scope = EVERYTHING) -> list[str]:
    """The passages whose imagined questions share a word with the text."""
    weights = [(term_id(term), 1.0) for term in terms(text)]
    return list(await stores.index.imagined_by_words(weights, scope, NO_FILTERS, 10))


async def by_meaning(stores: Stores, text: str, scope: Scope = EVERYTHING) -> dict[str, float]:
    """The passages of the imagined questions nearest to the text."""
    vector = EMBEDDER.embed_queries([text])[0]
    return await stores.index.imagined(vector, EMBEDDER.id, scope, NO_FILTERS, 10)


async def test_passages_with_and_without_questions_are_listed_in_pages(stores: Stores) -> None:
    await filled(stores)
    everything = await stores.imagined.passages("all", EVERYTHING, 100)
    assert await stores.imagined.passages("without", EVERYTHING, 100) == everything
    assert await imagine(stores, {"The kettle": (WHISTLE, "Is it hot?")}) == 2
    (having,) = await stores.imagined.passages("with", EVERYTHING, 100)
    assert (having.chunk_id, having.questions, having.origin) == (chunk_id(KETTLE), (WHISTLE, "Is it hot?"), "test")
    missing, last = list[ImaginedPassage](), None
    while page := await stores.imagined.passages("without", EVERYTHING, 1, last):
        missing, last = missing + page, page[-1]
    assert [each.chunk_id for each in missing] == [
        each.chunk_id for each in everything if each.chunk_id != having.chunk_id
    ]
    counts = await stores.imagined.counts(EVERYTHING)
    assert (counts.questions, counts.passages, counts.missing) == (2, 1, len(missing))
    assert counts.characters == sum(len(each.text) for each in missing)


async def test_questions_are_found_in_the_scope_of_their_passage_only(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    await imagine(stores, {"The kettle": (WHISTLE,)})
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    kettle = chunk_id(KETTLE)
    assert [await by_words(stores, "whistling", scope) for scope in (EVERYTHING, machines, staff)] == [
        [kettle],
        [kettle],
        [],
    ]
    assert [list(await by_meaning(stores, WHISTLE, scope)) for scope in (machines, staff)] == [[kettle], []]
    assert (await by_meaning(stores, WHISTLE))[kettle] > 0.99
    vector = EMBEDDER.embed_queries([WHISTLE])[0]
    for scope, names in ((machines, {kettle}), (staff, set())):
        scores = await stores.index.imagined_scores(vector, EMBEDDER.id, [kettle], scope)
        texts = await stores.index.imagined_questions([kettle], scope)
        assert scores.keys() == texts.keys() == names
    assert await stores.index.imagined(vector, "other", EVERYTHING, NO_FILTERS, 10) == {}
    assert await stores.imagined.passages("with", staff, 10) == []
    assert (await stores.imagined.counts(staff)).questions == 0
    snapshot = await stores.index.snapshot()
    assert [snapshot.has_imagined(scope) for scope in (EVERYTHING, machines, staff)] == [True, True, False]


async def test_a_scope_neither_stores_nor_deletes_questions_of_other_branches(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    assert await imagine(stores, {"The kettle": (WHISTLE,)}, staff) == 0
    await imagine(stores, {"The kettle": (WHISTLE,)}, machines)
    assert await imagine(stores, {"The kettle": ("Other?",)}, staff) == 0
    assert await by_words(stores, "whistling") == [chunk_id(KETTLE)]
    assert await stores.imagined.drop(staff) == 0
    assert await stores.imagined.drop(EVERYTHING, [document_id("test:other")]) == 0
    assert await stores.imagined.drop(machines, [KETTLE]) == 1
    assert await by_words(stores, "whistling") == []


async def test_new_questions_replace_those_of_the_same_passage(stores: Stores) -> None:
    await filled(stores)
    await imagine(stores, {"The kettle": (WHISTLE, "Is it hot?")})
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    await imagine(stores, {"The kettle": ("May I descale it?",)})
    assert await by_meaning(stores, WHISTLE) == {}
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    assert list(await by_meaning(stores, "May I descale it?")) == [chunk_id(KETTLE)]
    assert (await stores.imagined.counts(EVERYTHING)).questions == 1


async def test_a_replaced_document_keeps_the_questions_of_unchanged_texts_with_their_vectors(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    await imagine(stores, {"The kettle": (WHISTLE,), "Fill": ("How do I use it?",)})
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    (node,) = branch_nodes(staff)
    texts = ["Read this first.", "The kettle has a valve.", "Fill the kettle with cold water."]
    await stores.writer.write([indexed_document("test:kettle", texts, node_id=node, replaces=True)])
    assert await by_words(stores, "whistling use") == [chunk_id(KETTLE, 1)]
    assert await by_words(stores, "whistling", machines) == []
    assert list(await by_meaning(stores, WHISTLE, staff)) == [chunk_id(KETTLE, 1)]
    assert (await stores.imagined.counts(EVERYTHING)).questions == 1


async def test_a_deleted_document_has_no_questions_and_does_not_get_them_back(stores: Stores) -> None:
    await filled(stores)
    await imagine(stores, {"The kettle": (WHISTLE,)})
    await stores.writer.delete(KETTLE, EVERYTHING)
    assert (await stores.imagined.counts(EVERYTHING)).questions == 0
    await stores.writer.write([indexed_document("test:kettle", ["The kettle has a valve."])])
    assert await by_words(stores, "whistling") == []


async def test_questions_of_a_text_that_changed_meanwhile_are_not_stored(stores: Stores) -> None:
    await filled(stores)
    passages = await stores.imagined.passages("all", EVERYTHING, 100)
    await stores.writer.write([indexed_document("test:kettle", ["The pot has a valve."], replaces=True)])
    stored = [(passage, asked(WHISTLE)) for passage in passages if passage.document_id == KETTLE]
    assert await stores.imagined.put(stored, "test", EVERYTHING) == 0


async def test_only_languages_with_a_model_get_vectors(stores: Stores) -> None:
    await filled(stores)
    korean = NewQuestion("주전자가 왜 울려요?", "xx", (1,))
    passages = [each for each in await stores.imagined.passages("all", EVERYTHING, 9) if each.document_id == KETTLE]
    await stores.imagined.put([(passages[0], [korean])], "test", EVERYTHING)
    await stores.vectors.assign({"xx": None})
    assert await stores.vectors.waiting_questions(10) is None
    await stores.vectors.assign({"xx": EMBEDDER})
    batch = await stores.vectors.waiting_questions(10)
    assert batch is not None
    assert [question.text for question in batch.questions] == ["주전자가 왜 울려요?"]
    assert await stores.vectors.put_questions(batch, list(EMBEDDER.embed_queries(["주전자가 왜 울려요?"]))) == 1
    assert await stores.vectors.waiting_questions(10) is None
