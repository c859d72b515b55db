"""Days before the only edition of a book: what the amendment marks prove answers, and everything else is named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag.app import App, open_app
from dtrag.core.access.scope import Access, Grant
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput, NotFound
from tests.store import Databases

DISPATCH = "차량 배차를 하루에 서른 번 신청할 수 있나요?"
PARKING = "주차 요금은 한 시간에 얼마인가요?"
VEHICLES = """# 차량관리규정

## 제1조(목적)

이 규정은 차량의 운행을 정함을 목적으로 한다.

## 제2조(배차)

배차는 하루에 서른 번까지 신청할 수 있다. <개정 2012. 3. 1.>

## 제3조(주차 요금)

① 주차 요금은 한 시간에 천 원이다. <개정 2012. 3. 1.>

② 심야 할증은 밤 열 시부터 두 배를 더한다. <개정 2020. 9. 1.>

## 제4조(정비)

정비 점검은 석 달마다 정비소에서 받는다. <개정 2022. 5. 1.>

## 제5조 삭제 <2021. 3. 1.>

## 부칙

1. 이 규정은 2005년 3월 1일부터 시행한다.

2. 이 규정은 2012년 3월 1일부터 시행한다.

3. 이 규정은 2020년 9월 1일부터 시행한다.

4. 이 규정은 2021년 3월 1일부터 시행한다.

5. 이 규정은 2022년 5월 1일부터 시행한다.
"""
DORMITORY = """# 기숙사규정

## 제1조(목적)

이 규정은 기숙사의 생활을 정함을 목적으로 한다.

## 제2조(외박)

외박은 한 달에 네 번까지 신고하고 할 수 있다.

## 제3조(정비)

기숙사 비품의 수선은 관리실에 신청한다.

## 부칙

