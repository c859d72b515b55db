"""deploy/alerts.yml: Prometheus rules over series that a service really exposes, with the limits of the texts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dtrag.delivery.api.app import create_app
from dtrag.errors import DatabaseUnavailable
from tests.store import Databases

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "alerts.yml"
DURATION = re.compile(r"(\d+(ms|[smhdwy]))+")
SELECTOR = re.compile(r"\b(dtrag_\w+|up)(?:\{([^{}]*)\})?(?:\[(\w+)\])?")
MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')
FUNCTIONS = {"delta", "histogram_quantile", "increase", "rate", "sum"}
WORDS = FUNCTIONS | {"by", "le", "and", "limiter", "up"}
THRESHOLDS = {
    "DtragDown": ("critical", "== 0", "2m"),
    "DtragUnexpectedErrors": ("high", "> 0", ""),
    "DtragRequestsRefused": ("high", "> 1", "10m"),
    "DtragVectorsStalled": ("medium", "> 0 and delta(dtrag_vectors_pending[30m]) >= 0", "30m"),
    "DtragAnswersVerySlow": ("critical", "> 6", "30m"),
    "DtragAnswersSlow": ("high", "> 4", "15m"),
    "DtragFilterBypassAttempts": ("critical", "> 10", ""),
    "DtragAgentValidationErrorsPerHour": ("high", "> 50", ""),
    "DtragAgentValidationErrorsPerMinute": ("medium", "* 60 > 10", "5m"),
    "DtragFilterSlow": ("medium", "> 0.05", "5m"),
    "DtragConfidenceLow": ("low", "< 0.5", "1h"),
    "DtragSearchVerySlow": ("high", "> 3", "5m"),
    "DtragSearchErrors": ("high", "> 0.05", "5m"),
    "DtragSearchSlow": ("medium", "> 1", "15m"),
    "DtragCacheHitRateLow": ("medium", "< 0.2", "1h"),
    "DtragSearchDiversityLow": ("low", "< 0.5", "1h"),
    "DtragCaseMemoryFailed": ("critical", "> 0", "5m"),
    "DtragCaseSuggestionsSlow": ("high", "> 0.5", "5m"),
    "DtragCaseSuccessLow": ("medium", "< 0.6", "1h"),
    "DtragFewCases": ("low", "< 100", "1d"),
}
"""Those of the service itself, then the alerts of the acceptance documents without Recall@10."""
AGENTS = 'dtrag_http_requests_total{route="/agents/from-category",status="422"}'
SEARCHES = 'dtrag_http_requests_total{route="/search",status="%s"}'
Series = dict[str, tuple[str, str]]
"""Values of each series, by the minute, with which the alert fires, and with which it does not."""


def histogram(name: str, slow: str, fast: str) -> Series:
    """Ten observations a minute that end between two bounds of buckets, or below the first of them."""
    comma = "," if "{" in name else "{"
    first, second = (f'{name.rstrip("}")}{comma}le="{le}"}}' for le in (fast, slow))
    every = f'{name.rstrip("}")}{comma}le="+Inf"}}'
    return {first: ("0+0x200", "0+10x200"), second: ("0+10x200", "0+10x200"), every: ("0+10x200", "0+10x200")}


def mean(name: str) -> Series:
    """Ten observations a minute with a mean of .2, or of .9."""
    return {f"{name}_sum": ("0+2x200", "0+9x200"), f"{name}_count": ("0+10x200", "0+10x200")}


TOTAL = 'dtrag_search_stage_seconds_bucket{stage="total"}'
FIRES: dict[str, Series] = {
    "DtragDown": {'up{job="dtrag",instance="a"}': ("1 0x200", "1x200")},
    "DtragUnexpectedErrors": {"dtrag_http_unexpected_errors_total": ("0x190 1x20", "0x200")},
    "DtragRequestsRefused": {'dtrag_admission_refused_total{limiter="run"}': ("0+120x200", "0+30x200")},
    "DtragVectorsStalled": {"dtrag_vectors_pending": ("500x200", "100000-64x200")},
    "DtragAnswersVerySlow": histogram("dtrag_pipeline_seconds_bucket", "10", "6"),
    "DtragAnswersSlow": histogram("dtrag_pipeline_seconds_bucket", "6", "4"),
    "DtragConfidenceLow": mean("dtrag_pipeline_confidence"),
    "DtragFilterBypassAttempts": {'dtrag_filter_bypass_attempts_total{kind="bypass"}': ("0+1x200", "0+0x200")},
    "DtragFilterSlow": histogram("dtrag_filter_seconds_bucket", "0.1", "0.05"),
    "DtragAgentValidationErrorsPerHour": {AGENTS: ("0+1x200", "0x100 20x100")},
    "DtragAgentValidationErrorsPerMinute": {AGENTS: ("0+11x200", "0+9x200")},
    "DtragSearchVerySlow": histogram(TOTAL, "10", "3"),
    "DtragSearchErrors": {SEARCHES % 200: ("0+90x200", "0+99x200"), SEARCHES % 503: ("0+10x200", "0+1x200")},
    "DtragSearchSlow": histogram(TOTAL, "3", "1"),
    "DtragCacheHitRateLow": {
        'dtrag_search_cache_total{outcome="hit"}': ("0+1x200", "0+5x200"),
        'dtrag_search_cache_total{outcome="miss"}': ("0+9x200", "0+5x200"),
    },
    "DtragSearchDiversityLow": mean("dtrag_search_diversity"),
    "DtragCaseMemoryFailed": {"dtrag_cbr_failed": ("1x200", "0x200")},
    "DtragCaseSuggestionsSlow": {"dtrag_cbr_suggestion_latency_avg": (".6x200", ".1x200")},
    "DtragCaseSuccessLow": {
        "dtrag_cbr_success_rate": (".5x200", ".7x200"),
        "dtrag_cbr_total_interactions": ("100x200", "100x200"),
    },
    "DtragFewCases": {"dtrag_cbr_total_cases": ("5x2000", "500x2000"), "dtrag_cbr_enabled": ("1x2000", "1x2000")},
}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


def test_the_rules_have_the_thresholds_of_the_texts() -> None:
    stated = {rule["alert"]: rule for rule in rules()}
    assert set(stated) == set(THRESHOLDS)
    for name, (severity, threshold, duration) in THRESHOLDS.items():
        rule = stated[name]
        assert (rule["labels"]["severity"], rule.get("for", "")) == (severity, duration), name
        assert re.search(re.escape(threshold) + r"(?![.\d])", rule["expr"]), name


def test_the_file_has_the_structure_of_a_rule_file() -> None:
    document = yaml.safe_load(RULES.read_text("utf-8"))
    assert set(document) == {"groups"}
    names = [group["name"] for group in document["groups"]]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert DURATION.fullmatch(rule.get("for", "1m"))
        assert all(isinstance(text, str) for part in ("labels", "annotations") for text in rule[part].values())


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_expression_is_well_formed(rule: dict[str, Any]) -> None:
    expression = rule["expr"]
    assert expression.count("(") == expression.count(")")
    for _, matchers, window in SELECTOR.findall(expression):
        assert not window or DURATION.fullmatch(window)
        parsed = [f'{label}{kind}"{value}"' for label, kind, value in MATCHER.findall(matchers)]
        assert ",".join(parsed) == matchers
        for _, _, value in MATCHER.findall(matchers):
            re.compile(value)
    rest = SELECTOR.sub(" ", expression)
    assert set(re.findall(r"[a-z_]+", rest)) <= WORDS
    assert set(re.findall(r"(\w+)\s*\((?!le\)|limiter\))", rest)) - {"and"} <= FUNCTIONS
    for ranged in ("rate", "increase"):
        assert not re.search(rf"{ranged}\(dtrag_\w+(\{{[^}}]*\}})?\)", expression), f"{ranged} needs a window"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_the_file() -> None:
    checked = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_has_series_with_which_it_fires() -> None:
    assert set(FIRES) == set(THRESHOLDS)
    for rule in rules():
        assert {name for name, *_ in SELECTOR.findall(rule["expr"])} == {
            re.split("{", series)[0] for series in FIRES[rule["alert"]]
        }, rule["alert"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_every_alert_fires_once_and_is_quiet_otherwise(tmp_path: Path) -> None:
    """Prometheus' own evaluation: the alert is firing in its bad case, and is not in its good one."""
    cases = []
    for name, series in FIRES.items():
        for column, expected in enumerate((1, 0)):
            at = "33h" if name == "DtragFewCases" else "195m"
            firing = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
            cases.append(
                {
                    "name": f"{name} {'fires' if expected else 'is quiet'}",
                    "interval": "1m",
                    "input_series": [
                        {"series": selector, "values": values[column]} for selector, values in series.items()
                    ],
                    "promql_expr_test": [
                        {"expr": firing, "eval_time": at, "exp_samples": [{"labels": "{}", "value": expected}]}
                    ],
                }
            )
    file = tmp_path / "alerts_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}), "utf-8")
    tested = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_operations_explains_every_rule() -> None:
    page = (ROOT / "docs" / "how-to" / "monitoring.md").read_text("utf-8")
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/how-to/monitoring.md#{rule['alert'].lower()}"
        assert f'<a id="{rule["alert"].lower()}"></a>`{rule["alert"]}` | {rule["labels"]["severity"]} |' in page


