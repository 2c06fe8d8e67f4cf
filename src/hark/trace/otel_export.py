"""Exports ended turns to a collector with OTLP over HTTP, in a background task and thread."""

import asyncio
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from hark.protocol.names import session_of_turn
from hark.protocol.records import AnyRecord, TurnEnded
from hark.protocol.store import Journal, StoreError
from hark.trace.from_journal import build_trace, turn_names
from hark.trace.turn_trace import TurnTrace

MAX_QUEUED_TURNS = 1_000
MAX_TRACKED_SESSIONS = 10_000
MAX_QUEUED_SPANS = 4_096
MAX_BATCH_SPANS = 512
EXPORT_DELAY_MS = 1_000
TRACES_PATH = "/v1/traces"
LOG = logging.getLogger(__name__)


class TurnExportQueue:
    """Turns waiting for export. Drops the oldest when full."""

    def __init__(self, journal: Journal, export: Callable[[TurnTrace], None]) -> None:
        self._journal = journal
        self._export = export
        self._queue: deque[TurnEnded] = deque(maxlen=MAX_QUEUED_TURNS)
        self._turn_added = asyncio.Event()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._read_counts: OrderedDict[str, int] = OrderedDict()  # the number of records read per session

    def put(self, end: TurnEnded) -> None:
        """Add an ended turn. Never waits."""
        self._queue.append(end)
        self._is_empty.clear()
        self._turn_added.set()

    async def wait_until_exported(self) -> None:
        """Wait until all turns added before this call are exported."""
        await self._is_empty.wait()

    async def run(self) -> None:
        """Export the turns one by one until cancelled."""
        while True:
            await self._turn_added.wait()
            self._turn_added.clear()
            while self._queue:
                end = self._queue.popleft()
                try:
                    records = await self._read_records(end)
                except StoreError:
                    records = []  # the measured times are enough for a trace
                self._export(build_trace([*records, end], end.turn))
                await asyncio.sleep(0)
            self._is_empty.set()

    async def _read_records(self, end: TurnEnded) -> list[AnyRecord]:
        """Read the turn's records, skipping journal records that an earlier call already read."""
        session = session_of_turn(end.turn)
        known = self._read_counts.pop(session, 0)
        records = await self._journal.read(session, known)
        if known and end.turn not in turn_names(records):  # the turn is out of order, or the journal was replaced
            known, records = 0, await self._journal.read(session)
        self._read_counts[session] = known + len(records)
        if len(self._read_counts) > MAX_TRACKED_SESSIONS:
            self._read_counts.popitem(last=False)
        return records


class OtlpExporter:
    """Sends spans in batches. Spans that the collector does not accept in time are dropped."""

    def __init__(self, endpoint: str, version: str) -> None:
        """Export to `endpoint`, or if it is empty, to the one in the standard OTEL_EXPORTER_OTLP_... variables."""
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)  # the library would log every failed attempt
        exporter = FailureLoggingExporter(OTLPSpanExporter(endpoint=traces_url(endpoint) or None))
        resource = Resource({SERVICE_NAME: "hark", "service.version": version}).merge(Resource.create())
        self._provider = TracerProvider(resource=with_service_name(resource), shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, MAX_QUEUED_SPANS, EXPORT_DELAY_MS, max_export_batch_size=MAX_BATCH_SPANS)
        )
        self.tracer = self._provider.get_tracer("hark", version)

    async def close(self) -> None:
        """Send the buffered spans. Cancelling discards them; the sending thread then ends with the process."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            try:
                loop.call_soon_threadsafe(done.set)
            except RuntimeError:
                return  # the loop was closed without waiting

        threading.Thread(target=shut_down, name="telemetry-end", daemon=True).start()
        await done.wait()


class FailureLoggingExporter(SpanExporter):
    """An exporter that logs once when the collector starts to reject spans, and again after it has recovered."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._has_logged = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch of spans."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._has_logged = False
        elif not self._has_logged:
            self._has_logged = True
            LOG.warning("the collector does not accept traces; they are dropped until it does")
        return result

    def shutdown(self) -> None:
        """Shut down the wrapped exporter."""
        self._exporter.shutdown()


def traces_url(endpoint: str) -> str:
    """Return the URL for traces at a collector's endpoint."""
    if not endpoint or endpoint.endswith(TRACES_PATH):
        return endpoint
    return endpoint.rstrip("/") + TRACES_PATH


def with_service_name(resource: Resource) -> Resource:
    """Return the resource with `hark` as service name, unless the environment sets another name."""
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: "hark"}))
    return resource
