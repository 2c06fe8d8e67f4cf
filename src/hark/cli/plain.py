"""`hark --plain`: a line-by-line chat that exits within a time limit."""

import argparse
import asyncio
import sys

from hark.app.sessions.handle import SessionHandle
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, Signals, Watchdog
from hark.cli.chat_options import open_chat_agent, requested_session, resume_hint
from hark.cli.io.printing import print_error
from hark.cli.io.standard_input import is_terminal, open_line_reader
from hark.surfaces.plain import PlainTerminal


async def run_plain(options: argparse.Namespace) -> int:
    """Run a chat that reads and writes lines. Return the exit code."""
    watchdog = Watchdog(EXIT_SECONDS)
    can_ask = is_terminal()
    with Signals(watchdog) as signals:
        await _run_chat(options, watchdog, signals, can_ask=can_ask)
    return signals.code or COMPLETED


async def _run_chat(options: argparse.Namespace, watchdog: Watchdog, signals: Signals, *, can_ask: bool) -> None:
    async with open_chat_agent(options, watchdog, print_error, can_ask=can_ask) as agent:
        name = await requested_session(options, agent.engine.store) or f"chat-{agent.engine.clock.new_id()[:6]}"
        session = agent.session(name, surface="terminal")
        chat_task = asyncio.ensure_future(
            PlainTerminal(session, is_sequential=not can_ask).run(await open_line_reader())
        )
        signals.stop_turn = lambda: can_ask and _stop_turn(session)
        signals.request_exit = lambda _: chat_task.cancel()
        model = agent.engine.routes.names[0]
        sys.stdout.write(f"hark: session {session.id}, model {model}. /stop stops the turn, Ctrl+D quits.\n")
        if hint := await resume_hint(session, options):
            sys.stdout.write(f"hark: {hint}\n")
        sys.stdout.flush()
        await asyncio.wait([chat_task])
        watchdog.arm()
        if not chat_task.cancelled():
            chat_task.result()  # raises the chat's error, which is then reported like any other


def _stop_turn(session: SessionHandle) -> bool:
    """Stop the running turn. Return whether a turn was running."""
    is_busy = session.is_busy_here
    if is_busy:
        session.interrupt_soon("Ctrl-C")
    return is_busy
