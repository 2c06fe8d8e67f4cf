"""Turns that ended, on their way to a collector by OTLP over HTTP: in a task and a thread, which hold nobody."""

import asyncio
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from hark.protocol.names import session_of
from hark.protocol.records import AnyRecord, TurnEnded
from hark.protocol.store import Journal, StoreError
from hark.trace.from_journal import story_of, turns_of
from hark.trace.turn_trace import TurnTrace

MOST_WAITING = 1_000
MOST_SESSIONS = 10_000
MOST_SPANS = 4_096
BATCH_SPANS = 512
DELAY_MS = 1_000
TRACES_PATH = "/v1/traces"
LOG = logging.getLogger(__name__)


class EndedTurns:
    """Turns whose trace is to be told; of too many, the oldest are left out."""

    def __init__(self, journal: Journal, export: Callable[[TurnTrace], None]) -> None:
        self._journal = journal
        self._export = export
        self._waiting: deque[TurnEnded] = deque(maxlen=MOST_WAITING)
        self._changed = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._read: OrderedDict[str, int] = OrderedDict()  # how much of each journal was seen

    def put(self, end: TurnEnded) -> None:
        """Take a turn that ended; waits for nothing."""
        self._waiting.append(end)
        self._empty.clear()
        self._changed.set()

    async def told(self) -> None:
        """Return when all turns so far were told."""
        await self._empty.wait()

    async def run(self) -> None:
        """Tell turn after turn, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._waiting:
                end = self._waiting.popleft()
                try:
                    records = await self._records(end)
                except StoreError:
                    records = []  # what was measured is enough for a trace
                self._export(story_of([*records, end], end.turn))
                await asyncio.sleep(0)
            self._empty.set()

    async def _records(self, end: TurnEnded) -> list[AnyRecord]:
        """Return the turn's records, without reading again what came before them."""
        session = session_of(end.turn)
        known = self._read.pop(session, 0)
        records = await self._journal.read(session, known)
        if known and end.turn not in turns_of(records):  # told out of order, or the journal begins anew
            known, records = 0, await self._journal.read(session)
        self._read[session] = known + len(records)
        if len(self._read) > MOST_SESSIONS:
            self._read.popitem(last=False)
        return records


class Exporter:
    """Sends the spans of its tracer in batches; what a collector does not take in time is left out."""

    def __init__(self, endpoint: str, version: str) -> None:
        """Without an endpoint, the standard OTEL_EXPORTER_OTLP_... variables say where to and with which headers."""
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)  # it would tell every failed try
        exporter = ToldOnce(OTLPSpanExporter(endpoint=whole_address(endpoint) or None))
        resource = Resource({SERVICE_NAME: "hark", "service.version": version}).merge(Resource.create())
        self._provider = TracerProvider(resource=named(resource), shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, MOST_SPANS, DELAY_MS, max_export_batch_size=BATCH_SPANS)
        )
        self.tracer = self._provider.get_tracer("hark", version)

    async def close(self) -> None:
        """Send what waits. Cancelling leaves it behind: the thread ends with the process."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def end() -> None:
            self._provider.shutdown()
            try:
                loop.call_soon_threadsafe(done.set)
            except RuntimeError:
                return  # the loop did not wait for us

        threading.Thread(target=end, name="telemetry-end", daemon=True).start()
        await done.wait()


class ToldOnce(SpanExporter):
    """An exporter that tells in the log when a collector takes nothing, once, until it takes something again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._has_told = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._has_told = False
        elif not self._has_told:
            self._has_told = True
            LOG.warning("traces are not taken by the collector; they are left out until it takes them again")
        return result

    def shutdown(self) -> None:
        """Send no more."""
        self._exporter.shutdown()


def whole_address(endpoint: str) -> str:
    """Return where traces go, when this is where a collector is."""
    if not endpoint or endpoint.endswith(TRACES_PATH):
        return endpoint
    return endpoint.rstrip("/") + TRACES_PATH


def named(resource: Resource) -> Resource:
    """Return who we are; the environment's name for it goes before ours, the SDK's word for none does not."""
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: "hark"}))
    return resource
