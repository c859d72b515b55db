"""Every command as a process: what it prints where, in which shape, and how it ends."""

from __future__ import annotations

import csv
import dataclasses
import fcntl
import io
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from rich.cells import cell_len
from rich.console import Console

from dtrag.adapters.parsers.formats import FORMATS
from dtrag.adapters.postgres.server import server
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import open_app
from dtrag.delivery.cli import exit_codes
from dtrag.delivery.cli.ask import show_short
from dtrag.delivery.cli.commands import app
from dtrag.delivery.cli.ingest import QUESTIONS
from dtrag.delivery.cli.search import Mode
from dtrag.errors import InvalidInput
from dtrag.retrieval.engine import MODES
from dtrag.settings import FLAGS, Settings
from tests.integration.cli_process import COMMAND, DOCS, PROGRAM, Cli, Ran, assert_shape, children, documented_shapes

SHAPES = documented_shapes()
NOWHERE = "postgresql://someone:hush@127.0.0.1:1/nothing"


def commands() -> list[tuple[str, ...]]:
    """The names of every command and group."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))

    return list(walk(typer.main.get_command(app), ()))


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="dtrag-cli-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def cli(folder: Path) -> Iterator[Cli]:
    """A data folder whose server stays up over the commands, so that each is quick."""
    with EmbeddedServer.open(folder / "data"):
        yield Cli(folder / "data")


@pytest.fixture(scope="session")
def demo(cli: Cli) -> Ran:
    """The samples, read once; the first command on the folder."""
    return cli.run("demo", "--json")


def make_notes(path: Path, count: int) -> Path:
    path.mkdir()
    for number in range(count):
        text = f"# Note {number}\n\nThe kettle of room {number} boils at {number + 60} degrees.\n"
        (path / f"note{number:04}.md").write_text(text)
    return path


def test_demo_answers_in_both_languages_with_citations(cli: Cli, demo: Ran) -> None:
    assert demo.code == 0, demo.err
    assert_shape(demo.json, SHAPES["dtrag demo"])
    korean, english = demo.json["answers"]
    assert [korean["question"], english["question"]] == list(QUESTIONS)
    assert "6학기" in korean["text"]
    assert korean["citations"][0]["label"] == "학칙 제12조(휴학기간)"
    assert "26 days" in english["text"]
    assert english["decision"] == "answer"
    assert sum(report["documents"] for report in demo.json["ingest"]) == 12

    again = cli.call("demo")
    assert again.code == 0
    assert "0 documents read, 6 files unchanged" in again.out
    assert re.search(r"Confidence 0\.\d\d, of the answer 0\.\d\d \(answer\)", again.out)
    assert "Stages: intent" in again.out
    assert "retrieve" in again.out
    assert str(cli.data_dir) in again.out
    assert "No language model is configured" in again.err
    assert len(re.findall(r"^    \S*dtrag \S", again.out, re.M)) == 3


def test_ingest_reports_failures_and_continues(cli: Cli, demo: Ran, tmp_path: Path) -> None:
    good, bad = tmp_path / "kettle.md", tmp_path / "broken.pdf"
    good.write_text("# Kettles\n\nThe kettle on the third floor is descaled on Fridays.\n")
    bad.write_text("not a PDF at all")
    ran = cli.run("ingest", tmp_path, tmp_path / "absent", "--category", "House/Kitchen", "--json")
    assert ran.code == exit_codes.SOME_FILES_FAILED
    assert_shape(ran.json, SHAPES["dtrag ingest"])
    assert ran.json["documents"] == 1
    assert {Path(row["path"]).name for row in ran.json["failed"]} == {"broken.pdf", "absent"}

    text = cli.call("ingest", tmp_path)
    assert text.code == exit_codes.SOME_FILES_FAILED
    assert "broken.pdf" in "".join(text.out.split()), "a long path is folded, not cut"
    assert "Reason" in text.out
    assert max(map(len, text.out.splitlines())) <= 80

    (document,) = ran.json["document_ids"]
    deleted = cli.call("documents", "delete", document, "--json")
    assert (deleted.code, deleted.json["deleted"]) == (0, 1)
    assert [row["document_id"] for row in deleted.json["documents"]] == [document]
    assert_shape(deleted.json, SHAPES["dtrag documents delete"])
    gone = cli.call("documents", "show", document, "--json")
    assert gone.code == exit_codes.FAILURE
    assert gone.json["error"]["type"] == "NotFound"
    assert "dtrag documents" in gone.err


def test_search_shows_passages_on_stdout_and_notes_on_stderr(cli: Cli, demo: Ran) -> None:
    as_json = cli.call("search", "annual leave", "--top-k", "2", "--category", "Samples/Handbook", "--json")
    assert as_json.code == 0
    assert_shape(as_json.json, SHAPES["dtrag search"])
    assert [row["rank"] for row in as_json.json["results"]] == [1, 2]
    assert all(row["taxonomy_path"] == ["Samples", "Handbook"] for row in as_json.json["results"])

    text = cli.run("search", "휴학 기간", "--mode", "lexical", "--top-k", "1")
    assert text.out.startswith("1. 학칙 제12조(휴학기간)")
    assert "regulations.hwpx" in text.out
    assert "1 passage in" in text.err and "passage in" not in text.out

    elsewhere = cli.call("search", "annual leave", "--category", "No/Such")
    assert (elsewhere.code, elsewhere.out) == (exit_codes.USAGE, "")
    assert elsewhere.err == "dtrag: There is no category 'No/Such'. List them with: dtrag taxonomy tree\n"
    nothing = cli.call("search", "xylophone", "--mode", "lexical", "--category", "samples/handbook")
    assert (nothing.code, nothing.out) == (0, "")
    assert "No passage matches" in nothing.err


def test_search_is_strict_while_the_flag_is_on(cli: Cli, demo: Ran) -> None:
    ran = cli.call("search", "annual leave", "--json", FEATURE_STRICT_LEXICAL="1")
    assert ran.json["mode"] == "strict"
    assert tuple(Mode) == MODES


def test_ask_quotes_and_says_that_no_model_composes(cli: Cli, demo: Ran) -> None:
    question = "What is the mileage allowance for my own car?"
    as_json = cli.call("ask", question, "--category", "Samples", "--json")
    assert as_json.code == 0
    assert_shape(as_json.json, SHAPES["dtrag ask"])
    assert "€0.42" in as_json.json["text"]
    assert as_json.err == "", "nothing about settings that changed nothing"
    assert "No language model is configured" in cli.call("ask", question, "--full").err
    text = cli.call("ask", *question.split())
    assert "[1] Expenses and Travel, Using your own car" in text.out
    assert re.search(r"expenses-and-travel\.html, characters [\d,]+–[\d,]+", text.out)


def written_to(terminal: int) -> bytes:
    """Everything that a process writes to a terminal; closes it."""
    shown = b""
    try:
        while piece := os.read(terminal, 65_536):
            shown += piece
    except OSError:  # the other side is closed
        pass
    os.close(terminal)
    return shown


def in_a_terminal(cli: Cli, *arguments: str) -> list[str]:
    """The rows of a terminal of 24 x 80 that a command fills, stdout and stderr together."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = cli.environment(TERM="xterm-256color")
    del environment["COLUMNS"]
    process = subprocess.Popen([PROGRAM, *arguments], env=environment, stdout=inside, stderr=inside, stdin=inside)
    os.close(inside)
    shown = written_to(terminal)
    assert process.wait(timeout=60) == 0, shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()
    assert "\x1b" not in "".join(lines)
    assert all(cell_len(line) <= 80 for line in lines), lines
    return lines


