"""Selection of documents by ids, paths and patterns."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from dtrag.core.documents import DocumentSummary
from dtrag.core.taxonomy.tree import CategoryPath

PATTERN_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class DocumentTarget:
    """An id, path or pattern as typed, and its parsed form."""

    text: str
    document_id: str = ""
    address: str = ""
    pattern: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, text: str, address: str) -> DocumentTarget:
        """`address` is `text` as an absolute path; a pattern without "/" is compared with file names."""
        try:
            return cls(text, document_id=str(uuid.UUID(text)))
        except ValueError:
            pass
        if PATTERN_CHARACTERS & set(text):
            return cls(text, pattern=re.compile(_expression(address if "/" in text else text)))
        return cls(text, address=address.rstrip("/") or "/")

    def matches(self, document_id: str, path: str) -> bool:
        """Whether it selects the document with this path: by its id, its file, or a folder above it."""
        if self.document_id:
            return document_id == self.document_id
        if self.pattern is None:
            return path == self.address or path.startswith(self.address.rstrip("/") + "/")
        whole = self.pattern.pattern.startswith("/")
        return self.pattern.fullmatch(path if whole else PurePosixPath(path).name) is not None


def file_path(source_url: str) -> str:
    """The path of the source file of a document; for another source, its address without the fragment."""
    address = source_url.partition("#")[0]
    return unquote(address.removeprefix("file://"))


def select(
    documents: Iterable[tuple[DocumentSummary, str]], targets: Sequence[DocumentTarget], category: CategoryPath | None
) -> tuple[list[DocumentSummary], list[str]]:
    """The documents (with the paths of their files) that match a target and are in the category, and the targets
    without a match. Without targets: all documents of the category."""
    chosen: list[DocumentSummary] = []
    used: set[str] = set()
    branch = category.key if category is not None else ()
    for document, path in documents:
        if branch and CategoryPath.parse(document.taxonomy_path or ("-",)).key[: len(branch)] != branch:
            continue
        matching = [target.text for target in targets if target.matches(document.document_id, path)]
        used.update(matching)
        if matching or not targets:
            chosen.append(document)
    return chosen, [target.text for target in targets if target.text not in used]


def _expression(pattern: str) -> str:
    """A regular expression for a shell pattern: `*` and `?` do not match "/", `**` does."""
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        special.get(piece) or (_character_class(piece) if len(piece) > 1 else re.escape(piece))
        for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[!?[^]/]+\]|.", pattern, re.DOTALL)
    )


def _character_class(piece: str) -> str:
    negated, characters = ("^", piece[2:-1]) if piece[1] == "!" else ("", piece[1:-1])
    return "[" + negated + re.sub(r"([\\\[^])", r"\\\1", characters) + "]"
