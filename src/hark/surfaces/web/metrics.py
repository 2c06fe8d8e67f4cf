"""What is counted, in Prometheus' text format and as numbers for the dashboard."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from hark.protocol.agent import Agent, GatewayState
from hark.protocol.outcomes import Interrupted, Outcome
from hark.protocol.records import TurnEnded

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


class Histogram:
    """How often a time fell into which bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    def buckets(self) -> list[tuple[str, int]]:
        """Return how many were at most so long, for each bound."""
        return list(zip([*(f"{bound:g}" for bound in BOUNDS), "+Inf"], accumulate(self._counts), strict=True))


class Metrics:
    """The counters of this process, from its start on."""

    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.interrupts = Histogram()
        self.turns: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.tokens: Counter[str] = Counter()
        self.cost_usd = 0.0

    def ended(self, end: TurnEnded) -> None:
        """Count a turn, of whatever session and surface."""
        self.turns[kind_of(end.outcome)] += 1
        self.tokens["input"] += end.usage.input_tokens
        self.tokens["output"] += end.usage.output_tokens
        self.cost_usd += end.cost or 0.0
        if isinstance(end.outcome, Interrupted):
            self.interrupts.add(end.timings.settle / 1000)

    def interrupts_told(self) -> dict[str, Any]:
        """Return the interrupts and how long they took, for the dashboard."""
        buckets = [{"le": bound, "count": count} for bound, count in self.interrupts.buckets()]
        return {"count": self.interrupts.count, "seconds": self.interrupts.total, "buckets": buckets}

    def text(self, agent: Agent) -> str:
        """Return all of it in Prometheus' words."""
        return "".join(line for family in self._families(agent) for line in _family(*family))

    def _families(self, agent: Agent) -> list[tuple[str, str, str, Iterable[Sample]]]:
        busy, lag = agent.busy(), agent.lag()
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
            ("hark_ready", "gauge", "Whether new turns are begun.", [("", {}, float(is_ready))]),
            ("hark_start_time_seconds", "gauge", "Unix time of the start.", [("", {}, self.started_at)]),
            ("hark_sessions_open", "gauge", "Sessions that are loaded.", [("", {}, busy.sessions)]),
            ("hark_turns_running", "gauge", "Turns that run.", [("", {}, len(busy.turns))]),
            ("hark_turns_total", "counter", "Turns that ended, by outcome.", _counted("outcome", self.turns)),
            ("hark_messages_total", "counter", "Messages accepted, by receipt.", _counted("state", self.messages)),
            ("hark_tokens_total", "counter", "Tokens used.", _counted("kind", self.tokens)),
            ("hark_cost_usd_total", "counter", "US dollars spent.", [("", {}, self.cost_usd)]),
            (
                "hark_interrupt_settle_seconds",
                "histogram",
                "From an interrupt to the end of its turn.",
                self._histogram(),
            ),
            ("hark_http_requests_total", "counter", "Requests answered.", requests),
            ("hark_event_loop_lag_seconds", "gauge", "How late the event loop was in the last minute.", lags),
            ("hark_route_well", "gauge", "Whether a route may serve.", routes),
            ("hark_mcp_server", "gauge", "How an MCP server stands.", servers),
        ]

    def _histogram(self) -> list[Sample]:
        buckets: list[Sample] = [("_bucket", {"le": bound}, count) for bound, count in self.interrupts.buckets()]
        return [*buckets, ("_sum", {}, self.interrupts.total), ("_count", {}, self.interrupts.count)]


def kind_of(outcome: Outcome) -> str:
    """Return an outcome's type on the wire."""
    return str(outcome.__struct_config__.tag)


def _counted(label: str, counter: Counter[str]) -> list[Sample]:
    return [("", {label: value}, count) for value, count in sorted(counter.items())]


def _family(name: str, kind: str, words: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {words}\n# TYPE {name} {kind}\n"
    for suffix, labels, value in samples:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{suffix}{{{told}}} {_number(value)}\n" if told else f"{name}{suffix} {_number(value)}\n"


def _number(value: float) -> str:
    return repr(float(value)) if value != int(value) else str(int(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
