"""`hark serve`: the gateway, from its first word to a way out that loses nothing and is always bounded."""

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
from hark.app.settings.check import Chosen, address_of, choose, require
from hark.app.settings.config import home_directory
from hark.app.settings.secrets import known_secrets
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, Signals, Watchdog
from hark.app.voice import spoken
from hark.cli.io.printing import print_error
from hark.cli.serve.reload import Load, ServeReload
from hark.cli.serve.systemd import notify, ping_watchdog
from hark.engine.session.state import RESTART
from hark.protocol.names import DRAINING
from hark.protocol.store import StoreError
from hark.surfaces.web.hooks import Hooks

if TYPE_CHECKING:
    from hark.surfaces.web.app import Doorway
    from hark.surfaces.web.guard.access import Access
    from hark.surfaces.web.server import HttpServer

NEEDED = "hark serve needs the packages starlette and uvicorn. Install them: pip install 'hark-agent[serve]'."
SETTLE_SECONDS = 2.0
FEED_SECONDS = 300.0
MOST_FILES = 65_536
LOG = logging.getLogger(__name__)

Beside = Callable[[Agent], Awaitable[None]]


async def serve(
    options: argparse.Namespace, load: Load, beside: Sequence[Beside] = (), hooks: Hooks | None = None
) -> int:
    """Serve until a signal comes. `load` reads the settings and which secrets are in them, now and at each reload.

    `beside` runs with the agent, and brings its hooks before it first waits: they are known to the first request.

    Raises:
        SettingsError: The settings can't be used, or what it needs is not installed.
        OSError: The address can't be had.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise SettingsError(NEEDED)
    start_logs(home_directory(), is_verbose=options.verbose)
    _allow_many_connections()
    settings = load()
    require(settings, options)
    chosen = choose(settings.serve, options)
    apply_log_settings(settings.logs, [chosen.token, *known_secrets(settings)])

    from hark.surfaces.web.app import Doorway
    from hark.surfaces.web.server import make_server

    with _listening(chosen) as listener:
        watchdog = Watchdog(EXIT_SECONDS)
        wish = anyio.Event()
        signals = Signals(watchdog, lambda _: wish.set())
        signals.listen()
        doorway = Doorway()
        server = make_server(doorway)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            try:
                async with open_agent(sweeps=True, notice=_tell, leaving=watchdog.waits_for) as agent:
                    running = ServedAgent(agent, chosen, server, watchdog)
                    async with (
                        running.opened(doorway, beside, hooks or Hooks()) as access,
                        anyio.create_task_group() as around,
                    ):
                        reload = ServeReload(load, options, agent.follow, chosen)
                        reload.on_chosen(running.follow)
                        reload.on_chosen(lambda chosen: access.change(chosen.settings, chosen.token))
                        reload.listen()
                        around.start_soon(reload.run)
                        around.start_soon(ping_watchdog)
                        notify("READY=1", f"STATUS=serving on {address_of(listener)}")
                        sys.stdout.write(f"hark: serving on {address_of(listener)}\n")
                        sys.stdout.flush()
                        await wish.wait()
                        watchdog.arm()
                        await running.drain()
                        around.cancel_scope.cancel()
            finally:
                server.should_exit = True
    return signals.code or COMPLETED


class ServedAgent:
    """The agent and what serves it."""

    def __init__(self, agent: Agent, chosen: Chosen, server: "HttpServer", watchdog: Watchdog) -> None:
        self.chosen = chosen
        self._agent = agent
        self._server = server
        self._watchdog = watchdog
        self.follow(chosen)

    def follow(self, chosen: Chosen) -> None:
        """Take these settings from now on."""
        self.chosen = chosen
        self._watchdog.seconds = chosen.settings.drain_seconds + self._agent.settings.limits.exit_seconds

    @asynccontextmanager
    async def opened(self, doorway: "Doorway", beside: Sequence[Beside], hooks: Hooks) -> AsyncGenerator["Access"]:
        """Have the app stand behind the doorway, with what it needs running."""
        from hark.surfaces.web.api.context import WebContext
        from hark.surfaces.web.api.voice import take_up
        from hark.surfaces.web.app import make_app
        from hark.surfaces.web.guard.access import Access
        from hark.surfaces.web.live.feed import Feeds
        from hark.surfaces.web.metrics import Metrics
        from hark.version import __version__

        access = Access(self.chosen.settings, self.chosen.token)
        metrics = Metrics(time.time())
        self._agent.bench.ends.listen(metrics.ended)
        # A feed holds its session awake, so it must go well before the session may.
        feeds = Feeds(min(FEED_SECONDS, self._agent.settings.limits.sleep_seconds / 2))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._agent.loop_lag.run)
            await tasks.start(feeds.run)
            for run in beside:
                tasks.start_soon(_supervised, run, self._agent)
            await anyio.lowlevel.checkpoint()  # all of them have begun, and brought their hooks
            ingress = self._agent.parts.ingress()
            speak = partial(spoken, self._agent.parts.speaker())
            web = WebContext(self._agent, access, feeds, metrics, ingress, hooks, speak, __version__)
            await take_up(web, await to_thread.run_sync(lambda: list(ingress.left())))
            doorway.app = make_app(web)
            yield access
            tasks.cancel_scope.cancel()

    async def drain(self) -> None:
        """Begin nothing more, give what runs its time, then settle it; what was accepted is there after the restart."""
        notify("STOPPING=1")
        seconds = self.chosen.settings.drain_seconds
        self._watchdog.waits_for(f"{len(self._agent.busy().turns)} turns to end, for {seconds:g} s at most")
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell_callers)
                await self._agent.drain()
                tasks.cancel_scope.cancel()
        for door in self._agent.doors:
            door.close(RESTART)
        with anyio.move_on_after(SETTLE_SECONDS):
            await self._agent.drain()
        self._watchdog.waits_for("connections")
        self._server.should_exit = True

    async def _tell_callers(self) -> None:
        """Have `hark send` know that nobody answers it any more."""
        with suppress(StoreError):  # then it waits for an answer, as with any owner
            await self._agent.bench.store.leases.acquire(DRAINING)


def _listening(chosen: Chosen) -> socket.socket:
    from hark.surfaces.web.server import bound_socket

    settings = chosen.settings
    try:
        return bound_socket(settings.host, settings.port)
    except OSError as error:
        words = (
            f"{settings.host}:{settings.port} can't be listened on: {error.strerror or error}. Choose another --port."
        )
        raise OSError(words) from error


def _allow_many_connections() -> None:
    """Have as many open files as we may: thousands of sessions stream, and the usual limit is a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # then what there is must do
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _supervised(run: Beside, agent: Agent) -> None:
    """Run what belongs beside: one that fails touches nothing else."""
    try:
        await run(agent)
    except Exception:
        LOG.exception("a surface failed")


def _tell(text: str) -> None:
    LOG.warning("%s", text)
    print_error(text)