이 규정은 2023년 3월 1일부터 시행한다.
"""


@pytest_asyncio.fixture(scope="module")
async def book(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """An app with one edition of each regulation."""
    folder: Path = tmp_path_factory.mktemp("book")
    async with open_app(databases_of_module.settings()) as opened:
        for name, text, category in (("a.md", VEHICLES, "Rules"), ("b.md", DORMITORY, "Homes")):
            (folder / name).write_text(text, "utf-8")
            assert not (await opened.ingest(folder / name, category)).failed
        yield opened


async def test_an_article_answers_on_a_day_since_its_newest_mark(book: App) -> None:
    today, answer = await book.ask(DISPATCH), await book.ask(DISPATCH, as_of="2015-06-01")
    assert answer.text == today.text and "서른 번" in answer.text
    assert "abstain" not in {answer.decision, today.decision}
    assert "당시의 내용" not in answer.reason
    assert "차량관리규정 제2조: 개정 표시에 따르면 2012-03-01부터 이 내용입니다." in answer.notes
    assert [citation.label for citation in answer.citations] == ["차량관리규정 제2조(배차)"]


@pytest.mark.parametrize(
    ("question", "day", "name", "since"),
    [
        ("정비 점검은 얼마마다 받나요?", "2015-06-01", "차량관리규정 제4조", "2022-05-01"),
        ("정비 점검은 얼마마다 받나요?", "2022-04-30", "차량관리규정 제4조", "2022-05-01"),
        ("밤 심야 할증은 몇 시부터인가요?", "2015-06-01", "차량관리규정 제3조제2항", "2020-09-01"),
        (DISPATCH, "2011-06-01", "차량관리규정 제2조", "2012-03-01"),
        ("기숙사 외박 신고는 한 달에 몇 번까지 하나요?", "2022-06-01", "기숙사규정 제2조", "2023-03-01"),
    ],
)
async def test_a_text_that_changed_later_is_named_and_not_quoted(
    book: App, question: str, day: str, name: str, since: str
) -> None:
    today = await book.ask(question)
    assert today.citations and name.startswith(today.citations[0].label.partition("(")[0])
    answer = await book.ask(question, as_of=day)
    assert answer.decision == "review"
    assert f"{name}({since}부터 지금의 내용)" in answer.reason
    assert today.citations[0].quote not in answer.text
    found, metrics = await book.search(question, as_of=day)
    assert any(f"{name}({since}부터 지금의 내용)" in note for note in metrics.notes), "the search says it, too"
    assert not any(today.citations[0].quote in passage.text for passage in found)


async def test_a_paragraph_answers_beside_one_that_changed_later(book: App) -> None:
    answer = await book.ask(PARKING, as_of="2015-06-01")
    assert answer.decision == "answer" and "천 원" in answer.text and "할증" not in answer.text
    notes = [note for note in answer.notes if note.startswith("차량관리규정 제3조")]
    assert notes == [
        "차량관리규정 제3조: 개정 표시에 따르면 2012-03-01부터 이 내용입니다.",
        "차량관리규정 제3조: 그 뒤에 개정되어 2015-06-01 당시 내용이 저장되어 있지 않은 항: 제2항 2020-09-01.",
    ]
    now = await book.ask(PARKING)
    assert not any("개정 표시" in note for note in now.notes)


async def test_a_provision_that_is_named_by_number_has_its_text_of_the_day(book: App) -> None:
    whole = await book.ask("차량관리규정 제2조", as_of="2015-06-01")
    assert whole.decision == "answer" and "서른 번" in whole.text
    in_part = await book.ask("차량관리규정 제3조", as_of="2015-06-01")
    assert in_part.decision == "review" and "천 원" in in_part.text and "할증" not in in_part.text
    assert "차량관리규정 제3조제2항(2020-09-01부터 지금의 내용)" in in_part.reason
    first = await book.ask("차량관리규정 제3조제1항", as_of="2015-06-01")
    assert first.decision == "answer" and "천 원" in first.text
    later = await book.ask("차량관리규정 제4조", as_of="2015-06-01")
    assert later.decision == "review" and not later.citations
    assert "차량관리규정 제4조(2022-05-01부터 지금의 내용)" in later.text and "없는 조항" not in later.text


async def test_a_deleted_article_existed_before_its_deletion(book: App) -> None:
    before = await book.ask("차량관리규정 제5조", as_of="2015-06-01")
    assert before.decision == "review" and "차량관리규정 제5조(2021-03-01 삭제)" in before.text
    after = await book.ask("차량관리규정 제5조", as_of="2021-06-01")
    assert after.decision == "abstain" and "삭제된 조항" in after.text
    beside = await book.ask(DISPATCH, as_of="2015-06-01")
    deleted = "차량관리규정: 2015-06-01에는 있었으나 그 뒤에 삭제되어 내용이 저장되어 있지 않은 조문: 제5조 2021-03-01."
    assert deleted in beside.notes
    with pytest.raises(NotFound, match=r"차량관리규정 제5조 \(deleted on 2021-03-01\)"):
        await book.regulations.show("차량관리규정 제5조", as_of="2015-06-01")
    assert (await book.regulations.show("차량관리규정 제5조", as_of="2021-06-01")).deleted


async def test_a_provision_is_shown_as_of_a_day_as_far_as_it_is_known(book: App) -> None:
    shown = await book.regulations.show("차량관리규정 제3조", as_of="2015-06-01")
    assert "천 원" in shown.text and "할증" not in shown.text and "② " in shown.text
    assert (shown.effective_from, shown.editions) == ("2012-03-01", ("2022-05-01",))
    with pytest.raises(
        NotFound, match=r"whose text of 2015-06-01 .* 차량관리규정 제4조 \(this text since 2022-05-01\)"
    ):
        await book.regulations.show("차량관리규정 제4조", as_of="2015-06-01")
    with pytest.raises(NotFound, match="제99조"):
        await book.regulations.show("차량관리규정 제99조", as_of="2015-06-01")


async def test_no_difference_is_invented_for_a_day_of_which_a_part_is_known(book: App) -> None:
    with pytest.raises((NotFound, InvalidInput), match="No edition of 차량관리규정 of 20"):
        await book.regulations.diff("차량관리규정", "2013-01-01", "2015-06-01")
    changes = (await book.regulations.diff("차량관리규정", "2015-06-01", "2023-06-01")).changes
    assert {change.change for change in changes} == {"added"}, "as before a first edition"


async def test_what_is_outside_the_scope_is_never_named(book: App) -> None:
    taxonomy = (await book.index.snapshot()).taxonomy
    scope = Access((Grant.of([CategoryPath.parse("Rules")], taxonomy),))
    for question in (
        "기숙사 외박 신고는 한 달에 몇 번까지 하나요?",
        "기숙사규정 제2조",
        "비품 수선은 어디에 신청하나요?",
    ):
        answer = await book.ask(question, as_of="2022-06-01", scope=scope)
        _, metrics = await book.search(question, as_of="2022-06-01", scope=scope)
        shown = " ".join((answer.text, answer.reason, *answer.notes, *metrics.notes))
        assert "기숙사규정" not in shown.replace(question, "")


async def test_a_failed_comparison_with_today_is_no_sure_answer(book: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(book.engine._pack, "changed", late)
    assert (await book.ask(PARKING)).decision == "answer"
    answer = await book.ask(PARKING, as_of="2015-06-02")
    assert answer.decision == "review" and "editions" in answer.degraded and "천 원" in answer.text
