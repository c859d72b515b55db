"""A scanned page from its picture to the answer: found, cited as read by OCR, and not sure of an uncertain figure."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from dtrag.app import App
from dtrag.core.recognised_text import FIGURE_BAR
from tests.scans import drawn, needs_tesseract, saved

LINES = [
    "Travel rules of the Harbour Office",
    "The daily allowance for journeys abroad is 45 euros.",
    "Claims end in May.",
]


@needs_tesseract
async def test_an_answer_from_a_picture(app: App, tmp_path: Path) -> None:
    (tmp_path / "travel.png").write_bytes(saved([drawn(LINES)], "PNG"))
    report = await app.ingest([tmp_path / "travel.png"])
    assert not report.failed
    answer = await app.ask("What is the daily allowance for journeys abroad?")
    [citation, *_] = answer.citations
    assert "45 euros" in citation.quote and citation.page == 1
    assert citation.ocr_confidence is not None and citation.ocr_confidence > 80
    uncertain = [figure for each in answer.citations for figure in each.uncertain_figures]
    assert all(figure.confidence < FIGURE_BAR for figure in uncertain)
    assert [note.code for note in answer.note_statements].count("ocr_figure") == len(uncertain)
    assert answer.decision != "answer" if uncertain else answer.decision in ("answer", "review")


async def test_a_picture_without_text_is_listed_as_failed(app: App, tmp_path: Path) -> None:
    (tmp_path / "travel.png").write_bytes(saved([Image.new("L", (300, 300), 255)], "PNG"))
    report = await app.ingest([tmp_path / "travel.png"])
    [(_, reason)] = report.failed
    assert reason.code in ("ocr_missing", "ocr_no_text")
