"""Sentences with codes, of which the service has each in Korean."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dtrag import errors
from dtrag.core.answers.replay import REASONS
from dtrag.core.response import plain
from dtrag.core.statements import Statement, stated, statement_in, statement_of, text_of
from dtrag.delivery.texts import in_language_of, korean_settings, korean_statements
from dtrag.settings import FLAGS, declarations

ROOT = Path(__file__).parents[3]
_STATED = re.compile(r'stated\(\s*(f?"[^"]+"[^,]*),')
_VALUE = re.compile(r"\{(\w+)")


def test_a_statement_has_its_text_and_its_values() -> None:
    told = stated("searched", "Searched: {passages} passages.", passages="5,040")
    assert told == Statement("searched", "Searched: 5,040 passages.", {"passages": "5,040"})
    assert str(told) == "Searched: 5,040 passages."
    assert text_of((told, stated("one", "One."))) == "Searched: 5,040 passages. One."
    assert len({told, stated("searched", "Searched: {passages} passages.", passages="5,040")}) == 1


def test_braces_in_a_value_are_only_text() -> None:
    assert stated("x", "There is no {name}.", name="{0.__class__}").text == "There is no {0.__class__}."


def codes_in_source() -> set[str]:
    """Every code with which the service states something."""
    codes = set(REASONS)
    for path in (ROOT / "src" / "dtrag").rglob("*.py"):
        for written in _STATED.findall(path.read_text("utf-8")):
            found = re.findall(r'f?"([^"]+)"', written)
            for code in found:
                codes |= {code.replace("{extent}", extent) for extent in ("whole", "part")} if "{" in code else {code}
    return codes


def codes_of_errors() -> set[str]:
    """The codes of errors that say what their class says; the others always have a message of their own, or no HTTP."""
    own = {"dtrag_error", "invalid_input", "incomplete_request", "parse_failed"}
    own |= {"model_pull_failed", "no_active_app", "not_opened", "cannot_listen"}
    classes = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    names = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in classes}
    assert own < names
    return {f"error_{name}" for name in names - own if name != "class_var"}


def test_every_statement_is_there_in_korean() -> None:
    codes = codes_in_source() | codes_of_errors()
    assert len(codes) > 150
    assert codes == set(korean_statements())
    assert all(re.search("[가-힣]", text) for text in korean_statements().values())


def values_in_source() -> dict[str, set[str]]:
    """The names of the values of each code; without codes whose values come from elsewhere."""
    values: dict[str, set[str]] = {}
    for path in (ROOT / "src" / "dtrag").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "stated"):
                continue
            names = [keyword.arg for keyword in call.keywords]
            if isinstance(code := call.args[0], ast.Constant) and None not in names:
                values.setdefault(str(code.value), set()).update(filter(None, names))
    return values


def test_korean_texts_name_values_that_there_are() -> None:
    korean = korean_statements()
    values = values_in_source()
    assert len(values) > 100
    wrong = {code for code, names in values.items() if not names.issuperset(_VALUE.findall(korean[code]))}
    for code in codes_of_errors():
        name = code.removeprefix("error_").replace("_", "")
        message = next(str(each.__doc__) for key, each in vars(errors).items() if key.lower() == name)
        wrong |= {code} if set(_VALUE.findall(korean[code])) - set(_VALUE.findall(message)) else set()
    assert wrong == set()


def test_errors_have_statements() -> None:
    full = errors.StorageFull(free="1 MB", needed="512 MB")
    values = {"free": "1 MB", "needed": "512 MB"}
    assert statement_of(full) == Statement("error_storage_full", str(full), values)
    assert statement_of(errors.InvalidInput("It is odd.")) == Statement("", "It is odd.")
    coded = errors.ParseFailed(stated("no_text", "no text in it"))
    assert (str(coded), statement_of(coded)) == ("no text in it", Statement("no_text", "no text in it"))


def test_a_statement_survives_as_json() -> None:
    told = stated("searched", "Searched: {passages}.", passages=5)
    assert statement_in(plain(told)) == told
    with pytest.raises(TypeError, match="a statement has"):
        statement_in({"code": 1})


def test_a_statement_in_another_language_keeps_its_english_text() -> None:
    told = stated("searched", "Searched: {passages}.", "5개를 찾았습니다.", passages=5)
    assert (str(told), told.text) == ("5개를 찾았습니다.", "Searched: 5.")
    assert plain(told) == {"code": "searched", "text": "Searched: 5.", "values": {"passages": "5"}}


def test_what_settings_mean_is_there_in_korean() -> None:
    helps = {declared.name: declared.metadata["help"] for declared in declarations()}
    helps |= {declared.name: declared.help for declared in FLAGS}
    assert korean_settings().keys() == helps.keys()
    assert all(re.search("[가-힣]", text) for text in korean_settings().values())


def test_the_guide_names_every_code() -> None:
    guide = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")
    _, _, section = guide.partition("### Codes of statements")
    named = set(re.findall(r"`(\w+)`", section.partition("\n### ")[0].partition("\n## ")[0]))
    assert codes_in_source() | codes_of_errors() <= named


def test_no_statement_or_error_names_a_variable_of_the_environment() -> None:
    """Readers of the page cannot set one; administrators find them in Settings."""
    stated_in_code = (
        (file.name, ast.unparse(node))
        for file in (ROOT / "src/dtrag").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "stated"
    )
    told = [*stated_in_code]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    told += [(kind.__name__, kind.__doc__ or "") for kind in kinds]
    told += list(korean_statements().items())
    variable = re.compile(r"\b(?:DTRAG|CBR|FEATURE|CORS|PIPELINE|TAXONOMY|DEBATE|TOOL|SENTRY|OPENAI)_[A-Z_]+\b")
    assert [(name, found[0]) for name, text in told if (found := variable.search(text))] == []


def test_reasons_are_in_the_language_of_the_answer() -> None:
    reason = stated("searched", "Searched: {passages} passages.", passages="5,040")
    assert in_language_of("휴학은 네 학기까지입니다.", (reason,)) == "볼 수 있는 구절 5,040개를 찾아보았습니다."
    assert in_language_of("Four terms at most.", (reason,)) == reason.text
    assert in_language_of("휴학은 네 학기까지입니다.", (Statement("", "No code."),)) == "No code."
