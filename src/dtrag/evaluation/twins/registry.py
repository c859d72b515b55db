"""The scenarios of the twin worlds, as they register themselves, and the routes that need none."""

from __future__ import annotations

from collections.abc import Callable

from dtrag.evaluation.twins.visits import Play, Route, Scenario

SCENARIOS: list[Scenario] = []
"""All scenarios in order; filled by `scenario`."""
EXEMPT: dict[Route, str] = {
    ("GET", "/livez"): "Reports liveness without a key and reads nothing.",
    ("GET", "/statements/{language}"): "Returns a table of the program, the same for everybody.",
    ("POST", "/session"): "Answers with the name, role and branches of the key in the body, which the sender holds.",
}
"""Routes that are not compared, with reasons."""


def scenario(*routes: Route, writes: bool = False) -> Callable[[Play], Play]:
    """Register the decorated coroutine with the routes that it requests."""

    def enter(play: Play) -> Play:
        SCENARIOS.append(Scenario(play.__name__, play, frozenset(routes), writes))
        return play

    return enter


def routes_tried() -> frozenset[Route]:
    """The routes of all scenarios."""
    return frozenset(route for entry in SCENARIOS for route in entry.routes)
