"""`hark -p`: runs one prompt, prints the answer and exits within a time limit."""

import argparse
import asyncio

from hark.app.sessions.handle import SessionHandle
from hark.app.settings import SettingsError
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, FAILED, INTERRUPTED, LIMIT_REACHED, Signals, Watchdog
from hark.cli.chat_options import open_chat_agent
from hark.cli.io.printing import print_error, print_line
from hark.cli.io.standard_input import read_piped_text
from hark.protocol.agent import GatewayState
from hark.protocol.meaning import CommandMeaning, StopMeaning
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached
from hark.surfaces.oneshot import OneShot

EXIT_CODES = {Completed: COMPLETED, Failed: FAILED, LimitReached: LIMIT_REACHED, Interrupted: INTERRUPTED}


async def run_prompt(options: argparse.Namespace) -> int:
    """Run one prompt and print the answer. Then wait for the turns of messages queued by other clients."""
    text = "\n\n".join(part for part in (options.prompt.strip(), read_piped_text()) if part)
    if not text:
        raise SettingsError('The prompt is empty. Use hark -p "PROMPT", or pipe it in.')
    watchdog = Watchdog(EXIT_SECONDS)
    with Signals(watchdog) as signals:
        code = await _run_text(options, text, watchdog, signals)
    return signals.code or code


async def _run_text(options: argparse.Namespace, text: str, watchdog: Watchdog, signals: Signals) -> int:
    """Run the text as a message or command, and return the exit code of its outcome."""
    async with open_chat_agent(options, watchdog, print_error, can_ask=False) as agent:
        session = agent.session(options.session or f"p-{agent.engine.clock.new_id()}", surface="oneshot")
        shot = OneShot(session, options.output)
        stops: list[asyncio.Task[None]] = []
        signals.request_exit = lambda signal_name: stops.append(
            asyncio.create_task(_cancel_prompt(session, shot, signal_name))
        )
        if await agent.engine.store.leases.is_owned(session.id):
            await session.wait_until_loaded()
        if signals.code is not None:
            return signals.code
        meaning = session.interpret(text)
        if isinstance(meaning, CommandMeaning | StopMeaning):
            print_line(await session.run_command(meaning))
            outcome = await session.idle() if session.is_busy_here else None
            watchdog.arm()
            return EXIT_CODES[type(outcome)] if outcome else COMPLETED
        if agent.state is GatewayState.PAUSED:
            print_error("The prompt was not sent.")
            return FAILED
        outcome = await shot.run(text)
        if session.is_busy_here:
            await session.idle()
        watchdog.arm()
    return EXIT_CODES[type(outcome)]


async def _cancel_prompt(session: SessionHandle, shot: OneShot, signal_name: str) -> None:
    """Cancel only this process's prompt: withdraw its queued message, or stop its running turn."""
    if shot.message and not shot.turn and await session.withdraw(shot.message) is None:
        return
    await session.interrupt(signal_name, shot.turn)
