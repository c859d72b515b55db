"""Every command of both READMEs runs, in order, after the ingest of the demo, and does what the README promises.

`dtrag` commands run in this process, the service in one of its own, and `curl` lines are sent by an HTTP client. Files
and folders that stand for the reader's own are written first. `NOT_RUN` has the reason for each that is not run; what
stands in both READMEs runs once.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import httpx2
import pytest

from dtrag.adapters.postgres.server.server import EmbeddedServer
from tests.integration.cli_process import Cli
from tests.model_server import ModelServer

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = {
    "dtrag watch .*": "it does not end; tests/integration/test_watching.py runs it",
    "make demo": "make is not run by tests; the fixture runs what it runs",
    "make test": "this test is part of it",
    "make (setup|docs|clean)": "it makes or removes what the tests run in",
    "make wheel": "tests/faults/test_wheel_install.py builds and installs the wheels, and runs the next commands",
    "python3 -m venv .*": "see make wheel",
    "~/dtrag/bin/dtrag .*": "see make wheel",
    "source .*|userdel .*": "it changes a shell or the machine",
    "dtrag mcp": "it speaks a protocol; tests/integration/test_cli_mcp.py starts it as programs do",
    "dtrag models pull.*": "it needs the network; tests/unit/adapters/embedders/test_models.py has a pip of its own",
    "dtrag audit isolation": "minutes; tests/integration/test_cli_audit.py runs it with fewer requests",
}
"""A pattern of commands -> why they are not run."""
PRUNED = r"Documents +0 new or changed.*Unchanged +5\b.*Removed +1\b.*leave\.md +-> +.*moved\.md\n- .*gone\.md"
EXCLUDED = r"Documents +0 new or changed.*Unchanged +4\b.*1 folder excluded"
PROMISED = {
    # the samples
    'dtrag ask "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?"': r"10권.*도서관이용규정 제4조",
    'dtrag ask "성적장학금을 받으려면 평점평균이 얼마 이상이어야 하나요?"': r"3\.8 이상.*장학금지급규정 제5조",
    'dtrag ask "학생 주차 요금은 한 달에 얼마인가요?"': r"답을 찾지 못했습니다.*\(abstain\)",
    'dtrag ask "How quickly must I report a suspected security incident?"': r"within one hour.*Information Security",
    'dtrag ask "Which dental insurance does the company offer?"': r"do not answer this question.*\(abstain\)",
    # the two editions
    'dtrag ask "휴학은 몇 학기까지?"': r"\A(?!.*통산 4학기를).*통산 6학기를.*regulations\.hwpx",
    'dtrag ask "휴학은 몇 학기까지?" --as-of 2023-05-01': r"\A(?!.*6학기).*통산 4학기.*2024-03-01 전까지",
    "dtrag regulations diff 학칙 2023-05-01 2024-05-01": r"제11조\(휴학의 종류\): amended.*제12조\(휴학기간\): amended"
    r".*부칙\(2024\. 3\. 1\.\): added.*\n3 changes, 23 provisions unchanged",
    'dtrag regulations show "학칙 제12조" --as-of 2023-05-01': r"Valid +from 2001-03-01, replaced on 2024-03-01"
    r".*Editions +2023-03-01, 2024-03-01.*통산 4학기",
    # documents of one's own
    'dtrag ingest FOLDER rules.hwpx --category "HR/Rules"': r"Documents +13 new or changed",
    'dtrag ingest FOLDER --category "HR/Rules" --prune': PRUNED,
    'dtrag ingest FOLDER --category "HR/Rules" --exclude "*.tmp" --exclude old/': EXCLUDED,
    'dtrag search "parental leave" --top-k 5 --category HR': r"Own leave, Parental leave.*thirty weeks",
    'dtrag ask "How long is parental leave?"': r"thirty weeks",
    'dtrag ingest 규정집.hwpx 지침/ --category "규정/학사"': r"Documents +13 new or changed",
    'dtrag ingest 지침/ --category "규정/학사" --prune': PRUNED,
    'dtrag ingest 지침/ --category "규정/학사" --exclude "*.tmp" --exclude 이전/': EXCLUDED,
    'dtrag search "휴학 신청 기간" --top-k 5 --category 규정': r"학사운영규정 제11조\(휴학의 신청\)",
    'dtrag ask "휴학은 언제까지 신청해야 하나요?"': r"30일 이내.*제11조\(휴학의 신청\)",
    "dtrag documents": r"Information Security · Samples/Handbook.*examples/tarrowby-handbook/information-security\.pdf",
    "dtrag doctor": r"ok +index.*ok +contents",
    "dtrag settings": r"DTRAG_DATA_DIR|data_dir",
    "dtrag licences": r"psycopg +\S+ +LGPL-3\.0-only",
    # with a language model
    "dtrag trace": r"Trace +[0-9a-f-]{36}.*compose",
    "dtrag feedback 8f14e45f-ceea-467f-a8d4-3f1b2c6d7e80 up": r"Recorded: thumbs_up",
    # measured
    "dtrag eval quality my-questions --corpus handbook/ --report quality.html --save before.json": r"faithfulness",
    "dtrag eval quality my-questions --corpus handbook/ --against before.json": r"faithfulness",
}
"""A command -> what it prints, as the README says or the reader expects of it."""
GENERATED = {
    "README.md": "Parental leave lasts thirty weeks. [1]",
    "README.ko.md": "휴학은 학기 개시일부터 30일 이내에 신청하여야 합니다. [1]",
}
"""What the language model writes."""


def commands_of(readme: str) -> list[str]:
    """The lines of the shell blocks without comments, continued lines joined, then the commands between backticks."""
    lines = [line for language, body in BLOCK.findall(readme) if language == "sh" for line in shell_lines(body)]
    spans = re.findall(r"`((?:dtrag|make|userdel|source) [^`\n]+)`", BLOCK.sub("", readme))
    return lines + [span for span in spans if span not in lines]


def shell_lines(body: str) -> list[str]:
    return [re.sub(r" +#(?![^']*' *$).*", "", line) for line in body.replace("\\\n ", "").splitlines()]


def not_run(command: str) -> bool:
    return any(re.fullmatch(pattern, command) for pattern in NOT_RUN)


def run_already(command: str, name: str) -> bool:
    """Whether a command stands in README.md to the letter, too, and nothing after it needs what it does."""
    needed = command.startswith("export ") or "$KEY" in command
    return name != "README.md" and not needed and command in commands_of((ROOT / "README.md").read_text("utf-8"))


class Reader:
    """A reader who types the commands of a README in a folder with documents of their own."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self.cli = cli
        self.folder = folder
        self.secret = ""
        self.address = ""

    def typed(self, command: str) -> None:
        words = shlex.split(command)
        if words[0] == "curl":
            self.sent(command, words)
        elif words[1:3] == ["keys", "create"]:
            self.secret = self.cli.call(*words[1:]).out.split()[0]
        else:
            if "--prune" in words:
                (self.folder / words[2] / "leave.md").rename(self.folder / words[2] / "moved.md")
                (self.folder / words[2] / "gone.md").unlink()
            if words[1] == "feedback":
                words[2] = self.cli.call("ask", "How long is parental leave?", "--json").json["trace_id"]
            ran = self.cli.call(*words[1:])
            assert ran.code == 0, f"{command}\n{ran.err}"
            printed = f"{ran.out}\n{ran.err}"
            assert re.search(PROMISED[command], printed, re.DOTALL), f"{command}\nprints\n{printed}"

    def sent(self, command: str, words: list[str]) -> None:
        """The request of a `curl` line, to the service that runs."""
        url = words[2].replace("localhost:8001", self.address)
        options = list(zip(words[3::2], words[4::2], strict=True))
        headers = dict(value.split(": ", 1) for name, value in options if name == "-H")
        with httpx2.Client(timeout=60) as client:
            if any(name == "-F" for name, _ in options):
                form = dict(value.split("=", 1) for name, value in options if name == "-F")
                file = self.folder / form.pop("files").removeprefix("@")
                reply = client.post(url, files={"files": (file.name, file.read_bytes())}, data=form)
                assert reply.status_code == 201, f"{command}\n{reply.text}"
                assert reply.json()["documents"], command
                return
            body = json.loads(dict(options)["-d"])
            headers = {name: value.replace("$KEY", self.secret) for name, value in headers.items()}
            reply = client.post(url, json=body, headers=headers)
        assert reply.status_code == 200, f"{command}\n{reply.text}"
        answer = reply.json()
        if "question" in body:
            assert answer["decision"] in {"answer", "review"}, command
            assert answer["citations"], command
            assert re.search("thirty weeks|30일 이내", answer["text"]), command
        else:
            assert answer["results"], command
            if "$KEY" in command:
                assert {result["taxonomy_path"][-1] for result in answer["results"]} == {"University"}

    @contextlib.contextmanager
    def service(self, *options: str) -> Iterator[None]:
        """`dtrag up`, on a free port in place of 8001."""
        process = self.cli.start("up", "--port", "0", *options)
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if line.startswith(b"dtrag is listening on "):
                    self.address = line.split()[4].decode()
                    break
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)

    def executed(self, code: str) -> str:
        out = io.StringIO()
        environment = {**self.cli.environment(), "DTRAG_DATA_DIR": str(self.folder / "elsewhere")}
        with patch.dict(os.environ, environment, clear=True), contextlib.redirect_stdout(out):
            exec(compile(code, "README", "exec"), {"__name__": "readme"})
        return out.getvalue()


