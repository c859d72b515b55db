"""Vectors that commands make before they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtrag.core.access.confinement import OWNER

if TYPE_CHECKING:
    from dtrag.app import App


async def fill_vectors(opened: App, *, wait: bool = True) -> None:
    """Make the vectors of passages with progress, and note which are left to other processes."""
    from asyncio import CancelledError

    from dtrag.delivery.cli.console import note, plural
    from dtrag.delivery.cli.progress import progress

    left = ""
    try:
        if wait:
            with progress("Vectors") as update:
                filled = await opened.vectors.fill(
                    lambda made, pending: update(made, made + pending, f"{made:,}/{made + pending:,} passages")
                )
            left = "the running service makes" if filled.served else ""
        else:
            left = "the next `dtrag ingest` or a service makes"
    except CancelledError:
        note(
            "Stopped. All documents are stored and found by their words; the next `dtrag ingest` or a service makes "
            "the vectors that are missing."
        )
        raise
    if left and (pending := await opened.pending_vectors(scope=OWNER)):
        note(f"Found by words now; {left} the vectors of {plural(pending, 'passage')}.")
