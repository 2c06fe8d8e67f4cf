"""`hark -p` and `hark --plain`: a session at the command line, with a way out that is always bounded."""

import argparse
import asyncio
import sys
from typing import Any

from hark.app.build import open_agent
from hark.app.config import home_directory
from hark.app.handle import SessionHandle
from hark.app.settings import SettingsError
from hark.app.shutdown import COMPLETED, FAILED, INTERRUPTED, LIMIT_REACHED, Signals, Watchdog
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome

LONGEST_LINE = 64 * 1024 * 1024


async def prompt(options: argparse.Namespace) -> int:
    """`hark -p`: one prompt, one answer."""
    from hark.surfaces.oneshot import OneShot

    text = _prompt_text(options.prompt)
    async with open_agent(sweeps=False, can_ask=False, **_sections(options)) as agent:
        _choose(agent.bench.routes, options.model)
        session = agent.session(options.session or f"p-{agent.bench.clock.new_id()}", surface="oneshot")
        watchdog = Watchdog(agent.settings.limits.exit_seconds)
        signals = Signals(watchdog, _stopper(session))
        signals.listen()
        outcome = await OneShot(session, options.output).run(text)
        watchdog.arm()
    return signals.code or _exit_code(outcome)


async def chat(options: argparse.Namespace) -> int:
    """`hark`: lines in, lines out."""
    from hark.surfaces.plain import Plain

    async with open_agent(sweeps=False, can_ask=sys.stdin.isatty(), **_sections(options)) as agent:
        _choose(agent.bench.routes, options.model)
        name = options.resume or options.session
        if name is None and options.continues:
            lines = await agent.bench.store.journal.sessions()
            name = lines[0].session if lines else None
        session = agent.session(name or f"chat-{agent.bench.clock.new_id()[:6]}", surface="terminal")
        watchdog = Watchdog(agent.settings.limits.exit_seconds)
        reading = asyncio.ensure_future(Plain(session, waits=not sys.stdin.isatty()).run(await _stdin()))
        signals = Signals(watchdog, lambda _: _cancel(reading))
        signals.listen()
        sys.stdout.write(f"hark: session {session.id}, model {agent.bench.routes[0].name}. /stop stops, Ctrl-D ends.\n")
        sys.stdout.flush()
        await asyncio.wait([reading])
        watchdog.arm()
        if signals.code is not None:
            sys.stderr.write("hark: shutting down ... (saving the session)\n")
    return signals.code or COMPLETED


def _cancel(task: asyncio.Future[None]) -> None:
    task.cancel()


def _stopper(session: SessionHandle) -> Any:
    tasks: set[asyncio.Task[Any]] = set()

    def stop(name: str) -> None:
        sys.stderr.write(f"hark: {name}: stopping ...\n")
        task = asyncio.ensure_future(session.interrupt(name))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return stop


def _prompt_text(prompt: str) -> str:
    """Return the prompt, with what is piped in behind it."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    return "\n\n".join(part for part in (prompt, piped.strip()) if part)


def _sections(options: argparse.Namespace) -> dict[str, Any]:
    limits = {"seconds": options.timeout, "cost_usd": options.max_cost, "steps": options.max_steps}
    sections: dict[str, Any] = {"limits": {key: value for key, value in limits.items() if value is not None}}
    if options.yes:
        sections["approvals"] = {"mode": "all"}
    return {"home": home_directory(), **sections}


def _choose(routes: Any, name: str | None) -> None:
    """Put the named route first."""
    if name is None:
        return
    for place, route in enumerate(routes):
        if route.name == name:
            routes.insert(0, routes.pop(place))
            return
    names = ", ".join(route.name for route in routes)
    raise SettingsError(f"There is no route {name!r}. The routes are: {names}.")


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


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader
