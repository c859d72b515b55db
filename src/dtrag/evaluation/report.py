"""Reports of a run: Markdown, one HTML page that needs nothing from elsewhere, JSON, and a line of JSON a question.

Also how two runs compare, and how often answers are wrong at each share of answered questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

from dtrag.core.documents import Answer
from dtrag.core.evaluation_run import LOWER_IS_BETTER, NEUTRAL, EvaluationRun, RunRow, risk_coverage
from dtrag.core.metrics.intervals import Estimate, estimates, paired_differences
from dtrag.core.response import plain
from dtrag.errors import InvalidInput

FORMATS = (".json", ".jsonl", ".md", ".html")
MOST_ROWS = 500
"""Questions that a report lists, the worst first; the JSON has all."""
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c2733;"
    "background:#fff}table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{border-bottom:1px solid #d5dde5;"
    "padding:.3rem .6rem;text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".better{color:#11703a}.worse{color:#b3261e}svg{max-width:100%;height:auto}summary{cursor:pointer}"
)


def write_report(file: Path, run: EvaluationRun, comparison: RunComparison | None) -> None:
    """Write the run in the format of the file's ending. Raises `InvalidInput` for another ending and a bad folder."""
    texts = {".json": _json, ".jsonl": _json_lines, ".md": markdown, ".html": html}
    if file.suffix not in texts:
        raise InvalidInput(f"{file} must end in one of {', '.join(FORMATS)}: the ending chooses the format.")
    try:
        file.write_text(texts[file.suffix](run, comparison), "utf-8")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror or error}.") from error


def read_run(file: Path) -> EvaluationRun:
    """A saved run. Raises `InvalidInput`."""
    try:
        stored = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} cannot be read as a run of an evaluation: {str(error)[:200]}") from error
    return EvaluationRun.from_dict(stored, str(file))


def _json(run: EvaluationRun, comparison: RunComparison | None) -> str:
    report = plain(run.report()) | ({"against": comparison.as_dict()} if comparison else {})
    return json.dumps(report, ensure_ascii=False, indent=1) + "\n"


def _json_lines(run: EvaluationRun, _: RunComparison | None) -> str:
    """A line for each question: its values, and what the run knows of its answer."""
    lines = ({"id": row.id, "question": row.question, "values": _values(row), **row.details} for row in run.rows)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def markdown(run: EvaluationRun, comparison: RunComparison | None) -> str:
    """The report as Markdown."""
    lines = [f"# {_title(run)}", "", *(f"- {name}: {value}" for name, value in _facts(run)), ""]
    lines += ["| measure | value | 95 % interval |", "|---|---|---|"]
    for name, estimate in run.estimates().items():
        if estimate.value is not None and estimate.interval is not None:
            low, high = estimate.interval
            lines.append(f"| {name} | {estimate.value:.4f} | {low:.3f} to {high:.3f} |")
    if comparison is not None:
        lines += ["", f"## Against {_title(comparison.baseline)}", "", _matched(comparison), ""]
        lines += ["| measure | before | now | difference | 95 % interval | |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {change.name} | {change.before:.4f} | {change.now:.4f} | {change.difference:+.4f} "
            f"| {change.low:+.3f} to {change.high:+.3f} | {change.verdict} |"
            for change in comparison.measures
        ]
    lines += ["", "## Questions, the worst first", ""]
    for row in _worst_first(run.rows):
        lines.append(f"- **{_one_line(row.question)}** ({row.id}): {_shown(row)}")
        lines += [f"  - {_one_line(text)}" for text in _details(row)]
    return "\n".join(lines) + "\n"


def html(run: EvaluationRun, comparison: RunComparison | None) -> str:
    """The report as an HTML page: no script, and nothing from elsewhere."""
    estimates = {name: estimate for name, estimate in run.estimates().items() if estimate.interval is not None}
    parts = [f"<h1>{escape(_title(run))}</h1>", "<ul>"]
    parts += [f"<li>{escape(name)}: {escape(value)}</li>" for name, value in _facts(run)]
    parts += ["</ul><h2>Measures</h2>", interval_plot(estimates)]
    if comparison is not None:
        parts += [f"<h2>Against {escape(_title(comparison.baseline))}</h2><p>{escape(_matched(comparison))}</p>"]
        parts += [
            difference_plot(comparison.measures),
            "<table><tr><th>Measure<th>Before<th>Now<th>Difference<th></tr>",
        ]
        parts += [
            f'<tr><td>{escape(change.name)}<td class="n">{change.before:.4f}<td class="n">{change.now:.4f}'
            f'<td class="n">{change.difference:+.4f} [{change.low:+.3f}, {change.high:+.3f}]'
            f'<td class="{change.verdict.split()[0]}">{change.verdict}</tr>'
            for change in comparison.measures
        ]
        parts.append("</table>")
    parts.append("<h2>How the questions are spread</h2>")
    for name in estimates:
        values = [row.ratios[name][0] / row.ratios[name][1] for row in run.rows if row.ratios[name][1]]
        if name not in NEUTRAL and len(set(values)) > 1:
            parts.append(histogram(name, values))
    if curve := risk_coverage(run.rows).points:
        parts.append("<h2>Answers that are not right, over the share of questions answered</h2>")
        parts.append(curve_plot([(point.coverage, point.risk) for point in curve], "share answered", "not right"))
    parts.append("<h2>Questions, the worst first</h2><table><tr><th>Question<th>Measures<th>Notes</tr>")
    for row in _worst_first(run.rows):
        notes = "".join(f"<p>{escape(text)}</p>" for text in _details(row))
        shown = f"<details><summary>{len(_details(row))}</summary>{notes}</details>" if notes else ""
        parts.append(f"<tr><td>{escape(row.question)}<td>{escape(_shown(row))}<td>{shown}</tr>")
    parts.append("</table>")
    head = f'<meta charset="utf-8"><title>{escape(_title(run))}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _title(run: EvaluationRun) -> str:
    return f"{run.kind} on {run.dataset}, {run.created_at:%Y-%m-%d %H:%M}"


