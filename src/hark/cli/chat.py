"""`hark -p` and `hark --plain`: a session at the command line, with a way out that is always bounded."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hark.app.build import open_agent
from hark.app.logs import start_logs
from hark.app.sessions.handle import SessionHandle
from hark.app.settings.config import home_directory
from hark.app.settings.types import SettingsError
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, FAILED, INTERRUPTED, LIMIT_REACHED, Signals, Watchdog
from hark.cli.io.standard_input import is_terminal, line_reader, piped_text
from hark.engine.turn.routes import Routes
from hark.protocol.meaning import CommandMeaning, StopMeaning
from hark.protocol.names import is_background
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.store import Store

if TYPE_CHECKING:
    from hark.surfaces.oneshot import OneShot


async def prompt(options: argparse.Namespace) -> int:
    """`hark -p`: one prompt, one answer. It leaves when nothing that others queued here is left to do."""
    from hark.surfaces.oneshot import OneShot

    text = "\n\n".join(part for part in (options.prompt.strip(), piped_text()) if part)
    if not text:
        raise SettingsError('The prompt is empty. Say what to do: hark -p "PROMPT", or pipe it in.')
    watchdog = Watchdog(EXIT_SECONDS)
    leaving = watchdog.waits_for
    async with open_agent(sweeps=False, can_ask=False, notice=_tell, leaving=leaving, **sections(options)) as agent:
        choose_route(agent.bench.routes, options.model)
        session = agent.session(options.session or f"p-{agent.bench.clock.new_id()}", surface="oneshot")
        watchdog.seconds = agent.settings.limits.exit_seconds
        shot = OneShot(session, options.output)
        stops: list[asyncio.Task[None]] = []
        signals = Signals(watchdog, lambda name: stops.append(asyncio.create_task(_stop(session, shot, name))))
        signals.listen()
        if await agent.bench.store.leases.is_owned(session.id):
            await session.opened()
        if signals.code is not None:
            return signals.code
        meaning = session.meaning(text)
        if isinstance(meaning, CommandMeaning | StopMeaning):
            sys.stdout.write(f"{await session.run_command(meaning)}\n")
            outcome = await session.idle() if session.is_busy_here else None
            watchdog.arm()
            return signals.code or (_exit_code(outcome) if outcome else COMPLETED)
        outcome = await shot.run(text)
        if session.is_busy_here:
            await session.idle()
        watchdog.arm()
    return signals.code or _exit_code(outcome)


async def _stop(session: SessionHandle, shot: "OneShot", name: str) -> None:
    """Take back what we asked for, and nothing of others: the turn that works on it, or the message that waits."""
    if shot.message and not shot.turn and await session.withdraw(shot.message) is None:
        return
    await session.interrupt(name, shot.turn)


async def chat(options: argparse.Namespace) -> int:
    """`hark --plain`: lines in, lines out."""
    from hark.surfaces.plain import Plain

    watchdog = Watchdog(EXIT_SECONDS)
    leaving, can_ask = watchdog.waits_for, is_terminal()
    async with open_agent(sweeps=False, can_ask=can_ask, notice=_tell, leaving=leaving, **sections(options)) as agent:
        choose_route(agent.bench.routes, options.model)
        name = await session_name(options, agent.bench.store) or f"chat-{agent.bench.clock.new_id()[:6]}"
        session = agent.session(name, surface="terminal")
        watchdog.seconds = agent.settings.limits.exit_seconds
        reading = asyncio.ensure_future(Plain(session, waits=not is_terminal()).run(await line_reader()))
        signals = Signals(watchdog, lambda _: _cancel(reading), _stopper(session) if is_terminal() else _never)
        signals.listen()
        sys.stdout.write(
            f"hark: session {session.id}, model {agent.bench.routes.names[0]}. /stop stops, Ctrl-D ends.\n"
        )
        if told := await offered(session, options):
            sys.stdout.write(f"hark: {told}\n")
        sys.stdout.flush()
        await asyncio.wait([reading])
        watchdog.arm()
        if not reading.cancelled():
            reading.result()  # what went wrong with it is told as any other error
    return signals.code or COMPLETED


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
    from hark.app.sessions.continue_turn import offer

    await session.opened()
    return offer(session.door.state)


def _tell(text: str) -> None:
    sys.stderr.write(f"hark: {text}\n")


def _stopper(session: SessionHandle) -> Callable[[], bool]:
    """Return what stops a running turn and says whether there was one."""

    def stop() -> bool:
        if session.is_busy_here:
            session.interrupt_soon("Ctrl-C")
            return True
        return False

    return stop


def _never() -> bool:
    return False


def _cancel(task: asyncio.Future[None]) -> None:
    task.cancel()


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


def _exit_code(outcome: Outcome) -> int:
    match outcome:
        case Completed():
            return COMPLETED
        case Failed():
            return FAILED
        case LimitReached():
            return LIMIT_REACHED
        case Interrupted():
            return INTERRUPTED
