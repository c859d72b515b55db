"""deploy/: what can be checked of the files without a container engine or systemd; their own programs, where installed.

Images are not built here, and units are not started.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

import dtrag
from dtrag.delivery.api.serve import DRAIN_S
from dtrag.delivery.cli.commands import app
from dtrag.delivery.workers import GRACE_S
from dtrag.settings import Settings
from tests.test_docs import VARIABLE, declared_variables, mistake, text_of

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CONTAINERFILE, COMPOSE, UNIT = (DEPLOY / name for name in ("Containerfile", "compose.yml", "dtrag.service"))
MOST_EXPOSED = 1.5
"""Of `systemd-analyze security`, where 0 is the least exposed and 10 the most: it is 1.2 with systemd 252."""


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(text_of(COMPOSE))["services"]
    return found


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile with their arguments."""
    text = re.sub(r"^#.*\n", "", text_of(CONTAINERFILE), flags=re.M).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in text.splitlines() if line.strip()]


def unit() -> dict[str, str]:
    """The options of the section [Service]; of those that are given twice, the last."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text_of(UNIT))
    return dict(parser["Service"])


def seconds(text: str) -> float:
    return float(text.rstrip("s"))


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def test_every_variable_is_a_setting() -> None:
    for file in DEPLOY.iterdir():
        assert set(VARIABLE.findall(text_of(file))) <= declared_variables(), file.name


def test_every_image_has_a_version_and_no_registry() -> None:
    built = {arguments.split(" AS ")[1] for name, arguments in instructions() if name == "FROM" and " AS " in arguments}
    images = {arguments.split(" AS ")[0] for name, arguments in instructions() if name == "FROM"} - built
    images |= {service["image"] for service in services().values()}
    assert len(images) == 5
    for image in images:
        assert re.fullmatch(r"[a-z0-9/-]+:[\w.-]*\d+\.\d+\.\d+[\w.-]*", image), image
    assert services()["dtrag"]["image"] == f"dtrag:{dtrag.__version__}"


def test_the_containerfile_uses_what_the_context_has() -> None:
    ignored = text_of(DEPLOY / "Containerfile.dockerignore").splitlines()
    assert ignored[0] == "**"
    for name, arguments in instructions():
        if name == "COPY" and "--from" not in arguments:
            for source in arguments.split()[:-1]:
                assert (ROOT / source).exists(), source
                top = source.split("/")[0]
                assert any(re.fullmatch(line[1:].replace("*", ".*"), top) for line in ignored if line[0] == "!"), top
    for _, arguments in instructions():
        for install in re.findall(r"pip\S* [^&]*?install ([^&]*)", arguments):
            assert "--require-hashes" in install or "--no-index" in install


def test_the_image_runs_as_a_user_with_a_name_and_no_rights() -> None:
    last = max(number for number, (name, _) in enumerate(instructions()) if name == "FROM")
    final = instructions()[last:]
    [user] = [arguments for name, arguments in final if name == "USER"]
    assert re.fullmatch(r"[1-9]\d{4}:[1-9]\d{4}", user)
    assert any(name == "RUN" and f"useradd --uid {user.split(':')[0]}" in arguments for name, arguments in final)
    [probe] = [arguments for name, arguments in final if name == "HEALTHCHECK"]
    assert "/readyz" in probe
    assert [json for name, json in final if name in {"ENTRYPOINT", "CMD"}] == ['["dtrag"]', '["up"]']


@pytest.mark.parametrize("name", sorted(services()))
def test_a_service_of_compose_is_confined(name: str) -> None:
    service = services()[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service.get("read_only") or name == "ollama"
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert ("ports" in service) == (name == "dtrag")
    for variable, value in service.get("environment", {}).items():
        if re.search("PASSWORD|SECRET|TOKEN|KEY|URL", variable):
            assert re.search(r"\$\{\w+:[?-]", value), f"{variable} is a secret in the file"


def test_what_stops_the_service_waits_until_it_has_finished() -> None:
    needed = Settings.load(environ={}).stop_seconds + DRAIN_S + GRACE_S
    assert seconds(services()["dtrag"]["stop_grace_period"]) > needed
    assert seconds(unit()["TimeoutStopSec"]) > needed
    assert unit()["KillMode"] == "mixed", "SIGTERM to every process ends the connections to the database at once"


def test_the_commands_of_the_files_exist() -> None:
    text = text_of(UNIT)
    for command in re.findall(r"^Exec\w+=/opt/dtrag/bin/dtrag (.*)$", text, re.M):
        assert mistake(command.split(), typer.main.get_command(app)) == ""
    assert re.search(r"^ExecStart=/opt/dtrag/bin/dtrag up$", text, re.M)


def test_the_database_is_prepared_as_the_documentation_says() -> None:
    page = text_of(ROOT / "docs/how-to/external-database.md")
    [statements] = re.findall(r"^```sql\n(.*?)^```$", page, re.M | re.S)
    prepared = text_of(DEPLOY / "database.sql")
    for line in statements.splitlines():
        assert line in prepared or line.startswith("grant "), line


@needs("hadolint")
def test_hadolint_finds_nothing() -> None:
    linted = run("hadolint", CONTAINERFILE)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.skipif(
    run("docker", "compose", "version").returncode != 0 if shutil.which("docker") else True, reason="no docker compose"
)
def test_compose_accepts_the_file() -> None:
    command = (
        "env",
        "POSTGRES_PASSWORD=a",
        "DATABASE_PASSWORD=b",
        "docker",
        "compose",
        "--file",
        COMPOSE,
        "config",
        "--quiet",
    )
    accepted = run(*command)
    assert accepted.returncode == 0, accepted.stderr


@needs("systemd-analyze")
def test_systemd_accepts_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(text_of(UNIT).replace("/opt/dtrag/bin/dtrag", "/bin/true"), "utf-8")  # it must exist
    verified = run("systemd-analyze", "verify", "--man=no", copy)
    assert (verified.returncode, [line for line in verified.stderr.splitlines() if UNIT.name in line]) == (0, [])
    rated = run("systemd-analyze", "security", "--offline=true", "--no-pager", copy)
    [level] = re.findall(r"exposure level for \S+: (\d+\.\d)", rated.stdout)
    assert float(level) <= MOST_EXPOSED
