"""Exports turns to an OpenTelemetry collector, if the settings enable it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import anyio

from hark.app.logs import SecretMask
from hark.app.settings import SettingsError
from hark.app.settings.types import Settings
from hark.engine.services import EngineServices
from hark.engine.turn.routes import Routes

EXIT_SHARE = 0.15  # of exit_seconds; most of it is for the turns
FLUSH_SHARE = 0.04  # for exporting the turns that are still pending
PROVIDER_NAMES = {
    "OpenAIChat": "openai",
    "OpenAIResponses": "openai",
    "Anthropic": "anthropic",
    "LocalModel": "hark.local",
}
MISSING_PACKAGES = "[telemetry] traces needs additional packages. Install them: pip install 'hark-agent[otel]'."


@asynccontextmanager
async def open_telemetry(
    engine_services: EngineServices, settings: Settings, routes: Sequence[Mapping[str, Any]]
) -> AsyncGenerator[None]:
    """Export an agent's turns if its settings enable it. Otherwise import nothing.

    `routes` are the routes that a program supplies. They may contain API keys that the settings don't have.

    On exit, pending turns are exported within a small share of `exit_seconds`.

    Raises:
        SettingsError: A required package is not installed.
    """
    telemetry = settings.telemetry
    if telemetry.traces == "off":
        yield
        return
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise SettingsError(MISSING_PACKAGES)
    from hark.app.settings.secrets import known_secrets
    from hark.trace.otel_export import OtlpExporter, TurnExportQueue
    from hark.trace.otel_spans import SpanWriter
    from hark.version import __version__

    exporter = OtlpExporter(telemetry.endpoint, __version__)
    redact = SecretMask(known_secrets(settings, routes=routes)).redact if telemetry.content else None
    export_queue = TurnExportQueue(
        engine_services.store.journal,
        SpanWriter(exporter.tracer, partial(_api_and_model, engine_services.routes), redact).write,
    )
    engine_services.turn_ended.add(export_queue.put)
    export_task = asyncio.create_task(export_queue.run(), name="telemetry")
    try:
        yield
    finally:
        exit_seconds = engine_services.rules.limits.exit_seconds
        with anyio.move_on_after(exit_seconds * EXIT_SHARE, shield=True):
            with anyio.move_on_after(exit_seconds * FLUSH_SHARE):
                await export_queue.wait_until_exported()
            export_task.cancel()
            await asyncio.wait([export_task])
            await exporter.close()


def _api_and_model(routes: Routes, name: str) -> tuple[str, str]:
    """Return the OpenTelemetry name of a route's API, and the route's model."""
    route = routes.find(name)
    if route is None:
        return "_OTHER", name
    return PROVIDER_NAMES.get(type(route.provider).__name__, "_OTHER"), route.model or name
