"""`/overview`: what a caller may ask about in the own branches, and what the settings add for the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtrag.delivery.api.presentation import MAX_EXAMPLES, MAX_QUESTION, Presentation
from dtrag.errors import InvalidInput
from dtrag.settings import Settings
from tests.api.confined import CANARY, House, house
from tests.api.shape import FORM, form
from tests.api.test_keys import client_of
from tests.cases import each
from tests.store import Databases


async def test_branches_and_examples_are_those_of_the_scope(built: House) -> None:
    boss = await built.client("boss", None, "admin")
    kim = await built.client("kim", ["AI"], "reader")
    lee = await built.client("lee", ["AI/ML", "학사"], "reader")
    whole, part, narrow = [(await client.get("/overview")).json() for client in (boss, kim, lee)]
    assert {branch["path"][0]: branch["documents"] for branch in whole["branches"]} == {
        "AI": 3,
        "AIX": 1,
        "HR": 1,
        "학사": 1,
    }
    assert (whole["documents"], whole["more_branches"], whole["greeting"]) == (6, 0, "")
    # Its only branch has no documents of its own: its subcategories say more.
    assert part["branches"] == [{"path": ["AI", "ML"], "documents": 2}, {"path": ["AI", "MLOps"], "documents": 1}]
    assert part["documents"] == 3
    assert {each["title"] for each in part["newest"]} == {"Trees", "Descent", "Rollout"}
    assert set(part["examples"]) == {f"What does “{title}” say?" for title in ("Trees", "Descent", "Rollout")}
    assert narrow["branches"] == [{"path": ["AI", "ML"], "documents": 2}, {"path": ["학사"], "documents": 1}]
    assert "‘휴학’에는 어떤 내용이 있나요?" in narrow["examples"]
    assert all(secret not in str((part, narrow)) for secret in ("Pay", "HR", CANARY))


async def test_an_empty_scope_has_nothing(built: House) -> None:
    nobody = await built.client("nobody", ["Nowhere"], "reader")
    assert (await nobody.get("/overview")).json() == {
        "greeting": "",
        "documents": 0,
        "branches": [],
        "more_branches": 0,
        "newest": [],
        "examples": [],
    }


def edition(day: str, trips: str) -> bytes:
    return f"""# 차량관리규정

개정 {day}

제1조(목적) 이 규정은 공용차량의 관리에 필요한 사항을 정함을 목적으로 한다.

제2조(배차) 배차는 하루에 {trips} 번까지 한다.

제3조(운행) 운전원은 안전하게 운행하여야 한다.
""".encode()


async def test_a_regulation_is_listed_once_with_the_day_of_its_newest_edition(built: House) -> None:
    boss = await built.client("boss", None, "admin")
    for name, text in (("old.md", edition("2020. 3. 1.", "서른")), ("new.md", edition("2024. 3. 1.", "마흔"))):
        parts = (("files", name.encode(), text), ("category", None, b"Rules"))
        assert (await boss.post("/documents", content=form(*parts), headers=FORM)).status_code == 201
    ruled = await built.client("ruled", ["Rules"], "reader")
    shown = (await ruled.get("/overview")).json()
    assert [(entry["title"], entry["effective_from"]) for entry in shown["newest"]] == [("차량관리규정", "2024-03-01")]
    assert shown["examples"] == ["차량관리규정의 목적은 무엇인가요?"]


async def test_settings_reach_a_caller_without_a_key(houses: Databases, tmp_path: Path) -> None:
    examples = tmp_path / "examples.txt"
    examples.write_text("# Shown to everybody\n\nWhat is a tree?\n  휴학은  몇 학기인가요?\nWhat is a tree?\n", "utf-8")
    settings = houses.settings(
        public="AI/ML",
        page_name="Books of AI",
        page_greeting="Welcome.",
        page_colour="#7A1f3d",
        page_examples=examples,
    )
    async with house(settings) as running:
        await running.client("admin", None, "admin")
        async with client_of(running.api, address=("203.0.113.7", 1)) as anyone:
            shown = (await anyone.get("/overview")).json()
            who = (await anyone.get("/session")).json()
    assert (shown["greeting"], shown["examples"]) == ("Welcome.", ["What is a tree?", "휴학은 몇 학기인가요?"])
    assert shown["branches"] == [{"path": ["AI", "ML"], "documents": 2}]
    assert {each["title"] for each in shown["newest"]} == {"Trees", "Descent"}
    assert (who["page_name"], who["page_colour"]) == ("Books of AI", "#7A1f3d")


@each(
    "wrong",
    [
        {"page_colour": "red"},
        {"page_colour": "#12345"},
        {"page_colour": "#1234567"},
        {"page_name": "n" * 61},
        {"page_greeting": "g" * 401},
    ],
)
def test_settings_that_the_page_cannot_show_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="DTRAG_PAGE_"):
        Presentation.of(Settings.load(environ={}, **wrong))


@each(
    "content",
    [
        None,
        b"",
        b"# only a remark\n",
        b"\xff\xfe",
        b"a" * (MAX_QUESTION + 1),
        b"\n".join(b"%d?" % n for n in range(MAX_EXAMPLES + 1)),
    ],
)
def test_a_file_without_usable_questions_is_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | None
) -> None:
    file = tmp_path_factory.mktemp("examples") / "examples.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput, match="DTRAG_PAGE_EXAMPLES"):
        Presentation.of(Settings.load(environ={}, page_examples=file))
