"""Where a document came from, as different callers are shown it: folders of this machine are for administrators."""

from __future__ import annotations

from urllib.parse import quote, urldefrag


def shown_address(source_uri: str, source_path: str, *, server_paths: bool | None) -> str:
    """The address of a document: whole with `server_paths`, else of a file only its path below the ingested folder.

    `source_path` is that path; documents that were indexed before it was kept have "", and show the file's name. The
    fragment, which tells documents of one file apart, stays.
    """
    if server_paths or not source_uri.startswith("file:"):
        return source_uri
    address, fragment = urldefrag(source_uri)
    path = quote(source_path) or address.rsplit("/", 1)[-1]
    return f"{path}#{fragment}" if fragment else path
