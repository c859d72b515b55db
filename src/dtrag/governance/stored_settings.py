"""What another version of dtrag stored in the settings of an index and this version does not use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtrag.core import lexicon_entry
from dtrag.core.answers import passage_confidence
from dtrag.governance import changed_settings
from dtrag.regulations.korean.lexicon_entries import unread

KNOWN = frozenset(
    {
        "generation",
        "vectors",
        "vectors_emptied",
        "spaces",
        "sources_read_with",
        "analyzer",
        "rebuilding",
        passage_confidence.SETTING,
        lexicon_entry.SETTING,
        changed_settings.SETTING,
    }
)


def unused_settings(stored: Mapping[str, Any]) -> list[str]:
    """A sentence for each setting that has no effect here, and what to do."""
    notes = []
    if others := sorted(stored.keys() - KNOWN):
        names = ", ".join(others)
        notes.append(f"A later version of dtrag stored {names} in the index; ignored here. Update dtrag.")
    if (calibration := stored.get(passage_confidence.SETTING)) and not passage_confidence.is_used(calibration):
        notes.append(
            "Another version of dtrag made the calibration; ignored here, confidence is as shipped. Repeat it with: "
            "dtrag calibrate QUESTIONS"
        )
    if parts := unread(stored.get(lexicon_entry.SETTING)):
        notes.append(
            f"A later version of dtrag stored {parts:,} entries of the lexicon that this one cannot read; ignored "
            "here. Update dtrag."
        )
    changed = stored.get(changed_settings.SETTING) or {}
    if unusable := sorted(changed.keys() - changed_settings.readable(changed).keys()):
        notes.append(
            f"Stored values of {', '.join(unusable)} are of another version of dtrag and cannot be read; ignored here. "
            "Return each to its default, or install that version."
        )
    return notes