SAMPLES = DOCS.parents[2] / "examples" / "questions.jsonl"
SAMPLE_QUESTIONS = [json.loads(line)["question"] for line in SAMPLES.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("question", [SAMPLE_QUESTIONS[0], SAMPLE_QUESTIONS[8], SAMPLE_QUESTIONS[-1]])
def test_an_answer_fits_a_screen(cli: Cli, demo: Ran, question: str) -> None:
    lines = in_a_terminal(cli, "ask", *question.split())
    assert len(lines) <= 23, "and the next prompt"
    assert "Confidence 0." in "".join(lines[-6:]), "only notes on the cited articles follow"
    assert not any("language model" in line or line.startswith("{") for line in lines)
    sources = [line for line in lines if re.match(r"(\[\d+\] )+", line)]
    assert sources or question == SAMPLE_QUESTIONS[-1]


async def test_all_sample_answers_fit_a_screen(cli: Cli, demo: Ran) -> None:
    settings = Settings.load({}, data_dir=cli.data_dir)
    async with open_app(settings) as opened:
        answers = [await opened.ask(question) for question in SAMPLE_QUESTIONS]
    for answer in answers:
        console = Console(file=io.StringIO(), width=80, height=24, markup=False, emoji=False, highlight=False)
        show_short(answer, console)
        assert isinstance(console.file, io.StringIO)
        lines = console.file.getvalue().splitlines()
        assert len(lines) <= 23 and all(cell_len(line) <= 80 for line in lines), answer.question
        assert "--full" not in "".join(lines[:-1]), "the whole text is there"


def test_documents_lists_and_shows(cli: Cli, demo: Ran) -> None:
    listed = cli.call("documents", "--limit", "3", "--json")
    assert_shape(listed.json, SHAPES["dtrag documents"])
    assert len(listed.json["documents"]) == 3
    assert cli.call("documents", "list", "--limit", "3", "--json").json == listed.json
    lines = cli.call("documents").out.splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("Leave and Holidays · Samples/Handbook"))
    assert re.search(r" · \d+ chunks$", lines[row])
    assert re.match(r"  [0-9a-f-]{36}  \S*leave-and-holidays\.md$", lines[row + 1])
    assert re.search(r"\d+ of \d+ documents, from \d+ files; \d+ chunks altogether", cli.call("documents").err)
    document = listed.json["documents"][0]["document_id"]
    shown = cli.call("documents", "show", document, "--json")
    assert_shape(shown.json, SHAPES["dtrag documents show"])
    assert len(shown.json["text"]) == shown.json["characters"]
    assert shown.json["text"].splitlines()[-1].strip() in cli.call("documents", "show", document).out
    misplaced = cli.call("documents", "--limit", "3", "list")
    assert misplaced.code == exit_codes.USAGE
    assert "after `documents list`" in misplaced.err


