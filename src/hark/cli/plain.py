"""`hark --plain`: a chat in lines, with a way out that is always bounded."""

import argparse
import asyncio
import sys
from collections.abc import Callable

from hark.app.build import open_agent
from hark.app.sessions.handle import SessionHandle
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, Signals, Watchdog
from hark.cli.chat_options import choose_route, offered, sections, session_name
from hark.cli.io.printing import print_error
from hark.cli.io.standard_input import is_terminal, line_reader
from hark.surfaces.plain import Plain


async def plain(options: argparse.Namespace) -> int:
    """`hark --plain`: lines in, lines out."""
    watchdog = Watchdog(EXIT_SECONDS)
    leaving, can_ask = watchdog.waits_for, is_terminal()
    async with open_agent(
        sweeps=False, can_ask=can_ask, notice=print_error, leaving=leaving, **sections(options)
    ) as agent:
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
