"""Own entries of the lexicon on the sample regulations: they apply to the next question of every app on the database,
and wrong ones do no harm to questions in the words of the regulations."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag.app import App, open_app
from dtrag.current_app import active
from dtrag.errors import NoActiveApp, NotFound
from dtrag.regulations.korean.lexicon import Entry, Lexicon, built_in
from dtrag.regulations.lexicon import MultiStageQueryExpander
from dtrag.regulations.pack import RegulationRanking
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.settings import Settings
from tests.store import Databases

FIRST = 3
"""A question in the words of an article must find it among this many results."""


@pytest.fixture
def settings(databases: Databases, regulation_book: str) -> Settings:
    return databases.settings(regulation_book)


@pytest_asyncio.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    async with open_app(settings) as opened:
        yield opened


async def labels(app: App, question: str) -> list[str]:
    results = await app.regulations.search(question)
    return [f"{result.metadata['regulation']} {result.metadata['article']}" for result in results]


async def test_a_change_applies_to_the_next_question_of_another_app(app: App, settings: Settings) -> None:
    question = "뽀로로는 어떻게 되나요"
    async with open_app(settings) as other:
        before = await labels(other, question)
        assert (await labels(other, question)) == before, "the second result is from the cache"
        await app.lexicon.add("뽀로로", "수업연한")
        assert (await labels(other, question))[0] == "학칙 제3조"
        await other.lexicon.remove("뽀로로")
        assert await labels(app, question) == before
        assert await labels(other, question) == before
    lines = [row.entry for row in await app.audit.newest(limit=10)]
    changes = [(line.actor, line.action, line.details["spoken"]) for line in lines if "lexicon" in line.action]
    assert changes == [("local", "lexicon.remove", ["뽀로로"]), ("local", "lexicon.add", ["뽀로로"])]


async def test_the_query_expander_uses_the_own_entries_of_the_open_app(
    app: App, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtrag.current_app._opened", [app])  # other tests of the session may have apps open
    expander = MultiStageQueryExpander()
    assert expander.expand("뽀로로는 어떻게 되나요").stage1_synonyms == ()
    await app.lexicon.add("뽀로로", "수업연한")
    assert expander.expand("뽀로로는 어떻게 되나요").stage1_synonyms == ("수업연한",)
    assert "수업연한" in expander.expand("뽀로로는 어떻게 되나요").final_expanded
    stored = (await app.index.snapshot()).settings
    async with open_app(settings) as other:  # as another process does
        await other.lexicon.remove("뽀로로")
        await other.lexicon.add("뽀로로", "재입학")
        with pytest.raises(NoActiveApp):
            active()
        assert expander.expand("뽀로로는 어떻게 되나요").stage1_synonyms == (), (
            "several apps are open: built-in entries"
        )
    assert (await app.index.snapshot()).settings != stored
    await app.search("뽀로로는 어떻게 되나요")
    assert expander.expand("뽀로로는 어떻게 되나요").stage1_synonyms == ("재입학",)
    own = Lexicon.of([Entry(("뽀로로",), ("정정기간",))])
    assert MultiStageQueryExpander(lexicon=own).expand("뽀로로").stage1_synonyms == ("정정기간",)


async def test_an_explained_search_lists_what_the_lexicon_added(app: App) -> None:
    question = "뽀로로, 학교를 잠깐 쉬고 싶어요"
    await app.lexicon.add("뽀로로", "수업연한")
    plain, without = await app.search(question, 10)
    results, metrics = await app.search(question, 10, explain=True)
    assert without.expansions == ()
    assert [(row.chunk_id, row.hybrid_score) for row in results] == [(row.chunk_id, row.hybrid_score) for row in plain]
    own = next(expansion for expansion in metrics.expansions if expansion.field == "own")
    assert (own.words, own.form, own.matched_by) == (("뽀로로",), "뽀로로", "words")
    assert [term.text for term in own.official] == ["수업연한"]
    built = [expansion for expansion in metrics.expansions if expansion.field != "own"]
    assert any("휴학" in term.text for expansion in built for term in expansion.official)
    entries = {(form, word) for entry in built_in().entries for form in entry.spoken for word in entry.official}
    for expansion in built:
        assert set(expansion.words) <= {"학교를", "잠깐", "쉬고", "싶어요"}
        assert all((expansion.form, term.text) in entries for term in expansion.official)
        assert all(0 < term.weight <= 1 for term in expansion.official)
    added = {term.text for expansion in metrics.expansions for term in expansion.official}
    first = results[0].explanation
    assert first is not None
    assert first.expansions
    assert added.issuperset(first.expansions)
    assert all(word in f"{results[0].title} {results[0].text}" for word in first.expansions if " " not in word)
    assert (await app.search(question, 5, explain=True, mode="lexical"))[1].expansions == ()


async def test_a_search_without_regulations_in_scope_has_no_expansions(databases: Databases, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("# 휴학\n\n휴학은 신청해야 한다.\n", "utf-8")
    async with open_app(databases.settings()) as opened:
        assert not (await opened.ingest(note, "Notes")).failed
        _, metrics = await opened.search("학교를 잠깐 쉬고 싶어요", 5, explain=True)
    assert metrics.expansions == ()


def shuffled(entries: Sequence[Entry], seed: int) -> list[Entry]:
    """The entries with the official words of others."""
    official = [entry.official for entry in entries]
    random.Random(seed).shuffle(official)
    return [Entry(entry.spoken, words, entry.field) for entry, words in zip(entries, official, strict=True)]


def wrong_own_entries(titles: Sequence[str], seed: int) -> list[tuple[str, str]]:
    """The titles of the articles, each as the everyday form of another one."""
    others = list(titles)
    random.Random(seed).shuffle(others)
    pairs = zip(titles, others, strict=True)
    return [(title, other) for title, other in pairs if title != other]


async def titles_of(app: App) -> dict[str, str]:
    """Article -> its title."""
    titles = {}
    for regulation in await app.regulations.regulations():
        for number in range(1, regulation.articles + 1):
            with suppress(NotFound):  # articles such as 제4조의2 are counted, too
                shown = await app.regulations.show(f"{regulation.name} 제{number}조")
                if shown.title:  # deleted articles have none
                    titles[shown.name] = shown.title
    return titles


async def answered(app: App, lexicon: Lexicon | None, questions: Mapping[str, str]) -> set[str]:
    """The questions whose article is among the first results."""
    engine = HybridSearchEngine(
        app.embedder,
        app.index,
        enable_caching=False,
        normalization="absolute",
        analyzer=app.analyzer,
        pack=RegulationRanking(app.index, lexicon),
    )
    right = set()
    for question, label in questions.items():
        results, _ = await engine.search(question, FIRST)
        if label in {f"{row.metadata.get('regulation')} {row.metadata.get('article')}" for row in results}:
            right.add(question)
    return right


async def test_wrong_entries_leave_articles_findable_by_their_own_words(app: App) -> None:
    """Official words of all built-in entries exchanged, then every title as an everyday form of another title."""
    titles = await titles_of(app)
    by_title = {f"{title}에 관한 사항": label for label, title in titles.items()}
    by_name = {f"{label.partition(' ')[0]}의 {title}에 관한 사항": label for label, title in titles.items()}
    right = await answered(app, None, by_title)
    assert len(right) >= 0.95 * len(by_title) > 70
    assert right <= await answered(app, Lexicon.of(shuffled(built_in().entries, 0)), by_title)

    added = await app.lexicon.add_all(wrong_own_entries(list(dict.fromkeys(titles.values())), 0))
    assert len(added) > 70
    assert await answered(app, None, by_name) == set(by_name)
    lost = right - await answered(app, None, by_title)
    assert len(lost) <= 0.1 * len(right), lost