def test_doctor_finds_everything_in_order(cli: Cli, demo: Ran) -> None:
    ran = cli.call("doctor", "--json")
    assert ran.code == 0, ran.out
    assert_shape(ran.json, SHAPES["dtrag doctor"])
    states = {check["name"]: check["state"] for check in ran.json["checks"]}
    assert {"python", "data folder", "server", "database", "schema", "roles", "index", "contents"} <= set(states)
    assert states["roles"] == states["schema"] == "ok"
    assert "dtrag_reader" in cli.call("doctor").out


def test_doctor_says_what_is_wrong(cli: Cli, demo: Ran, folder: Path) -> None:
    fresh = Cli(folder / "not-made-yet")
    assert fresh.call("doctor").code == 0
    assert not fresh.data_dir.exists()

    unreachable = cli.call("--database-url", NOWHERE, "doctor", "--json")
    assert unreachable.code == exit_codes.DATABASE_UNREACHABLE
    assert not unreachable.json["ok"]
    assert "hush" not in unreachable.out + unreachable.err

    with_file = folder / "file"
    with_file.write_text("in the way")
    blocked = Cli(with_file).call("doctor")
    assert blocked.code in {exit_codes.FAILURE, exit_codes.DATABASE_UNREACHABLE}
    assert "FAIL" in blocked.out and "--data-dir" in blocked.out


def test_doctor_says_what_is_public(cli: Cli, demo: Ran) -> None:
    def public(branches: str) -> dict[str, str]:
        ran = cli.call("doctor", "--json", DTRAG_PUBLIC=branches)
        return next(check for check in ran.json["checks"] if check["name"] == "public")

    assert public("Samples")["state"] == "ok"
    missing = public("Samples, Nowhere")
    assert (missing["state"], missing["detail"]) == ("warn", "no category: Nowhere")
    refused = cli.call("doctor", DTRAG_PUBLIC="A//B")
    assert "DTRAG_PUBLIC is * or paths" in refused.out


