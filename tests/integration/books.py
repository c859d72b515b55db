"""A shelf of documents in two categories, told apart by their words."""

from __future__ import annotations

import random
from typing import Any

KITCHEN, GARDEN = "Kitchen", "Garden"
WORDS = {
    KITCHEN: "simmer onions butter whisk broth season soup thyme oven dough knead saucepan ladle roast".split(),
    GARDEN: "prune roses compost spade seedlings hedge mulch watering lawn bulbs trellis weeds bed frost".split(),
}


def shelf(each: int) -> list[dict[str, Any]]:
    """So many documents of each category, as rows of a JSONL file."""
    chosen = random.Random(7)
    return [
        {
            "id": f"{name}{number}",
            "title": f"{name} {number}",
            "text": f"First {', then '.join(chosen.sample(words, 8))}.",
            "category_path": ["House", name],
        }
        for name, words in WORDS.items()
        for number in range(each)
    ]
