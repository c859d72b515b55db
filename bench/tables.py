"""Right sentences and rows, with header and unit: questions about documents with tables, lists and wrapped text.

python bench/tables.py [--show]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtrag.app import App, open_throwaway
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.documents import Answer, Citation, SearchResult
from dtrag.core.text.sentences import beginning_of, begins_inside, sentences_after
from dtrag.pipeline.answer.citations import citation_of
from dtrag.settings import Settings

FOLDER = Path(__file__).parent / "tables"
Question = dict[str, Any]


def bare(text: str) -> str:
    """The text without white space."""
    return re.sub(r"\s+", "", text)


def is_right(question: Question, citation: Citation) -> bool:
    """Whether the citation quotes the right sentence, item or row with the header, unit or lead-in that it needs."""
    quote = bare(citation.display)
    around = quote + "".join(bare(part.text) for part in citation.context)
    return (
        all(bare(text) in quote for text in question["quote_has"])
        and not any(bare(text) in quote for text in question["quote_lacks"])
        and all(bare(text) in around for text in question["context_has"])
    )


def is_answered(question: Question, citations: list[Citation]) -> bool:
    """Whether one citation is right, or all of them together where a whole list is requested."""
    if not question.get("whole"):
        return any(is_right(question, citation) for citation in citations)
    shown = [citation.display + "".join(part.text for part in citation.context) for citation in citations]
    return all(any(bare(text) in bare(part) for part in shown) for text in question["quote_has"])


async def units_of(app: App, document_id: str) -> Iterator[Citation]:
    """A citation of every unit of a document that can be quoted, as an answer would have it."""
    summary, text = await app.document(document_id)
    keys = [f"{document_id}:{number}" for number in range(summary.chunks)]
    passages = await app.index.fetch(keys, EVERYTHING, (await app.index.snapshot()).taxonomy)
    ordered = [passages[key] for key in keys]
    return _citations(ordered, text)


def _citations(passages: list[SearchResult], text: str) -> Iterator[Citation]:
    for number, passage in enumerate(passages):
        before = [(earlier.start, earlier.text) for earlier in reversed(passages[:number])]
        inside = passage.start > 0 and begins_inside(passage.text)
        preceding = beginning_of(passage.start, before) if inside else None
        for unit in sentences_after(preceding, passage.text, passage.start):
            if unit.quotable:
                citation = citation_of(1, passage, unit.start, unit.end, preceding)
                assert text[citation.start : citation.end] == citation.quote
                assert all(text[part.start : part.end] == part.text for part in citation.context)
                yield citation


async def main(show: bool) -> None:
    questions = [json.loads(line) for line in (FOLDER / "questions.jsonl").read_text("utf-8").splitlines()]
    never = {
        bare(line) for lines in json.loads((FOLDER / "never_quote.json").read_text("utf-8")).values() for line in lines
    }
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as data_dir:
        async with open_throwaway(Settings.load(environ={}, data_dir=data_dir, embedder="none")) as app:
            await app.ingest([FOLDER / "documents"])
            units: dict[str, list[Citation]] = {}
            for summary in await app.documents(limit=100):
                units[summary.source_url.rpartition("/")[2]] = list(await units_of(app, summary.document_id))
            quoted_titles = sum(bare(unit.quote) in never for cited in units.values() for unit in cited)
            for question in questions:
                answer: Answer = await app.ask(question["question"])
                kind = question["kind"]
                possible = is_answered(question, units[question["document"]])
                answered = is_answered(question, list(answer.citations))
                first = is_answered(question, list(answer.citations[:1]))
                counts.update(
                    {f"{kind}": 1, f"{kind} unit": possible, f"{kind} answered": answered, f"{kind} first": first}
                )
                counts.update(
                    quotations=len(answer.citations), titles=sum(bare(c.quote) in never for c in answer.citations)
                )
                if show and not (possible and answered):
                    print(
                        question["id"], kind, "unit" if possible else "NO UNIT", question["question"], answer.decision
                    )
                    print("    has", question["quote_has"], "lacks", question["quote_lacks"], question["context_has"])
                    for citation in answer.citations:
                        context = " / ".join(f"{part.kind}: {part.text}" for part in citation.context)
                        print("   ", repr(citation.display), "<-", context)
    for kind in ("row", "wrapped", "list", "sentence"):
        total = counts[kind]
        shares = {name: counts[f"{kind} {name}"] / total for name in ("unit", "answered", "first")}
        print(kind, total, {name: round(share, 3) for name, share in shares.items()})
    total = len(questions)
    kinds = ("row", "wrapped", "list", "sentence")
    print(
        "all",
        total,
        {n: round(sum(counts[f"{k} {n}"] for k in kinds) / total, 3) for n in ("unit", "answered", "first")},
    )
    print(f"{counts['quotations']} quotations, {counts['titles']} of them titles; {quoted_titles} titles can be quoted")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the questions that are not answered")
    asyncio.run(main(parser.parse_args().show))
