"""Documents with tables, lists and wrapped text (`bench/tables`): what answers is one exact quotation with context."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dtrag.core.documents import Citation
from tests.unit.pipeline.answer.test_contexts import assert_exact, citations, parsed

TABLES = Path(__file__).parents[4] / "bench" / "tables"
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (TABLES / "questions.jsonl").read_text("utf-8").splitlines()
]
LEAST_RIGHT = 0.96
"""Share of the questions that one quotation can answer; bench/README.md has the figure."""


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


def is_right(question: dict[str, Any], citation: Citation) -> bool:
    quote = bare(citation.display)
    around = quote + "".join(bare(part.text) for part in citation.context)
    lacks = not any(bare(text) in quote for text in question["quote_lacks"])
    return lacks and has_all(question["quote_has"], quote) and has_all(question["context_has"], around)


def has_all(texts: list[str], inside: str) -> bool:
    return all(bare(text) in inside for text in texts)


@pytest.fixture(scope="module")
def cited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Citation]]:
    """All that can be quoted of each document, after every span was compared with its text."""
    quotations = {}
    for file in sorted((TABLES / "documents").iterdir()):
        document = parsed(tmp_path_factory.mktemp("file") / "file", file.name, file.read_bytes())
        quotations[file.name] = citations(document)
        for citation in quotations[file.name]:
            assert_exact(citation, document)
    return quotations


def test_what_answers_is_one_sentence_item_or_row_with_its_header(cited: dict[str, list[Citation]]) -> None:
    single = [question for question in QUESTIONS if not question.get("whole")]
    wrong = [
        question["id"]
        for question in single
        if not any(is_right(question, citation) for citation in cited[question["document"]])
    ]
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(single), wrong


def test_titles_and_headers_cannot_be_quoted(cited: dict[str, list[Citation]]) -> None:
    never: dict[str, list[str]] = json.loads((TABLES / "never_quote.json").read_text("utf-8"))
    titles = {name: {bare(line) for line in lines} for name, lines in never.items()}
    quoted = [
        (name, citation.quote)
        for name, quotations in cited.items()
        for citation in quotations
        if bare(citation.quote) in titles.get(name, set())
    ]
    assert len(quoted) <= 7, quoted
