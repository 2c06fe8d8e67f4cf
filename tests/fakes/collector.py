"""A fake OpenTelemetry collector on a real socket. It receives OTLP over HTTP and stores the spans."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.waiting import until

STATUSES = {0: "unset", 1: "ok", 2: "error"}


@dataclass
class ReceivedSpan:
    """A span as received over the wire. Times are in nanoseconds."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    start: int
    end: int
    status: str
    kind: int
    attributes: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]]


@dataclass
class Collector:
    """A fake collector with the spans and requests it received. `status` is the HTTP status of its responses."""

    url: str = ""
    status: int = 200
    requests: int = 0
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    bodies: list[bytes] = field(default_factory=list[bytes])
    resources: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    spans: list[ReceivedSpan] = field(default_factory=list[ReceivedSpan])
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        assert request.content_type == "application/x-protobuf"
        body = await request.read()
        body = gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body
        async with self.changed:
            self.requests += 1
            if self.status == 200:
                self.headers.append({name.lower(): value for name, value in request.headers.items()})
                self.bodies.append(body)
                self._store(ExportTraceServiceRequest.FromString(body))
            self.changed.notify_all()
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=answer, status=self.status, content_type="application/x-protobuf")

    def _store(self, request: Any) -> None:
        for resource in request.resource_spans:
            self.resources.append(_attributes(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.spans += [_received_span(span) for span in scope.spans]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.changed, shows=lambda: self.spans)

    def spans_named(self, name: str) -> list[ReceivedSpan]:
        return sorted((span for span in self.spans if span.name == name), key=lambda span: span.start)

    def children_of(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        return sorted((span for span in self.spans if span.parent == parent.id), key=lambda span: span.start)


def _received_span(span: Any) -> ReceivedSpan:
    events = [(event.name, event.time_unix_nano, _attributes(event.attributes)) for event in span.events]
    return ReceivedSpan(
        span.name,
        span.span_id,
        span.parent_span_id,
        span.trace_id,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        STATUSES[span.status.code],
        span.kind,
        _attributes(span.attributes),
        events,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@asynccontextmanager
async def collector_server() -> AsyncGenerator[Collector]:
    collector = Collector()
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/v1/traces", collector.receive)
    server = TestServer(app)
    await server.start_server(access_log=None)
    collector.url = str(server.make_url("")).rstrip("/")
    try:
        yield collector
    finally:
        await server.close()
