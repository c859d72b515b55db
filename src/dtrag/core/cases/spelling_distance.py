"""Whether a word is another one with a typing error."""

from __future__ import annotations

import functools

SHORTEST = 4
"""Letters of a word from which on one wrong letter is forgiven; two from `SHORTEST_FOR_TWO` on."""
SHORTEST_FOR_TWO = 8


@functools.lru_cache(20_000)
def distance(left: str, right: str, most: int) -> int:
    """Insertions, deletions, replacements and exchanges of neighbours that turn one into the other; most + 1 if more.

    Optimal string alignment (Boytsov 2011).
    """
    if abs(len(left) - len(right)) > most:
        return most + 1
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for row, character in enumerate(left, 1):
        current = [row]
        for column, other in enumerate(right, 1):
            cost = min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (character != other))
            if row > 1 and column > 1 and character == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, previous = previous, current
    return previous[-1]


def allowed_errors(left: str, right: str) -> int:
    """Letters that may be wrong between two words of these lengths."""
    shorter = min(len(left), len(right))
    if shorter < SHORTEST:
        return 0
    return 2 if shorter >= SHORTEST_FOR_TWO else 1
