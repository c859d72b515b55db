"""What every store of vectors must do: know what waits, and store a vector where its text still is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope
from dtrag.core.documents import Vector, document_id
from dtrag.errors import InvalidInput
from dtrag.ingestion.vectors import VectorFiller
from dtrag.ports import Embedder, Stores, WaitingBatch
from dtrag.testing.models import HashEmbedder
from tests.builders import BOILER, EMBEDDER, KETTLE, LEAVE, branch_nodes, chunk_id, filled, indexed_document

KOREAN = HashEmbedder(id="korean@00000001")


@dataclass(frozen=True)
class Routed(HashEmbedder):
    """Two models: one for Korean, one for English."""

    id: str = "routed"

    def of(self, code: str) -> Embedder | None:
        """The model of the language."""
        return {"ko": KOREAN, "en": EMBEDDER}.get(code)


async def two_languages(stores: Stores) -> None:
    """A document in English and one in Korean."""
    english = indexed_document("test:english", ["The kettle has a valve."])
    await stores.writer.write([english, indexed_document("test:korean", ["휴학은 한 학기에 한 번 신청한다."])])


async def spaces_of(stores: Stores, *models: Embedder) -> list[set[str]]:
    """The documents that a search finds in the space of each model."""
    await stores.index.snapshot()
    found = []
    for model in models:
        scores = await stores.index.vectors(model.embed_queries(["x"])[0], model.id, EVERYTHING, NO_FILTERS, 10)
        names = {str(document_id(f"test:{name}")): name for name in ("english", "korean", "late")}
        found.append({names[key.partition(":")[0]] for key in scores})
    return found


async def next_batch(stores: Stores, limit: int = 64) -> WaitingBatch:
    """What waits, with a model for each of its languages."""
    batch = await stores.vectors.waiting(limit)
    assert batch is not None
    if batch.unassigned:
        await stores.vectors.assign(dict.fromkeys(batch.unassigned, EMBEDDER))
        batch = await stores.vectors.waiting(limit)
        assert batch is not None
    return batch


def made(batch: WaitingBatch) -> Sequence[Vector]:
    """Vectors of the passages of a batch."""
    return list(EMBEDDER.embed_documents([passage.text for passage in batch.passages]))


async def test_every_passage_gets_one_vector_and_then_none_waits(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    assert await stores.vectors.pending(EVERYTHING) == 0
    assert await stores.vectors.waiting(10) is None
    (node,) = branch_nodes(staff)
    await stores.writer.write([indexed_document("test:late", ["One.", "Two.", "Three."], node_id=node)])
    snapshot = await stores.index.snapshot()
    assert [await stores.vectors.pending(scope) for scope in (EVERYTHING, machines, staff)] == [3, 0, 3]
    space = ("en", EMBEDDER.id)
    assert [snapshot.awaits_vectors(scope, *space) for scope in (EVERYTHING, machines, staff)] == [
        True,
        False,
        True,
    ]
    assert (await VectorFiller(stores.vectors, EMBEDDER).fill()).made == 3
    later = await stores.index.snapshot()
    assert later.version > snapshot.version
    assert later.generation == snapshot.generation, "what was read of the texts stays valid"
    assert not later.awaits_vectors(EVERYTHING, *space)
    assert (await VectorFiller(stores.vectors, EMBEDDER).fill()).made == 0


async def test_the_newest_documents_come_first_in_batches(stores: Stores) -> None:
    await two_languages(stores)
    await stores.writer.write([indexed_document("test:late", ["One.", "Two.", "Three."])])
    batch = await next_batch(stores, 2)
    assert [(passage.document_id, passage.ordinal) for passage in batch.passages] == [
        (document_id("test:late"), 0),
        (document_id("test:late"), 1),
    ]
    assert await stores.vectors.put(batch, made(batch)) == 2
    assert [passage.text for passage in (await next_batch(stores, 1)).passages] == ["Three."]


async def test_each_language_has_the_space_of_its_model(stores: Stores) -> None:
    await two_languages(stores)
    await VectorFiller(stores.vectors, Routed()).fill()
    assert await spaces_of(stores, EMBEDDER, KOREAN) == [{"english"}, {"korean"}]
    query, keys = EMBEDDER.embed_queries(["valve"])[0], [chunk_id(document_id("test:english"))]
    assert list(await stores.index.vector_scores(query, EMBEDDER.id, keys, EVERYTHING)) == keys
    assert await stores.index.vector_scores(query, KOREAN.id, keys, EVERYTHING) == {}


async def test_a_language_without_a_model_does_not_wait(stores: Stores) -> None:
    await two_languages(stores)
    english = HashEmbedder(languages=frozenset({"en"}))
    assert (await VectorFiller(stores.vectors, english).fill()).made == 1
    assert await stores.vectors.pending(EVERYTHING) == 0
    assert not (await stores.index.snapshot()).awaits_vectors(EVERYTHING, "en", english.id)


async def test_a_second_model_adds_its_languages_and_leaves_the_others(stores: Stores) -> None:
    await two_languages(stores)
    await VectorFiller(stores.vectors, HashEmbedder(languages=frozenset({"en"}))).fill()
    assert (await stores.index.snapshot()).awaits_vectors(EVERYTHING, "ko", KOREAN.id)
    assert (await VectorFiller(stores.vectors, Routed()).fill()).made == 1
    assert await spaces_of(stores, EMBEDDER, KOREAN) == [{"english"}, {"korean"}]


@pytest.mark.parametrize("dim", [64, 16])
async def test_a_changed_model_replaces_the_vectors_and_is_never_compared_with_them(stores: Stores, dim: int) -> None:
    await two_languages(stores)
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    other = HashEmbedder(id="other@00000001", dim=dim)
    assert (await stores.index.snapshot()).awaits_vectors(EVERYTHING, "en", other.id)
    if dim == EMBEDDER.dim:
        assert await spaces_of(stores, other) == [set()]
    assert (await VectorFiller(stores.vectors, other).fill()).made == 2
    assert await spaces_of(stores, other) == [{"english", "korean"}]
    assert not (await stores.index.snapshot()).awaits_vectors(EVERYTHING, "en", other.id)


async def test_vectors_of_a_language_that_lost_its_model_are_deleted(stores: Stores) -> None:
    await two_languages(stores)
    await VectorFiller(stores.vectors, Routed()).fill()
    await VectorFiller(stores.vectors, HashEmbedder(languages=frozenset({"en"}))).fill()
    assert await spaces_of(stores, EMBEDDER, KOREAN) == [{"english"}, set()]


async def test_models_of_different_dimensions_are_refused(stores: Stores) -> None:
    with pytest.raises(InvalidInput, match="dimension"):
        await stores.vectors.assign({"en": EMBEDDER, "ko": HashEmbedder(id="small", dim=8)})


async def test_what_was_deleted_or_replaced_meanwhile_gets_no_vector(stores: Stores) -> None:
    await stores.writer.write([indexed_document(f"test:{name}", [f"A {name}."]) for name in ("english", "late")])
    batch = await next_batch(stores)
    await stores.writer.delete(document_id("test:english"), EVERYTHING)
    await stores.writer.write([indexed_document("test:late", ["Another text."], replaces=True)])
    assert await stores.vectors.put(batch, made(batch)) == 0
    assert await spaces_of(stores, EMBEDDER) == [set()]
    assert await stores.vectors.pending(EVERYTHING) == 1


async def test_a_vector_has_the_category_of_the_moment(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    (node,), (other,) = branch_nodes(machines), branch_nodes(staff)
    await stores.writer.write([indexed_document("test:late", ["One."], node_id=node)])
    batch = await next_batch(stores)
    await stores.writer.write([indexed_document("test:late", ["One."], node_id=other, replaces=True)])
    await stores.vectors.put(batch, made(batch))
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    query = EMBEDDER.embed_queries(["one"])[0]
    key = chunk_id(document_id("test:late"))
    assert key in await stores.index.vectors(query, EMBEDDER.id, staff, NO_FILTERS, 10)
    assert key not in await stores.index.vectors(query, EMBEDDER.id, machines, NO_FILTERS, 10)


async def sentences_of(
    stores: Stores, keys: Sequence[str], scope: Scope = EVERYTHING, model: Embedder = EMBEDDER
) -> dict[str, list[str]]:
    """Chunk id -> the sentences of these passages with a stored vector of the model, which is that of the sentence."""
    taxonomy = (await stores.index.snapshot()).taxonomy
    passages = await stores.index.fetch(keys, EVERYTHING, taxonomy)
    stored = await stores.index.sentence_vectors(list(passages.values()), model.id, scope)
    sentences: dict[str, list[str]] = {}
    for key, vectors in stored.of_passage.items():
        sentences[key] = [passages[key].text[start:end] for start, end in vectors]
        for text, vector in zip(sentences[key], vectors.values(), strict=True):
            assert vector == pytest.approx(model.embed_documents([text])[0], abs=0.01)
    return sentences


async def test_sentences_get_vectors_after_their_passages_and_are_read_in_scope(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    keys = [chunk_id(KETTLE), chunk_id(KETTLE, 1), chunk_id(LEAVE)]
    assert await sentences_of(stores, keys) == {}, "not made where a command waits for the vectors of passages"
    await VectorFiller(stores.vectors, EMBEDDER).fill(sentences=True)
    assert await sentences_of(stores, keys, machines) == {
        chunk_id(KETTLE): ["The kettle has a valve."],
        chunk_id(KETTLE, 1): ["Fill the kettle with water."],
    }
    assert await sentences_of(stores, keys, staff) == {chunk_id(LEAVE): ["Leave is granted in summer."]}
    assert await sentences_of(stores, keys, model=KOREAN) == {}
    assert await stores.vectors.waiting_sentences(64) is None
    await stores.writer.write([indexed_document("test:late", ["One goes. Two stay."])])
    assert await stores.vectors.waiting_sentences(64) is None, "the passage's own vector comes first"
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    batch = await stores.vectors.waiting_sentences(64)
    assert batch is not None
    assert [passage.text for passage in batch.passages] == ["One goes. Two stay."]


async def test_sentences_of_a_replaced_or_deleted_text_are_never_used(stores: Stores) -> None:
    await filled(stores)
    await VectorFiller(stores.vectors, EMBEDDER).fill(sentences=True)
    taxonomy = (await stores.index.snapshot()).taxonomy
    earlier = list((await stores.index.fetch([chunk_id(LEAVE), chunk_id(BOILER)], EVERYTHING, taxonomy)).values())
    await stores.writer.write([indexed_document("test:leave", ["Leave is granted in autumn."], replaces=True)])
    await VectorFiller(stores.vectors, EMBEDDER).fill(sentences=True)
    await stores.writer.delete(BOILER, EVERYTHING)
    stored = await stores.index.sentence_vectors(earlier, EMBEDDER.id, EVERYTHING)
    assert stored.of_passage == {}, "they are of the texts that were read before"
    assert await sentences_of(stores, [chunk_id(LEAVE)]) == {chunk_id(LEAVE): ["Leave is granted in autumn."]}


async def test_sentences_that_were_embedded_meanwhile_are_those_of_the_text_of_now(stores: Stores) -> None:
    await stores.writer.write([indexed_document(f"test:{name}", [f"A {name}."]) for name in ("english", "late")])
    await VectorFiller(stores.vectors, EMBEDDER).fill()
    batch = await stores.vectors.waiting_sentences(64)
    assert batch is not None
    await stores.writer.delete(document_id("test:english"), EVERYTHING)
    await stores.writer.write([indexed_document("test:late", ["Another text."], replaces=True)])
    await stores.vectors.put_sentences(batch, [b""] * len(batch.passages))
    await VectorFiller(stores.vectors, EMBEDDER).fill(sentences=True)
    key = chunk_id(document_id("test:late"))
    assert await sentences_of(stores, [key]) == {key: ["Another text."]}


async def test_only_models_that_decide_embed_sentences_and_a_changed_one_embeds_them_again(stores: Stores) -> None:
    await two_languages(stores)
    english, korean = (chunk_id(document_id(f"test:{name}")) for name in ("english", "korean"))
    proposes = HashEmbedder(id="proposes@00000001", decides=False)

    @dataclass(frozen=True)
    class OneDecides(Routed):
        def of(self, code: str) -> Embedder | None:
            return {"ko": proposes, "en": EMBEDDER}.get(code)

    await VectorFiller(stores.vectors, OneDecides()).fill(sentences=True)
    assert list(await sentences_of(stores, [english, korean])) == [english]
    assert await stores.vectors.waiting_sentences(64) is None
    other = HashEmbedder(id="other@00000001")
    await VectorFiller(stores.vectors, other).fill(sentences=True)
    assert await sentences_of(stores, [english, korean]) == {}
    assert set(await sentences_of(stores, [english, korean], model=other)) == {english, korean}
    await VectorFiller(stores.vectors, HashEmbedder(id=other.id, decides=False)).fill(sentences=True)
    await stores.writer.write([indexed_document("test:late", ["One goes."])])
    await VectorFiller(stores.vectors, HashEmbedder(id=other.id, decides=False)).fill(sentences=True)
    assert await stores.vectors.waiting_sentences(64) is None
    assert await sentences_of(stores, [chunk_id(document_id("test:late"))], model=other) == {}


async def test_forgetting_makes_all_wait(stores: Stores) -> None:
    await filled(stores)
    await stores.index_settings.forget()
    assert await stores.vectors.languages() == {"en"}
    batch = await stores.vectors.waiting(64)
    assert batch is not None
    assert KETTLE in batch.documents
