"""Sentences with codes: they are ordinary texts, and the service has each of them in Korean."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import fields
from pathlib import Path

from dtrag.core.statements import CodedText, Statement, all_statements, joined, stated, statements_of
from dtrag.delivery.texts import korean_settings, korean_statements
from dtrag.settings import FLAGS, Settings

ROOT = Path(__file__).parents[3]
_STATED = re.compile(r'stated\(\s*(f?"[^"]+"[^,]*),')
_VALUE = re.compile(r"\{(\w+)")


def test_a_statement_is_its_text() -> None:
    told = stated("searched", "Searched: {passages} passages.", passages="5,040")
    assert told == "Searched: 5,040 passages."
    assert told.statements == (Statement("searched", "Searched: 5,040 passages.", {"passages": "5,040"}),)
    assert json.dumps({"reason": told}) == '{"reason": "Searched: 5,040 passages."}'


def test_braces_in_a_value_are_only_text() -> None:
    assert stated("x", "There is no {name}.", name="{0.__class__}") == "There is no {0.__class__}."


def test_joined_texts_keep_their_statements() -> None:
    both = joined(stated("one", "One."), "", "Two.")
    assert both == "One. Two."
    assert [(each.code, each.text) for each in both.statements] == [("one", "One."), ("", "Two.")]
    assert statements_of("") == ()
    assert all_statements([both, "Three."])[-1] == Statement("", "Three.")


def test_copies_keep_the_statements() -> None:
    told = stated("one", "One.")
    for copied in (copy.deepcopy(told), pickle.loads(pickle.dumps(told))):
        assert isinstance(copied, CodedText)
        assert (copied, copied.statements) == (told, told.statements)


def codes_in_source() -> set[str]:
    """Every code with which the service states something."""
    codes = set()
    for path in (ROOT / "src" / "dtrag").rglob("*.py"):
        for written in _STATED.findall(path.read_text("utf-8")):
            found = re.findall(r'f?"([^"]+)"', written)
            for code in found:
                codes |= {code.replace("{extent}", extent) for extent in ("whole", "part")} if "{" in code else {code}
    return codes


def test_every_statement_is_there_in_korean() -> None:
    codes = codes_in_source()
    assert len(codes) > 40
    assert codes == set(korean_statements())
    assert all(re.search("[가-힣]", text) for text in korean_statements().values())


def test_what_settings_mean_is_there_in_korean() -> None:
    helps = {declared.name: declared.metadata["help"] for declared in fields(Settings)}
    helps |= {declared.name: declared.help for declared in FLAGS}
    assert korean_settings().keys() == helps.keys()
    assert all(re.search("[가-힣]", text) for text in korean_settings().values())


def test_the_guide_names_every_code() -> None:
    guide = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")
    _, _, section = guide.partition("### Codes of statements")
    named = set(re.findall(r"`(\w+)`", section.partition("\n### ")[0].partition("\n## ")[0]))
    assert codes_in_source() <= named
