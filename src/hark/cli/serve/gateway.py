"""`hark serve`: starts the gateway, and stops it within a time limit and without losing messages."""

import argparse
import logging
import resource
import socket
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from hark.app.agent import Agent
from hark.app.build import open_agent
from hark.app.logs import apply_log_settings, start_logs
from hark.app.settings import SettingsError
from hark.app.settings.check import ResolvedServeSettings, listening_url, require_valid, resolve_serve_settings
from hark.app.settings.config import home_directory
from hark.app.settings.secrets import known_secrets
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, Signals, Watchdog
from hark.app.voice import speak_to_wav
from hark.cli.io.printing import print_error
from hark.cli.serve.reload import LoadSettings, Reloader
from hark.cli.serve.systemd import notify, ping_watchdog
from hark.protocol.commands import RESTART
from hark.protocol.names import DRAINING
from hark.protocol.store import StoreError
from hark.surfaces.web.hooks import Hooks

if TYPE_CHECKING:
    from hark.surfaces.web.app import DeferredApp
    from hark.surfaces.web.server import HttpServer

MISSING_PACKAGES = "hark serve needs the packages starlette and uvicorn. Install them: pip install 'hark-agent[serve]'."
SETTLE_SECONDS = 2.0
FEED_SECONDS = 300.0
MAX_OPEN_FILES = 65_536
LOG = logging.getLogger(__name__)

BackgroundService = Callable[[Agent], Awaitable[None]]