def _facts(run: EvaluationRun) -> Iterator[tuple[str, str]]:
    yield "run", str(run.run_id)
    yield "dtrag", run.version
    yield "questions", f"{len(run.rows):,}"
    yield from run.settings.items()


def _matched(comparison: RunComparison) -> str:
    text = f"{comparison.questions:,} questions are in both runs"
    return text + (f", {comparison.unmatched:,} in one of them (not compared)." if comparison.unmatched else ".")


def _worst_first(rows: Sequence[RunRow]) -> list[RunRow]:
    return sorted(rows, key=_goodness)[:MOST_ROWS]


def _goodness(row: RunRow) -> float:
    """The mean of the question's measures, those of which less is better turned round."""
    values = [
        (1 - top / bottom) if name in LOWER_IS_BETTER else top / bottom
        for name, (top, bottom) in row.ratios.items()
        if bottom and name not in NEUTRAL
    ]
    return sum(values) / len(values) if values else 1.0


def _values(row: RunRow) -> dict[str, float]:
    return {name: round(top / bottom, 4) for name, (top, bottom) in row.ratios.items() if bottom}


def _shown(row: RunRow) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in _values(row).items())


def _details(row: RunRow) -> list[str]:
    texts: list[str] = []
    for name, value in row.details.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            texts += [f"{name}: {part}"] if str(part) else []
    return texts


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("*", "\\*").replace("<", "&lt;")


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


def confidence_of(answer: Answer) -> float:
    """The confidence by which answers are ordered: that of the answer where it is known, else that of the documents."""
    return answer.confidence if answer.answer_confidence is None else answer.answer_confidence


Verdict = Literal["better", "worse", "no difference"]


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """A measure in both runs, over the questions that both have, and its difference with a paired interval."""

    name: str
    before: float
    now: float
    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """By the interval: "no difference" while it contains 0."""
        if self.low <= 0 <= self.high or self.name in NEUTRAL:
            return "no difference"
        return "better" if (self.difference > 0) is (self.name not in LOWER_IS_BETTER) else "worse"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A run against another. `changed` are questions of which a measure changed: (question, measure, before, now)."""

    baseline: EvaluationRun
    measures: tuple[MeasureChange, ...]
    questions: int
    unmatched: int
    changed: tuple[tuple[str, str, float, float], ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "baseline": plain(self.baseline.summary()) | {"measures": {}},
            "questions": self.questions,
            "unmatched": self.unmatched,
            "measures": {
                change.name: {
                    "before": round(change.before, 4),
                    "now": round(change.now, 4),
                    "difference": round(change.difference, 4),
                    "low": round(change.low, 4),
                    "high": round(change.high, 4),
                    "verdict": change.verdict,
                }
                for change in self.measures
            },
            "changed": [
                {"question": question, "measure": name, "before": before, "now": now}
                for question, name, before, now in self.changed
            ],
        }


def compare(run: EvaluationRun, baseline: EvaluationRun) -> RunComparison:
    """The run against the baseline, over the questions with the same id and text.

    Raises `InvalidInput` for runs of different kinds, and for runs without a common question.
    """
    if run.kind != baseline.kind:
        raise InvalidInput(f"A run of eval {run.kind} cannot be compared with one of eval {baseline.kind}.")
    before = {(row.id, row.question): row for row in baseline.rows}
    pairs = [(row, before[row.id, row.question]) for row in run.rows if (row.id, row.question) in before]
    if not pairs:
        raise InvalidInput(f"The run of {baseline.dataset} has none of the questions of {run.dataset}.")
    rows, others = [row.ratios for row, _ in pairs], [row.ratios for _, row in pairs]
    now, then, differences = estimates(rows), estimates(others), paired_differences(rows, others)
    changes = tuple(change for name in differences if (change := _change(name, then, now, differences)) is not None)
    changed = tuple(
        (row.question, name, old, new)
        for row, other in pairs
        for name in differences
        for old, new in ((_value(other, name), _value(row, name)),)
        if old is not None and new is not None and abs(old - new) > 1e-9
    )
    unmatched = len(run.rows) + len(baseline.rows) - 2 * len(pairs)
    return RunComparison(baseline, changes, len(pairs), unmatched, changed)


def _change(
    name: str, then: Mapping[str, Estimate], now: Mapping[str, Estimate], differences: Mapping[str, Estimate]
) -> MeasureChange | None:
    before, after, difference = then[name].value, now[name].value, differences[name]
    if before is None or after is None or difference.value is None or difference.interval is None:
        return None
    return MeasureChange(name, before, after, difference.value, *difference.interval)


def _value(row: RunRow, name: str) -> float | None:
    numerator, denominator = row.ratios.get(name, (0.0, 0.0))
    return numerator / denominator if denominator else None
