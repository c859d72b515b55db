"""Files of settings: which one decides, which are trusted, and what is refused with file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dtrag import setting_files
from dtrag.errors import InvalidInput
from dtrag.settings import NOT_IN_PROJECT, Settings, environment_of, explained
from tests.cases import each

OTHER = 54_321
"""A user that this machine does not have."""


class Files:
    """The three files, in a working directory and configuration folders of their own."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "work" / "dtrag.toml"
        self.user = folder / "config" / "dtrag" / "config.toml"
        self.system = folder / "etc" / "config.toml"

    def write(self, **texts: str) -> None:
        for kind, text in texts.items():
            file: Path = getattr(self, kind)
            file.write_text(text, "utf-8")
            file.chmod(0o600)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    made = Files(tmp_path)
    for file in (made.project, made.user, made.system):
        file.parent.mkdir(parents=True, mode=0o755)
    monkeypatch.delenv("DTRAG_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(setting_files, "SYSTEM", made.system)
    monkeypatch.chdir(made.project.parent)
    return made


def test_the_environment_wins_then_project_user_system_and_default(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(system="port = 1\nworkers = 1\npool_size = 1\ncache_size = 1\nmin_free_mb = 1")
    files.write(
        user="port = 2\nworkers = 2\npool_size = 2\ncache_size = 2", project="port = 3\nworkers = 3\npool_size = 3"
    )
    monkeypatch.setenv("DTRAG_PORT", "4")
    monkeypatch.setenv("DTRAG_WORKERS", "4")
    loaded = Settings.load(port=5)
    values = (loaded.port, loaded.workers, loaded.pool_size, loaded.cache_size, loaded.min_free_mb, loaded.max_file_mb)
    assert values == (5, 4, 3, 2, 1, 512)
    rows = {row["name"]: row for row in explained({}, port=5)}
    assert [source["value"] for source in rows["port"]["sources"]] == ["5", "4", "3", "2", "1"]
    decisive = [rows[name]["source"] for name in ("port", "workers", "pool_size", "cache_size", "min_free_mb")]
    assert decisive == ["option", "environment", "project", "user", "system"]
    paths = [Path(source["file"]) for source in rows["port"]["sources"][2:5]]
    assert paths == [files.project, files.user, files.system]
    assert rows["max_file_mb"]["source"] == "default"
    assert Settings.load(environ={}) == Settings(), "with an environment of its own, no file is read"


def test_an_empty_value_counts_as_not_set_and_a_relative_path_counts_from_its_file(files: Files) -> None:
    files.write(
        project='embedder = ""\ndata_dir = "data"', user='embedder = "e5"\nmodel_dir = "models"\ncbr_delta = 0.1'
    )
    loaded = Settings.load()
    assert (loaded.embedder, loaded.cbr_delta) == ("e5", 0.1)
    assert (loaded.data_dir, loaded.model_dir) == (files.project.parent / "data", files.user.parent / "models")


def test_a_child_process_has_the_same_settings(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(user='port = 9000\nllm_api_key = "hush"')
    settings = Settings.load(port=8001)  # an option that restores the default
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    assert Settings.load() == settings


@each(
    "text, message",
    [
        ("\n# a comment\nprot = 1", r"dtrag.toml:3: There is no setting 'prot'. Did you mean 'port'\?"),
        ("[port]\na = 1", "dtrag.toml:1: port must be a string or a number"),
        ("reader = true", 'dtrag.toml:1: reader must be a string .* reader = "on"'),
        ("filter_keys = ['kind']", "dtrag.toml:1: filter_keys must be a string"),
        ("host_name = 1", "dtrag.toml:1: There is no setting 'host_name'"),
        ("workers = 2\nport = 1.5", "dtrag.toml:2: port is '1.5', but must be a whole number"),
        ("port = -1", "dtrag.toml:1: port is '-1'"),
        ("port = 1\nport = 2\n", r"dtrag.toml is not valid TOML: .*line 2"),
    ],
)
def test_what_is_no_setting_is_refused_with_file_and_line(files: Files, text: str, message: str) -> None:
    files.write(project=text)
    with pytest.raises(InvalidInput, match=message):
        Settings.load()


@each("name", sorted(NOT_IN_PROJECT))
def test_a_project_file_sets_no_secret_and_no_address(files: Files, name: str) -> None:
    files.write(project=f'{name} = "x"')
    with pytest.raises(InvalidInput, match=f"dtrag.toml:1: the file of a folder may not set {name}"):
        Settings.load()
    files.write(project="", user=f'{name} = "/x"')
    assert str(getattr(Settings.load(), name)) == "/x"


def test_a_secret_that_every_user_can_read_is_refused(files: Files) -> None:
    files.write(user='port = 9000\nllm_api_key = "hush"')
    files.user.chmod(0o644)
    with pytest.raises(
        InvalidInput, match=r"config.toml:2: every user .* secret llm_api_key. Type: chmod o-rwx"
    ) as refusal:
        Settings.load()
    assert "hush" not in str(refusal.value)
    files.user.chmod(0o640)
    assert Settings.load().llm_api_key == "hush"


def test_a_file_or_folder_that_others_can_write_is_refused(files: Files) -> None:
    files.write(project="port = 9000")
    for mode in (0o620, 0o602):
        files.project.chmod(mode)
        with pytest.raises(InvalidInput, match=r"other users can write it. Type: chmod go-w"):
            Settings.load()
    files.project.chmod(0o644)
    files.project.parent.chmod(0o777)
    with pytest.raises(InvalidInput, match="every user can write its folder"):
        Settings.load()
    files.project.parent.chmod(0o1777)
    assert Settings.load().port == 9000


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@each("owned", ["file", "folder", "link"])
def test_what_belongs_to_another_user_is_refused(files: Files, owned: str) -> None:
    """Also for root, so that the owner of a folder cannot redirect the database of an administrator."""
    files.write(project='data_dir = "theirs"')
    paths = {"file": files.project, "folder": files.project.parent, "link": files.project}
    if owned == "link":
        files.project.rename(files.user)
        files.project.symlink_to(files.user)
    os.chown(paths[owned], OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(InvalidInput, match=r"dtrag.toml is not read: .* belongs to another user"):
        Settings.load()


def test_only_the_chosen_file_is_read_and_it_must_exist(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(project="port = 1", user="workers = 2")
    monkeypatch.setenv("DTRAG_CONFIG", str(files.user))
    assert (Settings.load().port, Settings.load().workers) == (8001, 2)
    monkeypatch.setenv("DTRAG_CONFIG", "none")
    assert Settings.load() == Settings.load(environ={})
    for path, message in ((tmp_path / "absent", "does not exist"), (tmp_path, "settings|cannot be read")):
        monkeypatch.setenv("DTRAG_CONFIG", str(path))
        with pytest.raises(InvalidInput, match=message):
            Settings.load()


def test_a_pipe_in_place_of_a_file_does_not_block(files: Files) -> None:
    os.mkfifo(files.project, 0o600)
    with pytest.raises(InvalidInput, match="is not a file of settings"):
        Settings.load()
