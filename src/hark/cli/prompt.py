"""`hark -p`: one prompt, one answer, with a way out that is always bounded."""

import argparse
import asyncio

from hark.app.build import open_agent
from hark.app.sessions.handle import SessionHandle
from hark.app.settings import SettingsError
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, FAILED, INTERRUPTED, LIMIT_REACHED, Signals, Watchdog
from hark.cli.chat_options import choose_route, sections
from hark.cli.io.printing import print_error, print_line
from hark.cli.io.standard_input import piped_text
from hark.protocol.meaning import CommandMeaning, StopMeaning
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.surfaces.oneshot import OneShot


async def prompt(options: argparse.Namespace) -> int:
    """`hark -p`: one prompt, one answer. It leaves when nothing that others queued here is left to do."""
    text = "\n\n".join(part for part in (options.prompt.strip(), piped_text()) if part)
    if not text:
        raise SettingsError('The prompt is empty. Say what to do: hark -p "PROMPT", or pipe it in.')
    watchdog = Watchdog(EXIT_SECONDS)
    leaving = watchdog.waits_for
    async with open_agent(
        sweeps=False, can_ask=False, notice=print_error, leaving=leaving, **sections(options)
    ) as agent:
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
            print_line(await session.run_command(meaning))
            outcome = await session.idle() if session.is_busy_here else None
            watchdog.arm()
            return signals.code or (_exit_code(outcome) if outcome else COMPLETED)
        outcome = await shot.run(text)
        if session.is_busy_here:
            await session.idle()
        watchdog.arm()
    return signals.code or _exit_code(outcome)


async def _stop(session: SessionHandle, shot: OneShot, name: str) -> None:
    """Take back what we asked for, and nothing of others: the turn that works on it, or the message that waits."""
    if shot.message and not shot.turn and await session.withdraw(shot.message) is None:
        return
    await session.interrupt(name, shot.turn)


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
