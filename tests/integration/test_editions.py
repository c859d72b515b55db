"""Editions on a real database: searches, lists, statistics and hops see what is valid on a day, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Collection
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.lexical.snapshot import DatedPassages, View
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.stores.taxonomy_moves import rehome
from dtrag.app import App, open_app
from dtrag.core.access import confinement
from dtrag.core.access.scope import EVERYTHING, Access, Grant
from dtrag.core.documents import DOCUMENT_NAMESPACE
from dtrag.core.editions import Edition, edition_id, new_work_id
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import term_id, terms
from dtrag.errors import InvalidInput, NotFound
from dtrag.ingestion.sources import Source
from dtrag.pipeline.state import PipelineRequest
from dtrag.ports import Models, StoredWork
from dtrag.settings import Settings
from tests.amendments import TITLES, History, histories, write_books
from tests.store import Databases
from tests.toy import ToyEmbedder

TODAY = date.today()


@pytest.fixture(scope="module")
def made() -> list[History]:
    return histories(seed=5, works=10)


@pytest_asyncio.fixture(scope="module")
async def amended(
    databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory, made: list[History]
) -> AsyncIterator[App]:
    """An app with every edition, each file read on its own: as they would have been published."""
    folder = tmp_path_factory.mktemp("editions")
    async with open_app(databases_of_module.settings()) as opened:
        report = await opened.ingest(list(write_books(made, folder)), "Rules")
        assert not report.failed and not report.removed
        yield opened


def regulation(day: str, text: str, *, name: str = "차량관리규정", more: str = "") -> str:
    return (
        f"# {name}\n\n## 제1조(목적)\n\n이 규정은 차량의 운행을 정함을 목적으로 한다.\n\n## 제2조(배차)\n\n{text}\n\n"
        f"## 제3조(운행)\n\n운행은 제2조의 배차를 받은 사람이 한다.\n\n## 부칙\n\n이 규정은 {day}부터 시행한다.{more}\n"
    )


async def ingest(app: App, folder: Path, name: str, text: str, category: str | None = "Rules") -> str:
    (folder / name).write_text(text, "utf-8")
    report = await app.ingest(folder / name, category)
    assert not report.failed
    return report.document_ids[0] if report.document_ids else ""


async def found(app: App, query: str, as_of: object = None, scope: object = None) -> list[str]:
    results, _ = await app.search(query, 50, as_of=as_of, scope=scope)  # type: ignore[arg-type]
    return [result.text for result in results]


async def test_a_search_returns_the_texts_that_were_valid_on_the_day(amended: App, made: list[History]) -> None:
    everything = {(history.name, number): history.markers(number) for history in made for number in history.numbers()}
    checked = 0
    for history in made:
        for day in history.days()[::2]:
            texts = " ".join(await found(amended, f"{history.name}의 기준", day.isoformat()))
            for (name, number), markers in everything.items():
                owner = next(other for other in made if other.name == name)
                expected = owner.valid(number, day)
                leaked = [marker for marker in markers if f"{marker} " in texts and marker != expected]
                assert leaked == [], (name, number, day)
                if name == history.name and expected:
                    assert f"{expected} " in texts, (name, number, day)
                    checked += 1
    assert checked > 200


async def test_an_article_is_shown_and_cited_as_of_a_day(amended: App, made: list[History]) -> None:
    history = next(history for history in made if any(edition.later for edition in history.editions))
    edition = next(edition for edition in history.editions if edition.later)
    number, later = next(iter(edition.later.items()))
    for day in (edition.day - timedelta(1), edition.day, later - timedelta(1), later):
        expected = history.valid(number, day)
        listed = await amended.regulations.regulations(history.name, as_of=day)
        assert [summary.name for summary in listed] == [history.name]
        if expected is None:
            continue
        shown = await amended.regulations.show(f"{history.name} 제{number}조", as_of=day)
        assert f"{expected} " in shown.text


async def test_statistics_and_lists_count_what_is_valid_today(amended: App, made: list[History]) -> None:
    now = [
        marker
        for history in made
        for number in history.numbers()
        if (marker := history.valid(number, TODAY)) is not None
    ]
    [word] = {term_id(term) for term in terms("담당")}
    await amended.index.snapshot()
    statistics = await amended.index.statistics([word], EVERYTHING)
    assert statistics.document_frequency(word) == len(now)
    at_first = await amended.index.statistics([word], EVERYTHING.at(date(2000, 1, 1)))
    assert (at_first.chunks, at_first.document_frequency(word)) == (0, 0)
    valid = [history for history in made if history.repealed_on is None or history.repealed_on > TODAY]
    assert len(valid) == len(await amended.regulations.regulations())
    listed = [document.title for document in await amended.documents()]
    assert (await amended.counts())[0] == len(listed) >= len(valid), "two of a work while a change of it waits"
    assert set(listed) == {history.name for history in valid}


async def test_lists_and_counts_have_both_editions_while_a_change_waits(amended: App, made: list[History]) -> None:
    edition, later = next(
        (edition, max(edition.later.values())) for history in made for edition in history.editions if edition.later
    )
    taxonomy = (await amended.index.snapshot()).taxonomy
    totals = set[tuple[int, int]]()
    for day in (edition.day - timedelta(1), edition.day, later - timedelta(1), later):
        scope = EVERYTHING.at(day)
        results, _ = await amended.search("제1조 규정의 기준", 50, as_of=day, mode="lexical")
        listed = await amended.index.documents(scope, taxonomy, limit=1_000)
        documents, passages = await amended.index.counts(scope)
        assert {str(result.metadata["document_id"]) for result in results} <= {str(row.document_id) for row in listed}
        assert (len(listed), passages) == (documents, (await amended.index.statistics([], scope)).chunks)
        totals.add((documents, passages))
    assert len(totals) > 1


@pytest.mark.parametrize("mode", ["lexical", "strict", "vector", "hybrid"])
async def test_every_mode_leaves_superseded_texts_out(settings: Settings, tmp_path: Path, mode: str) -> None:
    async with connect(settings) as database, App(settings, database, Models(embedder=ToyEmbedder())) as app:
        await check_mode(app, tmp_path, mode)


async def check_mode(app: App, tmp_path: Path, mode: str) -> None:
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "The vehicle fee is forty coins at the north gate."))
    await ingest(app, tmp_path, "b.md", regulation("2023. 3. 1.", "The vehicle fee is fifty coins at the north gate."))
    for as_of, word in ((None, "fifty"), ("2021-01-01", "forty"), ("2023-02-28", "forty"), ("2023-03-01", "fifty")):
        results, _ = await app.search("vehicle fee coins", 50, mode=mode, as_of=as_of)
        priced = [result.text for result in results if "coins" in result.text]
        assert len(priced) == 1 and word in priced[0], (mode, as_of)
    results, _ = await app.search("vehicle fee coins", 50, mode=mode, as_of="2019-01-01")
    assert results == []


async def test_the_same_date_replaces_and_another_date_adds(app: App, tmp_path: Path) -> None:
    first = await ingest(app, tmp_path, "rule.md", regulation("2020. 3. 1.", "배차는 서른 번까지 한다."))
    again = await ingest(app, tmp_path, "rule.md", regulation("2020. 3. 1.", "배차는 마흔 번까지 한다."))
    assert again == first
    newer = await ingest(app, tmp_path, "rule.md", regulation("2024. 3. 1.", "배차는 쉰 번까지 한다."))
    assert newer != first
    results, _ = await app.search("배차", as_of="2021-01-01")
    assert any("마흔" in result.text for result in results)
    assert not any("서른" in text or "쉰" in text for text in await found(app, "배차", "2021-01-01"))
    assert not any("마흔" in text for text in await found(app, "배차"))
    assert (await app.counts())[0] == 1


async def test_editions_that_are_ingested_at_the_same_time_are_one_work(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_too_early(names: Collection[tuple[str, str]]) -> list[StoredWork]:
        return []

    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 한 번."))
    monkeypatch.setattr(app._writer, "works", read_too_early)  # as both see the index when they begin together
    await ingest(app, tmp_path, "b.md", regulation("2024. 3. 1.", "배차는 두 번."))
    texts = await found(app, "배차")
    assert any("두 번" in text for text in texts) and not any("한 번" in text for text in texts)


async def test_a_regulation_may_be_repealed_twice(app: App, tmp_path: Path) -> None:
    repeal = "\n\n제2조(폐지) 「차량관리규정」은 폐지한다."
    for year, name, more in (
        (2016, "차량관리규정", ""),
        (2018, "가규정", repeal),
        (2020, "차량관리규정", ""),
        (2022, "나규정", repeal),
    ):
        await ingest(
            app, tmp_path, f"{year}.md", regulation(f"{year}. 3. 1.", f"배차는 {year}번.", name=name, more=more)
        )
    for year in (2016, 2018, 2020, 2022):
        listed = [summary.name for summary in await app.regulations.regulations(as_of=f"{year}-06-01")]
        assert ("차량관리규정" in listed) == (year in (2016, 2020)), year


async def test_the_id_of_an_edition_follows_from_its_work_and_date(app: App, tmp_path: Path) -> None:
    first = await ingest(app, tmp_path, "one.md", regulation("2020. 3. 1.", "배차는 한 번."))
    second = await ingest(app, tmp_path, "two.md", regulation("2024. 3. 1.", "배차는 두 번."))
    [work] = await app._writer.works([("", "차량관리규정")])
    assert first == str(edition_id(work.work_id, date(2020, 3, 1)))
    assert second == str(edition_id(work.work_id, date(2024, 3, 1)))


async def test_citations_are_verified_as_of_a_day(app: App, tmp_path: Path) -> None:
    older = regulation("2020. 3. 1.", "배차는 한 번.").replace("(운행)", "(주행)")
    await ingest(app, tmp_path, "a.md", older)
    await ingest(app, tmp_path, "b.md", regulation("2024. 3. 1.", "① 배차는 한 번.\n\n② 배차는 두 번."))
    text = "차량관리규정 제3조(주행)과 제2조제2항"
    for day, expected in ((None, ["title_mismatch", "exists"]), ("2021-01-01", ["exists", "missing"])):
        verified = await app.regulations.verify(text, as_of=day)
        assert [citation.status for citation in verified.citations] == expected


async def test_an_edition_joins_only_the_work_of_its_category(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "open.md", regulation("2020. 3. 1.", "배차는 한 번."), "Open")
    await ingest(app, tmp_path, "hidden.md", regulation("2024. 3. 1.", "배차는 두 번."), "Hidden")
    taxonomy = (await app.index.snapshot()).taxonomy
    only = Access((Grant.of([CategoryPath.parse("Open")], taxonomy),))
    assert any("한 번" in text for text in await found(app, "배차", scope=only))
    assert {work.node_id for work in await app._writer.works([("", "차량관리규정")])} == {
        taxonomy.find(CategoryPath.parse("Open")),
        taxonomy.find(CategoryPath.parse("Hidden")),
    }
    await ingest(app, tmp_path, "newer.md", regulation("2025. 3. 1.", "배차는 세 번."), "Open")
    assert not any("한 번" in text for text in await found(app, "배차", scope=only))


async def test_no_edition_decides_about_one_in_another_category(app: App, tmp_path: Path) -> None:
    """Whatever moved documents of one work to several categories, each category has a validity of its own."""
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 한 번."), "Open")
    moved = await ingest(app, tmp_path, "b.md", regulation("2024. 3. 1.", "배차는 두 번."), "Open")
    await ingest(app, tmp_path, "plain.txt", "Kettles boil.", "Hidden")
    taxonomy = (await app.index.snapshot()).taxonomy
    only = Access((Grant.of([CategoryPath.parse("Open")], taxonomy),))
    hidden = taxonomy.find(CategoryPath.parse("Hidden"))
    assert hidden is not None
    async with app.database.connection("owner") as connection, connection.transaction():
        assert await rehome(connection, {UUID(moved): hidden}) == 1
    for day in (None, "2021-01-01"):
        results, _ = await app.search("배차", as_of=day, scope=only)
        assert any("한 번" in result.text for result in results)
        assert not any("superseded_from" in result.metadata for result in results)
    (tmp_path / "c.md").write_text(regulation("2024. 3. 1.", "배차는 세 번."), "utf-8")
    report = await app.ingest_sources([Source.of(tmp_path / "c.md")], "Open", scope=only)
    assert not report.failed and report.document_ids not in ([moved], [])
    assert any("세 번" in text for text in await found(app, "배차", scope=only))
    assert not any("한 번" in text for text in await found(app, "배차", scope=only))
    await app.delete_document(report.document_ids[0])
    assert any("한 번" in text for text in await found(app, "배차", scope=only))
    proposed = await app.taxonomy.propose([{"op": "merge", "paths": ["Hidden"], "into": "Open"}])
    await app.taxonomy.activate(proposed.version)
    assert not any("한 번" in text for text in await found(app, "배차"))
    await app.taxonomy.rollback("1.0.0")
    assert any("한 번" in text for text in await found(app, "배차", scope=only))


async def test_an_undated_regulation_takes_the_date_of_the_option(app: App, tmp_path: Path) -> None:
    text = regulation("공포한 날", "배차는 한 번.")
    (tmp_path / "rule.md").write_text(text, "utf-8")
    await app.ingest(tmp_path / "rule.md", "Rules")
    assert [summary.name for summary in await app.regulations.regulations(as_of="1990-01-01")] == ["차량관리규정"]
    await app.ingest(tmp_path / "rule.md", "Rules", effective="2022-03-01")
    assert await app.regulations.regulations(as_of="2022-02-28") == []
    assert len(await app.regulations.regulations(as_of="2022-03-01")) == 1
    assert (await app.counts())[0] == 1
    plain = tmp_path / "policy.txt"
    plain.write_text("The travel policy allows trains only.", "utf-8")
    await app.ingest(plain, "Rules", work="Travel policy", effective="2021-01-01")
    plain.write_text("The travel policy allows trains and buses.", "utf-8")
    await app.ingest(plain, "Rules", work="Travel policy", effective="2023-01-01")
    assert await found(app, "travel policy", "2022-01-01") == ["The travel policy allows trains only."]
    assert [text for text in await found(app, "travel policy") if "travel" in text] == [
        "The travel policy allows trains and buses."
    ]
    plain.write_text("The travel policy allows trains and ships.", "utf-8")
    report = await app.ingest(plain, "Rules")
    assert any("that of the index still counts" in str(note) for note in report.notes)
    assert await found(app, "travel policy", "2022-01-01") == ["The travel policy allows trains only."]
    assert [text for text in await found(app, "travel policy") if "ships" in text]
    with pytest.raises(InvalidInput, match="effective is a date"):
        await app.ingest(plain, "Rules", work="Travel policy", effective="2023")


async def test_a_future_edition_waits_for_its_day(app: App, tmp_path: Path) -> None:
    soon = TODAY + timedelta(days=40)
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 한 번."))
    (tmp_path / "b.md").write_text(regulation(f"{soon.year}. {soon.month}. {soon.day}.", "배차는 두 번."), "utf-8")
    report = await app.ingest(tmp_path / "b.md", "Rules")
    assert any("take effect later" in str(note) and str(soon) in str(note) for note in report.notes)
    assert any("한 번" in text for text in await found(app, "배차"))
    assert any("두 번" in text for text in await found(app, "배차", soon))
    assert not any("두 번" in text for text in await found(app, "배차"))
    (tmp_path / "a.md").unlink()
    report = await app.ingest(tmp_path, "Rules", prune="all")
    assert report.removed == 1 and await found(app, "배차") == []
    assert any("두 번" in text for text in await found(app, "배차", soon))


async def test_pruning_keeps_superseded_editions_unless_it_is_told_to_remove_them(app: App, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "2020.md").write_text(regulation("2020. 3. 1.", "배차는 한 번."), "utf-8")
    (folder / "2024.md").write_text(regulation("2024. 3. 1.", "배차는 두 번."), "utf-8")
    (folder / "other.md").write_text(regulation("2024. 3. 1.", "주차는 세 번.", name="주차관리규정"), "utf-8")
    await app.ingest(folder, "Rules")
    (folder / "2020.md").unlink()
    report = await app.ingest(folder, "Rules", prune=True)
    assert report.removed == 0 and any("한 번" in text for text in await found(app, "배차", "2021-01-01"))
    assert (await app.ingest(folder, "Rules", prune=True)).pruned == []
    (folder / "2024.md").rename(folder / "renamed.md")
    await app.ingest(folder, "Rules", prune=True)
    assert any("한 번" in text for text in await found(app, "배차", "2021-01-01"))
    assert any("두 번" in text for text in await found(app, "배차"))
    (folder / "2020.md").write_text(regulation("2020. 3. 1.", "배차는 한 번."), "utf-8")
    assert (await app.ingest(folder, "Rules", prune=True, prune_editions=True)).removed == 0
    assert any("한 번" in text for text in await found(app, "배차", "2021-01-01"))
    with pytest.raises(InvalidInput, match="below folders"):
        await app.ingest(folder / "2020.md", "Rules", prune_editions=True)
    (folder / "2020.md").unlink()
    report = await app.ingest(folder, "Rules", prune=True, prune_editions=True)
    assert report.removed == 1 and await found(app, "배차", "2021-01-01") == []
    assert any("두 번" in text for text in await found(app, "배차"))


async def test_an_edition_stays_while_any_file_contains_it(app: App, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    for name in ("a.md", "b.md", "c.md"):
        (folder / name).write_text(regulation("2024. 3. 1.", "배차는 한 번."), "utf-8")
        await app.ingest(folder / name, "Rules")
    (folder / "a.md").rename(folder / "renamed.md")
    assert (await app.ingest(folder, "Rules", prune=True)).removed == 0
    for owner in ("renamed.md", "c.md"):
        [summary] = await app.documents()
        assert owner in summary.source_url
        (folder / owner).unlink()
        report = await app.ingest(folder, "Rules", prune="all")
        assert (report.removed, report.pruned) == (0, [str(folder / owner)])
        assert any("한 번" in text for text in await found(app, "배차"))
    (folder / "b.md").write_text(regulation("2024. 3. 1.", "배차는 두 번."), "utf-8")
    (folder / "other.md").write_text("Nothing.", "utf-8")
    await app.ingest(folder, "Rules")
    assert any("두 번" in text for text in await found(app, "배차"))
    (folder / "b.md").unlink()
    assert (await app.ingest(folder, "Rules", prune="all")).removed == 1
    assert await found(app, "배차") == []


async def test_a_removed_successor_does_not_revive_the_edition_before_it(app: App, tmp_path: Path) -> None:
    both = regulation("2024. 3. 1.", "배차는 두 번.") + "\n" + regulation("2024. 3. 1.", "주차.", name="주차관리규정")
    await ingest(app, tmp_path, "book.md", regulation("2020. 3. 1.", "배차는 한 번."))
    await ingest(app, tmp_path, "book.md", both)
    await ingest(app, tmp_path, "book.md", regulation("2025. 3. 1.", "주차 금지.", name="주차관리규정"))
    assert not any("배차는" in text for text in await found(app, "배차는"))
    assert any("한 번" in text for text in await found(app, "배차는", "2024-02-01"))
    assert await app.reindex() > 0
    assert not any("배차는" in text for text in await found(app, "배차는"))
    await ingest(app, tmp_path, "again.md", regulation("2020. 3. 1.", "배차는 한두 번."))
    assert not any("배차는" in text for text in await found(app, "배차는"))
    assert any("한두 번" in text for text in await found(app, "배차는", "2024-02-01"))


async def test_a_date_that_is_corrected_to_an_earlier_one_leaves_the_regulation_valid(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "a.md", regulation("2024. 3. 10.", "배차는 한 번."))
    await ingest(app, tmp_path, "a.md", regulation("2024. 3. 1.", "배차는 한 번."))
    assert any("한 번" in text for text in await found(app, "배차"))
    assert any("한 번" in text for text in await found(app, "배차", "2024-03-05"))
    assert (await app.counts())[0] == 1


async def test_a_deleted_edition_gives_way_to_the_one_before_it(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 한 번."))
    wrong = await ingest(app, tmp_path, "b.md", regulation("2024. 3. 1.", "배차는 두 번."))
    await app.delete_document(wrong)
    assert any("한 번" in text for text in await found(app, "배차"))


async def test_editions_of_one_work_are_deleted_at_the_same_time(app: App, tmp_path: Path) -> None:
    keys = [
        await ingest(app, tmp_path, f"{year}.md", regulation(f"{year}. 3. 1.", f"배차는 {year}일 전에 신청한다."))
        for year in range(2016, 2024)
    ]
    deleted = await asyncio.gather(*(app.delete_document(key) for key in keys[1:]), return_exceptions=True)
    assert [outcome for outcome in deleted if isinstance(outcome, BaseException)] == []
    [text] = [text for text in await found(app, "배차") if "일 전에" in text]
    assert "2016일 전에" in text


async def test_a_collection_from_before_editions_has_nothing_twice_when_it_is_read_again(
    app: App, tmp_path: Path
) -> None:
    path = tmp_path / "rule.md"
    path.write_text(regulation("2020. 3. 1.", "배차는 한 번."), "utf-8")
    await app.ingest(path, "Rules")
    async with app.database.connection("owner") as connection:  # as a version without editions left it
        await connection.execute("truncate passage_validity")
        await connection.execute(
            "update documents set work_code = null, work_name = null, work_id = null, effective_from = null"
        )
        await connection.execute("update sources set fingerprint = ''")
        await connection.execute("update documents set fingerprint = ''")
    await app.ingest(path, "Rules")
    assert (await app.counts())[0] == 1 and len(await found(app, "배차는 한 번")) == len(
        set(await found(app, "배차는 한 번"))
    )


async def test_a_decision_about_a_document_outlives_its_becoming_an_edition(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "kettles.txt", "Kettles boil.", "Kettles")
    undated = await ingest(app, tmp_path, "rule.md", regulation("공포한 날", "배차는 한 번."))
    kettles = (await app.index.snapshot()).taxonomy.find(CategoryPath.parse("Kettles"))
    async with app.database.connection("owner") as connection:
        signal = {"document_ids": [UUID(undated)], "node_id": kettles, "at": datetime.now(UTC), "by": "person"}
        await connection.execute(queries("review")["set_signals"], signal)
    dated = await ingest(app, tmp_path, "rule.md", regulation("2020. 3. 1.", "배차는 한 번."), None)
    assert dated != undated
    assert [work.node_id for work in await app._writer.works([("", "차량관리규정")])] == [kettles]


async def test_two_regulations_of_one_name_and_date_in_a_file_are_both_there(app: App, tmp_path: Path) -> None:
    text = regulation("2020. 3. 1.", "배차는 한 번.") + "\n" + regulation("2020. 3. 1.", "배차는 두 번.")
    await ingest(app, tmp_path, "book.md", text)
    texts = " ".join(await found(app, "배차는"))
    assert "한 번" in texts and "두 번" in texts


@pytest.mark.parametrize("title", TITLES[:1])
async def test_a_bad_day_is_refused_with_an_example(app: App, title: str) -> None:
    for call in (app.search(title, as_of="yesterday"), app.ask(title, as_of="2024")):
        with pytest.raises(InvalidInput, match="as_of is a date such as 2024-03-01"):
            await call


async def test_an_answer_says_what_the_reader_should_know_about_its_time(app: App, tmp_path: Path) -> None:
    transitional = "\n\n제2조(경과조치) 이 규정 시행 당시 종전의 제2조에 따라 신청한 사람은 종전의 규정에 따른다."
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 하루에 서른 번까지 한다."))
    await ingest(app, tmp_path, "b.md", regulation("2024. 3. 1.", "배차는 하루에 마흔 번까지 한다.", more=transitional))
    question = "차량관리규정 제2조의 배차는 하루에 몇 번까지 하나요?"
    answer = await app.ask(question)
    assert "마흔" in answer.text and "서른" not in answer.text
    assert "차량관리규정 제2조: 이 조문은 2024-03-01 개정되었습니다." in answer.notes
    assert any("부칙(2024-03-01)" in note and "종전의 제2조" in str(note) for note in answer.notes)
    before = await app.ask(question, as_of="2023-12-31")
    assert "서른" in before.text and "마흔" not in before.text
    assert not any("개정되었습니다" in str(note) for note in before.notes)
    assert "차량관리규정 제2조: 2024-03-01 전까지 시행되던 내용이며, 그 뒤에 바뀌었습니다." in before.notes
    response = await app.pipeline.execute(PipelineRequest(query=question, options={"as_of": "2023-12-31"}))
    assert "서른" in response.answer and response.citations[0].document_id == before.citations[0].document_id
    unchanged = await app.ask("차량관리규정 제3조의 운행은 누가 하나요?")
    assert not any("제3조" in note and "개정" in str(note) for note in unchanged.notes)


async def test_an_undated_regulation_says_that_it_has_no_dates(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "a.md", regulation("공포한 날", "배차는 하루에 서른 번까지 한다."))
    question = "차량관리규정 제2조의 배차는 하루에 몇 번까지 하나요?"
    answer = await app.ask(question, as_of="2023-12-31")
    assert "서른" in answer.text
    assert "차량관리규정에는 시행일이 없어, 2023-12-31 당시의 내용인지 알 수 없습니다." in answer.notes
    assert not any("시행일" in str(note) for note in (await app.ask(question)).notes)


BEFORE = "2020-05-01"


async def test_a_day_before_the_editions_is_not_searched_and_that_is_said(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "new.md", regulation("2024년 3월 1일", "배차는 총무과에서 한다."))
    await ingest(app, tmp_path, "old.md", regulation("2023년 3월 1일", "배차는 학과에서 한다."))
    korean = (
        f"{BEFORE} 당시의 내용이 저장되어 있지 않아 찾아보지 못한 규정이 있습니다(시행일이 있는 1개 가운데 1개): "
        "차량관리규정(2023-03-01부터)."
    )
    english = (
        f"No text of {BEFORE} is stored, and none was searched, of any dated regulation in scope: "
        "차량관리규정 (from 2023-03-01 on)."
    )
    for question, note in (("배차는 어디에서 하나요", korean), ("Where is the garage?", english)):
        results, metrics = await app.search(question, as_of=BEFORE)
        assert (results, metrics.notes[:1], str(metrics.missing_editions)) == ([], (note,), note)
        assert (await app.search(question, as_of=BEFORE))[1].notes == metrics.notes, "also from the cache"
        answer = await app.ask(question, as_of=BEFORE)
        assert note in answer.notes
        if note == english:  # nothing answers it today either
            assert answer.decision == "abstain" and answer.reason.startswith(note)
        else:
            assert answer.decision == "review" and not answer.citations
            assert "차량관리규정 제2조(2024-03-01부터 지금의 내용)" in answer.text
    for day in (None, "2023-03-01", TODAY):
        _, metrics = await app.search("배차는 어디에서 하나요", as_of=day)
        assert not metrics.missing_editions, "there is a text of that day"
    with pytest.raises(
        NotFound, match=r"whose text of 2020-05-01 .* 차량관리규정 제2조 \(this text since 2024-03-01\)"
    ):
        await app.regulations.show("차량관리규정 제2조", as_of=BEFORE)
    with pytest.raises(NotFound, match="No text of 2020-05-01 is stored") as refused:
        await app.regulations.show("차량관리규정 제9조", as_of=BEFORE)
    assert str(refused.value) == english


async def test_only_regulations_in_scope_are_named_as_missing(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "open.md", regulation("2019년 3월 1일", "배차는 총무과에서 한다."), "Open")
    await ingest(
        app, tmp_path, "later.md", regulation("2023년 3월 1일", "차고는 지하에 둔다.", name="차고규정"), "Open"
    )
    await ingest(app, tmp_path, "hidden.md", regulation("2022년 3월 1일", "금고는 잠근다.", name="금고규정"), "Hidden")
    taxonomy = (await app.index.snapshot()).taxonomy
    scope = Access((Grant.of([CategoryPath.parse("Open")], taxonomy),))
    _, metrics = await app.search("배차", as_of=BEFORE, scope=scope)
    assert "2개 가운데 1개): 차고규정(2023-03-01부터)." in str(metrics.missing_editions)
    assert "금고규정" not in str(metrics.missing_editions)
    _, everything = await app.search("배차", as_of=BEFORE)
    assert "3개 가운데 2개): 금고규정(2022-03-01부터), 차고규정" in str(everything.missing_editions)
    named = await app.ask("차고규정 제2조", as_of=BEFORE, scope=scope)
    assert named.decision == "review"
    assert "차고규정 제2조(2023-03-01부터 지금의 내용)" in named.text
    with pytest.raises(NotFound, match=r"차고규정 \(from 2023-03-01 on\)\. There is no regulation '차고규정'"):
        await app.regulations.show("차고규정 제9조", as_of=BEFORE, scope=scope)
    hidden = await app.ask("금고규정 제2조", as_of=BEFORE, scope=scope)
    assert "금고규정" not in " ".join((hidden.text.replace(hidden.question, ""), hidden.reason, *hidden.notes))


async def test_all_reads_of_a_run_see_its_day(app: App, tmp_path: Path) -> None:
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 서른 번."))
    await ingest(app, tmp_path, "b.md", regulation("2024. 3. 1.", "배차는 마흔 번."))
    with confinement.confined(EVERYTHING.at(date(2021, 1, 1))):
        assert not any("마흔" in text for text in await found(app, "배차"))
        assert "서른" in (await app.regulations.show("차량관리규정 제2조")).text
    assert "마흔" in (await app.regulations.show("차량관리규정 제2조")).text


async def test_a_regulation_is_compared_between_two_days(amended: App, made: list[History]) -> None:
    compared = 0
    for history in made[:6]:
        days = history.days()
        before, after = days[0] + timedelta(5), days[len(days) // 2]
        difference = await amended.regulations.diff(history.name, before, after)
        articles = {change.label: change for change in difference.changes if change.label != "부칙"}
        for number in history.numbers():
            old, new = history.valid(number, before), history.valid(number, after)
            change = articles.get(f"제{number}조")
            assert (change is not None) == (old != new), (history.name, number)
            if change is not None:
                assert change.change == ("added" if old is None else "deleted" if new is None else "amended")
                assert (old or "") in change.before and (new or "") in change.after
                compared += 1
    assert compared > 5
    with pytest.raises(NotFound, match="없는규정"):
        await amended.regulations.diff("없는규정", "2024-06-01", "2025-01-01")


async def test_what_editions_cost_is_paid_in_threads(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    of_rows, of_scope = DatedPassages.of, View.of

    def days_of(*arguments: Any) -> DatedPassages:
        threads.add(threading.get_ident())
        return of_rows(*arguments)

    def view_of(*arguments: Any) -> View:
        threads.add(threading.get_ident())
        return of_scope(*arguments)

    monkeypatch.setattr(DatedPassages, "of", days_of)
    monkeypatch.setattr(View, "of", view_of)
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 서른 번."))
    assert await found(app, "배차", "2021-01-01") and not await found(app, "배차", "2019-01-01")
    assert threads and threading.get_ident() not in threads


async def test_a_citation_is_stale_when_its_target_was_amended_later(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ingest(app, tmp_path, "a.md", regulation("2020. 3. 1.", "배차는 서른 번."))
    assert await app.regulations.stale() == []
    await ingest(app, tmp_path, "b.md", regulation("2024. 3. 1.", "배차는 마흔 번."))
    [stale] = await app.regulations.stale("차량관리규정")
    with monkeypatch.context() as patched:
        patched.setattr(app.regulations, "_store", None)
        assert await app.regulations.stale("차량관리규정") == [stale], "a second page reads no editions"
    assert (stale.source, stale.source_amended) == ("차량관리규정 제3조", "2020-03-01")
    assert (stale.target, stale.target_amended, stale.change) == ("차량관리규정 제2조", "2024-03-01", "amended")
    assert await app.regulations.stale(as_of="2023-01-01") == []
    deleted = regulation("2025. 3. 1.", "배차").replace("## 제2조(배차)\n\n배차\n", "## 제2조 삭제 <2025. 3. 1.>\n")
    await ingest(app, tmp_path, "c.md", deleted + "\n## 제4조(반납)\n\n반납한다.\n")
    [stale] = await app.regulations.stale()
    assert (stale.target, stale.target_amended, stale.change) == ("차량관리규정 제2조", "2025-03-01", "repealed")


async def test_addenda_and_what_did_not_change_are_not_stale(app: App, tmp_path: Path) -> None:
    """An addendum cites what it changes, and its name is that of the addenda of other years."""
    more = (
        "\n\n제2조의 개정규정은 다음 학기부터 적용한다.\n\n## 부칙\n\n이 규정은 2021년 3월 1일부터 시행한다.\n\n"
        "부칙 제2조에 따른다."
    )
    first = regulation("2020. 3. 1.", "① 배차는 서른 번.\n\n② 제1항의 신청은 전날에 한다.", more=more)
    first = first.replace("제2조의 배차를", "제2조제2항의 배차를").replace(
        "## 부칙", "## 제4조(준용)\n\n부칙을 따른다.\n\n## 부칙", 1
    )
    await ingest(app, tmp_path, "a.md", first)
    second = first.replace("2020. 3. 1.", "2024. 3. 1.").replace("서른", "마흔")
    await ingest(app, tmp_path, "b.md", second + "\n## 부칙\n\n이 규정은 2024년 3월 1일부터 시행한다.\n")
    cited = await app.regulations.citations(to="차량관리규정 제2조")
    assert [(row.source, row.text) for row in cited] == [
        ("차량관리규정 제3조", "제2조제2항"),
        ("차량관리규정 부칙", "제2조"),
    ], "제1항 in the article itself is not listed"
    assert await app.regulations.stale() == [], "only paragraph 1 changed, and paragraph 2 is cited"
    third = second.replace("2024. 3. 1.", "2025. 3. 1.").replace("전날에", "이틀 전에")
    await ingest(app, tmp_path, "c.md", third)
    assert [(row.source, row.target, row.text) for row in await app.regulations.stale()] == [
        ("차량관리규정 제3조", "차량관리규정 제2조", "제2조제2항")
    ]


async def test_the_id_of_an_edition_does_not_depend_on_categories_that_its_reader_cannot_see(
    databases: Databases, tmp_path: Path
) -> None:
    shared, hidden = tmp_path / "shared.md", tmp_path / "hidden.md"
    for file, text in ((shared, "배차는 총무처가 한다."), (hidden, "배차는 이사회가 한다.")):
        file.write_text(regulation("2024년 3월 1일", text), "utf-8")
    ids: list[set[UUID]] = []
    for files in ([(shared, "Rules"), (hidden, "Vault")], [(hidden, "Vault"), (shared, "Rules")]):
        async with open_app(databases.settings()) as app:
            for file, category in files:
                await app.ingest(file, category)
            rules = Access((Grant.of([CategoryPath.parse("Rules")], (await app.index.snapshot()).taxonomy),))
            ids.append({UUID(str(document.document_id)) for document in await app.documents(scope=rules)})
    assert len(ids[0]) == 1
    assert ids[0] == ids[1]


def test_a_work_that_begins_where_a_moved_one_began_has_another_id() -> None:
    taken = new_work_id(DOCUMENT_NAMESPACE, ["Rules"], Edition("차량관리규정"))
    assert new_work_id(DOCUMENT_NAMESPACE, ["Rules"], Edition("차량관리규정"), {taken}) != taken
