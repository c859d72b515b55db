"""Regulations on a real database: one article whole, citations, hops in a search, and a branch out of sight."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import dtrag
from dtrag.app import App, open_app
from dtrag.core.access.confinement import confined
from dtrag.core.access.scope import EVERYTHING, Access, Grant, Scope, Viewer
from dtrag.core.answers.citation_labels import cited_label
from dtrag.core.chat import Message
from dtrag.core.editions import parse_date
from dtrag.core.provisions import Amendment, ProvisionCitation
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import DatabaseUnavailable, InvalidInput, NotFound
from dtrag.pipeline.retrieve import paths_in_active_tree
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import PipelineState
from dtrag.ports import IndexSnapshot
from dtrag.regulations.collection_reader import CollectionReader, read_ahead
from dtrag.regulations.korean.citations import citations
from dtrag.regulations.korean.collection import CitableProvision, Collection
from dtrag.regulations.korean.lexicon import Lexicon, built_in
from dtrag.regulations.pack import RegulationRanking
from dtrag.retrieval.config import LINKED_AFTER
from tests.store import Databases

OPEN_RULE = """# 차량관리규정

## 제1조(목적)

이 규정은 차량의 배차와 운행을 정함을 목적으로 한다.

## 제2조(배차)

배차는 「비밀차고규정」 제2조에 따르고, 기록은 보관규정 제3조에 따른다.

## 제3조(운행)

① 운행은 제2조의 배차를 받은 사람이 한다.

② 전항의 운행에는 별표 1을 적용한다.
"""
HIDDEN_RULE = """# 비밀차고규정

## 제1조(목적)

이 규정은 차고의 위치를 정함을 목적으로 한다.

## 제2조(위치)

