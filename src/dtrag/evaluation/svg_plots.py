"""Plots of a report as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from dtrag.core.metrics.bootstrap import Estimate
from dtrag.evaluation.comparison import MeasureChange

WIDTH, LEFT, RIGHT, LINE = 760, 190, 70, 26
_COLOURS = {"better": "#11703a", "worse": "#b3261e", "no difference": "#5b6b7b"}


def interval_plot(estimates: Mapping[str, Estimate]) -> str:
    """A line for each measure: its interval and its value, from 0 to the greatest (1 at least)."""
    shown = [(name, each.value, each.interval) for name, each in estimates.items() if each.value is not None]
    top = max([1.0, *(interval[1] for _, _, interval in shown if interval)])
    lines = []
    for place, (name, value, interval) in enumerate(shown):
        low, high = interval or (value, value)
        at = [_x(number, 0.0, top) for number in (low, value, high)]
        lines.append(_line(place, name, at, "#1d5c9c", f"{value:.3f}"))
    return _svg(len(shown), lines, [(0.0, _x(0, 0, top)), (round(top, 2), _x(top, 0, top))], "measures with intervals")


def difference_plot(changes: Sequence[MeasureChange]) -> str:
    """A line for each measure: its difference and the interval of it, with a line at 0."""
    reach = max([0.05, *(max(abs(change.low), abs(change.high)) for change in changes)])
    lines = [
        _line(
            place,
            change.name,
            [_x(number, -reach, reach) for number in (change.low, change.difference, change.high)],
            _COLOURS[change.verdict],
            f"{change.difference:+.3f}",
        )
        for place, change in enumerate(changes)
    ]
    ticks = [(number, _x(number, -reach, reach)) for number in (-round(reach, 2), 0.0, round(reach, 2))]
    return _svg(len(changes), lines, ticks, "differences with intervals")


def histogram(name: str, values: Sequence[float], bins: int = 10) -> str:
    """How many questions have which value, in ten bins of [0, 1]."""
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int(value * bins)))] += 1
    tallest, width, height = max(counts, default=1) or 1, 24, 70
    bars = [
        f'<rect x="{place * width + 2}" y="{height - count / tallest * height:.1f}" width="{width - 4}" '
        f'height="{count / tallest * height:.1f}" fill="#1d5c9c">'
        f"<title>{place / bins:.1f} to {(place + 1) / bins:.1f}: {count}</title></rect>"
        for place, count in enumerate(counts)
    ]
    total = bins * width
    label = f'<text x="0" y="{height + 16}" font-size="12">{escape(name)}, 0 to 1; {len(values):,} questions</text>'
    return (
        f'<svg viewBox="0 0 {total} {height + 22}" width="{total}" role="img" aria-label="{escape(name)}">'
        f"{''.join(bars)}{label}</svg> "
    )


def curve_plot(points: Sequence[tuple[float, float]], across: str, up: str, size: int = 300) -> str:
    """A line through the points, both axes from 0 to 1."""
    at = [(40 + x * size, 10 + (1 - y) * size) for x, y in points]
    lines = "".join(
        f'<line x1="40" y1="{y}" x2="{40 + size}" y2="{y}" stroke="#d5dde5"/>'
        f'<text x="34" y="{y + 4}" font-size="11" text-anchor="end">{value:g}</text>'
        f'<text x="{40 + value * size}" y="{size + 26}" font-size="11" text-anchor="middle">{value:g}</text>'
        for value in (0, 0.25, 0.5, 0.75, 1)
        for y in [10 + (1 - value) * size]
    )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    label = escape(f"{up} over {across}")
    return (
        f'<svg viewBox="0 0 {size + 60} {size + 50}" width="{size + 60}" role="img" aria-label="{label}">{lines}'
        f'<polyline points="{line}" fill="none" stroke="#1d5c9c" stroke-width="2"/>'
        f'<text x="40" y="{size + 44}" font-size="12">{label}</text></svg>'
    )


def _x(value: float, low: float, high: float) -> float:
    return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _line(place: int, name: str, at: Sequence[float], colour: str, label: str) -> str:
    y = place * LINE + LINE / 2 + 4
    low, value, high = at
    return (
        f'<text x="0" y="{y + 4}" font-size="13">{escape(name)}</text>'
        f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke="{colour}" stroke-width="3" opacity=".45"/>'
        f'<circle cx="{value:.1f}" cy="{y}" r="5" fill="{colour}"/>'
        f'<text x="{WIDTH - RIGHT + 12}" y="{y + 4}" font-size="13">{escape(label)}</text>'
    )


def _svg(count: int, lines: Sequence[str], ticks: Sequence[tuple[float, float]], label: str) -> str:
    bottom = count * LINE + 8
    marks = "".join(
        f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}" stroke="#d5dde5"/>'
        f'<text x="{x:.1f}" y="{bottom + 14}" font-size="11" text-anchor="middle">{value:g}</text>'
        for value, x in ticks
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {bottom + 20}" width="{WIDTH}" role="img" aria-label="{escape(label)}">'
        f"{marks}{''.join(lines)}</svg>"
    )
