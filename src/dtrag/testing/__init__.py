"""For tests of programs that build on dtrag: an app on a throw-away database, and models without weights.

    async with open_throwaway() as app:
        await add_texts(app, {"leave.md": "Annual leave is 26 days."}, category="HR")
        answer = await app.ask("How many days of annual leave are there?")

dtrag itself imports nothing from here.
"""

from dtrag.ports import Models
from dtrag.testing.models import HashEmbedder, OverlapReranker, ScriptedModel
from dtrag.testing.throwaway import add_texts, open_throwaway, throwaway_database

__all__ = [
    "HashEmbedder",
    "Models",
    "OverlapReranker",
    "ScriptedModel",
    "add_texts",
    "open_throwaway",
    "throwaway_database",
]