차고는 본관 지하에 둔다.
"""


@pytest_asyncio.fixture(scope="module")
async def app(
    databases_of_module: Databases, regulation_book: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[App]:
    folder = tmp_path_factory.mktemp("regulations")
    async with open_app(databases_of_module.settings(regulation_book)) as opened:
        for name, text, category in (("open", OPEN_RULE, "Open"), ("hidden", HIDDEN_RULE, "Hidden")):
            (folder / f"{name}.md").write_text(text, "utf-8")
            assert not (await opened.ingest(folder / f"{name}.md", category)).failed
        yield opened


async def only(app: App, *paths: str) -> Access:
    taxonomy = (await app.index.snapshot()).taxonomy
    return Access((Grant.of([CategoryPath.parse(path) for path in paths], taxonomy),))


async def test_an_article_is_shown_whole_with_its_citations(app: App) -> None:
    shown = await app.regulations.show("학칙 제15조")
    assert (shown.name, shown.regulation, shown.title, shown.kind) == ("학칙 제15조", "학칙", "제적", "article")
    _, text = await app.document(shown.document_id)
    assert [text[start:end] for start, end in shown.spans] == [shown.text]
    assert shown.text.startswith("① 총장은") and shown.text.endswith("주어야 한다.")
    assert [citation.targets for citation in shown.citations][:2] == [("학칙 제9조",), ("학칙 제13조",)]


async def test_every_citation_is_in_the_text_of_its_source(app: App) -> None:
    citations = await app.regulations.citations()
    assert len(citations) > 50
    assert {"internal", "other-regulation", "appendix"} <= {citation.kind for citation in citations}
    for source in dict.fromkeys(citation.source for citation in citations):
        shown = await app.regulations.show(source)
        own = [citation for citation in citations if citation.source == source]
        assert [shown.text[citation.start : citation.end] for citation in own] == [citation.text for citation in own]
        assert list(shown.citations) == own


async def test_every_target_can_be_shown(app: App) -> None:
    names = {regulation.name for regulation in await app.regulations.regulations()}
    for citation in await app.regulations.citations():
        for target in citation.targets:
            assert target in names or (await app.regulations.show(target)).name == target


async def test_amendments_and_dates_are_shown(app: App) -> None:
    article = await app.regulations.show("학칙 제12조")
    assert article.amendments == (Amendment("개정", "2024-03-01", 1), Amendment("개정", "2024-03-01", 3))
    assert (article.deleted, article.repealed, article.effective_dates) == (False, False, ())
    assert article.effective_date == "2024-03-01"
    added = await app.regulations.show("학칙 제12조의2")
    assert added.amendments == (Amendment("신설", "2019-03-01"),)
    assert (await app.regulations.show("학칙 부칙")).effective_dates == ("2001-03-01", "2023-03-01", "2024-03-01")


async def test_what_remains_of_a_deleted_article_is_shown(app: App) -> None:
    shown = await app.regulations.show("학칙 제8조")
    assert (shown.deleted, shown.text, shown.citations) == (True, "삭제 <2022. 9. 1.>", ())
    assert shown.amendments == (Amendment("삭제", "2022-09-01"),)
    _, text = await app.document(shown.document_id)
    assert [text[start:end] for start, end in shown.spans] == [shown.text]
    assert shown.source_url == (await app.regulations.show("학칙 제9조")).source_url


async def test_provisions_are_linked_both_ways(app: App) -> None:
    appendix = await app.regulations.show("장학금지급규정 별표 1")
    assert appendix.named_by
    for name in appendix.named_by:
        assert appendix.name in (await app.regulations.show(name)).names
    addenda = await app.regulations.show("학칙 부칙")
    assert "학칙 제12조" in addenda.names
    assert "학칙 부칙" in (await app.regulations.show("학칙 제12조")).named_by


async def test_addenda_of_several_years_are_shown_together(app: App) -> None:
    shown = await app.regulations.show("학칙 부칙")
    assert len(shown.spans) == 3
    assert all(citation.targets != ("학칙 제1조",) for citation in shown.citations), "its own articles are no citations"


async def test_citations_of_one_regulation(app: App) -> None:
    citations = await app.regulations.citations("차량관리규정")
    assert {citation.source.partition(" ")[0] for citation in citations} == {"차량관리규정"}
    with pytest.raises(NotFound, match="Nearest: 차량관리규정"):
        await app.regulations.citations("차량관리규칙")


async def test_a_citation_into_a_hidden_branch_is_text_only(app: App) -> None:
    scope = await only(app, "Open")
    found = {citation.text: citation for citation in await app.regulations.citations(scope=scope)}
    hidden, nowhere = found["「비밀차고규정」 제2조"], found["보관규정 제3조"]
    assert (hidden.kind, hidden.targets) == (nowhere.kind, nowhere.targets) == ("missing", ())
    everything = {citation.text: citation for citation in await app.regulations.citations("차량관리규정")}
    assert everything["「비밀차고규정」 제2조"].targets == ("비밀차고규정 제2조",)


async def test_a_hidden_regulation_does_not_exist_for_the_caller(app: App) -> None:
    scope = await only(app, "Open")
    assert [regulation.name for regulation in await app.regulations.regulations(scope=scope)] == ["차량관리규정"]
    with pytest.raises(NotFound) as hidden:
        await app.regulations.show("비밀차고규정 제2조", scope=scope)
    known = "There is no regulation '비밀차고규정' that you may see. "
    known += "Nearest: 차량관리규정. All of them: dtrag regulations list"
    assert str(hidden.value) in {known, known.replace("Nearest: 차량관리규정. ", "")}
    results = await app.regulations.search("차고 위치와 배차", scope=scope)
    assert results and {result.metadata["regulation"] for result in results} == {"차량관리규정"}


async def test_a_search_puts_what_the_first_articles_cite_behind_the_first_places(app: App) -> None:
    scope = await only(app, "Book")
    results, metrics = await app.search("장학금 신청 방법", top_k=15, scope=scope)
    assert metrics.degraded == ()
    cited = {place: result for place, result in enumerate(results) if "cited_by" in result.metadata}
    assert cited and min(cited) == LINKED_AFTER, "the first places never move"
    before = {f"{result.metadata['regulation']} {result.metadata['article']}" for result in results[:LINKED_AFTER]}
    reached = before | {f"{found.metadata['regulation']} {found.metadata['article']}" for found in cited.values()}
    for found in cited.values():
        assert found.metadata["cited_by"] in reached
        source = await app.regulations.show(str(found.metadata["cited_by"]), scope=scope)
        target = f"{found.metadata['regulation']} {found.metadata['article']}"
        assert any(target in citation.targets for citation in source.citations)
    assert len({result.chunk_id for result in results}) == len(results)


async def test_citations_of_an_answer_are_followed_inside_the_scope_and_the_filter(app: App) -> None:
    book, opened = await only(app, "Book"), await only(app, "Open")
    results, _ = await app.search("첫 학기 휴학의 제한과 신청 절차", top_k=15, scope=book)
    (limits,) = [result for result in results if result.metadata["article"] == "제12조의2"]
    followed, cited = await app.engine.followed([limits], scope=book)
    labels = [cited_label(passage) for passage in cited]
    assert any(label.startswith("학칙 제12조의2에 따라 학사운영규정 제11조") for label in labels), labels
    for citation in followed:
        assert citation.chunk_id == limits.chunk_id
        assert set(citation.cited) <= {passage.chunk_id for passage in cited}
    assert (await app.engine.followed([limits], scope=opened)) == ([], [])
    nowhere = {"taxonomy_paths": ["Open"]}
    assert (await app.engine.followed([limits], nowhere, scope=book))[1] == []


async def test_hops_stay_inside_the_filter(app: App) -> None:
    """What is cited outside the branches that a search is narrowed to stays outside."""
    results, _ = await app.search("배차 운행", top_k=10, filters={"taxonomy_paths": ["Open"]})
    assert results and {result.metadata["regulation"] for result in results} == {"차량관리규정"}


async def test_a_search_continues_when_citations_cannot_be_read(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*arguments: object) -> None:
        raise DatabaseUnavailable(reason="for the test")

    monkeypatch.setattr("dtrag.regulations.pack.follow_citations", broken)
    results, metrics = await app.search("등록금 반환은 언제까지인가요", top_k=9)
    assert results and metrics.degraded == ("citations",)


async def test_long_articles_are_read_for_citations_in_a_thread(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte takes a second: other requests of the process must not wait for it."""
    threads: dict[str, int] = {}
    read = Collection.cited_names

    def watched(collection: Collection, source: CitableProvision, text: str) -> tuple[str, ...]:
        threads[source.name] = threading.get_ident()
        return read(collection, source, text)

    monkeypatch.setattr(Collection, "cited_names", watched)
    long = "활주로의 점검은 제1조에 따른다. " + "활주로는 매일 점검하고 그 결과를 기록한다. " * 300
    for name, paragraph in (("활주로관리규정", long), ("격납고관리규정", "격납고의 점검은 제1조에 따른다.")):
        text = f"# {name}\n\n## 제1조(목적)\n\n이 규정은 시설을 정한다.\n\n## 제2조(점검)\n\n{paragraph}\n"
        text += "\n## 제3조(기록)\n\n시설의 점검은 기록한다.\n"
        (tmp_path / "rule.md").write_text(text, "utf-8")
        await app.ingest(tmp_path / "rule.md", name)
        scope = await only(app, name)
        for _ in range(2):  # the second one finds what the first one read
            await app.search("점검 시설", top_k=9, scope=scope)
    assert threads["격납고관리규정 제2조"] == threading.get_ident() != threads["활주로관리규정 제2조"]
    assert threads["활주로관리규정 제1조"] == threads["활주로관리규정 제2조"], "all sources of one hop together"
    assert len(threads) == 6


