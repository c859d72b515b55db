"""Compares what we read from a regulation book with what an independent parser read from it.

    python scripts/check_regulation_book.py FOLDER [--show N] [--json]

FOLDER holds `regulations.hwpx` and `articles.jsonl` with `{"regulation", "article", "title", "text"}` a line. Articles
are matched by regulation, number and occurrence. Texts are compared without white space and without amendment marks.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dtrag.adapters.parsers.hwpx import parse
from dtrag.core.documents import ChunkedDocument
from dtrag.regulations.korean.structure import split

Key = tuple[str, str, int]
_WORDS = r"(?:개\s*정|신\s*설|삭\s*제|폐\s*지|변\s*경|제\s*정|전문|본조|제목)"
_MARK = re.compile(
    rf"[<〈(（\[【「](?:[^<>〈〉()（）\[\]【】]*{_WORDS}[^<>〈〉()（）\[\]【】]*|[\d.,\s]+)[>〉)）\]】」]"
)
_SPACE = re.compile(r"[\s ]+")
_NAME_NOISE = re.compile(r"[\s․·ㆍ・‧･\-‐–]+")
_BARE = re.compile(r"[①-⑳㉑-㊿]+(?=[①-⑳㉑-㊿]|$)")


@dataclass
class Comparison:
    """Counts and shares (0..1); `differences` are (regulation, article, occurrence, what)."""

    regulations: int
    articles: int
    expected_regulations: int
    expected_articles: int
    matched: int
    same_text: float
    same_title: float
    same_names: float
    seconds: float
    chunks: int
    addenda: int
    appendices: int
    differences: list[tuple[str, str, int, str]] = field(default_factory=list)


def normal(text: str) -> str:
    """Without white space, amendment marks, table bars and numbers of paragraphs that were emptied."""
    for _ in range(2):
        text = _MARK.sub("", text)
    return _BARE.sub("", _SPACE.sub("", text).replace("|", ""))


def folded(name: str) -> str:
    """A regulation's name without blanks, middle dots and hyphens: the book itself writes it in several ways."""
    return _NAME_NOISE.sub("", name)


def read_book(path: Path) -> tuple[list[ChunkedDocument], float]:
    """The regulations of the book, and the CPU seconds that parsing and splitting took."""
    start = time.process_time()
    passages: list[ChunkedDocument] = []
    for document in parse(path, path.name):
        passages.extend(split(document) or ())
    return passages, time.process_time() - start


def articles_of(passages: Iterable[ChunkedDocument]) -> dict[Key, tuple[str, str]]:
    """(title, text) of every article, with its pieces joined."""
    articles: dict[Key, tuple[str, str]] = {}
    for document in passages:
        for chunk in document.chunks:
            meta = chunk.metadata
            if meta["kind"] != "article":
                continue
            name = folded(str(meta["regulation"]))
            key = (name, str(meta["article"]), int(str(meta.get("occurrence", 1))))
            title, text = articles.get(key, (str(meta["article_title"]), ""))
            articles[key] = (title, f"{text}\n{chunk.text}" if text else chunk.text)
    return articles


def expected_articles(path: Path) -> dict[Key, tuple[str, str]]:
    """The same from `articles.jsonl`."""
    articles: dict[Key, tuple[str, str]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            name, number = folded(row["regulation"]), row["article"]
            seen[name, number] += 1
            articles[name, number, seen[name, number]] = (row["title"], row["text"])
    return articles


def compare(folder: Path) -> Comparison:
    """Reads the book in `folder` and compares."""
    passages, seconds = read_book(folder / "regulations.hwpx")
    ours, theirs = articles_of(passages), expected_articles(folder / "articles.jsonl")
    differences: list[tuple[str, str, int, str]] = []
    same_text = same_title = 0
    for key, (title, text) in theirs.items():
        if key not in ours:
            differences.append((*key, "missing"))
            continue
        our_title, our_text = ours[key]
        same_title += _SPACE.sub("", our_title) == _SPACE.sub("", title)
        same_text += normal(our_text) == normal(text)
        if _SPACE.sub("", our_title) != _SPACE.sub("", title):
            differences.append((*key, f"title {our_title!r}, not {title!r}"))
        if normal(our_text) != normal(text):
            differences.append((*key, f"text\n    ours   {our_text!r}\n    theirs {text!r}"))
    differences.extend((*key, "not expected") for key in ours if key not in theirs)
    our_names, their_names = {key[0] for key in ours}, {key[0] for key in theirs}
    kinds = Counter(c.metadata["kind"] for p in passages for c in p.chunks if c.metadata.get("piece", 1) == 1)
    return Comparison(
        regulations=len(passages),
        articles=len(ours),
        expected_regulations=len(their_names),
        expected_articles=len(theirs),
        matched=len(ours.keys() & theirs.keys()),
        same_text=same_text / len(theirs),
        same_title=same_title / len(theirs),
        same_names=len(our_names & their_names) / len(their_names),
        seconds=round(seconds, 2),
        chunks=sum(len(p.chunks) for p in passages),
        addenda=kinds["addendum"],
        appendices=kinds["appendix"],
        differences=differences,
    )


def main() -> int:
    """Prints the figures; exit code 1 when a goal (98 % of texts, titles, names; ± 1 % articles) is missed."""
    arguments = argparse.ArgumentParser(description="Check the reading of a regulation book.")
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--show", type=int, default=0, help="print so many differences")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    result = compare(options.folder)
    figures = {name: value for name, value in asdict(result).items() if name != "differences"}
    if options.json:
        print(json.dumps(figures, ensure_ascii=False))
    else:
        for name, value in figures.items():
            print(f"{name:22} {value:.4f}" if isinstance(value, float) else f"{name:22} {value}")
    for regulation, article, occurrence, what in result.differences[: options.show]:
        print(f"{regulation} {article}#{occurrence}: {what}")
    near = abs(result.articles - result.expected_articles) <= 0.01 * result.expected_articles
    good = min(result.same_text, result.same_title, result.same_names) >= 0.98
    return 0 if near and good else 1


if __name__ == "__main__":
    sys.exit(main())
