"""`dtrag regulations` and `dtrag lexicon` on a real index."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from dtrag.delivery.cli import exit_codes
from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli
from tests.integration.test_editions import regulation

BOOK = Path(__file__).parents[2] / "examples" / "hanbit-university" / "regulations.md"
SHAPES = documented_shapes()


@pytest.fixture(scope="module")
def empty(make_cli: MakeCli) -> Cli:
    return make_cli()


@pytest.fixture(scope="module")
def cli(empty: Cli) -> Cli:
    nothing = empty.call("regulations", "list")
    assert (nothing.code, "dtrag ingest" in nothing.err) == (exit_codes.OK, True)
    unknown = empty.call("regulations", "show", "학칙 제21조")
    assert unknown.code == exit_codes.FAILURE and "dtrag ingest" in unknown.err
    ran = empty.call("ingest", BOOK)
    assert ran.code == exit_codes.OK, ran.err
    return empty


def test_the_list(cli: Cli) -> None:
    ran = cli.call("regulations", "list", "--json")
    assert_shape(ran.json, SHAPES["dtrag regulations"])
    assert {row["name"]: row["articles"] for row in ran.json["regulations"]}["학칙"] == 23
    assert "학칙" in cli.call("regulations", "list").out


def test_one_article(cli: Cli) -> None:
    ran = cli.call("regulations", "show", "학칙", "제21조", "--json")
    assert_shape(ran.json, SHAPES["dtrag regulations show"])
    assert ran.json["citations"][0]["targets"] == ["학칙 제20조"]
    people = cli.call("regulations", "show", "학칙 제21조").out
    assert "학칙 제21조(학위의 수여)" in people and "internal → 학칙 제20조" in people


def test_amendments_dates_and_links(cli: Cli) -> None:
    people = " ".join(cli.call("regulations", "show", "장학금지급규정 별표 1").out.split())
    assert "Named by 제2조" in people
    assert " ".join(cli.call("regulations", "show", "장학 규정 별표 1").out.split()) == people
    people = " ".join(cli.call("regulations", "show", "학칙 제8조").out.split())
    assert "State deleted (삭제)" in people and "Amended 2022-09-01 삭제" in people


@pytest.mark.parametrize(
    ("reference", "advice"),
    [
        ("장학금지급규칙 제8조", "Nearest: 장학금지급규정"),
        ("학칙 제99조", "It has 제1조 to 제7조"),
        ("학칙 별표 9", "has no 별표 9"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(cli: Cli, reference: str, advice: str) -> None:
    ran = cli.call("regulations", "show", reference)
    assert ran.code == exit_codes.FAILURE
    assert advice in ran.err


def test_a_reference_that_means_several_articles_names_them(cli: Cli) -> None:
    ran = cli.call("regulations", "show", "제5조")
    assert ran.code == exit_codes.USAGE
    assert "in several regulations: 교원연구년규정 제5조" in ran.err


def test_citations_are_those_of_the_shown_texts(cli: Cli) -> None:
    ran = cli.call("regulations", "citations", "--regulation", "장학금지급규정", "--json")
    assert list(ran.json) == ["citations"]
    assert_shape(ran.json, SHAPES["dtrag regulations citations"])
    sources = list(dict.fromkeys(row["source"] for row in ran.json["citations"]))
    assert "장학금지급규정 부칙" in sources
    for source in (sources[0], sources[-1]):
        text = cli.call("regulations", "show", source, "--json").json["text"]
        rows = [row for row in ran.json["citations"] if row["source"] == source]
        assert [text[row["start"] : row["end"]] for row in rows] == [row["text"] for row in rows]
    people = cli.call("regulations", "citations")
    assert "장학금지급규정 제10조: 학칙 제12조: other-regulation → 학칙 제12조" in people.out
    assert "internal" in people.err


def test_the_lexicon(cli: Cli) -> None:
    ran = cli.call("lexicon", "check", "책을 잃어버렸는데 어떡하죠", "--json")
    assert_shape(ran.json, SHAPES["dtrag lexicon check"])
    assert "분실" in {word for match in ran.json["matches"] for word in match["official"]}
    assert ran.json["unknown"] == ["어떡하죠"]
    people = cli.call("lexicon", "check", "책을 잃어버렸는데 어떡하죠")
    assert "분실" in people.out and "어떡하죠" in people.err
    entries = cli.call("lexicon", "list", "--json").json
    assert_shape(entries, SHAPES["dtrag lexicon"])
    field = entries["entries"][0]["field"]
    assert field in cli.call("lexicon", "list").out
    assert "→" in cli.call("lexicon", "list", "--field", field).out
    wrong = cli.call("lexicon", "list", "--field", "nonesuch")
    assert wrong.code == 2 and field in wrong.err


def test_own_entries_of_the_lexicon(cli: Cli, tmp_path: Path) -> None:
    question = "뽀로로는 몇 년이에요"
    assert "There are no own entries" in cli.call("lexicon", "list", "--field", "own").err
    added = cli.call("lexicon", "add", "--spoken", "뽀로로", "--spoken", "뽀통령", "--official", "수업연한", "--json")
    assert_shape(added.json, SHAPES["dtrag lexicon add"])
    assert added.json["added"] == [{"number": 1, "spoken": ["뽀로로", "뽀통령"], "official": ["수업연한"]}]
    assert cli.call("search", question, "--json").json["results"][0]["metadata"]["article"] == "제3조"
    checked = cli.call("lexicon", "check", question, "--json").json["matches"][0]
    assert (checked["form"], checked["official"], checked["field"]) == ("뽀로로", ["수업연한"], "own")
    assert "1: 뽀로로, 뽀통령 → 수업연한" in cli.call("lexicon", "list", "--field", "own").out

    exported = cli.call("lexicon", "export")
    (tmp_path / "own.toml").write_text(exported.out, "utf-8")
    assert_shape(cli.call("lexicon", "export", "--json").json, SHAPES["dtrag lexicon export"])
    assert "already" in cli.call("lexicon", "add", "--file", tmp_path / "own.toml").err
    removed = cli.call("lexicon", "remove", "뽀통령", "--json")
    assert_shape(removed.json, SHAPES["dtrag lexicon remove"])
    assert "1 entry added" in cli.call("lexicon", "add", "--file", tmp_path / "own.toml").err
    assert "Removed 2: 뽀로로" in cli.call("lexicon", "remove", "2").out


def test_wrong_own_entries_are_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text("entries = 3", "utf-8")
    for arguments, code, message in (
        (["add", "--spoken", "쉬", "--official", "휴학"], 2, "at least 2"),
        (["add", "--spoken", "뽀로로"], 2, "official words"),
        (["add"], 2, "--file alone"),
        (["add", "--file", str(tmp_path / "wrong.toml")], 2, "dtrag lexicon export"),
        (["add", "--file", str(tmp_path / "none.toml")], 2, "cannot be read"),
        (["remove", "77"], 1, "dtrag lexicon list"),
    ):
        ran = cli.call("lexicon", *arguments)
        assert (ran.code, message in " ".join(ran.err.split())) == (code, True), ran.err


def test_the_citations_of_a_file_are_verified(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "draft.md").write_text(
        "# 안내\n\n학칙 제21조(학위의 수여)와 제99조\n\n「장학금지급규칙」 제2조\n\n"
        "학칙 제21조는 “학위를 팔 수 있다.”라고 한다.",
        "utf-8",
    )
    ran = cli.call("regulations", "verify", tmp_path / "draft.md", "--json")
    assert ran.code == exit_codes.FAILURE
    assert_shape(ran.json, SHAPES["dtrag regulations verify"])
    assert [row["status"] for row in ran.json["citations"]] == ["exists", "missing", "title_mismatch", "exists"]
    assert [row["status"] for row in ran.json["quotations"]] == ["different"]
    people = cli.call("regulations", "verify", tmp_path / "draft.md")
    assert "line 3: 제99조: missing. 학칙 has no 제99조. There are 제1조–" in " ".join(people.out.split())
    assert "line 7: “학위를 팔 수 있다.”: not in the text of 학칙 제21조" in " ".join(people.out.split())
    assert "2 exists, 1 missing, 1 title_mismatch" in people.err


def test_exit_codes_of_a_verification(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "fine.txt").write_text("학칙 제21조", "utf-8")
    assert cli.call("regulations", "verify", tmp_path / "fine.txt").code == exit_codes.OK
    (tmp_path / "none.txt").write_text("안녕하세요.", "utf-8")
    none = cli.call("regulations", "verify", tmp_path / "none.txt")
    assert (none.code, "no citations" in none.err) == (exit_codes.OK, True)
    (tmp_path / "long.txt").write_text("학칙 제21조 " * 30_000, "utf-8")
    for name, message in (("long.txt", "150,000"), ("absent.txt", "cannot be read"), ("old.doc", "DOCX")):
        refused = cli.call("regulations", "verify", tmp_path / name)
        assert refused.code == exit_codes.USAGE and message in " ".join(refused.err.split()), refused.err


def test_a_book_is_verified_against_itself(cli: Cli) -> None:
    ran = cli.call("regulations", "verify", BOOK.with_suffix(".hwpx"), "--json")
    assert ran.code == exit_codes.OK
    assert ran.json["counts"]["exists"] == len(ran.json["citations"]) > 50


def test_editions_are_compared_and_searched_by_day(cli: Cli, tmp_path: Path) -> None:
    old, new = tmp_path / "old.md", tmp_path / "new.md"
    old.write_text(regulation("2020. 3. 1.", "배차는 하루에 서른 번까지 한다."), "utf-8")
    new.write_text(regulation("2024. 3. 1.", "배차는 하루에 마흔 번까지 한다."), "utf-8")
    assert cli.call("ingest", old, new, "--category", "Rules").code == exit_codes.OK
    compared = cli.call("regulations", "diff", "차량관리규정", "2021-01-01", "2024-03-01", "--json")
    assert_shape(compared.json, SHAPES["dtrag regulations diff"])
    shown = cli.call("regulations", "diff", "차량관리규정", "2021-01-01", "2024-03-01").out
    assert max(cell_len(line) for line in shown.splitlines()) <= 80
    assert "서른" in shown and "마흔" in shown and "제2조(배차): amended" in shown
    page = cli.call("regulations", "diff", old, new, "--html").out
    assert page.startswith("<!doctype html>") and "<del>서른</del>" in page and "<ins>마흔</ins>" in page
    stale = cli.call("regulations", "stale", "--regulation", "차량관리규정", "--json")
    assert_shape(stale.json, SHAPES["dtrag regulations stale"])
    assert stale.json["stale"][0]["target"] == "차량관리규정 제2조"
    found = cli.call("search", "하루에 배차", "--category", "Rules", "--as-of", "2023-01-01").out
    assert "서른" in found and "마흔" not in found
    wrong = cli.call("search", "배차", "--as-of", "2023")
    assert wrong.code == exit_codes.USAGE and "2024-03-01" in wrong.err
