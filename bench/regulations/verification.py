"""Faults that the verification of citations catches, and false alarms: `python bench/regulations/verification.py BOOK`.

`verification.jsonl` has 64 Korean texts (e-mails, notices, minutes, reports) with 549 citations of the book and their
statuses, 242 of them seeded faults. They were written by a person who had not seen the verification. The texts contain
names, titles and numbers of the book, and three fragments of its text are replaced by ○. A citation is right when the
verification has one with the same span, or several that overlap it, whose worst status is the expected one.

`--misses` prints the citations with another status than the expected one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dtrag.app import App, open_throwaway
from dtrag.core.verification import VerifiedCitation
from dtrag.settings import Settings

TEXTS = Path(__file__).with_name("verification.jsonl")
FAULTS = ("missing", "repealed", "title_mismatch")
WORST_FIRST = (*FAULTS, "unclear", "exists")


def status_at(citations: Sequence[VerifiedCitation], start: int, end: int) -> str:
    """The status of the citation of this span, or the worst of those that overlap it; "none" without any."""
    exact = [citation for citation in citations if (citation.start, citation.end) == (start, end)]
    overlapping = exact or [citation for citation in citations if citation.start < end and start < citation.end]
    return min((citation.status for citation in overlapping), key=WORST_FIRST.index, default="none")


def unexpected(citations: Iterable[VerifiedCitation], expected: Sequence[dict[str, Any]]) -> list[VerifiedCitation]:
    """The faults at places where none is expected."""
    return [
        citation
        for citation in citations
        if citation.status != "exists"
        and not any(citation.start < one["end"] and one["start"] < citation.end for one in expected)
    ]


async def measure(app: App, *, print_misses: bool) -> None:
    """Print the figures."""
    seen: Counter[tuple[str, str]] = Counter()
    elsewhere: list[VerifiedCitation] = []
    for line in TEXTS.read_text("utf-8").splitlines():
        record = json.loads(line)
        verified = (await app.regulations.verify(record["text"])).citations
        elsewhere += unexpected(verified, record["citations"])
        for one in record["citations"]:
            status = status_at(verified, one["start"], one["end"])
            seen[one["status"], status] += 1
            if print_misses and status != one["status"]:
                print(f"  {record['id']} {record['text'][one['start'] : one['end']]}: {one['status']}, not {status}")
    for expected in WORST_FIRST:
        statuses = {status: count for (other, status), count in sorted(seen.items()) if other == expected}
        print(f"{expected}: {sum(statuses.values())} expected; {statuses}")
    faults = sum(count for (expected, _), count in seen.items() if expected in FAULTS)
    caught = sum(count for (expected, status), count in seen.items() if expected in FAULTS and status in FAULTS)
    fine = sum(count for (expected, _), count in seen.items() if expected == "exists")
    alarms = fine - seen["exists", "exists"]
    print(f"faults caught {caught / faults:.3f} ({caught}/{faults})")
    print(f"false alarms {alarms / fine:.3f} ({alarms}/{fine}), and {len(elsewhere)} at other places")
    print(f"unclear but called exists: {seen['unclear', 'exists']}")


async def main() -> None:
    """Read the book and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("book", type=Path)
    parser.add_argument("--misses", action="store_true", help="also print the citations with another status")
    arguments = parser.parse_args()
    async with open_throwaway(Settings.load(embedder="none")) as app:
        await app.ingest(arguments.book)
        await measure(app, print_misses=arguments.misses)


if __name__ == "__main__":
    asyncio.run(main())
