"""The limits of destinations: their form, and which entry counts for which destination."""

from __future__ import annotations

import pytest

from dtrag.core.access.grade_limits import Limits, Recipient
from dtrag.core.taxonomy.grades import Grades
from dtrag.errors import InvalidInput

GRADES = Grades()


@pytest.mark.parametrize(
    ("setting", "limit"),
    [
        ("", 0),
        ("http://127.0.0.1:11434/v1=C", 2),
        ("http://127.0.0.1:11434 = c", 2),
        ("http://127.0.0.1:11434/v1/=S;http://127.0.0.1:11434=C", 1),
        ("http://127.0.0.1:1143=C", 0),
        ("http://127.0.0.1:11434/v=C", 0),
        ("model=C", 2),
        ("model=C; http://127.0.0.1:11434/v1=S", 1),
        ("model:ollama:qwen3=O; http://127.0.0.1:11434/v1=S", 0),
        ("model:ollama:other=C; mcp=C; embedder=C; web_search=S", 0),
    ],
)
def test_the_closest_entry_counts(setting: str, limit: int) -> None:
    model = Recipient("model", "ollama:qwen3", "http://127.0.0.1:11434/v1")
    assert Limits.parse(setting, GRADES).of(model) == limit


def test_a_program_on_this_machine_has_no_address() -> None:
    limits = Limits.parse("mcp:hr=S;web_search=C", GRADES)
    assert limits.of(Recipient("mcp", "hr", "/usr/bin/hr")) == 1
    assert limits.of(Recipient("mcp", "other", "/usr/bin/hr")) == 0
    assert limits.of(Recipient("web_search", "searxng", "https://search.example.org")) == 2


@pytest.mark.parametrize(
    "setting",
    ["C", "model", "model=", "model=X", "models=C", "mcp:=C", "http://=C", "model=C;model=C", "ftp://one.example=S"],
)
def test_an_invalid_limit_is_refused_with_the_form(setting: str) -> None:
    with pytest.raises(InvalidInput, match=r"DESTINATION=GRADE.*web_search=O.*one of O, S, C"):
        Limits.parse(setting, GRADES)
