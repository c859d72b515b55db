"""Precision and recall of the product's citations in a book: `python bench/regulations/citations.py BOOK`.

`citations.jsonl` has the citations of the provisions in `citation_sources.jsonl`. They were written down by reading
those provisions wholly, before the grammar ran on them. A line holds offsets in code points of the text of a provision,
and targets as `code:제N조`; no text of the book. A provision whose text differs in this edition of the book is reported
and left out.

A produced citation is right when it overlaps a judged one and has exactly its targets. One that covers several judged
ones (제1항, 제3항 및 제4항) is right when it has the targets of all of them; without targets (a law, a missing
provision) it counts for one. `--misses` prints every judged citation that was not found, and every wrong one.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtrag.app import App, open_throwaway
from dtrag.core.provisions import ProvisionCitation, ShownProvision
from dtrag.errors import NotFound
from dtrag.settings import Settings

FOLDER = Path(__file__).parent
DIGEST_LENGTH = 12
CONTEXT = 20


@dataclass(frozen=True)
class Judged:
    """A citation as it was judged, with the names of its targets."""

    start: int
    end: int
    kind: str
    targets: frozenset[str]
    paragraph: int | None
    item: int | None


@dataclass
class Score:
    """Counts over provisions."""

    right: int = 0
    produced: int = 0
    located: int = 0
    judged: int = 0
    same_kind: int = 0
    same_place: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    located_by_kind: Counter[str] = field(default_factory=Counter)

    def print(self, name: str) -> None:
        """Print precision, recall and the share of located citations with the right kind, and with 항 and 호."""
        located = max(1, self.located)
        print(
            f"{name}: {self.judged} judged"
            f", precision {self.right / max(1, self.produced):.3f} ({self.right}/{self.produced})"
            f", recall {self.located / max(1, self.judged):.3f} ({self.located}/{self.judged})"
            f", kind {self.same_kind / located:.3f}, paragraph and item {self.same_place / located:.3f}"
        )
        kinds = (f"{kind} {self.located_by_kind[kind]}/{count}" for kind, count in self.by_kind.most_common())
        print("  located by kind: " + ", ".join(kinds))


def digest(text: str) -> str:
    """What identifies the text of a provision."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def lines(name: str) -> list[dict[str, Any]]:
    """The lines of a file beside this script."""
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def named(target: str, names: dict[str, str]) -> str:
    """`3-2-29:제2조` as `규정명 제2조`; a target without a provision is the whole regulation."""
    code, _, label = target.partition(":")
    return f"{names.get(code, code)} {label}".strip()


def matches(judged: Sequence[Judged], produced: Sequence[ProvisionCitation]) -> list[tuple[Judged, ProvisionCitation]]:
    """Pairs of a judged citation and the right produced one that locates it."""
    pairs: list[tuple[Judged, ProvisionCitation]] = []
    for citation in produced:
        overlapping = [one for one in judged if one.start < citation.end and citation.start < one.end]
        if citation.targets:
            cited = frozenset[str]().union(*(one.targets for one in overlapping))
            if cited == frozenset(citation.targets):
                pairs += [(one, citation) for one in overlapping]
        else:
            located = {id(one) for one, _ in pairs}
            without = [one for one in overlapping if not one.targets and id(one) not in located]
            pairs += [(one, citation) for one in without[:1]]
    return pairs


def add(score: Score, shown: ShownProvision, judged: Sequence[Judged], *, print_misses: bool) -> None:
    """Count the citations of one provision."""
    pairs = matches(judged, shown.citations)
    first = {id(one): citation for one, citation in reversed(pairs)}
    right = {id(citation) for _, citation in pairs}
    score.produced += len(shown.citations)
    score.right += len(right)
    for one in judged:
        score.judged += 1
        score.by_kind[one.kind] += 1
        if id(one) in first:
            citation = first[id(one)]
            score.located += 1
            score.located_by_kind[one.kind] += 1
            score.same_kind += one.kind == citation.kind
            score.same_place += (one.paragraph, one.item) == (citation.paragraph, citation.item)
        elif print_misses:
            _print_miss("not located", shown, one)
    for citation in shown.citations:
        if print_misses and id(citation) not in right:
            _print_miss("wrong", shown, citation)


def _print_miss(name: str, shown: ShownProvision, citation: Judged | ProvisionCitation) -> None:
    text, start, end = shown.text, citation.start, citation.end
    context = f"{text[max(0, start - CONTEXT) : start]}⟦{text[start:end]}⟧{text[end : end + CONTEXT]}".replace(
        "\n", " "
    )
    print(f"  {name}: {shown.name} {start}-{end} {citation.kind} {sorted(citation.targets)}: {context}")


async def measure(app: App, *, print_misses: bool) -> None:
    """Print the figures of each sample and of both."""
    names = {regulation.code: regulation.name for regulation in await app.regulations.regulations()}
    judged = defaultdict[tuple[str, str], list[Judged]](list)
    for line in lines("citations.jsonl"):
        targets = frozenset(named(target, names) for target in line["targets"])
        judged[line["source_code"], line["source"]].append(
            Judged(line["start"], line["end"], line["kind"], targets, line["paragraph"], line["item"])
        )
    scores, total, different = defaultdict[str, Score](Score), Score(), []
    for line in lines("citation_sources.jsonl"):
        key = (line["source_code"], line["source"])
        try:
            shown = await app.regulations.show(named(":".join(key), names))
        except NotFound:
            different.append(key)
            continue
        if digest(shown.text) != line["digest"]:
            different.append(key)
            continue
        add(scores[line["sample"]], shown, judged[key], print_misses=print_misses)
        add(total, shown, judged[key], print_misses=False)
    for sample, score in scores.items():
        score.print(f"sample {sample}")
    total.print("all")
    if different:
        lost = sum(len(judged[key]) for key in different)
        print(f"{len(different)} provisions with {lost} judged citations have another text in this book; left out:")
        print("  " + ", ".join(":".join(key) for key in different))


async def main() -> None:
    """Read the book and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("book", type=Path)
    parser.add_argument("--misses", action="store_true", help="also print what was not found and what is wrong")
    arguments = parser.parse_args()
    async with open_throwaway(Settings.load(embedder="none")) as app:
        await app.ingest(arguments.book)
        await measure(app, print_misses=arguments.misses)


if __name__ == "__main__":
    asyncio.run(main())
