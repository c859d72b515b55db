"""Settings are read once from the environment, flags live; what is secret is not shown."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from dtrag import settings as module
from dtrag.errors import InvalidInput
from dtrag.settings import (
    FLAGS,
    Flag,
    Settings,
    answer_settings,
    changeable_settings,
    changed_value,
    declarations,
    default_data_dir,
    environment_of,
    flag,
)
from tests.cases import each

NAMES = [declared.name for declared in declarations()]


def test_without_an_environment_there_are_defaults() -> None:
    loaded = Settings.load(environ={})
    assert loaded == Settings()
    assert (loaded.embedder, loaded.host, loaded.port, loaded.database_url) == ("auto", "127.0.0.1", 8001, None)
    assert loaded.data_dir == default_data_dir()


@each("name", NAMES)
def test_every_setting_has_its_name_in_the_environment(name: str) -> None:
    loaded = Settings.load(environ={f"DTRAG_{name.upper()}": "17"})
    expected: Any = 17 if isinstance(getattr(Settings(), name), int | float) else "17"
    assert getattr(loaded, name) == (
        Path("17").absolute()
        if name.endswith(("_dir", "_file", "mcp_servers", "pii_rules", "sign_in", "page_examples"))
        else expected
    )
    assert dataclasses.replace(loaded, **{name: getattr(Settings(), name)}) == Settings()


def test_an_override_wins_over_the_environment_and_none_is_not_given() -> None:
    environ = {"DTRAG_PORT": "9000", "DTRAG_HOST": "0.0.0.0", "DTRAG_EMBEDDER": ""}
    loaded = Settings.load(environ=environ, port=9100, host=None)
    assert (loaded.port, loaded.host, loaded.embedder) == (9100, "0.0.0.0", "auto")
    assert Settings.load(environ={}, port="9200", pool_size=0).port == 9200


def test_the_environment_of_a_child_has_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTRAG_PORT", "9000")
    monkeypatch.setenv("DTRAG_POOL_SIZE", "3")
    settings = Settings.load(port=8001, workers=2)  # an option that restores the default
    assert Settings.load(environ=environment_of(settings)) == settings


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTRAG_DATABASE_NAME", "원장")
    assert Settings.load().database_name == "원장"


def test_folders_are_absolute_and_a_tilde_is_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.load(environ={"DTRAG_DATA_DIR": "~/규정 집"}).data_dir == tmp_path / "규정 집"
    assert Settings.load(environ={}, model_dir="models").model_dir == Path.cwd() / "models"


@each("value", ["eight", "-1", "1.5", "", " ", "8001x", "1e3", "0x10", "nan"])
def test_an_invalid_number_is_refused_with_the_name_of_its_setting(value: str) -> None:
    if value:
        with pytest.raises(InvalidInput, match=r"DTRAG_PORT is .* whole number of at least 0"):
            Settings.load(environ={"DTRAG_PORT": value})
    with pytest.raises(InvalidInput, match="port is"):
        Settings.load(environ={}, port=value)


def test_an_invalid_folder_is_refused() -> None:
    with pytest.raises(InvalidInput, match="data_dir is 5"):
        Settings.load(environ={}, data_dir=5)


def test_an_unknown_setting_is_refused_an_unknown_variable_is_not() -> None:
    with pytest.raises(InvalidInput, match="There is no setting 'colour'"):
        Settings.load(environ={}, colour="red")
    assert Settings.load(environ={"DTRAG_COLOUR": "red"}) == Settings()


def test_rows_name_every_setting_and_hide_what_is_secret() -> None:
    url = "postgresql://user:hunter2@db/dtrag"
    rows = {row["name"]: row for row in Settings.load(environ={}, database_url=url).rows()}
    assert list(rows) == NAMES
    assert "hunter2" not in str(rows)
    assert rows["database_url"]["value"] == "(set)"
    assert rows["port"] == {
        "name": "port",
        "environment": "DTRAG_PORT",
        "value": 8001,
        "default": 8001,
        "is_default": True,
        "secret": False,
        "help": rows["port"]["help"],
    }
    assert not rows["database_url"]["is_default"]
    assert all(row["help"].endswith(".") for row in rows.values())
    assert rows["data_dir"]["value"] == str(default_data_dir())
    assert {row["name"]: row for row in Settings().rows()}["database_url"]["value"] is None


def test_settings_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]


def test_root_keeps_its_data_below_var_lib_and_others_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/dtrag")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert default_data_dir().is_relative_to(tmp_path)
    assert default_data_dir().name == "dtrag"


def test_flags_are_off_where_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for declared in FLAGS:
        for variable in (f"FEATURE_{declared.name.upper()}", *declared.aliases):
            monkeypatch.delenv(variable, raising=False)
        assert flag(declared.name) is False
        assert declared.help.endswith(".")


@each(
    "value, expected",
    [
        ("1", True),
        ("true", True),
        (" YES ", True),
        ("On", True),
        ("0", False),
        ("", False),
        ("off", False),
        ("2", False),
    ],
)
def test_a_flag_is_read_live(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv("FEATURE_STRICT_LEXICAL", value)
    assert flag("strict_lexical") is expected
    monkeypatch.setenv("FEATURE_STRICT_LEXICAL", "1")
    assert flag("strict_lexical") is True


def test_the_first_name_of_a_flag_that_is_set_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLAGS", (Flag("debate", "Help.", ("DEBATE_MODE", "DEBATE_OLD")),))
    monkeypatch.setenv("DEBATE_OLD", "true")
    assert flag("debate") is True
    monkeypatch.setenv("DEBATE_MODE", "false")
    assert flag("debate") is False
    monkeypatch.setenv("FEATURE_DEBATE", "on")
    assert flag("debate") is True


def test_an_unknown_flag_is_a_mistake_in_the_code() -> None:
    with pytest.raises(KeyError):
        flag("no_such_flag")


def test_what_decides_about_answers_is_compared_and_how_the_process_works_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = answer_settings(Settings.load({}))
    assert answer_settings(Settings.load({}, host="::1", port=9, log_level="INFO", data_dir="/elsewhere")) == usual
    secret = answer_settings(Settings.load({}, llm_api_key="hush", embedder="none"))
    assert {name for name in usual if usual[name] != secret[name]} == {"DTRAG_LLM_API_KEY", "DTRAG_EMBEDDER"}
    assert "hush" not in str(secret)
    for name, value in (("FEATURE_DEBATE_MODE", "on"), ("PIPELINE_TIMEOUT_MULTIPLIER", "3")):
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            now = answer_settings(Settings.load({}))
            assert {changed for changed in usual if usual[changed] != now[changed]} == {name}
    assert {row["name"] for row in Settings().rows()} >= module._OF_THE_PROCESS


WRONG: dict[str, list[Any]] = {
    "number": ["-1", "many", "nan", "1e30", True, 1.5e30],
    "choice": ["perhaps", ""],
    "colour": ["red", "#12345", "#1234567"],
    "text": ["n" * 401, "a\x00b", "a\ud800b"],
    "branches": ["a\x07b"],
}


@each("name", sorted(changeable_settings()))
def test_a_changed_value_is_checked_as_that_of_the_environment(name: str) -> None:
    declared, default = changeable_settings()[name], getattr(Settings(), name)
    assert changed_value(name, default) == default
    assert type(changed_value(name, str(default))) is type(default)
    for value in WRONG[declared.kind]:
        with pytest.raises(InvalidInput, match=f"DTRAG_{name.upper()}"):
            changed_value(name, value)
    if declared.kind == "number":
        for edge in (declared.least, declared.most):
            assert changed_value(name, f"{edge:.0f}") == edge
    if declared.kind != "branches":  # they are checked where they are used
        wrong: Any = {name: -1 if declared.kind == "number" else "#" * 500}
        with pytest.raises(InvalidInput):
            dataclasses.replace(Settings(), **wrong).check()


def test_secrets_addresses_and_where_data_goes_cannot_be_changed() -> None:
    declared = {each.name: each.metadata for each in declarations()}
    assert not any(declared[name]["secret"] or declared[name]["address"] for name in changeable_settings())
    assert not changeable_settings().keys() & {"grade_limits", "llm", "trace_text", "audit", "data_dir", "host", "pii"}


def test_what_was_set_at_the_start_has_precedence_over_what_is_stored() -> None:
    stored = {"decision": "eager", "trace_days": 5, "review_below": 0.5}
    environ = {"DTRAG_DECISION": "balanced", "DTRAG_TRACE_DAYS": "7"}
    for settings in (Settings.load(environ), Settings.load(environment_of(Settings.load(environ)))):
        in_use = settings.with_stored(stored)
        assert (in_use.decision, in_use.trace_days, in_use.review_below) == ("balanced", 7, 0.5)
    assert dataclasses.replace(Settings(), decision="careful").with_stored(stored).decision == "careful"
