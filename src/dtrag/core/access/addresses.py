"""Addresses of documents for display: only administrators see folders of the server."""

from __future__ import annotations

from urllib.parse import quote, urldefrag


def shown_address(source_uri: str, source_path: str, *, server_paths: bool | None) -> str:
    """The address of a document: complete with `server_paths`, else for a file only its path below the ingested folder.

    `source_path` is that path; documents indexed by versions that did not store it have "", and show the file name.
    The fragment, which distinguishes documents of one file, is kept.
    """
    if server_paths or not source_uri.startswith("file:"):
        return source_uri
    address, fragment = urldefrag(source_uri)
    path = quote(source_path) or address.rsplit("/", 1)[-1]
    return f"{path}#{fragment}" if fragment else path
