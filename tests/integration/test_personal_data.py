"""Documents with personal data: marked, masked with exact citations, and read again under another mode."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dtrag.app import App, open_app
from dtrag.core.text.personal_data import FILL
from dtrag.delivery.cli.checks import Report, examine
from dtrag.errors import InvalidInput
from dtrag.settings import Settings
from tests.store import Databases, Store

PHONE, RESIDENT = "010-2345-6789", "900101-1234568"
MASK = f"[phone{FILL * 6}]"
TEXT = (
    f"# Staff\n\nThe warden of the dormitory is called at {PHONE} after six.\n\n## Garden\n\n"
    "The garden is watered daily.\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "files"
    path.mkdir()
    (path / "staff.md").write_text(TEXT)
    row = {"id": "1", "title": "학적", "text": f"김하늘의 주민등록번호는 {RESIDENT}이다.", "metadata": {"phone": PHONE}}
    (path / "rows.jsonl").write_text(json.dumps(row, ensure_ascii=False))
    (path / "plain.md").write_text("# Stairs\n\nThe stairs are swept on Monday.\n")
    return path


async def checks(settings: Settings) -> list[tuple[str, str, str]]:
    report: Report = await examine(settings)
    return [(check.state, check.detail, check.advice) for check in report.checks if check.name == "personal data"]


async def test_marking_names_the_kinds(databases: Databases, folder: Path) -> None:
    settings = databases.settings(pii="mark")
    async with open_app(settings) as app:
        await app.ingest(folder)
        kinds = {document.title: document.metadata.get("personal_data") for document in await app.documents()}
        assert kinds == {"Staff": "phone", "학적": "phone,resident", "Stairs": None}
        results, _ = await app.search("warden of the dormitory", mode="lexical")
        assert PHONE in results[0].text
        assert results[0].metadata["personal_data"] == "phone"
        [garden] = [result for result in (await app.search("garden", mode="lexical"))[0] if "watered" in result.text]
        assert garden.chunk_id != results[0].chunk_id
        answer = await app.ask(f"Who is called at {PHONE}?")
        assert answer is not None
    assert await checks(settings) == [("ok", "mark; documents with phone in 2, resident in 1", "")]


async def test_masked_citations_are_exact(databases: Databases, folder: Path) -> None:
    settings = databases.settings(pii="mask", trace_text="on")
    async with open_app(settings) as app:
        await app.ingest(folder)
        assert (await app.ingest(folder)).unchanged == 3
        [staff] = [document for document in await app.documents() if document.title == "Staff"]
        _, text = await app.document(staff.document_id)
        assert text == TEXT.strip("\n").replace("# Staff", "Staff").replace("## Garden", "Garden").replace(PHONE, MASK)
        for query in ("warden of the dormitory", "garden watered"):
            results, _ = await app.search(query, mode="lexical")
            assert text[results[0].start : results[0].end] == results[0].text
        answer = await app.ask("When is the warden of the dormitory called?")
        [citation] = answer.citations
        assert MASK in citation.quote
        assert text[citation.start : citation.end] == citation.quote
        assert (await app.search(PHONE, mode="lexical"))[0] == []
    databases.store(settings).assert_whole()


async def test_regulations_keep_their_articles(databases: Databases, tmp_path: Path) -> None:
    book = tmp_path / "book.md"
    book.write_text(
        "# 기숙사 규정\n\n## 제1조(목적) 이 규정은 기숙사를 정한다.\n\n"
        f"## 제2조(사감) ① 사감의 전화번호는 {PHONE}이다.\n\n② 제12조의2에 따른다.\n"
    )
    settings = databases.settings(pii="mask")
    async with open_app(settings) as app:
        await app.ingest(book)
        results, _ = await app.search("사감 전화번호", mode="lexical")
        assert f"전화번호는 {MASK}이다" in results[0].text
        assert results[0].metadata.get("personal_data") == "phone"
        _, text = await app.document(results[0].metadata["document_id"])
        assert text[results[0].start : results[0].end] == results[0].text


async def test_another_mode(databases: Databases, folder: Path) -> None:
    settings = databases.settings()
    store = databases.store(settings)
    async with open_app(settings) as app:
        await app.ingest(folder)
    assert await checks(settings) == []
    masking, marking = replace(settings, pii="mask"), replace(settings, pii="mark")
    [_, (state, detail, advice)] = await checks(masking)
    assert (state, advice) == ("warn", "dtrag reindex")
    assert detail == "3 documents were read with another mode or other rules (off)."
    ids = [row[0] for row in store.rows("select document_id from documents order by 1")]
    async with open_app(marking) as app:
        assert await app.reindex() == 3
        assert {document.metadata.get("personal_data") for document in await app.documents()} == {
            None, "phone", "phone,resident",
        }  # fmt: skip
    async with open_app(masking) as app:
        await app.reindex()
        assert PHONE not in str(store.rows("select d::text from documents d union all select c::text from chunks c"))
        results, _ = await app.search("warden of the dormitory", mode="lexical")
        assert MASK in results[0].text
        assert results[0].metadata["personal_data"] == "phone"
    assert [row[0] for row in store.rows("select document_id from documents order by 1")] == ids
    store.assert_whole()
    assert await checks(masking) == [("ok", "mask; documents with phone in 2, resident in 1", "")]
    async with open_app(settings) as app:  # what is masked stays masked until its file is read again
        await app.reindex()
        assert MASK in (await app.search("warden of the dormitory", mode="lexical"))[0][0].text
    [_, (state, detail, advice)] = await checks(settings)
    assert (state, advice) == ("warn", "dtrag ingest the original files again")
    async with open_app(settings) as app:
        assert (await app.ingest(folder)).documents == 3
        assert PHONE in (await app.search("warden of the dormitory", mode="lexical"))[0][0].text
    assert await checks(settings) == []


async def test_names_of_files(databases: Databases, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in (PHONE, "010-2345-0000"):
        (folder / f"kim_{number}.txt").write_text("The garden is watered.")
    settings = databases.settings(pii="mask")
    async with open_app(settings) as app:
        await app.ingest(folder)
        documents = await app.documents()
        assert [document.title for document in documents] == [f"kim_{MASK}"] * 2
        assert len({document.document_id for document in documents}) == 2
        assert (await app.ingest(folder, prune=True)).unchanged == 2
        (folder / f"kim_{PHONE}.txt").rename(folder / "lee_010-7777-8888.txt")
        report = await app.ingest(folder, prune=True)
        assert (len(report.renamed), report.removed) == (1, 0)
        assert {document.title for document in await app.documents()} == {f"kim_{MASK}", f"lee_{MASK}"}
        (folder / "lee_010-7777-8888.txt").unlink()
        assert (await app.ingest(folder, prune="all")).removed == 1
    store: Store = databases.store(settings)
    assert "2345" not in str(store.rows("select d::text from documents d union all select s::text from sources s"))


async def test_own_rules(databases: Databases, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rules]]\nname = 'employee'\npattern = 'E\\d{6}'\nwords = ['사번']\n")
    (tmp_path / "a.txt").write_text("김하늘의 사번 E123456")
    settings = databases.settings(pii="mask", pii_rules=rules)
    async with open_app(settings) as app:
        await app.ingest(tmp_path / "a.txt")
        [document] = await app.documents()
        assert document.metadata["personal_data"] == "employee"
        assert (await app.document(document.document_id))[1] == f"김하늘의 사번 {FILL * 7}"
    rules.write_text("[[rules]]\nname = 'employee'\npattern = 'E+'\n")
    with pytest.raises(InvalidInput, match="Rule 1"):
        async with open_app(replace(settings, pii_rules=tmp_path / ".." / tmp_path.name / "rules.toml")):
            pass


async def test_nothing_is_different_when_off(app: App, folder: Path, store: Store) -> None:
    await app.ingest(folder)
    assert store.rows("select distinct personal_data from documents") == [("",)]
    assert {document.metadata.get("personal_data") for document in await app.documents()} == {None}
