"""Ids, paths and patterns name just the documents that they should."""

from __future__ import annotations

import pytest

from dtrag.core.document_listing import DocumentTarget, file_path, select
from dtrag.core.documents import DocumentSummary
from dtrag.core.taxonomy.tree import CategoryPath

ID = "1e72659b-bfb0-5f9f-9dd0-a27d2dcd4566"
PATHS = ["/a/b/x.md", "/a/b/deep/y.md", "/a/bc/x.md", "/a/b/x.txt", "/a/b/[1].md"]


@pytest.mark.parametrize(
    ("text", "address", "expected"),
    [
        ("/a/b", "/a/b", {"/a/b/x.md", "/a/b/deep/y.md", "/a/b/x.txt", "/a/b/[1].md"}),
        ("/a/b/x.md", "/a/b/x.md", {"/a/b/x.md"}),
        ("x.md", "/a/bc/x.md", {"/a/bc/x.md"}),
        ("*.md", "/a/*.md", {"/a/b/x.md", "/a/b/deep/y.md", "/a/bc/x.md", "/a/b/[1].md"}),
        ("b/*.md", "/a/b/*.md", {"/a/b/x.md", "/a/b/[1].md"}),
        ("/a/b/**/*.md", "/a/b/**/*.md", {"/a/b/x.md", "/a/b/deep/y.md", "/a/b/[1].md"}),
        ("?.txt", "/a/?.txt", {"/a/b/x.txt"}),
        ("[!x].md", "/a/[!x].md", {"/a/b/deep/y.md"}),
        ("[[]1].md", "/a/[[]1].md", {"/a/b/[1].md"}),
        ("*.m", "/a/*.m", set()),
    ],
)
def test_paths_and_patterns(text: str, address: str, expected: set[str]) -> None:
    target = DocumentTarget.parse(text, address)
    assert {path for path in PATHS if target.matches(ID, path)} == expected


def test_an_id_names_one_document() -> None:
    assert DocumentTarget.parse(ID.upper(), "/a").matches(ID, "/z")
    assert not DocumentTarget.parse(ID, "/a").matches("2" + ID[1:], "/z")


def document(path: str, *category: str) -> tuple[DocumentSummary, str]:
    url = f"file://{path}"
    return DocumentSummary(path, path, url, "text/markdown", category, "en", 1, 1, {}, ""), file_path(url)


def test_a_category_can_be_combined_or_used_alone() -> None:
    documents = [document("/a/x.md", "HR", "Leave"), document("/a/y.md", "HRX"), document("/b/z.md", "hr")]
    chosen, unmatched = select(documents, [], CategoryPath.parse("HR"))
    assert ([d.document_id for d in chosen], unmatched) == (["/a/x.md", "/b/z.md"], [])
    chosen, unmatched = select(
        documents, [DocumentTarget.parse("/a", "/a"), DocumentTarget.parse("q*", "/q*")], CategoryPath.parse("HR")
    )
    assert ([d.document_id for d in chosen], unmatched) == (["/a/x.md"], ["q*"])


def test_the_path_of_an_address() -> None:
    assert file_path("file:///a/b%23%20c.md#part-1") == "/a/b# c.md"
    assert file_path("upload:room/b%20c.md") == "upload:room/b c.md"
