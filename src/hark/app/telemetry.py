"""Whether turns are told to an OpenTelemetry collector: set up when it is wanted, and bounded at its end."""

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

EXIT_SHARE = 0.15  # of exit_seconds: most of it is for the turns
LAST_SHARE = 0.04  # for the turns that were not told yet
SYSTEMS = {"OpenAIChat": "openai", "OpenAIResponses": "openai", "Anthropic": "anthropic", "LocalModel": "hark.local"}
NEEDED = "[telemetry] traces needs more packages. Install them: pip install 'hark-agent[otel]'."


@asynccontextmanager
async def opened_telemetry(
    bench: EngineServices, settings: Settings, routes: Sequence[Mapping[str, Any]]
) -> AsyncGenerator[None]:
    """Tell the turns of an agent, if its settings want that; else nothing of it is even imported.

    `routes` are those that a program brought: they may have keys that the settings don't know.

    At the end what waits is sent, within a small share of `exit_seconds`.

    Raises:
        SettingsError: What it needs is not installed.
    """
    wanted = settings.telemetry
    if wanted.traces == "off":
        yield
        return
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise SettingsError(NEEDED)
    from hark.app.settings.secrets import known_secrets
    from hark.trace.otel_export import EndedTurns, Exporter
    from hark.trace.otel_spans import SpanWriter
    from hark.version import __version__

    exporter = Exporter(wanted.endpoint, __version__)
    hide = SecretMask(known_secrets(settings, routes=routes)).hide if wanted.content else None
    ended = EndedTurns(bench.store.journal, SpanWriter(exporter.tracer, partial(_model_name, bench.routes), hide).write)
    bench.ends.listen(ended.put)
    telling = asyncio.create_task(ended.run(), name="telemetry")
    try:
        yield
    finally:
        exit_seconds = bench.rules.limits.exit_seconds
        with anyio.move_on_after(exit_seconds * EXIT_SHARE, shield=True):
            with anyio.move_on_after(exit_seconds * LAST_SHARE):
                await ended.told()
            telling.cancel()
            await asyncio.wait([telling])
            await exporter.close()


def _model_name(routes: Routes, name: str) -> tuple[str, str]:
    """Return the API that a route speaks, as OpenTelemetry names it, and its model."""
    route = routes.known(name)
    if route is None:
        return "_OTHER", name
    return SYSTEMS.get(type(route.provider).__name__, "_OTHER"), route.model or name
