"""CSV and JSON lines: rows and lines as documents, bad ones by themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dtrag.adapters.parsers import csv as csv_parser
from dtrag.adapters.parsers import jsonl
from dtrag.core.documents import ParsedDocument
from dtrag.errors import ParseFailed

Read = Callable[[str, bytes], list[ParsedDocument]]


def lines(path: Path, *records: object) -> tuple[list[ParsedDocument], str]:
    """The documents of a JSON lines file and the summary of failures at its end ("" when there was none)."""
    path.write_bytes(b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records))
    documents: list[ParsedDocument] = []
    try:
        documents.extend(jsonl.parse(path, "corpus.jsonl"))
    except ParseFailed as failed:
        return documents, str(failed)
    return documents, ""


def test_a_full_line(tmp_path: Path) -> None:
    record = {
        "id": 7,
        "title": " A\ntitle ",
        "text": "one\r\n\r\ntwo",
        "category_path": ["AI", "ML"],
        "metadata": {"year": 2024, "draft": False, "score": 0.5, "by": "x\u0000y", "none": None},
    }
    [document], failed = lines(tmp_path / "f", record)
    assert failed == ""
    assert (document.part, document.title, document.text) == ("7", "A title", "one\n\ntwo")
    assert document.category_path == ("AI", "ML")
    assert document.metadata == {"year": 2024, "draft": False, "score": 0.5, "by": "xy", "none": None, "id": "7"}
    assert [document.text[b.start : b.end] for b in document.blocks] == ["one", "two"]


def test_missing_ids_and_titles_are_generated(tmp_path: Path) -> None:
    text = "a sentence of many words " * 10
    (first, second, third), failed = lines(
        tmp_path / "f", {"text": text}, b"\n", {"text": "짧은 글"}, {"text": "x" * 200}
    )
    assert failed == ""
    assert [d.part for d in (first, second, third)] == ["line-1", "line-3", "line-4"]
    assert len(first.title) <= 80
    assert text.startswith(first.title)
    assert first.title.endswith(("words", "many", "of", "sentence", "a"))
    assert second.title == "짧은 글"
    assert third.title == "x" * 80
    assert first.metadata == {}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"{not json}\n", "not JSON"),
        (b"[1, 2]\n", "not an object"),
        ({"id": "x"}, "text is missing"),
        ({"text": 5}, "text is not a string"),
        ({"text": " \u0000"}, "text is empty"),
        ({"text": "t", "title": ["x"]}, "title is not a string"),
        ({"text": "t", "id": 1.5}, "id is neither"),
        ({"text": "t", "id": True}, "id is neither"),
        ({"text": "t", "category_path": "AI/ML"}, "category_path is not a list"),
        ({"text": "t", "category_path": ["AI", " "]}, "category_path has an empty element"),
        ({"text": "t", "metadata": []}, "metadata is not an object"),
        ({"text": "t", "metadata": {"a": {}}}, "metadata has a value"),
        (b'{"text": "t", "metadata": {"a": 1e999}}\n', "infinite"),
        (b'{"text": "t", "metadata": {"a": NaN}}\n', "not JSON"),
        (b'{"text": "t", "id": ' + b"9" * 5000 + b"}\n", "not JSON"),
        (b'{"text": ' + b"[" * 100_000 + b"\n", "nested too deeply"),
        (b'{"text": "\xff\xff"}\n', "neither UTF-8 nor CP949"),
        ({"text": "again", "id": "good"}, "occurs twice"),
    ],
)
def test_a_bad_line_fails_alone(record: object, reason: str, tmp_path: Path) -> None:
    documents, failed = lines(tmp_path / "f", {"id": "good", "text": "fine"}, record, {"id": "z", "text": "fine too"})
    assert [document.part for document in documents] == ["good", "z"]
    assert failed.startswith("1 of 3 lines: line 2: ")
    assert reason in failed


def test_many_failures_are_summarised(tmp_path: Path) -> None:
    documents, failed = lines(tmp_path / "f", {"text": "fine"}, *[b"x\n"] * 1_500)
    assert len(documents) == 1
    assert failed.startswith("1,500 of 1,501 lines: line 2: not JSON; ")
    assert failed.endswith("line 6: not JSON; …")


def test_an_overlong_line_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1_000)
    long = {"text": "x" * 5_000}
    documents, failed = lines(tmp_path / "f", {"text": "a"}, long, {"text": "b"}, long)
    assert [document.part for document in documents] == ["line-1", "line-3"]
    assert failed.startswith("2 of 4 lines: line 2: longer than")


def test_encodings_of_lines(tmp_path: Path) -> None:
    documents, failed = lines(
        tmp_path / "f",
        b'\xef\xbb\xbf{"text": "first"}\n',
        '{"text": "한국어"}\n'.encode("cp949"),
        b'{"text": "a\\ud800b"}',
    )
    assert failed == ""
    assert [document.text for document in documents] == ["first", "한국어", "ab"]
    _, failed = lines(tmp_path / "f", '{"text": "wide"}\n'.encode("utf-16"))
    assert "UTF-16" in failed


def test_csv_rows_are_sentences(read: Read) -> None:
    [document] = read("staff.csv", '이름;부서\n김;"연구;팀"\n\n이;\n'.encode("cp949"))
    assert document.title == "staff"
    assert document.part == ""
    assert document.text == "이름: 김; 부서: 연구;팀\n\n이름: 이"
    assert document.metadata == {"rows": 2, "first_row": 1}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\tb\n1\t2\n", "a: 1; b: 2"),
        ("a|b\n1|2|3\n", "a: 1; b: 2; 3"),
        ("1,2\n3,4\n", "1; 2\n\n3; 4"),
        ("word\nnext\n", "word: next"),
        ('a,b\n"x\ny",2\n', "a: x y; b: 2"),
        ("a,b\n\x001,2\n", "a: 1; b: 2"),
    ],
)
def test_csv_dialects(source: str, text: str, read: Read) -> None:
    assert read("a.tsv", source.encode())[0].text == text


def test_a_long_csv_is_cut_into_parts(read: Read) -> None:
    rows = "".join(f"{n},name {n}\n" for n in range(1, 4_502))
    documents = read("big.csv", ("id,name\n" + rows).encode())
    assert [document.part for document in documents] == ["rows-1-2000", "rows-2001-4000", "rows-4001-4501"]
    assert documents[2].text.endswith("id: 4501; name: name 4501")
    assert documents[1].metadata == {"rows": 2_000, "first_row": 2_001}
    assert documents[1].title == "big (2001-4000)"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"a,b\n", "no rows"),
        (b"\n\n", "no text"),
        (b"a," * 3_000 + b"\n1\n", "columns"),
        (b'a,b\n"' + b"x" * 1_100_000 + b"\n", "cell is longer"),
    ],
)
def test_csv_refusals(source: bytes, reason: str, read: Read) -> None:
    with pytest.raises(ParseFailed, match=reason):
        read("a.csv", source)


def test_csv_line_limit(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_parser, "MAX_LINE", 100)
    with pytest.raises(ParseFailed, match="line 2: longer than 100 characters"):
        read("a.csv", b"a,b\n" + b"x" * 200)
