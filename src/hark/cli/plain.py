"""`hark --plain`: a chat in lines, with a way out that is always bounded."""

import argparse
import asyncio
import sys

from hark.app.sessions.handle import SessionHandle
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, Signals, Watchdog
from hark.cli.chat_options import offered, open_chat, session_name
from hark.cli.io.printing import print_error
from hark.cli.io.standard_input import is_terminal, line_reader
from hark.surfaces.plain import Plain


async def plain(options: argparse.Namespace) -> int:
    """`hark --plain`: lines in, lines out."""
    watchdog = Watchdog(EXIT_SECONDS)
    can_ask = is_terminal()
    async with open_chat(options, watchdog, print_error, can_ask=can_ask) as agent:
        name = await session_name(options, agent.bench.store) or f"chat-{agent.bench.clock.new_id()[:6]}"
        session = agent.session(name, surface="terminal")
        reading = asyncio.ensure_future(Plain(session, waits=not can_ask).run(await line_reader()))
        signals = Signals(watchdog, lambda _: reading.cancel(), lambda: can_ask and _stop(session))
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


def _stop(session: SessionHandle) -> bool:
    """Stop a running turn; return whether there was one."""
    is_busy = session.is_busy_here
    if is_busy:
        session.interrupt_soon("Ctrl-C")
    return is_busy
