"""Numbers that pages state are those of the code: each sentence is written here with the constant in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtrag.adapters.postgres import index_reader
from dtrag.delivery.api import audited, clients
from dtrag.delivery.api.routes import uploads
from dtrag.governance import audit
from dtrag.ingestion import folders, source_reader, sources
from dtrag.pipeline import traces
from dtrag.pipeline.answer import candidates, extractive, generative
from dtrag.pipeline.timeouts import OPTIONAL_STEP_TIMEOUTS, STEP_TIMEOUTS
from dtrag.settings import Settings

ROOT = Path(__file__).parents[1]
MIGRATIONS = len(list((ROOT / "src/dtrag/adapters/postgres/migrations").glob("*.sql")))
S, O = STEP_TIMEOUTS, OPTIONAL_STEP_TIMEOUTS  # noqa: E741

STATEMENTS = [
    (
        "docs/explanation/architecture.md",
        f"as few as hold the answer with a probability of {extractive.ENOUGH:g}, none below {extractive.LEAST:g} "
        f"beside others, at most {extractive.MAX_SENTENCES} with {candidates.MAX_CHARACTERS} characters, none twice",
    ),
    (
        "docs/explanation/architecture.md",
        f"Up to √({index_reader.EXACT_BELOW} · n) of the n passages, and never more than {index_reader.MOST_EXACT:,}, "
        "are compared",
    ),
    ("docs/explanation/architecture.md", f"batch of about {source_reader.BATCH_CHUNKS} passages"),
    ("docs/how-to/operations.md", f"{MIGRATIONS} of {MIGRATIONS} migrations"),
    ("docs/how-to/audit.md", f"at most {audit.NOTE_S * 1000:.0f} ms later"),
    ("docs/how-to/audit.md", f"at most {audited.CHEAP_REFUSALS_PER_MINUTE} refusals a minute"),
    ("docs/how-to/keys.md", f"to {clients.FAILURES_PER_MINUTE} a minute from one address"),
    ("docs/how-to/keys.md", f"A key may make {Settings().rate_per_minute} requests a minute"),
    ("docs/reference/http.md", f"parts `files` (at most {uploads.MAX_FILES})"),
    ("docs/reference/http.md", f"at most {sources.SHOWN_DOCUMENTS:,} for each file"),
    ("docs/explanation/security.md", f"At most {uploads.MAX_FILES} files"),
    ("docs/explanation/pipeline.md", f"| 1 | `intent` | {S['intent']} |"),
    ("docs/explanation/pipeline.md", f"| `rewrite` | {O['rewrite']} |"),
    ("docs/explanation/pipeline.md", f"| 2 | `retrieve` | {S['retrieve']} |"),
    ("docs/explanation/pipeline.md", f"| 3 | `plan` | {O['plan']}, with a model {O['plan_by_model']} |"),
    ("docs/explanation/pipeline.md", f"| `tools_debate` | {O['tools']} a tool, {O['debate']:g} for a debate |"),
    ("docs/explanation/pipeline.md", f"| `read` | {O['read']} |"),
    (
        "docs/explanation/pipeline.md",
        f"at most {(generative.MAX_PASSAGE + generative.MAX_BEGINNING + 200):,} characters of each passage",
    ),
    ("docs/explanation/pipeline.md", f"| 5 | `compose` | {S['compose']} |"),
    ("docs/explanation/pipeline.md", f"| 6 | `cite` | {O['cite']}; what a model wrote {O['check']} |"),
    ("docs/explanation/pipeline.md", f"| 7 | `respond` | {S['respond']} |"),
]


@pytest.mark.parametrize(("page", "statement"), STATEMENTS)
def test_a_number_on_a_page_is_that_of_the_code(page: str, statement: str) -> None:
    assert statement in " ".join((ROOT / page).read_text("utf-8").split())


def test_a_third_is_what_prune_takes_at_most() -> None:
    assert folders.MOST_GONE == 1 / 3
    assert "more than a third of its known files" in " ".join(
        (ROOT / "docs/reference/cli.md").read_text("utf-8").split()
    )
    assert traces.WRITE_S == audit.NOTE_S
