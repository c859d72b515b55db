"""The list of MCP servers: what it may say, and how it is told that something in it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtrag.adapters.mcp.config import MOST_BYTES, ServerConfig, read_config
from dtrag.errors import InvalidInput

WHOLE = """
[servers.files]
command = ["files-server", "--root", "/srv"]
env = ["FILES_TOKEN"]
folder = "/srv"
tools = ["read"]
start_seconds = 60

[servers.web-2]
url = "https://tools.example.org/mcp"
headers = { Authorization = "WEB_TOKEN" }
answer_seconds = 2.5
"""


def written(folder: Path, text: str, name: str = "servers.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_without_a_file_there_is_no_server() -> None:
    assert read_config(None) == []


def test_all_options_of_a_server(tmp_path: Path) -> None:
    files, web = read_config(written(tmp_path, WHOLE))
    assert files == ServerConfig(
        name="files",
        command=("files-server", "--root", "/srv"),
        env=("FILES_TOKEN",),
        folder=Path("/srv"),
        tools=("read",),
        start_seconds=60.0,
    )
    assert web == ServerConfig(
        name="web-2",
        url="https://tools.example.org/mcp",
        headers=(("Authorization", "WEB_TOKEN"),),
        answer_seconds=2.5,
    )


def test_the_same_in_json(tmp_path: Path) -> None:
    text = json.dumps({"servers": {"files": {"command": ["files-server"]}}})
    assert read_config(written(tmp_path, text, "servers.JSON")) == [
        ServerConfig(name="files", command=("files-server",))
    ]
    assert read_config(written(tmp_path, "")) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servers = 1", "[servers.NAME]"),
        ("[server.x]\ncommand = ['a']", "[servers.NAME]"),
        ("[servers.x", "cannot be read"),
        ("[servers.x]", "either command"),
        ("[servers]\nx = 1", "a table"),
        ("[servers.x]\ncommand = ['a']\nurl = 'https://a.org'", "either command"),
        ("[servers.'a.b']\ncommand = ['a']", "begin with a letter"),
        ("[servers.'ｘ']\ncommand = ['a']", "begin with a letter"),
        ("[servers.x]\ncommand = 'rm -rf /'", "list of strings"),
        ("[servers.x]\ncommand = []", "must be a list such as"),
        ("[servers.x]\ncommand = ['a\\u0000b']".replace("'", '"'), "list of strings"),
        ("[servers.x]\ncommand = ['a']\nargs = ['b']", "no 'args' here"),
        ("[servers.x]\ncommand = ['a']\nheaders = {}", "no 'headers' here"),
        ("[servers.x]\ncommand = ['a']\nfolder = 3", "folder"),
        ("[servers.x]\ncommand = ['a']\nstart_seconds = 0", "start_seconds"),
        ("[servers.x]\ncommand = ['a']\nanswer_seconds = nan", "answer_seconds"),
        ("[servers.x]\ncommand = ['a']\nanswer_seconds = true", "answer_seconds"),
        ("[servers.x]\ncommand = ['a']\ntools = ['b', 3]", "tools must be"),
        ("[servers.x]\nurl = 'file:///etc/passwd'", "url must be"),
        ("[servers.x]\nurl = 'http://['", "url must be"),
        ("[servers.x]\nurl = 7", "url must be"),
        ("[servers.x]\nurl = 'https://me:secret@a.org/mcp'", "secrets"),
        ("[servers.x]\nurl = 'https://a.org'\nheaders = 'Authorization'", "headers must be"),
        ("[servers.x]\nurl = 'https://a.org'\nheaders = {Host = 'X'}", "'Host'"),
        ("[servers.x]\nurl = 'https://a.org'\nheaders = {'A:b' = 'X'}", "'A:b'"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        read_config(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("line", ["headers = {Authorization = 'Bearer s3cret-value'}", "env = ['KEY=s3cret-value']"])
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, line: str) -> None:
    kind = "url = 'https://a.org'" if "headers" in line else "command = ['a']"
    with pytest.raises(InvalidInput) as caught:
        read_config(written(tmp_path, f"[servers.x]\n{kind}\n{line}"))
    assert "name the variable" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="DTRAG_MCP_SERVERS"):
        read_config(tmp_path / "missing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="UTF-8"):
        read_config(tmp_path / "bytes.toml")
    with pytest.raises(InvalidInput, match="bytes"):
        read_config(written(tmp_path, "#" * (MOST_BYTES + 1)))
    many = "".join(f"[servers.s{number}]\ncommand = ['a']\n" for number in range(51))
    with pytest.raises(InvalidInput, match="51"):
        read_config(written(tmp_path, many))
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_config(written(tmp_path, "[" * 100_000, "deep.json"))
