"""The options shared by the terminal app, `--plain` and `-p`: settings, route and session."""

import argparse
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from hark.app.agent import Agent
from hark.app.build import open_agent
from hark.app.logs import start_logs
from hark.app.sessions.continue_turn import continue_hint
from hark.app.sessions.handle import SessionHandle
from hark.app.settings import SettingsError, home_directory
from hark.app.shutdown import Watchdog
from hark.protocol.names import is_background
from hark.protocol.store import Store


@asynccontextmanager
async def open_chat_agent(
    options: argparse.Namespace, watchdog: Watchdog, notice: Callable[[str], None], *, can_ask: bool = True
) -> AsyncGenerator[Agent]:
    """Start the logs, and open the agent with the limits, approvals and route from the options.

    The watchdog receives the time limit for the exit, and the name of each exit step.

    Raises:
        SettingsError: There is no such route, or the settings can't be used.
        StoreError: The sessions can't be opened.
    """
    limits = {"seconds": options.timeout, "cost_usd": options.max_cost, "steps": options.max_steps}
    sections: dict[str, Any] = {"limits": {key: value for key, value in limits.items() if value is not None}}
    if options.yes:
        sections["approvals"] = {"mode": "all"}
    home, on_exit_step = home_directory(), watchdog.set_exit_step
    start_logs(home, is_verbose=options.verbose)
    async with open_agent(
        home=home, sweeps=False, can_ask=can_ask, notice=notice, on_exit_step=on_exit_step, **sections
    ) as agent:
        routes, route = agent.engine.routes, options.model
        if route is not None and not routes.prefer(route):
            raise SettingsError(f"No route named {route!r}. Routes: {', '.join(routes.names)}.")
        watchdog.seconds = agent.settings.limits.exit_seconds
        yield agent


async def requested_session(options: argparse.Namespace, store: Store) -> str | None:
    """Return the name of the requested session, or None for a new one.

    Raises:
        SettingsError: There is no session to resume.
    """
    if options.resume:
        if await store.journal.read(options.resume) or await store.inbox.entries_after(options.resume, 0):
            return options.resume
        raise SettingsError(f"No session named {options.resume!r}. `hark sessions` lists them.")
    if options.session is None and options.continues:
        entries = await store.journal.sessions()
        return next((line.session for line in entries if not is_background(line.session)), None)
    return options.session


async def resume_hint(session: SessionHandle, options: argparse.Namespace) -> str:
    """Return the hint that /continue resumes an interrupted turn of a reopened session, or ""."""
    if not (options.resume or options.continues or options.session):
        return ""
    await session.wait_until_loaded()
    return continue_hint(session.proxy.state)
