"""`dtrag eval` on a collection with its documents, and on the sample regulation book."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtrag.delivery.cli import exit_codes
from tests.integration.cli_process import Cli, assert_shape, documented_shapes
from tests.integration.conftest import MakeCli

BOOK = Path(__file__).parents[2] / "examples" / "hanbit-university" / "regulations.hwpx"
SHAPES = documented_shapes()


@pytest.fixture(scope="module")
def cli(make_cli: MakeCli) -> Cli:
    return make_cli()


def _write(path: Path, *rows: object) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """Three documents, and three questions of which they answer two."""
    texts = {
        "a": "Kettles boil water at noon.",
        "b": "Ovens bake bread. They are lit at six.",
        "c": "Lamps give light.",
    }
    _write(tmp_path / "corpus.jsonl", *({"id": key, "title": key.upper(), "text": texts[key]} for key in texts))
    _write(
        tmp_path / "queries.jsonl",
        {"id": "1", "text": "When do kettles boil water?", "answers": ["noon"]},
        {"id": "2", "text": "what bakes bread", "answers": ["ovens"]},
        {"id": "3", "text": "Who founded Rome?", "answerable": False},
    )
    (tmp_path / "qrels.tsv").write_text("1\ta\t1\n2\tb\t1\n")
    return tmp_path


@pytest.fixture
def book_questions(tmp_path: Path) -> Path:
    """Questions about the sample book, as a set without documents."""
    _write(
        tmp_path / "questions.dev.jsonl",
        {"qid": "k1", "question": "휴학은 최대 몇 학기까지 할 수 있나요?", "relevant": ["1-1-1:제12조"]},
        {"qid": "k2", "question": "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?", "relevant": ["3-1-1:제4조"]},
        {"qid": "k3", "question": "책을 늦게 반납하면 연체료가 하루에 얼마인가요?", "relevant": ["3-1-1:제7조"]},
        {"qid": "k4", "question": "공항 셔틀버스 첫차 시간표", "relevant": [], "unanswerable": True},
    )
    return tmp_path


def test_retrieval_on_a_collection(cli: Cli, collection: Path) -> None:
    ran = cli.call("eval", "retrieval", collection, "--mode", "lexical", "--no-embedder", "--json")
    assert ran.code == 0, ran.err
    assert_shape(ran.json, SHAPES["dtrag eval retrieval"])
    assert (ran.json["ndcg@10"], ran.json["mrr@10"]) == (1.0, 1.0)
    assert (ran.json["queries"], ran.json["unanswerable"]) == (2, 1)
    assert ran.json["intervals"]["recall@10"] == [1.0, 1.0]


def test_answers_on_a_collection(cli: Cli, collection: Path) -> None:
    ran = cli.call("eval", "answers", collection, "--no-embedder", "--json")
    assert ran.code == 0, ran.err
    assert_shape(ran.json, SHAPES["dtrag eval answers"])
    counts = ran.json["counts"]
    assert (ran.json["sufficient"], ran.json["answer"]["right"], ran.json["first_right"]) == (1.0, 1.0, 1.0)
    assert ran.json["unanswerable"]["declined"] == 1.0
    assert (counts["questions"], counts["unanswerable"], counts["by_model"]) == (3, 1, 0)
    assert counts["exact_quotations"] == counts["quotations"] > 0


def test_articles_of_a_book_are_compared_by_code_and_number(cli: Cli, book_questions: Path) -> None:
    options = (book_questions, "--corpus", BOOK, "--no-embedder")
    ran = cli.call("eval", "retrieval", *options, "--limit", "2")
    assert ran.code == 0, ran.err
    assert "2, and 1 unanswerable" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    asked = cli.call("eval", "answers", *options, "--json")
    assert asked.code == 0, asked.err
    assert_shape(asked.json, SHAPES["dtrag eval answers"])
    assert (asked.json["sufficient"], asked.json["first_right"]) == (None, 1.0)
    assert 0 < asked.json["precision"] <= 1
    assert asked.json["unanswerable"]["answered"] == 0.0
    must, lines = book_questions / "words.jsonl", book_questions / "rows.jsonl"
    _write(must, {"qid": "k1", "must": [["통산 6학기"]]}, {"qid": "k2", "must": [["10권"], ["a word of no text"]]})
    judged = cli.call("eval", "answers", *options, "--must", must, "--report", lines)
    assert judged.code == 0, judged.err
    assert max(map(len, judged.out.splitlines())) <= 80
    rows = {row["id"]: row for row in map(json.loads, lines.read_text("utf-8").splitlines())}
    assert (rows["k1"]["values"]["sufficient"], rows["k1"]["first"]) == (1.0, "1-1-1:제12조")
    assert (rows["k2"]["values"]["sufficient"], rows["k2"]["missing"]) == (0.0, ["a word of no text"])
    documents = cli.call("documents", "--json").json
    assert documents["total"]["documents"] == 0, "the index of the user is not changed"


def test_quality_is_judged_saved_compared_and_kept(cli: Cli, collection: Path, tmp_path: Path) -> None:
    saved, page = tmp_path / "run.json", tmp_path / "run.html"
    outputs = ("--save", saved, "--report", page, "--keep")
    ran = cli.call("eval", "quality", collection, "--no-embedder", *outputs, "--json")
    assert ran.code == 0, ran.err
    assert_shape(ran.json, SHAPES["dtrag eval quality"])
    measures = {name: found and found["value"] for name, found in ran.json["measures"].items()}
    assert (measures["contextual_recall"], measures["correctness"], measures["faithfulness"]) == (1.0, 1.0, 1.0)
    assert (measures["accepted"], measures["answered_unanswerable"]) == (1.0, 0.0)
    assert ran.json["settings"]["judge"] == "lexical"
    assert page.read_text("utf-8").startswith("<!doctype html>")
    again = cli.call("eval", "quality", collection, "--no-embedder", "--limit", "2", "--against", saved)
    assert again.code == 0, again.err
    assert "no difference" in again.out and "2 questions" in again.out
    kept = cli.call("eval", "runs", "--json")
    assert_shape(kept.json, SHAPES["dtrag eval runs"])
    assert [run["run_id"] for run in kept.json["evaluations"]] == [ran.json["run_id"]]
    assert ran.json["run_id"] in cli.call("eval", "runs").out


def test_outputs_that_cannot_be_are_refused_before_the_run(cli: Cli, collection: Path) -> None:
    for options, message in (
        (("--report", "run.pdf"), "must end in one of"),
        (("--save", collection / "none" / "run.json"), "does not exist"),
        (("--against", collection / "queries.jsonl"), "cannot be read as a run"),
        (("--judge", "best"), "lexical, model, or the folder"),
    ):
        ran = cli.call("eval", "quality", collection, "--no-embedder", *options)
        assert ran.code == exit_codes.USAGE and message in " ".join(ran.err.split()), ran.err


def test_ids_of_another_collection_are_noted(cli: Cli, collection: Path) -> None:
    (collection / "qrels.tsv").write_text("1\tx\t1\n2\ty\t1\n")
    ran = cli.call("eval", "retrieval", collection, "--no-embedder")
    assert ran.code == 0 and "None of the relevant ids was retrieved" in " ".join(ran.err.split())


def test_bad_sets_are_refused_with_file_and_line(cli: Cli, collection: Path) -> None:
    absent = cli.call("eval", "answers", collection, "--corpus", collection / "book.hwpx")
    assert absent.code == exit_codes.USAGE and "book.hwpx" in absent.err
    (collection / "qrels.tsv").unlink()
    unjudged = cli.call("eval", "retrieval", collection)
    assert unjudged.code == exit_codes.USAGE and "qrels.tsv" in unjudged.err
    with (collection / "queries.jsonl").open("a") as file:
        file.write("{\n")
    invalid = cli.call("eval", "answers", collection)
    assert invalid.code == exit_codes.USAGE and "queries.jsonl, line 4" in " ".join(invalid.err.split())
    (collection / "queries.jsonl").unlink()
    missing = cli.call("eval", "answers", collection)
    assert missing.code == exit_codes.USAGE and "queries.jsonl" in missing.err


def test_the_memory_is_measured(make_cli: MakeCli, tmp_path: Path) -> None:
    rows = [
        {"id": f"d{number}", "title": f"Part {number}", "text": f"The part x{number} weighs {number} kilograms."}
        for number in range(8)
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions = [
        {
            "id": f"q{number}",
            "text": f"How much does the part x{number} weigh?",
            "answers": [f"{number} kilograms"],
            "relevant": [f"d{number}"],
        }
        for number in range(8)
    ]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    cli = make_cli()
    ran = cli.call("eval", "cbr", tmp_path, "--json")
    assert_shape(ran.json, documented_shapes()["dtrag eval cbr"])
    assert ran.json["taught"]["rated_up"] == 4 and ran.json["measures"]["repeat shown"]["value"] > 0
    text = cli.call("eval", "cbr", tmp_path, "--no-corrections")
    assert max(map(len, text.out.splitlines())) <= 80 and "repeat mrr gain" in text.out
