"""Sets of judged questions in all their forms; what is invalid is named by file and line."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.errors import InvalidInput
from dtrag.evaluation.judged_questions import JudgedQuestion, read_set, spread


def _write(folder: Path, *rows: object, name: str = "queries.jsonl", qrels: str | None = None) -> Path:
    (folder / "corpus.jsonl").write_text("", "utf-8")
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    if qrels is not None:
        (folder / "qrels.tsv").write_text(qrels, "utf-8")
    return folder


def test_queries_with_judgements_in_a_file_of_their_own(tmp_path: Path) -> None:
    rows = [{"id": "q1", "text": "valve", "answers": ["x", " "]}, {"id": 2, "text": "휴학"}]
    judged = read_set(_write(tmp_path, *rows, qrels="q1\ta\t2\nq1\tb\t1\n2\tc\t1\n2\td\t0\nq9\tx\t1\n"))
    assert judged.questions == (
        JudgedQuestion("q1", "valve", {"a": 2, "b": 1}, ("x",)),
        JudgedQuestion("2", "휴학", {"c": 1}),
    )
    assert (judged.name, judged.corpus) == (tmp_path.name, tmp_path / "corpus.jsonl")
    assert judged.relevant_ids == {"a", "b", "c"}


@pytest.mark.parametrize("name", ["queries.jsonl", "questions.jsonl", "questions.dev.jsonl"])
def test_questions_with_their_relevant_articles(tmp_path: Path, name: str) -> None:
    rows = [
        {"qid": "k1", "question": "휴학은?", "relevant": ["1-1:제2조", "1-1:제2조#2"], "answer": "a paraphrase"},
        {"qid": "k2", "question": "버스는?", "relevant": [], "unanswerable": True},
        {"qid": "k3", "question": "전화는?", "relevant": []},
    ]
    judged = read_set(_write(tmp_path, *rows, name=name, qrels="k1\tother\t1\n"))
    assert judged.questions == (
        JudgedQuestion("k1", "휴학은?", {"1-1:제2조": 1, "1-1:제2조#2": 1}, reference="a paraphrase"),
        JudgedQuestion("k2", "버스는?", {}, answerable=False),
        JudgedQuestion("k3", "전화는?", {}, answerable=False),
    )
    assert read_set(tmp_path / name).questions == judged.questions


def test_lines_may_contain_other_separators_and_a_byte_order_mark(tmp_path: Path) -> None:
    _write(tmp_path)
    text = '{"text": "one\u2028two", "answerable": false}\r\n{"text": "three", "answerable": true}'
    (tmp_path / "queries.jsonl").write_text("\ufeff" + text, "utf-8", newline="")
    questions = read_set(tmp_path).questions
    assert [(row.id, row.text, row.answerable) for row in questions] == [
        ("line 1", "one\u2028two", False),
        ("line 2", "three", True),
    ]


def test_the_words_that_an_answer_has_to_show(tmp_path: Path) -> None:
    own, other = [["six years"]], [["half a year", "6 months"], ["once"]]
    rows = [{"id": 1, "text": "q", "must": own}, {"id": 2, "text": "r", "answers": ["x"], "must": None}]
    folder = _write(tmp_path, *rows, {"id": 3, "text": "s", "answers": ["x"], "must": []})
    first, second, third = read_set(folder).questions
    assert (first.must, first.expected) == ((("six years",),), (("six years",),))
    assert (second.must, second.expected) == (None, (("x",),)), "without them one of the answers has to be shown"
    assert (third.must, third.expected) == ((), ()), "none can be named"
    file = tmp_path / "must.jsonl"
    file.write_text("".join(f"{json.dumps({'qid': name, 'must': other})}\n" for name in (2, "1")))
    assert [question.must for question in read_set(folder, None, file).questions] == [
        (("half a year", "6 months"), ("once",)),
        (("half a year", "6 months"), ("once",)),
        (),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": 1}', "expected .*must"),
        ('{"id": 1, "must": ["x"]}', "expected .*must"),
        ('{"id": 1, "must": [[]]}', "expected .*must"),
        ('{"id": 1, "must": [["x", "<amended> …"]]}', ".*'<amended> …' has no letter"),
        ('{"id": 1, "must": [[3]]}', ".*3 has no letter"),
        ('{"id": 9, "must": [["x"]]}', r".*queries\.jsonl has no question with the id '9'"),
        ("[]", "expected .*must"),
    ],
)
def test_bad_words_are_named_by_their_line(tmp_path: Path, line: str, message: str) -> None:
    folder, file = _write(tmp_path, {"id": 1, "text": "q"}), tmp_path / "words.jsonl"
    file.write_text(f"{line}\n")
    with pytest.raises(InvalidInput, match=rf"words\.jsonl, line 1: {message}"):
        read_set(folder, None, file)
    with pytest.raises(InvalidInput, match=r"nowhere\.jsonl cannot be read"):
        read_set(folder, None, tmp_path / "nowhere.jsonl")


def test_the_documents_are_those_of_the_option(tmp_path: Path) -> None:
    book = tmp_path / "book.md"
    book.write_text("x")
    _write(tmp_path, {"text": "q"})
    assert read_set(tmp_path, book).corpus == book
    (tmp_path / "corpus.jsonl").unlink()
    assert read_set(tmp_path, tmp_path).corpus == tmp_path
    with pytest.raises(InvalidInput, match=r"no corpus\.jsonl in it\. Give a file or a folder with --corpus"):
        read_set(tmp_path)
    with pytest.raises(InvalidInput, match=r"no file or folder .*nowhere"):
        read_set(tmp_path, tmp_path / "nowhere")


def test_the_file_of_questions_must_be_clear(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no queries\.jsonl or questions\.jsonl in it"):
        read_set(tmp_path)
    with pytest.raises(InvalidInput, match="is not a folder"):
        read_set(tmp_path / "nowhere")
    _write(tmp_path, {"text": "q"}, name="questions.a.jsonl")
    _write(tmp_path, {"text": "r"}, name="questions.b.jsonl")
    with pytest.raises(InvalidInput, match=r"questions\.a\.jsonl, questions\.b\.jsonl\. Give one of them"):
        read_set(tmp_path)
    assert read_set(tmp_path / "questions.b.jsonl").questions[0].text == "r"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected .* not valid JSON"),
        ("", "expected .* not valid JSON"),
        ("[" * 100_000, "expected .* not valid JSON"),
        ("[]", "expected"),
        ("null", "expected"),
        ('{"id": "x"}', "expected"),
        ('{"id": "x", "text": " "}', "expected"),
        ('{"id": [1], "text": "x"}', "expected"),
        ('{"text": "x", "relevant": "a"}', 'expected "relevant".* a list of strings'),
        ('{"text": "x", "answers": [1]}', 'expected "answers".* a list of strings'),
        ('{"text": "x", "answerable": "no"}', "answerable must be true or false"),
        ('{"text": "x", "unanswerable": 1}', "unanswerable must be true or false"),
        ('{"id": 1, "text": "x"}', "line 1 has the same id, '1'"),
        (json.dumps({"text": "x" * 10_001}), "the question has 10,001 characters; the limit is 10,000"),
    ],
)
def test_a_bad_question_is_named_by_its_line(tmp_path: Path, line: str, message: str) -> None:
    folder = _write(tmp_path, {"id": 1, "text": "q"})
    with (folder / "queries.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(InvalidInput, match=rf"queries\.jsonl, line 2: {message}"):
        read_set(folder)


@pytest.mark.parametrize("line", ["q1\ta", "q1\ta\tyes", "q1 a 1", "", "q1\t0\ta\t1"])
def test_a_bad_judgement_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    folder = _write(tmp_path, {"id": "q1", "text": "q"}, qrels=f"q1\ta\t1\n{line}\nq1\tb\t1\n")
    with pytest.raises(InvalidInput, match=r"qrels\.tsv, line 2: expected query id"):
        read_set(folder)


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    (_write(tmp_path) / "queries.jsonl").write_bytes('{"text": "휴학"}'.encode("cp949"))
    with pytest.raises(InvalidInput, match=r"queries\.jsonl cannot be read as UTF-8"):
        read_set(tmp_path)


@given(st.integers(0, 50), st.none() | st.integers(1, 60))
def test_a_limit_spreads_over_all_questions(count: int, limit: int | None) -> None:
    rows = tuple(JudgedQuestion(str(number), "q", {}) for number in range(count))
    chosen = spread(rows, limit)
    assert len(chosen) == min(count, limit or count)
    assert list(chosen) == [row for row in rows if row in chosen]
    positions = [int(row.id) for row in chosen]
    gaps = {later - earlier for earlier, later in pairwise(positions)}
    assert not gaps or max(gaps) - min(gaps) <= 1
