"""The options of `hark` that the terminal app, `--plain` and `-p` share: settings, route and session."""

import argparse
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from hark.app.agent import Agent
from hark.app.build import open_agent
from hark.app.logs import start_logs
from hark.app.sessions.continue_turn import offer
from hark.app.sessions.handle import SessionHandle
from hark.app.settings import SettingsError, home_directory
from hark.app.shutdown import Watchdog
from hark.protocol.names import is_background
from hark.protocol.store import Store


@asynccontextmanager
async def open_chat(
    options: argparse.Namespace, watchdog: Watchdog, notice: Callable[[str], None], *, can_ask: bool = True
) -> AsyncGenerator[Agent]:
    """Start the logs, and open the agent with the limits, the approvals and the route that the options name.

    The watchdog gets the time that the end may take, and is told what it waits for.

    Raises:
        SettingsError: There is no such route, or the settings can't be used.
        StoreError: The sessions can't be opened.
    """
    limits = {"seconds": options.timeout, "cost_usd": options.max_cost, "steps": options.max_steps}
    sections: dict[str, Any] = {"limits": {key: value for key, value in limits.items() if value is not None}}
    if options.yes:
        sections["approvals"] = {"mode": "all"}
    home, leaving = home_directory(), watchdog.waits_for
    start_logs(home, is_verbose=options.verbose)
    async with open_agent(
        home=home, sweeps=False, can_ask=can_ask, notice=notice, leaving=leaving, **sections
    ) as agent:
        routes, route = agent.bench.routes, options.model
        if route is not None and not routes.prefer(route):
            raise SettingsError(f"There is no route {route!r}. The routes are: {', '.join(routes.names)}.")
        watchdog.seconds = agent.settings.limits.exit_seconds
        yield agent


async def session_name(options: argparse.Namespace, store: Store) -> str | None:
    """Return the session that was asked for, or None for a new one.

    Raises:
        SettingsError: There is none to resume.
    """
    if options.resume:
        if await store.journal.read(options.resume) or await store.inbox.after(options.resume, 0):
            return options.resume
        raise SettingsError(f"There is no session {options.resume!r} to resume; `hark sessions` lists what there is.")
    if options.session is None and options.continues:
        lines = await store.journal.sessions()
        return next((line.session for line in lines if not is_background(line.session)), None)
    return options.session


async def offered(session: SessionHandle, options: argparse.Namespace) -> str:
    """Return the line that offers to go on with what was cut, when an earlier session is opened again; else ""."""
    if not (options.resume or options.continues or options.session):
        return ""
    await session.opened()
    return offer(session.door.state)
