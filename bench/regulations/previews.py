"""Text and rows of tables of HWP and HWPX files beside the previews that Hangul stored in them.

python bench/regulations/previews.py FOLDER [--show N]    (needs `pip install olefile`)

A preview is the beginning of the text, up to about 1,000 characters, without the numbers of headings and without what
was drawn; a row of a table is `<cell><cell>`. Recall is the share of its runs of four characters, blanks and
separators left out, that occur in the text as it was read; a row counts if its cells are in one row there.
"""

from __future__ import annotations

import argparse
import re
import zipfile
from collections import Counter
from pathlib import Path

import olefile

from dtrag.adapters.parsers.formats import OLE_MAGIC, check_content, format_of
from dtrag.errors import ParseFailed

SEPARATORS = re.compile(r"[\s|<>]+")


def preview(path: Path) -> str:
    """The preview in the file; "" without one."""
    if path.read_bytes().startswith(OLE_MAGIC):
        with olefile.OleFileIO(path) as file:
            return str(file.openstream("PrvText").read(), "utf-16-le", "replace") if file.exists("PrvText") else ""
    if not zipfile.is_zipfile(path):
        return ""
    with zipfile.ZipFile(path) as archive:
        name = "Preview/PrvText.txt"
        return str(archive.read(name), "utf-8", "replace") if name in archive.namelist() else ""


def recall(expected: str, text: str) -> float:
    """The share of the runs of four characters of `expected` that occur in `text`."""
    runs = [expected[start : start + 4] for start in range(max(1, len(expected) - 3))]
    return sum(run in text for run in runs) / len(runs)


def rows(preview_text: str, text: str) -> tuple[int, int]:
    """Rows of several cells of the preview, and how many of them are one row of the text."""
    lines = [[SEPARATORS.sub("", cell) for cell in line.split(" | ")] for line in text.splitlines() if " | " in line]
    found = total = 0
    for line in preview_text.splitlines():
        cells = [cell for each in re.findall("<([^<>]*)>", line) if (cell := SEPARATORS.sub("", each))]
        if len(cells) > 1:
            total += 1
            found += any(all(any(cell in other for other in row) for cell in cells) for row in lines)
    return total, found


def main() -> None:
    """Print the figures, and the reasons of files that were not read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=0, help="list this many files with the smallest recall")
    options = parser.parse_args()
    paths = sorted(path for path in options.folder.iterdir() if path.suffix.lower() in (".hwp", ".hwpx"))
    recalls: dict[str, float] = {}
    reasons: Counter[str] = Counter()
    all_rows = right = 0
    for path in paths:
        try:
            check_content(path, format_of(path.name))
            text = "\n".join(document.text for document in format_of(path.name).load()(path, path.name))
            if not text:
                raise ParseFailed("no text in it")
        except ParseFailed as error:
            reasons[str(error)] += 1
            continue
        stored = preview(path)
        if expected := SEPARATORS.sub("", stored):
            recalls[path.name] = recall(expected, SEPARATORS.sub("", text))
            total, found = rows(stored, text)
            all_rows, right = all_rows + total, right + found
    mean = sum(recalls.values()) / max(1, len(recalls))
    print(f"{len(paths):,} files, {len(recalls):,} with a preview: recall {mean:.4f}, rows {right:,} of {all_rows:,}")
    for reason, count in reasons.most_common():
        print(f"{count:6}  {reason}")
    for name in sorted(recalls, key=recalls.__getitem__)[: options.show]:
        print(f"  {recalls[name]:.2f}  {name}")


if __name__ == "__main__":
    main()
