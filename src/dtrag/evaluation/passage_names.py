"""The names by which judgements refer to a passage: its article, or its document."""

from __future__ import annotations

from collections.abc import Collection

from dtrag.core.documents import SearchResult
from dtrag.core.provisions import provision_names


def document_names(passage: SearchResult) -> list[str]:
    """The id in the corpus, title, id in the index, address and file name of the passage's document."""
    metadata = passage.metadata
    file_name = passage.source_url.rsplit("/", 1)[-1]
    names = (metadata.get("id"), passage.title, metadata.get("document_id"), passage.source_url, file_name)
    return [str(name) for name in names if name]


def article_names(passage: SearchResult) -> list[str]:
    """`code:제N조` and `규정명:제N조`, with `#2` for the second article of one number; [] outside of regulations."""
    return provision_names(passage.metadata)


def judged_name(passage: SearchResult, relevant_ids: Collection[str]) -> str:
    """The passage's name that occurs in the judgements, else the first of its names; "" without any.

    An article has priority over its document, so that the articles of a regulation book are different results.
    """
    names = [*article_names(passage), *document_names(passage)]
    return next((name for name in names if name in relevant_ids), names[0] if names else "")
