"""How many tokens a text has, where nobody counted them."""

from __future__ import annotations

import re

_HANGUL = re.compile(r"[\uac00-\ud7a3]")
CHARACTERS = 4
"""Characters of a token in English prose, as the providers themselves give it as a rule of thumb."""


def estimated_tokens(text: str) -> int:
    """A token for each Hangul syllable and for every four other characters, rounded up."""
    syllables = len(_HANGUL.findall(text))
    return syllables + -(-(len(text) - syllables) // CHARACTERS)