async def test_the_first_thousand_characters_of_a_question_are_interpreted(app: App) -> None:
    short, metrics = await app.search("등록금 반환 " * 20, top_k=5)
    assert short and not any("characters" in note for note in metrics.notes)
    long, metrics = await app.search("등록금 반환 " * 300, top_k=5)
    note = "The regulation pack interpreted the first 1,000 characters of the question only."
    assert long and note in metrics.notes
    assert short[0].chunk_id == long[0].chunk_id


async def test_both_parts_of_a_question_are_among_the_first_five(app: App) -> None:
    question = "등록금 반환은 언제까지 신청하고 재입학 허가는 누가 하나요?"
    results = await app.regulations.search(question, scope=await only(app, "Book"))
    scores = [result.hybrid_score for result in results]
    assert scores == sorted(scores, reverse=True)
    titles = [str(result.metadata["article_title"]) for result in results[:5]]
    for subject in ("반환", "재입학"):
        assert any(subject in title for title in titles), titles


async def test_concurrent_questions_read_the_collection_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, reader = await app.index.snapshot(), CollectionReader(app._collections.store)
    lists: list[Scope] = []
    versions = reader.store.versions

    async def counted(scope: Scope) -> Mapping[uuid.UUID, bytes]:
        lists.append(scope)
        return await versions(scope)

    monkeypatch.setattr(reader.store, "versions", counted)
    collections = await asyncio.gather(*(reader.read(snapshot, EVERYTHING) for _ in range(20)))
    assert len(lists) == 1
    assert all(collection is collections[0] for collection in collections)


