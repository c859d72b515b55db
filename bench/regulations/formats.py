"""The same articles from every format: `python bench/regulations/formats.py FOLDER [--regulations N] [--show N]`.

FOLDER has `regulations.hwpx`, and `articles.jsonl`, `addenda.jsonl` and `appendices.jsonl`, which an independent parser
read from it. The text of the book is written as Markdown, DOCX and PDF (tests/book_formats.py), read again, and its
provisions are compared with those of the HWPX file by id (code:article), title and text without white space.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from dtrag.adapters.parsers.formats import format_of
from dtrag.core.documents import ChunkedDocument
from dtrag.regulations.korean.structure import split

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.book_formats import Id, as_markdown, book, provisions, write_docx, write_pdf

HEADER = "규정집"


def read(path: Path) -> list[ChunkedDocument]:
    """The regulations of a file."""
    return [passages for document in format_of(path.name).load()(path, path.name) for passages in split(document) or ()]


def independent(folder: Path, codes: frozenset[str]) -> set[Id]:
    """The provisions of these regulations that the independent parser read; deleted appendices are left out."""
    ids: set[Id] = set()
    for name, kind in (("articles", "article"), ("addenda", "addendum"), ("appendices", "appendix")):
        for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            code, _, label = row["id"].partition(":")
            label, _, occurrence = label.partition("#")
            if code in codes and not (kind == "appendix" and "삭제" in row["text"][:30]):
                ids.add(comparable((code, kind, label, int(occurrence or 1))))
    return ids


def comparable(key: Id) -> Id:
    """The id with the kind and the number of an appendix only: 별지 제1호 서식 and 별지 1 are the same one."""
    code, kind, label, _ = key
    if kind != "appendix":
        return key
    return code, kind, f"{''.join(label.split())[:2]} {'-'.join(re.findall(r'[0-9]+', label))}", 1


def compare(name: str, expected: dict[Id, tuple[str, str]], read_again: dict[Id, tuple[str, str]], show: int) -> None:
    """Print the shares of equal ids, titles and texts, by kind."""
    for kind in ("article", "addendum", "appendix"):
        keys = [key for key in expected if key[1] == kind]
        present = [key for key in keys if key in read_again]
        extra = [key for key in read_again if key[1] == kind and key not in expected]
        titles = [key for key in present if expected[key][0] == read_again[key][0]]
        texts = [key for key in present if expected[key][1] == read_again[key][1]]
        print(
            f"{name:22} {kind:8} {len(keys):5} ids, same {len(present) / max(1, len(keys)):.4f}, titles "
            f"{len(titles) / max(1, len(keys)):.4f}, texts {len(texts) / max(1, len(keys)):.4f}, extra {len(extra)}"
        )
        for key in islice((key for key in keys if key not in read_again), show):
            print("    missing", *key)
        for key in extra[:show]:
            print("    extra", *key, read_again[key][1][:60])
        for key in islice((key for key in present if key not in set(titles)), show):
            print("    title", *key, expected[key][0], "|", read_again[key][0])
        for key in islice((key for key in present if key not in set(texts)), show):
            print("    differs", *key, "\n     ", expected[key][1][:300], "\n     ", read_again[key][1][:300])


def main() -> None:
    """Write, read and compare the formats."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--regulations", type=int, default=None, help="only so many, evenly spread")
    parser.add_argument("--show", type=int, default=0, help="differences to print of each kind")
    options = parser.parse_args()
    regulations = read(options.folder / "regulations.hwpx")
    if options.regulations:
        regulations = regulations[:: max(1, len(regulations) // options.regulations)]
    expected = provisions(regulations)
    codes = frozenset(key[0] for key in expected)
    theirs = independent(options.folder, codes)
    ours = {comparable(key) for key in expected if key[1] != "preamble"}
    for kind in ("article", "addendum", "appendix"):
        own, other = ({key for key in keys if key[1] == kind} for keys in (ours, theirs))
        print(f"independent parser     {kind:8} {len(other):5} ids, same {len(own & other) / max(1, len(other)):.4f}, "
              f"extra {len(own - other)}")  # fmt: skip
        for key in islice(sorted(other - own), options.show):
            print("    missing", *key)
    parts = list(book(regulations))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "book.md").write_text(as_markdown(parts), "utf-8")
        write_docx(parts, place / "book.docx")
        for name, between_words in (("between words.pdf", True), ("inside words.pdf", False)):
            write_pdf(parts, place / name, header=HEADER, between_words=between_words)
        for path in sorted(place.iterdir()):
            started = time.process_time()
            again = provisions(read(path))
            print(
                f"{path.name}: {path.stat().st_size >> 20} MB, {time.process_time() - started:.1f} s of processor time"
            )
            compare(path.name, expected, again, options.show)


if __name__ == "__main__":
    main()
