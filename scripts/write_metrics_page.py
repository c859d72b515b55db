"""Writes docs/reference/metrics.md from the metrics that the service registers.

    .venv/bin/python scripts/write_metrics_page.py

A test compares the page with what this script makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics_core import Metric

from dtrag.delivery.api.prometheus import Telemetry

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"
HEAD = """\
# Metrics

Made by `scripts/write_metrics_page.py` from `delivery/api/prometheus.py`; do not edit it by hand.

[`GET /metrics`](http.md#get-metrics) returns these metrics in the text format of Prometheus. They count from the start
of the service, for all its workers. No label holds a query, an id or a word of a document.
[Monitor the service](../how-to/monitoring.md) has the scrape configuration and the alert rules.

"""
LABELS_HEAD = """
## Labels

A value that is not listed is counted as `other`.

"""
LABELS = {
    "decision": "`answer`, `review`, `abstain`",
    "direction": "`in`, `out`",
    "error": "class of the error, such as `InvalidInput`",
    "feedback": "`thumbs_up`, `thumbs_down`, `selected`, `ignored`",
    "kind": "of attempts: `path_traversal`, `injection`, `bypass`; of jobs: `ingest`, `vectors`, `imagined`",
    "limiter": "concurrency limit: `run`, `cpu`, `model`, `search`, `case`, `upload`",
    "method": "HTTP method",
    "mode": "`hybrid`, `lexical`, `strict`, `vector`",
    "outcome": "of the cache: `hit`, `miss`; of debates: `started`, then `finished`, `failed`, `timeout` or "
    "`cancelled`; of tools: `succeeded`, `failed`, `blocked` (not executed), `timeout`",
    "part": "a step, a search stage, or `llm`, `tools`, `debate`, `confidence`",
    "retriever": "`lexical`, `vector`",
    "route": "template of the route, such as `/documents/{document_id}`",
    "stage": "`embedding`, `lexical`, `vector` (embedding included), `fusion`, `rerank`, `fetch`, `mentions`, `total`",
    "state": "of limiters: `working`, `waiting`; of jobs: `waiting`, `running`, `failed`",
    "status": "HTTP status",
    "step": "`intent`, `rewrite`, `retrieve`, `plan`, `tools_debate`, `read`, `compose`, `cite`, `respond`",
}


def labels_of(collector: object, family: Metric) -> tuple[str, ...]:
    """The label names of a family; the registry keeps them on the collector or on the family."""
    return tuple(getattr(collector, "_labelnames", ()) or getattr(family, "_labelnames", ()))


def families() -> Iterator[tuple[Metric, tuple[str, ...]]]:
    """Each registered metric family with its label names, in the order of registration."""
    registry = Telemetry()._registry
    for collector in registry._collector_to_names:
        for family in collector.collect():
            yield family, labels_of(collector, family)


def page() -> str:
    """The whole page."""
    rows, used = [], set()
    for family, labels in families():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append(f"| `{name}` | {family.type} | {', '.join(labels)} | {family.documentation} |\n")
        used |= set(labels)
    table = "| Name | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n" + "".join(rows)
    meanings = "".join(f"| `{label}` | {LABELS[label]} |\n" for label in sorted(used))
    return f"{HEAD}{table}{LABELS_HEAD}| Label | Values |\n| --- | --- |\n{meanings}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