def test_settings_are_all_shown_and_secrets_are_not(cli: Cli) -> None:
    ran = cli.call("--database-url", NOWHERE, "settings", "--json")
    assert_shape(ran.json, SHAPES["dtrag settings"])
    assert [row["name"] for row in ran.json["settings"]] == [row["name"] for row in Settings().rows()]
    assert [row["name"] for row in ran.json["flags"]] == [flag.name for flag in FLAGS]
    assert "hush" not in ran.out
    text = cli.call("settings").out
    assert all(row["environment"] in text for row in ran.json["settings"])


def test_a_setting_is_explained_with_its_sources_and_secrets_are_not_shown(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('port = 9000\nllm_api_key = "hush"\ndata_dir = "data"\n', "utf-8")
    file.chmod(0o600)
    ran = cli.call("config", "explain", "DTRAG_PORT", "--json", DTRAG_CONFIG=str(file), DTRAG_PORT="9100")
    assert_shape(ran.json, SHAPES["dtrag config explain"])
    assert ran.json["value"] == 9100
    assert ran.json["source"] == "environment"
    rows = [tuple(row.values()) for row in ran.json["sources"]]
    assert rows == [("option", "", None), ("environment", "", "9100"), ("DTRAG_CONFIG", str(file), "9000")]
    secret = cli.call("config", "explain", "llm_api_key", DTRAG_CONFIG=str(file))
    assert "(set)" in secret.out
    assert "hush" not in secret.out + cli.call("settings", "--json", DTRAG_CONFIG=str(file)).out
    unknown = cli.call("config", "explain", "prot")
    assert (unknown.code, "Did you mean 'port'?" in unknown.err) == (InvalidInput.exit_code, True)


def test_every_list_is_a_table_json_csv_or_markdown(cli: Cli, demo: Ran) -> None:
    """As JSON the same as with `--json`; the others have a header and a row for each entry."""
    lists = {
        ("documents", "list"): "documents",
        ("search", "annual leave"): "results",
        ("taxonomy", "tree"): "nodes",
        ("taxonomy", "list"): "versions",
        ("agents", "list"): "agents",
        ("keys", "list"): "keys",
        ("audit", "list"): "lines",
        ("jobs", "list"): "jobs",
        ("cbr", "list"): "cases",
        ("review", "list"): "items",
        ("trace", "--list", "5"): "traces",
        ("tools", "list"): "tools",
        ("eval", "runs"): "evaluations",
        ("models", "list"): "models",
        ("licences",): "packages",
    }
    with_cases = dataclasses.replace(cli, settings=(*cli.settings, ("CBR_ENABLED", "true")))
    for command, key in lists.items():
        plain, same = (with_cases.call(*command, *form).json for form in (("--json",), ("--format", "json")))
        assert same.keys() == plain.keys()
        read = list(csv.reader(io.StringIO(with_cases.call(*command, "--format", "csv").out)))
        lines = with_cases.call(*command, "--format=md").out.splitlines()
        assert {len(row) for row in read} == {len(read[0])}, command
        assert len(read) - 1 == len(lines) - 2 == len(plain[key]), command
    assert cli.call("keys", "list", "--format", "xml").code == exit_codes.USAGE
    assert cli.call("documents", "show", "nonesuch", "--json").json["error"]
    failed = cli.call("search", "leave", "--category", "Nonesuch", "--format", "json")
    assert failed.json["error"]["message"] in failed.err


def test_models_lists_and_refuses_unknown_names(cli: Cli) -> None:
    ran = cli.call("models", "--json")
    assert_shape(ran.json, SHAPES["dtrag models"])
    assert cli.call("models", "list", "--json").json == ran.json
    assert "minilm" in cli.call("models").out
    unknown = cli.call("models", "pull", "nonesuch", "--json")
    assert unknown.code == exit_codes.FAILURE
    assert unknown.json["error"]["type"] == "ModelNotFound"


def test_reindex_goes_over_every_document(cli: Cli, demo: Ran) -> None:
    total = cli.call("documents", "--json").json["total"]["documents"]
    ran = cli.call("reindex", "--json")
    assert_shape(ran.json, SHAPES["dtrag reindex"])
    assert ran.json["documents"] == total + 1, "the superseded edition, too"
    assert cli.call("search", "annual leave", "--json").json["results"]


def test_up_answers_and_stops_in_order(cli: Cli) -> None:
    process = cli.start("up", "--port", "0", "--json")
    try:
        assert process.stderr is not None
        assert "No key is configured" in process.stderr.readline().decode()
        line = process.stderr.readline().decode()
        address = re.search(r"http://[\d.]+:\d+", line)
        assert address, line
        with urllib.request.urlopen(f"{address[0]}/livez", timeout=10) as response:
            assert response.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert_shape(json.loads(out), SHAPES["dtrag up"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serach", "x"], "No such command"),
        (["search"], "QUERY"),
        (["search", "x", "--mode", "foo"], "hybrid"),
        (["search", "x", "--top-k", "0"], "1"),
        (["ingest"], "PATH"),
        (["ingest", "/no/such/file"], "no such file"),
        (["documents", "show"], "ID"),
        (["eval", "retrieval"], "DIR"),
        (["eval", "answers"], "DIR"),
        (["up", "--port", "eight"], "port"),
    ],
)
def test_wrong_arguments_are_explained(folder: Path, arguments: list[str], words: str) -> None:
    ran = Cli(folder / "untouched").call(*arguments, "--json")
    assert ran.code == exit_codes.USAGE
    assert words in ran.err
    assert_shape(ran.json, {"error": {"type": "", "message": ""}})
    assert not (folder / "untouched").exists()


def test_wrong_values_of_settings_are_explained(folder: Path) -> None:
    for name, value in (("DTRAG_PORT", "many"), ("DTRAG_LOG_LEVEL", "LOUD"), ("DTRAG_EMBEDDER", "nonesuch")):
        ran = Cli(folder / "untouched").call("search", "x", **{name: value})
        assert ran.code == exit_codes.USAGE
        assert value in ran.err


def test_a_database_out_of_reach_is_exit_code_4(cli: Cli) -> None:
    ran = cli.call("--database-url", NOWHERE, "search", "x", "--json")
    assert ran.code == exit_codes.DATABASE_UNREACHABLE
    assert ran.json["error"]["type"] == "DatabaseUnavailable"
    assert "dtrag doctor" in ran.err
    assert "hush" not in ran.out + ran.err


def test_an_empty_index_says_how_to_fill_it(folder: Path, cli: Cli) -> None:
    ran = cli.call("search", "tea", DTRAG_DATABASE_NAME="empty")
    assert (ran.code, ran.out) == (0, "")
    assert "dtrag ingest" in ran.err
    assert "dtrag ingest" in cli.call("documents", DTRAG_DATABASE_NAME="empty").err


def test_a_closed_output_is_not_a_failure(cli: Cli, demo: Ran) -> None:
    for arguments in (["documents"], ["documents", "--json"], ["search", "the", "--top-k", "100"]):
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.Popen([PROGRAM, *arguments], env=cli.environment(), stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert b"Broken" not in err and b"Traceback" not in err


def test_a_terminal_gets_a_moving_bar_and_a_file_gets_plain_text(cli: Cli, tmp_path: Path) -> None:
    notes = make_notes(tmp_path / "notes", 3)
    terminal, inside = pty.openpty()
    environment = cli.environment(TERM="xterm-256color", DTRAG_DATABASE_NAME="terminal")
    process = subprocess.Popen(
        [PROGRAM, "ingest", notes], env=environment, stdout=subprocess.PIPE, stderr=inside, stdin=subprocess.DEVNULL
    )
    os.close(inside)
    shown = written_to(terminal)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Reading" in shown and b"\x1b[" in shown
    assert b"\x1b" not in out
    assert b"3 new or changed" in out


def interrupted(cli: Cli, process: subprocess.Popen[bytes], number: signal.Signals) -> Ran:
    before = children(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert not [pid for pid in before if Path(f"/proc/{pid}").exists()]
    assert server.status(cli.data_dir).pid is None
    return Ran(process.returncode, out.decode(), err.decode())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for child processes in /proc")
def test_an_interrupted_ingest_keeps_what_it_acknowledged(folder: Path, tmp_path: Path) -> None:
    cli = Cli(folder / "interrupted", (("DTRAG_EMBEDDER", "none"),))
    notes = make_notes(tmp_path / "notes", 250)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = cli.start("ingest", notes, "--json")
        deadline = time.monotonic() + 60
        while not any("parsers.worker" in command for command in children(process.pid).values()):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        ran = interrupted(cli, process, number)
        assert (ran.code, ran.json["error"]["type"]) == (code, "Interrupted")
        assert ran.err == "dtrag: Interrupted; what was acknowledged is kept.\n"

    again = cli.run("ingest", notes, "--json")
    assert again.code == 0
    assert again.json["documents"] + again.json["unchanged"] >= 250
    assert cli.call("documents", "--json").json["total"]["documents"] == 250


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for child processes in /proc")
def test_an_interrupted_start_of_the_database_leaves_no_server(folder: Path, tmp_path: Path) -> None:
    cli = Cli(folder / "interrupted-start", (("DTRAG_EMBEDDER", "none"),))
    notes = make_notes(tmp_path / "notes", 1)
    process = cli.start("ingest", notes)
    deadline = time.monotonic() + 60
    while not (cli.data_dir / "start.lock").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    ran = interrupted(cli, process, signal.SIGINT)
    assert ran.code == exit_codes.INTERRUPTED
    assert ran.err == "dtrag: Interrupted; what was acknowledged is kept.\n"
    assert cli.call("ingest", notes).code == 0


WITHOUT_JSON = {("mcp",), ("answers", "export")}
"""Commands whose standard output belongs to a protocol or a file, so that they print no JSON of their own."""


def test_help_fits_80_columns_and_is_complete() -> None:
    for path in commands():
        ran = Cli(Path("/nonexistent")).call(*path, "--help")
        assert ran.code == 0
        assert "Usage: dtrag" in ran.out
        assert max(map(len, ran.out.splitlines())) <= 80, path
        assert "…" not in ran.out.replace('"…"', "")
        leaf = COMMAND(app)
        for name in path:
            leaf = leaf.commands[name]  # type: ignore[attr-defined]
        assert "--json" in ran.out or hasattr(leaf, "commands") or tuple(path) in WITHOUT_JSON
    formats = Cli(Path("/nonexistent")).call("ingest", "--help").out
    assert all(row.label in re.sub(r"\s+", " ", formats) for row in FORMATS)
    assert Cli(Path("/nonexistent")).call("--version").out.startswith("dtrag ")


def test_help_loads_nothing_heavy() -> None:
    ran = Cli(Path("/nonexistent")).run("--help", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in ran.err.splitlines() if line.startswith("import time:")}
    assert "typer" in loaded
    assert not loaded & {"numpy", "psycopg", "fastapi", "onnxruntime", "rich.console", "lxml", "asyncpg", "pydantic"}


def test_every_command_and_exit_code_is_documented() -> None:
    text = DOCS.read_text("utf-8")
    for path in commands()[1:]:
        name = " ".join(("dtrag", *path))
        assert name in text, name
    leaves = {" ".join(("dtrag", *path)) for path in commands()[1:]} - {
        "dtrag answers",
        "dtrag eval",
        "dtrag cluster",
        "dtrag config",
        "dtrag embedder",
        "dtrag mcp",
        "dtrag sign-in",
        "dtrag sync",
        "dtrag watch",
    }
    listed = {name.removesuffix(" list") for name in leaves}
    assert {name for name in SHAPES if name.startswith("dtrag ")} == listed
    for code in exit_codes.EXIT_CODES:
        assert f"| {code} |" in text