async def test_a_collection_outlives_writes_that_do_not_change_it(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another document nor a day in the same period lets citations be read again; another text of a
    regulation only its own."""

    async def collection(day: str | None = None) -> Collection:
        scope = EVERYTHING.at(parse_date("as_of", day))
        return await app._collections.read(await app.index.snapshot(), scope)

    async def written(name: str, text: str) -> None:
        (tmp_path / name).write_text(text, "utf-8")
        await app.ingest(tmp_path / name, "Later")

    rule = "# 활주로규정\n\n## 제1조(목적)\n\n{}\n\n## 제2조(점검)\n\n학칙 제1조와 제1조에 따른다.\n"
    await written("rule.md", rule.format("활주로의 점검을 정한다."))
    before, listed = await collection(), await app.regulations.citations()
    texts: list[str] = []

    def watched(text: str, *arguments: Any) -> list[ProvisionCitation]:
        texts.append(text)
        return citations(text, *arguments)

    monkeypatch.setattr("dtrag.regulations.korean.collection.citations", watched)
    await written("note.txt", "The kettle whistles.")
    assert await collection() is before is await collection("2099-01-01")
    assert await app.regulations.citations() == listed and not texts
    await written("rule.md", rule.format("활주로의 점검은 제2조에 따른다."))
    after = await collection()
    assert after is not before and after.catalog is before.catalog
    assert [row.text for row in await app.regulations.citations("활주로규정")] == ["제2조", "학칙 제1조와 제1조"]
    assert len(await app.regulations.citations()) == len(listed) + 1
    assert texts == ["활주로의 점검은 제2조에 따른다."]
    await written("rule.md", rule.format("활주로의 점검은 제2조에 따른다.") + "\n## 제3조(기록)\n\n기록한다.\n")
    assert (await collection()).catalog is not before.catalog


async def test_loading_the_app_reads_regulations_ahead(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Articles are not analysed again by the first question, and a caller still sees its own branch only."""
    await app.load()
    assert await read_ahead(app.index, app._collections) > 20

    def never(*arguments: object) -> None:
        raise AssertionError("analysed again")

    monkeypatch.setattr("dtrag.regulations.korean.term_coverage.PieceTerms.of", never)
    monkeypatch.setattr("dtrag.regulations.korean.collection.citations", never)
    assert (await app.regulations.search("배차 운행"))[0].metadata["regulation"] == "차량관리규정"
    monkeypatch.undo()
    results = await app.regulations.search("차고 위치와 배차", scope=await only(app, "Open"))
    assert results and {result.metadata["regulation"] for result in results} == {"차량관리규정"}
    monkeypatch.setattr("dtrag.regulations.collection_reader.CACHED_PIECES", 20)
    assert await read_ahead(app.index, app._collections) == 0, "more than the caches can hold"


async def test_the_number_of_results_is_the_requested_one(app: App) -> None:
    assert len(await app.regulations.search("휴학", 4)) == 4
    assert len(await app.regulations.search("휴학")) == 5
    assert len(await app.regulations.search("휴학 어떻게 하나요")) == 10
    with pytest.raises(InvalidInput, match="top_k"):
        await app.regulations.search("휴학", 0)


async def test_a_regulation_that_is_replaced_is_read_again(app: App, tmp_path: Path) -> None:
    file = tmp_path / "bicycles.md"
    file.write_text(OPEN_RULE.replace("차량", "자전거"), "utf-8")
    await app.ingest(file, "Bicycles")
    assert "배차" in (await app.regulations.show("자전거관리규정 제2조")).text
    file.write_text(OPEN_RULE.replace("차량", "자전거").replace("배차는", "대여는"), "utf-8")
    await app.ingest(file, "Bicycles")
    shown = await app.regulations.show("자전거관리규정 제2조")
    assert shown.text.startswith("대여는")
    await app.delete_document(shown.document_id)
    with pytest.raises(NotFound):
        await app.regulations.show("자전거관리규정 제2조")


async def test_a_search_that_cannot_read_the_names_says_so_and_is_not_cached(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise DatabaseUnavailable(reason="for the test")

    with monkeypatch.context() as patched:
        patched.setattr("dtrag.regulations.pack.named_passages", broken)
        results, metrics = await app.search("장학금 규정 제5조", top_k=9)
    assert results and metrics.degraded == ("references",)
    results, metrics = await app.search("장학금 규정 제5조", top_k=9)
    assert (metrics.degraded, metrics.cache_hit) == ((), False)
    first = results[0].metadata
    assert (first["regulation"], first["article"]) == ("장학금지급규정", "제5조")


async def test_citations_that_take_too_long_are_left_out(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*arguments: object) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr("dtrag.regulations.pack.follow_citations", late)
    started = time.monotonic()
    results, metrics = await app.search("재입학은 언제 할 수 있나요", top_k=9)
    assert results and metrics.degraded == ("citations",)
    assert time.monotonic() - started < 3


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """ "lexicon" when the built-in lexicon is loaded, as in a new process, and "retrieve" when the step's time runs."""
    recorded: list[str] = []

    @functools.cache
    def load() -> Lexicon:
        recorded.append("lexicon")
        return built_in()

    async def paths(state: PipelineState, run: Run) -> list[list[str]] | None:
        recorded.append("retrieve")
        return await paths_in_active_tree(state, run)

    monkeypatch.setattr("dtrag.regulations.lexicon.built_in", load)
    monkeypatch.setattr("dtrag.pipeline.retrieve.paths_in_active_tree", paths)
    return recorded


async def test_the_lexicon_is_loaded_for_korean_questions_and_regulations_only(app: App, events: list[str]) -> None:
    english = "How many days of leave are there?"
    pack = RegulationRanking(app.index)
    assert pack.id == "auto:built-in"
    await pack.load(english)
    await pack.load(english, Scope(frozenset()))
    await pack.load("1234", EVERYTHING)
    await RegulationRanking(app.index, mode="off").load("휴학", EVERYTHING)
    assert not events
    await pack.load("휴학은 몇 학기까지 돼요")
    assert events == ["lexicon"]
    await pack.load(None)
    await pack.load(english, EVERYTHING)
    assert events == ["lexicon"], "once per process"


@pytest.mark.parametrize("arguments", [(None, None), ("leave of absence", EVERYTHING)])
async def test_the_lexicon_is_loaded_for_any_question_and_for_english_ones_to_regulations(
    app: App, events: list[str], arguments: tuple[str | None, Viewer | None]
) -> None:
    await RegulationRanking(app.index).load(*arguments)
    assert events == ["lexicon"]


async def test_a_database_that_does_not_answer_delays_no_question(app: App, events: list[str]) -> None:
    class Broken(RegulationRanking):
        async def _contains_regulations(self, snapshot: IndexSnapshot, scope: Scope) -> bool:
            raise DatabaseUnavailable("not now")

    await Broken(app.index).load("leave of absence", EVERYTHING)
    assert not events


async def test_the_first_english_question_loads_the_lexicon_before_its_time_runs(app: App, events: list[str]) -> None:
    await app.ask("May a student take a leave of absence for five terms?")
    assert events == ["lexicon", "retrieve"]
    events.clear()
    await app.ask("Who grants a leave of absence?", scope=Scope(frozenset()))
    assert events == ["retrieve"]


async def test_a_question_for_an_article_is_answered_with_its_whole_text(app: App) -> None:
    for question, reference in (
        ("학칙 제15조", "학칙 제15조"),
        ("학칙 15조 알려줘", "학칙 제15조"),
        ("장학금 규정 5조", "장학금지급규정 제5조"),
        ("제12조의2는 뭐야?", "학칙 제12조의2"),
    ):
        answer = await app.ask(question)
        shown = await app.regulations.show(reference)
        assert [citation.quote for citation in answer.citations] == [shown.text], question
        assert (answer.decision, answer.confidence) == ("answer", 1.0)
        assert [(citation.start, citation.end) for citation in answer.citations] == list(shown.spans)
        results = await app.regulations.search(question)
        assert f"{results[0].metadata['regulation']} {results[0].metadata['article']}" == reference
    assert "\n1. 정당한 이유 없이" in (await app.ask("학칙 제15조")).text, "items stay on lines of their own"
    paragraph = await app.ask("학칙 12조 3항")
    assert [citation.quote[0] for citation in paragraph.citations] == ["③"]


async def test_a_reference_that_means_several_articles_is_asked_back(app: App) -> None:
    answer = await app.ask("제5조 알려줘")
    assert (answer.decision, answer.citations) == ("abstain", ())
    assert "어느 규정" in answer.text and "- 학칙 제5조(수업일수)" in answer.text
    assert "찾지 못했습니다" not in answer.text
    open_only = await app.ask("제2조 알려줘", scope=await only(app, "Open"))
    assert {citation.label.partition(" ")[0] for citation in open_only.citations} == {"차량관리규정"}
    deleted = await app.ask("학칙 제8조")
    assert "삭제된 조항입니다 (2022-09-01)" in deleted.text
    missing = await app.ask("학칙 제99조 보여줘")
    assert "제1조~제7조" in missing.text


async def test_the_conversation_tells_which_regulation_is_meant(app: App) -> None:
    history: list[Message] = []
    for question, label in (
        ("제5조 알려줘", None),
        ("학칙이요", "학칙 제5조(수업일수)"),
        ("그럼 7조는?", "학칙 제7조(입학시기)"),
    ):
        answer = await app.pipeline.execute(question, history=history)
        assert [citation.label for citation in answer.citations] == ([label] if label else []), answer.answer
        history += [Message("user", question), Message("assistant", answer.answer)]


async def test_hops_start_from_passages_of_the_open_app(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without stores; the hidden rule is followed by its readers only."""
    monkeypatch.setattr("dtrag.current_app._opened", [app])  # other tests of the session may have apps open
    results, _ = await app.search("차량의 배차와 운행", 20)
    [start] = [r.chunk_id for r in results if (r.title, r.metadata.get("article")) == ("차량관리규정", "제3조")]
    retriever = dtrag.MultiHopRetriever(least_relevance=0)
    found = await retriever.retrieve("차고의 위치와 배차", [start, "unknown"])
    assert found.initial_results == (start, "unknown")
    passages = await app.index.fetch(found.hop_results, EVERYTHING, (await app.index.snapshot()).taxonomy)
    reached = [(passages[hop.chunk_id].title, hop.citation, hop.number) for hop in found.hops]
    assert reached[0] == ("차량관리규정", "차량관리규정 제2조", 1)
    assert ("비밀차고규정", "비밀차고규정 제2조", 2) in reached
    assert found.hops_performed == 2
    assert {hop.source_id for hop in found.hops} <= set(found.all_results)
    with confined(await only(app, "Open")):
        narrow = await retriever.retrieve("차고의 위치와 배차", [start])
    assert narrow.hops_performed == 1
    assert not {hop.chunk_id for hop in found.hops if hop.number == 2} & set(narrow.hop_results)
    with pytest.raises(InvalidInput, match="or neither of them"):
        dtrag.MultiHopRetriever(object())  # type: ignore[call-overload]


def test_an_engine_explains_what_a_wrong_index_is() -> None:
    with pytest.raises(InvalidInput, match=r"db_manager is a str, which is not an index. Pass .*db_manager=app.index"):
        dtrag.HybridSearchEngine(db_manager="postgresql://localhost/x")  # type: ignore[arg-type]


async def test_the_index_is_read_again_after_a_write(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await app._collections.read(await app.index.snapshot(), EVERYTHING)
    (tmp_path / "new.md").write_text("# 도서관규정\n\n제1조(목적) 이 규정은 도서관의 운영을 정한다.", "utf-8")
    await app.ingest([tmp_path])
    before = app.index.latest
    task = app._index_reading._task
    assert before is not None
    assert task is not None
    await asyncio.wait_for(task, 30)
    latest = app.index.latest
    assert latest is not None
    assert latest.generation > before.generation
    monkeypatch.setattr(app._collections.store, "versions", None)  # nothing is left to read
    assert await app._collections.read(latest, EVERYTHING)
    assert await app.index.snapshot() is latest
