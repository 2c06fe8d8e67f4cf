"""The options of `hark` that the terminal app, `--plain` and `-p` share: settings, route and session."""

import argparse
from typing import Any

from hark.app.logs import start_logs
from hark.app.sessions.continue_turn import offer
from hark.app.sessions.handle import SessionHandle
from hark.app.settings import SettingsError, home_directory
from hark.engine.turn.routes import Routes
from hark.protocol.names import is_background
from hark.protocol.store import Store


def sections(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the words of the command line say about the settings, and start the logs."""
    limits = {"seconds": options.timeout, "cost_usd": options.max_cost, "steps": options.max_steps}
    sections: dict[str, Any] = {"limits": {key: value for key, value in limits.items() if value is not None}}
    if options.yes:
        sections["approvals"] = {"mode": "all"}
    home = home_directory()
    start_logs(home, is_verbose=options.verbose)
    return {"home": home, **sections}


def choose_route(routes: Routes, name: str | None) -> None:
    """Put the named route first."""
    if name is not None and not routes.prefer(name):
        raise SettingsError(f"There is no route {name!r}. The routes are: {', '.join(routes.names)}.")


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
