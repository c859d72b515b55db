"""The HTML page of `dtrag regulations diff --html`: self-contained, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dtrag.core.regulation_changes import ProvisionChange, RegulationDiff, Span, pieces
from dtrag.core.text.hidden_characters import visible

_STYLE = """
body { font: 15px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; table-layout: fixed; width: 100%; }
td, th { border: 1px solid #8886; padding: .5rem; text-align: left; vertical-align: top; white-space: pre-wrap; }
th[scope=row] { background: #8882; }
del { background: #f006; text-decoration: none; }
ins { background: #0a06; text-decoration: none; }
"""


def page(differences: Sequence[RegulationDiff]) -> str:
    """A page with the changes side by side, a table for each regulation."""
    title = ", ".join(dict.fromkeys(each.regulation for each in differences))[:200]
    body = "\n".join(_section(each) for each in differences)
    return (
        '<!doctype html>\n<html lang="ko">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _section(compared: RegulationDiff) -> str:
    heading = f"<h1>{_text(compared.regulation)}</h1>"
    if not compared.changes:
        return f"{heading}\n<p>No changes between {_text(compared.before)} and {_text(compared.after)}.</p>"
    rows = "\n".join(_rows(change) for change in compared.changes)
    days = f"<tr><th>{_text(compared.before)}</th><th>{_text(compared.after)}</th></tr>"
    return f"{heading}\n<table>\n{days}\n{rows}\n</table>\n<p>{compared.unchanged:,} provisions unchanged.</p>"


def _rows(change: ProvisionChange) -> str:
    heading = f"{change.label}({change.title})" if change.title else change.label
    before, after = _marked(change.before, change.before_spans, "del"), _marked(change.after, change.after_spans, "ins")
    return (
        f'<tr><th scope="row" colspan="2">{_text(heading)}: {change.change}</th></tr>\n'
        f"<tr><td>{before}</td><td>{after}</td></tr>"
    )


def _marked(text: str, spans: Sequence[Span], tag: str) -> str:
    return "".join(
        f"<{tag}>{_text(part)}</{tag}>" if is_changed else _text(part) for part, is_changed in pieces(text, spans)
    )


def _text(text: str) -> str:
    return escape(visible(text))
