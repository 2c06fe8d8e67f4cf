"""`hark`: the terminal app on an agent, with a way out that is always bounded."""

import argparse
import logging
import os
import sys
import threading
from contextlib import suppress
from dataclasses import replace

from hark.app.agent import Agent
from hark.app.build import open_agent
from hark.app.settings.presets import EMBEDDED
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, FAILED, INTERRUPTED, Signals, Watchdog
from hark.cli.chat_options import choose_route, offered, sections, session_name
from hark.cli.io.early_input import FirstLine
from hark.protocol.rules import AfterStop
from hark.protocol.speech import Dictation
from hark.surfaces.terminal.app import TerminalApp
from hark.surfaces.terminal.environment import EarlyInput, TerminalEnvironment
from hark.surfaces.terminal.history import adopt

# Leave the other screen, show the cursor, and end every way of reporting that a terminal app may have asked for.
_USUAL = (
    b"\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l"
    b"\x1b[?2048l\x1b[?1004l\x1b[<u\x1b[0m"
)
_WRITE_SECONDS = 0.2
_MOST_CRASHES = 3

_log = logging.getLogger(__name__)


async def terminal(options: argparse.Namespace, line: FirstLine) -> int:
    """Run the terminal app until the person leaves; `line` is live until it is there."""
    if line.is_left:
        line.give_back()
        return COMPLETED
    shown = TerminalScreen(line)
    watchdog = shown.watchdog
    notices: list[str] = []
    try:
        async with open_agent(
            sweeps=False, notice=notices.append, leaving=watchdog.waits_for, **sections(options)
        ) as agent:
            choose_route(agent.bench.routes, options.model)
            settings = agent.settings
            watchdog.seconds = settings.limits.exit_seconds
            name = await session_name(options, agent.bench.store)
            if name is None:
                name = f"chat-{agent.bench.clock.new_id()[:6]}"
                known = {row.session for row in await agent.bench.store.journal.sessions()}
                adopt(agent.home / "drafts", name, known)
                if not known:
                    route = agent.bench.routes.names[0]
                    notices += welcome(route, is_embedded=route == EMBEDDED.route().name)
            elif told := await offered(agent.session(name, "terminal"), options):
                notices.append(told)
            place = TerminalEnvironment(
                agent.home,
                agent.bench.workspace,
                settings.terminal.keys,
                settings.terminal.theme,
                settings.delivery.after_stop is AfterStop.EDIT,
                tuple(notices),
                take_over=lambda: _before(line),
                leaving=watchdog.arm,
                when_deaf=shown.be_deaf,
                dictation=lambda: _dictation(agent),
            )
            signals = shown.signals = Signals(watchdog, lambda _: shown.exit())
            signals.listen()
            is_well = line.is_left or await shown.run(agent, name, place)
            shown.restore()
            watchdog.arm()
            code = signals.code
            signals.code = code or COMPLETED  # from now on the first Ctrl+C is a second one
    finally:
        line.give_back()
        shown.restore()
    if shown.unsent:
        sys.stderr.write(f"hark: what you had typed is kept: hark -r {shown.unsent}\n")
    return code or (COMPLETED if is_well else FAILED)


def welcome(route: str, is_embedded: bool) -> list[str]:
    """Return the lines, each for 80 columns; `route` is the name of the model that answers.

    The embedded model is there to try the program with, not to work with: that is said first.
    """
    if is_embedded:
        first = "A small demonstration model answers. For real work, choose one: hark setup"
    else:
        first = f"{route} answers. Try: what is in this directory?"
    return [
        first,
        "Type while it works: Enter interrupts, Tab queues, Ctrl+S steers, Esc stops.",
        "/help lists commands, /demo shows an interrupt; hark doctor helps when stuck.",
    ]


def _before(line: FirstLine) -> EarlyInput:
    typed, rest = line.take()
    return EarlyInput(tuple(typed.sent), typed.text, rest)


def _dictation(agent: Agent) -> Dictation:
    from hark.app.voice import ProgramDictation
    from hark.processes.piped import spawner
    from hark.voice.program_microphone import ProgramMicrophone

    parts = agent.parts
    microphone = ProgramMicrophone(parts.settings.voice, spawner(parts.owner))
    return ProgramDictation(microphone, parts.transcriber(), agent.home / "voice")


def _write_usual() -> None:
    with suppress(OSError):
        os.write(1, _USUAL)


class TerminalScreen:
    """The app on the screen. One that fails is replaced by another: the session and what runs in it don't notice."""

    def __init__(self, line: FirstLine) -> None:
        self.watchdog = Watchdog(EXIT_SECONDS, self.restore)
        self.signals: Signals | None = None
        self.unsent = ""
        self._line = line
        self._app: TerminalApp | None = None
        self._is_left = False
        self._is_on = False

    def restore(self) -> None:
        """Give the terminal back as it was, from any thread; one that takes nothing any more is not waited for."""
        was_on, self._is_on = self._is_on, False
        self._line.restore()
        if was_on:
            writing = threading.Thread(target=_write_usual, name="restore", daemon=True)
            writing.start()
            writing.join(_WRITE_SECONDS)

    def exit(self) -> None:
        """Leave."""
        self._is_left = True
        if self._app is not None:
            self._app.exit()

    def be_deaf(self, *, is_again: bool) -> None:
        """The person wants to leave, and the loop does not hear it: in the input's own thread."""
        self.watchdog.arm()
        if self.signals is not None:
            self.signals.code = self.signals.code or INTERRUPTED  # the next one ends it at once
        if is_again:
            self.watchdog.leave_now(INTERRUPTED)

    async def run(self, agent: Agent, session: str, place: TerminalEnvironment) -> bool:
        """Show the session until the person leaves; False when the app failed again and again."""
        colour = os.environ.get("NO_COLOR")
        for _ in range(_MOST_CRASHES):
            if self._is_left:
                return True
            if colour is not None:
                os.environ["NO_COLOR"] = colour  # the app takes it away
            self._app = TerminalApp(agent, session, place)
            self._is_on = True
            await self._app.run_async()
            session = self._app.session.id
            self.unsent = session if self._app.has_draft else ""
            failure = self._app.failure
            if failure is None:
                return True
            _log.error("the screen failed", exc_info=failure)
            told = f"The screen had to be drawn anew after an error: {failure!r}. The session goes on."
            place = replace(place, notices=(told,), take_over=EarlyInput)
        self.restore()
        sys.stderr.write(f"hark: the screen failed {_MOST_CRASHES} times, see the log. Go on with: hark -r {session}\n")
        return False
