"""Estimated token counts, where no model has counted.

Four estimates, because an error has another consequence in each place: accounting must not count too little, the sizes
of passages are part of the index and must not change, a limit on answers counts words as the acceptance text does, and
fragments of Korean provisions need only an upper bound in characters.
"""

from __future__ import annotations

import re

from dtrag.core.text.patterns import HANGUL

CHARACTERS = 4
"""Characters of a token in English prose, the rule of thumb that providers publish."""
KOREAN_CHARACTERS_PER_TOKEN = 2
"""Characters of Korean prose, blanks included, per token of a multilingual vocabulary."""
SYLLABLES_PER_TOKEN = 2
"""Hangul, kana and Han characters of a token; current tokenizers need one token for 1 to 1.7 of them."""
LETTERS_PER_TOKEN = 24
"""A longer word counts as more than one token."""
_WIDE = re.compile(r"[가-힣\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff]")


def estimated_tokens(text: str) -> int:
    """Tokens for accounting: one for each Hangul syllable and for every four other characters, rounded up."""
    syllables = sum(map(len, HANGUL.findall(text)))
    return syllables + -(-(len(text) - syllables) // CHARACTERS)


def passage_tokens(text: str) -> int:
    """Tokens for the sizes of passages: one per 4 ASCII characters, one per 2 others (Hangul, CJK), at least 1."""
    others = 0 if text.isascii() else (len(text.encode("utf-8", "surrogatepass")) - len(text)) // 2  # 3 bytes each
    return max(0, len(text) - others) // 4 + others // 2 + 1


def answer_tokens(text: str) -> int:
    """Tokens for the length of answers; never fewer than the words."""
    return sum(map(word_tokens, text.split()))


def word_tokens(word: str) -> int:
    """Tokens of one word of an answer, at least 1."""
    wide = len(_WIDE.findall(word))
    return max(1, -(-wide // SYLLABLES_PER_TOKEN), -(-len(word) // LETTERS_PER_TOKEN))
