"""The analyzer that the settings name: words and bigrams, and Korean morphemes beside them where asked for."""

from __future__ import annotations

from importlib.util import find_spec

from dtrag.core.text.analysis import ANALYZER, Analyzer
from dtrag.errors import InvalidInput, MissingExtra
from dtrag.settings import Settings


def choose(settings: Settings) -> Analyzer:
    """Raises `InvalidInput` for an unknown name and `MissingExtra` when the extra is not installed."""
    if settings.morphemes == "none":
        return Analyzer()
    if settings.morphemes != "kiwi":
        raise InvalidInput(f"DTRAG_MORPHEMES is {settings.morphemes!r}, but must be none or kiwi.")
    if find_spec("kiwipiepy") is None:
        raise MissingExtra(feature="DTRAG_MORPHEMES=kiwi", extra="kiwi")
    from dtrag.adapters.analyzers.kiwi import Morphemes

    return Analyzer(f"{ANALYZER}+kiwi-1", Morphemes())