def write_own_documents(folder: Path) -> None:
    """The files and folders that the commands of both READMEs name."""
    book = ROOT / "examples/hanbit-university/regulations.hwpx"
    leave = "# Own leave\n\n## Parental leave\n\nParental leave lasts thirty weeks.\n"
    for name in ("FOLDER", "지침"):
        (folder / name).mkdir()
        (folder / name / "leave.md").write_text(leave, "utf-8")
        for thing in ("gone", "kettles", "lamps", "old/ovens", "이전/stoves"):
            (folder / name / thing).parent.mkdir(exist_ok=True)
            (folder / name / f"{thing}.md").write_text(f"# {thing}\n\nThis is about {thing}.\n", "utf-8")
    for name in ("rules.hwpx", "규정집.hwpx", "book.hwpx"):
        shutil.copy(book, folder / name)
    (folder / "handbook.md").write_text(leave, "utf-8")
    shutil.copytree(ROOT / "examples/tarrowby-handbook", folder / "handbook")
    (folder / "my-questions").mkdir()
    questions = (ROOT / "examples/questions.jsonl").read_text("utf-8").splitlines(keepends=True)
    chosen = [line for line in questions if '"language": "en"' in line]
    (folder / "my-questions/questions.jsonl").write_text("".join(chosen), "utf-8")


