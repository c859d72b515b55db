"""Suggestions of own lexicon entries, from answers that reviewers corrected."""

from __future__ import annotations

import asyncio

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.errors import InvalidInput
from dtrag.governance.lexicon import OwnLexicon
from dtrag.governance.review import Review
from dtrag.packs.regulation_ko.entry_suggestions import CorrectedQuestion, Suggestion, suggestions
from dtrag.packs.regulation_ko.lexicon import built_in
from dtrag.packs.regulation_ko.own_entries import for_matching

LEAST = 2
"""Different questions that an entry needs, unless another number is requested."""


class LexiconSuggestions:
    """Suggests entries from the corrections that a caller sees."""

    def __init__(self, review: Review, lexicon: OwnLexicon):
        self._review = review
        self._lexicon = lexicon

    async def suggest(self, least: int = LEAST, *, caller: Caller = LOCAL) -> list[Suggestion]:
        """Entries that at least `least` different questions support, the best supported first. They are not added."""
        if least < 1:
            raise InvalidInput("An entry needs at least one question.")
        corrected = [
            CorrectedQuestion(
                question,
                tuple(str(p.metadata.get("article_title") or (p.breadcrumb or (p.title,))[-1]) for p in passages),
                tuple(passage.text for passage in passages),
            )
            for question, passages in await self._review.corrections(caller=caller)
        ]
        own = for_matching(await self._lexicon.entries())

        def computed() -> list[Suggestion]:
            return suggestions(corrected, built_in().with_entries(own) if own else built_in(), least)

        return await asyncio.to_thread(computed)