async def test_every_series_of_the_rules_is_one_of_the_service(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that was asked, mistaken, attacked and failing has a sample for each selector of each expression."""
    api = create_app(databases.settings())
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1", timeout=60) as client,
    ):
        (tmp_path / "leave.md").write_text("# Leave\n\nAnnual leave is ten days.", "utf-8")
        app = api.state.service.app
        await app.ingest([tmp_path / "leave.md"])
        assert (await client.post("/search", json={"query": "leave"})).json()["metrics"]["diversity_ratio"] == 1.0
        assert (await client.post("/search", json={"query": "leave"})).json()["metrics"]["diversity_ratio"] == 1.0
        assert (await client.post("/ask", json={"question": "How long is leave?"})).status_code == 200
        attack = {"query": "leave", "filters": {"bypass_attempt": True}}
        assert (await client.post("/search", json=attack)).status_code == 403
        agent = {"version": "v1", "node_paths": [["AI"]], "options": {}}
        assert (await client.post("/agents/from-category", json=agent)).status_code == 422

        async def fail(*_: object, **__: object) -> None:
            raise DatabaseUnavailable(reason="a test.")

        monkeypatch.setattr(app, "search", fail)
        assert (await client.post("/search", json={"query": "leave"})).status_code == 503
        text = (await client.get("/metrics")).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    values = {sample.labels.get("kind"): sample.value for sample in samples if "bypass_attempts_total" in sample.name}
    assert values == {"bypass": 1.0, "injection": 0.0, "path_traversal": 0.0}
    for rule in rules():
        for name, matchers, _ in SELECTOR.findall(rule["expr"]):
            if name == "up":  # made by Prometheus
                continue
            needed = {
                label: value if kind == "=~" else re.escape(value) for label, kind, value in MATCHER.findall(matchers)
            }
            assert any(
                sample.name == name
                and all(re.fullmatch(value, sample.labels.get(label, "")) for label, value in needed.items())
                for sample in samples
            ), f"{rule['alert']}: {name}{{{matchers}}}"


async def test_attempts_and_times_of_filters_are_counted(databases: Databases) -> None:
    api = create_app(databases.settings())
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1", timeout=60) as client,
    ):
        for filters in ({"taxonomy_paths": [["AI", ".."]]}, {"bypass_attempt": True}, {"taxonomy_paths": [["AI"]]}):
            await client.post("/search", json={"query": "leave", "filters": filters})
        text = (await client.get("/metrics")).text
    assert 'dtrag_filter_bypass_attempts_total{kind="path_traversal"} 1.0' in text
    assert 'dtrag_filter_bypass_attempts_total{kind="bypass"} 1.0' in text
    assert "dtrag_filter_seconds_count 3.0" in text