async def serve(
    options: argparse.Namespace,
    load: LoadSettings,
    background_services: Sequence[BackgroundService] = (),
    hooks: Hooks | None = None,
) -> int:
    """Run the gateway until a signal arrives. `load` reads the settings, now and at each reload.

    `background_services` run with the agent. They register their hooks before they first wait, so that the first
    request finds them.

    Raises:
        SettingsError: The settings can't be used, or a required package is not installed.
        OSError: The address is not available.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise SettingsError(MISSING_PACKAGES)
    start_logs(home_directory(), is_verbose=options.verbose)
    _raise_file_limit()
    settings = load()
    require_valid(settings, options)
    serve_settings = resolve_serve_settings(settings.serve, options)
    apply_log_settings(settings.logs, [serve_settings.token, *known_secrets(settings)])

    from hark.surfaces.web.app import DeferredApp
    from hark.surfaces.web.server import make_server

    watchdog = Watchdog(EXIT_SECONDS)
    exit_requested = anyio.Event()
    with _open_listener(serve_settings) as listener, Signals(watchdog, lambda _: exit_requested.set()) as signals:
        deferred_app = DeferredApp()
        server = make_server(deferred_app)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            try:
                async with open_agent(sweeps=True, notice=_log_and_print, on_exit_step=watchdog.set_exit_step) as agent:
                    served = ServedAgent(agent, serve_settings, server, watchdog)
                    async with (
                        served.run_app_and_services(deferred_app, background_services, hooks or Hooks()),
                        anyio.create_task_group() as service_tasks,
                    ):
                        reload = Reloader(load, options, agent.apply_settings, serve_settings, served.apply_settings)
                        signals.reload = reload.request
                        service_tasks.start_soon(reload.run)
                        service_tasks.start_soon(ping_watchdog)
                        notify("READY=1", f"STATUS=serving on {listening_url(listener)}")
                        sys.stdout.write(f"hark: serving on {listening_url(listener)}\n")
                        sys.stdout.flush()
                        await exit_requested.wait()
                        watchdog.arm()
                        await served.drain()
                        service_tasks.cancel_scope.cancel()
            finally:
                server.should_exit = True
    return signals.code or COMPLETED


class ServedAgent:
    """An agent and the web server that exposes it."""

    def __init__(
        self, agent: Agent, serve_settings: ResolvedServeSettings, server: "HttpServer", watchdog: Watchdog
    ) -> None:
        from hark.surfaces.web.guard.access import Access

        self._access = Access(serve_settings.settings, serve_settings.token)
        self._agent = agent
        self._server = server
        self._watchdog = watchdog
        self.apply_settings(serve_settings)

    def apply_settings(self, serve_settings: ResolvedServeSettings) -> None:
        """Apply new `[serve]` settings."""
        self.serve_settings = serve_settings
        self._access.update(serve_settings.settings, serve_settings.token)
        self._watchdog.seconds = serve_settings.settings.drain_seconds + self._agent.settings.limits.exit_seconds

    @asynccontextmanager
    async def run_app_and_services(
        self, deferred_app: "DeferredApp", background_services: Sequence[BackgroundService], hooks: Hooks
    ) -> AsyncGenerator[None]:
        """Start the web app and the background services, and stop them on exit."""
        from hark.surfaces.web.api.context import WebContext
        from hark.surfaces.web.api.voice import resume_voice_messages
        from hark.surfaces.web.app import make_app
        from hark.surfaces.web.live.feed import Feeds
        from hark.surfaces.web.metrics import Metrics
        from hark.version import __version__

        metrics = Metrics(time.time())
        self._agent.engine.turn_ended.add(metrics.count_turn)
        # A feed keeps its session awake, so it must close well before the session may sleep.
        feeds = Feeds(min(FEED_SECONDS, self._agent.settings.limits.sleep_seconds / 2))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._agent.loop_lag.run)
            await tasks.start(feeds.run)
            for run in background_services:
                tasks.start_soon(_run_supervised, run, self._agent)
            await anyio.lowlevel.checkpoint()  # all of them have started and registered their hooks
            voice_inbox = self._agent.services.voice_inbox()
            speak = partial(speak_to_wav, self._agent.services.speaker())
            web = WebContext(self._agent, self._access, feeds, metrics, voice_inbox, hooks, speak, __version__)
            await resume_voice_messages(web, await to_thread.run_sync(lambda: list(voice_inbox.unfinished_notes())))
            deferred_app.app = make_app(web)
            yield
            tasks.cancel_scope.cancel()

    async def drain(self) -> None:
        """Start no new turns, and let running turns end within the drain time. Then stop the remaining ones.

        Accepted messages are stored and available after the restart.
        """
        notify("STOPPING=1")
        seconds = self.serve_settings.settings.drain_seconds
        self._watchdog.set_exit_step(
            f"running turns: {len(self._agent.running_turns().turns)}, time limit {seconds:g} s"
        )
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._announce_draining)
                await self._agent.drain()
                tasks.cancel_scope.cancel()
        for proxy in self._agent.open_sessions:
            proxy.close(RESTART)
        with anyio.move_on_after(SETTLE_SECONDS):
            await self._agent.drain()
        self._watchdog.set_exit_step("connections")
        self._server.should_exit = True

    async def _announce_draining(self) -> None:
        """Announce to `hark send` that this process accepts no more messages."""
        with suppress(StoreError):  # then `hark send` waits for an answer, as with any owner
            await self._agent.engine.store.leases.acquire(DRAINING)


def _open_listener(serve_settings: ResolvedServeSettings) -> socket.socket:
    from hark.surfaces.web.server import bind_socket

    settings = serve_settings.settings
    try:
        return bind_socket(settings.host, settings.port)
    except OSError as error:
        message = f"Can't listen on {settings.host}:{settings.port}: {error.strerror or error}. Choose another --port."
        raise OSError(message) from error


def _raise_file_limit() -> None:
    """Raise the limit on open files. The default of about a thousand is too low for thousands of streaming sessions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # then the current limit has to be enough
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _run_supervised(run: BackgroundService, agent: Agent) -> None:
    """Run a background service. Log its failure without affecting others."""
    try:
        await run(agent)
    except Exception:
        LOG.exception("a background service failed")


def _log_and_print(text: str) -> None:
    LOG.warning("%s", text)
    print_error(text)
