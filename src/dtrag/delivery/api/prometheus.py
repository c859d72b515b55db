"""Metrics for Prometheus: counts and times of searches and requests, never their content.

Every label has a few fixed values: stages, modes, route templates, statuses, error classes. No query, id, path or text
of a document can become one. Each service has its own registry.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric

from dtrag.concurrency import Load
from dtrag.core.access.filter_attacks import KINDS, AttemptKind
from dtrag.core.cases.case import FeedbackType
from dtrag.core.cases.statistics import CaseStatistics
from dtrag.core.documents import SearchMetrics
from dtrag.core.job import JobCount
from dtrag.core.metrics.ranking import percentile
from dtrag.core.trace import StepTrace
from dtrag.counts import Counts, Row
from dtrag.errors import DtragError
from dtrag.pipeline.run_context import DebateEvent
from dtrag.pipeline.state import PipelineResponse
from dtrag.retrieval.request import MODES
from dtrag.tools.executor import BLOCKED, TIMED_OUT
from dtrag.tools.registry import ToolExecutionResult

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Histogram buckets in seconds: from a cache hit (1 ms) over the target (25 ms) to longer than a client waits."""
LATENCY_SECONDS = (*SECONDS[:-2], 3.0, 4.0, 5.0, 6.0, 10.0, 20.0)
"""`SECONDS` with the limits of the alert rules (1, 3, 4 and 6 s), so that quantiles near them are exact."""
PASSAGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_MODES = frozenset(MODES)
STAGES = frozenset({"embedding", "lexical", "vector", "fusion", "rerank", "fetch", "mentions"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Series:
    """A counter, or a histogram with these upper limits, for certain values of the labels."""

    row: Row
    buckets: Sequence[float] = ()

    def inc(self, amount: float = 1.0) -> None:
        """Add to the counter."""
        self.row.own[0] += amount

    def observe(self, value: float) -> None:
        """Count a value in the histogram: a cell for each bucket, one for larger values, and the sum of the values."""
        self.row.own[bisect_left(self.buckets, value)] += 1
        self.row.own[len(self.buckets) + 1] += value


class Family:
    """All series of one name. With labels, a series exists from its first `labels()` on, in any process."""

    def __init__(
        self, counts: Counts, name: str, meaning: str, labels: Sequence[str], *, buckets: Sequence[float] = ()
    ) -> None:
        self._counts, self._name, self._meaning, self._labels = counts, name, meaning, labels
        self._buckets = buckets
        self._width = len(buckets) + 2 if buckets else 1
        self._series: dict[tuple[str, ...], Series] = {}
        if not labels:
            self.labels()

    def labels(self, *values: str) -> Series:
        """The series of these values of the labels."""
        series = self._series.get(values)
        if series is None:
            row = self._counts.row(self._name, *values, width=self._width)
            series = self._series[values] = Series(row, self._buckets)
        return series

    def inc(self, amount: float = 1.0) -> None:
        """Add to the counter without labels."""
        self.labels().inc(amount)

    def observe(self, value: float) -> None:
        """Count a value in the histogram without labels."""
        self.labels().observe(value)

    def totals(self) -> dict[tuple[str, ...], list[float]]:
        """The cells of all series, summed over all processes."""
        rows = self._counts.rows(self._name, width=self._width)
        return {tuple(values): row.totals() for values, row in rows}

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        if not self._buckets:
            counter = CounterMetricFamily(self._name, self._meaning, labels=self._labels)
            for values, (total,) in self.totals().items():
                counter.add_metric(values, total)
            return [counter]
        histogram = HistogramMetricFamily(self._name, self._meaning, labels=self._labels)
        limits = [str(float(limit)) for limit in self._buckets] + ["+Inf"]
        for values, (*cells, total) in self.totals().items():
            histogram.add_metric(values, list(zip(limits, accumulate(cells), strict=True)), total)
        return [histogram]


NEWEST = 1_000
"""Number of newest answers, suggestions and filter checks over which quantiles and means are computed."""


class Newest:
    """The newest rows of `columns` numbers, over all processes."""

    def __init__(self, counts: Counts, name: str, columns: int) -> None:
        self._width = columns + 1  # the time is the first
        self._row = counts.row("newest", name, width=NEWEST * self._width + 1)

    def append(self, *values: float) -> None:
        """Add a row, in place of the oldest of this process when there are `NEWEST` of it."""
        own = self._row.own
        place = int(own[-1]) % NEWEST * self._width
        for offset, value in enumerate((time.monotonic(), *values)):
            own[place + offset] = value
        own[-1] += 1

    def column(self, number: int = 0) -> list[float]:
        """One number of each row, ordered by time."""
        rows = [
            (cells[place], cells[place + 1 + number])
            for cells in self._row.seats
            for place in range(0, int(min(cells[-1], NEWEST)) * self._width, self._width)
        ]
        return [value for _, value in sorted(rows)[-NEWEST:]]


class Metrics(CollectorRegistry):
    """The metrics of one service, in the counts of its processes."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self.counts = counts

    def counter(self, name: str, meaning: str, *labels: str, values: Iterable[str] = ()) -> Family:
        """A new counter; `values` of its only label are shown before the first event."""
        counter = Family(self.counts, name, meaning, labels)
        for value in values:
            counter.labels(value)
        self.register(counter)
        return counter

    def histogram(self, name: str, meaning: str, buckets: Sequence[float], *labels: str) -> Family:
        """A new histogram with these upper limits."""
        histogram = Family(self.counts, name, meaning, labels, buckets=buckets)
        self.register(histogram)
        return histogram

    def newest(self, name: str, columns: int = 1) -> Newest:
        """The newest rows of some numbers, for quantiles and means."""
        return Newest(self.counts, name, columns)

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """A new gauge, which is read at every scrape."""
        Gauge(name, meaning, registry=self).set_function(value)


def _known(value: str, known: frozenset[str]) -> str:
    return value if value in known else OTHER


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values) if values else 0.0


class SearchTelemetry:
    """Metrics of searches."""

    def __init__(self, metrics: Metrics) -> None:
        self._searches = metrics.counter("dtrag_searches", "Searches that were answered.", "mode")
        self._seconds = metrics.histogram(
            "dtrag_search_stage_seconds",
            "Time of each stage that ran; vector includes embedding.",
            LATENCY_SECONDS,
            "stage",
        )
        self._candidates = metrics.histogram(
            "dtrag_search_candidates", "Candidates of a retriever.", PASSAGES, "retriever"
        )
        self._results = metrics.histogram("dtrag_search_results", "Passages in the answer.", PASSAGES)
        self._cache = metrics.counter(
            "dtrag_search_cache", "Searches by cache hit or miss.", "outcome", values=("hit", "miss")
        )
        self._diversity = metrics.histogram(
            "dtrag_search_diversity",
            "Share of distinct documents among the first ten results of a search with results.",
            SHARES,
        )
        self._degraded = metrics.counter(
            "dtrag_search_degraded", "Searches in which a stage failed and was left out.", "stage"
        )
        self._failures = metrics.counter(
            "dtrag_search_failures", "Searches that ended with an error, by its class.", "error"
        )

    def record(self, metrics: SearchMetrics) -> None:
        """Count an answered search. A cache hit adds to the total time only, as no stage ran."""
        self._searches.labels(_known(metrics.mode, _MODES)).inc()
        self._cache.labels("hit" if metrics.cache_hit else "miss").inc()
        self._results.observe(metrics.final_results)
        if metrics.final_results:
            self._diversity.observe(metrics.diversity_ratio)
        self._seconds.labels("total").observe(metrics.total_time)
        if metrics.cache_hit:
            return
        for stage, seconds in _stages(metrics):
            if seconds > 0:
                self._seconds.labels(stage).observe(seconds)
        self._candidates.labels("lexical").observe(metrics.bm25_candidates)
        self._candidates.labels("vector").observe(metrics.vector_candidates)
        for stage in metrics.degraded:
            self._degraded.labels(_known(stage, STAGES)).inc()

    def failed(self, error: DtragError) -> None:
        """Count a search that ended with an error."""
        self._failures.labels(type(error).__name__).inc()


def _stages(metrics: SearchMetrics) -> Iterator[tuple[str, float]]:
    yield "embedding", metrics.embedding_time
    yield "lexical", metrics.bm25_time
    yield "vector", metrics.vector_time
    yield "fusion", metrics.fusion_time
    yield "rerank", metrics.rerank_time
    yield "fetch", metrics.fetch_time


SOURCES = (0, 1, 2, 3, 5, 10)
STEPS = frozenset({"intent", "rewrite", "retrieve", "plan", "tools_debate", "read", "compose", "cite", "respond"})
DECISIONS = frozenset({"answer", "review", "abstain"})
PARTS = STAGES | STEPS | {"llm", "tools", "debate", "confidence", "cases"}
RECALL_OUTCOMES = frozenset({"shown", "uncited", "silent", "late", "failed"})


class PipelineTelemetry:
    """Metrics of answers, named as in the acceptance criteria with the prefix `dtrag_`."""

    def __init__(self, metrics: Metrics) -> None:
        self._newest = metrics.newest("answers", 3)
        self._seconds = metrics.histogram("dtrag_pipeline_seconds", "Time from question to answer.", LATENCY_SECONDS)
        self._steps = metrics.histogram("dtrag_pipeline_step_seconds", "Time of each step that ran.", SECONDS, "step")
        self._answers = metrics.counter("dtrag_pipeline_answers", "Answers by their decision.", "decision")
        self._timeouts = metrics.counter("dtrag_pipeline_timeout_errors", "Steps that exceeded their budget.", "step")
        self._degraded = metrics.counter(
            "dtrag_pipeline_degraded", "Answers in which a part failed and was left out.", "part"
        )
        self._confidence = metrics.histogram("dtrag_pipeline_confidence", "Confidence of answers.", SHARES)
        self._recalls = metrics.counter(
            "dtrag_case_recalls",
            "Answers for which the case memory was used, by outcome.",
            "outcome",
            values=RECALL_OUTCOMES,
        )
        self._tokens = metrics.counter("dtrag_model_tokens", "Tokens of language models.", "direction")
        self._cost = metrics.counter("dtrag_model_cost_won", "Cost of language models, in won.")
        self._ratings = metrics.newest("ratings")
        metrics.gauge(
            "dtrag_answer_rating_avg",
            "Mean of the newest ratings of answers from 1 to 5, with thumbs up as 5 and down as 1; 0 without any.",
            lambda: _mean(self._ratings.column()),
        )
        for share in (50, 95, 99):
            name = f"dtrag_pipeline_latency_p{share}"
            documentation = f"Latency that {share} in 100 of the newest answers did not exceed, in seconds."
            metrics.gauge(name, documentation, partial(self.latency, share / 100))
        for column, quantity in ((1, "confidence"), (2, "sources_count")):
            mean = partial(self._mean_of, column)
            metrics.gauge(f"dtrag_pipeline_{quantity}_avg", "Mean of the newest answers.", mean)

    def rated(self, rating: int) -> None:
        """Count a rating of an answer."""
        self._ratings.append(rating)

    def record(self, response: PipelineResponse, steps: Sequence[StepTrace]) -> None:
        """Count an answer and its steps."""
        self._newest.append(response.latency, response.confidence, len(response.citations))
        self._seconds.observe(response.latency)
        self._confidence.observe(response.confidence)
        self._answers.labels(_known(response.decision, DECISIONS)).inc()
        for step in steps:
            name = _known(step.name, STEPS)
            self._steps.labels(name).observe(step.seconds)
            if step.outcome == "timeout":
                self._timeouts.labels(name).inc()
            if "cases" in step.facts:
                self._recalls.labels(_recall_outcome(response, step.facts["cases"])).inc()
        for part in response.degraded:
            self._degraded.labels(_known(part, PARTS)).inc()
        self._tokens.labels("in").inc(response.usage.input_tokens)
        self._tokens.labels("out").inc(response.usage.output_tokens)
        self._cost.inc(response.cost)

    def latency(self, share: float) -> float:
        """Seconds that this share of the newest answers did not exceed; 0.0 before the first."""
        newest = self._newest.column()
        return percentile(newest, share) if newest else 0.0

    def _mean_of(self, column: int) -> float:
        return _mean(self._newest.column(column))


def _recall_outcome(response: PipelineResponse, facts: Mapping[str, object]) -> str:
    """A verified case is `shown` when the answer cites one of its passages, else `uncited`."""
    if response.answered_before is not None:
        return "shown"
    outcome = str(facts.get("outcome"))
    return "uncited" if outcome == "verified" else _known(outcome, RECALL_OUTCOMES)


DEBATE_OUTCOMES = frozenset({"started", "finished", "failed", "timeout", "cancelled"})
TOOL_OUTCOMES = frozenset({"succeeded", "failed", "blocked", "timeout"})


class DebateTelemetry:
    """Metrics of debates: every started one ends as finished, failed, timeout or cancelled."""

    def __init__(self, metrics: Metrics) -> None:
        self._debates = metrics.counter("dtrag_debates", "Debates by outcome.", "outcome", values=DEBATE_OUTCOMES)
        self._rounds = metrics.counter("dtrag_debate_rounds", "Rounds of debates.")
        self._calls = metrics.counter("dtrag_debate_calls", "Calls of language models in debates.")

    def record(self, event: DebateEvent) -> None:
        """Count a debate that started or ended."""
        self._debates.labels(_known(event.outcome, DEBATE_OUTCOMES)).inc()
        self._rounds.inc(event.rounds)
        self._calls.inc(event.calls)


class ToolTelemetry:
    """Metrics of tool runs. Tool names are no labels: MCP servers choose theirs."""

    def __init__(self, metrics: Metrics) -> None:
        self._runs = metrics.counter("dtrag_tools", "Tool runs by outcome.", "outcome", values=TOOL_OUTCOMES)
        self._seconds = metrics.histogram("dtrag_tool_seconds", "Time of a tool that ran.", SECONDS)

    def record(self, result: ToolExecutionResult) -> None:
        """Count a requested tool run; a blocked one has no duration."""
        outcome = "succeeded" if result.success else _failure_outcome(result.error or "")
        self._runs.labels(outcome).inc()
        if outcome != "blocked":
            self._seconds.observe(result.elapsed)


def _failure_outcome(error: str) -> str:
    if error == BLOCKED:
        return "blocked"
    return "timeout" if error.startswith(TIMED_OUT) else "failed"


class LoadTelemetry:
    """Load of the concurrency limiters, read at every scrape."""

    def __init__(self, metrics: Metrics) -> None:
        self.loads: Callable[[], Mapping[str, Load]] = dict
        metrics.register(self)

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        current = GaugeMetricFamily("dtrag_admission", "Working and waiting per limiter.", labels=["limiter", "state"])
        refused = CounterMetricFamily("dtrag_admission_refused", "Refused with 503 per limiter.", labels=["limiter"])
        for limiter, load in self.loads().items():
            current.add_metric([limiter, "working"], load.working)
            current.add_metric([limiter, "waiting"], load.waiting)
            refused.add_metric([limiter], load.refused)
        return [current, refused]


class CaseTelemetry:
    """Metrics of the case memory, named as in the acceptance documents with the prefix `dtrag_`.

    The gauges hold the figures of the last `measured`; 0 before the first, and while the memory is not enabled.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._newest = metrics.newest("suggestions")
        self._statistics = CaseStatistics()
        self._enabled = self._failed = False
        self._seconds = metrics.histogram("dtrag_cbr_suggestion_seconds", "Time of a suggestion.", SECONDS)
        self._feedback = metrics.counter(
            "dtrag_cbr_feedback", "Votes on suggested cases.", "feedback", values=FeedbackType
        )
        gauges: tuple[tuple[str, str, Callable[[], float]], ...] = (
            ("enabled", "1 while the case memory is enabled.", lambda: self._enabled),
            ("failed", "1 while its store cannot be read.", lambda: self._failed),
            ("suggestion_latency_avg", "Mean time of the newest suggestions, in seconds.", self._mean),
            ("total_cases", "Active cases.", lambda: self._statistics.total_cases),
            ("total_interactions", "Interactions.", lambda: self._statistics.total_interactions),
            ("success_rate", "Share of successful interactions.", lambda: self._statistics.success_rate),
            ("quality_score_avg", "Mean quality of the cases.", lambda: self._statistics.average_quality_score),
        )
        for name, documentation, value in gauges:
            metrics.gauge(f"dtrag_cbr_{name}", documentation, value)

    def _mean(self) -> float:
        return _mean(self._newest.column())

    def suggested(self, seconds: float) -> None:
        """Record the time of a suggestion."""
        self._newest.append(seconds)
        self._seconds.observe(seconds)

    def voted(self, feedback: FeedbackType) -> None:
        """Count a vote."""
        self._feedback.labels(feedback.value).inc()

    def measured(self, statistics: CaseStatistics | None, *, enabled: bool) -> None:
        """Replace the figures; None: the store cannot be read, and the last figures stay."""
        self._enabled, self._failed = enabled, enabled and statistics is None
        if statistics is not None:
            self._statistics = statistics


FILTER_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class FilterTelemetry:
    """Metrics of the filter checks of requests, and of attempts to bypass filters; also for `GET /metrics/filter`."""

    def __init__(self, metrics: Metrics) -> None:
        self._newest = metrics.newest("filter checks")
        counts = metrics.counts
        self._checked, self._filtered = counts.row("filter checks"), counts.row("filtered documents", width=2)
        self._violation = counts.row("last filter violation")
        self._seconds = metrics.histogram(
            "dtrag_filter_seconds", "Time of checking the filters of a request.", FILTER_SECONDS
        )
        self._attempts = metrics.counter(
            "dtrag_filter_bypass_attempts", "Requests refused for an attempt to bypass a filter.", "kind", values=KINDS
        )

    def examined(self, seconds: float) -> None:
        """Record the time of checking the filters of a request."""
        self._checked.own[0] += 1
        self._newest.append(seconds)
        self._seconds.observe(seconds)

    def filtered(self, documents: int, seconds: float) -> None:
        """Record that so many documents were filtered."""
        self._filtered.own[0] += documents
        self._filtered.own[1] += seconds

    def attempted(self, kind: AttemptKind) -> None:
        """Count a refused request."""
        self._violation.own[0] = time.time()
        self._attempts.labels(kind).inc()

    @property
    def checked(self) -> int:
        """Requests whose filters were checked."""
        return int(self._checked.total())

    @property
    def attempts(self) -> dict[str, int]:
        """Refused requests by kind."""
        return {kind: int(total) for (kind,), (total,) in self._attempts.totals().items()}

    @property
    def last_violation(self) -> datetime | None:
        """When a request was refused last; None if never."""
        latest = max(cells[0] for cells in self._violation.seats)
        return datetime.fromtimestamp(latest, UTC) if latest else None

    def quantile_ms(self, share: float) -> float:
        """Milliseconds that this share of the newest checks did not exceed; 0.0 before the first."""
        newest = self._newest.column()
        return round(percentile(newest, share) * 1000, 4) if newest else 0.0

    @property
    def documents_per_second(self) -> float:
        """Documents filtered per second; 0.0 before the first."""
        documents, seconds = self._filtered.totals()
        return round(documents / seconds, 1) if seconds else 0.0


class RequestTelemetry:
    """Metrics of HTTP requests, by route template."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.counter(
            "dtrag_http_requests", "Requests that were answered.", "method", "route", "status"
        )
        self._seconds = metrics.histogram("dtrag_http_request_seconds", "Time of a request.", SECONDS, "route")
        self._unexpected = metrics.counter("dtrag_http_unexpected_errors", "Requests that failed on a bug.")

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. `route` is a route template, such as `/documents/{document_id}`."""
        self._requests.labels(_known(method, METHODS), route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def unexpected(self) -> None:
        """Count an unexpected error."""
        self._unexpected.inc()


class Telemetry:
    """All metrics of one service, in the counts of its processes."""

    def __init__(self, counts: Counts | None = None) -> None:
        self._registry = Metrics(counts or Counts())
        self.searches = SearchTelemetry(self._registry)
        self.requests = RequestTelemetry(self._registry)
        self.pipeline = PipelineTelemetry(self._registry)
        self.debates = DebateTelemetry(self._registry)
        self.tools = ToolTelemetry(self._registry)
        self.filters = FilterTelemetry(self._registry)
        self.cases = CaseTelemetry(self._registry)
        self.admission = LoadTelemetry(self._registry)
        self.vectors_pending = Gauge(
            "dtrag_vectors_pending",
            "Passages that wait for their vectors and are found by their words only.",
            registry=self._registry,
        )

        self.jobs = Gauge("dtrag_jobs", "Jobs by kind and state.", ["kind", "state"], registry=self._registry)
        self.oldest_job = Gauge(
            "dtrag_jobs_oldest_seconds",
            "How long the job has waited that has waited longest, by kind.",
            ["kind"],
            registry=self._registry,
        )

    def measured_jobs(self, counts: Sequence[JobCount]) -> None:
        """Show these numbers of jobs."""
        self.jobs.clear()
        self.oldest_job.clear()
        for count in counts:
            self.jobs.labels(count.kind, count.state).set(count.jobs)
            if count.state == "waiting":
                self.oldest_job.labels(count.kind).set(max(0.0, count.oldest_s))

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus (`CONTENT_TYPE`)."""
        return generate_latest(self._registry)