def example_of(readme: str) -> str:
    """The answer that the README shows, without times."""
    [block] = [body for language, body in BLOCK.findall(readme) if language == "text" and "Confidence" in body]
    return without_times(block)


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\d ms", "… ms", re.sub(r"(\n *Stages:[^\n]*(?:\n[^\n]*ms)*)", "", text))


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_every_command_does_what_the_readme_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (ROOT / name).read_text("utf-8")
    commands = commands_of(readme)
    remaining = [command for command in commands if not not_run(command) and not run_already(command, name)]
    write_own_documents(tmp_path)
    with EmbeddedServer.open(tmp_path / "data"), contextlib.ExitStack() as running:
        reader = Reader(Cli(tmp_path / "data"), tmp_path)
        monkeypatch.chdir(ROOT)
        shown = reader.cli.call("demo").out
        assert example_of(readme).strip() in without_times(shown)
        monkeypatch.chdir(tmp_path)
        for command in remaining:
            if command.startswith("export DTRAG_LLM="):
                running.close()  # the service without a model
                server = running.enter_context(ModelServer(GENERATED[name]))
                model = ("DTRAG_LLM", command.partition("=")[2]), ("DTRAG_LLM_BASE_URL", server.url)
                reader.cli = Cli(tmp_path / "data", model)
            elif command == "dtrag up --workers 2":
                with reader.service("--workers", "2"):
                    assert httpx2.get(f"{reader.address}/health").json()["status"] == "healthy"
            elif command == "dtrag up":
                with reader.service():
                    chat = {"model": "dtrag", "messages": [{"role": "user", "content": "How long is parental leave?"}]}
                    headers = {"Authorization": f"Bearer {reader.secret}"} if reader.secret else {}
                    with httpx2.Client(timeout=60, base_url=reader.address, headers=headers) as client:
                        assert client.post("/v1/chat/completions", json=chat).status_code == 200
                    assert server.requests
            else:
                if command.startswith("curl ") and not reader.address:
                    running.enter_context(reader.service())
                reader.typed(command)


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_the_python_of_the_readme_prints_answers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_own_documents(tmp_path)
    monkeypatch.chdir(tmp_path)
    reader = Reader(Cli(tmp_path / "data"), tmp_path)
    blocks = [body for language, body in BLOCK.findall((ROOT / name).read_text("utf-8")) if language == "python"]
    asynchronous, synchronous = map(reader.executed, blocks)
    assert re.search("20 weeks of fully paid leave|30일 이내", asynchronous), asynchronous
    assert re.search("20 weeks of fully paid leave|30일 이내", synchronous), synchronous
    assert "[]" in asynchronous, "nothing failed"


def test_every_command_is_run_or_has_a_reason() -> None:
    commands = {command for name in ("README.md", "README.ko.md") for command in commands_of((ROOT / name).read_text())}
    assert [pattern for pattern in NOT_RUN if not any(re.fullmatch(pattern, command) for command in commands)] == []
    assert PROMISED.keys() <= commands
