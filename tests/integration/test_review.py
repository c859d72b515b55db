"""Documents without a category: placed, or waiting for a person; seen by nobody with a scope until somebody decides."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dtrag.app import App, open_app
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import PUBLISHED, Access, Grant, Scope
from dtrag.core.answers.citation_labels import label
from dtrag.core.cases.case import Case, CaseLog, CitedPassage, content_hash
from dtrag.core.cases.index import question_hash
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.review import OfferedAnswer, ReviewItem
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.governance.review import IN_REVIEW
from dtrag.ports import Models
from dtrag.regulations.korean.lexicon_entries import as_toml
from dtrag.settings import set_feature_flag
from tests.integration.books import GARDEN, KITCHEN, shelf
from tests.store import Databases, Store
from tests.toy import ToyEmbedder


def written(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def one(path: Path, title: str, text: str) -> Path:
    return written(path, [{"id": "1", "title": title, "text": text}])


async def caller(app: App, *paths: str) -> Caller:
    taxonomy = (await app.index.snapshot()).taxonomy
    return Caller("kim", "editor", Access((Grant.of([CategoryPath.parse(path) for path in paths], taxonomy),)))


async def titles(app: App, query: str, who: Caller | None = None, mode: str = "lexical") -> set[str]:
    scope = who.access if who is not None else Scope.everything()
    results, _ = await app.search(query, 50, mode=mode, scope=scope)
    return {result.title for result in results}


async def only_item(app: App) -> ReviewItem:
    [item], total = await app.review.waiting()
    assert total == 1
    return item


async def test_a_document_with_high_confidence_is_placed_at_once(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(20))])
    new = "Simmer the onions in butter, then whisk the broth and season the soup with thyme before it is served."
    await app.ingest([one(tmp_path / "new.jsonl", "Soup for a cold evening", new)])
    assert await app.review.waiting() == ([], 0)
    [path] = [d.taxonomy_path for d in await app.documents() if d.title == "Soup for a cold evening"]
    assert path == ("House", "Kitchen")
    assert await titles(app, "onions", await caller(app, "House/Kitchen")) >= {"Soup for a cold evening"}
    assert "Soup for a cold evening" not in await titles(app, "onions", await caller(app, "House/Garden"))
    assert store.value("select count(*) from classification_placements") == 1
    store.assert_whole()


async def test_an_uncertain_document_waits_and_no_scoped_caller_sees_it(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(20))])
    await app.ingest([one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits of the quarter.")])
    item = await only_item(app)
    assert item.confidence is not None
    assert (item.title, item.confidence < 0.7, item.status) == ("Ledger", True, "waiting")
    for path in ("House", "House/Kitchen", "House/Garden"):
        who = await caller(app, path)
        assert await titles(app, "ledger debits", who) == set()
        assert "Ledger" not in {d.title for d in await app.documents(scope=who.access)}
        assert await app.review.waiting(caller=who) == ([], 0)
        with pytest.raises(NotFound):
            await app.review.get(str(item.item_id), caller=who)
        with pytest.raises(NotFound):
            await app.review.correct(str(item.item_id), path, caller=who)
    assert await titles(app, "ledger debits") == {"Ledger"}


@pytest.mark.parametrize("mode", ["lexical", "vector", "strict"])
async def test_a_correction_makes_it_visible_there_and_only_there(
    databases: Databases, tmp_path: Path, mode: str
) -> None:
    settings = databases.settings()
    async with open_app(settings) as plain:
        app = App(settings, plain.database, Models(ToyEmbedder(), plain.analyzer))
        await app.ingest([written(tmp_path / "shelf.jsonl", shelf(20))])
        await app.ingest([one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")])
        garden, kitchen = await caller(app, "House/Garden"), await caller(app, "House/Kitchen")
        assert "Ledger" not in await titles(app, "ledger debits", garden, mode)
        item = await app.review.correct(str((await only_item(app)).item_id), "House/Garden", "the shed's accounts")
        assert (item.status, item.note, item.decided_by) == ("corrected", "the shed's accounts", "local")
        assert item.proposal["path"] == ["House", "Garden"]
        assert "Ledger" in await titles(app, "ledger debits", garden, mode)
        assert "Ledger" not in await titles(app, "ledger debits", kitchen, mode)
        assert await app.review.waiting() == ([], 0)
        store = databases.store(settings)
        store.assert_whole()
        assert store.rows("select node_id, decided_by from classification_signals") == [(item.node_id, "local")]


async def test_an_approval_takes_the_proposal(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(3))])
    few = "In the cupboard are onions, broth and thyme."
    await app.ingest([one(tmp_path / "new.jsonl", "Store", few)])
    item = await only_item(app)
    assert item.proposal["path"] == ["House", "Kitchen"]
    await app.review.approve(str(item.item_id))
    assert "Store" in await titles(app, "cupboard", await caller(app, "House/Kitchen"))
    assert store.value("select count(*) from classification_placements") == 0
    for decide in (app.review.approve, app.review.skip):
        with pytest.raises(Conflict):
            await decide(str(item.item_id))
    assert (await app.review.get(str(item.item_id))).status == "approved"


async def test_a_skipped_document_stays_where_it_is(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(3))])
    await app.ingest([one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")])
    item = await app.review.skip(str((await only_item(app)).item_id), "nobody knows")
    assert (item.status, item.note) == ("skipped", "nobody knows")
    assert await app.review.waiting() == ([], 0)
    assert store.rows("select node_id from documents where title = 'Ledger'") == [(UNCLASSIFIED,)]
    assert store.value("select count(*) from classification_signals") == 0


async def test_decisions_of_reviewers_are_learned(app: App, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(20))])
    strange = "The ledger lists debits, credits and the balance of the quarter {}."
    before = await app.review.classify(strange.format("nine"))
    assert before.path != ("House", "Garden") or before.confidence < 0.7
    for number in range(6):
        await app.ingest([one(tmp_path / f"{number}.jsonl", f"Ledger {number}", strange.format(number))])
        for item in (await app.review.waiting())[0]:
            await app.review.correct(str(item.item_id), "House/Garden")
    after = await app.review.classify(strange.format("nine"))
    assert after.path == ("House", "Garden")
    assert after.confidence > before.confidence


async def test_a_document_that_a_person_placed_stays_there_when_it_changes(
    app: App, store: Store, tmp_path: Path
) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(20))])
    path = one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")
    await app.ingest([path])
    await app.review.correct(str((await only_item(app)).item_id), "House/Garden")
    one(path, "Ledger", "Simmer the onions in butter, then whisk the broth and season the soup with thyme.")
    await app.ingest([path])
    assert await app.review.waiting() == ([], 0)
    assert "Ledger" in await titles(app, "onions", await caller(app, "House/Garden"))
    store.assert_whole()


async def test_a_document_that_comes_with_a_category_is_not_asked_about_any_more(app: App, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(3))])
    path = one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")
    await app.ingest([path])
    await only_item(app)
    await app.ingest([path], category="Office")
    assert await app.review.waiting() == ([], 0)


async def test_a_changed_document_waits_once(app: App, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(3))])
    path = one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")
    await app.ingest([path])
    first = await only_item(app)
    one(path, "Ledger", "The ledger lists debits only.")
    await app.ingest([path])
    assert (await only_item(app)).item_id != first.item_id


async def test_unsure_placements_do_not_teach(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(10))])
    new = "Simmer the onions in butter, then whisk the broth and season the soup with thyme."
    await app.ingest([one(tmp_path / "new.jsonl", "Soup", new)])
    [(document_id, node_id)] = store.rows("select document_id, node_id from documents where title = 'Soup'")
    assert node_id != UNCLASSIFIED
    samples = app.classifier._store.samples
    store.rows("update classification_placements set confidence = 0.85")
    assert document_id not in {sample.document_id for sample in await samples([node_id], 100, "")}
    store.rows("update classification_placements set confidence = 0.95")
    assert document_id in {sample.document_id for sample in await samples([node_id], 100, "")}
    [few] = await samples([node_id], 1, "")
    assert few.node_id == node_id


async def test_a_tree_without_documents_knows_names_only(app: App, tmp_path: Path) -> None:
    await app._writer.ensure_paths([CategoryPath.parse(path) for path in ("학사/장학", "학사/휴학", "시설")])
    rows = [
        {
            "id": "1",
            "title": "장학금 지급 규정",
            "text": "학사 운영에 따라 장학 대상자를 정한다. 장학금은 학기마다 지급한다.",
        },
        {"id": "2", "title": "Menu", "text": "Soup on Monday."},
    ]
    await app.ingest([written(tmp_path / "new.jsonl", rows)])
    found, total = await app.review.waiting()
    by_title = {item.title: item for item in found}
    assert total == 2
    assert by_title["장학금 지급 규정"].proposal["path"] == ["학사", "장학"]
    assert by_title["장학금 지급 규정"].confidence == pytest.approx(0.60)
    assert by_title["Menu"].proposal["path"] == []
    assert [item.title for item in found] == ["Menu", "장학금 지급 규정"]
    with pytest.raises(InvalidInput):
        await app.review.approve(str(by_title["Menu"].item_id))
    await app.review.approve(str(by_title["장학금 지급 규정"].item_id))
    assert await titles(app, "장학금", await caller(app, "학사")) == {"장학금 지급 규정"}


async def test_without_any_category_nothing_waits(app: App, tmp_path: Path) -> None:
    await app.ingest([one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")])
    assert await app.review.waiting() == ([], 0)
    assert (await app.review.classify("anything")).node_id == UNCLASSIFIED


async def test_korean_documents_are_placed_by_similar_documents(app: App, tmp_path: Path) -> None:
    leave = [f"휴학은 {n}학기까지 할 수 있으며 휴학원을 제출하고 복학은 학기 시작 전에 신청한다." for n in range(20)]
    grant = [f"장학금은 성적 우수자 {n}명에게 지급하며 장학생은 지도교수의 추천을 받는다." for n in range(20)]
    rows = [
        {"id": f"{name}{n}", "title": f"제{n}호", "text": text, "category_path": ["학사", name]}
        for name, texts in (("휴학", leave), ("장학", grant))
        for n, text in enumerate(texts)
    ]
    await app.ingest([written(tmp_path / "shelf.jsonl", rows)])
    await app.ingest([one(tmp_path / "new.jsonl", "안내", "성적이 우수한 학생에게 장학금을 지급하며 추천을 받는다.")])
    [path] = [document.taxonomy_path for document in await app.documents() if document.title == "안내"]
    assert path == ("학사", "장학")


async def test_switched_off_nothing_is_classified(databases: Databases, tmp_path: Path) -> None:
    async with open_app(databases.settings(classify="off")) as app:
        await app.ingest([written(tmp_path / "shelf.jsonl", shelf(20))])
        await app.ingest([one(tmp_path / "new.jsonl", "Soup", "Simmer the onions in butter.")])
        assert await app.review.waiting() == ([], 0)
        assert [d.taxonomy_path for d in await app.documents() if d.title == "Soup"] == [()]
    with pytest.raises(InvalidInput, match="auto or off"):
        async with open_app(databases.settings(classify="maybe")):
            pass


async def test_an_answer_is_shown_to_callers_who_see_its_documents(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    agent_id = "6f0d9a52-0c3e-4b7c-9a39-0d3a3a8e4d11"
    store.rows(
        "insert into agents values (%s, 'a', 1, '{}', '[]', '', now(), now())",
        agent_id,
    )
    by_title = {document.title: document.document_id for document in await app.documents()}
    cited = [f"{by_title[title]}:0" for title in (f"{KITCHEN} 0", f"{KITCHEN} 1")]
    answer = OfferedAnswer(
        question="How long does it simmer?",
        reasons=(Statement("", "It is unsure."),),
        confidence=0.3,
        decision="review",
        cited=cited,
    )
    taxonomy = (await app.index.snapshot()).taxonomy
    kitchen, house = (Grant.of([CategoryPath.parse(path)], taxonomy) for path in ("House/Kitchen", "House"))
    for offered, grant in (
        (answer, kitchen),
        (replace(answer, confidence=0.2), house),
        (OfferedAnswer(question="What?", reasons=(), confidence=0.1, decision="abstain"), None),
    ):
        assert await app.review.offer_answer(offered, None, agent_id=uuid.UUID(agent_id), grant=grant)
    found, total = await app.review.waiting()
    assert (total, [round(item.confidence or 0.0, 3) for item in found]) == (3, [0.1, 0.2, 0.3])
    assert found[2].proposal["question"] == "How long does it simmer?"
    seen, _ = await app.review.waiting(caller=await caller(app, "House/Kitchen"))
    # What the other agent did not cite decided about its answer, too, and lies in branches that are out of sight.
    assert [item.item_id for item in seen] == [found[2].item_id]
    assert await app.review.waiting(caller=await caller(app, f"House/{GARDEN}")) == ([], 0)
    with pytest.raises(InvalidInput):
        await app.review.correct(str(found[1].item_id), "House/Kitchen")
    assert (await app.review.approve(str(found[1].item_id))).status == "approved"


async def passages_of(app: App, *wanted: str) -> list[str]:
    """Ids of the first passages of the documents with these titles."""
    by_title = {document.title: document.document_id for document in await app.documents()}
    return [f"{by_title[title]}:0" for title in wanted]


async def offered(app: App, cited: Sequence[str], retrieved: Sequence[str], *paths: str) -> ReviewItem:
    """The item of an answer for a caller who sees these branches; without any, the whole tree."""
    access = (await caller(app, *paths)).access if paths else Access()
    question = OfferedAnswer(
        question="How long does the broth simmer?",
        reasons=(Statement("", "It is unsure."),),
        confidence=0.3,
        decision="review",
        text="A draft.",
        cited=cited,
        retrieved=retrieved,
    )
    assert await app.review.offer_answer(question, access)
    return await only_item(app)


async def test_an_answer_is_corrected_by_passages(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    broth, stew, shed = await passages_of(app, f"{KITCHEN} 0", f"{KITCHEN} 1", f"{GARDEN} 0")
    item = await offered(app, [broth], [broth, stew, shed], "House/Kitchen")
    reviewer = replace(await caller(app, "House/Kitchen"), name="lee")
    shown = await app.review.get(str(item.item_id), caller=reviewer)
    # A passage out of sight, which was moved since the answer or was never in sight, is left out.
    assert [(row["chunk_id"], row["cited"]) for row in shown.proposal["passages"]] == [(broth, True), (stew, False)]
    assert shown.proposal["passages"][0]["text"] and shown.proposal["passages"][0]["label"].startswith(KITCHEN)
    assert (shown.proposal["text"], shown.proposal["reasons"]) == ("A draft.", ["It is unsure."])
    assert "passages" not in (await only_item(app)).proposal
    for wrong in ([], [shed], [stew, shed], ["x"], [f"{uuid.uuid4()}:0"], [f"{stew}999"], ["%s' or 1=1 --:0"]):
        with pytest.raises(InvalidInput):
            await app.review.correct(str(item.item_id), passages=wrong, caller=reviewer)
    with pytest.raises(InvalidInput, match="no such category"):
        await app.review.correct(str(item.item_id), "House/Nowhere", passages=[stew], caller=reviewer)
    corrected = await app.review.correct(str(item.item_id), note="a secret", passages=[stew, stew], caller=reviewer)
    assert (corrected.status, corrected.proposal["chosen"], corrected.note) == ("corrected", [stew], "a secret")
    other = await app.review.get(str(item.item_id), caller=await caller(app, "House/Kitchen"))
    assert (other.note, other.proposal["chosen"]) == ("", [stew])  # notes on answers are for administrators
    assert (await app.review.get(str(item.item_id))).note == "a secret"
    with pytest.raises(Conflict):
        await app.review.correct(str(item.item_id), passages=[stew])
    await app.delete_document(stew.partition(":")[0])
    assert (await app.review.get(str(item.item_id))).proposal["chosen"] == []


def hashes_of(item: ReviewItem) -> dict[str, str]:
    """The passages of an item as a reviewer reads them."""
    return {row["chunk_id"]: row["content_hash"] for row in item.proposal["passages"]}


async def test_a_decision_never_stores_a_text_that_its_reviewer_did_not_read(
    app: App, store: Store, tmp_path: Path
) -> None:
    rows = shelf(2)
    await app.ingest([written(tmp_path / "shelf.jsonl", rows)])
    broth, stew, shed = await passages_of(app, f"{KITCHEN} 0", f"{KITCHEN} 1", f"{GARDEN} 0")
    item_id = str((await offered(app, [broth], [broth, stew])).item_id)
    read = hashes_of(await app.review.get(item_id, passages=[shed, "x", f"{uuid.uuid4()}:0"]))
    assert list(read) == [broth, stew, shed]
    replaced = [{**row, "text": "Another text. " + row["text"]} for row in rows]
    await app.ingest([written(tmp_path / "shelf.jsonl", replaced)])
    for refused in (
        app.review.correct(item_id, passages=[shed], content_hashes=read),
        app.review.approve(item_id, content_hashes=read),
        app.review.approve(item_id, content_hashes={stew: read[stew]}),  # does not tell what was read of the cited one
    ):
        with pytest.raises(Conflict, match="Read the item again"):
            await refused
    await app.delete_document(stew.partition(":")[0])
    with pytest.raises(Conflict, match="or is gone"):
        await app.review.correct(item_id, passages=[stew], content_hashes=read)
    with pytest.raises(InvalidInput, match="12 to 64"):
        await app.review.approve(item_id, content_hashes={broth: ""})
    assert (await app.review.get(item_id)).status == "waiting"
    now = hashes_of(await app.review.get(item_id, passages=[shed]))
    assert now[shed] != read[shed]
    short = {key: value[:12] for key, value in now.items()}
    await app.review.correct(item_id, passages=[shed], content_hashes=short)
    [row] = store.rows("select proposal -> 'chosen' from review_queue where status = 'corrected'")
    assert row[0] == [{"chunk_id": shed, "content_hash": now[shed]}]


async def test_hashes_are_for_answers(app: App, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(20))])
    await app.ingest([one(tmp_path / "ledger.jsonl", "Ledger", "The ledger lists debits and credits of the quarter.")])
    item = await only_item(app)
    for refused in (
        app.review.approve(str(item.item_id), content_hashes={"a:0": "0" * 64}),
        app.review.correct(str(item.item_id), "House", content_hashes={"a:0": "0" * 64}),
    ):
        with pytest.raises(InvalidInput, match="document"):
            await refused


async def test_foreign_and_unknown_passages_get_the_same_error(app: App, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    broth, shed = await passages_of(app, f"{KITCHEN} 0", f"{GARDEN} 0")
    item = await offered(app, [broth], [], "House/Kitchen")
    unknown = f"{uuid.uuid4()}:0"
    errors = []
    for passage in (shed, unknown):
        with pytest.raises(InvalidInput) as error:
            await app.review.correct(
                str(item.item_id), passages=[broth, passage], caller=await caller(app, "House/Kitchen")
            )
        errors.append(str(error.value).replace(passage, ""))
    assert errors[0] == errors[1]
    assert shed not in errors[0]


async def test_an_approved_answer_keeps_the_passages_that_it_cites(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    broth, stew = await passages_of(app, f"{KITCHEN} 0", f"{KITCHEN} 1")
    item = await offered(app, [broth], [stew])
    assert await app.review.waiting(caller=await caller(app, "House")) == ([], 0)  # answered from the whole tree
    approved = await app.review.approve(str(item.item_id))
    assert approved.proposal["chosen"] == [broth]
    [row] = store.rows("select proposal -> 'chosen' from review_queue")
    assert [chosen["chunk_id"] for chosen in row[0]] == [broth]


@pytest.fixture
def memory_on() -> Iterator[None]:
    set_feature_flag("cbr_enabled", True)
    yield
    set_feature_flag("cbr_enabled", None)


async def cases(app: App) -> dict[str, Case]:
    store = app.case_store
    return {case.case_id: case for case in await store.page(Scope.everything(), 100)}


async def test_a_correction_becomes_a_case(app: App, tmp_path: Path, memory_on: None) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    broth, stew = await passages_of(app, f"{KITCHEN} 0", f"{KITCHEN} 1")
    item = await offered(app, [broth], [broth, stew], "House/Kitchen")
    reviewer = replace(await caller(app, "House/Kitchen"), key_id=uuid.uuid4())
    wrong = Case(
        case_id="wrong",
        query="How long does the broth simmer?",
        query_hash=question_hash("How long does the broth simmer?"),
        category_path=("House", "Kitchen"),
        node_id=(await app.index.snapshot()).taxonomy.find(CategoryPath.parse("House/Kitchen")),
        content="broth",
        passages=(CitedPassage(broth, b"0"),),
        asked_in=PUBLISHED,
        created_at=item.created_at,
        updated_at=item.created_at,
    )
    assert await app.case_store.add(wrong)
    await app.review.correct(str(item.item_id), note="Words of the reviewer", passages=[stew], caller=reviewer)
    made = (await cases(app))[f"review-{item.item_id}"]
    assert (made.origin, made.quality_score, made.author) == ("review", 1.0, reviewer.owner)
    assert (made.query, made.category_path) == ("How long does the broth simmer?", ("House", "Kitchen"))
    assert [passage.chunk_id for passage in made.passages] == [stew]
    taxonomy = (await app.index.snapshot()).taxonomy
    passage = (await app.index.fetch([stew], Scope.everything(), taxonomy))[stew]
    assert made.content == label(passage)
    assert made.passages[0].content_hash == content_hash(passage.text)
    assert "Words of" not in str(made)
    assert ((await cases(app))["wrong"].downvotes, (await cases(app))["wrong"].quality_score) == (1, 0.4)


async def test_an_approval_becomes_a_case_with_a_vote(app: App, tmp_path: Path, memory_on: None) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    broth, shed = await passages_of(app, f"{KITCHEN} 0", f"{GARDEN} 0")
    item = await offered(app, [broth, shed], [])
    await app.review.approve(str(item.item_id))
    made = (await cases(app))[f"review-{item.item_id}"]
    assert (made.quality_score, made.upvotes, made.category_path) == (0.6, 1, ("House",))
    assert {passage.chunk_id for passage in made.passages} == {broth, shed}


async def test_decisions_without_the_memory_become_cases_later(app: App, tmp_path: Path) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    [broth] = await passages_of(app, f"{KITCHEN} 0")
    item = await offered(app, [broth], [])
    await app.review.correct(str(item.item_id), passages=[broth])
    case_id = f"review-{item.item_id}"
    assert case_id not in await cases(app)
    assert await app.review.make_missing_cases() == []
    set_feature_flag("cbr_enabled", True)
    try:
        assert await app.review.make_missing_cases() == [case_id]
        assert await app.review.make_missing_cases() == []
    finally:
        set_feature_flag("cbr_enabled", None)
    assert (await cases(app))[case_id].quality_score == 1.0


async def test_an_answer_that_its_reader_found_wrong_waits(app: App, tmp_path: Path, memory_on: None) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    who = replace(await caller(app, "House/Kitchen"), key_id=uuid.uuid4())
    answer = await app.ask("How is a broth seasoned?", scope=who.access, owner=who.owner)
    await app.feedback.give(answer.trace_id, rating=3, caller=who)
    assert await app.review.waiting() == ([], 0)
    for rating in (1, 2):
        await app.feedback.give(answer.trace_id, rating=rating, caller=who)
    [item], _ = await app.review.waiting(caller=await caller(app, "House/Kitchen"))
    assert item.proposal["question"] == "How is a broth seasoned?"
    assert item.proposal["reasons"] == ["A reader found the answer wrong."]
    assert await app.review.waiting(caller=await caller(app, "House/Garden")) == ([], 0)
    assert (item.proposal["text"], item.proposal["trace_id"]) == ("", answer.trace_id), "no conversation holds it"
    declined = CaseLog(log_id="x", timestamp=item.created_at, query="Why?", details={"decision": "abstain"})
    await app.review.offer_rated(declined, who)
    await app.review.offer_rated(replace(declined, query=""), who)
    items, total = await app.review.waiting()
    assert total == 2
    assert items[0].proposal["reasons"] == ["A reader expected an answer."]


async def test_a_disputed_answer_is_shown_with_its_text_and_the_reason(
    app: App, tmp_path: Path, memory_on: None
) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    question, who = "How is a broth seasoned?", LOCAL
    answer = await app.ask(question, scope=who.access, owner=who.owner)
    await app.conversations.add("kitchen-talk", who, "Why?", "Because.")
    await app.conversations.add("kitchen-talk", who, question, answer.text, trace_id=answer.trace_id)
    await app.feedback.give(answer.trace_id, thumbs="down", caller=who)
    await app.feedback.give(answer.trace_id, thumbs="down", reason="It has no salt.", caller=who)
    [listed], _ = await app.review.waiting()
    assert listed.proposal["text"] == answer.text
    shown = await app.review.get(str(listed.item_id))
    assert shown.proposal["feedback"] == ["It has no salt."]
    assert [each["code"] for each in shown.proposal["reason_statements"]] == ["reader_found_wrong"]
    editor = replace(LOCAL, role="editor")
    assert "feedback" not in (await app.review.get(str(listed.item_id), caller=editor)).proposal


async def test_corrected_questions_suggest_entries_of_the_lexicon(app: App, tmp_path: Path) -> None:
    rows = [
        {
            "id": "1",
            "title": "정기주차권의 발급",
            "text": "정기주차권은 총무처에서 발급한다.",
            "category_path": ["총무"],
        },
        {"id": "2", "title": "휴학", "text": "휴학원은 학과에 낸다.", "category_path": ["학사"]},
    ]
    await app.ingest([written(tmp_path / "rules.jsonl", rows)])
    [permit] = await passages_of(app, "정기주차권의 발급")
    who, foreign = await caller(app, "총무"), await caller(app, "학사")
    for question in ("차댈곳은 얼마예요?", "차댈곳 신청은 어디서 하나요?"):
        declined = OfferedAnswer(
            question=question, reasons=(Statement("", "No answer."),), confidence=0.1, decision="abstain"
        )
        assert await app.review.offer_answer(declined, who.access)
        item = (await app.review.waiting())[0][0]
        await app.review.correct(str(item.item_id), "", passages=[permit])
    for viewer in (LOCAL, who):
        [best, *_] = await app.lexicon.suggest(await app.review.corrections(caller=viewer))
        assert (best.spoken, best.support, set(best.official)) == ("차댈곳", 2, {"정기주차권", "발급"})
    assert await app.lexicon.suggest(await app.review.corrections(caller=foreign), 1) == []
    assert await app.lexicon.suggest(await app.review.corrections(), 3) == []
    added = await app.lexicon.add_toml(as_toml([best]))
    assert [entry.spoken for entry in added] == [("차댈곳",)]
    assert await app.lexicon.suggest(await app.review.corrections()) == []


async def test_the_most_confident_answer_gives_way_in_a_full_queue(app: App, store: Store) -> None:
    store.rows(
        "insert into review_queue (item_id, kind, node_id, proposal, confidence, status, created_at)"
        """ select gen_random_uuid(), 'answer', 0, '{"question_hash": "", "document_ids": [], "grant": null}',"""
        "  0.3 + n / 10000.0, 'waiting', now() from generate_series(1, 1000) n"
    )
    best = "select max(confidence) from review_queue"
    surest = store.value(best)
    low, high = (
        OfferedAnswer(question=question, reasons=(), confidence=confidence, decision="review")
        for question, confidence in (("Low?", 0.2), ("High?", 0.9))
    )
    assert not await app.review.offer_answer(high, None)
    assert store.value(best) == surest
    assert await app.review.offer_answer(low, None)
    assert store.value("select count(*) from review_queue") == 1_000
    assert store.value(best) < surest
    assert (await app.review.waiting(1))[0][0].proposal["question"] == "Low?"


async def test_unsure_answers_wait_where_the_setting_says_so(databases: Databases, tmp_path: Path) -> None:
    async with open_app(databases.settings()) as app:
        await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
        assert "review queue" not in str((await app.ask("How is a broth seasoned?")).notes)
        assert await app.review.waiting() == ([], 0)
        settings = replace(app.settings, review_below=1.0)
    async with open_app(settings) as app:
        who = await caller(app, "House/Kitchen")
        answer = await app.ask("How is a broth seasoned?", scope=who.access)
        assert str(IN_REVIEW) in answer.notes
        assert str(IN_REVIEW) in (await app.ask("How is a broth seasoned?", scope=who.access)).notes
        [item], total = await app.review.waiting(caller=who)
        assert total == 1
        assert (item.agent_id, item.proposal["question"]) == (None, "How is a broth seasoned?")
        assert "is below the limit" in item.proposal["reasons"][0]
        assert await app.review.waiting(caller=await caller(app, "House/Garden")) == ([], 0)
        shown = await app.review.get(str(item.item_id), caller=who)
        cited = {citation.chunk_id for citation in answer.citations}
        assert {row["chunk_id"] for row in shown.proposal["passages"] if row["cited"]} == cited
    with pytest.raises(InvalidInput, match="DTRAG_REVIEW_BELOW"):
        async with open_app(replace(settings, review_below=1.5)):
            pass


async def test_decisions_are_recorded_without_text(app: App, tmp_path: Path) -> None:
    lines: list[tuple[str, str, dict[str, Any]]] = []

    async def record(actor: str, action: str, **line: Any) -> None:
        lines.append((actor, action, line))

    app.review._record = record
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(3))])
    await app.ingest([one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")])
    item = await only_item(app)
    await app.review.correct(str(item.item_id), "House/Garden", "a secret note")
    [(actor, action, line)] = lines
    assert (actor, action, line["decision"], line["scope"]) == ("local", "review.correct", "done", None)
    assert line["subjects"] == [str(item.item_id), str(item.document_id)]
    assert "secret" not in str(lines)


@pytest.mark.parametrize("name", ["' or 1=1 --", "%s", "a/b/c/d/e/f/g/h/i", "../Garden", "House/\u202eGarden", ""])
async def test_hostile_paths_correct_nothing(app: App, tmp_path: Path, name: str) -> None:
    await app.ingest([written(tmp_path / "shelf.jsonl", shelf(2))])
    await app.ingest([one(tmp_path / "new.jsonl", "Ledger", "The ledger lists debits and credits.")])
    item = await only_item(app)
    with pytest.raises(InvalidInput):
        await app.review.correct(str(item.item_id), name)
    for unknown in ("", "x", "' or 1=1 --", "6f0d9a52-0c3e-4b7c-9a39-0d3a3a8e4d11"):
        with pytest.raises(NotFound):
            await app.review.approve(unknown)
    await only_item(app)
