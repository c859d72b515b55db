"""The answer on one screen: lines, widths and what is left out."""

from __future__ import annotations

import io

from rich.cells import cell_len
from rich.console import Console

from dtrag.core.documents import Answer, Citation
from dtrag.core.statements import Statement
from dtrag.delivery.cli.ask import show_short

WIDTH, HEIGHT = 80, 24


def citation(number: int, label: str = "Leave, Annual leave", file: str = "leave.md") -> Citation:
    return Citation(number, label, f"d:{number}", "d", f"file:///handbook/{file}", "26 days.", 0, 8)


def answer(text: str, *citations: Citation, decision: str = "answer", model: str | None = None) -> Answer:
    reason = (Statement("", "Weak evidence."),)
    return Answer("?", text, citations, 0.9, decision, {"retrieve": 1.0}, model=model, reason_statements=reason)


def screen(shown: Answer, *notes: str, height: int = HEIGHT) -> list[str]:
    console = Console(
        file=io.StringIO(), width=WIDTH, height=height, highlight=False, markup=False, emoji=False, no_color=True
    )
    show_short(shown, console, notes)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert all(cell_len(line) <= WIDTH for line in lines)
    return lines


def test_text_sources_and_confidence_are_all_there_is() -> None:
    lines = screen(answer("There are 26 days. [1]\nThen 28. [2]", citation(1), citation(2), citation(3, "Pay")))
    assert lines == [
        "There are 26 days. [1]",
        "Then 28. [2]",
        "",
        "[1] [2] Leave, Annual leave · leave.md",
        "[3] Pay · leave.md",
        "",
        "Confidence 0.90 (answer). Quotations and sources: --full",
    ]


def test_an_answer_without_sources_says_why() -> None:
    lines = screen(answer("The documents do not answer this.", decision="abstain"))
    assert lines == ["The documents do not answer this.", "", "Confidence 0.90 (abstain). Weak evidence."]


def test_quotations_that_do_not_fit_are_cut_and_say_so() -> None:
    text = "\n".join(f"제{number}조 휴학기간은 통산 6학기를 넘을 수 없다. " * 12 for number in range(5))
    for height in (HEIGHT, 30, 12):
        lines = screen(answer(text, *map(citation, range(1, 6))), "A note.", height=height)
        assert len(lines) == height - 2, "a line for the note, and one for the prompt"
        assert any(line.endswith("more lines: dtrag ask --full") for line in lines)
    whole = screen(answer(text, *map(citation, range(1, 6)), model="openai:x"))
    assert len(whole) > HEIGHT and "Written by openai:x." in whole[-1]


def test_long_and_wide_names_are_cut_to_one_line() -> None:
    label = "대학원 학칙 시행세칙 " * 8 + "제12조(휴학기간)"
    lines = screen(answer("x [1]", *(citation(n, f"{n}{label}", "규정집" * 30 + ".hwpx") for n in range(1, 10))))
    sources = [line for line in lines if line.startswith("[")]
    assert len(sources) == 5 and all("… · 규정집" in line for line in sources)
    assert "… 4 more sources: dtrag ask --full" in lines


def test_the_name_of_the_file_is_cut_before_that_of_the_passage() -> None:
    label = "Equipment and Remote Work, Remote work › Your place"
    (line,) = (
        row for row in screen(answer("x [1]", citation(1, label, "equipment-and-remote-work.docx"))) if label in row
    )
    assert line == f"[1] {label} · equipment-and-remote-…"
    assert cell_len(line) == WIDTH


def test_documents_cannot_steer_the_terminal() -> None:
    lines = screen(answer("a\x1b[2Jb [1]", citation(1, "x\x1b]0;y\x07", "a%1bb.md")))
    assert not any("\x1b" in line or "\x07" in line for line in lines)
