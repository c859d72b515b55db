"""Git repositories: what is read of them, what is never run or followed, and where git connects."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from dtrag.adapters.connectors import git
from dtrag.adapters.connectors.git import GitSource
from dtrag.errors import EgressBlocked, InvalidInput, SourceUnavailable
from tests.sources import Repository, git_server
from tests.web_server import Asked, always, answer, web_server


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.write("a.md", b"# A\n")
    made.commit()
    return made


def source(repository: Repository, tmp_path: Path, ref: str = "") -> GitSource:
    return GitSource(repository.address + ref, tmp_path / "cache")


async def paths(connector: GitSource) -> list[str]:
    return [item.path for item in await connector.items()]


async def test_links_and_submodules_are_not_followed_and_nothing_is_run(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, hooks = tmp_path / "ran", tmp_path / "home" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (hooks / "reference-transaction").chmod(0o755)
    config = f"[core]\nhooksPath = {hooks}\n[init]\ntemplateDir = {hooks.parent}\n"
    config += '[url "file:///nowhere/"]\ninsteadOf = file:///\n'
    (tmp_path / "home" / ".gitconfig").write_text(config)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "home"))
    repository.run("submodule", "--quiet", "add", str(Repository(tmp_path / "other").folder), "module")
    (repository.folder / "link.md").symlink_to("/etc/passwd")
    repository.write(".gitattributes", b"*.md filter=evil\n")
    repository.commit()
    connector = source(repository, tmp_path)
    assert await paths(connector) == [".gitattributes", ".gitmodules", "a.md"]
    shutil.copytree(hooks, connector._clone / "hooks")
    repository.write("b.md", b"# B\n")
    repository.commit()
    assert await paths(connector) == [".gitattributes", ".gitmodules", "a.md", "b.md"]
    assert not ran.exists()


async def test_a_file_in_lfs_is_an_error_and_not_the_text_of_its_pointer(
    repository: Repository, tmp_path: Path
) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 7\n"
    repository.write("a.md", pointer.encode())
    repository.commit()
    connector = source(repository, tmp_path)
    (item,) = await connector.items()
    with pytest.raises(SourceUnavailable, match="Git LFS"):
        await connector.fetch(item, tmp_path / "out.md")


async def test_a_branch_or_tag_is_read_and_rewritten_history_is_followed(
    repository: Repository, tmp_path: Path
) -> None:
    repository.run("tag", "-a", "-m", "First", "v1")
    repository.run("checkout", "--quiet", "-b", "draft/new")
    repository.write("b.md", b"# B\n")
    repository.commit()
    draft = source(repository, tmp_path, "@draft/new")
    assert await paths(draft) == ["a.md", "b.md"]
    assert (await draft.items())[1].uri == f"{repository.address}@draft/new/b.md"
    assert await paths(source(repository, tmp_path, "@v1")) == ["a.md"]
    repository.write("c.md", b"# C\n")
    (repository.folder / "b.md").unlink()
    repository.commit("--amend")
    assert await paths(draft) == ["a.md", "c.md"]
    repository.run("checkout", "--quiet", "main")
    repository.run("branch", "--quiet", "-D", "draft/new")
    with pytest.raises(SourceUnavailable, match="draft/new"):
        await draft.items()


async def test_a_tree_with_names_that_lead_elsewhere_is_listed_safely(repository: Repository, tmp_path: Path) -> None:
    blob = repository.run("hash-object", "-w", "--stdin", stdin=b"# Out\n")
    inner = repository.run("mktree", stdin=f"100644 blob {blob}\tpasswd.md\n".encode())
    outer = repository.run("mktree", stdin=f"040000 tree {inner}\t..\n040000 tree {inner}\t.git\n".encode())
    commit = repository.run("commit-tree", "-m", "Evil", outer)
    repository.run("update-ref", "refs/heads/main", commit)
    repository.run("symbolic-ref", "HEAD", "refs/heads/main")
    connector = source(repository, tmp_path)
    items = await connector.items()
    assert [item.path for item in items] == ["%2E%2E/passwd.md", ".git/passwd.md"]
    await connector.fetch(items[0], tmp_path / "out.md")
    assert (tmp_path / "out.md").read_bytes() == b"# Out\n"


async def test_a_clone_with_locks_or_damage_is_made_again(repository: Repository, tmp_path: Path) -> None:
    connector = source(repository, tmp_path)
    await connector.items()
    (clone,) = (tmp_path / "cache").iterdir()
    for damage in ("shallow.lock", "refs/dtrag/head.lock"):
        (clone / damage).write_bytes(b"")
    (clone.with_suffix(".new")).mkdir()
    repository.write("b.md", b"# B\n")
    repository.commit()
    assert await paths(connector) == ["a.md", "b.md"]
    shutil.rmtree(clone / "objects")
    assert await paths(source(repository, tmp_path)) == ["a.md", "b.md"]
    assert [file.name for file in (tmp_path / "cache").iterdir()] == [clone.name]


async def test_a_cache_that_cannot_be_written_is_an_error(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file")
    with pytest.raises(SourceUnavailable, match="cannot be stored"):
        await source(repository, tmp_path).items()


async def test_a_file_that_is_too_large_is_not_written(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "MAX_BYTES", 1 << 20)
    repository.write("a.md", b"a" * (3 << 20))
    repository.commit()
    connector = source(repository, tmp_path)
    (item,) = await connector.items()
    with pytest.raises(SourceUnavailable, match="larger than 1 MiB"):
        await connector.fetch(item, tmp_path / "out.md")
    assert (tmp_path / "out.md").stat().st_size <= 2 << 20


async def test_credentials_go_to_the_server_and_into_no_message(repository: Repository, tmp_path: Path) -> None:
    async with git_server(tmp_path, "kim:s3cr:t") as server:
        place = f"127.0.0.1:{server.port}/repository/.git"
        connector = GitSource(f"git+http://kim:s3cr%3At@{place}", tmp_path / "cache", server.allowed)
        assert await paths(connector) == ["a.md"]
        assert connector.address == f"git+http://{place}"
        assert "s3cr" not in "".join(
            str(file.read_bytes()) for file in (tmp_path / "cache").rglob("*") if file.is_file()
        )
        refused = GitSource(f"git+http://kim:wr0ng@{place}", tmp_path / "cache", server.allowed)
        with pytest.raises(SourceUnavailable) as caught:
            await refused.items()
        assert "wr0ng" not in str(caught.value) and "s3cr" not in str(caught.value)


async def test_git_connects_to_the_checked_address_only(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def loopback(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with git_server(tmp_path) as server:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        address = f"git+http://git.invalid:{server.port}/repository/.git"
        allowed = frozenset({("git.invalid", server.port)})
        named = GitSource(address, tmp_path / "cache", allowed, resolve=loopback)
        assert await paths(named) == ["a.md"]
        with pytest.raises(EgressBlocked):
            GitSource(address, tmp_path / "cache")
        seen = server.connections
        hidden = GitSource("git+http://git.invalid/repository/.git", tmp_path / "cache", resolve=loopback)
        with pytest.raises(SourceUnavailable, match="not public"):
            await hidden.items()
        assert server.connections == seen


async def test_a_server_that_is_silent_ends_with_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(git, "FETCH_SECONDS", 0.5)
    async with web_server(silent) as server:
        connector = GitSource(f"git+{server.address}/x.git", tmp_path / "cache", server.allowed)
        with pytest.raises(SourceUnavailable, match=r"longer than 0\.5 s"):
            await connector.items()
        assert server.requests


async def test_a_name_that_is_not_utf_8_has_an_address(repository: Repository, tmp_path: Path) -> None:
    repository.write(os.fsdecode(b"\xc8\xde.md"), b"# CP949\n")
    repository.write("ÈÞ.md", b"# Latin\n")
    repository.commit()
    items = await source(repository, tmp_path).items()
    assert {item.path for item in items} == {"a.md", "%C8%DE.md", "ÈÞ.md"}


async def test_a_redirect_is_not_followed(repository: Repository, tmp_path: Path) -> None:
    async with git_server(tmp_path) as server:
        moved = answer(302, b"", "text/plain", Location=f"{server.address}/repository/.git/info/refs")
        async with web_server(always(moved)) as first:
            allowed = first.allowed | server.allowed
            with pytest.raises(SourceUnavailable):
                await GitSource(f"git+{first.address}/x.git", tmp_path / "cache", allowed).items()
            assert first.requests and not server.requests


@pytest.mark.parametrize(
    "address",
    [
        "git+ssh://host/x.git",
        "git+file://host/x.git",
        "git+file:///srv/x.git@--upload-pack=x",
        "git+file:///srv/x.git@a..b",
        "git+file:///srv/x.git@a:b",
        "git+https://host/x.git?a=b",
        "git+ext::sh",
        "git+https:///x.git",
        "git+http://10.0.0.1/x.git",
    ],
)
def test_addresses_that_are_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        GitSource(address, tmp_path)
