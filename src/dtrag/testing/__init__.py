"""For tests of programs that build on dtrag: an app in memory, models without weights, and contract suites.

    async with open_in_memory() as app:
        await add_texts(app, {"leave.md": "Annual leave is 26 days."}, category="HR")
        answer = await app.ask("How many days of annual leave are there?")

dtrag itself imports nothing from here. Only `dtrag.testing.contracts` needs pytest.
"""

from dtrag.ports import Models
from dtrag.testing.in_memory import add_texts, open_in_memory
from dtrag.testing.memory.state import MemoryState
from dtrag.testing.memory.stores import memory_stores
from dtrag.testing.models import HashEmbedder, OverlapReranker, ScriptedModel
from dtrag.testing.parser import InProcessParser

__all__ = [
    "HashEmbedder",
    "InProcessParser",
    "MemoryState",
    "Models",
    "OverlapReranker",
    "ScriptedModel",
    "add_texts",
    "memory_stores",
    "open_in_memory",
]
