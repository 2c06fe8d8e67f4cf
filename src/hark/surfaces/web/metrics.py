"""The counters, in Prometheus' text format and as numbers for the dashboard."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from hark.protocol.agent import Agent, GatewayState
from hark.protocol.outcomes import Interrupted, Outcome
from hark.protocol.records import TurnEnded

BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


class Histogram:
    """A histogram of durations."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS_SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Add a duration to the histogram."""
        self._counts[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """The number of durations in the histogram."""
        return sum(self._counts)

    def buckets(self) -> list[tuple[str, int]]:
        """Return each bucket's upper bound and the cumulative count up to it."""
        bounds = [*(f"{bound:g}" for bound in BUCKETS_SECONDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))


class Metrics:
    """The counters of this process since it started."""

    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.interrupts = Histogram()
        self.turns: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.tokens: Counter[str] = Counter()
        self.cost_usd = 0.0

    def count_turn(self, end: TurnEnded) -> None:
        """Count an ended turn of any session and surface."""
        self.turns[outcome_type(end.outcome)] += 1
        self.tokens["input"] += end.usage.input_tokens
        self.tokens["output"] += end.usage.output_tokens
        self.cost_usd += end.cost or 0.0
        if isinstance(end.outcome, Interrupted):
            self.interrupts.add(end.timings.settle / 1000)

    def interrupt_summary(self) -> dict[str, Any]:
        """Return the number of interrupts and their durations, for the dashboard."""
        buckets = [{"le": bound, "count": count} for bound, count in self.interrupts.buckets()]
        return {"count": self.interrupts.count, "seconds": self.interrupts.total, "buckets": buckets}

    def text(self, agent: Agent) -> str:
        """Return all metrics in Prometheus' text format."""
        return "".join(line for family in self._metric_families(agent) for line in _format_family(*family))

    def _metric_families(self, agent: Agent) -> list[tuple[str, str, str, Iterable[Sample]]]:
        busy, lag = agent.running_turns(), agent.lag_stats()
        is_ready = agent.state is GatewayState.READY
        quantiles = {"0.5": lag.p50, "0.99": lag.p99, "1": lag.most}
        lags = [("", {"quantile": quantile}, value / 1000) for quantile, value in quantiles.items()]
        requests = [
            ("", {"method": method, "path": path, "status": str(status)}, count)
            for (method, path, status), count in sorted(self.requests.items())
        ]
        routes = [("", {"route": row.name}, float(row.is_well)) for row in agent.routes()]
        servers = [("", {"server": row.name, "state": row.state}, 1.0) for row in agent.servers()]
        return [
            ("hark_ready", "gauge", "Whether the server starts new turns.", [("", {}, float(is_ready))]),
            ("hark_start_time_seconds", "gauge", "Unix time of the server's start.", [("", {}, self.started_at)]),
            ("hark_sessions_open", "gauge", "Sessions currently loaded.", [("", {}, busy.sessions)]),
            ("hark_turns_running", "gauge", "Turns currently running.", [("", {}, len(busy.turns))]),
            ("hark_turns_total", "counter", "Turns that ended, by outcome.", _counter_samples("outcome", self.turns)),
            ("hark_messages_total", "counter", "Messages by receipt.", _counter_samples("state", self.messages)),
            ("hark_tokens_total", "counter", "Tokens used.", _counter_samples("kind", self.tokens)),
            ("hark_cost_usd_total", "counter", "US dollars spent.", [("", {}, self.cost_usd)]),
            (
                "hark_interrupt_settle_seconds",
                "histogram",
                "Time from an interrupt to the end of its turn.",
                self._interrupt_samples(),
            ),
            ("hark_http_requests_total", "counter", "HTTP requests answered.", requests),
            ("hark_event_loop_lag_seconds", "gauge", "Event loop lag in the last minute.", lags),
            ("hark_route_well", "gauge", "Whether a route is healthy.", routes),
            ("hark_mcp_server", "gauge", "The state of an MCP server, as a label.", servers),
        ]

    def _interrupt_samples(self) -> list[Sample]:
        buckets: list[Sample] = [("_bucket", {"le": bound}, count) for bound, count in self.interrupts.buckets()]
        return [*buckets, ("_sum", {}, self.interrupts.total), ("_count", {}, self.interrupts.count)]


def outcome_type(outcome: Outcome) -> str:
    """Return an outcome's `type` in the API, such as `completed`."""
    return str(outcome.__struct_config__.tag)


def _counter_samples(label: str, counter: Counter[str]) -> list[Sample]:
    return [("", {label: value}, count) for value, count in sorted(counter.items())]


def _format_family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"
    for suffix, labels, value in samples:
        pairs = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
        all_labels = f"{{{pairs}}}" if pairs else ""
        yield f"{name}{suffix}{all_labels} {_format_number(value)}\n"


def _format_number(value: float) -> str:
    return repr(float(value)) if value != int(value) else str(int(value))


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
