"""How values are written for people."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from dtrag.delivery.cli import console as console_module
from dtrag.delivery.cli.console import Facts, ListFormat, Rows, paragraph, place, plural, safe, show_result, table


def console(width: int = 80) -> Console:
    return Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)


def printed(made: Console) -> str:
    assert isinstance(made.file, io.StringIO)
    return made.file.getvalue()


def test_documents_cannot_steer_the_terminal() -> None:
    assert safe("a\x1b[31mred\x9b2J\x00\u202e b\tc\nd") == "a[31mred2J b\tc\nd"


def test_paragraphs_are_wrapped_by_the_width_of_their_characters() -> None:
    made = console(40)
    paragraph(made, Text("휴학기간은 통산 6학기를 넘을 수 없다. " * 4), 4)
    lines = printed(made).splitlines()
    assert len(lines) > 2
    for line in lines:
        assert line.startswith("    ") and line == line.rstrip()
        assert cell_len(line) <= 40


def test_tables_keep_ids_whole_and_wrap_the_rest() -> None:
    made = console(60)
    identifier = "1e72659b-bfb0-5f9f-9dd0-a27d2dcd4566"
    made.print(table(("Id", "Title", "Chunks"), [(identifier, "a long title of a book " * 3, 1234)], whole=("Id",)))
    assert identifier in printed(made)
    assert "1,234" in printed(made)
    assert max(map(len, printed(made).splitlines())) <= 60


def test_places_are_paths_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place((tmp_path / "규정 모음.md").as_uri()) == "규정 모음.md"
    assert place("file:///srv/a%20b.jsonl#d%2F1") == "/srv/a b.jsonl (d/1)"
    assert place("upload:notes.md") == "upload:notes.md"


def test_numbers_have_their_nouns() -> None:
    assert [plural(number, "file") for number in (0, 1, 1234)] == ["0 files", "1 file", "1,234 files"]
    assert (plural(1, "addendum"), plural(2, "addendum")) == ("1 addendum", "2 addenda")


def test_without_a_terminal_progress_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    made = console()
    with console_module.progress("Reading", made) as update:
        update(1, 9, "1/9 files")
    assert printed(made) == ""
    monkeypatch.setattr(console_module, "LINE_EVERY", 0.0)
    with console_module.progress("Reading", made) as update:
        update(2, 9, "2/9 files")
    assert printed(made) == "Reading: 2/9 files\n"


def test_csv_and_markdown_have_the_rows_alone_and_no_cell_is_a_formula_or_markup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        " =1",
        "\t=1",
        "a=1",
        'quote", comma',
        "두 줄\n둘째",
        "\x1b[31m",
        "a|b",
        "<b>[x](y)",
    ]
    rows = Rows(("Text", "Number"), [(text, -number) for number, text in enumerate(texts)])
    show_result(ListFormat.csv, {}, rows, "a line", Facts([("a", "b")]), notes=["note"])
    out, err = capsys.readouterr()
    assert err == "note\n"
    read = list(csv.reader(io.StringIO(out)))
    assert read[0] == ["Text", "Number"]
    expected = [*(f"'{text}" for text in texts[:6]), *texts[6:9], "[31m", *texts[10:]]
    assert [row[0] for row in read[1:]] == expected
    assert [int(row[1]) for row in read[1:]] == [-number for number in range(len(texts))], "numbers stay numbers"
    show_result(ListFormat.md, {}, rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["| Text | Number |", "| --- | --- |", "| =1+1 | 0 |"]
    assert lines[-3:] == ["| \\[31m | -9 |", r"| a\|b | -10 |", r"| \<b\>\[x\](y) | -11 |"]
    assert len(lines) == 2 + len(texts)
    show_result(ListFormat.csv, {}, Rows(("Text",), []))
    assert capsys.readouterr().out == "Text\n", "an empty list has its header"


def test_a_result_is_text_with_notes_or_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    parts = ("", Facts([("Id", "7")]), Rows(("Name", "Files"), [("HR", 3)]), Rows(("Empty",), []), "done\x1b[31m")
    assert show_result(False, {"id": 7}, *parts, notes=["", "1 file"]) == 0
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()] == [
        ["Id", "7"],
        ["Name", "Files"],
        ["─" * 12],
        ["HR", "3"],
        ["done[31m"],
    ]
    assert err == "1 file\n"
    assert show_result(True, {"id": 7}, *parts, notes=["1 file"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ({"id": 7}, "")
